"""Whether a time column can tell the units of its model apart."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lamina.sql.render import DEFAULT_TIME_FORMAT
from lamina.timeline.grain import Grain

if TYPE_CHECKING:
    from lamina.graph.kinds import TimeColumn
    from lamina.sql.render import TimeKind

INTEGER_TYPES = ("tinyint", "smallint", "int", "bigint")
_TEXT_TYPES = ("string", "varchar", "char")

_DIGITS_ONLY = re.compile(r"(?:%[YmdHMSf])+")
_DIRECTIVE = re.compile(r"%-?(.)", re.DOTALL)
_PARTS = ("year", "month", "day", "hour", "minute")
_SAID_BY = {
    "Y": "year",
    "y": "year",
    "m": "month",
    "b": "month",
    "B": "month",
    "d": "day",
    "j": "month day",
    "F": "year month day",
    "H": "hour",
    "M": "minute",
    "T": "hour minute",
    "R": "hour minute",
}
_NEEDED = {Grain.YEAR: 1, Grain.MONTH: 2, Grain.DAY: 3, Grain.HOUR: 4}


def time_kind(column_type: str | None) -> TimeKind | None:
    """How a column of this type says when its rows are; None where it cannot, or where the type is not known."""
    match column_type:
        case "date" | "timestamp" | "timestamp_ntz" | "string":
            return column_type
        case str() as text if text in INTEGER_TYPES:
            return "integer"
        case _:
            return None


def why_inexact(column: TimeColumn, column_type: str, grain: Grain) -> tuple[str, str] | None:
    """Why rows cannot be assigned to units of the grain by this column, and what to do; `None` when they can.

    Rows of a unit that the column cannot name would be taken for rows of another one, and be lost with it.
    """
    is_integer = column_type in INTEGER_TYPES
    if is_integer and column.format is not None and _DIGITS_ONLY.fullmatch(column.format) is None:
        return (
            f"time column `{column.name}` is a number and cannot hold a time in the format `{column.format}`",
            f"write a format of digits alone, such as `time_column ({column.name}, '%Y%m%d')`",
        )
    if is_integer or column_type.startswith(_TEXT_TYPES):
        time_format = column.format or DEFAULT_TIME_FORMAT
        said, what = _parts_of(time_format), f"in the format `{time_format}`"
        mending = "make the format say it too, or make the column a TIMESTAMP"
    elif column_type == "date":
        said, what = {"year", "month", "day"}, "of type `date`"
        mending = "make it a TIMESTAMP in the query"
    else:
        return None
    lacking = [part for part in _PARTS[: _NEEDED.get(grain, 5)] if part not in said]
    if not lacking:
        return None
    return (
        f"time column `{column.name}` {what} does not say the {lacking[0]}, and the model's unit is `{grain.value}`: "
        "rows could not be told apart by unit",
        f"{mending}, or choose a `cron` with longer units",
    )


def _parts_of(time_format: str) -> set[str]:
    directives = _DIRECTIVE.findall(time_format)
    said = {part for directive in directives for part in _SAID_BY.get(directive, "").split()}
    # Hours up to twelve say nothing without the half of the day.
    return said | {"hour"} if {"I", "p"} <= set(directives) else said
