"""What is read from the state tables, inside one snapshot.

Names are handed over as one JSON array, so that a statement is the same for one name and for five thousand, and each
name is looked up in an index.
"""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cached_property
from itertools import groupby
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sqlalchemy import Integer, and_, bindparam, func, null, or_, select, text

from lamina.app.ports.loaded import Loaded, Unsettled
from lamina.environments.pointers import Revision
from lamina.state import tables
from lamina.state.codec import model_document, read_partition
from lamina.state.lazy import LazyMapping
from lamina.state.rows import (
    to_attempt,
    to_audits,
    to_batch,
    to_entry,
    to_facts,
    to_head,
    to_lease,
    to_revision,
    to_rewrite,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy import ColumnElement, Connection, Row, ScalarSelect, Select, Table, TableValuedAlias

    from lamina.app.ports.facts import AuditsRecorded, BatchRecorded
    from lamina.app.ports.loaded import HistoryEntry, Lease, LoadRequest, RevisionsSince
    from lamina.app.ports.published import Attempt, Head, PartitionKey
    from lamina.graph.model import Model
    from lamina.graph.names import NodeName
    from lamina.identity.naming import PhysicalName
    from lamina.identity.standing import Equals
    from lamina.planning.inputs import Read, Rewrite, VersionFacts
    from lamina.timeline.interval import Instant

_leases, _attempts, _events, _unfinished = tables.leases, tables.attempts, tables.attempt_events, tables.unfinished
_environments, _revisions, _versions = tables.environments, tables.revisions, tables.versions
_work, _heads, _manifest, _definitions = tables.work, tables.heads, tables.manifest, tables.definitions
_rewrites, _shapes, _identities = tables.rewrites, tables.shapes, tables.identities
_runs, _ends, _batches = tables.runs, tables.run_ends, tables.batches
_audits, _audited = tables.audits, tables.audited


def _latest(table: Table, number: str, physical: ColumnElement[str]) -> ScalarSelect[int]:
    """The highest number that the table holds for a physical name."""
    newer = table.alias()
    return select(func.max(newer.c[number])).where(newer.c.physical == physical).scalar_subquery()


# --- statements without lists -----------------------------------------------------------------------------------------
_IS_OPEN_AND_UNSETTLED = and_(
    text(tables.OPEN_LEASE), or_(_leases.c.status == "lost", _leases.c.expires_at <= bindparam("now"))
)
IS_UNSETTLED = select(
    select(_leases.c.token).where(_IS_OPEN_AND_UNSETTLED).exists().label("leases"),
    select(_unfinished.c.number).exists().label("attempts"),
    select(_environments.c.newest).where(text(tables.NOT_FOLLOWED)).exists().label("revisions"),
)
_UNSETTLED_LEASES = select(_leases).where(_IS_OPEN_AND_UNSETTLED).order_by(_leases.c.resource, _leases.c.token)
LOST_LEASES = (
    select(_leases)
    .where(text(tables.OPEN_LEASE), _leases.c.status == "lost", _leases.c.resource == bindparam("resource"))
    .order_by(_leases.c.token)
)
_UNFINISHED = (
    select(
        _unfinished.c.number, _attempts.c.detail.label("intent"), _events.c.status, _events.c.detail, _shapes.c.shape
    )
    .join(_attempts, _attempts.c.number == _unfinished.c.number)
    .join(_events, _events.c.number == _unfinished.c.number)
    .outerjoin(_shapes, _shapes.c.shape_id == _events.c.shape_id)
    .order_by(_unfinished.c.number, _events.c.position)
)
UNFINISHED_OF = _UNFINISHED.where(_unfinished.c.physical == bindparam("physical"))
_BEHIND = (
    select(_revisions, _environments.c.followed)
    .select_from(_environments)
    .join(
        _revisions,
        and_(_revisions.c.environment == _environments.c.environment, _revisions.c.number > _environments.c.followed),
    )
    .where(text(tables.NOT_FOLLOWED))
    .order_by(_environments.c.environment, _revisions.c.number)
)
_NEWEST_REVISIONS = (
    select(_revisions, _environments.c.followed)
    .select_from(_environments)
    .join(
        _revisions,
        and_(_revisions.c.environment == _environments.c.environment, _revisions.c.number == _environments.c.newest),
    )
    .order_by(_environments.c.environment)
)
_SERIES = (
    select(_revisions, _environments.c.followed)
    .join(_environments, _environments.c.environment == _revisions.c.environment)
    .where(
        _revisions.c.environment == bindparam("environment"),
        _revisions.c.number >= bindparam("first", type_=Integer),
    )
    .order_by(_revisions.c.number)
)
_FOLLOWED = select(_environments.c.followed).where(_environments.c.environment == bindparam("environment"))
_NEWEST_AT = select(func.max(_revisions.c.number)).where(
    _revisions.c.environment == bindparam("environment"), _revisions.c.created_at <= bindparam("moment")
)
_REWRITES = (
    select(_rewrites)
    .where(_rewrites.c.physical == bindparam("physical"), _rewrites.c.sequence > bindparam("after"))
    .order_by(_rewrites.c.sequence)
)
_RUNS = (
    select(_runs, _ends.c.status, _ends.c.finished_at)
    .outerjoin(_ends, _ends.c.run_id == _runs.c.run_id)
    .order_by(_runs.c.position.desc())
    .limit(bindparam("limit", type_=Integer))
)
_RUN = _RUNS.where(_runs.c.run_id == bindparam("run_id"))


class Statements:
    """Statements over a list of names; how a database unfolds the list (`listed`) is its own."""

    def __init__(self, listed: TableValuedAlias) -> None:
        self._listed = listed
        self._name = listed.c.value

    @cached_property
    def newest_revisions(self) -> Select[Any]:
        """The newest revision of the listed environments."""
        return _NEWEST_REVISIONS.join(self._listed, self._name == _environments.c.environment)

    @cached_property
    def checkpoints(self) -> Select[Any]:
        """Finalized revisions of the listed environments, newest first."""
        return (
            select(_revisions, _environments.c.followed)
            .select_from(self._listed)
            .join(_environments, _environments.c.environment == self._name)
            .join(_revisions, _revisions.c.environment == _environments.c.environment)
            .where(text(tables.IS_CHECKPOINT))
            .order_by(_revisions.c.environment, _revisions.c.number.desc())
        )

    @cached_property
    def facts(self) -> Select[Any]:
        """The listed physical names with their newest work and the number of their head."""
        physical = _versions.c.physical
        return (
            select(_versions, _work.c.mark, _work.c.covered, _work.c.reopened, _work.c.built_at, _work.c.reads)
            .add_columns(_work.c.restated_at)
            .add_columns(_latest(_heads, "sequence", physical).label("head_sequence"))
            .add_columns(_latest(_rewrites, "sequence", physical).label("rewritten_at"))
            .add_columns(_audited.c.outcomes)
            .select_from(self._listed)
            .join(_versions, physical == self._name)
            .outerjoin(_work, and_(_work.c.physical == physical, _work.c.mark == _latest(_work, "mark", physical)))
            .outerjoin(
                _audited,
                and_(_audited.c.physical == physical, _audited.c.change == _latest(_audited, "change", physical)),
            )
        )

    @cached_property
    def names_of_versions(self) -> Select[Any]:
        """Every physical name that the listed version ids ever had."""
        return (
            select(_versions.c.physical, _versions.c.node, _versions.c.version)
            .select_from(self._listed)
            .join(_versions, _versions.c.version == self._name)
        )

    @cached_property
    def identities(self) -> Select[Any]:
        """What the listed identities stand for."""
        return (
            select(_identities)
            .select_from(self._listed)
            .join(_identities, _identities.c.identity == self._name)
            .order_by(_identities.c.stands_for)
        )

    @cached_property
    def definitions(self) -> Select[Any]:
        """The listed definitions."""
        return (
            select(_definitions)
            .select_from(self._listed)
            .join(_definitions, _definitions.c.definition_id == self._name)
        )

    @cached_property
    def heads(self) -> Select[Any]:
        """The heads of the listed physical names, with their shapes."""
        is_latest = and_(_heads.c.physical == self._name, _heads.c.sequence == _latest(_heads, "sequence", self._name))
        return (
            select(_heads, _shapes.c.shape)
            .select_from(self._listed)
            .join(_heads, is_latest)
            .join(_shapes, _shapes.c.shape_id == _heads.c.shape_id)
        )

    @cached_property
    def manifests(self) -> Select[Any]:
        """Every partition of the listed physical names with its newest folder, null when it is gone.

        The keys are found one after the other, each by one step into the index: to group them would read all history.
        """
        first = select(func.min(_manifest.c.partition)).where(_manifest.c.physical == self._name).scalar_subquery()
        keys = select(self._name.label("physical"), first.label("partition")).cte("keys", recursive=True)
        following = (
            select(func.min(_manifest.c.partition))
            .where(_manifest.c.physical == keys.c.physical, _manifest.c.partition > keys.c.partition)
            .scalar_subquery()
        )
        keys = keys.union_all(select(keys.c.physical, following).where(keys.c.partition.is_not(null())))
        folder = (
            select(_manifest.c.folder)
            .where(_manifest.c.physical == keys.c.physical, _manifest.c.partition == keys.c.partition)
            .order_by(_manifest.c.sequence.desc())
            .limit(1)
            .scalar_subquery()
        )
        return select(keys.c.physical, keys.c.partition, folder.label("folder")).where(keys.c.partition.is_not(null()))

    @cached_property
    def batches(self) -> Select[Any]:
        """The batches of the listed runs in the order they finished."""
        return (
            select(_batches)
            .select_from(self._listed)
            .join(_batches, _batches.c.run_id == self._name)
            .order_by(_batches.c.run_id, _batches.c.finished_at, _batches.c.position)
        )

    @cached_property
    def audits(self) -> Select[Any]:
        """How audits came out in the listed runs, in the order they were recorded."""
        return (
            select(_audits)
            .select_from(self._listed)
            .join(_audits, _audits.c.run_id == self._name)
            .order_by(_audits.c.run_id, _audits.c.position)
        )


class Reader:
    """One snapshot of the state."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self._connection = connection
        self._statements = statements

    def _rows(self, statement: Select[Any], names: Iterable[str]) -> Sequence[Row[Any]]:
        listed = json.dumps(list(names))
        return [] if listed == "[]" else self._connection.execute(statement, {"listed": listed}).all()

    def unsettled(self, now: Instant) -> Unsettled:
        """What the start check looks for; in a healthy store one statement."""
        parameters = {"now": now.micros}
        is_any = self._connection.execute(IS_UNSETTLED, parameters).one()
        if not any(is_any):
            return Unsettled()
        return Unsettled(
            leases=tuple(to_lease(row) for row in self._connection.execute(_UNSETTLED_LEASES, parameters)),
            attempts=_attempts_in(self._connection.execute(_UNFINISHED)),
            revisions=tuple(to_revision(row) for row in self._connection.execute(_BEHIND)),
        )

    def unfinished(self, physical: str) -> tuple[Attempt, ...]:
        """The version's attempts that have not ended."""
        return _attempts_in(self._connection.execute(UNFINISHED_OF, {"physical": physical}))

    def lost(self, resource: str) -> tuple[Lease, ...]:
        """The resource's lost leases."""
        return tuple(to_lease(row) for row in self._connection.execute(LOST_LEASES, {"resource": resource}))

    def load(self, request: LoadRequest) -> Loaded:
        """Everything asked for."""
        revisions = self._revisions(request)
        pointers = [pointer for revision in revisions.values() for pointer in revision.pointers.values()]
        names = dict.fromkeys(self._names_of(request))
        if request.facts_of_pointers:
            names.update(dict.fromkeys(pointer.physical for pointer in pointers if pointer.physical))
        definitions = dict.fromkeys(request.definitions)
        if request.definitions_of_pointers:
            definitions.update(dict.fromkeys(pointer.definition_id for pointer in pointers))
        checkpoints: dict[str, list[Revision]] = {name: [] for name in request.checkpoints_of}
        for row in self._rows(self._statements.checkpoints, checkpoints):
            checkpoints[row.environment].append(to_revision(row))
        return Loaded(
            revisions=MappingProxyType(revisions),
            facts=self._facts(names),
            equals=self._equals(request),
            definitions=self._definitions(definitions),
            heads=self._heads(request.heads),
            manifests=self._manifests(request.manifests),
            rewrites=self._rewrites(request.rewrites),
            checkpoints=MappingProxyType({name: tuple(found) for name, found in checkpoints.items()}),
            series=MappingProxyType({asked.environment: self._series(asked) for asked in request.revisions_since}),
        )

    def _revisions(self, request: LoadRequest) -> dict[str, Revision]:
        revisions = {name: Revision(environment=name) for name in request.environments}
        if request.all_environments:
            rows = self._connection.execute(_NEWEST_REVISIONS).all()
        else:
            rows = self._rows(self._statements.newest_revisions, revisions)
        revisions.update((row.environment, to_revision(row)) for row in rows)
        return revisions

    def _series(self, asked: RevisionsSince) -> tuple[Revision, ...]:
        parameters: dict[str, Any] = {"environment": asked.environment}
        first = self._connection.execute(_FOLLOWED, parameters).scalar() or 0
        if asked.moment is not None:
            at_moment = self._connection.execute(_NEWEST_AT, {**parameters, "moment": asked.moment.micros}).scalar()
            first = min(first, at_moment or 0)
        return tuple(to_revision(row) for row in self._connection.execute(_SERIES, {**parameters, "first": first}))

    def _names_of(self, request: LoadRequest) -> list[PhysicalName]:
        wanted = set(request.versions)
        rows = self._rows(self._statements.names_of_versions, sorted({version for _, version in wanted}))
        return [row.physical for row in rows if (row.node, row.version) in wanted]

    def _equals(self, request: LoadRequest) -> Equals:
        wanted = set(request.identities)
        found: dict[tuple[NodeName, str], list[str]] = defaultdict(list)
        for row in self._rows(self._statements.identities, sorted({identity for _, identity in wanted})):
            if (row.node, row.identity) in wanted:
                found[row.node, row.identity].append(row.stands_for)
        return MappingProxyType({key: tuple(names) for key, names in found.items()})

    def _facts(self, names: Iterable[PhysicalName]) -> Mapping[PhysicalName, VersionFacts]:
        return MappingProxyType({row.physical: to_facts(row) for row in self._rows(self._statements.facts, names)})

    def _definitions(self, ids: Iterable[str]) -> Mapping[str, Model]:
        texts = {row.definition_id: row.model for row in self._rows(self._statements.definitions, ids)}
        return LazyMapping(texts, model_document.read)

    def _heads(self, names: Iterable[PhysicalName]) -> Mapping[PhysicalName, Head]:
        return MappingProxyType({row.physical: to_head(row) for row in self._rows(self._statements.heads, names)})

    def _manifests(self, names: Iterable[PhysicalName]) -> Mapping[PhysicalName, Mapping[PartitionKey, str]]:
        found: dict[PhysicalName, dict[PartitionKey, str]] = {name: {} for name in self._heads(names)}
        for row in self._rows(self._statements.manifests, found):
            if row.folder is not None:
                found[row.physical][read_partition(row.partition)] = row.folder
        return MappingProxyType({name: MappingProxyType(folders) for name, folders in found.items()})

    def _rewrites(self, asked: Iterable[Read]) -> Mapping[PhysicalName, tuple[Rewrite, ...]]:
        found = {
            read.physical: tuple(
                to_rewrite(row)
                for row in self._connection.execute(_REWRITES, {"physical": read.physical, "after": read.sequence})
            )
            for read in asked
        }
        return MappingProxyType({physical: rewrites for physical, rewrites in found.items() if rewrites})

    def history(self, run_id: str | None, limit: int) -> tuple[HistoryEntry, ...]:
        """Runs, newest first."""
        parameters: dict[str, Any] = {"limit": limit}
        if run_id is not None:
            parameters["run_id"] = run_id
        runs = list(self._connection.execute(_RUNS if run_id is None else _RUN, parameters))
        batches: dict[str, list[BatchRecorded]] = defaultdict(list)
        for row in self._rows(self._statements.batches, [run.run_id for run in runs]):
            batches[row.run_id].append(to_batch(row))
        audits: dict[str, list[AuditsRecorded]] = defaultdict(list)
        asked = self._rows(self._statements.audits, [run.run_id for run in runs])
        for _, together in groupby(asked, key=lambda row: (row.run_id, row.number, row.physical)):
            recorded = to_audits(list(together))
            audits[recorded.run_id].append(recorded)
        return tuple(to_entry(run, batches[run.run_id], audits[run.run_id]) for run in runs)


def _attempts_in(rows: Iterable[Row[Any]]) -> tuple[Attempt, ...]:
    by_number = groupby(rows, key=lambda row: row.number)
    found = ((events[0].intent, events) for events in (list(group) for _, group in by_number))
    return tuple(to_attempt(intent, events) for intent, events in found)
