"""DataFrames from values of this process, exact whatever the machine's time zone is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, LongType, MapType, StringType, StructField, StructType

from lamina.spark.rows.types import is_integer, replace_types, type_text
from lamina.timeline.interval import Instant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

    from lamina.graph.model import Column


def make_frame(session: SparkSession, rows: Iterable[Sequence[Any]], columns: Sequence[Column]) -> DataFrame:
    """Rows of plain values with these types.

    PySpark reads datetimes in the machine's time zone and may round decimals, so both travel as numbers and text and
    get their type inside of Spark.
    """
    listed = ", ".join(f"c{index} {column.type or 'string'}" for index, column in enumerate(columns))
    fields = session.createDataFrame([], listed).schema.fields
    travelling = StructType([StructField(field.name, replace_types(field.dataType, _travel_type)) for field in fields])
    sent = [tuple(_travel(value, field.dataType) for value, field in zip(row, fields, strict=True)) for row in rows]
    frame = session.createDataFrame(sent, travelling)
    return frame.select(
        *[
            _arrive(sf.col(field.name), field.dataType).alias(column.name)
            for column, field in zip(columns, fields, strict=True)
        ]
    )


# --- values inside of values ------------------------------------------------------------------------------------------
def _travel_type(data_type: DataType) -> DataType:
    match travel_type(type_text(data_type)):
        case "bigint":
            return LongType()
        case "string":
            return StringType()
        case _:
            return data_type


def _travel(value: Any, data_type: DataType) -> Any:
    """A value as it is sent, whatever it is made of; `ValueError` for parts that the type does not have."""
    if value is None:
        return None
    match data_type:
        case ArrayType():
            return [_travel(item, data_type.elementType) for item in _items(value)]
        case MapType():
            pairs = value.items() if isinstance(value, Mapping) else _items(value)
            return {_travel(key, data_type.keyType): _travel(item, data_type.valueType) for key, item in pairs}
        case StructType():
            parts = _parts(value, data_type)
            return tuple(_travel(part, field.dataType) for part, field in zip(parts, data_type.fields, strict=True))
        case _:
            return travel(value, type_text(data_type))


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise TypeError(f"`{value!r}` is no list")
    return value


def _parts(value: Any, struct: StructType) -> list[Any]:
    """The values of a struct's fields, by name or in order."""
    if not isinstance(value, Mapping):
        return list(_items(value))
    unknown = [str(key) for key in value if key not in struct.names]
    if unknown:
        raise ValueError(f"`{unknown[0]}` is none of the fields {', '.join(f'`{name}`' for name in struct.names)}")
    return [value.get(name) for name in struct.names]


def _arrive(column: SparkColumn, data_type: DataType) -> SparkColumn:
    """The column with its own type, made inside of Spark from what was sent."""
    if replace_types(data_type, _travel_type) == replace_types(data_type, lambda each: each):
        return column
    match data_type:
        case ArrayType():
            element = data_type.elementType
            return sf.transform(column, lambda item: _arrive(item, element))
        case MapType():
            key_type, value_type = data_type.keyType, data_type.valueType
            pairs = sf.transform(
                sf.map_entries(column),
                lambda pair: sf.struct(
                    _arrive(pair.getField("key"), key_type), _arrive(pair.getField("value"), value_type)
                ),
            )
            return sf.map_from_entries(pairs)
        case StructType():
            parts = [_arrive(column.getField(field.name), field.dataType).alias(field.name) for field in data_type]
            return sf.when(column.isNotNull(), sf.struct(*parts))
        case _:
            return arrive(column, type_text(data_type))


# --- simple values ----------------------------------------------------------------------------------------------------


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


def arrive(column: SparkColumn, text: str) -> SparkColumn:
    """A column of simple values with its own type, made inside of Spark from what was sent."""
    if text == "timestamp":
        return sf.timestamp_micros(column)
    if text == "timestamp_ntz":
        return sf.timestamp_micros(column).cast("timestamp_ntz")
    return column.cast(text) if text.startswith("decimal") else column
