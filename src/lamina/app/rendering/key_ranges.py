"""Hidden keys of time: what they are made of, and which of them can hold the rows of a stretch of time.

Spark finds the folders of a filter by their keys alone, and a filter on a timestamp says nothing about a hidden key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.sql.names import quote
from lamina.timeline.interval import FIRST_INSTANT

if TYPE_CHECKING:
    from collections.abc import Callable

    from lamina.app.ports.published import PartitionKey, TableShape
    from lamina.timeline.interval import Instant

_PATTERNS = {"years": "yyyy", "months": "yyyy-MM", "days": "yyyy-MM-dd", "hours": "yyyy-MM-dd-HH"}
_TIMES = frozenset({"date", "timestamp", "timestamp_ntz"})


def unit_key(unit: str, column: str) -> str:
    """The hidden key of a time column by `years`, `months`, `days` or `hours`; the session is in UTC."""
    name = quote(column)
    return f"CAST(CAST({name} AS DATE) AS STRING)" if unit == "days" else f"date_format({name}, '{_PATTERNS[unit]}')"


def key_range(shape: TableShape, time_column: str, begin: Instant | None, end: Instant | None) -> str | None:
    """Holds for every row of the half-open stretch, and says something about hidden keys only; None is no condition.

    The keys are text that is ordered like time. Rows without a time have none, and lie in no stretch that has a bound.
    """
    conditions: list[str] = []
    for index, length in _lengths(shape, time_column).items():
        column = shape.partition_columns[index]
        if not column.is_hidden:
            continue
        first, last = _bounds(begin, end, length)
        conditions += [f"{quote(column.name)} >= '{first}'"] if first is not None else []
        conditions += [f"{quote(column.name)} <= '{last}'"] if last is not None else []
    return " AND ".join(conditions) or None


def may_hold(
    shape: TableShape, time_column: str, begin: Instant | None, end: Instant | None
) -> Callable[[PartitionKey], bool]:
    """Whether a partition may hold rows of the half-open stretch, by its key."""
    bounds = {index: _bounds(begin, end, length) for index, length in _lengths(shape, time_column).items()}

    def is_inside(key: PartitionKey) -> bool:
        return all(
            (first is None or (key[index] or "") >= first) and (last is None or (key[index] or "") <= last)
            for index, (first, last) in bounds.items()
        )

    return is_inside


def _lengths(shape: TableShape, time_column: str) -> dict[int, int]:
    """The partition columns whose keys are ordered like a time column, with the length of their keys; none for text."""
    time = next((column for column in shape.columns if column.name.casefold() == time_column.casefold()), None)
    if time is None or time.type not in _TIMES:
        return {}
    patterns = {unit_key(unit, time.name): pattern for unit, pattern in _PATTERNS.items()}
    found = {}
    for index, column in enumerate(shape.partition_columns):
        pattern = patterns.get(column.expression or "")
        if not column.is_hidden and column.type == "date" and column.name.casefold() == time.name.casefold():
            pattern = _PATTERNS["days"]
        if pattern is not None:
            found[index] = len(pattern)
    return found


def _bounds(begin: Instant | None, end: Instant | None, length: int) -> tuple[str | None, str | None]:
    """The first and the last key of a stretch."""
    last = end if end is None or end == FIRST_INSTANT else end.minus(1)
    return (
        None if begin is None else begin.to_datetime().isoformat("-")[:length],
        None if last is None else last.to_datetime().isoformat("-")[:length],
    )
