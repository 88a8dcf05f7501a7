"""INCREMENTAL_BY_UNIQUE_KEY without MERGE: the table after a batch, as a query over the table before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf
from typing_extensions import assert_never

from lamina.spark.kinds.columns import find_column, side_by_side
from lamina.spark.kinds.keys import IS_LAST, IS_REPEATED, is_null_key, key_columns, with_keys, with_order
from lamina.spark.kinds.problems import NULL_KEY, PROBLEM, REPEATED_KEY
from lamina.sql.header.merge_clauses import Delete, MergeClause, UpdateAll, UpdateSome, read_merge_clauses
from lamina.sql.names import quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructField

    from lamina.graph.kinds import IncrementalByUniqueKey

_IS_OLD = "_lamina_is_old"
_IS_NEW = "_lamina_is_new"
_CLAUSE = "_lamina_clause"
_REPLACE = MergeClause(condition=None, action=UpdateAll())


def upserted(base: DataFrame | None, batch: DataFrame, kind: IncrementalByUniqueKey) -> DataFrame:
    """The whole table after the batch, with the batch's columns; `base` is the table before it, None if there is none.

    New rows without a match are added. A matched row becomes what the first clause of `when_matched` that applies
    says, and stays as it is when none does; without clauses it is replaced. Rows for which `merge_filter` does not
    hold do not match. Of new rows with the same key only the last by `order_by` counts.

    The last column is `PROBLEM`: rows in which it is not NULL keep the result from being used.
    """
    clauses = read_merge_clauses(kind.when_matched) or (_REPLACE,)
    changes = [_changes(clause, batch) for clause in clauses]
    if base is None:
        return _latest(batch, kind).select(*(quote(name) for name in batch.columns), PROBLEM)
    target, source = side_by_side(base, batch)
    joined = _joined(with_keys(target, kind.unique_key), _latest(source, kind), kind)
    decided = joined.withColumn(_CLAUSE, _clause_of_row(clauses))
    deletes = [number for number, clause in enumerate(clauses) if isinstance(clause.action, Delete)]
    if deletes:
        is_deleted = sf.coalesce(sf.col(_CLAUSE).isin(deletes), sf.lit(False))
        decided = decided.filter(~is_deleted | sf.col(PROBLEM).isNotNull())
    return decided.select(*(_value(field, changes) for field in source.schema.fields), PROBLEM)


def _latest(batch: DataFrame, kind: IncrementalByUniqueKey) -> DataFrame:
    """One row per key, and every row without a key, with the hidden columns of keys and problems."""
    ordered = with_order(with_keys(batch, kind.unique_key), kind.unique_key, kind.order_by)
    problem = sf.when(is_null_key(kind.unique_key), NULL_KEY).when(sf.col(IS_REPEATED), REPEATED_KEY)
    judged = ordered.withColumn(PROBLEM, problem)
    return judged.filter(sf.col(IS_LAST) | sf.col(PROBLEM).isNotNull()).drop(IS_LAST, IS_REPEATED)


def _joined(target: DataFrame, source: DataFrame, kind: IncrementalByUniqueKey) -> DataFrame:
    """Every row of both sides; names of columns are told apart by `source` and `target`, as in MERGE."""
    conditions = [f"target.{name} = source.{name}" for name in key_columns(kind.unique_key)]
    if kind.merge_filter:
        conditions.append(f"({kind.merge_filter})")
    return (
        target.withColumn(_IS_OLD, sf.lit(True))
        .alias("target")
        .join(source.withColumn(_IS_NEW, sf.lit(True)).alias("source"), sf.expr(" AND ".join(conditions)), "full_outer")
    )


def _clause_of_row(clauses: Iterable[MergeClause]) -> SparkColumn:
    """The number of the first clause that applies to a matched row; NULL for every other row."""
    numbers = [
        sf.when(sf.expr(clause.condition), index) if clause.condition else sf.lit(index)
        for index, clause in enumerate(clauses)
    ]
    return sf.when(sf.col(_IS_OLD) & sf.col(_IS_NEW), sf.coalesce(*numbers))


def _changes(clause: MergeClause, batch: DataFrame) -> Mapping[str, SparkColumn]:
    """What the clause sets columns to."""
    match clause.action:
        case UpdateAll():
            return {name: sf.col(quote("source", name)) for name in batch.columns}
        case UpdateSome(assignments=assignments):
            return {find_column(batch, each.column, "when_matched"): sf.expr(each.value) for each in assignments}
        case Delete():
            return {}
        case _:
            assert_never(clause.action)


def _value(field: StructField, changes: Iterable[Mapping[str, SparkColumn]]) -> SparkColumn:
    value = sf.when(sf.col(_IS_OLD).isNull(), sf.col(quote("source", field.name)))
    for index, changed in enumerate(changes):
        if field.name in changed:
            value = value.when(sf.col(_CLAUSE) == index, changed[field.name].cast(field.dataType))
    return value.otherwise(sf.col(quote("target", field.name))).alias(field.name)
