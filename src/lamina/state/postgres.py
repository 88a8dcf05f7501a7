"""State in a PostgreSQL database.

Commits are serialized by locking the one row of `lamina_store`, so each sees everything committed before it, as with
SQLite's single writer. A commit takes milliseconds; readers use snapshots and never wait.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import quote

from sqlalchemy import JSON, Text, bindparam, cast, create_engine, event, func, select, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from lamina.errors import BadConfigValue, NoAnswer, StateError, StateUnwritable
from lamina.state import tables
from lamina.state.backend import Conflict, bring_up_to_date, create_store, found_version
from lamina.timeline.interval import Instant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection, TableValuedAlias
    from sqlalchemy.engine.interfaces import DBAPIConnection

_CONNECT_SECONDS = 10
# A command that is stopped in the middle of a commit must not stop the others: its session ends before they give up.
_SESSION = "SET lock_timeout = '60s'; SET idle_in_transaction_session_timeout = '30s'"
_TABLE_EXISTS = text("SELECT to_regclass('lamina_store')")
# Not the time at which the transaction began: it may have waited for its turn since.
_NOW = text("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)")
_LOCK_STORE = select(tables.store.c.schema_version).with_for_update()
_ONE_CREATOR = text("SELECT pg_advisory_xact_lock(4924614091)")

_UNDONE = frozenset({"40001", "40P01"})  # serialization failure, deadlock
_UNWRITABLE = frozenset({"25006", "42501"})  # read-only transaction, insufficient privilege
_FULL = "53100"
_LOCKED = "55P03"
_SENSITIVE = re.compile(r"password|passphrase|secret|token", re.IGNORECASE)


class PostgresBackend:
    """The database at `url`; its tables are made by the first write, in the first schema of the search path."""

    def __init__(self, url: str) -> None:
        try:
            self._url = make_url(url).set(drivername="postgresql+psycopg")
            if url.partition("@")[2].count("@") > str(dict(self._url.query)).count("@"):
                # A password with an unescaped `@` in it: its end would be shown as the name of a host or database.
                raise ValueError
        except (ArgumentError, ValueError):
            # The reason is left out and cut off: it repeats the address, with the password in it.
            raise BadConfigValue(
                "the address of the PostgreSQL database is not a valid URL",
                hint="write it like `postgresql://user@host:5432/database`, with `@` in a password as `%40`",
            ) from None
        self._is_ready = False
        try:
            self._engine = create_engine(
                self._url,
                isolation_level="READ COMMITTED",
                pool_size=4,
                max_overflow=60,
                pool_pre_ping=True,
                connect_args={"connect_timeout": _CONNECT_SECONDS, "application_name": "lamina"},
            )
        except ModuleNotFoundError as problem:
            raise StateError(
                "state in PostgreSQL needs the package `psycopg`", hint="install it: `pip install 'lamina[postgres]'`"
            ) from problem
        self._snapshots = self._engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        event.listen(self._engine, "connect", _prepare_session)

    def listed(self, parameter: str) -> TableValuedAlias:
        """Rows of a JSON array."""
        array = cast(bindparam(parameter, type_=Text), JSON)
        return func.json_array_elements_text(array).table_valued("value", name="listed").render_derived()

    @contextmanager
    def reading(self) -> Iterator[Connection | None]:
        """A snapshot; `None` where the tables do not exist."""
        with self._translated("read"), self._snapshots.connect() as connection, connection.begin():
            version = tables.SCHEMA_VERSION if self._is_ready else _existing_version(connection)
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
        """The store's only writer."""
        with self._translated("write"):
            if not self._is_ready:
                self._make()
            with self._engine.connect() as connection:
                transaction = connection.begin()
                with transaction:
                    found_version(connection, _LOCK_STORE)
                    yield connection
                    with self._translated("commit"):
                        transaction.commit()

    def now(self, connection: Connection) -> Instant:
        """By the server's clock."""
        return Instant(connection.execute(_NOW).scalar_one())

    def dispose(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def _make(self) -> None:
        with self._engine.connect() as connection, connection.begin():
            connection.execute(_ONE_CREATOR)
            version = _existing_version(connection)
            if version is None:
                _take_over_conditions()
                create_store(connection)
            elif version < tables.SCHEMA_VERSION:
                bring_up_to_date(connection, version)
        self._is_ready = True

    @contextmanager
    def _translated(self, doing: str) -> Iterator[None]:
        try:
            yield
        except DBAPIError as problem:
            sqlstate = getattr(problem.orig, "sqlstate", None)
            if sqlstate in _UNDONE:
                raise Conflict from problem
            raise self._error(problem, sqlstate, doing) from problem

    def _error(self, problem: DBAPIError, sqlstate: str | None, doing: str) -> StateError:
        store = f"the state in PostgreSQL database `{self._url.database}` on `{self._url.host or 'localhost'}`"
        reason = self._without_secrets(" ".join(str(problem.orig).split()))
        # Without a code of the server's own, or with one that ends the connection, nobody knows what became of it.
        has_answer = sqlstate is not None and not problem.connection_invalidated and sqlstate[:2] not in {"08", "57"}
        if doing == "commit" and not has_answer:
            return NoAnswer(f"{store} gave no answer to a commit: {reason}", hint="run the command again")
        if sqlstate in _UNWRITABLE:
            return StateUnwritable(f"{store} cannot be written: {reason}", hint="grant the user the right to write")
        if sqlstate == _FULL:
            return StateUnwritable(f"{store} cannot be written: the disk is full", hint="free some space and run again")
        if sqlstate == _LOCKED:
            return StateError(
                f"{store} is locked by another process", hint="find the transaction that holds `lamina_store`, end it"
            )
        if not has_answer:
            return StateError(f"{store} cannot be reached: {reason}", hint="check the address and that the server runs")
        return StateError(f"{store} cannot be used: {reason}")

    def _without_secrets(self, reason: str) -> str:
        """What a server or driver says, without any text of the address that may be a secret."""
        values = [self._url.password, *(value for key, value in self._url.query.items() if _SENSITIVE.search(key))]
        texts = {str(each) for value in values if value for each in (value if isinstance(value, tuple) else (value,))}
        for text_ in sorted(texts | {quote(each, safe="") for each in texts}, key=len, reverse=True):
            reason = reason.replace(text_, "***")
        return reason


def _take_over_conditions() -> None:
    """Let partial indexes have the conditions here that they have on SQLite."""
    for index in (index for table in tables.metadata.sorted_tables for index in table.indexes):
        index.dialect_options["postgresql"]["where"] = index.dialect_options["sqlite"]["where"]


def _prepare_session(connection: DBAPIConnection, _record: object) -> None:
    cursor = connection.cursor()
    cursor.execute(_SESSION)
    cursor.close()
    connection.commit()


def _existing_version(connection: Connection) -> int | None:
    if connection.execute(_TABLE_EXISTS).scalar() is None:
        return None
    return found_version(connection)
