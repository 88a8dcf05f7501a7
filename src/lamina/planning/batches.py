"""Cutting missing intervals into the portions one query computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

from lamina.graph.kinds import IncrementalByTimeRange, IncrementalByUniqueKey, ScdType2ByColumn, ScdType2ByTime
from lamina.planning.steps import Batch
from lamina.timeline.grain import Grain
from lamina.timeline.interval import MICROS_PER_DAY, Interval

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lamina.graph.model import Model
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
    if not isinstance(model.kind, IncrementalByTimeRange) or not runs_side_by_side(model):
        return 1
    is_day_aligned = all(
        Grain.DAY.is_aligned(interval.start) and Grain.DAY.is_aligned(interval.end) for interval in intervals
    )
    return model.kind.batch_concurrency or usual if is_day_aligned else 1


def runs_side_by_side(model: Model) -> bool:
    """Whether batches that begin and end with days can run at the same time."""
    if not isinstance(model.kind, IncrementalByTimeRange) or model.name in model.reads:
        return False
    is_partitioned_by_time = model.kind.partition_by_time_column or any(
        model.kind.time_column.name.lower() == expression.strip("`").lower() for expression in model.partitioned_by
    )
    return is_partitioned_by_time and _cuts_at_days(model.grain, model.kind.batch_size)


def _cuts_at_days(grain: Grain, size: int | None) -> bool:
    if size is None or not Grain.DAY.is_coarser_than(grain):
        return True
    return size * grain.smallest_micros % MICROS_PER_DAY == 0
