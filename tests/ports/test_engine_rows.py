"""What every engine must do with rows: whole tables, intervals, partitions, columns."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lamina.app.ports.engine import AuditQuery, AuditRequest, ShownRows, StagedRows
from lamina.app.rendering.models import head_relation
from lamina.errors import (
    BadModelResult,
    QueryFailed,
)
from lamina.graph.kinds import TimeColumn
from lamina.graph.model import Column
from lamina.sql.names import text_literal
from lamina.timeline.grain import Grain
from lamina.timeline.interval import EMPTY, Intervals
from tests.spark.driver import DAY, NOTHING, THREE_DAYS, THREE_ROWS, Table, by_day

pytest_plugins = ["tests.ports.conftest_engine"]
pytestmark = pytest.mark.spark


# --- whole tables -----------------------------------------------------------------------------------------------------
def test_a_whole_table_is_written_aside_and_then_shown(table: Table) -> None:
    table.comments = {"ID": "it's a \\ number"}
    written = table.write("SELECT id, CAST(id AS decimal(10,2)) AS price FROM range(3)")
    assert written.rows == 3
    assert written.shape.columns == (
        Column(name="id", type="bigint", comment="it's a \\ number"),
        Column(name="price", type="decimal(10,2)"),
    )
    assert list(written.folders) == [()]
    assert table.rows() == [(0, "0.00"), (1, "1.00"), (2, "2.00")]
    described = table.engine.query(f"DESCRIBE TABLE {table.physical}", limit=None).rows
    assert described[0] == ("id", "bigint", "it's a \\ number")


def test_writing_changes_nothing_that_readers_see(table: Table) -> None:
    table.write("SELECT 1 AS id")
    table.engine.write(table.request("SELECT 2 AS id"))
    assert table.rows() == [(1,)]


def test_a_failing_query_leaves_the_old_rows(table: Table) -> None:
    table.write("SELECT 1 AS id")
    with pytest.raises(QueryFailed) as caught:
        table.write("SELECT\n  CAST(id AS int) / (id - 5) AS id\nFROM range(10)")
    assert "DIVIDE_BY_ZERO" in caught.value.message
    assert "line 2 of the SQL sent" in caught.value.message
    assert caught.value.node == f"{table.schema}.{table.name}"
    assert str(caught.value.location) == "models/t.sql:1"
    assert "at org.apache" not in str(caught.value)
    assert table.rows() == [(1,)]


def test_a_whole_result_without_rows_empties_the_table(table: Table) -> None:
    table.write("SELECT 1 AS id, 'a' AS name")
    written = table.write("SELECT 1 AS id, 'a' AS name WHERE false")
    assert written.rows == 0
    assert table.rows() == []


def test_partitions_that_a_whole_result_lacks_are_gone(table: Table) -> None:
    table = replace(table, partitioned_by=("g",))
    table.write("SELECT * FROM VALUES (1, 'a'), (2, 'b') v(id, g)")
    written = table.write("SELECT * FROM VALUES (3, 'b'), (4, 'c') v(id, g)")
    assert written.removed == (("a",),)
    assert table.rows() == [(3, "b"), (4, "c")]


def test_the_columns_of_a_table_may_change(table: Table) -> None:
    table.write("SELECT 1 AS id, 2 AS old")
    table.write("SELECT 'x' AS name, 1 AS id")
    assert table.rows() == [("x", 1)]


# --- comparing --------------------------------------------------------------------------------------------------------
def changed_by(
    table: Table, sql: str, interval: tuple[str, str], recorded: tuple[str, str] | None = None, grain: Grain = Grain.DAY
) -> tuple[tuple[str, str], ...]:
    """What a batch says about recorded time when it is computed again."""
    time = Intervals.from_pairs([recorded or interval])
    written = table.engine.write(replace(table.request(sql, interval), recorded=time, grain=grain))
    return tuple((start[:13], end[:13]) for start, end in written.changed.to_pairs())


# Other layouts and types are compared in `tests/spark/test_time_columns.py`.
LAYOUTS = [(("ds",), None), (("month(ds)",), Grain.DAY)]
TIMES = [
    ("ts", TimeColumn(name="at")),
    ("CAST(date_format(ts, 'yyyyMMddHH') AS int)", TimeColumn(name="at", format="%Y%m%d%H")),
]


@pytest.mark.parametrize(("partitioned_by", "measured_in"), LAYOUTS)
def test_computing_again_tells_which_days_came_out_different(
    table: Table, partitioned_by: tuple[str, ...], measured_in: Grain | None
) -> None:
    table = by_day(table, partitioned_by=partitioned_by, measured_in=measured_in)
    values = "(1, 'a', DATE'2024-01-01'), (2, NULL, DATE'2024-01-02'), (3, 'b', DATE'2024-01-03')"
    rows = f"SELECT * FROM VALUES {values} v(id, g, ds)"
    table.write(rows, THREE_DAYS)
    assert changed_by(table, f"{rows} ORDER BY id DESC", THREE_DAYS) == ()
    other = rows.replace("(2, NULL", "(2, 'x'")
    assert changed_by(table, other, THREE_DAYS) == (("2024-01-02T00", "2024-01-03T00"),)
    assert changed_by(table, other, THREE_DAYS, ("2024-01-03", "2024-01-04")) == ()
    assert changed_by(table, f"{rows} WHERE id <> 3", THREE_DAYS) == (("2024-01-03T00", "2024-01-04T00"),)
    assert changed_by(table, f"{rows} UNION ALL ({rows})", THREE_DAYS) == (("2024-01-01T00", "2024-01-04T00"),)
    assert changed_by(table, f"{rows} WHERE false", THREE_DAYS) == (("2024-01-01T00", "2024-01-04T00"),)


def test_what_is_remembered_of_a_day_is_compared_without_reading_it(table: Table) -> None:
    table = by_day(table, measured_in=Grain.DAY)
    plain = table.write(THREE_ROWS, THREE_DAYS).statements
    recorded = Intervals.from_pairs([("2024-01-01", "2024-01-03")])
    again = replace(table.request(THREE_ROWS, THREE_DAYS), recorded=recorded, grain=Grain.DAY)
    written = table.engine.write(again)
    assert (written.changed, written.statements) == (EMPTY, plain - 1)
    assert list(written.contents) == list(again.measured)
    table.publish(again, written)
    late = f"{THREE_ROWS} UNION ALL SELECT 9, DATE'2024-01-02'"
    later = table.engine.write(replace(table.request(late, THREE_DAYS), recorded=recorded, grain=Grain.DAY))
    assert later.changed == Intervals.from_pairs([("2024-01-02", "2024-01-03")])
    assert later.statements == plain
    assert later.contents[again.measured[2]] == written.contents[again.measured[2]]


def test_rows_of_several_new_days_are_remembered_each_for_itself(table: Table) -> None:
    table = by_day(table, measured_in=Grain.DAY)
    table.write(THREE_ROWS, ("2024-01-01", "2024-01-02"))
    first = Intervals.from_pairs([("2024-01-01", "2024-01-02")])
    request = replace(table.request(THREE_ROWS, THREE_DAYS), recorded=first, grain=Grain.DAY)
    found = table.engine.write(request).contents
    assert {text.partition(":")[0] for text in found.values()} == {"1"}
    assert len(set(found.values())) == len(found) == 3


def test_days_that_are_not_remembered_are_read(table: Table) -> None:
    table = by_day(table)
    table.write(THREE_ROWS, THREE_DAYS)
    table = replace(table, measured_in=Grain.DAY)
    late = f"{THREE_ROWS} UNION ALL SELECT 9, DATE'2024-01-02'"
    assert changed_by(table, late, THREE_DAYS) == (("2024-01-02T00", "2024-01-03T00"),)


def test_a_value_that_moved_to_another_column_is_a_difference(table: Table) -> None:
    table = by_day(table)
    table.write("SELECT 1 AS a, CAST(NULL AS int) AS b, DATE'2024-01-02' AS ds", DAY)
    assert changed_by(table, "SELECT CAST(NULL AS int) AS a, 1 AS b, DATE'2024-01-02' AS ds", DAY) != ()


NESTED = (
    "array(1, NULL)",
    "array(NULL, 1)",
    "array(CAST(NULL AS int))",
    "CAST(array() AS array<int>)",
    "CAST(NULL AS array<int>)",
), (
    "map('a', 1, 'b', NULL)",
    "map('a', NULL, 'b', 1)",
    "map('a', 1)",
), (
    "named_struct('x', 1, 'y', CAST(NULL AS int))",
    "named_struct('x', CAST(NULL AS int), 'y', 1)",
    "CAST(NULL AS struct<x: int, y: int>)",
), (
    "'a' COLLATE UTF8_LCASE",
    "'A' COLLATE UTF8_LCASE",
), (
    "parse_json('{\"a\": 1}')",
    "parse_json('{\"a\": null}')",
)  # fmt: skip


@pytest.mark.parametrize("values", NESTED, ids=lambda values: values[0])
def test_values_inside_values_are_compared_too(table: Table, values: tuple[str, ...]) -> None:
    found = [table.engine.write(table.request(f"SELECT {value} AS x")).contents[None] for value in values]
    assert len(set(found)) == len(values)
    assert table.engine.write(table.request(f"SELECT {values[0]} AS x")).contents[None] == found[0]


def test_the_order_of_a_map_is_no_difference(table: Table) -> None:
    found = {
        table.engine.write(table.request(f"SELECT {value} AS x")).contents[None]
        for value in ("map('a', 1, 'b', 2)", "map('b', 2, 'a', 1)")
    }
    assert len(found) == 1


@pytest.mark.parametrize(("time", "declared"), TIMES)
def test_differences_are_told_in_hours_out_of_very_many(table: Table, time: str, declared: TimeColumn) -> None:
    table = by_day(table, partitioned_by=(), time_column=declared)
    rows = (
        f"SELECT id, {time} AS at FROM (SELECT id, timestampadd(HOUR, CAST(id AS int), TIMESTAMP'2024-01-01') AS ts "
        "FROM range(2000))"
    )
    whole = ("2024-01-01", "2024-03-25")
    table.write(rows, whole)
    other = rows.replace("SELECT id, " + time, f"SELECT IF(id IN (100, 101, 1999), -1, id) AS id, {time}")
    assert changed_by(table, other, whole, grain=Grain.HOUR) == (
        ("2024-01-05T04", "2024-01-05T06"),
        ("2024-03-24T07", "2024-03-24T08"),
    )


# --- audits -----------------------------------------------------------------------------------------------------------
def test_audits_see_the_rows_of_a_batch_and_those_they_refuse_are_kept(table: Table) -> None:
    table = by_day(table, partitioned_by=("month(ds)",))
    table.write(THREE_ROWS, THREE_DAYS)
    request = table.request("SELECT 20 AS id, DATE'2024-01-02' AS ds", DAY)
    written = table.engine.write(request)
    queries = [
        AuditQuery(name=name, arguments="", is_blocking=is_blocking, sql=f"SELECT * FROM staged WHERE {rule}", key=name)
        for name, is_blocking, rule in (("none", True, "id < 20"), ("some", True, "id = 20"), ("said", False, "true"))
    ]
    found = table.engine.audit(
        AuditRequest(
            node=request.node,
            location=request.location,
            queries=tuple(queries),
            view="staged",
            staged=StagedRows(
                shape=written.shape,
                interval=request.interval,
                time_column=request.time_column,
            ),
            physical=request.physical,
            folder=request.folder,
        )
    )
    assert [(finding.query.name, finding.rows, finding.kept_at is not None) for finding in found] == [
        ("none", 0, False),
        ("some", 1, True),
        ("said", 1, False),
    ]
    assert table.engine.query(f"SELECT id FROM {found[1].kept_at}", limit=None).rows == ((20,),)
    assert table.rows("id") == [(1,), (2,), (3,)]
    table.publish(request, written)
    assert table.rows("id") == [(1,), (20,), (3,)]


def test_audits_see_the_published_rows_of_an_interval(table: Table) -> None:
    table = by_day(table, partitioned_by=("month(ds)",))
    table.write(THREE_ROWS, THREE_DAYS)
    head, request = table.head, table.request(NOTHING, DAY)
    assert head is not None
    assert request.interval is not None
    assert request.time_column is not None
    query = AuditQuery(name="all", arguments="", is_blocking=True, sql="SELECT * FROM shown", key="all")
    (found,) = table.engine.audit(
        AuditRequest(
            node=request.node,
            location=request.location,
            queries=(query,),
            view="shown",
            staged=ShownRows(
                relation=head_relation(head),
                columns=head.shape.columns,
                interval=request.interval,
                time_column=request.time_column,
            ),
            physical=request.physical,
            folder=request.folder,
        )
    )
    assert found.rows == 1
    assert table.engine.query(f"SELECT id FROM {found.kept_at}", limit=None).rows == ((2,),)
    assert table.rows("id") == [(1,), (2,), (3,)]


# --- intervals --------------------------------------------------------------------------------------------------------
def test_only_rows_inside_the_interval_land(table: Table) -> None:
    table = by_day(table)
    written = table.write(f"{THREE_ROWS} UNION ALL SELECT 9, NULL", DAY)
    assert (written.rows, written.null_times, written.statements <= 3) == (1, 1, True)
    assert table.rows() == [(2, "2024-01-02")]


def test_new_days_join_the_generation_and_old_ones_stay(table: Table) -> None:
    table = by_day(table)
    table.write(THREE_ROWS, ("2024-01-01", "2024-01-03"))
    generation = table.head.generation if table.head else ""
    table.write(THREE_ROWS, ("2024-01-03", "2024-01-04"))
    assert table.published_by == "partitions"
    assert table.engine.published([table.physical]) == {table.physical: generation}
    assert table.rows("id") == [(1,), (2,), (3,)]


def test_an_interval_is_replaced_and_nothing_else(table: Table) -> None:
    table = by_day(table)
    table.write(THREE_ROWS, THREE_DAYS)
    written = table.write("SELECT 20 AS id, DATE'2024-01-02' AS ds", DAY)
    assert written.removed == ()
    assert table.published_by == "generation"
    assert table.rows("id") == [(1,), (20,), (3,)]


def test_an_interval_that_comes_out_empty_ends_up_empty(table: Table) -> None:
    table = by_day(table)
    table.write(THREE_ROWS, THREE_DAYS)
    written = table.write(NOTHING, DAY)
    assert (written.rows, written.removed, dict(written.folders)) == (0, (("2024-01-02",),), {})
    assert table.rows("id") == [(1,), (3,)]


def test_an_interval_may_be_empty_from_the_start(table: Table) -> None:
    table = by_day(table)
    table.write(NOTHING, DAY)
    assert table.rows() == []
    table.write(THREE_ROWS, THREE_DAYS)
    assert table.rows("id") == [(1,), (2,), (3,)]


def hours(first: int, last: int, offset: int = 0) -> str:
    return (
        f"SELECT CAST({offset} + id AS bigint) AS id, TIMESTAMP'2024-01-01 00:00:00Z' + make_dt_interval(0, id) AS ts "
        f"FROM range({first}, {last})"
    )


def test_an_hour_is_replaced_inside_of_a_daily_partition(table: Table) -> None:
    table = replace(table, partitioned_by=("ts",), time_column=TimeColumn(name="ts"))
    table.write(hours(0, 72), THREE_DAYS)
    assert [column.is_hidden for column in table.head.shape.partition_columns] == [True]  # type: ignore[union-attr]
    table.write(hours(29, 30, offset=1000), ("2024-01-02T05:00:00", "2024-01-02T07:00:00"))
    kept = [*range(29), *range(31, 72)]
    assert sorted(row[0] for row in table.rows("id")) == sorted([*kept, 1029])
    assert table.rows("max(ts)") == [("2024-01-03T23:00:00Z",)]
    assert sorted(key[0] for key in table.manifest) == ["2024-01-01", "2024-01-02", "2024-01-03"]


def test_an_hour_that_comes_out_empty_leaves_the_rest_of_the_day(table: Table) -> None:
    table = replace(table, partitioned_by=("ts",), time_column=TimeColumn(name="ts"))
    table.write(hours(0, 3), THREE_DAYS)
    table.write(hours(0, 0), ("2024-01-01T01:00:00", "2024-01-01T02:00:00"))
    assert sorted(table.rows("id")) == [(0,), (2,)]
    written = table.write(hours(0, 0), ("2024-01-01T00:00:00", "2024-01-01T12:00:00"))
    assert written.removed == (("2024-01-01",),)
    assert table.rows() == []


def test_a_table_without_partitions_keeps_the_rows_of_other_intervals(table: Table) -> None:
    table = by_day(table, partitioned_by=())
    table.write(THREE_ROWS, THREE_DAYS)
    table.write("SELECT 20 AS id, DATE'2024-01-02' AS ds", DAY)
    table.write(NOTHING, ("2024-01-03", "2024-01-04"))
    assert table.rows("id") == [(1,), (20,)]


def test_partitions_that_say_nothing_about_time_are_replaced_exactly(table: Table, reached: list[str]) -> None:
    table = by_day(table, partitioned_by=("region",))
    table.write(
        "SELECT * FROM VALUES (1, 'eu', DATE'2024-01-01'), (2, 'us', DATE'2024-01-02'), (3, 'eu', DATE'2024-01-02'), "
        "(4, 'asia', DATE'2024-01-01') v(id, region, ds)",
        THREE_DAYS,
    )
    reached.clear()
    written = table.write("SELECT 5 AS id, 'asia' AS region, DATE'2024-01-02' AS ds", DAY)
    assert reached == ["write.half_folder"]
    assert written.rows == 1
    assert written.removed == (("us",),)
    assert sorted(written.folders) == [("asia",), ("eu",)]
    assert table.rows() == [(1, "eu", "2024-01-01"), (4, "asia", "2024-01-01"), (5, "asia", "2024-01-02")]


def test_further_partition_columns_are_replaced_with_their_day(table: Table) -> None:
    table = by_day(table, partitioned_by=("ds", "region", "upper(region)"))
    rows = "SELECT * FROM VALUES (1, DATE'2024-01-01', 'eu'), (2, DATE'2024-01-02', 'eu'), (3, DATE'2024-01-02', 'us')"
    table.write(f"{rows} v(id, ds, region)", THREE_DAYS)
    assert sorted(table.manifest) == [
        ("2024-01-01", "eu", "EU"),
        ("2024-01-02", "eu", "EU"),
        ("2024-01-02", "us", "US"),
    ]
    written = table.write("SELECT 4 AS id, DATE'2024-01-02' AS ds, 'us' AS region", DAY)
    assert written.removed == (("2024-01-02", "eu", "EU"),)
    assert table.rows() == [(1, "2024-01-01", "eu"), (4, "2024-01-02", "us")]


@pytest.mark.parametrize(
    ("days", "time_format"),
    [
        ("'2024-01-01', '2024-01-02', '2024-01-03'", None),
        ("'01.01.2024', '02.01.2024', '03.01.2024'", "%d.%m.%Y"),
        ("20240101, 20240102, 20240103", "%Y%m%d"),
    ],
)
def test_text_and_integers_can_hold_the_time(table: Table, days: str, time_format: str | None) -> None:
    first, second, third = days.split(", ")
    table = by_day(table, time_column=TimeColumn(name="ds", format=time_format))
    table.write(f"SELECT * FROM VALUES (1, {first}), (2, {second}), (3, {third}) v(id, ds)", THREE_DAYS)
    table.write(f"SELECT * FROM VALUES (20, {second}), (30, {third}) v(id, ds)", DAY)
    assert table.rows("id") == [(1,), (20,), (3,)]
    table.write(f"SELECT 1 AS id, {first} AS ds WHERE false", ("2024-01-01", "2024-01-03"))
    assert table.rows("id") == [(3,)]


def test_a_format_that_keys_do_not_sort_by_is_looked_up_in_the_rows(table: Table) -> None:
    table = by_day(table, time_column=TimeColumn(name="ds", format="%d %b %Y"))
    table.write("SELECT * FROM VALUES (1, '01 Jan 2024'), (2, '02 Jan 2024') v(id, ds)", THREE_DAYS)
    table.write("SELECT 20 AS id, '02 Jan 2024' AS ds", DAY)
    assert table.rows("id") == [(1,), (20,)]


def test_a_table_of_nothing_but_its_time_column_can_be_stored(table: Table) -> None:
    table = by_day(table)
    table.write("SELECT DATE'2024-01-01' AS ds", THREE_DAYS)
    table.write("SELECT DATE'2024-01-02' AS ds", DAY)
    table.write("SELECT DATE'2024-01-02' AS ds WHERE false", DAY)
    assert table.rows() == [("2024-01-01",)]


def test_a_new_column_is_null_in_rows_that_are_kept(table: Table) -> None:
    table = replace(table, partitioned_by=("ts",), time_column=TimeColumn(name="ts"))
    table.write("SELECT 1 AS id, TIMESTAMP'2024-01-02 01:00:00Z' AS ts", THREE_DAYS)
    table.write(
        "SELECT 2 AS id, 'new' AS more, TIMESTAMP'2024-01-02 05:00:00Z' AS ts",
        ("2024-01-02T05:00:00", "2024-01-02T06:00:00"),
    )
    assert table.rows("id, more") == [(1, None), (2, "new")]


def test_a_wider_number_reads_old_files_and_a_narrower_one_is_widened(table: Table) -> None:
    table = by_day(table)
    table.write("SELECT 1 AS id, DATE'2024-01-01' AS ds", ("2024-01-01", "2024-01-02"))
    table.write("SELECT 5000000000 AS id, DATE'2024-01-02' AS ds", DAY)
    table.write("SELECT 3 AS id, DATE'2024-01-03' AS ds", ("2024-01-03", "2024-01-04"))
    assert table.rows("id") == [(1,), (3,), (5000000000,)]


def test_a_type_that_old_rows_cannot_have_is_refused(table: Table) -> None:
    table = by_day(table)
    table.write("SELECT 'x' AS id, DATE'2024-01-01' AS ds", ("2024-01-01", "2024-01-02"))
    with pytest.raises(BadModelResult, match=r"column `id` was written as `string` and would now be `int`"):
        table.write("SELECT 1 AS id, DATE'2024-01-02' AS ds", DAY)


def test_time_is_utc_whatever_the_query_says_about_zones(table: Table) -> None:
    table = replace(table, partitioned_by=("ts",), time_column=TimeColumn(name="ts"))
    table.settings = {"spark.sql.session.timeZone": "Asia/Tokyo"}
    rows = "SELECT * FROM VALUES (1, TIMESTAMP'2024-01-02 00:30:00Z'), (2, TIMESTAMP'2024-01-02 23:30:00Z') v(id, ts)"
    table.write(f"SELECT *, hour(ts) AS hour FROM ({rows})", DAY)
    assert list(table.manifest) == [("2024-01-02",)]
    assert table.rows() == [(1, "2024-01-02T00:30:00Z", 0), (2, "2024-01-02T23:30:00Z", 23)]


# --- what cannot be stored --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT 1 AS id", r"the time column `ds` is not among the output's columns: `id`"),
        ("SELECT 1 AS id, true AS ds", r"has type `boolean`, which cannot hold a time"),
        ("SELECT 1 AS id, 2 AS ID, DATE'2024-01-01' AS ds", r"the same name: `id`"),
        ("SELECT NULL AS id, DATE'2024-01-01' AS ds", r"`id` has no type, only NULL"),
        ("SELECT 1 AS `lamina_p0`, DATE'2024-01-01' AS ds", r"reserved"),
        ("SELECT 1 AS `a\nb`, DATE'2024-01-01' AS ds", r"control character"),
    ],
)
def test_a_result_that_cannot_be_stored_is_refused(table: Table, sql: str, said: str) -> None:
    table = by_day(table)
    with pytest.raises(BadModelResult, match=said) as caught:
        table.write(sql, THREE_DAYS)
    assert caught.value.interval == ("2024-01-01T00:00:00Z", "2024-01-04T00:00:00Z")


def test_declared_columns_are_cast_and_ordered(table: Table) -> None:
    table.columns = (Column(name="b", type="varchar(10)"), Column(name="A", type="decimal(5,1)"))
    written = table.write("SELECT 1 AS a, 2 AS b")
    assert [(column.name, column.type) for column in written.shape.columns] == [
        ("b", "string"),
        ("A", "decimal(5,1)"),
    ]
    assert table.rows() == [("2", "1.0")]


def test_declared_columns_that_do_not_fit_are_named(table: Table) -> None:
    table.columns = (Column(name="a", type="int"), Column(name="b", type="int"))
    with pytest.raises(BadModelResult, match=r"`b` declared but not in the output; `c` in the output but not declared"):
        table.write("SELECT 1 AS a, 2 AS c")


def test_odd_column_names_survive(table: Table) -> None:
    table = replace(table, partitioned_by=("`Key One`",))
    table.write("SELECT 1 AS `count(1)`, 2 AS `a.b`, 3 AS `a,b`, 4 AS `tick``s`, 5 AS `ünï`, 'x' AS `Key One`")
    assert table.rows() == [(1, 2, 3, 4, 5, "x")]
    assert table.rows("`a.b`, `Key One`") == [(2, "x")]


def test_odd_partition_values_survive(table: Table) -> None:
    values = ["a b", "x/y", "it's", 'say "x"', "k=v", "50%", "é😀", "a\\b", "a:b?c*[]{}^#", "tab\there", " x ", None]
    table = replace(table, partitioned_by=("g",))
    listed = ", ".join(
        f"({index}, {'NULL' if value is None else text_literal(value)})" for index, value in enumerate(values)
    )
    written = table.write(f"SELECT * FROM VALUES {listed} v(id, g)")
    assert {key[0] for key in written.folders} == set(values)
    assert dict(table.rows()) == dict(enumerate(values))
    for index, value in enumerate(values):
        condition = "g IS NULL" if value is None else f"g = {text_literal(value)}"
        assert table.engine.query(f"SELECT id FROM {table.physical} WHERE {condition}", limit=9).rows == ((index,),)


def test_odd_partition_values_are_kept_when_an_interval_is_replaced(table: Table) -> None:
    table = by_day(table, partitioned_by=("g",))
    rows = "(1, 'a\\\\b', DATE'2024-01-01'), (2, 'it\\'s \"x\"', DATE'2024-01-01'), (3, NULL, DATE'2024-01-01')"
    table.write(f"SELECT * FROM VALUES {rows} v(id, g, ds)", THREE_DAYS)
    table.write(f"SELECT id + 10 AS id, g, DATE'2024-01-02' AS ds FROM VALUES {rows} v(id, g, ds)", DAY)
    assert sorted(row[0] for row in table.rows("id")) == [1, 2, 3, 11, 12, 13]


def test_an_empty_text_cannot_be_partitioned_by(table: Table) -> None:
    table = replace(table, partitioned_by=("g",))
    with pytest.raises(BadModelResult, match=r"`g` holds an empty text .* in 2 rows"):
        table.write("SELECT * FROM VALUES (1, ''), (2, 'x'), (3, '') v(id, g)")
    table = replace(table, partitioned_by=("lower(g)",))
    table.write("SELECT * FROM VALUES (1, ''), (2, 'x'), (3, NULL) v(id, g)")
    assert table.rows() == [(1, ""), (2, "x"), (3, None)]


def test_a_value_too_long_for_a_folder_is_refused(table: Table) -> None:
    table = replace(table, partitioned_by=("g",))
    with pytest.raises(BadModelResult, match=r"column `g` has a value that is too long to partition by"):
        table.write("SELECT 1 AS id, repeat('x', 300) AS g")


def test_numbers_booleans_and_expressions_partition_rows(table: Table) -> None:
    table = replace(table, partitioned_by=("n", "flag", "months(ts)", "price", "bucket(2, n)"))
    table.write(
        "SELECT -5 AS n, true AS flag, TIMESTAMP'2024-03-31 23:59:59Z' AS ts, "
        "CAST(1.50 AS decimal(5,2)) AS price, 1 AS id"
    )
    assert [key[:4] for key in table.manifest] == [("-5", "true", "2024-03", "1.50")]
    assert table.rows() == [(-5, True, "2024-03-31T23:59:59Z", "1.50", 1)]
