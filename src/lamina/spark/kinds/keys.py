"""Keys of kinds that fold new rows into a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

IS_LAST = "_lamina_is_last"
IS_REPEATED = "_lamina_is_repeated"

_KEY = "_lamina_key_"


def key_columns(unique_key: Sequence[str]) -> list[str]:
    """The names of the hidden columns that hold the parts of the key."""
    return [f"{_KEY}{index}" for index in range(len(unique_key))]


def with_keys(rows: DataFrame, unique_key: Sequence[str]) -> DataFrame:
    """The rows with a hidden column for every part of the key."""
    expressions = (sf.expr(text) for text in unique_key)
    return rows.withColumns(dict(zip(key_columns(unique_key), expressions, strict=True)))


def with_order(rows: DataFrame, unique_key: Sequence[str], order_by: Sequence[str] = ()) -> DataFrame:
    """Rows with keys, and for each row whether it is the last of its key and whether that is open to doubt.

    It is where the order does not tell the last row from the one before it; without an order all rows are equal.
    """
    keys = ", ".join(key_columns(unique_key))
    window = f"OVER (PARTITION BY {keys} ORDER BY {', '.join(order_by) or keys})"
    ordered = rows.withColumns(
        {
            IS_LAST: sf.expr(f"lead(1) {window} IS NULL"),
            IS_REPEATED: sf.expr(f"rank() {window} < row_number() {window}"),
        }
    )
    return ordered.withColumn(IS_REPEATED, sf.col(IS_LAST) & sf.col(IS_REPEATED))


def is_null_key(unique_key: Sequence[str]) -> SparkColumn:
    """Holds for rows with a key of which a part is NULL."""
    return sf.expr(" OR ".join(f"{name} IS NULL" for name in key_columns(unique_key)))
