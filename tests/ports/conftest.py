"""State stores of every sort, and a PostgreSQL server that lives as long as the tests."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import psycopg
import pytest

from lamina.bootstrap import open_store
from tests.kit.postgresql import find_programs, install_programs, missing, server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lamina.app.ports.state import StateStore

# A server takes its time, which those who wait for the fast tests do not have.
BACKENDS = ("memory", "sqlite", pytest.param("postgresql", marks=pytest.mark.slow))


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
