"""Spark's types as text and back: what a schema says, in the words of columns."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    NullType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from lamina.graph.model import Column
from lamina.sql.names import is_plain_identifier, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql.types import StructField

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_FIXED_TEXT = re.compile(r"(?:var)?char\(\d+\)")


def type_text(data_type: DataType) -> str:
    """The type in Spark's lower-case spelling, readable by Spark again whatever its fields are called."""
    match data_type:
        case StructType():
            fields = ",".join(f"{_field_name(field)}:{type_text(field.dataType)}" for field in data_type.fields)
            return f"struct<{fields}>"
        case ArrayType():
            return f"array<{type_text(data_type.elementType)}>"
        case MapType():
            return f"map<{type_text(data_type.keyType)},{type_text(data_type.valueType)}>"
        case _:
            return data_type.simpleString()


def columns_of(schema: StructType, comments: Mapping[str, str]) -> tuple[Column, ...]:
    """The columns of a schema; comments are looked up without regard to case."""
    by_name = {name.casefold(): comment for name, comment in comments.items()}
    return tuple(
        Column(name=field.name, type=type_text(field.dataType), comment=by_name.get(field.name.casefold()))
        for field in schema.fields
    )


def stored_type(declared: str) -> str:
    """The type that a declared column is stored with: text of a limited length is text."""
    return _FIXED_TEXT.sub("string", declared)


def has_void(data_type: DataType) -> bool:
    """Whether a type, or one inside of it, is that of a bare NULL, which no file can hold."""
    match data_type:
        case NullType():
            return True
        case StructType():
            return any(has_void(field.dataType) for field in data_type.fields)
        case ArrayType():
            return has_void(data_type.elementType)
        case MapType():
            return has_void(data_type.keyType) or has_void(data_type.valueType)
        case _:
            return False


def replace_types(data_type: DataType, change: Callable[[DataType], DataType]) -> DataType:
    """The type with every simple type inside of it changed."""
    match data_type:
        case StructType():
            copy = StructType()
            for field in data_type.fields:
                copy.add(field.name, replace_types(field.dataType, change), nullable=True)
            return copy
        case ArrayType():
            return ArrayType(replace_types(data_type.elementType, change), containsNull=True)
        case MapType():
            return MapType(
                replace_types(data_type.keyType, change),
                replace_types(data_type.valueType, change),
                valueContainsNull=True,
            )
        case _:
            return change(data_type)


def is_text(data_type: DataType) -> bool:
    return isinstance(data_type, StringType)


def is_timestamp(data_type: DataType) -> bool:
    return isinstance(data_type, TimestampType | TimestampNTZType)


def is_integer(text: str) -> bool:
    return text in _INTEGERS


def can_read_as(stored: str, wanted: str) -> bool:
    """Whether files written with one type can be read, without loss, as another."""
    if stored == wanted:
        return True
    if stored in _INTEGERS and wanted in _INTEGERS:
        return _INTEGERS.index(stored) < _INTEGERS.index(wanted)
    if (stored, wanted) == ("float", "double"):
        return True
    old, new = _DECIMAL.fullmatch(stored), _DECIMAL.fullmatch(wanted)
    if old is None or new is None:
        return False
    precision, scale, new_precision, new_scale = int(old[1]), int(old[2]), int(new[1]), int(new[2])
    return new_scale >= scale and new_precision - new_scale >= precision - scale


def _field_name(field: StructField) -> str:
    return field.name if is_plain_identifier(field.name) else quote(field.name)
