"""The text of catalog statements."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lamina.app.rendering.partitions import partition_value
from lamina.graph.model import Column
from lamina.sql.names import quote, text_literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lamina.app.ports.published import PartitionColumn, PartitionKey, TableShape
    from lamina.graph.kinds import Setting

ATTEMPT_PROPERTY = "lamina.attempt"
"""On a generation: made by Lamina, by this attempt."""

VIEW_PROPERTY = "lamina.view"
"""On every view that Lamina made, from its first statement on."""

DETAILS_PROPERTY = "lamina.details"
"""On an environment's view: a digest of its comment and properties."""

NAMES_PROPERTY = "lamina.properties"
"""On an environment's view with properties of a model's own: their names, so that those that go away can be told."""

RENAMED_PROPERTY = "lamina.renamed"
"""On the view of a query: `old:new` when the generation in its marker goes by a new name."""

GENERATION = "generation"
"""In the marker of a version's view: the generation it shows."""

COLUMNS = "columns"
"""In every marker: a digest of the columns that the view shows."""

TEXT = "text"
"""In the marker of the view of a query: a digest of the query, columns and comment."""

PHYSICAL = "physical"
"""In the marker of an environment's view: the version it shows."""


MARKER = "SELECT /* lamina "
"""How the query of a view begins that Lamina made."""

_MARKER = re.compile(r"SELECT /\* lamina ([^*]*) \*/")


def table_name(dotted: str) -> str:
    """A dotted name with every part in backticks."""
    return quote(*dotted.split("."))


def setting_text(value: Setting) -> str:
    """A property's value as the catalog keeps it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def create_generation(
    name: str, shape: TableShape, location: str, comment: str | None, properties: Mapping[str, Setting]
) -> str:
    """An external table with the columns in the order that the catalog wants: those it is partitioned by last."""
    partitioning = {column.name.casefold() for column in shape.partition_columns}
    columns = [_column(column) for column in shape.columns if column.name.casefold() not in partitioning]
    by_name = {column.name.casefold(): column for column in shape.columns}
    for partition in shape.partition_columns:
        visible = by_name.get(partition.name.casefold())
        columns.append(_column(visible) if visible else f"{quote(partition.name)} {partition.type}")
    names = ", ".join(quote(column.name) for column in shape.partition_columns)
    partitioned = f"\nPARTITIONED BY ({names})" if names else ""
    said = f"\nCOMMENT {text_literal(comment)}" if comment else ""
    return (
        f"CREATE TABLE {table_name(name)} (\n  " + ",\n  ".join(columns) + f"\n)\nUSING parquet{partitioned}"
        f"\nLOCATION {text_literal(location)}{said}\nTBLPROPERTIES ({properties_text(properties)})"
    )


def create_table(
    name: str,
    columns: Sequence[Column | PartitionColumn],
    *,
    table_format: str,
    partitioned_by: Sequence[str] = (),
    clustered_by: Sequence[str] = (),
    comment: str | None = None,
    properties: Mapping[str, Setting] | None = None,
) -> str:
    """An empty table of a format that keeps a history, with all its comments in one statement."""
    listed = [
        _column(column) if isinstance(column, Column) else f"{quote(column.name)} {column.type}" for column in columns
    ]
    text = f"CREATE TABLE {table_name(name)} (\n  " + ",\n  ".join(listed) + f"\n)\nUSING {table_format}"
    text += f"\nPARTITIONED BY ({', '.join(partitioned_by)})" if partitioned_by else ""
    text += f"\nCLUSTER BY ({', '.join(clustered_by)})" if clustered_by else ""
    text += f"\nCOMMENT {text_literal(comment)}" if comment else ""
    return f"{text}\nTBLPROPERTIES ({properties_text(properties or {})})"


def add_partitions(name: str, columns: Sequence[PartitionColumn], locations: Iterable[tuple[PartitionKey, str]]) -> str:
    """One statement for all partitions; Spark adds all of them or none."""
    clauses = [f"{partition_spec(columns, key)} LOCATION {text_literal(location)}" for key, location in locations]
    return f"ALTER TABLE {table_name(name)} ADD\n  " + "\n  ".join(clauses)


def partition_spec(columns: Sequence[PartitionColumn], key: PartitionKey) -> str:
    values = ", ".join(
        f"{quote(column.name)} = {partition_value(column, value)}" for column, value in zip(columns, key, strict=True)
    )
    return f"PARTITION ({values})"


def marked_query(marks: Mapping[str, str], selected: str, source: str) -> str:
    """A query that carries marks in its text: what a view shows and what it says about that change in one statement."""
    said = " ".join(f"{key}={value}" for key, value in marks.items())
    return f"SELECT /* lamina {said} */ {selected} FROM {source}"


def read_marks(query: str) -> dict[str, str]:
    """The marks in the text of a view; none in a view of somebody else's."""
    found = _MARKER.match(query)
    return dict(mark.split("=", 1) for mark in found[1].split() if "=" in mark) if found else {}


def create_view(
    name: str, query: str, columns: Sequence[Column], comment: str | None, properties: Mapping[str, Setting]
) -> str:
    """A view where there is none; without columns it shows those of the query."""
    listed = ",\n  ".join(f"{quote(column.name)}{_comment(column.comment)}" for column in columns)
    head = f"CREATE VIEW {table_name(name)}" + (f" (\n  {listed}\n)" if listed else "")
    return f"{head}{_comment(comment)}\nTBLPROPERTIES ({properties_text(properties)})\nAS {query}"


def alter_view(name: str, query: str) -> str:
    """Another query for a view: one change of the catalog, whereas CREATE OR REPLACE drops the view first."""
    return f"ALTER VIEW {table_name(name)} AS {query}"


def set_view_properties(name: str, properties: Mapping[str, Setting]) -> str:
    """Properties of a view that exists; the one named `comment` is its comment."""
    return f"ALTER VIEW {table_name(name)} SET TBLPROPERTIES ({properties_text(properties)})"


def unset_view_properties(name: str, properties: Sequence[str]) -> str:
    """Take properties from a view; those that it does not have do not matter."""
    listed = ", ".join(text_literal(each) for each in properties)
    return f"ALTER VIEW {table_name(name)} UNSET TBLPROPERTIES IF EXISTS ({listed})"


def _column(column: Column) -> str:
    return f"{quote(column.name)} {column.type}{_comment(column.comment)}"


def _comment(comment: str | None) -> str:
    return f" COMMENT {text_literal(comment)}" if comment else ""


def properties_text(properties: Mapping[str, Setting]) -> str:
    """Properties as TBLPROPERTIES takes them."""
    return ", ".join(
        f"{text_literal(key)} = {text_literal(setting_text(value))}"
        for key, value in properties.items()
        if value is not None
    )
