"""Which recorded time of a node reads rows that were rewritten since, by what state says now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.app.records import LoadRequest
from lamina.graph.dag import Graph
from lamina.planning.readiness import stored_parents
from lamina.planning.rewrites import NOTHING_REACHED, reached_by_recorded, to_look_up

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamina.app.ports import StateStore
    from lamina.graph.names import NodeName
    from lamina.identity.naming import PhysicalName
    from lamina.planning.rewrites import Reached
    from lamina.planning.steps import Plan


def reached_now(store: StateStore, plan: Plan, physical: Mapping[NodeName, PhysicalName], name: NodeName) -> Reached:
    """What a node with intervals has to compute again, once the nodes above it are settled; one cheap read or two."""
    graph = Graph(models=plan.models)
    nodes = (name, *stored_parents(graph, name))
    loaded = store.load(LoadRequest(versions=tuple((node, plan.versions[node].version) for node in nodes)))
    own = Graph(models={name: plan.models[name]})
    wanted = to_look_up(own, physical, loaded.facts)
    if not wanted:
        return NOTHING_REACHED
    rewrites = store.load(LoadRequest(rewrites=wanted, facts_of_pointers=False)).rewrites
    return reached_by_recorded(graph, plan.models[name], loaded.facts.get(physical[name]), physical, rewrites)
