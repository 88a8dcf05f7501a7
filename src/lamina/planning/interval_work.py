"""What a model needs whose work is counted in intervals of time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lamina.graph.kinds import IncrementalByTimeRange
from lamina.planning.draft import Work
from lamina.planning.missing import asked_range, missing_intervals, restated_intervals, with_lookback
from lamina.planning.reach import intervals_reading, with_own_later
from lamina.planning.readiness import hold_back, split_by_readiness, stored_parents
from lamina.planning.rewrites import NOTHING_REACHED, Reached, follows, reached_by_recorded
from lamina.timeline.cron import Schedule
from lamina.timeline.interval import EMPTY, Interval, Intervals

if TYPE_CHECKING:
    from lamina.graph.model import Model
    from lamina.graph.names import NodeName
    from lamina.planning.draft import Draft
    from lamina.planning.inputs import VersionFacts
    from lamina.planning.readiness import Readiness
    from lamina.planning.steps import Reason
    from lamina.timeline.interval import Instant


def interval_work(draft: Draft, model: Model, facts: VersionFacts | None, *, is_idle: bool) -> Work:
    """What is missing, asked for again or reached by a rewrite, as far as parents cover what it reads.

    Also notes what the model will cover, for its children.
    """
    inputs, name = draft.inputs, model.name
    covered = facts.covered if facts else EMPTY
    start = draft.starts[name]
    asked = asked_range(
        model, start, inputs.flags, inputs.now, respects_cron=draft.respects_cron, limit=baseline_reach(draft, name)
    )
    recorded = facts.recorded if facts else EMPTY
    begin = _beginning(start, asked, recorded)
    if draft.is_shared(name):
        draft.available[name] = (begin, covered)
        return Work(left_to_baseline=_left_to_baseline(draft, model, covered, EMPTY))
    reached = NOTHING_REACHED
    if follows(inputs.graph.models, model):
        reached = reached_by_recorded(inputs.graph, model, facts, inputs.physical, inputs.rewrites)
    if is_idle:
        draft.available[name] = (begin, covered.minus(reached.intervals))
        return Work()
    missing = missing_intervals(model, asked, covered)
    requested, request = _requested(draft, model, asked, recorded)
    restated_at = None
    if request is None and _is_restatement_due(draft, model, facts):
        requested, request, restated_at = _latest_units(model, asked, covered), "restated", inputs.now
    again = requested.union(reached.intervals).union(_left_undone(draft, model, facts))
    again = with_own_later(model, missing.union(again), covered).minus(missing)
    readiness = split_by_readiness(inputs.graph, model, missing.union(again), draft.available, inputs.now)
    readiness = hold_back(readiness, inputs.held.get(name, ()))
    fresh = missing.minus(facts.reopened if facts else EMPTY).intersect(readiness.ready)
    readiness = _looking_back(draft, model, fresh, recorded, readiness)
    work = Work(
        readiness=readiness,
        redone=again.intersect(covered),
        recorded=recorded,
        left_out=_left_out(draft, model, covered, missing.union(again)),
        left_to_baseline=_left_to_baseline(draft, model, covered, missing.union(again)),
        followed=reached.followed,
        is_asked=not requested.is_empty or reached.is_asked,
        restated_at=restated_at,
    )
    draft.available[name] = (begin, covered.minus(work.redone).union(readiness.ready))
    possible = NOTHING_REACHED
    if follows(inputs.graph.models, model):
        possible = reached_by_plan(draft, model, covered.minus(again).minus(readiness.ready))
    work.may_follow = split_by_readiness(inputs.graph, model, possible.intervals, draft.available, inputs.now).ready
    work.is_asked |= possible.is_asked
    work.reason, work.cause = _reason(draft, model, missing, request, reached, possible)
    return work


def _left_out(draft: Draft, model: Model, covered: Intervals, planned: Intervals) -> Intervals:
    """What would be missing without the command's own bounds."""
    inputs = draft.inputs
    if inputs.flags.start is None and inputs.flags.end is None:
        return EMPTY
    unbounded = replace(inputs.flags, start=None, end=None)
    reach = baseline_reach(draft, model.name)
    start = draft.starts[model.name]
    asked = asked_range(model, start, unbounded, inputs.now, respects_cron=draft.respects_cron, limit=reach)
    return missing_intervals(model, asked, covered).minus(planned)


def waits_for_baseline(draft: Draft, name: NodeName) -> bool:
    """Whether time that is new is for the baseline to write: alone, because the version is shared, or before this."""
    if name not in draft.chosen or draft.blocked_by[name]:
        return False
    return draft.is_shared(name) or baseline_reach(draft, name) is not None


def _left_to_baseline(draft: Draft, model: Model, covered: Intervals, planned: Intervals) -> Intervals:
    """What would be missing if the baseline did not have to write it."""
    if not waits_for_baseline(draft, model.name):
        return EMPTY
    inputs, start = draft.inputs, draft.starts[model.name]
    asked = asked_range(model, start, inputs.flags, inputs.now, respects_cron=draft.respects_cron)
    return missing_intervals(model, asked, covered).minus(planned)


