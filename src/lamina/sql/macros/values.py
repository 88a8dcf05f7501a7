"""SQL expressions without columns, evaluated in Python with the meaning they have in SQL; and values written as SQL."""

from __future__ import annotations

import operator
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from functools import reduce
from math import ceil, floor, isfinite
from typing import TYPE_CHECKING, cast

from sqlglot import exp
from sqlglot.errors import SqlglotError

from lamina.sql.depth import depth_of
from lamina.sql.macros.parse import parse
from lamina.sql.macros.patterns import contains, is_like
from lamina.sql.macros.scalars import (
    LONGEST_TEXT,
    MOST_DIGITS,
    NotConstant,
    Span,
    Value,
    align,
    arithmetic,
    bounded,
    day_of,
    is_true,
    moment_of,
    number_of,
    shift,
    span_of,
    text_of_value,
    too_long,
    too_many_digits,
    truth_of,
)
from lamina.sql.macros.text import first_line, shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Sequence


DEEPEST_VALUE = 150
"""How deep an expression may be nested that is computed here."""


def evaluate(text: str, dialect: str) -> Value:
    """The value of an SQL expression; raises `NotConstant` when it has none without data."""
    try:
        expression = parse(text, dialect)
    except SqlglotError as error:
        raise NotConstant(first_line(error)) from error
    if depth_of(expression) > DEEPEST_VALUE:
        raise NotConstant(f"it is nested more than {DEEPEST_VALUE} deep")
    return value_of(expression)


def value_of(expression: exp.Expr) -> Value:
    """The value of a parsed expression; raises `NotConstant` when it has none without data."""
    for class_ in type(expression).__mro__:
        handler = _HANDLERS.get(class_)
        if handler is not None:
            try:
                return bounded(handler(expression))
            except NotConstant:
                raise
            except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
                raise NotConstant(f"`{_shown(expression)}` fails: {first_line(error)}") from error
    if isinstance(expression, exp.Column):
        raise NotConstant(f"`{_shown(expression)}` is a column, its value is only known while the query runs")
    raise NotConstant(f"`{_shown(expression)}` can only be computed while the query runs")


def _shown(expression: exp.Expr) -> str:
    try:
        return shortened(expression.sql())
    except (SqlglotError, ValueError):
        # Such as a number of more digits than Python writes.
        return "…"


def literal(value: object, dialect: str) -> str:
    """A Python value as SQL text: text quoted, numbers and booleans plain, lists as items with commas between them."""
    if isinstance(value, (list, tuple)):
        return ", ".join(list_items(value, dialect))
    if isinstance(value, Span):
        raise NotConstant("an interval of time cannot be written as a value")
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return repr(value) if isfinite(value) else exp.cast(exp.Literal.string(str(value)), "DOUBLE").sql(dialect)
    if isinstance(value, datetime):
        type_ = "TIMESTAMPNTZ" if value.tzinfo is None else "TIMESTAMPTZ"
        return exp.cast(exp.Literal.string(value.isoformat(sep=" ")), type_).sql(dialect)
    if isinstance(value, date):
        return exp.cast(exp.Literal.string(value.isoformat()), "DATE").sql(dialect)
    return exp.convert(value).sql(dialect)


def list_items(values: Iterable[object], dialect: str) -> list[str]:
    """The items of a list as SQL texts; a list among them becomes `(a, b)`."""
    return [
        f"({literal(item, dialect)})" if isinstance(item, (list, tuple)) else literal(item, dialect) for item in values
    ]


# --- reading values --------------------------------------------------------------------------------------------------
def _literal(node: exp.Expr) -> Value:
    return cast("str", node.this) if node.args.get("is_string") else number_of(node.this)


# --- operators -------------------------------------------------------------------------------------------------------
def _comparing(compare: Callable[[Value, Value], bool]) -> Callable[[exp.Expr], Value]:
    def handle(node: exp.Expr) -> Value:
        left, right = value_of(node.this), value_of(node.expression)
        return None if left is None or right is None else compare(*align(left, right))

    return handle


def _equal(left: Value, right: Value) -> bool | None:
    if left is None or right is None:
        return None
    one, other = align(left, right)
    return one == other


def _strict(compute: Callable[..., Value], *keys: str) -> Callable[[exp.Expr], Value]:
    """A function of some arguments that is NULL when one of them is."""

    def handle(node: exp.Expr) -> Value:
        values = [value_of(node.args[key]) for key in keys if isinstance(node.args.get(key), exp.Expr)]
        return None if any(value is None for value in values) else compute(*values)

    return handle


