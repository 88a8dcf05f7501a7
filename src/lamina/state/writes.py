"""What a commit reads and writes, inside its transaction."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, delete, func, insert, select, update
from typing_extensions import assert_never

from lamina.app.ports.facts import (
    AttemptAborted,
    AttemptDecided,
    AttemptDone,
    AttemptOpened,
    AttemptRetracting,
    AttemptUnchanged,
    AuditsRecorded,
    BatchRecorded,
    CoverageRemoved,
    DefinitionRecorded,
    IdentityStands,
    LeaseClosed,
    LeaseReleased,
    OutcomesTaken,
    RevisionFollowed,
    RevisionWritten,
    RunFinished,
    RunStarted,
    VersionRecorded,
)
from lamina.identity.version import Same
from lamina.state import tables
from lamina.state.codec import (
    EventDetail,
    attempt_document,
    beneath_document,
    columns_document,
    contents_document,
    error_document,
    event_document,
    intervals_document,
    model_document,
    outcomes_document,
    owner_document,
    pointers_document,
    reads_document,
    shape_document,
    write_partition,
)
from lamina.state.leases import close_lost, require_held
from lamina.state.outcomes import NOTHING_ASKED, forgotten, remembered
from lamina.state.requirements import refuse_followed, refuse_head, refuse_revision, refuse_second_attempt
from lamina.state.rows import to_attempt, to_lease, to_work
from lamina.state.shapes import shape_id, shape_of
from lamina.state.work import Work, require_step, touched, with_done, with_opened, without

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sqlalchemy import Column, Connection, TableValuedAlias

    from lamina.app.ports.facts import Fact
    from lamina.app.ports.loaded import Lease
    from lamina.app.ports.published import Attempt, AttemptStatus, Head, TableShape
    from lamina.environments.pointers import Revision
    from lamina.identity.naming import PhysicalName
    from lamina.state.outcomes import Outcomes
    from lamina.timeline.interval import Intervals

_leases, _attempts, _events = tables.leases, tables.attempts, tables.attempt_events
_unfinished, _work, _heads = tables.unfinished, tables.work, tables.heads
_environments, _ends, _audited = tables.environments, tables.run_ends, tables.audited

# Statements are built once; only their parameters differ.
_NEWEST_LEASE = (
    select(_leases).where(_leases.c.resource == bindparam("resource")).order_by(_leases.c.token.desc()).limit(1)
)
_LEASE = select(_leases).where(_leases.c.resource == bindparam("resource"), _leases.c.token == bindparam("token"))
_SET_LEASE = (
    update(_leases)
    .where(_leases.c.resource == bindparam("on_resource"), _leases.c.token == bindparam("on_token"))
    .values(status=bindparam("status"), expires_at=bindparam("expires_at"))
)
_LATEST_EVENT = (
    select(_events.c.position, _events.c.status)
    .where(_events.c.number == bindparam("number"))
    .order_by(_events.c.position.desc())
    .limit(1)
)
_SHAPE = select(tables.shapes.c.shape_id).where(tables.shapes.c.shape_id == bindparam("shape_id"))
_INTENT = select(_attempts.c.detail).where(_attempts.c.number == bindparam("number"))
_PENDING = (
    select(_unfinished.c.number)
    .where(_unfinished.c.physical == bindparam("physical"), _unfinished.c.status != "open")
    .limit(1)
)
_SET_UNFINISHED = (
    update(_unfinished).where(_unfinished.c.number == bindparam("of")).values(status=bindparam("to_status"))
)
_END_UNFINISHED = delete(_unfinished).where(_unfinished.c.number == bindparam("of"))
_LATEST_WORK = select(_work).where(_work.c.physical == bindparam("physical")).order_by(_work.c.mark.desc()).limit(1)
_MARK = select(func.max(_work.c.mark)).where(_work.c.physical == bindparam("physical"))
_HEAD_SEQUENCE = select(func.max(_heads.c.sequence)).where(_heads.c.physical == bindparam("physical"))
_ENVIRONMENT = select(_environments).where(_environments.c.environment == bindparam("environment"))
_SET_NEWEST = (
    update(_environments).where(_environments.c.environment == bindparam("of")).values(newest=bindparam("number"))
)
_SET_FOLLOWED = (
    update(_environments)
    .where(_environments.c.environment == bindparam("of"), _environments.c.followed < bindparam("number"))
    .values(followed=bindparam("number"))
)
_LATEST_AUDITED = (
    select(_audited).where(_audited.c.physical == bindparam("physical")).order_by(_audited.c.change.desc()).limit(1)
)
_RUN = select(tables.runs.c.run_id).where(tables.runs.c.run_id == bindparam("run_id"))
_ADD = {table: insert(table) for table in tables.metadata.sorted_tables}
_FORGET_END = delete(_ends).where(_ends.c.run_id == bindparam("of"))


class Writer:
    """One transaction on the state: answers what requirements ask and writes facts."""

    def __init__(self, connection: Connection, listed: TableValuedAlias) -> None:
        self._connection = connection
        self._listed = listed

    # --- what requirements ask ----------------------------------------------------------------------------------------
    def newest_lease(self, resource: str) -> Lease | None:
        """The lease with the highest token."""
        row = self._connection.execute(_NEWEST_LEASE, {"resource": resource}).first()
        return to_lease(row) if row else None

    def attempt_status(self, number: int) -> AttemptStatus | None:
        """The latest status of an attempt."""
        row = self._connection.execute(_LATEST_EVENT, {"number": number}).first()
        return row.status if row else None

    def pending_attempt(self, physical: PhysicalName) -> int | None:
        """An attempt that is decided or retracting."""
        return self._connection.execute(_PENDING, {"physical": physical}).scalar()

    def head_sequence(self, physical: PhysicalName) -> int:
        """The head's number."""
        return self._connection.execute(_HEAD_SEQUENCE, {"physical": physical}).scalar() or 0

    def mark(self, physical: PhysicalName) -> int:
        """The number of changes of the version's work."""
        return self._connection.execute(_MARK, {"physical": physical}).scalar() or 0

    def newest_revision(self, environment: str) -> int:
        """The environment's revision."""
        row = self._connection.execute(_ENVIRONMENT, {"environment": environment}).first()
        return row.newest if row else 0

    # --- leases -------------------------------------------------------------------------------------------------------
    def add_lease(self, lease: Lease) -> None:
        """A lease that was just taken."""
        self._connection.execute(
            _ADD[_leases],
            {
                "resource": lease.resource,
                "token": lease.token,
                "owner": owner_document.write(lease.owner),
                "status": lease.status,
                "expires_at": lease.expires_at.micros,
            },
        )

    def set_lease(self, lease: Lease) -> None:
        """A lease with another status or expiry."""
        self._connection.execute(
            _SET_LEASE,
            {
                "on_resource": lease.resource,
                "on_token": lease.token,
                "status": lease.status,
                "expires_at": lease.expires_at.micros,
            },
        )

    # --- facts --------------------------------------------------------------------------------------------------------
    def apply_all(self, facts: Sequence[Fact]) -> None:
        """Write the facts in their order, but definitions and versions first and at once: they come in thousands."""
        self._record_definitions([fact for fact in facts if isinstance(fact, DefinitionRecorded)])
        self._record_versions([fact for fact in facts if isinstance(fact, VersionRecorded)])
        self._record_identities([fact.same for fact in facts if isinstance(fact, IdentityStands)])
        for fact in facts:
            self._apply(fact)

    def _apply(self, fact: Fact) -> None:
        match fact:
            case DefinitionRecorded() | VersionRecorded() | IdentityStands():
                pass
            case AttemptOpened():
                self._open(fact.attempt, fact.run_id)
            case AttemptDecided():
                self._decide(fact)
            case AttemptDone():
                if fact.landed is not None:
                    self._move_head(fact.landed, fact.rewritten, is_asked=fact.is_asked)
                self._finish(fact.number, fact.physical)
            case AttemptRetracting():
                self._move(fact.number, "retracting", EventDetail())
                self._connection.execute(_SET_UNFINISHED, {"of": fact.number, "to_status": "retracting"})
            case AttemptUnchanged():
                self._finish(fact.number, fact.physical, before="open")
            case AttemptAborted():
                self._abort(fact)
            case CoverageRemoved():
                before = self._latest_work(fact.physical)
                self._add_work(fact.physical, before, without(before, fact.intervals, fact.followed, fact.restated_at))
            case LeaseReleased():
                lease = require_held(self.newest_lease(fact.resource), fact.resource, fact.token)
                self.set_lease(replace(lease, status="released"))
            case LeaseClosed():
                row = self._connection.execute(_LEASE, {"resource": fact.resource, "token": fact.token}).first()
                self.set_lease(close_lost(to_lease(row) if row else None, fact.resource, fact.token))
            case RevisionWritten():
                self._write_revision(fact.revision)
            case RevisionFollowed():
                self._follow(fact.environment, fact.number)
            case RunStarted():
                if self._connection.execute(_RUN, {"run_id": fact.run_id}).first() is None:
                    self._connection.execute(_ADD[tables.runs], _run_row(fact))
            case RunFinished():
                self._connection.execute(_FORGET_END, {"of": fact.run_id})
                self._connection.execute(
                    _ADD[_ends],
                    {"run_id": fact.run_id, "status": fact.status, "finished_at": fact.finished_at.micros},
                )
            case BatchRecorded():
                self._connection.execute(_ADD[tables.batches], _batch_row(fact))
            case AuditsRecorded():
                self._record_audits(fact)
            case OutcomesTaken():
                self._change_outcomes(fact.physical, lambda _: fact.outcomes)
            case _:
                assert_never(fact)

    def _record_definitions(self, facts: Sequence[DefinitionRecorded]) -> None:
        table = tables.definitions
        new = {fact.definition_id: fact.model for fact in reversed(facts)}
        for known in self._known(table.c.definition_id, new):
            del new[known]
        if new:
            rows = [{"definition_id": id_, "model": model_document.write(model)} for id_, model in new.items()]
            self._connection.execute(_ADD[table], rows)

    def _record_versions(self, facts: Sequence[VersionRecorded]) -> None:
        table = tables.versions
        new: dict[str, VersionRecorded] = {fact.physical: fact for fact in reversed(facts)}
        for known in self._known(table.c.physical, new):
            del new[known]
        if new:
            self._connection.execute(_ADD[table], [_version_row(fact) for fact in new.values()])

    def _record_identities(self, found: Sequence[Same]) -> None:
        table = tables.identities
        wanted = json.dumps(sorted({each.identity for each in found}))
        if not found:
            return
        statement = select(table).where(table.c.identity.in_(select(self._listed.c.value)))
        rows = self._connection.execute(statement, {"listed": wanted})
        known = {Same(node=row.node, identity=row.identity, stands_for=row.stands_for) for row in rows}
        if new := [asdict(each) for each in dict.fromkeys(found) if each not in known]:
            self._connection.execute(_ADD[table], new)

    def _known(self, column: Column[Any], names: Iterable[str]) -> Sequence[str]:
        """Which of the names the column holds already."""
        wanted = json.dumps(list(names))
        if wanted == "[]":
            return ()
        statement = select(column).where(column.in_(select(self._listed.c.value)))
        return self._connection.execute(statement, {"listed": wanted}).scalars().all()

    # --- attempts -----------------------------------------------------------------------------------------------------
    def _open(self, attempt: Attempt, run_id: str) -> None:
        if self.attempt_status(attempt.number) is not None:
            raise refuse_second_attempt(attempt.number)
        self._connection.execute(
            _ADD[_attempts],
            {
                "number": attempt.number,
                "physical": attempt.physical,
                "token": attempt.token,
                "run_id": run_id,
                "detail": attempt_document.write(replace(attempt, status="open", publish=None, rows=None)),
            },
        )
        self._add_event(attempt.number, 1, "open", EventDetail())
        self._connection.execute(
            _ADD[_unfinished], {"number": attempt.number, "physical": attempt.physical, "status": "open"}
        )
        if attempt.interval is not None:
            before = self._latest_work(attempt.physical)
            after = with_opened(before, attempt, attempt.interval)
            self._add_work(attempt.physical, before, after, attempt.number)

    def _decide(self, fact: AttemptDecided) -> None:
        self._move(fact.number, "decided", EventDetail(publish=fact.publish, rows=fact.rows))
        self._forget(fact.physical, fact.number)
        self._connection.execute(_SET_UNFINISHED, {"of": fact.number, "to_status": "decided"})
        if fact.head is not None:
            self._move_head(fact.head, fact.rewritten, is_asked=fact.is_asked)
            self._change_manifest(fact, fact.head.sequence)
        before = self._latest_work(fact.physical)
        self._add_work(fact.physical, before, touched(before), fact.number)

    def _move_head(self, head: Head, rewritten: Intervals, *, is_asked: bool) -> None:
        found = self.head_sequence(head.physical)
        if head.sequence != found + 1:
            raise refuse_head(head.physical, found, head.sequence)
        self._connection.execute(
            _ADD[_heads],
            {
                "physical": head.physical,
                "sequence": head.sequence,
                "generation": head.generation,
                "attempt": head.attempt,
                "shape_id": self._kept(head.shape),
                "view_sql": head.view_sql,
                "contents": contents_document.write(head.contents),
                "snapshot": head.snapshot,
                "beneath": None if head.beneath is None else beneath_document.write(head.beneath),
            },
        )
        if not rewritten.is_empty:
            self._connection.execute(
                _ADD[tables.rewrites],
                {
                    "physical": head.physical,
                    "sequence": head.sequence,
                    "intervals": intervals_document.write(rewritten),
                    "is_asked": int(is_asked),
                },
            )

    def _change_manifest(self, fact: AttemptDecided, sequence: int) -> None:
        folders: dict[Any, str | None] = {**fact.folders_set, **dict.fromkeys(fact.folders_removed)}
        if folders:
            rows = [
                {"physical": fact.physical, "partition": write_partition(key), "sequence": sequence, "folder": folder}
                for key, folder in folders.items()
            ]
            self._connection.execute(_ADD[tables.manifest], rows)

    def _finish(self, number: int, physical: PhysicalName, before: AttemptStatus | None = None) -> None:
        self._move(number, "done", EventDetail(), before)
        self._connection.execute(_END_UNFINISHED, {"of": number})
        work = self._latest_work(physical)
        self._add_work(physical, work, with_done(work, self._attempt(number)), number)

    def _abort(self, fact: AttemptAborted) -> None:
        if self.attempt_status(fact.number) == "retracting":
            self._forget(fact.physical, fact.number)
        self._move(fact.number, "aborted", EventDetail(reason=fact.reason))
        self._connection.execute(_END_UNFINISHED, {"of": fact.number})
        if self._attempt(fact.number).interval is not None:
            before = self._latest_work(fact.physical)
            self._add_work(fact.physical, before, touched(before), fact.number)

    def _attempt(self, number: int) -> Attempt:
        """The attempt as it was opened."""
        return to_attempt(self._connection.execute(_INTENT, {"number": number}).scalar_one(), ())

    def _move(
        self, number: int, status: AttemptStatus, detail: EventDetail, before: AttemptStatus | None = None
    ) -> None:
        latest = self._connection.execute(_LATEST_EVENT, {"number": number}).first()
        require_step(number, latest.status if latest else None, status, before)
        self._add_event(number, latest.position + 1 if latest else 1, status, detail)

    def _add_event(self, number: int, position: int, status: AttemptStatus, detail: EventDetail) -> None:
        self._connection.execute(
            _ADD[_events],
            {
                "number": number,
                "position": position,
                "status": status,
                "detail": event_document.write(detail),
                "shape_id": self._kept(shape_of(detail.publish)) if detail.publish else None,
            },
        )

    def _kept(self, shape: TableShape) -> str:
        """The name of a shape, which is in the store from now on."""
        text = shape_document.write(shape)
        id_ = shape_id(text)
        if self._connection.execute(_SHAPE, {"shape_id": id_}).first() is None:
            self._connection.execute(_ADD[tables.shapes], {"shape_id": id_, "shape": text})
        return id_

    # --- work ---------------------------------------------------------------------------------------------------------
    def _latest_work(self, physical: PhysicalName) -> Work:
        return to_work(self._connection.execute(_LATEST_WORK, {"physical": physical}).first())

    def _add_work(self, physical: PhysicalName, before: Work, after: Work, attempt: int | None = None) -> None:
        self._connection.execute(
            _ADD[_work],
            {
                "physical": physical,
                "mark": after.mark,
                "attempt": attempt,
                "added": _written(after.covered.minus(before.covered)),
                "removed": _written(before.covered.minus(after.covered)),
                "covered": intervals_document.write(after.covered),
                "reopened": intervals_document.write(after.reopened),
                "built_at": after.built_at.micros if after.built_at else None,
                "restated_at": after.restated_at.micros if after.restated_at else None,
                "reads": reads_document.write(after.reads),
            },
        )

    # --- audits -------------------------------------------------------------------------------------------------------
    def _record_audits(self, fact: AuditsRecorded) -> None:
        if fact.results:
            self._connection.execute(_ADD[tables.audits], _audit_rows(fact))
        if fact.is_shown:
            self._change_outcomes(fact.physical, lambda before: remembered(before, fact.interval, fact.results))

    def _forget(self, physical: PhysicalName, number: int) -> None:
        """Nothing is known any more about the rows that an attempt replaces."""
        self._change_outcomes(physical, lambda before: before and forgotten(before, self._attempt(number).interval))

    def _change_outcomes(self, physical: PhysicalName, change: Callable[[Outcomes], Outcomes]) -> None:
        row = self._connection.execute(_LATEST_AUDITED, {"physical": physical}).first()
        before = outcomes_document.read(row.outcomes) if row else NOTHING_ASKED
        after = change(before)
        if after != before:
            self._connection.execute(
                _ADD[_audited],
                {
                    "physical": physical,
                    "change": row.change + 1 if row else 1,
                    "outcomes": outcomes_document.write(after),
                },
            )

    # --- environments -------------------------------------------------------------------------------------------------
    def _write_revision(self, revision: Revision) -> None:
        environment, number = revision.environment, revision.number
        found = self.newest_revision(environment)
        if number != found + 1:
            raise refuse_revision(environment, found, number)
        self._connection.execute(
            _ADD[tables.revisions],
            {
                "environment": environment,
                "number": number,
                "status": revision.status,
                "created_at": revision.created_at.micros if revision.created_at else None,
                "pointers": pointers_document.write(revision.pointers),
            },
        )
        if number == 1:
            self._connection.execute(_ADD[_environments], {"environment": environment, "newest": number, "followed": 0})
        else:
            self._connection.execute(_SET_NEWEST, {"of": environment, "number": number})
        if revision.is_followed:
            self._follow(environment, number)

    def _follow(self, environment: str, number: int) -> None:
        newest = self.newest_revision(environment)
        if not 1 <= number <= newest:
            raise refuse_followed(environment, newest, number)
        self._connection.execute(_SET_FOLLOWED, {"of": environment, "number": number})


