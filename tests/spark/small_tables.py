"""Tables of a few rows, and what is in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lamina.spark.engine import SparkEngine

Cell = str | int | float | None


def frame(engine: SparkEngine, columns: str, *rows: Sequence[Cell]) -> DataFrame:
    """Rows with columns as in `id int, name string`; texts are cast to the column's type."""
    definitions = [definition.split(maxsplit=1) for definition in columns.split(", ")]
    selected = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in definitions)
    names = ", ".join(name for name, _ in definitions)
    values = ", ".join(f"({', '.join(literal(cell) for cell in row)})" for row in rows)
    empty = f"({', '.join('NULL' for _ in definitions)})"
    table = f"VALUES {values or empty} AS t({names})"
    return engine.frame(f"SELECT {selected} FROM {table}{'' if rows else ' WHERE false'}")


def literal(cell: Cell) -> str:
    if cell is None:
        return "NULL"
    return "'" + cell.replace("'", "\\'") + "'" if isinstance(cell, str) else str(cell)


def cells(rows: DataFrame) -> list[tuple[str | None, ...]]:
    """Every cell as text, in an order that does not depend on how the rows were computed."""
    found = [tuple(row) for row in rows.select(*(rows[name].cast("string") for name in rows.columns)).collect()]
    return in_order(*found)


def in_order(*rows: Sequence[Cell]) -> list[tuple[str | None, ...]]:
    texts = [tuple(None if cell is None else str(cell) for cell in row) for row in rows]
    return sorted(texts, key=lambda row: [(cell is None, cell or "") for cell in row])


def types(rows: DataFrame) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in rows.dtypes)
