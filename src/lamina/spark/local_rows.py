"""DataFrames from values of this process, exact whatever the machine's time zone is."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf

from lamina.spark.types import is_integer
from lamina.sql.names import quote
from lamina.timeline.interval import Instant

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

    from lamina.graph.model import Column


def make_frame(session: SparkSession, rows: Iterable[Sequence[Any]], columns: Sequence[Column]) -> DataFrame:
    """Rows of plain values with these types.

    PySpark reads datetimes in the machine's time zone and may round decimals, so both travel as numbers and text and
    get their type inside of Spark.
    """
    types = [column.type or "string" for column in columns]
    schema = ", ".join(f"c{index} {travel_type(text)}" for index, text in enumerate(types))
    travelling = [tuple(travel(value, text) for value, text in zip(row, types, strict=True)) for row in rows]
    frame = session.createDataFrame(travelling, schema)
    return frame.select(
        *[
            arrive(f"c{index}", text).alias(column.name)
            for index, (column, text) in enumerate(zip(columns, types, strict=True))
        ]
    )


def travel_type(text: str) -> str:
    """The type that a column has on its way into Spark."""
    if text in {"timestamp", "timestamp_ntz"}:
        return "bigint"
    return "string" if text.startswith("decimal") else text


def travel(value: Any, text: str) -> Any:
    """A value as it is sent for a column of this type."""
    if value is None:
        return None
    if text in {"timestamp", "timestamp_ntz"}:
        return Instant.of(_moment(value, text)).micros
    if text.startswith("decimal"):
        return format(value if isinstance(value, Decimal) else Decimal(str(value)), "f")
    if text == "date" and isinstance(value, datetime):
        return value.date()
    if text in {"float", "double"} and isinstance(value, int):
        return float(value)
    if is_integer(text) and isinstance(value, float) and value.is_integer():
        # pandas turns integers into floats where one of them is missing.
        return int(value)
    return value


def _moment(value: Any, text: str) -> datetime:
    if not isinstance(value, datetime):
        moment = (
            datetime.combine(value, datetime.min.time()) if isinstance(value, date) else datetime.fromisoformat(value)
        )
    else:
        moment = value
    # Without a zone the moment is UTC; a wall clock keeps what it shows.
    return moment.replace(tzinfo=timezone.utc) if text == "timestamp_ntz" else moment


def arrive(name: str, text: str) -> SparkColumn:
    """The column with its own type, made inside of Spark from what was sent."""
    column = sf.col(quote(name))
    if text == "timestamp":
        return sf.timestamp_micros(column)
    if text == "timestamp_ntz":
        return sf.timestamp_micros(column).cast("timestamp_ntz")
    return column.cast(text) if text.startswith("decimal") else column
