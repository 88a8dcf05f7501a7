"""Promotion: one environment takes over what another one points to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lamina.errors import StaleUpstreams

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamina.environments.pointers import Pointer, Revision, Status
    from lamina.graph.dag import Graph
    from lamina.graph.names import NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A node whose pointer changes; `previous` is what was shown before, if anything."""

    node: NodeName
    pointer: Pointer
    previous: Pointer | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """What an environment points to afterwards, and what that changes."""

    source: Revision
    destination: Revision
    pointers: Mapping[NodeName, Pointer]
    moves: tuple[Move, ...]
    removed: tuple[NodeName, ...]
    status: Status

    @property
    def changes_anything(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.moves or self.removed) or self.destination.status != self.status

    @property
    def decision(self) -> tuple[object, ...]:
        """What makes it this promotion and no other; whether views have followed in the meantime does not."""
        return (self.source.number, self.destination.number, self.moves, self.removed, self.status)


def promotion(
    source: Revision,
    destination: Revision,
    graph: Graph,
    chosen: frozenset[NodeName] | None,
    *,
    includes_stale_upstreams: bool = False,
) -> Promotion:
    """The pointers of `destination` once it shows what `source` shows; `chosen` limits that to some nodes.

    `graph` is the source's. A chosen node cannot go without the nodes above it that differ: it was built from them.
    """
    differing = {name for name, pointer in source.pointers.items() if destination.pointers.get(name) != pointer}
    if chosen is None:
        moving = differing
        removed = tuple(sorted(set(destination.pointers) - set(source.pointers)))
    else:
        moving, removed = set(chosen) & differing, ()
        above = {name for name in graph.ancestors(moving) if name in differing}
        if includes_stale_upstreams:
            moving |= above
        elif above - moving:
            names = ", ".join(f"`{name}`" for name in sorted(above - moving))
            raise StaleUpstreams(
                f"what is selected was built from versions that `{destination.environment}` does not show: {names}",
                hint="select them too, or use `--include-stale-upstreams`",
            )
    pointers = {name: pointer for name, pointer in destination.pointers.items() if name not in removed}
    pointers |= {name: source.pointers[name] for name in moving}
    is_whole = pointers == dict(source.pointers)
    return Promotion(
        source=source,
        destination=destination,
        pointers=pointers,
        moves=tuple(
            Move(node=name, pointer=source.pointers[name], previous=destination.pointers.get(name))
            for name in graph.models
            if name in moving
        ),
        removed=removed,
        status=source.status if is_whole and source.status != "new" else "active",
    )
