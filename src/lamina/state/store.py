"""The state store on a SQL database."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import bindparam, select, update

from lamina.app.ports.loaded import LeaseGrant, Loaded, Unsettled
from lamina.environments.pointers import Revision
from lamina.errors import StateError
from lamina.state import tables
from lamina.state.backend import Conflict
from lamina.state.leases import expiry, require_held, succeed
from lamina.state.reads import Reader, Statements
from lamina.state.requirements import check
from lamina.state.writes import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy import Connection

    from lamina.app.ports.facts import Fact
    from lamina.app.ports.loaded import HistoryEntry, Lease, LoadRequest, Owner
    from lamina.app.ports.machine import FateOf
    from lamina.app.ports.requirements import Requirement
    from lamina.state.backend import Backend

T = TypeVar("T")

_TRIES = 5
_VERSION_PREFIX = "version:"
_STORE_ID = select(tables.store.c.store_id)
_SEAL_KEY = select(tables.store.c.seal_key)
_ADVANCE = (
    update(tables.numbers)
    .where(tables.numbers.c.name == tables.ATTEMPTS_COUNTER)
    .values(next=tables.numbers.c.next + bindparam("count"))
)
_NEXT = select(tables.numbers.c.next).where(tables.numbers.c.name == tables.ATTEMPTS_COUNTER)


class SqlStateStore:
    """The `StateStore` port on a database.

    Nothing is opened before the first call. Where no state has been written yet, reading finds nothing and makes
    nothing; the first write makes the store. Threads may share an instance.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._listed = backend.listed("listed")
        self._statements = Statements(self._listed)
        self._store_id: str | None = None

    @property
    def store_id(self) -> str:
        """Eight hex digits made when the store was created; asking makes the store where there is none."""
        if self._store_id is None:
            with self._backend.reading() as connection:
                if connection is not None:
                    self._store_id = connection.execute(_STORE_ID).scalar_one()
        if self._store_id is None:
            self._store_id = self._write(lambda connection: connection.execute(_STORE_ID).scalar_one())
        return self._store_id

    @property
    def seal_key(self) -> bytes | None:
        """What digests of values from the environment are keyed with; None where no state has been written yet."""
        with self._backend.reading() as connection:
            return bytes.fromhex(connection.execute(_SEAL_KEY).scalar_one()) if connection is not None else None

    def unsettled(self) -> Unsettled:
        """What the start check looks for."""
        with self._backend.reading() as connection:
            if connection is None:
                return Unsettled()
            return Reader(connection, self._statements).unsettled(self._backend.now(connection))

    def load(self, request: LoadRequest) -> Loaded:
        """The facts asked for, from one snapshot."""
        with self._backend.reading() as connection:
            if connection:
                return Reader(connection, self._statements).load(request)
        return Loaded(
            revisions={name: Revision(environment=name) for name in request.environments},
            checkpoints=dict.fromkeys(request.checkpoints_of, ()),
            series={asked.environment: () for asked in request.revisions_since},
        )

    def allocate(self, count: int) -> int:
        """Attempt numbers that nobody else gets."""

        def advance(connection: Connection) -> int:
            connection.execute(_ADVANCE, {"count": count})
            following: int = connection.execute(_NEXT).scalar_one()
            return following - count

        return self._write(advance)

    def take(self, resource: str, owner: Owner, *, seconds: float, fate_of: FateOf) -> LeaseGrant:
        """A lease, with what was left unfinished on the resource."""

        def take(connection: Connection) -> LeaseGrant:
            writer, reader = Writer(connection, self._listed), Reader(connection, self._statements)
            former, now = writer.newest_lease(resource), self._backend.now(connection)
            lease, changed = succeed(former, resource, owner, now=now, seconds=seconds, fate_of=fate_of)
            if changed is not None:
                writer.set_lease(changed)
            writer.add_lease(lease)
            is_version = resource.startswith(_VERSION_PREFIX)
            return LeaseGrant(
                lease=lease,
                taken_at=now,
                unfinished=reader.unfinished(resource.removeprefix(_VERSION_PREFIX)) if is_version else (),
                lost=reader.lost(resource),
            )

        return self._write(take)

    def renew(self, leases: Sequence[Lease], *, seconds: float) -> None:
        """Later expiry for all of them, or for none."""

        def renew(connection: Connection) -> None:
            writer, now = Writer(connection, self._listed), self._backend.now(connection)
            for lease in leases:
                held = require_held(writer.newest_lease(lease.resource), lease.resource, lease.token)
                writer.set_lease(replace(held, expires_at=expiry(now, seconds)))

        self._write(renew)

    def commit(self, facts: Sequence[Fact], requires: Sequence[Requirement] = ()) -> None:
        """All facts or none."""

        def commit(connection: Connection) -> None:
            writer = Writer(connection, self._listed)
            check(requires, writer)
            writer.apply_all(facts)

        self._write(commit)

    def history(self, *, run_id: str | None = None, limit: int = 20) -> tuple[HistoryEntry, ...]:
        """Runs, newest first."""
        with self._backend.reading() as connection:
            return Reader(connection, self._statements).history(run_id, limit) if connection else ()

    def close(self) -> None:
        """Let go of all connections."""
        self._backend.dispose()

    def _write(self, change: Callable[[Connection], T]) -> T:
        """Run a change as the only writer; once more, a few times, when the database undid it for meeting another."""
        for _ in range(_TRIES):
            try:
                with self._backend.writing() as connection:
                    answer = change(connection)
            except Conflict:
                continue
            return answer
        raise StateError(
            f"the state store undid a commit {_TRIES} times because others changed the same rows",
            hint="run the command again",
        )
