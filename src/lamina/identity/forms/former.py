"""Earlier forms of identity by their numbers."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from lamina.identity.forms import first

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from lamina.graph.dag import Graph
    from lamina.graph.model import Model
    from lamina.graph.names import NodeName
    from lamina.identity.version import NodeVersion

FORMER: Mapping[int, Callable[[Model, Mapping[NodeName, NodeVersion]], NodeVersion]] = MappingProxyType(
    {1: first.version_of}
)
"""For each form that is not in use any more, what a node is in it."""


def former_versions(form: int, graph: Graph, nodes: Collection[NodeName]) -> dict[NodeName, NodeVersion]:
    """What these nodes are in an earlier form: no more is looked at than they and what is above them."""
    wanted = {*nodes, *graph.ancestors(nodes)}
    found: dict[NodeName, NodeVersion] = {}
    for name, model in graph.models.items():
        if name in wanted:
            found[name] = FORMER[form](model, found)
    return {name: found[name] for name in nodes if name in found}
