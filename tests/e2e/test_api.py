"""The Python API with a session of the caller's own."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import PATIENCE, Project, surroundings
from tests.kit.told import told

SCRIPT = """
import json, sys
from pyspark.sql import SparkSession
from lamina import LaminaError, Project

folder, zone = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "1")
    .config("spark.sql.session.timeZone", zone)
    .config("spark.sql.warehouse.dir", folder + "/somewhere")
    .getOrCreate()
)
seen = {}
with Project.open(folder, spark=spark) as project:
    seen["plan"] = project.plan(execution_time="2024-03-12").to_dict()
    seen["build"] = project.build(execution_time="2024-03-12").to_dict()
    seen["again"] = project.build(execution_time="2024-03-12").status
    seen["dev"] = project.build("dev", execution_time="2024-03-12", select="shop.events").status
    frame = project.query("SELECT * FROM shop.events", env="dev")
    seen["columns"] = frame.columns
    for name, columns in (("events", "id, unix_seconds(at), CAST(clock AS STRING), CAST(day AS STRING), hour"),
                          ("days", "CAST(day AS STRING), events, first_id")):
        rows = project.query(f"SELECT {columns} FROM shop.{name}").collect()
        seen[name] = [list(row) for row in sorted(rows)]
    seen["environment"] = project.environment("prod").to_dict()
    try:
        project.build(strat="2024-01-01")
    except LaminaError as error:
        seen["errors"] = error.errors
seen["zone"] = spark.conf.get("spark.sql.session.timeZone")
seen["alive"] = spark.range(3).count()
spark.stop()
print("SEEN" + json.dumps(seen))
"""
EVENTS = """MODEL (name shop.events, kind INCREMENTAL_BY_TIME_RANGE (time_column at), start '2024-03-09');
SELECT
  id, to_timestamp(at) AS at, CAST(to_timestamp(at) AS TIMESTAMP_NTZ) AS clock, to_date(to_timestamp(at)) AS day,
  date_format(to_timestamp(at), 'yyyy-MM-dd HH') AS hour
FROM shop.raw
WHERE to_timestamp(at) BETWEEN @start_dt AND @end_dt
"""
DAYS = """MODEL (name shop.days, kind INCREMENTAL_BY_TIME_RANGE (time_column day, batch_size 1), start '2024-03-09');
SELECT day, COUNT(*) AS events, MIN(id) AS first_id
FROM shop.events
WHERE at >= @start_dt AND at <= @end_dt
GROUP BY day
"""
MOMENTS = (
    "2024-03-08T23:59:59Z",  # before the start
    "2024-03-09T00:00:00Z",
    "2024-03-09T04:59:59Z",  # the last second of the eighth in New York
    "2024-03-09T15:00:00Z",  # midnight in Tokyo
    "2024-03-09T23:59:59Z",
    "2024-03-10T00:00:00Z",
    "2024-03-10T06:59:59Z",  # the last second before clocks are put forward in New York
    "2024-03-10T07:00:00Z",
    "2024-03-11T03:59:59Z",
    "2024-03-11T23:59:59Z",
    "2024-03-12T00:00:00Z",  # not over yet
)
RAW = "id,at\n" + "".join(f"{number},{moment}\n" for number, moment in enumerate(MOMENTS))
INSIDE = range(1, len(MOMENTS) - 1)


def run_script(folder: Path, session_zone: str, machine_zone: str) -> dict[str, Any]:
    project = Project(folder)
    project.write(lamina_yaml="name: shop\n", models__events_sql=EVENTS, models__days_sql=DAYS, seeds__raw_csv=RAW)
    document: dict[str, Any] = told(
        "-c", SCRIPT, str(project.folder), session_zone, env=surroundings(TZ=machine_zone), timeout=PATIENCE
    )
    return document


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the script saw on a machine in Tokyo with a session in New York."""
    return run_script(tmp_path_factory.mktemp("api"), "America/New_York", "Asia/Tokyo")


def test_plan_and_build_answer_the_documents_of_the_command_line(seen: dict[str, Any]) -> None:
    assert (seen["plan"]["command"], seen["plan"]["status"]) == ("plan", "planned")
    assert (seen["build"]["status"], seen["again"]) == ("succeeded", "nothing_to_do")
    assert {node["status"] for node in seen["build"]["nodes"]} == {"succeeded"}


def test_intervals_are_utc_whatever_the_session_and_the_machine_say(seen: dict[str, Any]) -> None:
    moments = {number: datetime.fromisoformat(MOMENTS[number].replace("Z", "+00:00")) for number in INSIDE}
    assert seen["events"] == [
        [number, int(at.timestamp()), f"{at:%Y-%m-%d %H:%M:%S}", f"{at:%Y-%m-%d}", f"{at:%Y-%m-%d %H}"]
        for number, at in moments.items()
    ]
    assert seen["days"] == [["2024-03-09", 4, 1], ["2024-03-10", 3, 5], ["2024-03-11", 2, 8]]


def test_a_machine_and_a_session_in_utc_give_the_same_tables(seen: dict[str, Any], tmp_path: Path) -> None:
    in_utc = run_script(tmp_path, "UTC", "UTC")
    for name in ("events", "days"):
        assert in_utc[name] == seen[name]
    versions = ({node["name"]: node["version"] for node in run["build"]["nodes"]} for run in (in_utc, seen))
    assert next(versions) == next(versions)


def test_a_query_is_a_frame_of_the_environments_columns(seen: dict[str, Any]) -> None:
    assert seen["dev"] == "succeeded"
    assert seen["columns"] == ["id", "at", "clock", "day", "hour"]


def test_the_environment_is_told_as_on_the_command_line(seen: dict[str, Any]) -> None:
    assert seen["environment"]["status"] == "finalized"
    assert set(seen["environment"]["pointers"]) == {"shop.days", "shop.events", "shop.raw"}


def test_wrong_usage_raises_with_the_list_of_errors(seen: dict[str, Any]) -> None:
    assert [error["code"] for error in seen["errors"]] == ["LAM-USE-001"]


def test_the_session_is_left_as_it_was(seen: dict[str, Any]) -> None:
    assert (seen["zone"], seen["alive"]) == ("America/New_York", 3)
