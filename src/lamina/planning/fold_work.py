"""What a model needs whose runs are put into what its table holds: once each, and in order."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lamina.graph.kinds import IncrementalByUniqueKey, may_be_restated
from lamina.graph.spans import uses_span
from lamina.planning.draft import Work
from lamina.planning.interval_work import baseline_reach
from lamina.planning.missing import asked_range, with_lookback
from lamina.planning.readiness import Readiness, split_by_readiness
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

    Time that is recorded is never gone over again, except by `lookback`; time before it is never filled in later. A
    request builds the whole table anew.
    """
    if not uses_span(draft.inputs.graph.models, model):
        return whole_work(draft, model, facts)
    if draft.is_shared(model.name):
        return Work()
    covered = facts.covered if facts else EMPTY
    request = _request(draft, model, facts)
    # Nothing counts any more where a rebuild was begun and did not come to its first run: the rows are still the old.
    begins_anew = request is not None or covered.is_empty
    flags = draft.inputs.flags if request is None else replace(draft.inputs.flags, start=None, end=None)
    missing = _missing(draft, model, EMPTY if begins_anew else covered, flags)
    readiness = _first_ready(split_by_readiness(draft.inputs.graph, model, missing, draft.available, draft.inputs.now))
    if not begins_anew:
        readiness = _looking_back(draft, model, covered, readiness)
    is_whole = not readiness.ready.is_empty
    return Work(
        is_whole=is_whole,
        begins_anew=begins_anew and is_whole,
        reason=request or draft.version_reason(model.name, "missing_intervals"),
        cause=model.name if request else draft.differences[model.name].cause,
        readiness=readiness,
        redone=covered if request is not None and is_whole else EMPTY,
        left_out=_left_out(draft, model, covered, missing),
        is_asked=request is not None and is_whole,
    )


def _request(draft: Draft, model: Model, facts: VersionFacts | None) -> Reason | None:
    """Whether somebody asked to compute again what is recorded."""
    is_recorded = facts is not None and not facts.covered.is_empty
    if not is_recorded or not draft.is_requested(model.name) or not may_be_restated(model.kind):
        return None
    return "restated" if model.name in draft.restated else "forced"


def _missing(draft: Draft, model: Model, covered: Intervals, flags: Flags) -> Intervals:
    """The time after what is recorded; a command's start counts only where nothing is, or a gap would stay."""
    start, span = draft.starts[model.name], covered.span()
    if span is not None:
        flags = replace(flags, start=None)
    asked = asked_range(
        model,
        start,
        flags,
        draft.inputs.now,
        respects_cron=draft.respects_cron,
        limit=baseline_reach(draft, model.name),
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


def _left_out(draft: Draft, model: Model, covered: Intervals, planned: Intervals) -> Intervals:
    """What the command's own bounds leave out; what lies before the planned time then stays out for good."""
    flags = draft.inputs.flags
    if flags.start is None and flags.end is None:
        return EMPTY
    return _missing(draft, model, covered, replace(flags, start=None, end=None)).minus(planned)