def _add(left: Value, right: Value, sign: int = 1) -> Value:
    if isinstance(left, Span) and sign == 1:
        left, right = right, left
    if isinstance(right, Span):
        return shift(left, right if sign == 1 else -right)
    if isinstance(left, date) and isinstance(right, int):
        return left + timedelta(days=sign * right)
    if isinstance(left, date) and isinstance(right, date):
        return (day_of(left) - day_of(right)).days
    one, other = arithmetic(left), arithmetic(right)
    return one + sign * other


def _divisor(value: Value) -> int | float:
    number = arithmetic(value)
    if number == 0:
        raise NotConstant("it divides by zero")
    return number


def _divide(left: Value, right: Value) -> Value:
    one, other = arithmetic(left), _divisor(right)
    if isinstance(one, int) and isinstance(other, int) and one % other == 0:
        return one // other
    return one / other


def _divide_whole(left: Value, right: Value) -> Value:
    one, other = arithmetic(left), _divisor(right)
    whole = abs(one) // abs(other)
    return int(whole if (one < 0) == (other < 0) else -whole)


def _remainder(left: Value, right: Value) -> Value:
    one, other = arithmetic(left), _divisor(right)
    rest = abs(one) % abs(other)
    return rest if one >= 0 else -rest


def _interval(node: exp.Expr) -> Value:
    if node.this is None or not isinstance(node.args.get("unit"), exp.Var):
        raise NotConstant(f"`{node.sql()}` is not an interval of one unit")
    return span_of(value_of(node.this), node.args["unit"].name)


def _moving(sign: int) -> Callable[[exp.Expr], Value]:
    def handle(node: exp.Expr) -> Value:
        base, amount = value_of(node.this), value_of(node.expression)
        if base is None or amount is None:
            return None
        unit = node.args.get("unit")
        span = amount if isinstance(amount, Span) else span_of(amount, unit.name if unit else "DAY")
        start: Value = day_of(base) if isinstance(node, exp.TsOrDsAdd) or not isinstance(base, datetime) else base
        return shift(start, span if sign == 1 else -span)

    return handle


def _and(node: exp.Expr) -> Value:
    left = value_of(node.this)
    if left is not None and not is_true(left):
        return False
    right = value_of(node.expression)
    if right is not None and not is_true(right):
        return False
    return None if left is None or right is None else True


def _or(node: exp.Expr) -> Value:
    left = value_of(node.this)
    if is_true(left):
        return True
    right = value_of(node.expression)
    if is_true(right):
        return True
    return None if left is None or right is None else False


def _not(node: exp.Expr) -> Value:
    value = value_of(node.this)
    return None if value is None else not is_true(value)


def _is(node: exp.Expr) -> Value:
    value, expected = value_of(node.this), value_of(node.expression)
    return value is None if expected is None else value is not None and is_true(value) == is_true(expected)


def _in(node: exp.Expr) -> Value:
    value = value_of(node.this)
    if node.args.get("query") is not None:
        raise NotConstant("a subquery can only be computed while the query runs")
    field = node.args.get("field") or node.args.get("unnest")
    choices: Sequence[Value]
    if field is not None:
        found = value_of(field)
        choices = found if isinstance(found, list) else [found]
    else:
        choices = [value_of(item) for item in node.expressions]
    if value is None:
        return None
    verdicts = [_equal(value, choice) for choice in choices]
    if any(verdicts):
        return True
    return None if None in verdicts else False


def _between(node: exp.Expr) -> Value:
    value, low, high = (value_of(node.args[key]) for key in ("this", "low", "high"))
    if value is None or low is None or high is None:
        return None
    return _at_most(*align(low, value)) and _at_most(*align(value, high))


def _at_most(left: Value, right: Value) -> bool:
    return bool(operator.le(left, right))  # type: ignore[arg-type]  # unlike values end as NotConstant


def _like(*, is_caseless: bool) -> Callable[[Value, Value], Value]:
    return lambda value, pattern: is_like(text_of_value(value), text_of_value(pattern), is_caseless=is_caseless)


def _regexp_like(value: Value, pattern: Value) -> Value:
    if not isinstance(value, str) or not isinstance(pattern, str):
        raise NotConstant(f"`{text_of_value(value)}` and `{text_of_value(pattern)}` must both be text")
    return contains(value, pattern)


def _power(base: Value, exponent: Value) -> Value:
    number, times = arithmetic(base), arithmetic(exponent)
    if isinstance(number, int) and isinstance(times, int) and number.bit_length() * times > 4 * MOST_DIGITS:
        raise too_many_digits()
    result = number**times
    if isinstance(result, complex):
        raise NotConstant(f"{number} to the power of {times} is no number")
    return cast("int | float", result)


def _replace(value: Value, old: Value, new: Value = "") -> Value:
    text, part, other = text_of_value(value), text_of_value(old), text_of_value(new)
    if len(text) + text.count(part) * len(other) > LONGEST_TEXT:
        raise too_long()
    return text.replace(part, other)


