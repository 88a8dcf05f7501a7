"""Where the columns and the rows of a query come from.

Every output column gets a defining expression over columns of tables, with common table expressions and subqueries
written out; the row set gets one too: everything that decides which rows exist. Names of aliases and common table
expressions leave no trace in them. Two columns with the same defining text, over rows with the same defining text,
hold the same values when the tables do.

Wherever a name cannot be resolved for sure the answer is None: a caller then has to treat the query as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from lamina.sql.lineage.relations import ColumnSource, Doubt
from lamina.sql.lineage.tracer import Tracer
from lamina.sql.syntax import SPARK, parse_query

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ColumnSource", "QueryLineage", "column_sources", "row_set_sources", "trace_query"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryLineage:
    """The sources of the columns, by name in lower case, and of the set of rows."""

    columns: Mapping[str, ColumnSource]
    rows: ColumnSource
    tables: frozenset[str]
    """Every table that is read, also those of which no column is."""


def trace_query(
    text: str, dialect: str = SPARK, schemas: Mapping[str, tuple[str, ...]] | None = None
) -> QueryLineage | None:
    """The lineage of a query; None when anything in it cannot be resolved for sure.

    `schemas` gives the columns of tables, by the text of their names in lower case; tables that are not in it may have
    any columns. Raises SyntaxProblem when the text is no query.
    """
    query = parse_query(text, dialect)
    tracer = Tracer(text=query.text, schemas=schemas or {})
    try:
        relation = tracer.query(query.tree, {}, None)
    except (Doubt, RecursionError):
        return None
    if relation.columns is None:
        return None
    return QueryLineage(
        columns=MappingProxyType(dict(relation.columns)), rows=relation.rows, tables=frozenset(tracer.counts)
    )


def column_sources(
    text: str, dialect: str = SPARK, schemas: Mapping[str, tuple[str, ...]] | None = None
) -> Mapping[str, ColumnSource] | None:
    """The sources of every output column by name in lower case; None in doubt."""
    lineage = trace_query(text, dialect, schemas)
    return None if lineage is None else lineage.columns


def row_set_sources(
    text: str, dialect: str = SPARK, schemas: Mapping[str, tuple[str, ...]] | None = None
) -> ColumnSource | None:
    """What decides which rows exist: sources, joins, filters, grouping, distinct, limits; None in doubt."""
    lineage = trace_query(text, dialect, schemas)
    return None if lineage is None else lineage.rows
