"""What a model needs that is computed whole: new versions, parents whose rows changed, due ticks, requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.graph.kinds import Seed, View, folds, may_be_restated
from lamina.graph.spans import asks_the_clock, may_read_unseen
from lamina.planning.draft import ALL_TIME, Work
from lamina.planning.missing import schedule_of
from lamina.planning.readiness import reads_unknown, stored_parents

if TYPE_CHECKING:
    from lamina.graph.model import Model
    from lamina.graph.names import NodeName
    from lamina.planning.draft import Draft
    from lamina.planning.inputs import VersionFacts
    from lamina.timeline.interval import Instant


def whole_work(draft: Draft, model: Model, facts: VersionFacts | None) -> Work:
    """One build of everything, or nothing."""
    name = model.name
    difference = draft.differences[name]
    if facts is None and name in draft.forks:
        return Work(is_whole=True, reason="upstream_rewritten", cause=_forked_above(draft, model))
    if facts is None or facts.built_at is None:
        reason = draft.version_reason(name, "first_run")
        return Work(is_whole=True, reason=reason, cause=difference.cause or name)
    is_requested = draft.is_requested(name) and may_be_restated(model.kind)
    if is_requested and not isinstance(model.kind, View):
        reason = "restated" if name in draft.restated else "forced"
        return Work(is_whole=True, reason=reason, cause=name, is_asked=True, begins_anew=folds(model.kind))
    if draft.is_shared(name) or isinstance(model.kind, View | Seed):
        return Work()
    return _after_parents(draft, model) or _after_rewrites(draft, facts) or _after_time(draft, model, facts.built_at)


def _forked_above(draft: Draft, model: Model) -> NodeName | None:
    """The forked model that makes a view show something else."""
    return next((parent for parent in draft.inputs.graph.parents(model.name) if parent in draft.forks), None)


def _after_parents(draft: Draft, model: Model) -> Work | None:
    """Parents that this plan computes, certainly or perhaps."""
    above = {parent: draft.works[parent] for parent in stored_parents(draft.inputs.graph, model.name)}
    asked = next((parent for parent, work in above.items() if work.is_asked and not work.recomputed.is_empty), None)
    if asked is not None:
        cause = above[asked].cause or asked
        return Work(is_whole=True, reason="upstream_rewritten", cause=cause, is_asked=True)
    certain = next((parent for parent, work in above.items() if work.is_certain), None)
    if certain is not None:
        return Work(is_whole=True, reason="upstream_changed", cause=above[certain].cause or certain)
    return None


def _after_rewrites(draft: Draft, facts: VersionFacts) -> Work | None:
    """Parents whose rows changed since the last build."""
    for read in facts.reads:
        now = draft.inputs.facts.get(read.physical) if read.physical != facts.physical else None
        if now is None or now.head_sequence == read.sequence:
            continue
        rewrites = draft.inputs.rewrites.get(read.physical, ())
        if any(rewrite.is_asked and rewrite.sequence > read.sequence for rewrite in rewrites):
            return Work(is_whole=True, reason="upstream_rewritten", cause=now.node, is_asked=True)
        return Work(is_whole=True, reason="upstream_changed", cause=now.node)
    return None


def _after_time(draft: Draft, model: Model, built_at: Instant) -> Work:
    """A tick that passed with inputs nobody knows about, or with time itself; else only what parents may bring."""
    inputs = draft.inputs
    if inputs.command == "run" and _is_tick_due(draft, model, built_at):
        unknown = reads_unknown(inputs.graph, model.name)
        if unknown is not None or may_read_unseen(model) or asks_the_clock(inputs.graph.models, model):
            return Work(is_whole=True, reason="source_changed", cause=unknown)
    above = (draft.works[parent] for parent in stored_parents(inputs.graph, model.name))
    if any(not work.may_follow.is_empty for work in above):
        return Work(may_follow=ALL_TIME)
    return Work()


def _is_tick_due(draft: Draft, model: Model, built_at: Instant) -> bool:
    return not draft.respects_cron or schedule_of(model).previous_tick(draft.inputs.now) > built_at