def _left_undone(draft: Draft, model: Model, facts: VersionFacts | None) -> Intervals:
    """What an earlier try at the same request opened again and did not come to, wherever it lies."""
    if facts is None or facts.reopened.is_empty:
        return EMPTY
    return facts.reopened if model.name in draft.requested or draft.requested & _above(draft, model) else EMPTY


def _above(draft: Draft, model: Model) -> frozenset[NodeName]:
    return draft.inputs.graph.ancestors([model.name])


def _beginning(start: Instant, asked: Interval | None, recorded: Intervals) -> Instant:
    """Where the model's time begins for its children: where a command begins, or earlier where work was recorded.

    Time that was never asked for counts as covered; a gap in what was recorded does not, whatever a command is about.
    """
    span = recorded.span()
    if asked is None:
        return start
    return asked.start if span is None else min(asked.start, span.start)


def _looking_back(draft: Draft, model: Model, fresh: Intervals, recorded: Intervals, readiness: Readiness) -> Readiness:
    """Units before each one that is processed for the first time.

    Only what is processed now looks back: what waits would have the units before it computed again every time. Units
    that were recorded before and have to be computed again do not look back either. And only recorded time is looked
    back at: what a command with a start leaves out was never computed, and its parents may be left out there too.
    """
    lookback = model.kind.lookback if isinstance(model.kind, IncrementalByTimeRange) else 0
    if not lookback or fresh.is_empty:
        return readiness
    planned = readiness.ready.union(readiness.waiting)
    before = with_lookback(model, fresh, draft.starts[model.name], lookback).minus(planned).intersect(recorded)
    can_be_read = split_by_readiness(draft.inputs.graph, model, before, draft.available, draft.inputs.now).ready
    return replace(readiness, ready=readiness.ready.union(can_be_read))


def reached_by_plan(draft: Draft, model: Model, recorded: Intervals) -> Reached:
    """Recorded time that reads what parents compute again in this plan, should that come out different."""
    intervals, cause, is_asked = EMPTY, None, False
    for parent in stored_parents(draft.inputs.graph, model.name):
        above = draft.works[parent]
        stretches = above.recomputed
        if stretches.is_empty:
            continue
        reading = intervals_reading(model, parent, recorded, stretches)
        if not reading.is_empty:
            intervals, is_asked = intervals.union(reading), is_asked or above.is_asked
            cause = cause or above.cause or parent
    return Reached(intervals=with_own_later(model, intervals, recorded), cause=cause, is_asked=is_asked)


def baseline_reach(draft: Draft, name: NodeName) -> Instant | None:
    """A new version in another environment is built as far as the baseline's data reaches."""
    pointer = draft.inputs.baseline.pointers.get(name)
    if draft.is_baseline or pointer is None or pointer.physical is None or draft.inputs.command == "run":
        return None
    facts = draft.inputs.facts.get(pointer.physical)
    span = facts.recorded.span() if facts else None
    return span.end if span else None


def _requested(
    draft: Draft, model: Model, asked: Interval | None, recorded: Intervals
) -> tuple[Intervals, Reason | None]:
    """Recorded time, counting now or not, that somebody asked to compute again, and how."""
    inputs = draft.inputs
    if draft.is_protected(model.name):
        return EMPTY, None
    if inputs.flags.force and asked is not None:
        return Intervals.of([asked]).intersect(recorded), "forced"
    if model.name in draft.restated:
        start, span = draft.starts[model.name], recorded.span()
        until = max((end for end in (span and span.end, asked and asked.end) if end), default=start)
        return restated_intervals(model, inputs.flags, start, until, inputs.now), "restated"
    return EMPTY, None


def _is_restatement_due(draft: Draft, model: Model, facts: VersionFacts | None) -> bool:
    """Whether the model's own schedule of restatements has ticked since it last did; only the baseline follows it."""
    policy = model.kind.policy if isinstance(model.kind, IncrementalByTimeRange) else None
    if policy is None or policy.auto_restatement_cron is None or facts is None or facts.restated_at is None:
        return False
    if draft.inputs.command != "run" or not draft.is_baseline or policy.disable_restatement:
        return False
    ticks = Schedule.parse(policy.auto_restatement_cron, model.cron_tz)
    return ticks.previous_tick(draft.inputs.now) > facts.restated_at


def _latest_units(model: Model, asked: Interval | None, covered: Intervals) -> Intervals:
    """The recorded part of the last units that may be processed: as many as the policy says, else all."""
    policy = model.kind.policy if isinstance(model.kind, IncrementalByTimeRange) else None
    count = policy.auto_restatement_intervals if policy else None
    if asked is None or count is None:
        return covered
    begin = model.grain.add(model.grain.floor(asked.end), -count)
    return covered.intersect(Intervals.of([Interval(begin, asked.end)])) if begin < asked.end else EMPTY


def _reason(
    draft: Draft, model: Model, missing: Intervals, request: Reason | None, reached: Reached, possible: Reached
) -> tuple[Reason, NodeName | None]:
    difference = draft.differences[model.name]
    if difference.is_version_new:
        return difference.reason, difference.cause
    if request is not None:
        return request, model.name
    if missing.is_empty and not reached.intervals.is_empty:
        return "upstream_rewritten", reached.cause
    if missing.is_empty and not possible.intervals.is_empty:
        return "upstream_rewritten", possible.cause
    return "missing_intervals", difference.cause
