"""A stretch of time as the sequence of its units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias, overload

from lamina.timeline.interval import Interval

if TYPE_CHECKING:
    from datetime import datetime

    from lamina.timeline.grain import Grain

    Pair: TypeAlias = tuple[datetime, datetime]


class Units(Sequence["Pair"]):
    """The units of an interval as pairs of UTC datetimes, the end exclusive; each is computed when it is looked at.

    Where the interval starts or ends inside a unit, so does the first or last pair.
    """

    def __init__(self, grain: Grain, interval: Interval) -> None:
        self._grain, self._interval = grain, interval
        self._first = grain.floor(interval.start)
        self._count = grain.count(Interval(self._first, grain.ceil(interval.end)))

    @property
    def interval(self) -> Interval:
        """The whole stretch."""
        return self._interval

    @property
    def start(self) -> datetime:
        """Where the first unit starts."""
        return self._interval.start.to_datetime()

    @property
    def end(self) -> datetime:
        """Where the last unit ends."""
        return self._interval.end.to_datetime()

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Pair: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Pair]: ...
    def __getitem__(self, index: int | slice) -> Pair | Sequence[Pair]:
        if isinstance(index, slice):
            chosen = range(self._count)[index]
            if chosen and chosen.step == 1:
                return Units(self._grain, Interval(self._unit(chosen[0]).start, self._unit(chosen[-1]).end))
            return [self._pair(number) for number in chosen]
        return self._pair(range(self._count)[index])

    def covers(self, interval: Interval) -> bool:
        """Whether the interval is made of units of this stretch, one or several in a row."""
        ends = ((interval.start, self._interval.start), (interval.end, self._interval.end))
        return self._interval.contains(interval) and all(
            self._grain.is_aligned(moment) or moment == outer for moment, outer in ends
        )

    def _unit(self, number: int) -> Interval:
        start = self._grain.add(self._first, number)
        whole = self._interval
        return Interval(max(start, whole.start), min(self._grain.next(start), whole.end))

    def _pair(self, number: int) -> Pair:
        unit = self._unit(number)
        return unit.start.to_datetime(), unit.end.to_datetime()

    def __repr__(self) -> str:
        return f"Units({self._grain.value}, {self._interval})"
