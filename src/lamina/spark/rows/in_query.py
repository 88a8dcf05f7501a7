"""Rows as part of a query: small data reaches Spark without a Python worker being started for it.

`createDataFrame` of a classic session has Python workers read the rows back; to start them takes longer than writing a
few rows does.
"""

from __future__ import annotations

import base64
import json
import math
from datetime import date
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf

from lamina.spark.rows.local import arrive, travel, travel_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

    from lamina.graph.model import Column

_PORTION = 1_000_000
_EPOCH = date(1970, 1, 1).toordinal()
_JSON_TYPES = {"date": "int", "float": "double"}


def rows_in_query(session: SparkSession, rows: Sequence[Sequence[Any]], columns: Sequence[Column]) -> DataFrame:
    """Rows of plain values with these types, none of them nested."""
    types = [column.type or "string" for column in columns]
    fields = ", ".join(f"c{index}: {_json_type(text)}" for index, text in enumerate(types))
    portions = list(_portions(rows, types))
    # As literals, not as parameters of a query: with the extensions of some table formats Spark does not take those.
    texts = sf.array(*[sf.lit(text) for text in portions])
    numbers = session.range(0, len(portions), 1, len(portions))
    given = numbers.select(sf.element_at(texts, (sf.col("id") + 1).cast("int")).alias("portion"))
    frame = given.select(sf.inline(sf.from_json("portion", f"array<struct<{fields}>>")))
    return frame.select(
        *[
            _arrive(f"c{index}", text).alias(column.name)
            for index, (column, text) in enumerate(zip(columns, types, strict=True))
        ]
    )


def _portions(rows: Sequence[Sequence[Any]], types: Sequence[str]) -> Iterator[str]:
    """JSON arrays of rows, one at least, each of a size that one task reads easily."""
    portion: list[str] = []
    size = 0
    for row in rows:
        named = {f"c{index}": _json_value(value, types[index]) for index, value in enumerate(row) if value is not None}
        portion.append(json.dumps(named, separators=(",", ":")))
        size += len(portion[-1])
        if size > _PORTION:
            yield f"[{','.join(portion)}]"
            portion, size = [], 0
    if portion or not rows:
        yield f"[{','.join(portion)}]"


def _json_type(text: str) -> str:
    return _JSON_TYPES.get(text) or travel_type(text)


def _json_value(value: Any, text: str) -> Any:
    travelling = travel(value, text)
    if text == "date":
        return travelling.toordinal() - _EPOCH
    if text == "binary":
        return base64.b64encode(travelling).decode("ascii")
    if isinstance(travelling, float) and not math.isfinite(travelling):
        return "NaN" if math.isnan(travelling) else "Infinity" if travelling > 0 else "-Infinity"
    return travelling


def _arrive(name: str, text: str) -> SparkColumn:
    match text:
        case "date":
            return sf.date_from_unix_date(sf.col(name))
        case "float":
            return sf.col(name).cast("float")
        case _:
            return arrive(sf.col(name), text)
