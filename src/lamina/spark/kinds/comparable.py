"""Values in a form that Spark can compare, whatever their type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, MapType, StringType, StructType, VariantType

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql.types import DataType


def comparable(value: SparkColumn, data_type: DataType) -> SparkColumn:
    """Equal for equal values: text by its characters whatever its collation, maps in any order of their entries."""
    match data_type:
        case StringType():
            return value.cast("string")
        case VariantType():
            return sf.to_json(value)
        case ArrayType():
            inner = data_type.elementType
            return sf.transform(value, lambda item: comparable(item, inner))
        case MapType():
            key_type, value_type = data_type.keyType, data_type.valueType
            return sf.transform(
                sf.array_sort(sf.map_keys(value)),
                lambda key: sf.struct(comparable(key, key_type), comparable(sf.element_at(value, key), value_type)),
            )
        case StructType():
            parts = [comparable(value.getField(field.name), field.dataType) for field in data_type.fields]
            return sf.when(value.isNotNull(), sf.struct(*parts)) if parts else value
        case _:
            return value