def _case(node: exp.Expr) -> Value:
    subject = node.args.get("this")
    for branch in node.args["ifs"]:
        matched = _equal(value_of(subject), value_of(branch.this)) if subject else is_true(value_of(branch.this))
        if matched:
            return value_of(branch.args["true"])
    default = node.args.get("default")
    return value_of(default) if default else None


def _if(node: exp.Expr) -> Value:
    branch = node.args["true"] if is_true(value_of(node.this)) else node.args.get("false")
    return value_of(branch) if branch else None


def _coalesce(node: exp.Expr) -> Value:
    return next(
        (value for value in (value_of(item) for item in [node.this, *node.expressions]) if value is not None), None
    )


def _null_if(node: exp.Expr) -> Value:
    value = value_of(node.this)
    return None if _equal(value, value_of(node.expression)) else value


def _cast(node: exp.Expr) -> Value:
    value = value_of(node.this)
    if value is None:
        return None
    to = cast("exp.DataType", node.args["to"])
    for types, convert in _CASTS:
        if to.this in types:
            try:
                return convert(value)
            except NotConstant:
                raise
            except (ValueError, TypeError, OverflowError) as error:
                raise NotConstant(f"`{shortened(text_of_value(value))}` cannot be read as {to.sql()}") from error
    raise NotConstant(f"a cast to {to.sql()} can only be computed while the query runs")


_CASTS: tuple[tuple[Container[object], Callable[[Value], Value]], ...] = (
    (exp.DataType.INTEGER_TYPES, lambda value: int(arithmetic(value))),
    (exp.DataType.REAL_TYPES, lambda value: float(arithmetic(value))),
    (exp.DataType.TEXT_TYPES, text_of_value),
    ({exp.DataType.Type.BOOLEAN}, lambda value: truth_of(value) if isinstance(value, str) else is_true(value)),
    ({exp.DataType.Type.DATE, exp.DataType.Type.DATE32}, day_of),
    (exp.DataType.TEMPORAL_TYPES, moment_of),
)


# --- functions -------------------------------------------------------------------------------------------------------
def _substring(text: Value, start: Value, length: Value = None) -> Value:
    whole, first = text_of_value(text), int(arithmetic(start))
    begin = first - 1 if first > 0 else max(len(whole) + first, 0) if first else 0
    return whole[begin : begin + int(arithmetic(length))] if length is not None else whole[begin:]


def _round(value: Value, decimals: Value = 0) -> Value:
    places = int(arithmetic(decimals))
    rounded = Decimal(str(arithmetic(value))).quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP)
    return int(rounded) if places <= 0 else float(rounded)


def _split_trim(node: exp.Expr) -> Value:
    value = value_of(node.this)
    if value is None:
        return None
    signs = text_of_value(value_of(node.expression)) if node.expression else " "
    position = str(node.args.get("position") or "BOTH").upper()
    text = text_of_value(value)
    if position != "TRAILING":
        text = text.lstrip(signs)
    return text.rstrip(signs) if position != "LEADING" else text


def _all_of(node: exp.Expr) -> list[Value]:
    first = [value_of(node.this)] if isinstance(node.this, exp.Expr) else []
    return first + [value_of(item) for item in node.expressions]


def _folding(fold: Callable[[Value, Value], bool]) -> Callable[[exp.Expr], Value]:
    def handle(node: exp.Expr) -> Value:
        values = [value for value in _all_of(node) if value is not None]
        return reduce(lambda best, value: value if fold(*align(value, best)) else best, values) if values else None

    return handle


def _concat(node: exp.Expr) -> Value:
    values = _all_of(node)
    return None if any(value is None for value in values) else "".join(text_of_value(value) for value in values)


def _concat_ws(node: exp.Expr) -> Value:
    separator, *values = _all_of(node)
    return (
        None
        if separator is None
        else text_of_value(separator).join(text_of_value(value) for value in values if value is not None)
    )


def _contains_item(items: Value, item: Value) -> Value:
    return any(_equal(candidate, item) for candidate in cast("list[Value]", items))


def _list(node: exp.Expr) -> Value:
    return [value_of(item) for item in node.expressions]


def _size(value: Value) -> Value:
    return len(cast("list[Value]", value))


def _same(node: exp.Expr) -> bool:
    left, right = value_of(node.this), value_of(node.expression)
    return left is right if left is None or right is None else bool(_equal(left, right))


