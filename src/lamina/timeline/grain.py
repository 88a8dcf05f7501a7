"""The units that time is cut into.

Every grain numbers its units: `_index` gives the number of the unit that holds a moment, `_begin` where a numbered unit
starts. Both are plain arithmetic, so counting the five-minute units since 1970 costs no more than counting two days.
"""

from __future__ import annotations

import calendar
from datetime import date
from enum import Enum
from typing import TYPE_CHECKING

from lamina.errors import BadSchedule, BadTime
from lamina.near_names import near_names
from lamina.timeline.interval import MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, Instant, Interval

if TYPE_CHECKING:
    from collections.abc import Iterator

_MONTHS_PER_YEAR = 12
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()


class Grain(Enum):
    """A unit of time on the UTC calendar, from the finest to the coarsest; there is no week."""

    FIVE_MINUTE = "five_minute"
    QUARTER_HOUR = "quarter_hour"
    HALF_HOUR = "half_hour"
    HOUR = "hour"
    DAY = "day"
    MONTH = "month"
    YEAR = "year"

    @property
    def smallest_micros(self) -> int:
        """The length of the shortest unit of this grain."""
        return _SMALLEST_MICROS[self]

    @property
    def calendar_months(self) -> int:
        """How many months one unit has; 0 for units of fixed length."""
        return _CALENDAR_MONTHS.get(self, 0)

    @classmethod
    def from_name(cls, name: str) -> Grain:
        """The grain of that name, in any case.

        >>> Grain.from_name("Quarter_Hour")
        <Grain.QUARTER_HOUR: 'quarter_hour'>
        """
        wanted = name.strip().lower()
        by_name = {grain.value: grain for grain in cls}
        if wanted in by_name:
            return by_name[wanted]
        near = near_names(wanted, by_name)
        choices = ", ".join(f"`{known}`" for known in by_name)
        raise BadSchedule(
            f"`{name}` is not an interval unit",
            hint=f"Did you mean `{near[0]}`? The units are {choices}" if near else f"The units are {choices}",
        )

    @classmethod
    def largest_within(cls, micros: int) -> Grain:
        """The coarsest grain whose shortest unit is not longer than this; the finest grain when none is."""
        return max((grain for grain in cls if grain.smallest_micros <= micros), key=_length, default=cls.FIVE_MINUTE)

    def is_coarser_than(self, other: Grain) -> bool:
        """Whether units of this grain are longer than units of the other."""
        return self.smallest_micros > other.smallest_micros

    def floor(self, instant: Instant) -> Instant:
        """The start of the unit that holds the instant."""
        return self._begin(self._index(instant))

    def ceil(self, instant: Instant) -> Instant:
        """The first unit boundary at or after the instant."""
        floor = self.floor(instant)
        return floor if floor == instant else self.next(instant)

    def next(self, instant: Instant) -> Instant:
        """The first unit boundary after the instant."""
        return self._begin(self._index(instant) + 1)

    def is_aligned(self, instant: Instant) -> bool:
        """Whether the instant is a unit boundary."""
        return self.floor(instant) == instant

    def add(self, instant: Instant, count: int) -> Instant:
        """The instant moved by so many units, back when negative.

        Boundaries move to boundaries. Any other instant keeps its place within the unit; months and years keep the day
        of the month, or take the month's last day when it is shorter.
        """
        if not self.calendar_months:
            return instant.plus(count * self.smallest_micros)
        month = _month_number(instant) + count * self.calendar_months
        first = _month_start(month)
        days = min(instant.to_datetime().day, calendar.monthrange(*_year_and_month(month))[1]) - 1
        return first.plus(days * MICROS_PER_DAY + instant.micros % MICROS_PER_DAY)

    def count(self, interval: Interval) -> int:
        """How many whole units lie inside the interval."""
        first = self._index(interval.start)
        if self._begin(first) != interval.start:
            first += 1
        return max(0, self._index(interval.end) - first)

    def units(self, interval: Interval) -> Iterator[Interval]:
        """The whole units inside the interval, one after the other."""
        total = self.count(interval)
        if not total:
            return
        start = self.ceil(interval.start)
        index = self._index(start)
        for number in range(index + 1, index + total + 1):
            end = self._begin(number)
            yield Interval(start, end)
            start = end

    def split(self, interval: Interval, size: int) -> Iterator[Interval]:
        """Cut the interval at unit boundaries into pieces that touch at most `size` units each.

        The pieces make up the whole interval: where it starts or ends inside a unit, so does the first or last piece.
        """
        if size < 1:
            raise ValueError(f"a piece holds at least one unit, not {size}")
        start = interval.start
        index = self._index(start)
        last = self._index(interval.end)
        while index + size <= last:
            index += size
            end = self._begin(index)
            yield Interval(start, end)
            start = end
        if start < interval.end:
            yield Interval(start, interval.end)

    def _index(self, instant: Instant) -> int:
        """The number of the unit that holds the instant."""
        if not self.calendar_months:
            return instant.micros // self.smallest_micros
        return _month_number(instant) // self.calendar_months

    def _begin(self, index: int) -> Instant:
        """Where the unit with that number starts."""
        if not self.calendar_months:
            return Instant(index * self.smallest_micros)
        return _month_start(index * self.calendar_months)


_SMALLEST_MICROS = {
    Grain.FIVE_MINUTE: 5 * MICROS_PER_MINUTE,
    Grain.QUARTER_HOUR: 15 * MICROS_PER_MINUTE,
    Grain.HALF_HOUR: 30 * MICROS_PER_MINUTE,
    Grain.HOUR: MICROS_PER_HOUR,
    Grain.DAY: MICROS_PER_DAY,
    Grain.MONTH: 28 * MICROS_PER_DAY,
    Grain.YEAR: 365 * MICROS_PER_DAY,
}
_CALENDAR_MONTHS = {Grain.MONTH: 1, Grain.YEAR: _MONTHS_PER_YEAR}


def _length(grain: Grain) -> int:
    return grain.smallest_micros


def _month_number(instant: Instant) -> int:
    """Months since the year 0."""
    moment = instant.to_datetime()
    return moment.year * _MONTHS_PER_YEAR + moment.month - 1


def _year_and_month(month_number: int) -> tuple[int, int]:
    year, month = divmod(month_number, _MONTHS_PER_YEAR)
    return year, month + 1


def _month_start(month_number: int) -> Instant:
    year, month = _year_and_month(month_number)
    if not 1 <= year <= 9999:
        raise BadTime("a time lies outside the years 1 to 9999", hint="Use a time inside these years")
    return Instant((date(year, month, 1).toordinal() - _EPOCH_ORDINAL) * MICROS_PER_DAY)
