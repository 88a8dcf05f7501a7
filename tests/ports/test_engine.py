"""What every engine must do, on a classic and on a Connect session alike."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace

import pytest

from lamina.app.audit_queries import AuditQuery
from lamina.app.ports import (
    AnalysisRequest,
    AuditRequest,
    GenerationRequest,
    HideView,
    SeedRows,
    ShownRows,
    ShowView,
    SqlQuery,
    StagedRows,
    Statement,
    StatementsRequest,
)
from lamina.app.records import AddPartitions, SetView, SwitchGeneration, TableShape
from lamina.app.rendering import head_relation
from lamina.errors import (
    AnalysisFailed,
    BadModelResult,
    BadSeed,
    Cancelled,
    EngineError,
    LaminaError,
    Location,
    NameTaken,
    Problems,
    QueryFailed,
)
from lamina.graph.kinds import CsvSettings, TimeColumn
from lamina.graph.model import Column
from lamina.graph.names import NodeName
from lamina.identity.naming import LogicalName, PhysicalName
from lamina.spark.engine import SparkEngine
from lamina.spark.tables import text_literal
from lamina.timeline.grain import Grain
from lamina.timeline.interval import EMPTY, Intervals
from tests.spark.driver import Table

pytest_plugins = ["tests.ports.conftest_engine"]
IS_CLASSIC = os.environ.get("LAMINA_TEST_ENGINE", "classic") == "classic"
pytestmark = pytest.mark.spark

DAY = ("2024-01-02", "2024-01-03")
THREE_DAYS = ("2024-01-01", "2024-01-04")
THREE_ROWS = "SELECT * FROM VALUES (1, DATE'2024-01-01'), (2, DATE'2024-01-02'), (3, DATE'2024-01-03') v(id, ds)"
NOTHING = "SELECT 1 AS id, DATE'2024-01-02' AS ds WHERE false"


def by_day(table: Table, **changes: object) -> Table:
    return replace(table, **{"partitioned_by": ("ds",), "time_column": TimeColumn(name="ds"), **changes})


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
LAYOUTS = [(("ds",), None), (("month(ds)",), Grain.DAY)] if IS_CLASSIC else [(("month(ds)",), Grain.DAY)]
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


@pytest.mark.parametrize(("time", "declared"), TIMES if IS_CLASSIC else TIMES[:1])
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


# --- statements around the query --------------------------------------------------------------------------------------
def test_statements_before_and_after_run_in_the_session_of_the_query(table: Table) -> None:
    written = table.write(
        SqlQuery(
            sql="SELECT * FROM helper",
            pre_statements=("CREATE TEMPORARY VIEW helper AS SELECT 7 AS id", "SET spark.sql.shuffle.partitions=3"),
            post_statements=("DROP VIEW helper",),
        )
    )
    assert written.statements >= 4
    assert table.rows() == [(7,)]
    with pytest.raises(AnalysisFailed):
        table.write("SELECT * FROM helper")


def test_a_failing_statement_before_the_query_says_so(table: Table) -> None:
    with pytest.raises(AnalysisFailed, match=r"a statement before the query of"):
        table.write(SqlQuery(sql="SELECT 1 AS id", pre_statements=("DROP TABLE nowhere.nothing",)))


def test_settings_of_one_model_do_not_reach_another(table: Table) -> None:
    table.settings = {"spark.sql.ansi.enabled": "false"}
    table.write("SELECT CAST('x' AS int) AS id")
    assert table.rows() == [(None,)]
    table.settings = {}
    with pytest.raises(QueryFailed, match="CAST_INVALID_INPUT"):
        table.write("SELECT CAST('x' AS int) AS id")


def test_a_setting_that_cannot_be_changed_is_refused(table: Table) -> None:
    table.settings = {"spark.sql.warehouse.dir": "/elsewhere"}
    with pytest.raises(EngineError, match=r"`spark.sql.warehouse.dir` cannot be changed"):
        table.write("SELECT 1 AS id")


STATEMENTS = {
    "setting": ("SET spark.sql.ansi.enabled = false", "SELECT int('x') AS x"),
    "temporary view": ("CREATE TEMPORARY VIEW mine AS SELECT 1 AS x", "SELECT x FROM mine"),
    "temporary function": ("CREATE TEMPORARY FUNCTION one() RETURNS int RETURN 1", "SELECT one() AS x"),
    "variable": ("DECLARE VARIABLE one int DEFAULT 1", "SELECT one AS x"),
    "current schema": ("USE suite_other", "SELECT x FROM only_here"),
}


@pytest.fixture(scope="module")
def other_schema(engine: SparkEngine) -> str:
    engine.execute(
        statements("CREATE SCHEMA IF NOT EXISTS suite_other", "CREATE VIEW suite_other.only_here AS SELECT 1 AS x")
    )
    return "suite_other"


def statements(*texts: str, **settings: str) -> StatementsRequest:
    return StatementsRequest(
        node=NodeName("suite.t"),
        environment="dev",
        statements=tuple(
            Statement(sql=text, location=Location(file="models/t.sql", line=line)) for line, text in enumerate(texts, 5)
        ),
        settings=settings,
    )


@pytest.mark.parametrize("what", STATEMENTS)
@pytest.mark.parametrize("place", ["before", "after", "behind the view"])
def test_what_statements_of_one_model_leave_behind_does_not_reach_another(
    table: Table, other_schema: str, what: str, place: str
) -> None:
    statement, query = STATEMENTS[what]
    one = "SELECT 1 AS x"
    if place == "before":
        table.write(SqlQuery(sql=query, pre_statements=(statement,)))
    elif place == "after":
        table.write(SqlQuery(sql=one, post_statements=(statement, query)))
    else:
        table.engine.execute(statements(statement, query))
    with pytest.raises(LaminaError):
        table.write(query)
    with pytest.raises(LaminaError):
        table.engine.execute(statements(query))
    (outcome,) = table.engine.analyse([request("suite.t", f"SELECT * FROM ({query})")])
    assert outcome.error is not None or what == "setting"
    assert table.engine.query("SELECT current_schema()", limit=1).rows == (("default",),)


def test_settings_of_one_model_do_not_reach_its_neighbours_at_the_same_time(table: Table) -> None:
    other = replace(table, name=f"{table.name}_b", settings={"spark.sql.ansi.enabled": "false"})
    before, after = threading.Barrier(2, timeout=60), {}

    def write(one: Table, name: str, sql: str) -> None:
        before.wait()
        try:
            one.write(SqlQuery(sql=sql, pre_statements=(f"CREATE TEMPORARY VIEW own AS SELECT '{name}' AS who",)))
            after[name] = one.rows()
        except LaminaError as error:
            after[name] = error

    sql = "SELECT who, int('x') AS x FROM own"
    threads = [
        threading.Thread(target=write, args=(one, name, sql)) for one, name in ((table, "strict"), (other, "lax"))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert isinstance(after["strict"], QueryFailed)
    assert after["lax"] == [("lax", None)]


# --- statements behind a view -----------------------------------------------------------------------------------------
def test_statements_behind_a_view_run_in_order_with_the_models_settings(
    engine: SparkEngine, table: Table, other_schema: str
) -> None:
    log = f"{other_schema}.{table.name}_log"
    engine.execute(
        statements(
            f"CREATE TABLE {log} (said string) USING parquet",
            "CREATE TEMPORARY VIEW mine AS SELECT int('x') IS NULL AS is_lax",
            f"INSERT INTO {log} SELECT concat(is_lax, ' ', current_timezone()) FROM mine",
            **{"spark.sql.ansi.enabled": "false"},
        )
    )
    assert engine.query(f"SELECT * FROM {log}", limit=None).rows == (("true UTC",),)


def test_the_first_statement_that_fails_is_told_with_its_place_and_ends_it(
    engine: SparkEngine, table: Table, other_schema: str
) -> None:
    made = f"{other_schema}.{table.name}_made"
    with pytest.raises(QueryFailed, match=r"`SELECT raise_error\('no role'\) AS x` failed: .*no role") as caught:
        engine.execute(
            statements("SELECT 1", "SELECT raise_error('no role') AS x", f"CREATE TABLE {made} (x int) USING parquet")
        )
    assert str(caught.value.location) == "models/t.sql:6"
    assert caught.value.node == "suite.t"
    (outcome,) = engine.describe([NodeName(made)])
    assert outcome.error is not None


# --- columns of external tables ---------------------------------------------------------------------------------------
def test_tables_are_described_with_types_and_comments_and_missing_ones_are_named(
    engine: SparkEngine, table: Table, other_schema: str
) -> None:
    name = NodeName(f"{other_schema}.{table.name}_raw")
    engine.execute(
        statements(
            f"CREATE TABLE {name} (id bigint COMMENT 'the key', price decimal(10,2),"
            " tags array<struct<a:int,`b c`:string>>, ds date) USING parquet PARTITIONED BY (ds)"
        )
    )
    found, missing = engine.describe([name, NodeName("suite.nowhere")])
    assert found.columns == (
        Column(name="id", type="bigint", comment="the key"),
        Column(name="price", type="decimal(10,2)"),
        Column(name="tags", type="array<struct<a:int,`b c`:string>>"),
        Column(name="ds", type="date"),
    )
    assert isinstance(missing.error, AnalysisFailed)
    assert "suite.nowhere" in missing.error.message


# --- seeds ------------------------------------------------------------------------------------------------------------
def test_a_seed_gets_the_types_its_values_show(table: Table) -> None:
    text = (
        "id,big,price,ok,day,at,zip,name\n"
        "1,5000000000,1.5,true,2024-01-31,2024-03-10 02:30:00,007,é\n"
        '2,NA,,false,,2024-01-01T12:00:00+02:00,"10","a,b"\n'
    )
    written = table.write(SeedRows(text=text, settings=CsvSettings(), file="seeds/s.csv"))
    assert [column.type for column in written.shape.columns] == [
        *("int", "bigint", "double", "boolean", "date", "timestamp", "string", "string")
    ]
    assert table.rows() == [
        (1, 5000000000, 1.5, True, "2024-01-31", "2024-03-10T02:30:00Z", "007", "é"),
        (2, None, None, False, None, "2024-01-01T10:00:00Z", "10", "a,b"),
    ]


def test_a_seed_gets_its_declared_types(table: Table) -> None:
    table.columns = (
        Column(name="amount", type="decimal(38,10)"),
        Column(name="id", type="string"),
        Column(name="at", type="timestamp_ntz"),
    )
    text = "id,amount,at\n01,1234567890123456789012345678.0123456789,2024-03-10 02:30:00\n"
    table.write(SeedRows(text=text, settings=CsvSettings(), file="seeds/s.csv"))
    assert table.rows() == [("1234567890123456789012345678.0123456789", "01", "2024-03-10T02:30:00")]


def test_the_values_of_a_seed_arrive_as_they_were_written(table: Table) -> None:
    table.columns = tuple(
        Column(name=name, type=text)
        for name, text in [("t", "string"), ("b", "binary"), ("f", "float"), ("d", "double"), ("day", "date")]
    )
    text = (
        "t,b,f,d,day\n"
        '"a ""quoted"" \\ line\nand {:p0} \'one\' \U0001f600 ",é,0.1,-0.0,0001-01-01\n'
        "[],x,NaN,1e308,9999-12-31\n"
        ",,inf,-inf,1582-10-10\n"
    )
    table.write(SeedRows(text=text, settings=CsvSettings(na_values=("",), keep_default_na=False), file="seeds/s.csv"))
    shown = table.rows("t, hex(b), f = float('0.1') OR isnan(f) OR f = float('inf'), CAST(d AS STRING), day")
    assert shown == [
        ("[]", "78", True, "1.0E308", "9999-12-31"),
        ("a \"quoted\" \\ line\nand {:p0} 'one' \U0001f600 ", "C3A9", True, "-0.0", "0001-01-01"),
        (None, None, True, "-Infinity", "1582-10-10"),
    ]


def test_a_seed_without_rows_is_an_empty_table(table: Table) -> None:
    written = table.write(SeedRows(text="id,name\n", settings=CsvSettings(), file="seeds/s.csv"))
    assert (written.rows, table.rows()) == (0, [])


def test_a_large_seed_arrives_whole(table: Table) -> None:
    lines = "\n".join(f"{number},{'x' * 200}" for number in range(12_000))
    written = table.write(SeedRows(text=f"id,name\n{lines}\n", settings=CsvSettings(), file="seeds/s.csv"))
    assert written.rows == 12_000
    assert table.rows("count(DISTINCT id), sum(id), max(length(name))") == [(12_000, 71_994_000, 200)]


def test_a_bad_row_of_a_seed_is_named(table: Table) -> None:
    table.columns = (Column(name="id", type="int"), Column(name="day", type="date"))
    with pytest.raises(Problems) as caught:
        table.write(SeedRows(text="id,day\nx,2024-01-01\n2,soon\n", settings=CsvSettings(), file="seeds/s.csv"))
    assert [type(problem) for problem in caught.value.problems] == [BadSeed, BadSeed]
    assert [str(problem.location) for problem in caught.value.problems] == ["seeds/s.csv:2", "seeds/s.csv:3"]


# --- analysis ---------------------------------------------------------------------------------------------------------
def request(node: str, sql: str, **changes: object) -> AnalysisRequest:
    return replace(
        AnalysisRequest(node=NodeName(node), location=Location(file=f"{node}.sql"), rows=SqlQuery(sql=sql)), **changes
    )


def test_every_query_is_analysed_and_each_failure_is_told(engine: SparkEngine) -> None:
    good, bad, unparsable, seed = engine.analyse(
        [
            request("a", "SELECT 1 AS id, current_timestamp() AS at"),
            request("b", "SELECT nope FROM range(3)"),
            request("c", "SELEC 1"),
            AnalysisRequest(
                node=NodeName("d"),
                location=Location(file="d"),
                rows=SeedRows(text="id\n1\n", settings=CsvSettings(), file="seeds/d.csv"),
            ),
        ]
    )
    assert good.columns == (Column(name="id", type="int"), Column(name="at", type="timestamp"))
    assert isinstance(bad.error, AnalysisFailed)
    assert "UNRESOLVED_COLUMN" in bad.error.message
    assert str(bad.error.location) == "b.sql"
    assert isinstance(unparsable.error, AnalysisFailed)
    assert seed.columns == (Column(name="id", type="int"),)


def test_analysis_shows_declared_columns(engine: SparkEngine) -> None:
    declared = (Column(name="id", type="bigint"),)
    fits, lacks = engine.analyse(
        [request("a", "SELECT 1 AS id", columns=declared), request("b", "SELECT 1 AS x", columns=declared)]
    )
    assert fits.columns == declared
    assert isinstance(lacks.error, BadModelResult)


# --- publishing -------------------------------------------------------------------------------------------------------
def test_a_publish_done_twice_is_the_same(table: Table) -> None:
    table = by_day(table)
    table.write(THREE_ROWS, ("2024-01-01", "2024-01-03"))
    assert table.head is not None
    request = table.request(THREE_ROWS, ("2024-01-03", "2024-01-04"))
    written = table.engine.write(request)
    adding = AddPartitions(
        physical=table.physical, generation=table.head.generation, shape=written.shape, partitions=written.folders
    )
    switching = SwitchGeneration(physical=table.physical, generation=table.head.generation, shape=written.shape)
    for publish in (adding, adding, switching, switching):
        table.engine.publish(publish)
    assert table.rows("id") == [(1,), (2,), (3,)]


def test_a_partition_that_lies_elsewhere_is_told_and_left(table: Table) -> None:
    table = by_day(table)
    table.write(THREE_ROWS, THREE_DAYS)
    assert table.head is not None
    written = table.engine.write(replace(table.request(THREE_ROWS, DAY), base=None))
    with pytest.raises(EngineError, match="by what is recorded"):
        table.engine.publish(
            AddPartitions(
                physical=table.physical,
                generation=table.head.generation,
                shape=written.shape,
                partitions=written.folders,
            )
        )
    assert table.rows("id") == [(1,), (2,), (3,)]


def test_a_generation_made_again_is_what_was_asked_for_last(table: Table) -> None:
    table = by_day(table)
    request = table.request(THREE_ROWS, THREE_DAYS)
    written = table.engine.write(request)
    generation = GenerationRequest(
        physical=table.physical,
        shape=written.shape,
        manifest=dict(list(written.folders.items())[:2]),
        folder=request.folder,
        table=replace(request.table, properties={"team": "it's ours"}),
    )
    for manifest in (generation.manifest, generation.manifest, written.folders):
        table.engine.create_generation(replace(generation, manifest=manifest))
    count = f"SELECT count(*) FROM {request.table.generation}"
    assert table.engine.query(count, limit=1).rows == ((3,),)
    properties = dict(table.engine.query(f"SHOW TBLPROPERTIES {request.table.generation}", limit=None).rows)
    assert properties["team"] == "it's ours"
    assert properties["lamina.attempt"] == str(request.attempt)


def test_hundreds_of_partitions_are_added_at_once(table: Table) -> None:
    table = replace(table, partitioned_by=("g",), time_column=TimeColumn(name="ds"))
    table.write("SELECT 1 AS id, -1 AS g, DATE'2024-01-01' AS ds", ("2024-01-01", "2024-01-02"))
    assert table.head is not None
    request = table.request("SELECT id, CAST(id AS int) AS g, DATE'2024-01-02' AS ds FROM range(105)", DAY)
    written = table.engine.write(replace(request, columns=None))
    blocked = dict(list(written.folders.items())[100:101])
    adding = AddPartitions(
        physical=table.physical, generation=table.head.generation, shape=written.shape, partitions=blocked
    )
    table.engine.publish(adding)
    # All or none: the one that is there already, beyond the hundredth, keeps out all the others at first.
    elsewhere = {key: folder + "x" if key in blocked else folder for key, folder in written.folders.items()}
    with pytest.raises(EngineError, match="by what is recorded"):
        table.engine.publish(replace(adding, partitions=elsewhere))
    partitions = f"SHOW PARTITIONS {table.head.generation}"
    assert len(table.engine.query(partitions, limit=None).rows) == 2
    table.engine.publish(replace(adding, partitions=written.folders))
    assert len(table.engine.query(partitions, limit=None).rows) == 106


def test_versions_without_a_view_show_nothing(engine: SparkEngine, table: Table) -> None:
    missing = PhysicalName("no_such_schema__lamina.missing__v_0")
    assert engine.published([missing]) == {missing: None}
    table.write("SELECT 1 AS id")
    assert table.head is not None
    assert engine.published([table.physical, missing]) == {table.physical: table.head.generation, missing: None}


def test_a_view_shows_its_query_with_comments(engine: SparkEngine, table: Table) -> None:
    name = table.physical
    view = SetView(
        physical=name,
        generation=f"{name}__g_1",
        sql="SELECT id FROM range(3) -- a comment",
        shape=TableShape(columns=(Column(name="id", type="bigint", comment="the key"),)),
        description="what's in it",
    )
    for publish in (view, replace(view, generation=f"{name}__g_2"), replace(view, generation=f"{name}__g_2")):
        engine.publish(publish)
    assert engine.published([name]) == {name: f"{name}__g_2"}
    assert engine.query(f"DESCRIBE {name}", limit=None).rows == (("id", "bigint", "the key"),)
    engine.publish(replace(view, generation=f"{name}__g_3", sql="SELECT id FROM range(2)"))
    assert engine.query(f"SELECT * FROM {name}", limit=None).rows == ((0,), (1,))
    assert engine.published([name]) == {name: f"{name}__g_3"}
    # A statement of a process that slept since the first publish is noticed.
    engine.publish(view)
    assert engine.published([name])[name] in {f"{name}__g_1", f"{name}__g_2"}


def test_readers_never_fail_while_others_publish(table: Table) -> None:
    table = by_day(table)
    table.write(THREE_ROWS, THREE_DAYS)
    seen: list[int] = []
    failures: list[Exception] = []
    is_over = threading.Event()

    def read() -> None:
        while not is_over.is_set():
            try:
                found = table.engine.query(f"SELECT sum(id), count(*) FROM {table.physical}", limit=1).rows
            except LaminaError as error:
                failures.append(error)
                return
            seen.append(found[0][0])
            assert found[0][1] == 3

    reader = threading.Thread(target=read)
    reader.start()
    for number in (20, 200):
        table.write(f"SELECT {number} AS id, DATE'2024-01-02' AS ds", DAY)
    time.sleep(1)
    is_over.set()
    reader.join()
    assert failures == []
    assert seen[-1] == 204
    assert set(seen) <= {6, 24, 204}


# --- environments -----------------------------------------------------------------------------------------------------
def test_environment_views_follow_and_identical_ones_are_left_alone(table: Table) -> None:
    engine = table.engine
    table.comments = {"id": "the key"}
    table.write("SELECT 1 AS id")
    logical = LogicalName(f"{table.schema}__dev.{table.name}")
    view = ShowView(logical=logical, physical=table.physical, comment="it's mine", properties={"a": 1, "b": "x, y"})
    assert engine.show([view]) == 1
    assert engine.show([view]) == 0
    assert engine.query(f"SELECT * FROM {logical}", limit=1).rows == ((1,),)
    assert engine.query(f"DESCRIBE {logical}", limit=1).rows == (("id", "int", "the key"),)
    table.write("SELECT 2 AS id")
    assert engine.query(f"SELECT * FROM {logical}", limit=1).rows == ((2,),)
    assert engine.show([view]) == 0
    assert engine.show([replace(view, comment="another")]) == 1


def test_an_environment_view_is_made_again_when_columns_change(table: Table) -> None:
    table.write("SELECT 1 AS id, 2 AS old")
    view = ShowView(logical=LogicalName(f"{table.schema}.{table.name}"), physical=table.physical)
    table.engine.show([view])
    table.write("SELECT 1 AS id, 'x' AS new")
    assert table.engine.show([view]) == 1
    assert table.engine.query(f"SELECT * FROM {view.logical}", limit=1).rows == ((1, "x"),)


def test_a_view_of_an_environment_goes_away(table: Table) -> None:
    table.write("SELECT 1 AS id")
    logical = LogicalName(f"{table.schema}__dev.{table.name}")
    table.engine.show([ShowView(logical=logical, physical=table.physical)])
    assert table.engine.show([HideView(logical=logical)]) == 1
    assert table.engine.show([HideView(logical=logical)]) == 0
    assert table.engine.show([HideView(logical=LogicalName("no_such_schema.t"))]) == 0


def test_what_strangers_made_is_never_touched(table: Table) -> None:
    engine = table.engine
    table.write(
        SqlQuery(
            sql="SELECT 1 AS id",
            pre_statements=(
                f"CREATE SCHEMA IF NOT EXISTS {table.schema}",
                f"CREATE TABLE {table.schema}.theirs USING parquet AS SELECT 5 AS id",
                f"CREATE VIEW {table.schema}.their_view AS SELECT 6 AS id",
            ),
        )
    )
    names = [LogicalName(f"{table.schema}.{name}") for name in ("theirs", "their_view", "mine")]
    with pytest.raises(Problems) as caught:
        engine.show([ShowView(logical=name, physical=table.physical) for name in reversed(names)])
    assert [type(problem) for problem in caught.value.problems] == [NameTaken, NameTaken]
    assert engine.show([HideView(logical=name) for name in names]) == 0
    both = f"SELECT (SELECT id FROM {names[0]}), (SELECT id FROM {names[1]})"
    assert engine.query(both, limit=1).rows == ((5, 6),)
    assert engine.query(f"SHOW VIEWS IN {table.schema} LIKE 'mine'", limit=None).rows == ()


# --- queries ----------------------------------------------------------------------------------------------------------
def test_rows_are_plain_values_that_mean_the_same_everywhere(engine: SparkEngine) -> None:
    result = engine.query(
        "SELECT TIMESTAMP'2024-07-01 12:00:00.25Z' AS at, TIMESTAMP_NTZ'2024-03-10 02:30:00' AS wall, "
        "DATE'2024-01-31' AS day, CAST(1.50 AS decimal(38,18)) AS price, X'00FF' AS raw, "
        "array(TIMESTAMP'2024-01-01 00:00:00Z') AS many, map('k', DATE'2024-01-01') AS by_name, "
        "named_struct('a', TIMESTAMP'2024-01-01 00:00:00Z', 'b', NULL) AS pair, "
        "double('NaN') AS nan, double('-Infinity') AS low, INTERVAL '1 02' DAY TO HOUR AS span, NULL AS nothing, "
        "1 AS twice, 2 AS twice",
        limit=10,
    )
    assert result.columns[0] == Column(name="at", type="timestamp")
    assert result.rows == (
        (
            *("2024-07-01T12:00:00.25Z", "2024-03-10T02:30:00", "2024-01-31", "1.500000000000000000", "00ff"),
            *(["2024-01-01T00:00:00Z"], {"k": "2024-01-01"}, {"a": "2024-01-01T00:00:00Z", "b": None}),
            *("NaN", "-Infinity", "INTERVAL '1 02' DAY TO HOUR", None, 1, 2),
        ),
    )
    assert not result.is_truncated


def test_a_limit_is_kept_and_told(engine: SparkEngine) -> None:
    result = engine.query("SELECT id FROM range(5) ORDER BY id", limit=2)
    assert (result.rows, result.is_truncated) == (((0,), (1,)), True)
    assert not engine.query("SELECT id FROM range(5)", limit=5).is_truncated
    assert len(engine.query("SELECT id FROM range(5)", limit=None).rows) == 5
    assert engine.query("SELECT id FROM range(5)", limit=0).rows == ()


def test_a_lazy_frame_can_be_had(engine: SparkEngine) -> None:
    assert engine.frame("SELECT 1 AS id").count() == 1


# --- cancelling -------------------------------------------------------------------------------------------------------
ENDLESS = "SELECT count(*) AS n FROM range(0, 1000000000000000, 1, 2) WHERE hash(id) = 3"


def test_running_jobs_can_be_cancelled_and_work_goes_on_after(table: Table) -> None:
    caught: list[LaminaError] = []

    def work(do: object) -> None:
        try:
            do()  # type: ignore[operator]
        except LaminaError as error:
            caught.append(error)

    tasks = [
        threading.Thread(target=work, args=(lambda: table.engine.write(table.request(ENDLESS)),)),
        threading.Thread(target=work, args=(lambda: table.engine.query(ENDLESS, limit=1),)),
    ]
    for task in tasks:
        task.start()
    time.sleep(2)
    table.engine.cancel()
    for task in tasks:
        task.join(30)
        assert not task.is_alive()
    assert [type(error) for error in caught] == [Cancelled, Cancelled]
    table.write("SELECT 1 AS id")
    assert table.rows() == [(1,)]
