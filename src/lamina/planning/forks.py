"""Copies that an environment makes for itself before it computes again what others show too.

A version that the baseline or another environment points to is not this environment's to rewrite. A fork is the same
version under another name that begins with the same rows, at no cost where the format can share them; whatever may be
reached below it is forked along, because its rows may come out different.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lamina.graph.kinds import Embedded, View, folds, has_intervals, may_be_restated
from lamina.graph.spans import uses_span
from lamina.identity.naming import next_name
from lamina.planning.inputs import Copy, Read
from lamina.planning.replay import keeps_history
from lamina.planning.rewrites import follows, reached_by_recorded
from lamina.timeline.interval import EMPTY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamina.graph.dag import Graph
    from lamina.graph.model import Model
    from lamina.graph.names import NodeName
    from lamina.identity.naming import PhysicalName
    from lamina.planning.inputs import PlanInputs, VersionFacts


def forks_of(
    inputs: PlanInputs, chosen: frozenset[NodeName], restated: frozenset[NodeName], reset: frozenset[NodeName]
) -> Mapping[NodeName, Copy]:
    """What has to be forked before the chosen nodes can be restated or forced."""
    if inputs.environment.environment == inputs.baseline_name or not (restated or inputs.flags.force):
        return {}
    graph = inputs.graph
    free = reset | {name for name, model in graph.models.items() if may_be_restated(model.kind)}
    requested = [
        name
        for name in (chosen if inputs.flags.force else restated & chosen) & free
        if not isinstance(graph.models[name].kind, View | Embedded)
        and (name in restated or not _is_left_alone(graph, graph.models[name]))
    ]
    reached = {*requested, *(graph.descendants(requested) & chosen)}
    forks: dict[NodeName, Copy] = {}
    for name in graph.models:
        source = inputs.physical.get(name)
        facts = inputs.facts.get(source) if source is not None else None
        if name not in reached or source is None or source not in inputs.shown_elsewhere:
            continue
        if facts is not None and facts.head_sequence and name in free:
            forks[name] = Copy(
                node=name, source=source, target=next_name(name, inputs.versions[name].version, inputs.facts)
            )
    return forks


def _is_left_alone(graph: Graph, model: Model) -> bool:
    """Whether `--force` does nothing about what is recorded: its history is kept, and each run belongs to its time."""
    return folds(model.kind) and keeps_history(model) and uses_span(graph.models, model)


def with_forks(inputs: PlanInputs, forks: Mapping[NodeName, Copy]) -> PlanInputs:
    """The inputs as they are once the forks are made; a view is made anew instead, over its forked parents."""
    if not forks:
        return inputs
    by_source = {fork.source: fork for fork in forks.values()}
    facts = dict(inputs.facts)
    for name, fork in forks.items():
        if not isinstance(inputs.graph.models[name].kind, View):
            facts[fork.target] = _forked(inputs, fork, by_source)
    targets = {name: fork.target for name, fork in forks.items()}
    return replace(inputs, physical={**inputs.physical, **targets}, facts=facts)


def _forked(inputs: PlanInputs, fork: Copy, by_source: Mapping[PhysicalName, Copy]) -> VersionFacts:
    """What will be known of the fork: the same time is covered, and parents that are forked too are followed anew."""
    facts = inputs.facts[fork.source]
    model = inputs.graph.models[fork.node]
    pending = EMPTY
    if has_intervals(model.kind) and follows(inputs.graph.models, model):
        pending = reached_by_recorded(inputs.graph, model, facts, inputs.physical, inputs.rewrites).intervals
    reads = tuple(
        Read(physical=by_source[read.physical].target, sequence=_sequence(inputs, read, facts))
        if read.physical in by_source
        else read
        for read in facts.reads
    )
    return replace(
        facts,
        physical=fork.target,
        mark=0,
        head_sequence=1,
        covered=facts.covered.minus(pending),
        reopened=facts.reopened.union(pending) if facts.covered != EMPTY else facts.reopened,
        reads=reads,
        rewritten_at=0,
    )


def _sequence(inputs: PlanInputs, read: Read, facts: VersionFacts) -> int:
    """The head of a forked parent that is already read: its first, unless a whole build lagged behind its parent."""
    is_behind = facts.built_at is not None and inputs.facts[read.physical].head_sequence != read.sequence
    return 0 if is_behind and facts.covered == EMPTY else 1
