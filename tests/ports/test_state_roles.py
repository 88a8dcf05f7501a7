"""The roles that SECURITY.md recommends for PostgreSQL suffice, and can do no more than it says."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from benchmarks.generate import generate
from benchmarks.recorded import record_as_built
from lamina.app.requests import PlanRequest
from lamina.bootstrap import OpenOptions, open_application, open_store, parse_execution_time
from lamina.errors import StateUnwritable

SQL_BLOCK = re.compile(r"```sql\n(.*?)```", re.DOTALL)
SECURITY = Path(__file__).parents[2] / "SECURITY.md"
NOON = "2024-02-01"


def run(address: str, script: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        for statement in filter(str.strip, script.split(";")):
            connection.execute(statement)


def plan(folder: Path):
    application = open_application(OpenOptions(directory=folder), lambda _event: None)
    try:
        return application.plan(PlanRequest(command="plan", now=parse_execution_time(NOON)))
    finally:
        application.close()


def test_the_recommended_roles(postgresql, tmp_path):
    set_up, afterwards = SQL_BLOCK.findall(SECURITY.read_text(encoding="utf-8"))
    run(postgresql, "CREATE DATABASE guarded")
    server = conninfo_to_dict(postgresql)
    host, port = server.get("host", "127.0.0.1"), server["port"]
    owner = re.sub(r"/[^/?]*(\?|$)", r"/guarded\1", postgresql)
    run(owner, set_up)

    folder = tmp_path / "shop"
    generate(folder, 4)
    config = (folder / "lamina.yaml").read_text()

    def become(role: str) -> None:
        state = f"state: postgresql://{role}@{host}:{port}/guarded\n"
        (folder / "lamina.yaml").write_text(config + state)

    become("lamina_writer")
    record_as_built(folder, "2024-01-20")
    run(owner, afterwards)
    record_as_built(folder, "2024-01-25")
    writer, reader = (f"postgresql://{role}@{host}:{port}/guarded" for role in ("lamina_writer", "lamina_reader"))
    for address in (writer, reader):
        for script in ("CREATE TABLE mine (x int)", "CREATE TABLE public.mine (x int)", "DROP TABLE lamina_store"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                run(address, script)

    become("lamina_reader")
    assert len(plan(folder).plan.steps) == 4
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        run(reader, "DELETE FROM lamina_definitions")
    with contextlib.closing(open_store(reader, tmp_path)) as store, pytest.raises(StateUnwritable):
        store.commit((), ())
