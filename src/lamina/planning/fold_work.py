"""What a model needs whose runs are put into what its table holds: once each, and in order."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lamina.graph.kinds import IncrementalByUniqueKey
from lamina.graph.spans import uses_span
from lamina.planning.draft import Work
from lamina.planning.interval_work import baseline_reach, reached_by_plan, waits_for_baseline
from lamina.planning.missing import asked_range, with_lookback
from lamina.planning.readiness import Readiness, split_by_readiness
from lamina.planning.rewrites import follows, reached_by_recorded, why_not_again
from lamina.planning.steps import Unfollowed
from lamina.planning.whole_work import whole_work
from lamina.timeline.interval import EMPTY, FIRST_INSTANT, Interval, Intervals

if TYPE_CHECKING:
    from lamina.graph.model import Model
    from lamina.planning.draft import Draft
    from lamina.planning.inputs import Flags, VersionFacts
    from lamina.planning.steps import Reason
    from lamina.timeline.interval import Instant


def fold_work(draft: Draft, model: Model, facts: VersionFacts | None) -> Work:
    """The next runs: over the time since the last one where the query asks about time, else one over everything.

    Time that is recorded is gone over again by `lookback`, and by an upsert once more where rows that it read were
    rewritten; time before it is never filled in later. A request builds the whole table anew, unless its history is
    kept: `--force` then leaves the runs that are done alone.
    """
    if not uses_span(draft.inputs.graph.models, model):
        return whole_work(draft, model, facts)
    covered = facts.covered if facts else EMPTY
    if draft.is_shared(model.name):
        return Work(left_to_baseline=_left_to_baseline(draft, model, covered, EMPTY))
    request = _request(draft, model, facts)
    # Nothing counts any more where a rebuild was begun and did not come to its first run: the rows are still the old.
    begins_anew = request is not None or covered.is_empty
    flags = draft.inputs.flags if request is None else replace(draft.inputs.flags, start=None, end=None)
    missing = _missing(draft, model, EMPTY if begins_anew else covered, flags)
    readiness = _first_ready(split_by_readiness(draft.inputs.graph, model, missing, draft.available, draft.inputs.now))
    if begins_anew:
        if request is None and facts and not readiness.waiting.intersect(facts.recorded).is_empty:
            # The rows of before stay until all that they hold can be computed.
            readiness = replace(readiness, ready=EMPTY, waiting=readiness.waiting.union(readiness.ready))
        is_whole = not readiness.ready.is_empty
        return Work(
            is_whole=is_whole,
            begins_anew=is_whole,
            reason=request or draft.version_reason(model.name, "missing_intervals"),
            cause=model.name if request else draft.differences[model.name].cause,
            readiness=readiness,
            redone=covered if request is not None and is_whole else EMPTY,
            left_out=_left_out(draft, model, covered, missing),
            left_to_baseline=_left_to_baseline(draft, model, EMPTY, missing),
            is_asked=request is not None and is_whole,
        )
    work = Work(
        reason=draft.version_reason(model.name, "missing_intervals"),
        cause=draft.differences[model.name].cause,
        readiness=_looking_back(draft, model, covered, readiness),
        left_out=_left_out(draft, model, covered, missing),
        left_to_baseline=_left_to_baseline(draft, model, covered, missing),
    )
    if model.follow_rewrites and model.name not in draft.continuations:
        _mind_rewrites(draft, model, facts, work)
    work.is_whole = not work.readiness.ready.is_empty
    return work


def _mind_rewrites(draft: Draft, model: Model, facts: VersionFacts | None, work: Work) -> None:
    """Have recorded time gone over again that reads what was rewritten, where that is what the kind is for."""
    inputs, covered = draft.inputs, facts.covered if facts else EMPTY
    reached = reached_by_recorded(inputs.graph, model, facts, inputs.physical, inputs.rewrites)
    left = covered.minus(work.readiness.ready).minus(reached.intervals)
    possible = reached_by_plan(draft, model, left)
    found = possible if reached.intervals.is_empty else reached
    if found.intervals.is_empty:
        return
    if not follows(inputs.graph.models, model):
        work.unfollowed = Unfollowed(
            intervals=found.intervals,
            cause=found.cause,
            why=why_not_again(model) or "",
            is_recorded=found is reached,
            followed=found.followed,
        )
        return
    if work.readiness.ready.union(work.readiness.waiting).is_empty:
        work.reason, work.cause = "upstream_rewritten", found.cause
    again = split_by_readiness(inputs.graph, model, reached.intervals, draft.available, inputs.now)
    work.readiness = Readiness(
        ready=work.readiness.ready.union(again.ready),
        waiting=work.readiness.waiting.union(again.waiting),
        waiting_for=(*work.readiness.waiting_for, *again.waiting_for),
    )
    work.may_follow = split_by_readiness(inputs.graph, model, possible.intervals, draft.available, inputs.now).ready
    work.again = again.ready.union(work.may_follow)
    work.is_asked = reached.is_asked or possible.is_asked


def _request(draft: Draft, model: Model, facts: VersionFacts | None) -> Reason | None:
    """Whether somebody asked to build anew what is recorded."""
    is_recorded = facts is not None and not facts.covered.is_empty and model.name not in draft.continuations
    is_asked = draft.is_requested(model.name) and draft.begins_anew(model.name)
    if not is_recorded or not is_asked or draft.is_protected(model.name):
        return None
    return "restated" if model.name in draft.restated else "forced"


def _missing(draft: Draft, model: Model, covered: Intervals, flags: Flags, *, is_limited: bool = True) -> Intervals:
    """The time after what is recorded; a command's start counts only where nothing is, or a gap would stay.

    Unless told otherwise it is limited by how far the baseline's data reaches.
    """
    start, span = draft.starts[model.name], covered.span()
    if span is not None:
        flags = replace(flags, start=None)
    asked = asked_range(
        model,
        start,
        flags,
        draft.inputs.now,
        respects_cron=draft.respects_cron,
        limit=baseline_reach(draft, model.name) if is_limited else None,
    )
    if asked is None:
        return EMPTY
    begin = asked.start if span is None else max(asked.start, span.end)
    return Intervals.of([Interval(begin, asked.end)]) if begin < asked.end else EMPTY


def _first_ready(readiness: Readiness) -> Readiness:
    """Only what comes before the first unit that has to wait: later runs build on it."""
    late = readiness.waiting.span()
    if late is None:
        return readiness
    before = _until(late.start)
    return replace(
        readiness,
        ready=readiness.ready.intersect(before),
        waiting=readiness.waiting.union(readiness.ready.minus(before)),
    )


def _until(end: Instant) -> Intervals:
    return Intervals.of([Interval(FIRST_INSTANT, end)]) if end > FIRST_INSTANT else EMPTY


def _looking_back(draft: Draft, model: Model, covered: Intervals, readiness: Readiness) -> Readiness:
    lookback = model.kind.lookback if isinstance(model.kind, IncrementalByUniqueKey) else 0
    if not lookback or readiness.ready.is_empty:
        return readiness
    wider = with_lookback(model, readiness.ready, draft.starts[model.name], lookback)
    return replace(readiness, ready=readiness.ready.union(wider.intersect(covered)))


def _left_to_baseline(draft: Draft, model: Model, covered: Intervals, planned: Intervals) -> Intervals:
    """What the baseline has to write first, or alone writes."""
    if not waits_for_baseline(draft, model.name):
        return EMPTY
    return _missing(draft, model, covered, draft.inputs.flags, is_limited=False).minus(planned)


def _left_out(draft: Draft, model: Model, covered: Intervals, planned: Intervals) -> Intervals:
    """What the command's own bounds leave out; what lies before the planned time then stays out for good."""
    flags = draft.inputs.flags
    if flags.start is None and flags.end is None:
        return EMPTY
    return _missing(draft, model, covered, replace(flags, start=None, end=None)).minus(planned)
