"""Layout, folder names, and which partitions an interval touches."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.app.ports.published import PartitionColumn
from lamina.errors import BadModelResult
from lamina.graph.kinds import TimeColumn
from lamina.graph.model import Column
from lamina.spark.rows.partitions import escape, find_time_key, partition_path, plan_partitions, touch
from lamina.timeline.interval import Instant, Interval

COLUMNS = (
    Column(name="id", type="bigint"),
    Column(name="Day", type="date"),
    Column(name="at", type="timestamp"),
    Column(name="_odd", type="string"),
    Column(name="price", type="double"),
)


def test_simple_columns_partition_by_themselves() -> None:
    assert plan_partitions(("day", "`id`"), COLUMNS) == (
        PartitionColumn(name="Day", type="date"),
        PartitionColumn(name="id", type="bigint"),
    )


def test_everything_else_gets_a_hidden_column_of_text() -> None:
    planned = plan_partitions(("at", "price", "_odd", "id % 10", "years(at)", "days(at)", "bucket(4, id)"), COLUMNS)
    assert {(column.type, column.is_hidden) for column in planned} == {("string", True)}
    assert [column.expression for column in planned] == [
        "CAST(CAST(`at` AS DATE) AS STRING)",
        "CAST(`price` AS STRING)",
        "CAST(`_odd` AS STRING)",
        "CAST((id % 10) AS STRING)",
        "date_format(`at`, 'yyyy')",
        "CAST(pmod(hash(id), 4) AS STRING)",
    ]


@pytest.mark.parametrize("unit", ["year", "month", "day", "hour"])
def test_units_of_time_mean_the_same_in_the_singular(unit: str) -> None:
    assert plan_partitions((f"{unit}(at)",), COLUMNS) == plan_partitions((f"{unit}s(at)",), COLUMNS)


def test_values_are_cut_to_a_width() -> None:
    columns = (*COLUMNS, Column(name="city", type="string"))
    by_text, by_number = plan_partitions(("truncate(4, city)", "truncate(10, id)"), columns)
    assert by_text.expression == "left(`city`, 4)"
    assert by_number.expression == "CAST(`id` - pmod(`id`, 10) AS STRING)"


def test_a_column_named_twice_partitions_once() -> None:
    assert plan_partitions(("day", "id", "Day"), COLUMNS) == plan_partitions(("day", "id"), COLUMNS)


def test_columns_stay_in_the_files_when_no_other_would() -> None:
    (only,) = plan_partitions(("day",), (Column(name="Day", type="date"),))
    assert (only.name, only.expression) == ("lamina_p0", "CAST(`Day` AS STRING)")


@pytest.mark.parametrize(
    ("value", "folder"),
    [
        ("a b", "a b"),
        ("x/y", "x%2Fy"),
        ("50%", "50%25"),
        ("a:b?c*[]{}^#", "a%3Ab%3Fc%2A%5B%5D%7B}%5E%23"),
        ("é", "é"),
        (None, "__HIVE_DEFAULT_PARTITION__"),
    ],
)
def test_folders_are_named_as_spark_names_them(value: str | None, folder: str) -> None:
    assert escape(value) == folder


def test_a_folder_name_has_at_most_255_bytes() -> None:
    column = PartitionColumn(name="g", type="string")
    assert partition_path((column,), ("x" * 253,)) == "g=" + "x" * 253
    with pytest.raises(BadModelResult):
        partition_path((column,), ("é" * 127,))


moments = st.integers(0, 4 * 24 * 60).map(
    lambda minutes: datetime(2024, 1, 1, tzinfo=timezone.utc) + timedelta(minutes=minutes)
)


@given(row=moments, first=moments, second=moments, kind=st.sampled_from(["timestamp", "date", "string", "int"]))
def test_a_key_tells_where_its_rows_lie(row: datetime, first: datetime, second: datetime, kind: str) -> None:
    if first == second:
        second = first + timedelta(minutes=1)
    interval = Interval(Instant.of(min(first, second)), Instant.of(max(first, second)))
    time = Column(name="at", type=kind)
    declared = TimeColumn(name="at", format="%Y%m%d%H%M" if kind in {"string", "int"} else None)
    layout = plan_partitions(("at",), (time, Column(name="id", type="int")))
    time_key = find_time_key(layout, time, declared)
    assert time_key is not None
    if kind in {"string", "int"}:
        value, moment = row.strftime("%Y%m%d%H%M"), row
    else:
        value = row.strftime("%Y-%m-%d")
        moment = row if kind == "timestamp" else datetime.combine(row.date(), datetime.min.time(), timezone.utc)
    is_inside = interval.contains(Instant.of(moment))
    assert touch((value,), time_key, interval) in ({"inside", "partly"} if is_inside else {"outside", "partly"})
    if kind != "timestamp":
        assert touch((value,), time_key, interval) == ("inside" if is_inside else "outside")


UNITS = {"hours": "%Y-%m-%d-%H", "days": "%Y-%m-%d", "months": "%Y-%m", "years": "%Y"}


@given(
    row=moments,
    first=moments,
    second=moments,
    unit=st.sampled_from([*UNITS]),
    kind=st.sampled_from(["timestamp", "date"]),
)
def test_a_key_by_a_unit_tells_where_its_rows_lie(
    row: datetime, first: datetime, second: datetime, unit: str, kind: str
) -> None:
    if first == second:
        second = first + timedelta(minutes=1)
    interval = Interval(Instant.of(min(first, second)), Instant.of(max(first, second)))
    time = Column(name="at", type=kind)
    layout = plan_partitions((f"{unit}(at)",), (time, Column(name="id", type="int")))
    time_key = find_time_key(layout, time, TimeColumn(name="at"))
    assert time_key is not None
    moment = row if kind == "timestamp" else datetime.combine(row.date(), datetime.min.time(), timezone.utc)
    # Whoever rewrites a whole month for a day of it should know which of its partitions hold rows of that day.
    between = "partly" if unit in {"hours", "days"} else "unknown"
    is_inside = interval.contains(Instant.of(moment))
    found = touch((moment.strftime(UNITS[unit]),), time_key, interval)
    assert found in ({"inside", between} if is_inside else {"outside", between})


@pytest.mark.parametrize(
    ("unit", "key", "found"),
    [
        ("hours", "2024-01-05-22", "outside"),
        ("hours", "2024-01-05-23", "inside"),
        ("hours", "2024-01-07-01", "outside"),
        ("months", "2023-12", "outside"),
        ("months", "2024-01", "unknown"),
        ("months", "2024-02", "outside"),
        ("years", "2024", "unknown"),
        ("years", "2025", "outside"),
    ],
)
def test_partitions_of_other_times_are_left_alone_by_their_keys(unit: str, key: str, found: str) -> None:
    layout = plan_partitions((f"{unit}(at)",), COLUMNS)
    time_key = find_time_key(layout, COLUMNS[2], TimeColumn(name="at"))
    assert time_key is not None
    assert touch((key,), time_key, Interval.from_pair(("2024-01-05T23:00:00Z", "2024-01-07T01:00:00Z"))) == found


def test_the_finest_of_several_keys_of_time_tells_most() -> None:
    layout = plan_partitions(("years(at)", "id", "hours(at)", "months(at)"), COLUMNS)
    time_key = find_time_key(layout, COLUMNS[2], TimeColumn(name="at"))
    assert time_key is not None
    assert time_key.index == 2


def test_keys_that_python_cannot_read_for_sure_say_nothing() -> None:
    time = Column(name="at", type="string")
    interval = Interval.from_pair(("2024-01-01", "2024-02-01"))
    layout = plan_partitions(("at",), (time, Column(name="id", type="int")))
    for time_format, value in (("%d %b %Y", "01 Jan 2024"), ("%Y-%m-%d", "2024-1-5"), ("%Y-%m-%d", "soon")):
        time_key = find_time_key(layout, time, TimeColumn(name="at", format=time_format))
        assert time_key is not None
        assert touch((value,), time_key, interval) == "unknown"
    assert find_time_key(plan_partitions(("lower(at)",), (time,)), time, TimeColumn(name="at")) is None
