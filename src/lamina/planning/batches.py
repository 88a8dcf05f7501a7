"""Cutting missing intervals into the portions one query computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, overload

from lamina.graph.kinds import IncrementalByTimeRange, IncrementalByUniqueKey, ScdType2ByColumn, ScdType2ByTime
from lamina.graph.time_partitions import grain_of_partition
from lamina.planning.steps import Batch
from lamina.timeline.interval import Interval

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lamina.graph.model import Model
    from lamina.timeline.grain import Grain
    from lamina.timeline.interval import Intervals


USUAL_BATCHES_AT_ONCE = 4
"""Of a model that says nothing about it; models run side by side as well."""


@dataclass(frozen=True, slots=True, eq=False)
class Batches(Sequence[Batch]):
    """The batches of some intervals, oldest first, made as they are asked for: there may be millions."""

    grain: Grain
    intervals: Intervals
    size: int | None
    is_fold: bool = False
    """Whether each is a run that is put into what the ones before it left."""
    begins_anew: bool = False

    def __len__(self) -> int:
        if self.size is None:
            return len(self.intervals)
        return sum(-(-self._units(interval) // self.size) for interval in self.intervals)

    def __iter__(self) -> Iterator[Batch]:
        pieces = (
            piece
            for interval in self.intervals
            for piece in ((interval,) if self.size is None else self.grain.split(interval, self.size))
        )
        for index, piece in enumerate(pieces):
            yield self._batch(index, piece)

    @overload
    def __getitem__(self, index: int) -> Batch: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Batch, ...]: ...
    def __getitem__(self, index: int | slice) -> Batch | tuple[Batch, ...]:
        if isinstance(index, slice):
            return tuple(self)[index]
        left = number = index + len(self) if index < 0 else index
        for interval in self.intervals if number >= 0 else ():
            pieces = 1 if self.size is None else -(-self._units(interval) // self.size)
            if left < pieces:
                return self._batch(number, self._piece(interval, left))
            left -= pieces
        raise IndexError(index)

    def _batch(self, index: int, piece: Interval) -> Batch:
        if self.is_fold:
            return Batch(index=index, interval=None, span=piece, begins_anew=self.begins_anew and index == 0)
        return Batch(index=index, interval=piece)

    def _piece(self, interval: Interval, number: int) -> Interval:
        if self.size is None:
            return interval
        first = self.grain.floor(interval.start)
        begin = self.grain.add(first, number * self.size)
        end = self.grain.add(first, (number + 1) * self.size)
        return Interval(max(begin, interval.start), min(end, interval.end))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash((self.grain, self.size))

    def _units(self, interval: Interval) -> int:
        return self.grain.count(Interval(self.grain.floor(interval.start), self.grain.ceil(interval.end)))


def batches_of(model: Model, intervals: Intervals) -> Batches:
    """One batch per contiguous range, or per `batch_size` units of it, oldest first."""
    size = model.kind.batch_size if isinstance(model.kind, IncrementalByTimeRange) else None
    return Batches(model.grain, intervals, size)


def runs_of(model: Model, spans: Intervals, *, begins_anew: bool) -> Sequence[Batch]:
    """The runs of a kind that folds: one after the other over the spans, or one about no time in particular."""
    if spans.is_empty:
        return (Batch(index=0, interval=None, begins_anew=begins_anew),)
    kind, size = model.kind, None
    if isinstance(kind, IncrementalByUniqueKey | ScdType2ByTime | ScdType2ByColumn):
        size = kind.batch_size
    return Batches(model.grain, spans, size, is_fold=True, begins_anew=begins_anew)


def concurrency_of(model: Model, intervals: Intervals, usual: int) -> int:
    """How many batches of the model may run side by side: never two that could share a partition.

    `usual` is for models that say nothing; what one says is bounded only by how many batches the command runs at once.
    """
    kind = model.kind
    if not isinstance(kind, IncrementalByTimeRange):
        return 1
    is_apart = any(_are_cut_at(unit, model.grain, intervals, kind.batch_size) for unit in _units_of_partitions(model))
    return kind.batch_concurrency or usual if is_apart else 1


def runs_side_by_side(model: Model) -> bool:
    """Whether batches of intervals that begin where a partition begins can run at the same time."""
    size = model.kind.batch_size if isinstance(model.kind, IncrementalByTimeRange) else None
    return any(
        size is None or not unit.is_coarser_than(model.grain) or _is_multiple(unit, model.grain, size)
        for unit in _units_of_partitions(model)
    )


def _units_of_partitions(model: Model) -> Iterator[Grain]:
    """The units of time of which no two share a partition; none where a batch reads what the one before it wrote."""
    kind = model.kind
    if not isinstance(kind, IncrementalByTimeRange) or model.name in model.reads:
        return
    for expression in model.partitioned_by:
        unit = grain_of_partition(expression, kind.time_column)
        if unit is not None:
            yield unit


def _are_cut_at(unit: Grain, grain: Grain, intervals: Intervals, size: int | None) -> bool:
    """Whether no two batches hold time of the same unit.

    That is so where every cut is a boundary of a unit: those inside of an interval, and the gaps between intervals.
    """
    if any(unit.next(earlier.end.minus(1)) > later.start for earlier, later in pairwise(intervals)):
        return False
    if size is None or not unit.is_coarser_than(grain):
        return True
    cut = [interval for interval in intervals if grain.add(grain.floor(interval.start), size) < interval.end]
    return not cut or (_is_multiple(unit, grain, size) and all(unit.is_aligned(interval.start) for interval in cut))


def _is_multiple(unit: Grain, grain: Grain, size: int) -> bool:
    """Whether so many units of the grain, begun at a boundary of the coarser unit, end at one."""
    if unit.calendar_months:
        return bool(grain.calendar_months) and size * grain.calendar_months % unit.calendar_months == 0
    return size * grain.smallest_micros % unit.smallest_micros == 0
