"""Rows of the state tables as values."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from lamina.app.ports.facts import AuditResult, AuditsRecorded, BatchRecorded
from lamina.app.ports.loaded import HistoryEntry, Lease
from lamina.app.ports.published import Attempt, Head
from lamina.environments.pointers import Revision
from lamina.identity.version import Fingerprint
from lamina.planning.inputs import Rewrite, VersionFacts
from lamina.state.codec import (
    attempt_document,
    beneath_document,
    columns_document,
    contents_document,
    error_document,
    event_document,
    intervals_document,
    outcomes_document,
    owner_document,
    pointers_document,
    reads_document,
    shape_document,
)
from lamina.state.lazy import LazyDocument
from lamina.state.outcomes import NOTHING_ASKED
from lamina.state.shapes import with_shape
from lamina.state.work import NOTHING_DONE, Work
from lamina.timeline.interval import Instant, Interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import Row

    AnyRow: TypeAlias = Row[Any]


def to_instant(micros: int | None) -> Instant | None:
    """The moment, if there is one."""
    return None if micros is None else Instant(micros)


def to_lease(row: AnyRow) -> Lease:
    """A row of `leases`."""
    return Lease(
        resource=row.resource,
        token=row.token,
        owner=owner_document.read(row.owner),
        status=row.status,
        expires_at=Instant(row.expires_at),
    )


# Most versions of a project have read nothing, or cover the same days, and batches of a version have one shape: each
# text is decoded once.
_intervals = lru_cache(maxsize=1024)(intervals_document.read)
_reads = lru_cache(maxsize=1024)(reads_document.read)
_shape = lru_cache(maxsize=1024)(shape_document.read)


def to_attempt(detail: str, events: Iterable[AnyRow]) -> Attempt:
    """The attempt as it was opened, changed by its events in their order; they come with their shapes."""
    attempt = attempt_document.read(detail)
    for event in events:
        brought = event_document.read(event.detail)
        attempt = replace(
            attempt,
            status=event.status,
            publish=with_shape(brought.publish, _shape(event.shape)) if brought.publish else attempt.publish,
            rows=attempt.rows if brought.rows is None else brought.rows,
        )
    return attempt


def to_work(row: AnyRow | None) -> Work:
    """A row of `work`, or its columns in a row of facts; nothing done where there is none."""
    if row is None or row.mark is None:
        return NOTHING_DONE
    return Work(
        mark=row.mark,
        covered=_intervals(row.covered),
        reopened=_intervals(row.reopened),
        built_at=to_instant(row.built_at),
        restated_at=to_instant(row.restated_at),
        reads=_reads(row.reads),
    )


def to_facts(row: AnyRow) -> VersionFacts:
    """A version with its newest work and head."""
    work = to_work(row)
    return VersionFacts(
        physical=row.physical,
        node=row.node,
        version=row.version,
        definition_id=row.definition_id,
        fingerprint=Fingerprint(
            query=row.query,
            config=row.config,
            functions=row.functions,
            metadata=row.metadata,
            row_set=row.row_set,
            whole=row.whole,
            columns=LazyDocument(row.columns, columns_document.read),
        ),
        mark=work.mark,
        head_sequence=row.head_sequence or 0,
        covered=work.covered,
        reopened=work.reopened,
        built_at=work.built_at,
        restated_at=work.restated_at,
        reads=work.reads,
        rewritten_at=row.rewritten_at or 0,
        outcomes=LazyDocument(row.outcomes, outcomes_document.read) if row.outcomes else NOTHING_ASKED,
    )


def to_rewrite(row: AnyRow) -> Rewrite:
    """A row of `rewrites`."""
    return Rewrite(sequence=row.sequence, intervals=_intervals(row.intervals), is_asked=bool(row.is_asked))


def to_head(row: AnyRow) -> Head:
    """A row of `heads` with its shape."""
    return Head(
        physical=row.physical,
        sequence=row.sequence,
        generation=row.generation,
        attempt=row.attempt,
        shape=_shape(row.shape),
        view_sql=row.view_sql,
        contents=contents_document.read(row.contents),
        snapshot=row.snapshot,
        beneath=None if row.beneath is None else beneath_document.read(row.beneath),
    )


def to_revision(row: AnyRow) -> Revision:
    """A row of `revisions` with its environment's `followed`."""
    return Revision(
        environment=row.environment,
        number=row.number,
        status=row.status,
        pointers=LazyDocument(row.pointers, pointers_document.read),
        created_at=to_instant(row.created_at),
        is_followed=row.number <= row.followed,
    )


def _interval(row: AnyRow) -> Interval | None:
    is_timed = row.interval_start is not None
    return Interval(Instant(row.interval_start), Instant(row.interval_end)) if is_timed else None


def to_batch(row: AnyRow) -> BatchRecorded:
    """A row of `batches`."""
    return BatchRecorded(
        run_id=row.run_id,
        node=row.node,
        physical=row.physical,
        number=row.number,
        interval=_interval(row),
        status=row.status,
        rows=row.rows,
        seconds=row.seconds,
        statements=row.statements,
        finished_at=Instant(row.finished_at),
        error=None if row.error is None else error_document.read(row.error),
    )


def to_audits(rows: Sequence[AnyRow]) -> AuditsRecorded:
    """Rows of `audits` that were recorded together."""
    first = rows[0]
    return AuditsRecorded(
        run_id=first.run_id,
        node=first.node,
        physical=first.physical,
        number=first.number,
        interval=_interval(first),
        results=tuple(
            AuditResult(
                name=row.name,
                call=row.call,
                status=row.status,
                is_blocking=bool(row.is_blocking),
                failing_rows=row.failing_rows,
                key=row.audit_key,
                kept_at=row.kept_at,
            )
            for row in rows
        ),
        recorded_at=Instant(first.recorded_at),
        is_shown=bool(first.is_shown),
    )


def to_entry(row: AnyRow, batches: Iterable[BatchRecorded], audits: Iterable[AuditsRecorded]) -> HistoryEntry:
    """A row of `runs` with its end, if it has one."""
    return HistoryEntry(
        run_id=row.run_id,
        command=row.command,
        environment=row.environment,
        status=row.status or "running",
        started_at=Instant(row.started_at),
        finished_at=to_instant(row.finished_at),
        execution_time=Instant(row.execution_time),
        batches=tuple(batches),
        audits=tuple(audits),
    )
