"""Which recorded time of a node reads rows that were rewritten since, by what state says now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.app.ports.facts import CoverageRemoved
from lamina.app.ports.loaded import LoadRequest
from lamina.graph.dag import Graph
from lamina.planning.readiness import stored_parents
from lamina.planning.rewrites import NOTHING_REACHED, reached_by_recorded, to_look_up, told_up_to
from lamina.timeline.interval import EMPTY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamina.app.ports.loaded import Loaded
    from lamina.app.ports.state import StateStore
    from lamina.graph.names import NodeName
    from lamina.identity.naming import PhysicalName
    from lamina.planning.inputs import Read, Rewrite
    from lamina.planning.rewrites import Reached
    from lamina.planning.steps import Plan, Step


def remember_told(store: StateStore, plan: Plan) -> None:
    """Remember which rewrites a person was told of that a node does not follow, so that they are told once.

    What others rewrote meanwhile was not told. What is not known to have come out different yet, because the command
    ended early, is told again.
    """
    for step in plan.steps:
        if step.unfollowed is None or step.physical is None:
            continue
        followed = step.unfollowed.followed if step.unfollowed.is_recorded else _came_true(store, plan, step)
        if followed:
            store.commit([CoverageRemoved(physical=step.physical, intervals=EMPTY, followed=followed)])


def _came_true(store: StateStore, plan: Plan, step: Step) -> tuple[Read, ...]:
    """Up to which heads of what the plan has computed there is nothing but what was said about it beforehand."""
    told = step.unfollowed
    computed = {each.node: each.physical for each in plan.steps if each.physical is not None and each.computes}
    if told is None or step.physical is None:
        return ()
    loaded, rewrites = _rewritten_above(store, plan, {**computed, step.node: step.physical}, step.node)
    facts = loaded.facts.get(step.physical)
    if facts is None:
        return ()
    time = told.intervals.union(step.certain)
    return told_up_to(Graph(models=plan.models), plan.models[step.node], facts, computed, rewrites, time)


def reached_now(store: StateStore, plan: Plan, physical: Mapping[NodeName, PhysicalName], name: NodeName) -> Reached:
    """What reads rewritten rows, once the nodes above a node are settled; one cheap read or two."""
    loaded, rewrites = _rewritten_above(store, plan, physical, name)
    if not rewrites:
        return NOTHING_REACHED
    facts = loaded.facts.get(physical[name])
    return reached_by_recorded(Graph(models=plan.models), plan.models[name], facts, physical, rewrites)


def _rewritten_above(
    store: StateStore, plan: Plan, physical: Mapping[NodeName, PhysicalName], name: NodeName
) -> tuple[Loaded, Mapping[PhysicalName, tuple[Rewrite, ...]]]:
    nodes = (name, *stored_parents(Graph(models=plan.models), name))
    loaded = store.load(LoadRequest(versions=tuple((node, plan.versions[node].version) for node in nodes)))
    wanted = to_look_up(Graph(models={name: plan.models[name]}), physical, loaded.facts)
    if not wanted:
        return loaded, {}
    return loaded, store.load(LoadRequest(rewrites=wanted, facts_of_pointers=False)).rewrites
