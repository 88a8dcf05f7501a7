"""Kinds that fold rows by a key, as a MERGE: the rows that change, the statement, and what the table is afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import assert_never

from lamina.graph.kinds import IncrementalByUniqueKey, ScdType2ByColumn, ScdType2ByTime
from lamina.spark.kinds.columns import side_by_side
from lamina.spark.kinds.keys import key_columns, with_keys
from lamina.spark.kinds.problems import PROBLEM
from lamina.spark.kinds.scd_type_2 import changed_histories
from lamina.spark.kinds.upsert import upserted
from lamina.sql.columns_in_expression import columns_of_expression, replace_columns
from lamina.sql.header.merge_clauses import Delete, MergeClause, UpdateAll, UpdateSome, read_merge_clauses
from lamina.sql.names import quote

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from lamina.app.ports.engine import Fold
    from lamina.app.ports.published import PartitionColumn
    from lamina.graph.kinds import KeyedKind
    from lamina.graph.model import Column

CHANGES = "lamina_changes"
"""The name under which a MERGE reads the rows that change."""


def changes(old: DataFrame, frame: DataFrame, fold: Fold) -> DataFrame:
    """The rows that a MERGE needs of a run, with the hidden column of problems; `old` is the table before it."""
    kind = fold.kind
    if isinstance(kind, IncrementalByUniqueKey):
        _, source = side_by_side(old, frame)
        return upserted(None, source, kind)
    if isinstance(kind, ScdType2ByTime | ScdType2ByColumn):
        return changed_histories(old, frame, kind, execution_time=fold.execution_time)
    raise TypeError(kind)


def after_merge(old: DataFrame, changed: DataFrame, fold: Fold) -> DataFrame:
    """The whole table as the MERGE of `changed` will leave it."""
    kind = fold.kind
    if isinstance(kind, IncrementalByUniqueKey):
        return upserted(old, changed, kind).drop(PROBLEM)
    if isinstance(kind, ScdType2ByTime | ScdType2ByColumn):
        before, after = side_by_side(old, changed)
        keys = key_columns(kind.unique_key)
        valid_to = quote(kind.valid_to_name)
        ended = with_keys(after.filter(f"{valid_to} IS NOT NULL"), kind.unique_key).select(*keys)
        is_open = before.filter(f"{valid_to} IS NULL")
        still_open = with_keys(is_open, kind.unique_key).join(ended, keys, "left_anti").drop(*keys)
        return before.filter(f"{valid_to} IS NOT NULL").unionByName(still_open).unionByName(after)
    raise TypeError(kind)


def merge_text(
    kind: KeyedKind, columns: Sequence[Column], hidden: Sequence[PartitionColumn], stored: Sequence[str]
) -> str:
    """The statement after `MERGE INTO table AS target `; `stored` are the columns of the table.

    `columns` are those of the rows that change, with the types in which they are stored.
    """
    types = {column.name.casefold(): column.type or "string" for column in columns}
    keys = [f"{_side(text, 'target')} = {_side(text, 'source')}" for text in kind.unique_key]
    if isinstance(kind, IncrementalByUniqueKey):
        conditions = [*keys, *([f"({kind.merge_filter})"] if kind.merge_filter else [])]
        clauses = read_merge_clauses(kind.when_matched) or (MergeClause(condition=None, action=UpdateAll()),)
        matched = [_matched(clause, types, columns, hidden) for clause in clauses]
    else:
        valid_to = quote(kind.valid_to_name)
        # Rows that begin match nothing: only those that end are already there.
        conditions = [*keys, f"target.{valid_to} IS NULL", f"source.{valid_to} IS NOT NULL"]
        ending = {kind.valid_to_name: f"source.{valid_to}"}
        matched = [f"WHEN MATCHED THEN UPDATE SET {_assignments(ending, types, hidden)}"]
    known = {column.name.casefold() for column in columns} | {column.name.casefold() for column in hidden}
    values = [f"source.{quote(name)}" if name.casefold() in known else "NULL" for name in stored]
    inserted = ", ".join(quote(name) for name in stored)
    return "\n".join(
        [
            f"USING {CHANGES} AS source ON {' AND '.join(conditions)}",
            *matched,
            f"WHEN NOT MATCHED THEN INSERT ({inserted}) VALUES ({', '.join(values)})",
        ]
    )


def _matched(
    clause: MergeClause, types: Mapping[str, str], columns: Sequence[Column], hidden: Sequence[PartitionColumn]
) -> str:
    when = f"WHEN MATCHED{f' AND {clause.condition}' if clause.condition else ''} THEN"
    match clause.action:
        case Delete():
            return f"{when} DELETE"
        case UpdateAll():
            everything = {column.name: f"source.{quote(column.name)}" for column in columns}
            return f"{when} UPDATE SET {_assignments(everything, types, hidden)}"
        case UpdateSome(assignments=assignments):
            some = {each.column: each.value for each in assignments}
            return f"{when} UPDATE SET {_assignments(some, types, hidden)}"
        case _:
            assert_never(clause.action)


def _assignments(values: Mapping[str, str], types: Mapping[str, str], hidden: Sequence[PartitionColumn]) -> str:
    """What columns are set to, in their types, and hidden columns that are made from them."""
    typed = {name.casefold(): f"CAST({value} AS {types[name.casefold()]})" for name, value in values.items()}

    def value_of(name: str) -> str:
        return typed.get(name.casefold(), f"target.{quote(name)}")

    sets = {quote(name): typed[name.casefold()] for name in values}
    for column in hidden:
        if column.expression is not None and columns_of_expression(column.expression) & typed.keys():
            sets[quote(column.name)] = replace_columns(column.expression, value_of)
    return ", ".join(f"target.{name} = {value}" for name, value in sets.items())


def _side(expression: str, side: str) -> str:
    return replace_columns(expression, lambda name: f"{side}.{quote(name)}")
