"""State in one SQLite file.

The file is in WAL mode, so readers and the one writer do not wait for each other, and every commit is forced to disk
(`synchronous=FULL`): with less, a power cut may take back a commit that was answered, and the catalog would then hold
a publish that the state has not decided.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlalchemy import QueuePool, Text, bindparam, create_engine, event, func, text
from sqlalchemy.exc import DBAPIError

from lamina.errors import NoAnswer, StateError, StateUnwritable
from lamina.state import tables
from lamina.state.backend import bring_up_to_date, create_store, found_version
from lamina.state.leases import machine_time

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sqlalchemy import Connection, TableValuedAlias

    from lamina.timeline.interval import Instant

BUSY_SECONDS = 30.0
_TABLE_EXISTS = text("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'lamina_store'")
_WRITES = "lamina_writes"


class SqliteBackend:
    """The file at `path`; it and its folder are made by the first write."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_ready = False
        # One writer at a time in this process: threads queue here instead of polling the file's lock.
        self._writer = threading.Lock()
        self._engine = create_engine(
            "sqlite://", creator=self._connect, poolclass=QueuePool, pool_size=4, max_overflow=60, pool_timeout=60
        )
        event.listen(self._engine, "begin", _begin)

    def listed(self, parameter: str) -> TableValuedAlias:
        """Rows of a JSON array."""
        return func.json_each(bindparam(parameter, type_=Text)).table_valued("value", name="listed")

    @contextmanager
    def reading(self) -> Iterator[Connection | None]:
        """A snapshot; nothing is made where there is no file."""
        if not self._is_ready and not self._exists():
            yield None
            return
        with self._translated("read"), self._engine.connect() as connection, connection.begin():
            if not self._is_ready:
                version = _existing_version(connection)
                if version is None:
                    yield None
                    return
                self._is_ready = version == tables.SCHEMA_VERSION
            if self._is_ready:
                yield connection
                return
        # An older store: it is brought up to date as a write, then read.
        with self.writing():
            pass
        with self.reading() as connection_or_none:
            yield connection_or_none

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """The file's only writer."""
        with self._writer, self._translated("write"):
            if not self._is_ready:
                self._make()
            with self._engine.connect() as connection:
                transaction = connection.execution_options(**{_WRITES: True}).begin()
                with transaction:
                    # Looked at each time: another process may have upgraded the store meanwhile.
                    found_version(connection)
                    yield connection
                    with self._translated("commit"):
                        transaction.commit()

    def now(self, connection: Connection) -> Instant:  # noqa: ARG002  # other databases have a clock to ask
        """By this machine's clock: a SQLite file is used on one machine."""
        return machine_time()

    def dispose(self) -> None:
        """Close all connections; the last one folds the WAL into the file."""
        self._engine.dispose()

    def _exists(self) -> bool:
        try:
            return self._path.exists()
        except OSError as problem:
            raise StateError(f"the state file `{self._path}` cannot be reached: {problem.strerror}") from problem

    def _make(self) -> None:
        """Make the file and its tables, or bring them up to date; several processes may try at once."""
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Made here, so that no connection has to be opened with the right to make files, and for its owner alone:
            # SQLite gives what it puts beside the file the same rights.
            if not self._path.exists():
                self._path.touch(mode=0o600)
        except OSError as problem:
            raise StateUnwritable(
                f"the state file `{self._path}` cannot be made: {problem.strerror}",
                hint="make the folder writable, or set `state` in `lamina.yaml` to a place that is",
            ) from problem
        with self._engine.connect() as connection:
            _use_wal(connection)
            with connection.execution_options(**{_WRITES: True}).begin():
                version = _existing_version(connection)
                if version is None:
                    create_store(connection)
                elif version < tables.SCHEMA_VERSION:
                    bring_up_to_date(connection, version)
        self._is_ready = True

    def _connect(self) -> sqlite3.Connection:
        uri = self._path.absolute().as_uri()
        connection = _open(f"{uri}?mode=rw")
        try:
            connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        except sqlite3.OperationalError:
            connection.close()
            if not self._is_frozen():
                raise
            connection = _open(f"{uri}?mode=ro&immutable=1")
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    def _is_frozen(self) -> bool:
        """Whether nobody here can write: then SQLite cannot make the files beside the database that a WAL reader needs.

        Without a WAL file everything committed is in the database file itself, which can be read as it is.
        """
        wal = self._path.with_name(self._path.name + "-wal")
        return self._path.is_file() and not wal.exists() and not os.access(self._path.parent, os.W_OK)

    @contextmanager
    def _translated(self, doing: str) -> Iterator[None]:
        try:
            yield
        except DBAPIError as problem:
            raise self._error(str(problem.orig), doing) from problem
        except sqlite3.Error as problem:
            raise self._error(str(problem), doing) from problem

    def _error(self, reason: str, doing: str) -> StateError:
        # By text, because Python 3.10 does not tell SQLite's error codes; the texts are fixed in SQLite itself.
        file = f"the state file `{self._path}`"
        if "not a database" in reason or "malformed" in reason:
            return StateError(
                f"{file} is damaged or no Lamina state: {reason}",
                hint="restore it from a backup, or move it away to begin with an empty state",
            )
        if "disk is full" in reason:
            return StateUnwritable(f"{file} cannot be written: the disk is full", hint="free some space and run again")
        if "locked" in reason:
            return StateError(
                f"{file} is locked by another process for more than {BUSY_SECONDS:.0f} seconds",
                hint="find the process that uses the file and let it finish",
            )
        if doing == "commit":
            return NoAnswer(f"{file} gave no answer to a commit: {reason}", hint="run the command again")
        if doing == "write":
            return StateUnwritable(
                f"{file} cannot be written: {reason}",
                hint="make the file and its folder writable, or set `state` in `lamina.yaml` to a place that is",
            )
        return StateError(f"{file} cannot be read: {reason}", hint="check the file and the rights to its folder")


def _open(uri: str) -> sqlite3.Connection:
    # Transactions are begun by hand; Python's own way would begin them too late to be immediate.
    return sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)


def _begin(connection: Connection) -> None:
    is_writing = connection.get_execution_options().get(_WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if is_writing else "BEGIN")


def _use_wal(connection: Connection) -> None:
    """Switch the file to WAL once; SQLite answers "locked" without waiting while another process does the same."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    end = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            driver.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as problem:
            if "locked" not in str(problem) or time.monotonic() > end:
                raise
            time.sleep(0.02)
        else:
            return


def _existing_version(connection: Connection) -> int | None:
    if connection.execute(_TABLE_EXISTS).scalar() is None:
        return None
    return found_version(connection)