def _written(intervals: Intervals) -> str | None:
    return None if intervals.is_empty else intervals_document.write(intervals)


def _version_row(fact: VersionRecorded) -> dict[str, Any]:
    return {
        "physical": fact.physical,
        "node": fact.node,
        "version": fact.version,
        "incarnation": fact.incarnation,
        "definition_id": fact.definition_id,
        "kind": fact.kind,
        "query": fact.fingerprint.query,
        "config": fact.fingerprint.config,
        "functions": fact.fingerprint.functions,
        "metadata": fact.fingerprint.metadata,
        "row_set": fact.fingerprint.row_set,
        "whole": fact.fingerprint.whole,
        "columns": columns_document.write(fact.fingerprint.columns),
        "recorded_at": fact.recorded_at.micros,
    }


def _run_row(fact: RunStarted) -> dict[str, Any]:
    return {
        "run_id": fact.run_id,
        "command": fact.command,
        "environment": fact.environment,
        "started_at": fact.started_at.micros,
        "execution_time": fact.execution_time.micros,
    }


def _batch_row(fact: BatchRecorded) -> dict[str, Any]:
    return {
        "run_id": fact.run_id,
        "node": fact.node,
        "physical": fact.physical,
        "number": fact.number,
        "interval_start": fact.interval.start.micros if fact.interval else None,
        "interval_end": fact.interval.end.micros if fact.interval else None,
        "status": fact.status,
        "rows": fact.rows,
        "seconds": fact.seconds,
        "statements": fact.statements,
        "finished_at": fact.finished_at.micros,
        "error": None if fact.error is None else error_document.write(fact.error),
    }


def _audit_rows(fact: AuditsRecorded) -> list[dict[str, Any]]:
    return [
        {
            "run_id": fact.run_id,
            "node": fact.node,
            "physical": fact.physical,
            "number": fact.number,
            "interval_start": fact.interval.start.micros if fact.interval else None,
            "interval_end": fact.interval.end.micros if fact.interval else None,
            "is_shown": int(fact.is_shown),
            "audit_key": result.key,
            "name": result.name,
            "call": result.call,
            "status": result.status,
            "is_blocking": int(result.is_blocking),
            "failing_rows": result.failing_rows,
            "kept_at": result.kept_at,
            "recorded_at": fact.recorded_at.micros,
        }
        for result in fact.results
    ]
