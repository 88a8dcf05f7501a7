"""Upserts without MERGE: the table after a batch, row by row."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame

from lamina.errors import BadModelResult, BadPropertyValue
from lamina.graph.kinds import IncrementalByUniqueKey
from lamina.spark.engine import SparkEngine
from lamina.spark.kinds.problems import PROBLEM, check_fold
from lamina.spark.kinds.upsert import upserted
from tests.spark.small_tables import cells, frame, in_order, types

pytest_plugins = ["tests.ports.conftest_engine"]

EMPLOYEES = "name string, title string, salary int"
BY_NAME = IncrementalByUniqueKey(unique_key=("name",))


def check_keys(batch: DataFrame, kind: IncrementalByUniqueKey) -> None:
    check_fold(upserted(None, batch, kind), batch, kind)


def after(base: DataFrame | None, batch: DataFrame, kind: IncrementalByUniqueKey) -> DataFrame:
    return upserted(base, batch, kind).drop(PROBLEM)


def test_new_keys_are_added_known_ones_replaced_and_the_rest_stays(engine: SparkEngine) -> None:
    base = frame(engine, EMPLOYEES, ("ann", "cook", 10), ("bob", "cook", 20), ("cid", None, 30))
    batch = frame(engine, EMPLOYEES, ("bob", None, 21), ("dan", "chef", 40))
    table = after(base, batch, BY_NAME)
    assert cells(table) == in_order(("ann", "cook", 10), ("bob", None, 21), ("cid", None, 30), ("dan", "chef", 40))
    assert types(table) == EMPLOYEES


def test_the_first_load_and_an_empty_batch(engine: SparkEngine) -> None:
    rows = [("ann", "cook", 10), ("bob", None, 20)]
    batch = frame(engine, EMPLOYEES, *rows)
    assert cells(after(None, batch, BY_NAME)) == in_order(*rows)
    assert cells(after(batch, frame(engine, EMPLOYEES), BY_NAME)) == in_order(*rows)


def test_composite_and_expression_keys(engine: SparkEngine) -> None:
    kind = IncrementalByUniqueKey(unique_key=("lower(first)", "coalesce(last, '')"))
    columns = "first string, last string, n int"
    base = frame(engine, columns, ("Ann", "Lee", 1), ("ann", None, 2), ("Bob", "Lee", 3))
    batch = frame(engine, columns, ("ANN", "Lee", 10), ("Ann", "", 20), ("bob", "Ray", 30))
    assert cells(after(base, batch, kind)) == in_order(
        ("ANN", "Lee", 10), ("Ann", "", 20), ("Bob", "Lee", 3), ("bob", "Ray", 30)
    )


def test_the_first_clause_that_applies_wins_and_without_one_a_row_stays(engine: SparkEngine) -> None:
    kind = IncrementalByUniqueKey(
        unique_key=("name",),
        when_matched=(
            "WHEN MATCHED AND source.title = 'gone' THEN DELETE",
            "WHEN MATCHED AND source.title IS NULL THEN UPDATE SET target.salary = target.salary + source.salary",
            "WHEN MATCHED AND CASE WHEN source.salary > 5 THEN true END THEN UPDATE SET *",
        ),
    )
    base = frame(engine, EMPLOYEES, ("ann", "cook", 10), ("bob", "cook", 20), ("cid", "cook", 30), ("eve", "cook", 50))
    batch = frame(
        engine, EMPLOYEES, ("ann", "gone", 1), ("bob", None, 7), ("cid", "chef", 5), ("dan", "gone", 4), ("eve", "x", 6)
    )
    assert cells(after(base, batch, kind)) == in_order(
        ("bob", "cook", 27), ("cid", "cook", 30), ("dan", "gone", 4), ("eve", "x", 6)
    )


def test_assigned_values_get_the_type_of_their_column(engine: SparkEngine) -> None:
    clause = "WHEN MATCHED THEN UPDATE SET target.salary = source.salary * 2.5, TITLE = concat(target.title, '+')"
    kind = IncrementalByUniqueKey(unique_key=("name",), when_matched=(clause,))
    base = frame(engine, EMPLOYEES, ("ann", "cook", 10))
    table = after(base, frame(engine, EMPLOYEES, ("ann", "chef", 4)), kind)
    assert cells(table) == [("ann", "cook+", "10")]
    assert types(table) == EMPLOYEES


def test_a_merge_filter_restricts_which_rows_match(engine: SparkEngine) -> None:
    kind = IncrementalByUniqueKey(
        unique_key=("name",), merge_filter="target.salary > 10 AND source.title IS NOT NULL OR target.salary = 0"
    )
    base = frame(engine, EMPLOYEES, ("ann", "old", 10), ("bob", "old", 20), ("cid", "old", 30), ("dan", "old", None))
    batch = frame(engine, EMPLOYEES, ("ann", "new", 1), ("bob", "new", 2), ("cid", None, 3), ("dan", "new", 4))
    assert cells(after(base, batch, kind)) == in_order(
        ("ann", "old", 10),
        ("ann", "new", 1),
        ("bob", "new", 2),
        ("cid", "old", 30),
        ("cid", None, 3),
        ("dan", "old", None),
        ("dan", "new", 4),
    )


def test_the_last_row_by_the_order_is_the_one_that_counts(engine: SparkEngine) -> None:
    kind = IncrementalByUniqueKey(unique_key=("name",), order_by=("salary DESC NULLS LAST", "title"))
    batch = frame(
        engine, EMPLOYEES, ("ann", "a", 1), ("ann", "b", 1), ("ann", "c", 2), ("bob", "x", None), ("bob", "y", 9)
    )
    expected = in_order(("ann", "b", 1), ("bob", "x", None))
    assert cells(after(None, batch, kind)) == expected
    assert cells(after(frame(engine, EMPLOYEES, ("ann", "z", 0)), batch, kind)) == expected
    check_keys(batch, kind)


def test_columns_may_come_go_and_widen(engine: SparkEngine) -> None:
    base = frame(engine, "Name string, dropped int, salary bigint, level int", ("ann", 1, 10, 1), ("bob", 1, 20, 2))
    batch = frame(engine, "name string, salary int, level bigint", ("bob", 21, 3))
    batch = batch.selectExpr("array(1, 2) AS added", "name", "salary", "level")
    table = after(base, batch, BY_NAME)
    assert types(table) == "added array<int>, name string, salary bigint, level bigint"
    assert cells(table) == in_order((None, "ann", 10, 1), ("[1, 2]", "bob", 21, 3))


def test_a_column_of_another_type_is_refused(engine: SparkEngine) -> None:
    with pytest.raises(BadModelResult, match="column `n` was written as `string` and would now be `int`") as caught:
        after(frame(engine, "name string, n string"), frame(engine, "name string, n int"), BY_NAME)
    assert caught.value.hint.startswith("cast it to `string`")


def test_a_table_can_be_updated_from_itself(engine: SparkEngine) -> None:
    base = frame(engine, EMPLOYEES, ("ann", "cook", 10), ("bob", "cook", 20))
    batch = base.selectExpr("name", "title", "salary + 1 AS salary").filter("name = 'bob'")
    assert cells(after(base, batch, BY_NAME)) == in_order(("ann", "cook", 10), ("bob", "cook", 21))


@pytest.mark.parametrize("is_first", [True, False])
def test_repeated_keys_are_found_in_the_result_and_named(engine: SparkEngine, is_first: bool) -> None:
    columns = "a int, b string"
    kind = IncrementalByUniqueKey(unique_key=("a % 10", "b"), when_matched=("WHEN MATCHED THEN DELETE",))
    batch = frame(engine, columns, *((n, "x") for n in (16, 1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15)), (1, "y"))
    base = None if is_first else frame(engine, columns, (1, "x"))
    with pytest.raises(BadModelResult) as caught:
        check_fold(upserted(base, batch, kind), batch, kind)
    assert "the same unique key `a % 10, b`: `1, x`, `2, x`, `3, x`, `4, x`, `5, x` and others" in caught.value.message
    assert caught.value.hint


def test_nothing_is_wrong_with_no_rows(engine: SparkEngine) -> None:
    empty = frame(engine, EMPLOYEES)
    check_fold(upserted(empty, empty, BY_NAME), empty, BY_NAME)


def test_an_order_that_leaves_the_last_row_open_is_refused(engine: SparkEngine) -> None:
    kind = IncrementalByUniqueKey(unique_key=("name",), order_by=("salary",))
    batch = frame(engine, EMPLOYEES, ("ann", "a", 1), ("ann", "b", 1), ("bob", "a", 1), ("bob", "b", 2))
    with pytest.raises(BadModelResult, match=r"`name`: `ann`, and `order_by` does not tell the last"):
        check_keys(batch, kind)


def test_null_keys_are_refused(engine: SparkEngine) -> None:
    batch = frame(engine, EMPLOYEES, (None, "a", 1), (None, "a", 2), ("ann", None, 1))
    with pytest.raises(BadModelResult, match="the unique key `name` is NULL in 2 of the new rows"):
        check_keys(batch, BY_NAME)
    with pytest.raises(BadModelResult, match="the unique key `name, title` is NULL in 3 of the new rows"):
        check_keys(batch, IncrementalByUniqueKey(unique_key=("name", "title")))
    check_keys(batch, IncrementalByUniqueKey(unique_key=("coalesce(name, '')", "salary")))


def test_clauses_that_cannot_be_carried_out_are_refused(engine: SparkEngine) -> None:
    rows = frame(engine, EMPLOYEES)
    unknown = IncrementalByUniqueKey(unique_key=("name",), when_matched=("WHEN MATCHED THEN UPDATE SET salry = 1",))
    with pytest.raises(BadModelResult, match="`salry` is not among") as caught:
        after(None, rows, unknown)
    assert caught.value.hint == "did you mean `salary`?"
    other = IncrementalByUniqueKey(unique_key=("name",), when_matched=("WHEN NOT MATCHED BY SOURCE THEN DELETE",))
    with pytest.raises(BadPropertyValue):
        after(rows, rows, other)
