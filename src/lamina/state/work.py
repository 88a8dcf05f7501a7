"""What counts as done for a version, and how attempts change it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lamina.errors import CommitRefused
from lamina.timeline.interval import EMPTY, Intervals

if TYPE_CHECKING:
    from lamina.app.records import Attempt, AttemptStatus
    from lamina.planning.inputs import Read
    from lamina.timeline.interval import Instant

_BEFORE: dict[AttemptStatus, AttemptStatus] = {"decided": "open", "done": "decided", "aborted": "open"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The recorded work of a version; `mark` counts its changes."""

    mark: int = 0
    covered: Intervals = EMPTY
    built_at: Instant | None = None
    reads: tuple[Read, ...] = ()


NOTHING_DONE = Work()


def require_step(number: int, found: AttemptStatus | None, wanted: AttemptStatus) -> None:
    """Refuse a change of status that no attempt goes through."""
    if found != _BEFORE[wanted]:
        now = "does not exist" if found is None else f"is `{found}`"
        raise CommitRefused(f"attempt {number} {now} and cannot become `{wanted}`, which follows `{_BEFORE[wanted]}`")


def touched(work: Work) -> Work:
    """The same work, marked as changed."""
    return replace(work, mark=work.mark + 1)


def without(work: Work, removed: Intervals) -> Work:
    """The work after intervals ceased to count."""
    return replace(touched(work), covered=work.covered.minus(removed))


def with_done(work: Work, attempt: Attempt) -> Work:
    """The work after an attempt was carried out: its interval is covered, or the whole is built."""
    if attempt.interval is None:
        return replace(touched(work), built_at=attempt.execution_time, reads=attempt.reads)
    return replace(touched(work), covered=work.covered.union(Intervals.of([attempt.interval])))
