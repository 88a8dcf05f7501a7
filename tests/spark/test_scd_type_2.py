"""SCD type 2 without MERGE: histories after a run, cell by cell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest
from pyspark.sql import DataFrame

from lamina.errors import BadModelResult
from lamina.graph.kinds import ScdType2ByColumn, ScdType2ByTime
from lamina.spark.engine import SparkEngine
from lamina.spark.kinds.problems import PROBLEM, check_fold
from lamina.spark.kinds.scd_type_2 import scd_type_2
from lamina.timeline.interval import Instant
from tests.spark.small_tables import Cell, cells, frame, in_order, types

pytest_plugins = ["tests.ports.conftest_engine"]

EPOCH = "1970-01-01 00:00:00"
JAN_1, JAN_2, JAN_3, JAN_4 = (f"2020-01-0{day} 00:00:00" for day in (1, 2, 3, 4))
RUN_1, RUN_2, RUN_3 = (f"2020-01-0{day} 11:00:00" for day in (1, 2, 3))

ITEMS = "id int, name string, price double, updated_at timestamp"
PLAIN_ITEMS = "id int, name string, price double"
VALID = ", valid_from timestamp, valid_to timestamp"
BY_TIME = ScdType2ByTime(unique_key=("id",), invalidate_hard_deletes=True)
KEEPS_MISSING = replace(BY_TIME, invalidate_hard_deletes=False)
BY_COLUMN = ScdType2ByColumn(unique_key=("id",), columns=("name", "price"), invalidate_hard_deletes=True)

Rows = list[tuple[Cell, ...]]


def check_source(source: DataFrame, kind: ScdType2ByTime | ScdType2ByColumn) -> None:
    check_fold(scd_type_2(None, source, kind, execution_time=Instant(0)), source, kind)


def after(base: DataFrame | None, source: DataFrame, kind: ScdType2ByTime | ScdType2ByColumn, at: str) -> DataFrame:
    return scd_type_2(base, source, kind, execution_time=Instant.parse_iso(at)).drop(PROBLEM)


@pytest.fixture(autouse=True, scope="module")
def utc(engine: SparkEngine) -> Iterator[None]:
    """Tasks run in UTC; a session that is handed in may not."""
    name = "spark.sql.session.timeZone"
    before = engine.frame(f"SET {name}").collect()[0][1]
    engine.frame(f"SET {name} = UTC")
    yield
    engine.frame(f"SET {name} = {before}")


# --- by time ----------------------------------------------------------------------------------------------------------
TIME_FIRST: Rows = [
    (1, "Chicken Sandwich", 10.99, JAN_1, EPOCH, None),
    (2, "Cheeseburger", 8.99, JAN_1, EPOCH, None),
    (3, "French Fries", 4.99, JAN_1, EPOCH, None),
]
TIME_SECOND: Rows = [
    (1, "Chicken Sandwich", 10.99, JAN_1, EPOCH, JAN_2),
    (1, "Chicken Sandwich", 12.99, JAN_2, JAN_2, None),
    (2, "Cheeseburger", 8.99, JAN_1, EPOCH, RUN_2),
    (3, "French Fries", 4.99, JAN_1, EPOCH, None),
    (4, "Milkshake", 3.99, JAN_2, JAN_2, None),
]
TIME_THIRD: Rows = [
    (1, "Chicken Sandwich", 10.99, JAN_1, EPOCH, JAN_2),
    (1, "Chicken Sandwich", 12.99, JAN_2, JAN_2, JAN_3),
    (1, "Chicken Sandwich", 14.99, JAN_3, JAN_3, None),
    (2, "Cheeseburger", 8.99, JAN_1, EPOCH, RUN_2),
    (2, "Cheeseburger", 8.99, JAN_3, JAN_3, None),
    (3, "French Fries", 4.99, JAN_1, EPOCH, None),
    (4, "Milkshake", 3.99, JAN_2, JAN_2, JAN_3),
    (4, "Chocolate Milkshake", 3.99, JAN_3, JAN_3, None),
]


def test_the_menu_by_time(engine: SparkEngine) -> None:
    source = frame(engine, ITEMS, *(row[:4] for row in TIME_FIRST))
    first = after(None, source, BY_TIME, RUN_1)
    assert cells(first) == in_order(*TIME_FIRST)
    assert types(first) == ITEMS + VALID

    source = frame(
        engine,
        ITEMS,
        (1, "Chicken Sandwich", 12.99, JAN_2),
        (3, "French Fries", 4.99, JAN_1),
        (4, "Milkshake", 3.99, JAN_2),
    )
    second = after(frame(engine, ITEMS + VALID, *TIME_FIRST), source, BY_TIME, RUN_2)
    assert cells(second) == in_order(*TIME_SECOND)
    assert types(second) == ITEMS + VALID

    source = frame(
        engine,
        ITEMS,
        (1, "Chicken Sandwich", 14.99, JAN_3),
        (2, "Cheeseburger", 8.99, JAN_3),
        (3, "French Fries", 4.99, JAN_1),
        (4, "Chocolate Milkshake", 3.99, JAN_3),
    )
    assert cells(after(frame(engine, ITEMS + VALID, *TIME_SECOND), source, BY_TIME, RUN_3)) == in_order(*TIME_THIRD)


def test_a_row_that_comes_back_unchanged_leaves_no_gap(engine: SparkEngine) -> None:
    base = frame(engine, ITEMS + VALID, (2, "Cheeseburger", 8.99, JAN_1, EPOCH, RUN_2))
    source = frame(engine, ITEMS, (2, "Cheeseburger", 8.99, JAN_1))
    assert cells(after(base, source, BY_TIME, RUN_3)) == in_order(
        (2, "Cheeseburger", 8.99, JAN_1, EPOCH, RUN_2), (2, "Cheeseburger", 8.99, JAN_1, RUN_2, None)
    )


def test_late_updates_and_equal_times_say_nothing_new_and_nothing_is_filled_in(engine: SparkEngine) -> None:
    base: Rows = [
        (1, "late", 1.0, JAN_3, EPOCH, None),
        (2, "equal", None, JAN_2, EPOCH, None),
        (3, None, 3.0, JAN_2, JAN_2, None),
        (4, "was", None, JAN_1, EPOCH, JAN_2),
        (4, "is", None, JAN_2, JAN_2, None),
    ]
    source: Rows = [
        (1, "older", 9.0, JAN_2),
        (2, "other", 2.0, JAN_2),
        (3, "named", None, JAN_3),
        (4, "is", 4.0, JAN_1),
    ]
    found = after(frame(engine, ITEMS + VALID, *base), frame(engine, ITEMS, *source), KEEPS_MISSING, RUN_3)
    expected = [row for row in base if row[0] != 3]
    expected += [(3, None, 3.0, JAN_2, JAN_2, JAN_3), (3, "named", None, JAN_3, JAN_3, None)]
    assert cells(found) == in_order(*expected)


def test_missing_rows_stay_open_unless_told_and_closed_history_is_never_changed(engine: SparkEngine) -> None:
    base: Rows = [
        (1, "missing", 1.0, JAN_1, EPOCH, None),
        (2, "ended", 1.0, JAN_1, EPOCH, JAN_2),
        (3, "came back", 1.0, JAN_1, JAN_3, None),
        (4, "from tomorrow", 1.0, JAN_4, JAN_4, None),
    ]
    # The third row was valid again from a time after its own; the update lies between the two.
    source = frame(engine, ITEMS, (3, "changed", 1.0, JAN_2))
    kept = after(frame(engine, ITEMS + VALID, *base), source, KEEPS_MISSING, RUN_3)
    changed: Rows = [(3, "came back", 1.0, JAN_1, JAN_3, JAN_3), (3, "changed", 1.0, JAN_2, JAN_3, None)]
    assert cells(kept) == in_order(base[0], base[1], base[3], *changed)
    ended = after(frame(engine, ITEMS + VALID, *base), source, BY_TIME, RUN_3)
    assert cells(ended) == in_order(
        (1, "missing", 1.0, JAN_1, EPOCH, RUN_3), base[1], (4, "from tomorrow", 1.0, JAN_4, JAN_4, JAN_4), *changed
    )


def test_names_and_types_of_validity_and_the_first_load_as_configured(engine: SparkEngine) -> None:
    kind = ScdType2ByTime(
        unique_key=("lower(code)", "shop"),
        valid_from_name="my_from",
        valid_to_name="my_to",
        time_data_type="date",
        updated_at_name="Changed",
        updated_at_as_valid_from=True,
    )
    columns = "code string, shop int, changed string"
    first = after(None, frame(engine, columns, ("A", 1, JAN_1), ("A", 2, RUN_2)), kind, RUN_2)
    expected: Rows = [("A", 1, JAN_1, "2020-01-01", None), ("A", 2, RUN_2, "2020-01-02", None)]
    assert cells(first) == in_order(*expected)
    assert types(first) == columns + ", my_from date, my_to date"
    base = frame(engine, columns + ", my_from date, my_to date", *expected)
    source = frame(engine, columns, ("a", 1, RUN_3), ("A", 2, "2020-01-02 10:00:00"))
    assert cells(after(base, source, kind, JAN_4)) == in_order(
        ("A", 1, JAN_1, "2020-01-01", "2020-01-03"), ("a", 1, RUN_3, "2020-01-03", None), expected[1]
    )


def test_times_without_a_zone(engine: SparkEngine) -> None:
    kind = replace(BY_TIME, time_data_type="timestamp_ntz")
    valid = ", valid_from timestamp_ntz, valid_to timestamp_ntz"
    base = frame(engine, ITEMS + valid, (1, "gone", 1.0, JAN_1, EPOCH, None))
    found = after(base, frame(engine, ITEMS, (2, "new", 2.0, JAN_2)), kind, "2020-01-03T11:00:00.000001Z")
    assert types(found) == ITEMS + valid
    assert cells(found) == in_order(
        (1, "gone", 1.0, JAN_1, EPOCH, "2020-01-03 11:00:00.000001"), (2, "new", 2.0, JAN_2, JAN_2, None)
    )


# --- by column --------------------------------------------------------------------------------------------------------
COLUMN_FIRST: Rows = [
    (1, "Chicken Sandwich", 10.99, EPOCH, None),
    (2, "Cheeseburger", 8.99, EPOCH, None),
    (3, "French Fries", 4.99, EPOCH, None),
]
COLUMN_SECOND: Rows = [
    (1, "Chicken Sandwich", 10.99, EPOCH, RUN_2),
    (1, "Chicken Sandwich", 12.99, RUN_2, None),
    (2, "Cheeseburger", 8.99, EPOCH, RUN_2),
    (3, "French Fries", 4.99, EPOCH, None),
    (4, "Milkshake", 3.99, RUN_2, None),
]
COLUMN_THIRD: Rows = [
    (1, "Chicken Sandwich", 10.99, EPOCH, RUN_2),
    (1, "Chicken Sandwich", 12.99, RUN_2, RUN_3),
    (1, "Chicken Sandwich", 14.99, RUN_3, None),
    (2, "Cheeseburger", 8.99, EPOCH, RUN_2),
    (2, "Cheeseburger", 8.99, RUN_3, None),
    (3, "French Fries", 4.99, EPOCH, None),
    (4, "Milkshake", 3.99, RUN_2, RUN_3),
    (4, "Chocolate Milkshake", 3.99, RUN_3, None),
]


def test_the_menu_by_column(engine: SparkEngine) -> None:
    source = frame(engine, PLAIN_ITEMS, *(row[:3] for row in COLUMN_FIRST))
    first = after(None, source, BY_COLUMN, RUN_1)
    assert cells(first) == in_order(*COLUMN_FIRST)
    assert types(first) == PLAIN_ITEMS + VALID

    menu = [(1, "Chicken Sandwich", 12.99), (3, "French Fries", 4.99), (4, "Milkshake", 3.99)]
    base = frame(engine, PLAIN_ITEMS + VALID, *COLUMN_FIRST)
    assert cells(after(base, frame(engine, PLAIN_ITEMS, *menu), BY_COLUMN, RUN_2)) == in_order(*COLUMN_SECOND)

    menu = [(1, "Chicken Sandwich", 14.99), (2, "Cheeseburger", 8.99), (3, "French Fries", 4.99)]
    menu.append((4, "Chocolate Milkshake", 3.99))
    base = frame(engine, PLAIN_ITEMS + VALID, *COLUMN_SECOND)
    assert cells(after(base, frame(engine, PLAIN_ITEMS, *menu), BY_COLUMN, RUN_3)) == in_order(*COLUMN_THIRD)


@pytest.mark.parametrize("columns", [("some_value",), ()])
def test_daily_snapshots_one_after_the_other(engine: SparkEngine, columns: tuple[str, ...]) -> None:
    kind = ScdType2ByColumn(unique_key=("id",), columns=columns, updated_at_name="ds", batch_size=1)
    shape = "id int, some_value int, ds date"
    day_1, day_2, day_3, day_4 = (f"2025-01-0{day}" for day in (1, 2, 3, 4))
    table: DataFrame | None = None
    for value, day in ((1, day_1), (2, day_2), (3, day_3), (3, day_4)):
        table = after(table, frame(engine, shape, (1, value, day)), kind, "2025-02-01")
    assert table is not None
    assert cells(table) == in_order(
        (1, 1, day_1, EPOCH, f"{day_2} 00:00:00"),
        (1, 2, day_2, f"{day_2} 00:00:00", f"{day_3} 00:00:00"),
        (1, 3, day_3, f"{day_3} 00:00:00", None),
    )


def test_own_times_of_rows_never_bring_histories_out_of_order(engine: SparkEngine) -> None:
    kind = replace(BY_COLUMN, columns=("name",), updated_at_name="updated_at")
    base: Rows = [
        (1, "now", 1.0, JAN_3, JAN_3, None),
        (2, "deleted", 1.0, JAN_1, EPOCH, RUN_3),
        (3, "gone", 1.0, JAN_1, EPOCH, None),
        (4, "same day", 1.0, JAN_2, JAN_2, None),
    ]
    source: Rows = [
        (1, "late", 1.0, JAN_2),
        (2, "back", 1.0, JAN_2),
        (4, "corrected", 1.0, JAN_2),
        (5, "new", 1.0, JAN_2),
    ]
    found = after(frame(engine, ITEMS + VALID, *base), frame(engine, ITEMS, *source), kind, JAN_4)
    assert cells(found) == in_order(
        base[0],
        base[1],
        (2, "back", 1.0, JAN_2, RUN_3, None),
        (3, "gone", 1.0, JAN_1, EPOCH, JAN_4),
        (4, "same day", 1.0, JAN_2, JAN_2, JAN_2),
        (4, "corrected", 1.0, JAN_2, JAN_2, None),
        (5, "new", 1.0, JAN_2, JAN_2, None),
    )


def test_new_keys_begin_at_the_execution_time_where_that_is_asked_for(engine: SparkEngine) -> None:
    kind = replace(BY_COLUMN, columns=("name",), updated_at_name="updated_at", execution_time_as_valid_from=True)
    first = after(None, frame(engine, ITEMS, (1, "a", 1.0, JAN_1), (2, "b", 1.0, JAN_1)), kind, RUN_1)
    assert cells(first) == in_order((1, "a", 1.0, JAN_1, RUN_1, None), (2, "b", 1.0, JAN_1, RUN_1, None))
    source: Rows = [(1, "changed", 1.0, JAN_3), (2, "b", 1.0, JAN_1), (3, "new", 1.0, JAN_2)]
    assert cells(after(first, frame(engine, ITEMS, *source), kind, JAN_4)) == in_order(
        (1, "a", 1.0, JAN_1, RUN_1, JAN_3),
        (1, "changed", 1.0, JAN_3, JAN_3, None),
        (2, "b", 1.0, JAN_1, RUN_1, None),
        (3, "new", 1.0, JAN_2, JAN_4, None),
    )


def test_changes_to_and_from_null_are_changes_and_other_columns_are_not_looked_at(engine: SparkEngine) -> None:
    kind = replace(BY_COLUMN, columns=("NAME",), invalidate_hard_deletes=False)
    base: Rows = [
        (1, None, 1.0, EPOCH, None),
        (2, "x", 2.0, EPOCH, None),
        (3, None, None, EPOCH, None),
        (4, "not there", 4.0, EPOCH, None),
        (5, "was", None, EPOCH, RUN_1),
        (5, "is", None, RUN_1, None),
    ]
    source: Rows = [(1, "x", 1.0), (2, None, 2.0), (3, None, 3.0), (5, "is", 5.0)]
    found = after(frame(engine, PLAIN_ITEMS + VALID, *base), frame(engine, PLAIN_ITEMS, *source), kind, RUN_2)
    assert cells(found) == in_order(
        (1, None, 1.0, EPOCH, RUN_2),
        (1, "x", 1.0, RUN_2, None),
        (2, "x", 2.0, EPOCH, RUN_2),
        (2, None, 2.0, RUN_2, None),
        *base[2:],
    )


def test_every_column_of_whatever_type_can_be_compared(engine: SparkEngine) -> None:
    kind = ScdType2ByColumn(unique_key=("id",), columns=(), execution_time_as_valid_from=True)

    def shaped(*rows: tuple[Cell, ...]) -> DataFrame:
        return frame(engine, "id int, is_turned boolean, n int, d double, v string", *rows).selectExpr(
            "id",
            "if(is_turned, map('b', n, 'a', 1), map('a', 1, 'b', n)) AS m",
            "array(named_struct('x', d)) AS d",
            "v COLLATE UTF8_LCASE AS v",
        )

    before = [(1, "no", 2, "NaN", "é"), (2, "no", 2, "1", None), (3, "no", None, "1", None), (4, "no", 2, "1", "x")]
    now = [(1, "yes", 2, "NaN", "é"), (2, "yes", 2, "2", None), (3, "yes", 3, "1", None), (4, "yes", 2, "1", "X")]
    table = after(after(None, shaped(*before), kind, RUN_1), shaped(*now), kind, RUN_2)
    changed = [row for key in (2, 3, 4) for row in ((key, RUN_1, RUN_2), (key, RUN_2, None))]
    assert cells(table.select("id", "valid_from", "valid_to")) == in_order((1, RUN_1, None), *changed)


def test_a_new_column_is_unknown_in_the_past(engine: SparkEngine) -> None:
    kind = replace(BY_COLUMN, columns=("name", "stars"))
    base = frame(engine, "id int, name string, gone int" + VALID, (1, "a", 7, EPOCH, None), (2, "b", 7, EPOCH, None))
    source = frame(engine, "id bigint, stars int, name string", (1, 5, "a"), (2, None, "b"))
    found = after(base, source, kind, RUN_2)
    assert types(found) == "id bigint, stars int, name string" + VALID
    assert cells(found) == in_order((1, None, "a", EPOCH, RUN_2), (1, 5, "a", RUN_2, None), (2, None, "b", EPOCH, None))


# --- histories at random ----------------------------------------------------------------------------------------------
def days(number: int, hour: int = 0) -> str:
    return f"2020-02-{number:02} {hour:02}:00:00"


def slowly(base: Rows | None, source: Rows, kind: ScdType2ByTime | ScdType2ByColumn, at: str) -> Rows:
    """What a person with a pencil would do, key by key; rows are key, value, time and validity."""
    is_by_time = isinstance(kind, ScdType2ByTime)
    if base is None:
        return [(*row, EPOCH, None) for row in source]
    table = list(base)
    incoming = {row[0]: row for row in source}
    for key in {row[0] for row in base} | set(incoming):
        past = [row for row in base if row[0] == key]
        current = next((row for row in past if row[4] is None), None)
        new = incoming.get(key)
        if new is None:
            if current is not None and kind.invalidate_hard_deletes:
                table[table.index(current)] = (*current[:4], max(at, current[3]))
            continue
        if current is not None and not (new[2] > current[2] if is_by_time else new[1] != current[1]):
            continue
        start = max([new[2] if is_by_time else at, *(row[4] or row[3] for row in past)])
        if current is not None:
            table[table.index(current)] = (*current[:4], start)
        table.append((*new, start, None))
    return table


@pytest.mark.parametrize(
    "kind",
    [
        ScdType2ByTime(unique_key=("id",), invalidate_hard_deletes=True, updated_at_name="at"),
        ScdType2ByTime(unique_key=("id",), updated_at_name="at"),
        ScdType2ByColumn(unique_key=("id",), columns=("value",), invalidate_hard_deletes=True),
    ],
    ids=["by time, deletes seen", "by time", "by column, deletes seen"],
)
def test_histories_at_random(engine: SparkEngine, kind: ScdType2ByTime | ScdType2ByColumn) -> None:
    chance = Random(7)
    columns = "id int, value string, at timestamp"
    table: Rows | None = None
    for run in range(1, 6):
        keys = chance.sample(range(60), 40)
        source: Rows = [(key, chance.choice(["a", "b", None]), days(chance.randint(1, 8))) for key in keys]
        expected = slowly(table, source, kind, days(run, hour=9))
        base = None if table is None else frame(engine, columns + VALID, *table)
        found = cells(after(base, frame(engine, columns, *source), kind, days(run, hour=9)))
        assert found == in_order(*expected)
        assert {row for row in table or () if row[4] is not None} <= set(expected)
        table = expected
    assert table is not None
    assert len(table) > 100


# --- what is refused --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("is_first", [True, False])
def test_bad_rows_are_in_the_result_and_refused(engine: SparkEngine, is_first: bool) -> None:
    base = None if is_first else frame(engine, ITEMS + VALID, (1, "a", 1.0, JAN_1, EPOCH, None))
    source = frame(engine, ITEMS, (1, "a", 1.0, JAN_2), (1, "b", 1.0, JAN_3), (2, "c", 1.0, None), (3, "d", 1.0, JAN_1))
    folded = scd_type_2(base, source, BY_TIME, execution_time=Instant(0))
    assert folded.filter(f"{PROBLEM} = 'null_time'").count() == 1
    with pytest.raises(BadModelResult, match=r"the same unique key `id`: `1`\n"):
        check_fold(folded, source, BY_TIME)


def test_null_keys_and_null_times_are_refused(engine: SparkEngine) -> None:
    with pytest.raises(BadModelResult, match="the unique key `id` is NULL in 1 of the new rows"):
        check_source(frame(engine, ITEMS, (None, "a", 1.0, JAN_1)), BY_TIME)
    without_time = frame(engine, ITEMS, (1, "a", 1.0, None))
    with pytest.raises(BadModelResult, match="`updated_at` is NULL in 1 of the new rows"):
        check_source(without_time, BY_TIME)
    check_source(without_time, BY_COLUMN)


def test_two_open_rows_of_a_key_are_refused(engine: SparkEngine) -> None:
    base = frame(engine, PLAIN_ITEMS + VALID, (1, "a", 1.0, EPOCH, None), (1, "b", 1.0, EPOCH, None))
    source = frame(engine, PLAIN_ITEMS, (1, "a", 1.0))
    with pytest.raises(BadModelResult, match="2 rows of the table are open beside another one"):
        check_fold(scd_type_2(base, source, BY_COLUMN, execution_time=Instant(0)), source, BY_COLUMN)


def test_columns_that_do_not_fit_are_refused_before_any_job(engine: SparkEngine) -> None:
    source, base = frame(engine, ITEMS), frame(engine, ITEMS + VALID)
    for kind, table, reason in (
        (replace(BY_TIME, updated_at_name="updatedat"), None, "`updated_at_name`: `updatedat` is not among"),
        (replace(BY_TIME, updated_at_name="price"), None, "column `price` has type `double`, which cannot hold a time"),
        (replace(BY_COLUMN, columns=("nam",)), None, "`columns`: `nam` is not among"),
        (replace(BY_TIME, time_data_type="date"), base, "`valid_from` was written as `timestamp`"),
        (replace(BY_TIME, valid_to_name="until"), base, "the table has no column `until`, which `valid_to_name` names"),
        (replace(BY_TIME, valid_from_name="NAME"), None, "the query gives a column `NAME`"),
    ):
        with pytest.raises(BadModelResult) as caught:
            after(table, source, kind, RUN_1)
        assert reason in caught.value.message
        assert caught.value.hint
