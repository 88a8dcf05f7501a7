"""SQL values in Python, and the conversions between them that Spark would make."""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from math import isfinite
from typing import Union

from lamina.sql.macros.text import first_line, shortened


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """An SQL interval: whole months and a stretch of time."""

    months: int = 0
    time: timedelta = timedelta()

    def __neg__(self) -> Span:
        return Span(months=-self.months, time=-self.time)


Value = Union[None, bool, int, float, str, date, datetime, Span, "list[Value]"]


class NotConstant(ValueError):
    """The expression has no value before the query runs."""


MOST_DIGITS = 1000
LONGEST_TEXT = 1_000_000
_TOO_LARGE = 10**MOST_DIGITS


def bounded(value: Value) -> Value:
    """The value, if it is one that can be worked with; raises `NotConstant` for what is too large."""
    if isinstance(value, int) and abs(value) >= _TOO_LARGE:
        raise too_many_digits()
    if isinstance(value, float) and not isfinite(value):
        raise NotConstant(f"the result is {value}, which is no finite number")
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        raise too_long()
    return value


def too_many_digits() -> NotConstant:
    return NotConstant(f"the result has more than {MOST_DIGITS} digits")


def too_long() -> NotConstant:
    return NotConstant(f"the result has more than {LONGEST_TEXT} characters")


def is_true(value: Value) -> bool:
    """Whether a condition holds; NULL does not, and text must spell a boolean."""
    if value is None:
        return False
    return truth_of(value) if isinstance(value, str) else bool(value)


def number_of(text: str) -> int | float:
    """The number a text spells; raises `ValueError` otherwise."""
    if len(text) > MOST_DIGITS:
        raise too_many_digits()
    return int(text) if re.fullmatch(r"[+-]?\d+", text.strip()) else float(text)


_TIME = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?)?\s*(Z|UTC|[+-]\d{2}:\d{2})?"
)


def moment_of(value: Value) -> datetime:
    """A value as a moment in UTC."""
    if isinstance(value, str):
        return _read_moment(value)
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=timezone.utc)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=timezone.utc)
    raise NotConstant(f"`{value}` is not a time")


def _read_moment(text: str) -> datetime:
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise NotConstant(f"`{shortened(text)}` is not a time written like `2024-01-31 12:30:00`")
    *numbers, fraction, zone = match.groups()
    year, month, day, hour, minute, second = (int(number or 0) for number in numbers)
    offset = timedelta()
    if zone and zone[0] in "+-":
        offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:])) * (-1 if zone[0] == "-" else 1)
    micros = int((fraction or "0").ljust(6, "0"))
    try:
        return datetime(year, month, day, hour, minute, second, micros, tzinfo=timezone.utc) - offset
    except ValueError as error:
        raise NotConstant(f"`{shortened(text)}` is not a time: {first_line(error)}") from error


def day_of(value: Value) -> date:
    """A value as a day."""
    return moment_of(value).date()


def text_of_value(value: Value) -> str:
    """A value as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat(sep=" ") if isinstance(value, datetime) else str(value)


def align(left: Value, right: Value) -> tuple[Value, Value]:
    """Two values brought to one type the way Spark compares them."""
    if isinstance(left, datetime) or isinstance(right, datetime):
        return moment_of(left), moment_of(right)
    if isinstance(left, date) or isinstance(right, date):
        return day_of(left), day_of(right)
    for one, other in ((left, right), (right, left)):
        if isinstance(one, str) and isinstance(other, (int, float)):
            try:
                number: Value = truth_of(one) if isinstance(other, bool) else number_of(one)
            except NotConstant:
                raise
            except ValueError as error:
                raise NotConstant(f"text `{shortened(one)}` cannot be compared with the number {other}") from error
            return (number, other) if one is left else (other, number)
    return left, right


def truth_of(text: str) -> bool:
    """The boolean a text spells."""
    word = text.strip().lower()
    if word in {"true", "t", "yes", "y", "1"}:
        return True
    if word in {"false", "f", "no", "n", "0"}:
        return False
    raise NotConstant(f"`{shortened(text)}` is text, not a condition")


def arithmetic(value: Value) -> int | float:
    """A value as a number."""
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, str):
        try:
            return number_of(value)
        except NotConstant:
            raise
        except ValueError as error:
            raise NotConstant(f"`{shortened(text_of_value(value))}` is not a number") from error
    raise NotConstant(f"`{shortened(text_of_value(value))}` is not a number")


_UNIT_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_UNIT_TIMES = {
    "MICROSECOND": timedelta(microseconds=1),
    "MILLISECOND": timedelta(milliseconds=1),
    "SECOND": timedelta(seconds=1),
    "MINUTE": timedelta(minutes=1),
    "HOUR": timedelta(hours=1),
    "DAY": timedelta(days=1),
    "WEEK": timedelta(weeks=1),
}


def span_of(amount: Value, unit: str) -> Span:
    """An amount of a unit of time."""
    name = unit.upper().rstrip("S")
    number = arithmetic(amount)
    if name in _UNIT_MONTHS:
        return Span(months=int(number) * _UNIT_MONTHS[name])
    if name in _UNIT_TIMES:
        return Span(time=number * _UNIT_TIMES[name])
    raise NotConstant(f"`{unit}` is not a unit of time")


def shift(value: Value, span: Span) -> Value:
    """A moment, day or span moved by a span; months end on their last day at the latest."""
    if isinstance(value, Span):
        return Span(months=value.months + span.months, time=value.time + span.time)
    moved = value if isinstance(value, date) else moment_of(value)
    if span.months:
        total = moved.year * 12 + moved.month - 1 + span.months
        year, month = divmod(total, 12)
        moved = moved.replace(year=year, month=month + 1, day=min(moved.day, monthrange(year, month + 1)[1]))
    if not isinstance(moved, datetime) and span.time % timedelta(days=1):
        moved = moment_of(moved)
    return moved + span.time
