"""What a model needs that is computed whole: new versions, parents whose rows changed, due ticks, requests."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from lamina.graph.kinds import Seed, View, folds, has_intervals
from lamina.graph.spans import asks_the_clock, may_read_unseen
from lamina.planning.draft import ALL_TIME, Work
from lamina.planning.inputs import Read
from lamina.planning.missing import schedule_of
from lamina.planning.readiness import reads_unknown, stored_parents
from lamina.planning.rewrites import is_only_rewritten, runs_for_new_rows_only
from lamina.planning.steps import Unfollowed
from lamina.timeline.interval import EMPTY, Intervals

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lamina.graph.model import Model
    from lamina.graph.names import NodeName
    from lamina.planning.draft import Draft
    from lamina.planning.inputs import VersionFacts
    from lamina.timeline.interval import Instant

_NOT_AGAIN = "its query says nothing about time, so that a further run would put in everything once more"


def whole_work(draft: Draft, model: Model, facts: VersionFacts | None) -> Work:
    """One build of everything, or nothing."""
    name = model.name
    difference = draft.differences[name]
    if facts is None and name in draft.forks:
        return Work(is_whole=True, reason="upstream_rewritten", cause=_forked_above(draft, model))
    if facts is None or facts.built_at is None:
        reason = draft.version_reason(name, "first_run")
        return Work(is_whole=True, reason=reason, cause=difference.cause or name)
    is_requested = draft.is_requested(name) and not draft.is_protected(name)
    if is_requested and not isinstance(model.kind, View):
        reason = "restated" if name in draft.restated else "forced"
        begins_anew = folds(model.kind) and draft.begins_anew(name)
        return Work(is_whole=True, reason=reason, cause=name, is_asked=True, begins_anew=begins_anew)
    if draft.is_shared(name) or isinstance(model.kind, View | Seed):
        return Work()
    if runs_for_new_rows_only(model):
        work = _further_run(draft, model, facts)
    else:
        work = _after_parents(draft, model) or _after_rewrites(draft, facts) or _after_time(draft, model)
    return _at_its_tick(draft, model, facts.built_at, work)


def _at_its_tick(draft: Draft, model: Model, built_at: Instant, work: Work) -> Work:
    """The work as far as the model's own cron has released it: `run` does it once for each tick, whatever is new above.

    What a person is told does not wait. What changed above stays recorded, so that nothing is lost until then.
    """
    schedule, now = schedule_of(model), draft.inputs.now
    if not draft.respects_cron or schedule.previous_tick(now) > built_at:
        return work
    if not work.is_whole:
        return Work(unfollowed=work.unfollowed)
    return Work(reason=work.reason, cause=work.cause, next_tick=schedule.next_tick(now))


def _forked_above(draft: Draft, model: Model) -> NodeName | None:
    """The forked model that makes a view show something else."""
    return next((parent for parent in draft.inputs.graph.parents(model.name) if parent in draft.forks), None)


def _after_parents(draft: Draft, model: Model) -> Work | None:
    """Parents that this plan computes, certainly or perhaps."""
    above = {parent: draft.works[parent] for parent in stored_parents(draft.inputs.graph, model.name)}
    asked = next((parent for parent, work in above.items() if work.is_asked and not work.recomputed.is_empty), None)
    if asked is not None:
        return Work(
            is_whole=True,
            reason="upstream_rewritten",
            cause=above[asked].cause or asked,
            is_asked=True,
            has_grown=any(work.brings_new for work in above.values()),
        )
    certain = next((parent for parent, work in above.items() if work.is_certain), None)
    if certain is not None:
        return Work(is_whole=True, reason="upstream_changed", cause=above[certain].cause or certain)
    return None


def _after_rewrites(draft: Draft, facts: VersionFacts) -> Work | None:
    """Parents whose rows changed since the last build."""
    changed = _changed_since(draft, facts)
    for read, now in changed:
        rewrites = draft.inputs.rewrites.get(read.physical, ())
        if any(rewrite.is_asked and rewrite.sequence > read.sequence for rewrite in rewrites):
            has_grown = not all(_is_only_rewritten(draft, *each) for each in changed)
            cause = now.node
            return Work(is_whole=True, reason="upstream_rewritten", cause=cause, is_asked=True, has_grown=has_grown)
        return Work(is_whole=True, reason="upstream_changed", cause=now.node)
    return None


def _changed_since(draft: Draft, facts: VersionFacts) -> list[tuple[Read, VersionFacts]]:
    """Parents that show other rows than the last build read, and which ones it read."""
    found = []
    for read in facts.reads:
        now = draft.inputs.facts.get(read.physical) if read.physical != facts.physical else None
        if now is not None and now.head_sequence != read.sequence:
            found.append((read, now))
    return found


def _is_only_rewritten(draft: Draft, read: Read, now: VersionFacts) -> bool:
    return is_only_rewritten(read, now, draft.inputs.rewrites.get(read.physical, ()))


def _further_run(draft: Draft, model: Model, facts: VersionFacts) -> Work:
    """One more run where there is something new to take in; of rows that came out different somebody is told."""
    above = {parent: draft.works[parent] for parent in stored_parents(draft.inputs.graph, model.name)}
    again = {parent: time for parent in above if not (time := _rewritten_by_plan(draft, parent)).is_empty}
    changed = _changed_since(draft, facts)
    grown = [work.cause or parent for parent, work in above.items() if work.brings_new]
    grown += [now.node for read, now in changed if not _is_only_rewritten(draft, read, now)]
    if grown:
        is_asked = any(above[parent].is_asked for parent in again)
        return Work(is_whole=True, reason="upstream_changed", cause=grown[0], is_asked=is_asked, has_grown=True)
    further = _after_time(draft, model)
    if further.is_whole or not model.follow_rewrites or not (changed or again):
        return further
    if changed:
        rewrites = ((read, draft.inputs.rewrites.get(read.physical, ())) for read, _ in changed)
        since = (each.intervals for read, known in rewrites for each in known if each.sequence > read.sequence)
        told = Unfollowed(
            intervals=_union(since),
            cause=changed[0][1].node,
            why=_NOT_AGAIN,
            is_recorded=True,
            followed=tuple(Read(physical=read.physical, sequence=now.head_sequence) for read, now in changed),
        )
    else:
        parent = next(iter(again))
        cause = above[parent].cause or parent
        told = Unfollowed(intervals=_union(again.values()), cause=cause, why=_NOT_AGAIN, is_recorded=False)
    return Work(unfollowed=told)


def _rewritten_by_plan(draft: Draft, parent: NodeName) -> Intervals:
    """Time that a parent computes again, where its head will say so if other rows come out."""
    work = draft.works[parent]
    says_so = work.is_asked or has_intervals(draft.inputs.graph.models[parent].kind)
    return work.recomputed if says_so else EMPTY


def _union(times: Iterable[Intervals]) -> Intervals:
    return reduce(Intervals.union, times, EMPTY)


def _after_time(draft: Draft, model: Model) -> Work:
    """Inputs that nobody knows about, or time itself; else only what parents may bring."""
    inputs = draft.inputs
    if inputs.command == "run":
        unknown = reads_unknown(inputs.graph, model.name)
        if unknown is not None or may_read_unseen(model) or asks_the_clock(inputs.graph.models, model):
            return Work(is_whole=True, reason="source_changed", cause=unknown)
    above = stored_parents(inputs.graph, model.name)
    if runs_for_new_rows_only(model):
        above = tuple(parent for parent in above if _rewritten_by_plan(draft, parent).is_empty)
    if any(not draft.works[parent].may_follow.is_empty for parent in above):
        return Work(may_follow=ALL_TIME)
    return Work()
