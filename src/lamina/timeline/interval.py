"""Moments, half-open stretches of time, and sets of them.

Everything is UTC and counted in whole microseconds. A set is kept as its maximal ranges, so every operation costs
what the number of ranges costs, however many hours or days they hold.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, ClassVar

from lamina.errors import BadTime

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MICROS_PER_SECOND = 1_000_000
MICROS_PER_MINUTE = 60 * MICROS_PER_SECOND
MICROS_PER_HOUR = 60 * MICROS_PER_MINUTE
MICROS_PER_DAY = 24 * MICROS_PER_HOUR

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)
_FIRST_MICROS = (datetime.min.replace(tzinfo=timezone.utc) - _EPOCH) // _MICROSECOND
_LAST_MICROS = (datetime.max.replace(tzinfo=timezone.utc) - _EPOCH) // _MICROSECOND

_ISO = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]{1,9}))?)?"
    r"\s?(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Instant:
    """A moment in UTC, in microseconds since 1970-01-01, within the years 1 to 9999.

    The comparisons are written out, not generated, because sorting ranges is where planning spends its time.
    """

    micros: int

    def __post_init__(self) -> None:
        if not _FIRST_MICROS <= self.micros <= _LAST_MICROS:
            raise BadTime(
                "a time lies outside the years 1 to 9999",
                hint="Use a time inside these years; an inclusive end may be `9999-12-30` at most",
            )

    @classmethod
    def of(cls, moment: datetime) -> Instant:
        """The instant of a datetime; one without a zone is UTC."""
        aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)
        return cls((aware - _EPOCH) // _MICROSECOND)

    @classmethod
    def parse_iso(cls, text: str) -> Instant:
        """Read an ISO 8601 date or timestamp; without a zone it is UTC, digits beyond microseconds are dropped.

        >>> Instant.parse_iso("2024-01-01T02:00:00+02:00").isoformat()
        '2024-01-01T00:00:00Z'
        """
        found = _ISO.fullmatch(text)
        if found is None:
            raise _unreadable(text)
        year, month, day, hour, minute, second, fraction, zone = found.groups()
        try:
            wall = datetime(
                int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), tzinfo=timezone.utc
            )
            offset = _offset_micros(zone)
        except ValueError as problem:
            raise _unreadable(text) from problem
        micros_of_second = int(fraction[:6].ljust(6, "0")) if fraction else 0
        return cls((wall - _EPOCH) // _MICROSECOND + micros_of_second - offset)

    def to_datetime(self) -> datetime:
        """The same moment as an aware datetime in UTC."""
        return _EPOCH + timedelta(microseconds=self.micros)

    def isoformat(self) -> str:
        """ISO 8601 with `Z`, with a fraction only when there is one."""
        return self.to_datetime().replace(tzinfo=None).isoformat() + "Z"

    def plus(self, micros: int) -> Instant:
        """The instant so many microseconds later."""
        return Instant(self.micros + micros)

    def minus(self, micros: int) -> Instant:
        """The instant so many microseconds earlier."""
        return Instant(self.micros - micros)

    def __eq__(self, other: object) -> bool:
        return self.micros == other.micros if isinstance(other, Instant) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.micros)

    def __lt__(self, other: Instant) -> bool:
        return self.micros < other.micros

    def __le__(self, other: Instant) -> bool:
        return self.micros <= other.micros

    def __gt__(self, other: Instant) -> bool:
        return self.micros > other.micros

    def __ge__(self, other: Instant) -> bool:
        return self.micros >= other.micros

    def __str__(self) -> str:
        return self.isoformat()

    def __repr__(self) -> str:
        return f"Instant({self.isoformat()})"


FIRST_INSTANT = Instant(_FIRST_MICROS)
LAST_INSTANT = Instant(_LAST_MICROS)


def _offset_micros(zone: str | None) -> int:
    """How far a zone like `Z`, `+02`, `+0200` or `-05:30` is ahead of UTC."""
    if zone is None or zone in "Zz":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[3:].lstrip(":") or 0)
    if hours > 23 or minutes > 59:
        raise ValueError(zone)
    size = hours * MICROS_PER_HOUR + minutes * MICROS_PER_MINUTE
    return -size if zone[0] == "-" else size


def _unreadable(text: str) -> BadTime:
    return BadTime(
        f"`{text}` is not an ISO date or timestamp",
        hint="Write it like `2024-01-31`, `2024-01-31T06:00:00Z` or `2024-01-31 06:00:00+02:00`",
    )


@dataclass(frozen=True, slots=True, repr=False)
class Interval:
    """The time from `start` up to but not including `end`; never empty."""

    start: Instant
    end: Instant

    def __post_init__(self) -> None:
        if self.end.micros <= self.start.micros:
            raise BadTime(
                f"the time range from `{self.start}` to `{self.end}` is empty",
                hint="Choose an end after the start; a date given as end includes that whole day",
            )

    @classmethod
    def from_pair(cls, pair: Sequence[str]) -> Interval:
        """The interval that `to_pair` wrote."""
        start, end = pair
        return cls(Instant.parse_iso(start), Instant.parse_iso(end))

    def to_pair(self) -> tuple[str, str]:
        """Start and end as ISO text."""
        return self.start.isoformat(), self.end.isoformat()

    def contains(self, other: Instant | Interval) -> bool:
        """Whether a moment, or every moment of an interval, lies inside."""
        if isinstance(other, Instant):
            return self.start.micros <= other.micros < self.end.micros
        return self.start.micros <= other.start.micros and other.end.micros <= self.end.micros

    def overlaps(self, other: Interval) -> bool:
        """Whether both share a moment; touching ends do not count."""
        return self.start.micros < other.end.micros and other.start.micros < self.end.micros

    def intersect(self, other: Interval) -> Interval | None:
        """What both share, if anything."""
        if not self.overlaps(other):
            return None
        return Interval(max(self.start, other.start), min(self.end, other.end))

    def __str__(self) -> str:
        return f"[{self.start}, {self.end})"

    def __repr__(self) -> str:
        return f"Interval{self}"


@dataclass(frozen=True, slots=True, repr=False)
class Intervals:
    """A set of time: sorted ranges that neither overlap nor touch. Made by `Intervals.of`.

    >>> days = Intervals.from_pairs([("2024-01-02", "2024-01-03"), ("2024-01-01", "2024-01-02")])
    >>> days.to_pairs()
    (('2024-01-01T00:00:00Z', '2024-01-03T00:00:00Z'),)
    """

    EMPTY: ClassVar[Intervals]

    ranges: tuple[Interval, ...]

    @classmethod
    def of(cls, intervals: Iterable[Interval]) -> Intervals:
        """The set that holds all given intervals, in any order, overlapping or not."""
        return cls(tuple(_merged(sorted(intervals, key=_start_micros))))

    @classmethod
    def from_pairs(cls, pairs: Iterable[Sequence[str]]) -> Intervals:
        """The set that `to_pairs` wrote."""
        return cls.of(Interval.from_pair(pair) for pair in pairs)

    def to_pairs(self) -> tuple[tuple[str, str], ...]:
        """The ranges as pairs of ISO text."""
        return tuple(interval.to_pair() for interval in self.ranges)

    @property
    def is_empty(self) -> bool:
        """Whether the set holds no time at all."""
        return not self.ranges

    def span(self) -> Interval | None:
        """The smallest interval around the whole set, or None for the empty set."""
        return Interval(self.ranges[0].start, self.ranges[-1].end) if self.ranges else None

    def covers(self, interval: Interval) -> bool:
        """Whether every moment of the interval is in the set."""
        position = bisect_right(self.ranges, interval.start.micros, key=_start_micros)
        return position > 0 and interval.end.micros <= self.ranges[position - 1].end.micros

    def union(self, other: Intervals) -> Intervals:
        """What is in either set."""
        # Both halves are sorted already; Python's sort merges two sorted runs in linear time.
        return Intervals.of(self.ranges + other.ranges)

    def intersect(self, other: Intervals) -> Intervals:
        """What is in both sets."""
        shared: list[Interval] = []
        left, right = self.ranges, other.ranges
        i = j = 0
        while i < len(left) and j < len(right):
            common = left[i].intersect(right[j])
            if common is not None:
                shared.append(common)
            if left[i].end.micros <= right[j].end.micros:
                i += 1
            else:
                j += 1
        return Intervals(tuple(shared))

    def minus(self, other: Intervals) -> Intervals:
        """What is in this set and not in the other."""
        rest: list[Interval] = []
        holes = other.ranges
        first = 0
        for interval in self.ranges:
            start = interval.start
            while first < len(holes) and holes[first].end.micros <= start.micros:
                first += 1
            position = first
            while position < len(holes) and holes[position].start.micros < interval.end.micros:
                hole = holes[position]
                if start.micros < hole.start.micros:
                    rest.append(Interval(start, hole.start))
                start = hole.end
                position += 1
            # The last hole may reach into the next range, so it is looked at again.
            first = max(first, position - 1)
            if start.micros < interval.end.micros:
                rest.append(Interval(start, interval.end))
        return Intervals(tuple(rest))

    def __iter__(self) -> Iterator[Interval]:
        return iter(self.ranges)

    def __len__(self) -> int:
        return len(self.ranges)

    def __str__(self) -> str:
        return "{" + ", ".join(str(interval) for interval in self.ranges) + "}"

    def __repr__(self) -> str:
        return f"Intervals{self}"


def _start_micros(interval: Interval) -> int:
    return interval.start.micros


def _merged(ordered: Sequence[Interval]) -> Iterator[Interval]:
    """Join overlapping and touching intervals of a sequence sorted by start."""
    current: Interval | None = None
    for interval in ordered:
        if current is None:
            current = interval
        elif interval.start.micros > current.end.micros:
            yield current
            current = interval
        elif interval.end.micros > current.end.micros:
            current = Interval(current.start, interval.end)
    if current is not None:
        yield current


EMPTY = Intervals(())
Intervals.EMPTY = EMPTY
