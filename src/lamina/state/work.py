"""What counts as done for a version, and how attempts change it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lamina.errors import CommitRefused
from lamina.timeline.interval import EMPTY, Intervals

if TYPE_CHECKING:
    from lamina.app.ports.published import Attempt, AttemptStatus
    from lamina.planning.inputs import Read
    from lamina.timeline.interval import Instant, Interval

_BEFORE: dict[AttemptStatus, tuple[AttemptStatus, ...]] = {
    "decided": ("open",),
    "retracting": ("decided",),
    "done": ("decided", "retracting"),
    "aborted": ("open", "retracting"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The recorded work of a version; `mark` counts its changes."""

    mark: int = 0
    covered: Intervals = EMPTY
    reopened: Intervals = EMPTY
    built_at: Instant | None = None
    restated_at: Instant | None = None
    reads: tuple[Read, ...] = ()


NOTHING_DONE = Work()


def require_step(
    number: int, found: AttemptStatus | None, wanted: AttemptStatus, before: AttemptStatus | None = None
) -> None:
    """Refuse a change of status that no attempt goes through; `before` is what the change starts from, if unusual."""
    expected = (before,) if before else _BEFORE[wanted]
    if found not in expected:
        now = "does not exist" if found is None else f"is `{found}`"
        listed = " or ".join(f"`{status}`" for status in expected)
        raise CommitRefused(f"attempt {number} {now} and cannot become `{wanted}`, which follows {listed}")


def touched(work: Work) -> Work:
    """The same work, marked as changed."""
    return replace(work, mark=work.mark + 1)


def without(
    work: Work, removed: Intervals, followed: tuple[Read, ...] = (), restated_at: Instant | None = None
) -> Work:
    """The work after intervals ceased to count, and rewrites of parents were followed."""
    return replace(
        touched(work),
        covered=work.covered.minus(removed),
        reopened=work.reopened.union(work.covered.intersect(removed)),
        reads=_followed(work.reads, followed),
        restated_at=restated_at or work.restated_at,
    )


def with_opened(work: Work, attempt: Attempt, interval: Interval) -> Work:
    """The work after an attempt set out to compute an interval: it does not count until the attempt is done."""
    opened = without(work, Intervals.of([interval]), (), work.restated_at or attempt.execution_time)
    return replace(opened, reads=_with_first(work, attempt))


def with_done(work: Work, attempt: Attempt) -> Work:
    """The work after an attempt was carried out: its interval is covered, or the whole is built.

    A run over some time beside other recorded time has not read again what those runs read: rewrites are followed from
    where they were.
    """
    if attempt.interval is None:
        is_beside_others = not attempt.seeded.is_empty and not work.covered.is_empty
        return replace(
            touched(work),
            built_at=attempt.execution_time,
            reads=_with_first(work, attempt) if is_beside_others else attempt.reads,
            covered=work.covered.union(attempt.seeded),
            reopened=work.reopened.minus(attempt.seeded),
        )
    interval = Intervals.of([attempt.interval])
    return replace(touched(work), covered=work.covered.union(interval), reopened=work.reopened.minus(interval))


def _with_first(work: Work, attempt: Attempt) -> tuple[Read, ...]:
    """What is followed so far; a parent that is read for the first time is followed from what is read now on."""
    known = {read.physical for read in work.reads}
    new = tuple(read for read in attempt.reads if read.physical not in known and read.physical != attempt.physical)
    return _followed(work.reads, new)


def _followed(before: tuple[Read, ...], now: tuple[Read, ...]) -> tuple[Read, ...]:
    if not now:
        return before
    newest = {read.physical: read for read in before}
    for read in now:
        known = newest.get(read.physical)
        if known is None or known.sequence < read.sequence:
            newest[read.physical] = read
    return tuple(newest.values())
