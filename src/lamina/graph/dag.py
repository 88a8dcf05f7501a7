"""The project as a graph of nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from types import MappingProxyType
from typing import TYPE_CHECKING

from lamina.errors import DependencyCycle

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lamina.errors import Location
    from lamina.graph.model import Model, Source
    from lamina.graph.names import NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something worth saying that stops nothing."""

    code: str
    message: str
    node: str | None = None
    location: Location | None = None
    """Where a user wrote what it is about; the message names the place too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Models in topological order (parents first, ties by name) and the sources they read."""

    models: Mapping[NodeName, Model]
    sources: Mapping[NodeName, Source] = field(default_factory=lambda: MappingProxyType({}))
    warnings: tuple[Notice, ...] = ()

    def parents(self, name: NodeName) -> tuple[NodeName, ...]:
        """Models that `name` reads directly, without sources and without itself."""
        return tuple(read for read in self.models[name].reads if read in self.models and read != name)

    def children(self) -> Mapping[NodeName, tuple[NodeName, ...]]:
        """For every model the models that read it."""
        found: dict[NodeName, list[NodeName]] = {name: [] for name in self.models}
        for name in self.models:
            for parent in self.parents(name):
                found[parent].append(name)
        return {name: tuple(children) for name, children in found.items()}

    def ancestors(self, names: Iterable[NodeName]) -> frozenset[NodeName]:
        """All models above the given ones, without them unless reached from another."""
        found: set[NodeName] = set()
        waiting = [parent for name in names for parent in self.parents(name)]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting.extend(self.parents(name))
        return frozenset(found)

    def descendants(self, names: Iterable[NodeName]) -> frozenset[NodeName]:
        """All models below the given ones, without them unless reached from another."""
        children = self.children()
        found: set[NodeName] = set()
        waiting = [child for name in names for child in children[name]]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting.extend(children[name])
        return frozenset(found)


def in_dependency_order(models: Mapping[NodeName, Model]) -> dict[NodeName, Model]:
    """The models with parents first, ties by name; a cycle is an error that names its members."""
    sorter: TopologicalSorter[NodeName] = TopologicalSorter()
    for name in sorted(models):
        sorter.add(name, *(read for read in models[name].reads if read in models and read != name))
    try:
        sorter.prepare()
    except CycleError as error:
        cycle: list[NodeName] = list(reversed(error.args[1]))
        raise DependencyCycle(
            f"models depend on each other in a cycle: {' -> '.join(f'`{name}`' for name in cycle)}",
            hint="remove one of the references, or split the model that closes the cycle",
            location=models[cycle[0]].location,
            node=cycle[0],
        ) from None
    ordered: dict[NodeName, Model] = {}
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        for name in ready:
            ordered[name] = models[name]
        sorter.done(*ready)
    return ordered
