"""Rewrites of parents that a model has to follow.

When recorded time of a model comes out with other rows, the model's head says so; its readers remember up to which
head they have followed. Nothing is pushed to readers, so it does not matter who rewrites, when, or what fails between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lamina.graph.kinds import may_be_restated
from lamina.planning.inputs import Read
from lamina.planning.reach import intervals_reading, with_own_later
from lamina.planning.readiness import stored_parents
from lamina.timeline.interval import EMPTY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lamina.graph.dag import Graph
    from lamina.graph.model import Model
    from lamina.graph.names import NodeName
    from lamina.identity.naming import PhysicalName
    from lamina.planning.inputs import Rewrite, VersionFacts
    from lamina.timeline.interval import Intervals


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """Recorded time that reads what was rewritten, where it came from, and what following it comes up to."""

    intervals: Intervals = EMPTY
    cause: NodeName | None = None
    followed: tuple[Read, ...] = ()
    is_asked: bool = False


NOTHING_REACHED = Reached()


def follows(model: Model) -> bool:
    """Whether recorded time of the model is computed again when what it reads was rewritten."""
    return model.follow_rewrites and may_be_restated(model.kind)


def to_look_up(
    graph: Graph, physical: Mapping[NodeName, PhysicalName], facts: Mapping[PhysicalName, VersionFacts]
) -> tuple[Read, ...]:
    """Versions with rewrites that some reader has not followed, with the head after which they matter."""
    wanted: dict[PhysicalName, int] = {}
    for name, model in graph.models.items():
        known = facts.get(physical[name]) if name in physical else None
        if known is None or not known.reads or not follows(model):
            continue
        for read in known.reads:
            parent = facts.get(read.physical)
            if parent is not None and read.sequence < parent.rewritten_at:
                wanted[read.physical] = min(read.sequence, wanted.get(read.physical, read.sequence))
    return tuple(Read(physical=name, sequence=sequence) for name, sequence in wanted.items())


def reached_by_recorded(
    graph: Graph,
    model: Model,
    facts: VersionFacts | None,
    physical: Mapping[NodeName, PhysicalName],
    rewrites: Mapping[PhysicalName, tuple[Rewrite, ...]],
) -> Reached:
    """What a model with intervals has to compute again because of rewrites that are recorded and not followed."""
    if facts is None or not rewrites or not follows(model):
        return NOTHING_REACHED
    since = {read.physical: read.sequence for read in facts.reads}
    found: list[tuple[NodeName, PhysicalName, Rewrite]] = [
        (parent, physical[parent], rewrite)
        for parent in stored_parents(graph, model.name)
        if parent in physical
        for rewrite in rewrites.get(physical[parent], ())
        if rewrite.sequence > since.get(physical[parent], rewrite.sequence)
    ]
    intervals, cause, is_asked = EMPTY, None, False
    for parent, _, rewrite in found:
        reading = intervals_reading(model, parent, facts.covered, rewrite.intervals)
        if not reading.is_empty:
            intervals, cause, is_asked = intervals.union(reading), cause or parent, is_asked or rewrite.is_asked
    intervals = with_own_later(model, intervals, facts.covered)
    return Reached(intervals=intervals, cause=cause, followed=_newest(found), is_asked=is_asked)


def _newest(found: Iterable[tuple[NodeName, PhysicalName, Rewrite]]) -> tuple[Read, ...]:
    newest: dict[PhysicalName, int] = {}
    for _, physical, rewrite in found:
        newest[physical] = max(rewrite.sequence, newest.get(physical, 0))
    return tuple(Read(physical=physical, sequence=sequence) for physical, sequence in newest.items())
