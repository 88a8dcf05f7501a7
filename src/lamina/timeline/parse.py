"""Times as people write them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import TypeAlias

from lamina.errors import BadTime
from lamina.timeline.grain import Grain
from lamina.timeline.interval import MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, Instant, Interval

TimeLike: TypeAlias = str | int | date | datetime

_EXAMPLES = (
    "Write a date like `2024-01-31`, a timestamp like `2024-01-31T06:00:00Z`, milliseconds since 1970, "
    "or words like `yesterday`, `3 days ago` or `in 2 hours`"
)
_ISO_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_COMPACT_DATE = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})")
_NUMBER = re.compile(r"-?[0-9]{1,18}")
_YEAR_OR_MONTH = re.compile(r"(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])?")
_DISTANCE = re.compile(r"(?:(in)\s+)?([0-9]{1,9}|an?)\s+(minute|hour|day|week|month|year)s?(?:\s+(ago))?")
_DURATION = re.compile(r"([0-9]{1,9})([mhdw])")

_MICROS_PER_MILLI = 1000
_TOO_LARGE = 10**18

_DAY_WORDS = {"yesterday": -1, "today": 0, "tomorrow": 1}
_CLOCK_UNITS = {"minute": MICROS_PER_MINUTE, "hour": MICROS_PER_HOUR}
_CALENDAR_UNITS = {"day": (Grain.DAY, 1), "week": (Grain.DAY, 7), "month": (Grain.MONTH, 1), "year": (Grain.YEAR, 1)}
_DURATION_UNITS = {"m": MICROS_PER_MINUTE, "h": MICROS_PER_HOUR, "d": MICROS_PER_DAY, "w": 7 * MICROS_PER_DAY}


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedTime:
    """A time as it was meant: a moment, or a whole day of which `instant` is the midnight it starts with."""

    instant: Instant
    is_date: bool


def parse_time(value: TimeLike, *, relative_to: Instant) -> ParsedTime:
    """Read a time; raise `BadTime` for what is none.

    Times without a zone are UTC. Eight digits are a date, any other number is milliseconds since 1970. Words that name
    days, weeks, months or years mean whole days.

    >>> parse_time("1 week ago", relative_to=Instant.parse_iso("2024-03-08T15:30:00Z"))
    ParsedTime(instant=Instant(2024-03-01T00:00:00Z), is_date=True)
    """
    match value:
        case datetime():
            return ParsedTime(instant=Instant.of(value), is_date=False)
        case date():
            return ParsedTime(instant=_midnight(value), is_date=True)
        case int() if not isinstance(value, bool) and abs(value) < _TOO_LARGE:
            return _parse_text(str(value), relative_to)
        case str():
            return _parse_text(value.strip(), relative_to)
        case _:
            raise BadTime(f"a value of type `{type(value).__name__}` cannot be read as a time", hint=_EXAMPLES)


def as_start(parsed: ParsedTime) -> Instant:
    """Where a range that starts with this time begins."""
    return parsed.instant


def as_end(parsed: ParsedTime) -> Instant:
    """Where a range that ends with this time stops: a day is included, a moment is not."""
    return parsed.instant.plus(MICROS_PER_DAY) if parsed.is_date else parsed.instant


def parse_range(start: TimeLike, end: TimeLike, relative_to: Instant) -> Interval:
    """The interval between two times; raise `BadTime` when it is empty or runs backwards."""
    first = as_start(parse_time(start, relative_to=relative_to))
    last = as_end(parse_time(end, relative_to=relative_to))
    if last <= first:
        relation = "is the same moment as" if last == first else "is before"
        raise BadTime(
            f"the end `{end}` {relation} the start `{start}`",
            hint="Choose an end after the start; a date given as end includes that whole day",
        )
    return Interval(first, last)


def parse_duration(text: str) -> int:
    """A length of time like `90m`, `24h`, `14d` or `2w`, in microseconds.

    >>> parse_duration("2w") == 14 * 24 * 3600 * 1_000_000
    True
    """
    found = _DURATION.fullmatch(text.strip().lower())
    if found is None:
        raise BadTime(
            f"`{text}` is not a length of time",
            hint="Write a whole number and a unit: `90m`, `24h`, `14d` or `2w`",
        )
    count, unit = found.groups()
    return int(count) * _DURATION_UNITS[unit]


def _parse_text(text: str, relative_to: Instant) -> ParsedTime:
    words = text.lower()
    if _NUMBER.fullmatch(words):
        return _parse_number(words)
    if words == "now":
        return ParsedTime(instant=relative_to, is_date=False)
    if words in _DAY_WORDS:
        return _whole_day(Grain.DAY.add(relative_to, _DAY_WORDS[words]))
    distance = _DISTANCE.fullmatch(words)
    if distance is not None:
        return _parse_distance(text, distance, relative_to)
    try:
        return ParsedTime(instant=Instant.parse_iso(text), is_date=_ISO_DATE.fullmatch(text) is not None)
    except BadTime as problem:
        raise _unreadable(text) from problem


def _parse_number(digits: str) -> ParsedTime:
    compact = _COMPACT_DATE.fullmatch(digits)
    if compact is not None:
        try:
            year, month, day = (int(part) for part in compact.groups())
            return ParsedTime(instant=_midnight(date(year, month, day)), is_date=True)
        except ValueError as problem:
            raise BadTime(f"`{digits}` is not a date of the calendar", hint=_EXAMPLES) from problem
    if _YEAR_OR_MONTH.fullmatch(digits):
        # Taken literally these are seconds after midnight of 1970-01-01, which nobody means.
        raise BadTime(f"`{digits}` is not a whole date", hint=f"Write the day too, like `{digits[:4]}-01-31`")
    return ParsedTime(instant=Instant(int(digits) * _MICROS_PER_MILLI), is_date=False)


def _parse_distance(text: str, distance: re.Match[str], relative_to: Instant) -> ParsedTime:
    ahead, number, unit, ago = distance.groups()
    if bool(ahead) == bool(ago):
        raise BadTime(f"`{text}` does not say in which direction", hint="Write `3 days ago` or `in 3 days`")
    count = int(number) if number.isdigit() else 1
    signed = count if ahead else -count
    if unit in _CLOCK_UNITS:
        return ParsedTime(instant=relative_to.plus(signed * _CLOCK_UNITS[unit]), is_date=False)
    grain, factor = _CALENDAR_UNITS[unit]
    return _whole_day(grain.add(relative_to, signed * factor))


def _whole_day(instant: Instant) -> ParsedTime:
    return ParsedTime(instant=Grain.DAY.floor(instant), is_date=True)


def _midnight(day: date) -> Instant:
    return Instant.of(datetime(day.year, day.month, day.day, tzinfo=timezone.utc))


def _unreadable(text: str) -> BadTime:
    return BadTime(f"`{text}` cannot be read as a time", hint=_EXAMPLES)
