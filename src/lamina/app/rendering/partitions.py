"""Partitions in Spark SQL: their values, and conditions on them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lamina.sql.names import quote, text_literal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from lamina.app.ports.published import PartitionColumn, PartitionKey

_PLAIN = re.compile(r"[\w .:+-]+", re.ASCII)


def outside(columns: Sequence[PartitionColumn], keys: Collection[PartitionKey]) -> str:
    """A condition that holds for the rows of all partitions but these, and that Spark finds folders by."""
    names = [_compared(column, [key[number] for key in keys]) for number, column in enumerate(columns)]
    if len(columns) > 1:
        each = (
            " AND ".join(
                f"{name} <=> {partition_value(column, value)}"
                for name, column, value in zip(names, columns, key, strict=True)
            )
            for key in keys
        )
        return f"NOT (({') OR ('.join(each)}))" if keys else "true"
    (column,), (name,) = columns, names
    values = [partition_value(column, key[0]) for key in keys if key[0] is not None]
    others = [f"coalesce({name} NOT IN ({', '.join(values)}), true)"] if values else []
    others += [f"{name} IS NOT NULL"] if (None,) in keys else []
    return " AND ".join(others) or "true"


def is_plain(value: str | None) -> bool:
    """Whether a value means the same to Spark, to Hive, and to whoever reads it in a text."""
    return value is None or _PLAIN.fullmatch(value) is not None


def _compared(column: PartitionColumn, values: Iterable[str | None]) -> str:
    """A column as it is compared with values; Hive, which would misread some, is not asked about an expression."""
    name = quote(column.name)
    return name if all(map(is_plain, values)) else f"concat({name}, '')"


def partition_value(column: PartitionColumn, value: str | None) -> str:
    """A partition's value in Spark SQL."""
    if value is None:
        return "NULL"
    match column.type:
        case "date":
            return f"DATE {text_literal(value)}"
        case "string":
            return text_literal(value)
        case _:
            return value