_HANDLERS: dict[type, Callable[[exp.Expr], Value]] = {
    exp.Literal: _literal,
    exp.Boolean: lambda node: bool(node.this),
    exp.Null: lambda _: None,
    exp.Paren: lambda node: value_of(node.this),
    exp.TsOrDsToDate: _strict(day_of, "this"),
    exp.Date: _strict(day_of, "this"),
    exp.Cast: _cast,
    exp.Interval: _interval,
    exp.Array: _list,
    exp.Tuple: _list,
    # logic
    exp.And: _and,
    exp.Or: _or,
    exp.Not: _not,
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    exp.Case: _case,
    exp.If: _if,
    exp.Coalesce: _coalesce,
    exp.Nullif: _null_if,
    # comparisons
    exp.EQ: _comparing(operator.eq),
    exp.NEQ: _comparing(operator.ne),
    exp.GT: _comparing(operator.gt),  # type: ignore[arg-type]  # unlike values end as NotConstant
    exp.GTE: _comparing(operator.ge),  # type: ignore[arg-type]  # as above
    exp.LT: _comparing(operator.lt),  # type: ignore[arg-type]  # as above
    exp.LTE: _comparing(operator.le),  # type: ignore[arg-type]  # as above
    exp.NullSafeEQ: _same,
    exp.NullSafeNEQ: lambda node: not _same(node),
    exp.Like: _strict(_like(is_caseless=False), "this", "expression"),
    exp.ILike: _strict(_like(is_caseless=True), "this", "expression"),
    exp.RegexpLike: _strict(_regexp_like, "this", "expression"),
    # arithmetic
    exp.Add: _strict(_add, "this", "expression"),
    exp.Sub: _strict(lambda left, right: _add(left, right, -1), "this", "expression"),
    exp.Mul: _strict(lambda left, right: arithmetic(left) * arithmetic(right), "this", "expression"),
    exp.Div: _strict(_divide, "this", "expression"),
    exp.IntDiv: _strict(_divide_whole, "this", "expression"),
    exp.Mod: _strict(_remainder, "this", "expression"),
    exp.Pow: _strict(_power, "this", "expression"),
    exp.Neg: _strict(lambda value: -value if isinstance(value, Span) else -arithmetic(value), "this"),
    exp.Abs: _strict(lambda value: abs(arithmetic(value)), "this"),
    exp.Round: _strict(_round, "this", "decimals"),
    exp.Floor: _strict(lambda value: floor(arithmetic(value)), "this"),
    exp.Ceil: _strict(lambda value: ceil(arithmetic(value)), "this"),
    exp.Least: _folding(operator.lt),  # type: ignore[arg-type]  # as above
    exp.Greatest: _folding(operator.gt),  # type: ignore[arg-type]  # as above
    # text
    exp.DPipe: _strict(lambda left, right: text_of_value(left) + text_of_value(right), "this", "expression"),
    exp.Concat: _concat,
    exp.ConcatWs: _concat_ws,
    exp.Lower: _strict(lambda value: text_of_value(value).lower(), "this"),
    exp.Upper: _strict(lambda value: text_of_value(value).upper(), "this"),
    exp.Length: _strict(lambda value: len(text_of_value(value)), "this"),
    exp.Trim: _split_trim,
    exp.Substring: _strict(_substring, "this", "start", "length"),
    exp.Left: _strict(lambda value, count: text_of_value(value)[: int(count)], "this", "expression"),
    exp.Right: _strict(
        lambda value, count: text_of_value(value)[-int(count) :] if int(count) else "", "this", "expression"
    ),
    exp.Replace: _strict(_replace, "this", "expression", "replacement"),
    exp.StartsWith: _strict(
        lambda value, start: text_of_value(value).startswith(text_of_value(start)), "this", "expression"
    ),
    exp.EndsWith: _strict(lambda value, end: text_of_value(value).endswith(text_of_value(end)), "this", "expression"),
    exp.Contains: _strict(lambda value, part: text_of_value(part) in text_of_value(value), "this", "expression"),
    exp.Split: _strict(lambda value, sign: list(text_of_value(value).split(text_of_value(sign))), "this", "expression"),
    # lists
    exp.ArraySize: _strict(_size, "this"),
    exp.ArrayContains: _strict(_contains_item, "this", "expression"),
    # time
    exp.Year: _strict(lambda value: day_of(value).year, "this"),
    exp.Month: _strict(lambda value: day_of(value).month, "this"),
    exp.Day: _strict(lambda value: day_of(value).day, "this"),
    exp.DayOfMonth: _strict(lambda value: day_of(value).day, "this"),
    exp.DayOfWeek: _strict(lambda value: day_of(value).isoweekday() % 7 + 1, "this"),
    exp.DayOfYear: _strict(lambda value: day_of(value).timetuple().tm_yday, "this"),
    exp.Hour: _strict(lambda value: moment_of(value).hour, "this"),
    exp.TsOrDsAdd: _moving(1),
    exp.DateAdd: _moving(1),
    exp.DateSub: _moving(-1),
    exp.AddMonths: _strict(lambda value, count: shift(day_of(value), Span(months=int(count))), "this", "expression"),
    exp.DateDiff: _strict(lambda left, right: (day_of(left) - day_of(right)).days, "this", "expression"),
}
