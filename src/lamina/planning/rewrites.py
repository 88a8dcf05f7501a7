"""Rewrites of parents that a model has to follow.

When recorded time of a model comes out with other rows, the model's head says so; its readers remember up to which
head they have followed. Nothing is pushed to readers, so it does not matter who rewrites, when, or what fails between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lamina.graph.kinds import IncrementalByUniqueKey, folds, may_be_restated, needs_partitions
from lamina.graph.spans import uses_span
from lamina.planning.inputs import Read
from lamina.planning.reach import intervals_reading, with_own_later
from lamina.planning.readiness import stored_parents
from lamina.sql.on_demand import differs_when_repeated
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


def follows(models: Mapping[NodeName, Model], model: Model) -> bool:
    """Whether recorded time of the model is computed again when what it reads was rewritten."""
    if not model.follow_rewrites or not may_be_restated(model.kind):
        return False
    return not folds(model.kind) or (uses_span(models, model) and not why_not_again(model))


def why_not_again(model: Model) -> str | None:
    """Why a run of a model that folds must not be done a second time; None if that is what its kind is for."""
    kind = model.kind
    if not isinstance(kind, IncrementalByUniqueKey):
        return f"kind {kind.name} does each run once"
    if not may_be_restated(kind):
        return "`disable_restatement` protects what it holds"
    if model.name in model.reads:
        return "its query reads what the table holds"
    if kind.merge_filter is not None:
        return "its `merge_filter` may keep new rows from matching those of the first run, which would be there twice"
    if differs_when_repeated(kind.when_matched):
        return "its `when_matched` leaves something else when a run is done again: rows would count twice or come back"
    return None


def runs_for_new_rows_only(model: Model) -> bool:
    """Whether a further run of a model whose query says nothing about time is for new rows, not for other ones.

    It takes in everything once more: an append has it twice then, and other kinds keep what is not there any more.
    Only where whole partitions are replaced is that what the kind is for.
    """
    return folds(model.kind) and not (needs_partitions(model.kind) and may_be_restated(model.kind))


def minds_rewrites(models: Mapping[NodeName, Model], model: Model) -> bool:
    """Whether rewrites above the model matter to it, or to whoever reads the plan."""
    if folds(model.kind):
        return model.follow_rewrites or not uses_span(models, model)
    return model.follow_rewrites and may_be_restated(model.kind)


def is_only_rewritten(read: Read, now: VersionFacts, rewrites: Iterable[Rewrite]) -> bool:
    """Whether a parent's heads since the one that was read all brought other rows that somebody asked for."""
    asked = sum(rewrite.is_asked and rewrite.sequence > read.sequence for rewrite in rewrites)
    return asked == now.head_sequence - read.sequence


def to_look_up(
    graph: Graph, physical: Mapping[NodeName, PhysicalName], facts: Mapping[PhysicalName, VersionFacts]
) -> tuple[Read, ...]:
    """Versions with rewrites that some reader has not followed, with the head after which they matter."""
    wanted: dict[PhysicalName, int] = {}
    for name, model in graph.models.items():
        known = facts.get(physical[name]) if name in physical else None
        if known is None or not known.reads or not minds_rewrites(graph.models, model):
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
    """The recorded time of a model that reads rewrites which are recorded and not followed."""
    if facts is None or not rewrites:
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


def told_up_to(
    graph: Graph,
    model: Model,
    facts: VersionFacts,
    physical: Mapping[NodeName, PhysicalName],
    rewrites: Mapping[PhysicalName, tuple[Rewrite, ...]],
    told: Intervals,
) -> tuple[Read, ...]:
    """The heads of its parents up to which rewrites are about time that somebody was told of."""
    parents = {physical[name]: name for name in stored_parents(graph, model.name) if name in physical}
    is_whole = not uses_span(graph.models, model)
    found: list[Read] = []
    for read in facts.reads:
        if read.physical not in parents:
            continue
        sequence = read.sequence
        for rewrite in rewrites.get(read.physical, ()):
            if rewrite.sequence <= read.sequence:
                continue
            time = rewrite.intervals
            if not is_whole:
                time = intervals_reading(model, parents[read.physical], facts.covered, time)
            # What reads everything has seen nothing of a head in between, which brought something else.
            is_next = not is_whole or rewrite.sequence == sequence + 1
            if not is_next or not time.minus(told).is_empty:
                break
            sequence = rewrite.sequence
        if sequence > read.sequence:
            found.append(Read(physical=read.physical, sequence=sequence))
    return tuple(found)


def _newest(found: Iterable[tuple[NodeName, PhysicalName, Rewrite]]) -> tuple[Read, ...]:
    newest: dict[PhysicalName, int] = {}
    for _, physical, rewrite in found:
        newest[physical] = max(rewrite.sequence, newest.get(physical, 0))
    return tuple(Read(physical=physical, sequence=sequence) for physical, sequence in newest.items())
