"""Rows of a query as plain values that mean the same on every machine."""

from __future__ import annotations

import math
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from lamina.app.ports.engine import QueryResult
from lamina.spark.rows.types import columns_of, replace_types

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

_AS_THEY_ARE = (
    *(BinaryType, BooleanType, ByteType, DateType, DecimalType, DoubleType, FloatType, IntegerType, LongType),
    *(NullType, ShortType, StringType),
)


def fetch(frame: DataFrame, limit: int | None) -> QueryResult:
    """The first rows of a DataFrame; the session is in UTC.

    PySpark hands timestamps over in the machine's time zone, so they become text inside of Spark.
    """
    columns = columns_of(frame.schema, {})
    types = [field.dataType for field in frame.schema.fields]
    names = [f"c{index}" for index in range(len(columns))]
    frame = frame.toDF(*names)
    frame = frame.select(*[_transportable(name, data_type) for name, data_type in zip(names, types, strict=True)])
    found = (frame if limit is None else frame.limit(limit + 1)).collect()
    is_truncated = limit is not None and len(found) > limit
    rows = tuple(
        tuple(_plain(value, data_type) for value, data_type in zip(row, types, strict=True))
        for row in (found[:limit] if is_truncated else found)
    )
    return QueryResult(columns=columns, rows=rows, is_truncated=is_truncated)


def _transportable(name: str, data_type: DataType) -> Any:
    if isinstance(data_type, VariantType):
        return sf.to_json(sf.col(name)).alias(name)
    wanted = replace_types(data_type, lambda simple: simple if isinstance(simple, _AS_THEY_ARE) else StringType())
    return sf.col(name) if wanted == data_type else sf.col(name).cast(wanted).alias(name)


def _plain(value: Any, data_type: DataType) -> Any:
    if value is None:
        return None
    match data_type:
        case TimestampType():
            return f"{str(value).replace(' ', 'T', 1)}Z"
        case TimestampNTZType():
            return str(value).replace(" ", "T", 1)
        case ArrayType():
            return [_plain(item, data_type.elementType) for item in value]
        case MapType():
            return {
                str(_plain(key, data_type.keyType)): _plain(item, data_type.valueType) for key, item in value.items()
            }
        case StructType():
            return {
                field.name: _plain(item, field.dataType) for field, item in zip(data_type.fields, value, strict=True)
            }
        case _:
            return _simple(value)


def _simple(value: Any) -> Any:
    match value:
        case Decimal():
            return format(value, "f")
        case float() if math.isnan(value):
            return "NaN"
        case float() if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        case bytes() | bytearray():
            return bytes(value).hex()
        case date():
            return value.isoformat()
        case timedelta():
            return str(value)
        case _:
            return value
