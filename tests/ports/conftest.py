"""State stores of every sort, and a PostgreSQL server that lives as long as the tests."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import psycopg
import pytest

from lamina.bootstrap import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lamina.app.ports import StateStore

# A server takes its time, which those who wait for the fast tests do not have.
BACKENDS = ("memory", "sqlite", pytest.param("postgresql", marks=pytest.mark.slow))
SECONDS_TO_INSTALL = 600
SECONDS_TO_START = 60

# Ends the server and removes its folder when its input is closed: by the tests, or by their death, however violent.
KEEPER = """
folder=$1; shift
exec 3<&0
"$@" </dev/null 3<&- & server=$!
read -r _ <&3
kill -INT "$server"
wait "$server"
rm -rf "$folder"
"""


@dataclass(frozen=True)
class Place:
    """Where a store lies: opening it twice finds the same facts, except in memory."""

    url: str
    base: Path

    def open(self) -> StateStore:
        return open_store(self.url, self.base)


@pytest.fixture(params=BACKENDS)
def store(request: pytest.FixtureRequest) -> Iterator[StateStore]:
    """An empty store, one of each sort after the other."""
    place: Place = request.getfixturevalue(f"{request.param}_place")
    opened = place.open()
    yield opened
    opened.close()


@pytest.fixture(params=BACKENDS[1:])
def place(request: pytest.FixtureRequest) -> Place:
    """Where an empty store can be made that outlives a process."""
    return request.getfixturevalue(f"{request.param}_place")


@pytest.fixture
def memory_place(tmp_path: Path) -> Place:
    return Place("memory:", tmp_path)


@pytest.fixture
def sqlite_place(tmp_path: Path) -> Place:
    return Place("sqlite:///.lamina/state.db", tmp_path)


@pytest.fixture
def postgresql_place(postgresql: str, tmp_path: Path) -> Iterator[Place]:
    """A schema of its own for every test."""
    schema = f"test_{os.urandom(6).hex()}"
    with psycopg.connect(postgresql, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
    yield Place(f"{postgresql}?options={quote(f'-csearch_path={schema}', safe='')}", tmp_path)
    with psycopg.connect(postgresql, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA {schema} CASCADE")


# --- a PostgreSQL server ----------------------------------------------------------------------------------------------
@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The address of a throwaway server on the loopback interface."""
    programs = find_programs() or install_programs()
    if programs is None:
        missing("PostgreSQL is not installed (`apt-get install postgresql`, or `initdb` and `postgres` on the PATH)")
    with contextlib.ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="lamina-postgresql-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        yield stack.enter_context(server(programs, folder))


def missing(reason: str) -> None:
    if is_required():
        pytest.fail(reason)
    pytest.skip(reason)


def is_required() -> bool:
    return "1" in {os.environ.get("LAMINA_REQUIRE_SERVICES"), os.environ.get("LAMINA_REQUIRE_FORMATS")}


def find_programs() -> Path | None:
    """The folder with `initdb` and `postgres`; distributions keep it off the PATH."""
    on_path = shutil.which("initdb")
    folders = [Path(on_path).resolve().parent] if on_path else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((f for f in folders if (f / "initdb").exists() and (f / "postgres").exists()), None)


def install_programs() -> Path | None:
    """Install the server where it is required and this is allowed."""
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0 or not is_required():
        return None
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update"], ["install", "--yes", "--no-install-recommends", "postgresql"]):
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run([apt, *arguments], env=environment, capture_output=True, timeout=SECONDS_TO_INSTALL)
    return find_programs()


@contextlib.contextmanager
def server(programs: Path, folder: Path) -> Iterator[str]:
    identity = unprivileged_user()
    if identity:
        os.chown(folder, identity["user"], identity["group"])
    data = folder / "data"
    log = folder / "log"
    initdb = [programs / "initdb", "-D", data, "-U", "lamina", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
    made = subprocess.run(initdb, cwd=folder, capture_output=True, text=True, timeout=SECONDS_TO_START, **identity)
    if made.returncode:
        pytest.fail(f"initdb failed: {made.stderr}")
    port = free_port()
    settings = [f"unix_socket_directories={folder}", "listen_addresses=127.0.0.1", f"port={port}", "fsync=off"]
    options = [part for setting in settings for part in ("-c", setting)]
    command = ["sh", "-c", KEEPER, "keeper", folder, programs / "postgres", "-D", data, *options]
    with log.open("w") as output:
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=output, stderr=output, **identity)
    try:
        address = f"postgresql://lamina@127.0.0.1:{port}/postgres"
        wait_for(process, address, log)
        yield address
    finally:
        stop(process)


def unprivileged_user() -> dict[str, int | list[int]]:
    """PostgreSQL refuses to run as root: arguments that start a process as somebody else."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    return {}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(process: subprocess.Popen, address: str, log: Path) -> None:
    end = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < end and process.poll() is None:
        try:
            psycopg.connect(address, connect_timeout=2).close()
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return
    pytest.fail(f"PostgreSQL did not start: {log.read_text()}")


def stop(process: subprocess.Popen) -> None:
    process.stdin.close()
    process.wait(timeout=30)
