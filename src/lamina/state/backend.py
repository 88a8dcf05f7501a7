"""What the SQL store needs from a database: transactions, and errors in our words."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Protocol

from sqlalchemy import insert, select, update

from lamina.errors import StateTooNew
from lamina.state import tables
from lamina.state.migrations.upgrade import upgrade

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from sqlalchemy import Connection, TableValuedAlias

    from lamina.timeline.interval import Instant

KEY_BYTES = 32


class Backend(Protocol):
    """A database. Errors that leave its transactions are `StateError`s."""

    def reading(self) -> AbstractContextManager[Connection | None]:
        """A consistent snapshot; `None` where no state has been written yet. Never makes or changes anything."""
        ...

    def writing(self) -> AbstractContextManager[Connection]:
        """The only writer, until the block ends: committed then, or rolled back by any exception.

        Makes the store when there is none. `Conflict` means that nothing was written and trying again may help.
        """
        ...

    def listed(self, parameter: str) -> TableValuedAlias:
        """The texts of a JSON array, given as a parameter, as rows with the column `value`."""
        ...

    def now(self, connection: Connection) -> Instant:
        """The moment by the clock that everyone shares who shares the database."""
        ...

    def dispose(self) -> None:
        """Close all connections."""
        ...


class Conflict(Exception):
    """The database answered that a transaction met another one and was undone; never leaves the store."""


def create_store(connection: Connection) -> None:
    """Make all tables and give the store its identity."""
    tables.metadata.create_all(connection)
    connection.execute(
        insert(tables.store),
        {
            "store_id": secrets.token_hex(4),
            "schema_version": tables.SCHEMA_VERSION,
            "seal_key": secrets.token_hex(KEY_BYTES),
        },
    )
    connection.execute(insert(tables.numbers), {"name": tables.ATTEMPTS_COUNTER, "next": 1})


def bring_up_to_date(connection: Connection, found: int) -> None:
    """Carry out the migrations that a store of schema version `found` lacks."""
    reached = upgrade(connection, found)
    connection.execute(update(tables.store), {"schema_version": reached})


_SCHEMA_VERSION = select(tables.store.c.schema_version)


def found_version(connection: Connection, statement: Any = _SCHEMA_VERSION) -> int | None:
    """The schema version of an existing store; `StateTooNew` for one that this Lamina must not touch."""
    found: int | None = connection.execute(statement).scalar()
    if found is not None and found > tables.SCHEMA_VERSION:
        raise StateTooNew(
            f"the state has schema version {found}, this Lamina knows versions up to {tables.SCHEMA_VERSION}",
            hint="upgrade Lamina to the version that last worked on this state",
        )
    return found
