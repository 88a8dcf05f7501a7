"""Moments relative to the interval being computed, expressions of time made of them, and what a comparison bounds."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from sqlglot import exp

from lamina.sql.lineage.input_windows import Base, InputWindow, Offset

SECOND = 1_000_000
DAY = 86_400 * SECOND

TimeType: TypeAlias = Literal["date", "timestamp", "string", "unknown"]
TimeKind: TypeAlias = Literal["date", "timestamp", "day text", "midnight text", "text", "unknown"]

_SHORTEST_MONTH, _LONGEST_MONTH = 28 * DAY, 31 * DAY
# Months added to two moments take them equally far, give or take these days: lengths of months, leap days, month ends.
_MONTH_SLACK = 5 * DAY
_MICROS = {
    "microsecond": 1,
    "millisecond": 1000,
    "second": SECOND,
    "minute": 60 * SECOND,
    "hour": 3600 * SECOND,
    "day": DAY,
    "dd": DAY,
    "week": 7 * DAY,
}
_MONTHS = {"month": 1, "mon": 1, "mm": 1, "quarter": 3, "year": 12, "yyyy": 12, "yy": 12}
_WIDTH_OF_MONTHS = {1: 31 * DAY, 3: 92 * DAY, 12: 366 * DAY}
_MONTHS_OF_WIDTH = {width: months for months, width in _WIDTH_OF_MONTHS.items()}
_VARIABLE = re.compile(r"(start|end)_(dt|dtntz|date|ds|ts|tstz)", re.IGNORECASE)
_VARIABLE_KINDS: dict[str, TimeKind] = {"ds": "day text", "date": "date", "ts": "text", "tstz": "text"}
_DAY_FORMATS = frozenset({"%Y-%m-%d", "%Y-%mstrict-%dstrict"})
_CAST_TYPES: dict[object, TimeType] = {
    exp.DType.DATE: "date",
    exp.DType.TIMESTAMP: "timestamp",
    exp.DType.TIMESTAMPTZ: "timestamp",
    exp.DType.TIMESTAMPLTZ: "timestamp",
    exp.DType.TIMESTAMPNTZ: "timestamp",
    exp.DType.TEXT: "string",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """What a time is compared with: a point between two moments, None where that end is not known.

    Text is compared as text or cast to the type of the other side, so its form counts: `day text` has no time of day,
    `midnight text` and `text` have one. `unknown` is the value of a column that may have any type.
    """

    kind: TimeKind
    low: Offset | None
    high: Offset | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformation:
    """A function that gives its argument another type, rounded down to a multiple of `width` micros if not zero."""

    argument: exp.Expr
    type: TimeType
    width: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """An addition of months and micros to a time; `type` is what the time is turned into first, None as it is."""

    argument: exp.Expr
    type: TimeType | None
    months: int
    micros: int


def _moved(offset: Offset | None, micros: int) -> Offset | None:
    return None if offset is None else replace(offset, micros=offset.micros + micros)


# --- expressions -----------------------------------------------------------------------------------------------------
def time_type(text: str | None) -> TimeType | None:
    """What counts of a Spark type; None for one that is not compared with times as such."""
    if text is None:
        return "unknown"
    name = re.split(r"[(\s]", text.strip().lower())[0]
    if name in {"string", "varchar", "char"}:
        return "string"
    if name == "date":
        return "date"
    return "timestamp" if name in {"timestamp", "timestamp_ntz", "timestamp_ltz"} else None


def read_transformation(node: exp.Expr) -> Transformation | None:
    """Casts to date, timestamp and text, `to_date`, `date_trunc`, `trunc`, and `date_format` that gives days."""
    found: tuple[TimeType, int] | None = None
    if isinstance(node, exp.Cast) and not node.args.get("format"):
        type_ = _CAST_TYPES.get(node.to.this)
        found = None if type_ is None else (type_, DAY if type_ == "date" else 0)
    elif isinstance(node, exp.TsOrDsToDate):
        is_known = node.args.get("format") is None or node.args["format"].name in _DAY_FORMATS
        found = ("date", DAY) if is_known else None
    elif isinstance(node, exp.TimeToStr):
        found = ("string", DAY) if node.args["format"].name in _DAY_FORMATS else None
    elif isinstance(node, exp.TimeStrToTime) and not node.args.get("zone"):
        found = ("timestamp", 0)
    elif isinstance(node, (exp.TimestampTrunc, exp.DateTrunc)) and not node.args.get("zone"):
        unit = node.args["unit"].name.lower()
        width = _WIDTH_OF_MONTHS[_MONTHS[unit]] if unit in _MONTHS else _MICROS.get(unit)
        if width is not None:
            # `trunc` gives a date, `date_trunc` a timestamp.
            found = ("date", max(width, DAY)) if isinstance(node, exp.DateTrunc) else ("timestamp", width)
    return None if found is None else Transformation(argument=node.this, type=found[0], width=found[1])


def read_shift(node: exp.Expr) -> Shift | None:
    """Plus and minus an INTERVAL or a number of days, `date_add`, `date_sub`, `add_months` and `timestampadd`."""
    argument, sign = node.this, 1
    type_: TimeType | None = None
    span: tuple[int, int] | None = None
    if isinstance(node, exp.TsOrDsAdd):
        type_, span = "date", _span(_number(node.expression), node.args.get("unit"))
    elif isinstance(node, exp.AddMonths):
        type_, span = "date", _span(_number(node.expression), exp.var("month"))
    elif isinstance(node, exp.TimestampAdd):
        type_, span = "timestamp", _span(_number(node.expression), node.args.get("unit"))
    elif isinstance(node, (exp.Add, exp.Sub)):
        span = _interval(node.expression)
        sign = -1 if isinstance(node, exp.Sub) else 1
        if span is None and isinstance(node, exp.Add):
            argument, span = node.expression, _interval(node.this)
        if span is None and (days := _number(node.expression)) is not None:
            argument, type_, span = node.this, "date", (0, days * DAY)
    if span is None:
        return None
    return Shift(argument=argument, type=type_, months=sign * span[0], micros=sign * span[1])


def _number(node: exp.Expr | None) -> int | None:
    if isinstance(node, exp.Literal):
        return int(node.this) if re.fullmatch(r"[+-]?[0-9]{1,18}", node.this) else None
    if isinstance(node, exp.Mul):
        one, other = _number(node.this), _number(node.expression)
        return None if one is None or other is None else one * other
    inner = _number(node.this) if isinstance(node, (exp.Neg, exp.Paren)) else None
    return -inner if inner is not None and isinstance(node, exp.Neg) else inner


def _span(count: int | None, unit: exp.Expr | None) -> tuple[int, int] | None:
    """Months and micros of so many units."""
    name = unit.name.lower() if isinstance(unit, exp.Var) else ""
    name = name if name in _MICROS or name in _MONTHS else name.removesuffix("s")
    if count is None or (name not in _MICROS and name not in _MONTHS):
        return None
    return (count * _MONTHS[name], 0) if name in _MONTHS else (0, count * _MICROS[name])


def _interval(node: exp.Expr) -> tuple[int, int] | None:
    """Months and micros of an INTERVAL, or of a sum of them."""
    if isinstance(node, exp.Interval):
        return _span(_number(node.this), node.args.get("unit"))
    if isinstance(node, exp.Add):
        one, other = _interval(node.this), _interval(node.expression)
        return None if one is None or other is None else (one[0] + other[0], one[1] + other[1])
    inner = _interval(node.this) if isinstance(node, (exp.Neg, exp.Paren)) else None
    return (-inner[0], -inner[1]) if inner is not None and isinstance(node, exp.Neg) else inner


# --- arithmetic ------------------------------------------------------------------------------------------------------
def combined_width(one: int, other: int) -> int:
    """How far a time may be rounded down by one width and then by another."""
    # Units up to a day divide all longer ones; weeks do not divide months.
    return max(one, other) if one == other or min(one, other) <= DAY else one + other


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeArithmetic:
    """What can be said of values when intervals are always whole days, and when they are not."""

    is_day_aligned: bool

    def variable(self, name: str) -> Value | None:
        """The value of a variable such as `start_ds`; an `end` variable is the last microsecond of the interval."""
        found = _VARIABLE.fullmatch(name)
        if found is None:
            return None
        base: Base = "start" if found[1].lower() == "start" else "end"
        moment = Offset(base=base, micros=0 if base == "start" else -1)
        kind = _VARIABLE_KINDS.get(found[2].lower(), "timestamp")
        value = Value(kind=kind, low=moment, high=moment)
        return self.rounded(value, DAY) if kind in {"date", "day text"} else value

    def column(self, type_: TimeType, width: int, window: InputWindow) -> Value:
        """The value of a column whose rows lie in a window, rounded down to a width."""
        kind: TimeKind = type_ if type_ in {"date", "timestamp"} else "unknown"
        value = self.rounded(Value(kind=kind, low=window.lower, high=_moved(window.upper, -1)), width)
        return replace(value, high=self._floor(value.high, DAY, is_latest=True)) if kind == "date" else value

    def rounded(self, value: Value, width: int) -> Value:
        """The value rounded down to a multiple of the width."""
        return replace(value, low=self._floor(value.low, width), high=self._floor(value.high, width, is_latest=True))

    def transformed(self, value: Value, type_: TimeType, width: int) -> Value:
        """The value rounded down and cast."""
        kind: TimeKind = value.kind
        if type_ in {"date", "timestamp"}:
            kind = type_
        elif width == DAY or kind == "date":
            kind = "day text"
        elif kind == "timestamp":
            kind = "text"
        is_rounded = width <= DAY and value.kind in {"date", "day text", "midnight text"}
        return replace(value if is_rounded else self.rounded(value, width), kind=kind)

    def shifted(self, value: Value, months: int, micros: int) -> Value:
        """The value moved by months and then by micros."""
        has_time = micros % DAY != 0
        kind = value.kind
        if kind == "date" and has_time:
            kind = "timestamp"
        elif kind in {"day text", "midnight text"}:
            kind = "text" if has_time else "midnight text"
        return Value(
            kind=kind,
            low=_shift(value.low, months, micros, -_MONTH_SLACK),
            high=_shift(value.high, months, micros, _MONTH_SLACK),
        )

    def window(self, operator: type[exp.Expr], value: Value, type_: TimeType, width: int) -> InputWindow:
        """Where a time lies whose rounding, as a column of this type, compares like this with the value."""
        kind = "timestamp" if value.kind == "unknown" and type_ == "timestamp" else value.kind
        lower, upper = value.low, value.high
        if kind in {"text", "unknown"} and type_ != "timestamp":
            # Cast to a date, or compared with text in another form, such a value counts only by its day.
            lower = self._floor(lower, DAY)
        if kind == "unknown":
            upper = _moved(self._floor(upper, DAY, is_latest=True), DAY)
        elif operator is not exp.LT:
            # A day counts as its midnight, but text may be cast to a date, and then all of the day compares equal.
            # Where intervals are whole days the end of the day is as good, and easier to read.
            is_whole = self.is_day_aligned or type_ not in {"date", "timestamp"}
            is_day = is_whole and kind in {"date", "day text", "midnight text"}
            upper = _moved(upper, DAY if is_day else 1)
        elif kind in {"text", "midnight text"} and type_ not in {"date", "timestamp"}:
            # As text `2024-01-01` comes before `2024-01-01 00:00:00`, which is the same moment.
            upper = _moved(upper, 1)
        if operator in {exp.LT, exp.LTE}:
            lower = None
        if operator in {exp.GT, exp.GTE}:
            upper = None
        return _tidy(InputWindow(lower=lower, upper=self._ceiling(upper, width)))

    # --- windows -----------------------------------------------------------------------------------------------------
    def hull(self, one: InputWindow, other: InputWindow) -> InputWindow:
        """A window that holds both."""
        return InputWindow(
            lower=None if one.lower is None or other.lower is None else self._earlier(one.lower, other.lower),
            upper=None if one.upper is None or other.upper is None else self._later(one.upper, other.upper),
        )

    def intersection(self, one: InputWindow, other: InputWindow) -> InputWindow:
        """The window where both hold; of two bounds that cannot be compared the first stays."""
        lower, upper = one.lower or other.lower, one.upper or other.upper
        if lower is not None and other.lower is not None and self._is_ordered(lower, other.lower):
            lower = other.lower
        if upper is not None and other.upper is not None and self._is_ordered(other.upper, upper):
            upper = other.upper
        return InputWindow(lower=lower, upper=upper)

    def _is_ordered(self, one: Offset, other: Offset) -> bool:
        """Whether the first moment is certainly not after the second, whatever the interval."""
        months = other.months - one.months
        distance = months * (_SHORTEST_MONTH if months > 0 else _LONGEST_MONTH) + other.micros - one.micros
        if other.is_day and not one.is_day:
            distance -= DAY - 1
        if one.base == other.base:
            return distance >= 0
        # Whole days are at least one; months may shrink it to nothing, since they end on different days.
        is_plain = self.is_day_aligned and one.months == other.months == 0
        return one.base == "start" and distance + (DAY if is_plain else 0) >= 0

    def _earlier(self, one: Offset, other: Offset) -> Offset:
        """A moment that is not after either."""
        if self._is_ordered(one, other):
            return one
        if self._is_ordered(other, one):
            return other
        base: Base = "start" if "start" in {one.base, other.base} else "end"
        return Offset(
            base=base,
            months=min(one.months, other.months),
            micros=min(one.micros, other.micros),
            is_day=one.is_day or other.is_day,
        )

    def _later(self, one: Offset, other: Offset) -> Offset:
        """A moment that is not before either."""
        if self._is_ordered(one, other):
            return other
        if self._is_ordered(other, one):
            return one
        base: Base = "end" if "end" in {one.base, other.base} else "start"
        return Offset(base=base, months=max(one.months, other.months), micros=max(one.micros, other.micros))

    # --- rounding ----------------------------------------------------------------------------------------------------
    def _floor(self, offset: Offset | None, width: int, *, is_latest: bool = False) -> Offset | None:
        """A moment rounded down: the earliest that this can be, or the latest."""
        if offset is None or width == 0:
            return offset
        if self.is_day_aligned and width <= DAY:
            return replace(offset, micros=offset.micros // width * width)
        if is_latest:
            return offset
        if width == DAY or (offset.is_day and width < DAY):
            return replace(offset, is_day=True)
        if offset.micros == 0 and width in _MONTHS_OF_WIDTH:
            return replace(offset, months=offset.months - _MONTHS_OF_WIDTH[width])
        return _moved(offset, 1 - width)

    def _ceiling(self, offset: Offset | None, width: int) -> Offset | None:
        """Before which moment a time certainly lies whose rounding is before the given one."""
        if offset is None or width == 0:
            return offset
        if self.is_day_aligned and width <= DAY:
            return replace(offset, micros=-(-offset.micros // width) * width)
        return _moved(offset, width - 1)


def _shift(offset: Offset | None, months: int, micros: int, slack: int) -> Offset | None:
    if offset is None:
        return None
    is_certain = months == 0 or (offset.months == 0 and offset.micros == 0)
    total = offset.micros + micros + (0 if is_certain else slack)
    is_day = offset.is_day and micros % DAY == 0
    if offset.is_day and not is_day:
        # The day may have begun that long before.
        total -= DAY - 1
    return Offset(base=offset.base, months=offset.months + months, micros=total, is_day=is_day)


def _tidy(window: InputWindow) -> InputWindow:
    """A bound one microsecond inside of a whole second is moved onto it: no rows are lost, and people can read it."""
    lower, upper = window.lower, window.upper
    if lower is not None and lower.micros % SECOND == 1:
        lower = _moved(lower, -1)
    if upper is not None and upper.micros % SECOND == SECOND - 1:
        upper = _moved(upper, 1)
    return InputWindow(lower=lower, upper=upper)
