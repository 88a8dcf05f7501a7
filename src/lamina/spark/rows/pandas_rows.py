"""Rows of pandas DataFrames as plain values; pandas itself is never imported here, only recognised."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from lamina.errors import BadModelResult
from lamina.graph.model import Column
from lamina.spark.rows.types import stored_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lamina.errors import Location

_BY_CLASS: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (int, "bigint"),
    (float, "double"),
    (str, "string"),
    (Decimal, "decimal(38,18)"),
    (datetime, "timestamp"),
    (date, "date"),
    (bytes, "binary"),
)


def is_pandas(value: Any) -> bool:
    """Whether the value is a pandas DataFrame."""
    return type(value).__name__ == "DataFrame" and type(value).__module__.split(".")[0] == "pandas"


def pandas_columns(frame: Any, declared: Sequence[Column] | None, name: str, location: Location) -> list[Column]:
    """The columns of a frame, in its order, with declared types or those its values show."""
    by_name = {column.name.casefold(): column for column in declared or ()}
    columns: list[Column] = []
    for index, label in enumerate(frame.columns):
        known = by_name.get(str(label).casefold())
        if known is not None and known.type is not None:
            columns.append(Column(name=str(label), type=stored_type(known.type)))
        else:
            columns.append(Column(name=str(label), type=_infer(frame, index, name, location)))
    return columns


def pandas_rows(frame: Any) -> Iterator[tuple[Any, ...]]:
    """The rows as values of Python itself; everything that pandas calls missing is None."""
    for row in frame.itertuples(index=False, name=None):
        yield tuple(_deeply_plain(value) for value in row)


def _infer(frame: Any, index: int, name: str, location: Location) -> str:
    series = frame.iloc[:, index]
    kind = getattr(series.dtype, "kind", "O")
    simple = {"b": "boolean", "i": "bigint", "u": "bigint", "f": "double", "M": "timestamp"}
    if kind in simple:
        return simple[kind]
    values = [_plain(value) for value in series]
    found = {_class_type(value) for value in values if value is not None}
    if len(found) == 1:
        (only,) = found
        if only is not None:
            return only
    raise BadModelResult(
        f"the type of column `{frame.columns[index]}`, which model `{name}` returned in a pandas DataFrame, is unclear",
        hint="declare the model's `columns` with their types",
        location=location,
    )


def _class_type(value: Any) -> str | None:
    return next((text for cls, text in _BY_CLASS if isinstance(value, cls)), None)


def _deeply_plain(value: Any) -> Any:
    """A value without numpy and pandas around it or inside of it; there, what is no number stays one."""
    if isinstance(value, dict):
        return {_inside(key): _inside(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set) or type(value).__name__ == "ndarray":
        return [_inside(item) for item in value]
    return _plain(value)


def _inside(value: Any) -> Any:
    return float(value) if isinstance(value, float) and math.isnan(value) else _deeply_plain(value)


def _plain(value: Any) -> Any:
    """A simple value without numpy and pandas around it; whatever these call missing is None."""
    if value is None or type(value).__name__ in {"NaTType", "NAType"}:
        return None
    if isinstance(value, datetime):
        # A pandas timestamp is a datetime, with nanoseconds that Spark does not have.
        return value.to_pydatetime(warn=False) if hasattr(value, "to_pydatetime") else value
    if type(value).__name__ == "datetime64":
        # Of nanoseconds, which Spark does not have, only a number would be left.
        return value.astype("datetime64[us]").item()
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and math.isnan(value):
        return None
    return value
