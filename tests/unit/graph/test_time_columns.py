"""Time columns and units that do not go together are refused when a project is loaded."""

from __future__ import annotations

import pytest

from lamina.errors import DefinitionError
from lamina.graph.kinds import TimeColumn
from lamina.graph.time_columns import why_inexact
from lamina.timeline.grain import Grain
from tests.unit.reading.reading import problem, read_one

CRONS = {
    "five_minute": "*/5 * * * *",
    "quarter_hour": "*/15 * * * *",
    "half_hour": "*/30 * * * *",
    "hour": "@hourly",
    "day": "@daily",
    "month": "@monthly",
    "year": "@yearly",
}


def text(column_type: str, time_format: str | None = None, unit: str = "day", more: str = "") -> str:
    time = f"(at, '{time_format}')" if time_format else "at"
    return (
        f"MODEL (name a, kind INCREMENTAL_BY_TIME_RANGE (time_column {time}{more}), cron '{CRONS[unit]}');\n"
        f"SELECT CAST(x AS {column_type}) AS at, region FROM raw.t WHERE x BETWEEN @start_ds AND @end_ds"
    )


@pytest.mark.parametrize(
    ("column_type", "time_format", "unit"),
    [
        *[("TIMESTAMP", None, unit) for unit in CRONS],
        *[("TIMESTAMP_NTZ", None, unit) for unit in CRONS],
        ("TIMESTAMP", "%Y-%m-%d", "hour"),
        ("DATE", None, "day"),
        ("DATE", None, "month"),
        ("DATE", None, "year"),
        ("STRING", None, "day"),
        ("STRING", "%d.%m.%Y", "day"),
        ("STRING", "%d %b %Y", "day"),
        ("STRING", "%Y-%j", "day"),
        ("STRING", "%Y-%m", "month"),
        ("STRING", "%Y", "year"),
        ("STRING", "%F %T", "five_minute"),
        ("STRING", "%Y-%m-%dT%H", "hour"),
        ("STRING", "%Y-%m-%d %I %p", "hour"),
        ("VARCHAR(20)", "%Y-%m-%d %H:%M", "quarter_hour"),
        ("INT", "%Y%m%d", "day"),
        ("BIGINT", "%Y%m%d%H%M", "half_hour"),
        ("INT", "%Y%m", "month"),
    ],
)
def test_a_column_that_can_tell_the_units_apart_is_accepted(column_type: str, time_format: str | None, unit: str):
    assert read_one(text(column_type, time_format, unit)).grain.value == unit


@pytest.mark.parametrize(
    ("column_type", "time_format", "unit", "lacking"),
    [
        ("DATE", None, "hour", "hour"),
        ("DATE", None, "five_minute", "hour"),
        ("STRING", None, "hour", "hour"),
        ("STRING", "%Y-%m-%d %H", "quarter_hour", "minute"),
        ("STRING", "%Y-%m", "day", "day"),
        ("STRING", "%Y-%d", "day", "month"),
        ("STRING", "%m-%d", "day", "year"),
        ("STRING", "%H:%M", "hour", "year"),
        ("STRING", "%Y-%m-%d %I", "hour", "hour"),
        ("VARCHAR(10)", "%Y", "month", "month"),
        ("INT", "%Y%m", "day", "day"),
        ("INT", "%Y%m%d", "hour", "hour"),
    ],
)
def test_a_column_that_cannot_tell_the_units_apart_is_refused(
    column_type: str, time_format: str | None, unit: str, lacking: str
):
    found = problem(text(column_type, time_format, unit))
    assert type(found) is DefinitionError
    assert f"does not say the {lacking}, and the model's unit is `{unit}`" in found.message
    assert "cron" in found.hint
    assert (found.location.file, found.location.line) == ("models/m.sql", 1)


def test_a_longer_unit_makes_it_good_again():
    hourly = "cron '@hourly', interval_unit day, allow_partials true"
    found = read_one(text("DATE").replace("cron '@daily'", hourly))
    assert (found.cron, found.grain) == ("@hourly", Grain.DAY)


@pytest.mark.parametrize("time_format", ["%Y-%m-%d", "%d %b", "%F", "%Y%m%d%%"])
def test_a_number_has_a_format_of_digits_alone(time_format: str):
    found = problem(text("INT", time_format))
    assert type(found) is DefinitionError
    assert "is a number and cannot hold a time in the format" in found.message
    assert "%Y%m%d" in found.hint


@pytest.mark.parametrize("time_format", ["%U", "%Y %a %d", "%Q"])
def test_directives_that_spark_cannot_read_are_refused(time_format: str):
    assert type(problem(text("STRING", time_format))) is DefinitionError


def test_a_type_that_is_not_known_before_spark_looks_is_left_to_it():
    unknown = (
        "MODEL (name a, kind INCREMENTAL_BY_TIME_RANGE (time_column at), cron '@hourly'); SELECT at, region FROM raw.t"
    )
    assert read_one(unknown).grain is Grain.HOUR
    assert why_inexact(TimeColumn(name="at"), "date", Grain.HOUR) is not None


@pytest.mark.parametrize(
    ("partitioning", "partitions"),
    [
        ("", ("at",)),
        (", partitioned_by region", ("at", "region")),
        (", partitioned_by (month(at), region)", ("month(at)", "region")),
    ],
)
def test_every_partitioning_goes_with_every_time_column(partitioning: str, partitions: tuple[str, ...]):
    for column_type in ("DATE", "TIMESTAMP", "STRING"):
        header, _, query = text(column_type).partition(");\n")
        assert read_one(f"{header}{partitioning});\n{query}").partitioned_by == partitions


def test_a_table_may_go_without_partitions_or_have_others_than_time():
    off = text("DATE", more=", partition_by_time_column false")
    assert read_one(off).partitioned_by == ()
    header, _, query = off.partition(");\n")
    assert read_one(f"{header}, partitioned_by region);\n{query}").partitioned_by == ("region",)


def test_a_partition_by_a_column_that_is_not_there_is_refused():
    header, _, query = text("DATE").partition(");\n")
    found = problem(f"{header}, partitioned_by (month(at), regions));\n{query}")
    assert found.hint == "did you mean `region`?"
