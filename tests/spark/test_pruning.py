"""Reading a part of a long history costs what that part costs: Spark looks into the folders of that time alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from lamina.app.ports.published import AddPartitions
from lamina.app.rendering.key_ranges import key_range
from lamina.app.rendering.models import Relations, head_relation
from lamina.graph.kinds import TimeColumn
from lamina.graph.names import NodeName
from lamina.timeline.grain import Grain
from lamina.timeline.interval import Instant, Interval
from tests.spark.driver import DAY as DAY_TWO
from tests.spark.driver import Table, by_day
from tests.unit.reading.test_resolve import graph_of, model

pytest_plugins = ["tests.ports.conftest_engine"]

DAYS = 1000
FIRST, END = "2022-01-01", "2024-09-27"
DAY = ("2024-01-05", "2024-01-06")
HOURS = f"SELECT id, timestampadd(HOUR, CAST(id AS INT), TIMESTAMP'{FIRST}') AS at FROM range(0, {DAYS * 24})"
EVENTS = model(
    "shop.events",
    "SELECT id, at FROM raw.events WHERE at BETWEEN @start_dt AND @end_dt",
    f", kind INCREMENTAL_BY_TIME_RANGE (time_column at), cron '@hourly', start '{FIRST}'",
)
BY_DAY = model(
    "shop.by_day",
    "SELECT to_date(at) AS day, count(*) AS n FROM shop.events WHERE at BETWEEN @start_dt AND @end_dt GROUP BY 1",
    f", kind INCREMENTAL_BY_TIME_RANGE (time_column day), start '{FIRST}'",
)


def scanned(table: Table, sql: str) -> tuple[list[Any], str, int, int]:
    """The rows of a query, its plan, and how many partitions and files Spark has read for it."""
    frame = table.engine.frame(sql)
    execution = frame._jdf.queryExecution()
    rows = [tuple(row) for row in frame.collect()]
    leaves = execution.executedPlan().collectLeaves()
    scans = [leaves.apply(number).metrics() for number in range(leaves.size())]
    partitions, files = (sum(scan.apply(name).value() for scan in scans) for name in ("numPartitions", "numFiles"))
    return rows, execution.toString(), partitions, files


def test_a_day_of_a_thousand_is_found_without_the_others(table: Table) -> None:
    table = replace(table, partitioned_by=("at",), time_column=TimeColumn(name="at"))
    table.write(HOURS, DAY)
    assert table.head is not None
    (folder,) = table.manifest.values()
    # The other days are only registered: they hold rows of another time, but it is not their rows that are looked at.
    days = (date.fromisoformat(FIRST) + timedelta(days=number) for number in range(DAYS))
    table.engine.publish(
        AddPartitions(
            physical=table.physical,
            generation=table.head.generation,
            shape=table.head.shape,
            partitions={(str(day),): folder for day in days if str(day) != DAY[0]},
        )
    )
    _, _, partitions, _ = scanned(table, f"SELECT count(*) FROM {head_relation(table.head)} WHERE at < '{END}'")
    assert partitions == DAYS

    graph = graph_of({"events": EVENTS, "by_day": BY_DAY})
    relations = Relations(models=graph.models, heads={NodeName("shop.events"): table.head})
    query = relations.query(graph.models[NodeName("shop.by_day")], Interval.from_pair(DAY), Instant.parse_iso(END))
    rows, plan, partitions, files = scanned(table, query)
    assert [(str(day), count) for day, count in rows] == [("2024-01-05", 24)]
    assert "PartitionFilters: [isnotnull(lamina_p0" in plan
    assert (partitions, files) == (1, 1)


@pytest.mark.parametrize("unit", ["years", "months", "days", "hours"])
@pytest.mark.parametrize("time_type", ["timestamp", "timestamp_ntz"])
def test_the_keys_that_spark_makes_are_those_that_are_looked_for(table: Table, unit: str, time_type: str) -> None:
    moments = ("0001-01-01", "0999-12-31 23:59:59", "2024-01-04 23:59:59.999999", "2024-01-05", "2024-01-05 23:59:59")
    moments += ("2024-01-06", "9999-12-30 23:00:00")
    values = ", ".join(f"({number}, TIMESTAMP'{moment}')" for number, moment in enumerate(moments))
    table = replace(table, partitioned_by=(f"{unit}(at)",), time_column=TimeColumn(name="at"))
    sql = f"SELECT id, CAST(at AS {time_type}) AS at FROM VALUES {values} v(id, at)"
    request = replace(table.request(sql, ("0001-01-01", "9999-12-31")), grain=Grain.HOUR)
    table.publish(request, table.engine.write(request))
    assert table.head is not None

    def found(begin: str | None, end: str | None) -> list[int]:
        bounds = [None if text is None else Instant.parse_iso(text) for text in (begin, end)]
        inside = " AND ".join(f"at {sign} '{text}'" for sign, text in ((">=", begin), ("<", end)) if text)
        relation = head_relation(table.head, key_range(table.head.shape, "at", *bounds))
        rows = table.engine.query(f"SELECT id FROM {relation} WHERE {inside}", limit=None).rows
        return sorted(number for (number,) in rows)

    assert found(*DAY) == [3, 4]
    assert found("2024-01-05", None) == [3, 4, 5, 6]
    assert found(None, "2024-01-05") == [0, 1, 2]
    assert found("0001-01-01", "1000-01-01") == [0, 1]


def test_readers_prune_by_a_date_that_the_model_is_partitioned_by(table: Table) -> None:
    table = replace(table, partitioned_by=("at", "day"), time_column=TimeColumn(name="at"))
    table.write(f"SELECT id, at, to_date(at) AS day FROM ({HOURS}) WHERE id < 240", (FIRST, "2022-01-11"))
    rows, plan, partitions, _ = scanned(table, f"SELECT * FROM {table.physical} WHERE day = DATE'2022-01-05'")
    assert len(rows) == 24
    assert "PartitionFilters: [isnotnull(day" in plan
    assert partitions == 1


# --- partitions that are replaced -------------------------------------------------------------------------------------
MANY = "SELECT id, date_add(DATE'2024-01-01', CAST(id AS INT)) AS ds FROM range(0, 40)"
FORTY_DAYS = ("2024-01-01", "2024-02-10")


def partitions_of(table: Table) -> int:
    assert table.head is not None
    return len(table.engine.query(f"SHOW PARTITIONS {table.head.generation}", limit=None).rows)


def test_a_replaced_day_is_laid_over_the_others_and_shown_once(table: Table) -> None:
    table = by_day(table)
    table.write(MANY, FORTY_DAYS)
    expected = {(number, (date(2024, 1, 1) + timedelta(days=number)).isoformat()) for number in range(40)}

    def check(published_by: str) -> None:
        assert table.published_by == published_by
        assert table.head is not None
        rows = [(number, str(day)) for number, day in table.rows()]
        assert sorted(rows) == sorted(expected)
        read = table.engine.query(f"SELECT * FROM {head_relation(table.head)}", limit=None).rows
        assert sorted((number, str(day)) for number, day in read) == sorted(expected)

    table.write("SELECT 101L AS id, DATE'2024-01-02' AS ds", DAY_TWO)
    expected = (expected - {(1, "2024-01-02")}) | {(101, "2024-01-02")}
    check("layer")
    assert partitions_of(table) == 1
    # A day that is in the upper table already, and one that vanishes.
    table.write("SELECT 102L AS id, DATE'2024-01-02' AS ds", ("2024-01-02", "2024-01-04"))
    expected = (expected - {(101, "2024-01-02"), (2, "2024-01-03")}) | {(102, "2024-01-02")}
    check("layer")
    assert partitions_of(table) == 1
    # A new day joins the upper table; the one that had vanished comes back there.
    table.write("SELECT 103L AS id, DATE'2024-02-10' AS ds", ("2024-02-10", "2024-02-11"))
    table.write("SELECT 104L AS id, DATE'2024-01-03' AS ds", ("2024-01-03", "2024-01-04"))
    expected |= {(103, "2024-02-10"), (104, "2024-01-03")}
    check("partitions")
    assert partitions_of(table) == 3
    # A reader's filter still finds one folder, in whichever of the tables it is.
    for day, number in (("2024-01-02", 102), ("2024-01-20", 19)):
        rows, _, partitions, _ = scanned(table, f"SELECT id FROM {table.physical} WHERE ds = DATE'{day}'")
        assert (rows, partitions) == ([(number,)], 1)
    # So many days that all of them are laid out anew.
    table.write("SELECT id + 200 AS id, ds FROM (" + MANY + ") WHERE id < 30", ("2024-01-01", "2024-01-31"))
    kept = {(number, day) for number, day in expected if day > "2024-01-30"}
    expected = kept | {(number + 200, (date(2024, 1, 1) + timedelta(days=number)).isoformat()) for number in range(30)}
    check("generation")


HOURLY = "SELECT id, timestampadd(HOUR, CAST(id AS INT), TIMESTAMP'2024-03-01') AS at FROM range({}, {})"


def test_the_next_hours_of_a_table_by_hours_are_written_in_one_job(table: Table) -> None:
    table = replace(table, partitioned_by=("hours(at)",), time_column=TimeColumn(name="at"))
    table.write(HOURLY.format(0, 48), ("2024-03-01", "2024-03-03"))

    written = table.write(HOURLY.format(47, 50), ("2024-03-02T23:00:00", "2024-03-03T02:00:00"))

    assert written.statements == len(["write", "count"])
    assert sorted(written.folders) == [("2024-03-02-23",), ("2024-03-03-00",), ("2024-03-03-01",)]
    assert sorted(number for (number,) in table.rows("id")) == [*range(50)]
    # An hour of which nothing is left vanishes.
    written = table.write(f"SELECT * FROM ({HOURLY.format(0, 1)}) WHERE false", ("2024-03-01", "2024-03-01T01:00:00"))
    assert (dict(written.folders), written.removed) == ({}, (("2024-03-01-00",),))
    assert sorted(number for (number,) in table.rows("id")) == [*range(1, 50)]


def test_a_day_of_a_table_by_months_is_replaced_without_looking_at_other_months(table: Table) -> None:
    table = replace(table, partitioned_by=("months(at)", "g"), time_column=TimeColumn(name="at"))
    rows = f"SELECT id, CASE WHEN id % 24 = 0 THEN 'a' ELSE 'b' END AS g, at FROM ({HOURLY})"
    table.write(rows.format(0, 24 * 92), ("2024-03-01", "2024-06-01"))

    written = table.write(
        f"SELECT * FROM ({rows.format(24 * 40, 24 * 41)}) WHERE g = 'a'", ("2024-04-10", "2024-04-11")
    )

    assert sorted(written.folders) == [("2024-04", "a"), ("2024-04", "b")]
    kept = [number for number in range(24 * 92) if not 24 * 40 < number < 24 * 41]
    assert sorted(number for (number,) in table.rows("id")) == kept


def test_partitions_by_two_keys_without_values_are_replaced_too(table: Table) -> None:
    table = replace(table, partitioned_by=("ds", "g"), time_column=TimeColumn(name="ds"))
    table.write(f"SELECT id, ds, IF(id = 3, NULL, 'x') AS g FROM ({MANY})", FORTY_DAYS)
    table.write("SELECT 300L AS id, DATE'2024-01-04' AS ds, CAST(NULL AS STRING) AS g", ("2024-01-04", "2024-01-05"))
    assert table.published_by == "layer"
    assert sorted(number for (number,) in table.rows("id")) == [*(n for n in range(40) if n != 3), 300]
