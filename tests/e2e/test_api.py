"""The Python API with a session of the caller's own."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.e2e.conftest import PATIENCE, Project, surroundings

SCRIPT = """
import json, sys
from pyspark.sql import SparkSession
from lamina import LaminaError, Project

folder = sys.argv[1]
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "1")
    .config("spark.sql.session.timeZone", "America/New_York")
    .config("spark.sql.warehouse.dir", folder + "/somewhere")
    .getOrCreate()
)
seen = {}
with Project.open(folder, spark=spark) as project:
    seen["plan"] = project.plan(execution_time="2024-01-04").to_dict()
    seen["build"] = project.build(execution_time="2024-01-04").to_dict()
    seen["again"] = project.build(execution_time="2024-01-04").status
    seen["dev"] = project.build("dev", execution_time="2024-01-04", select="shop.events").status
    frame = project.query("SELECT * FROM shop.events", env="dev")
    seen["columns"] = frame.columns
    seen["rows"] = [list(row) for row in frame.selectExpr("id", "CAST(day AS STRING)").orderBy("id").collect()]
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
EVENTS = """MODEL (name shop.events, kind INCREMENTAL_BY_TIME_RANGE (time_column at), start '2024-01-01');
SELECT id, to_timestamp(at) AS at, to_date(to_timestamp(at)) AS day
FROM shop.raw
WHERE to_timestamp(at) BETWEEN @start_dt AND @end_dt
"""
RAW = "id,at\n1,2024-01-01T00:00:00Z\n2,2024-01-01T23:59:59Z\n3,2024-01-03T03:00:00Z\n4,2024-01-04T00:00:00Z\n"


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    project = Project(tmp_path_factory.mktemp("api"))
    project.write(lamina_yaml="name: shop\n", models__events_sql=EVENTS, seeds__raw_csv=RAW)
    answer = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(project.folder)],
        env=surroundings(TZ="America/New_York"),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert answer.returncode == 0, answer.stderr[-3000:]
    document: dict[str, Any] = json.loads(answer.stdout.rpartition("SEEN")[2])
    return document


def test_plan_and_build_answer_the_documents_of_the_command_line(seen: dict[str, Any]) -> None:
    assert (seen["plan"]["command"], seen["plan"]["status"]) == ("plan", "planned")
    assert (seen["build"]["status"], seen["again"]) == ("succeeded", "nothing_to_do")
    assert {node["status"] for node in seen["build"]["nodes"]} == {"succeeded"}


def test_intervals_are_utc_whatever_the_session_and_the_machine_say(seen: dict[str, Any]) -> None:
    assert [row[0] for row in seen["rows"]] == [1, 2, 3]
    assert [row[1] for row in seen["rows"]] == ["2024-01-01", "2024-01-01", "2024-01-03"]


def test_a_query_is_a_frame_of_the_environments_columns(seen: dict[str, Any]) -> None:
    assert seen["dev"] == "succeeded"
    assert seen["columns"] == ["id", "at", "day"]


def test_the_environment_is_told_as_on_the_command_line(seen: dict[str, Any]) -> None:
    assert seen["environment"]["status"] == "finalized"
    assert set(seen["environment"]["pointers"]) == {"shop.events", "shop.raw"}


def test_wrong_usage_raises_with_the_list_of_errors(seen: dict[str, Any]) -> None:
    assert [error["code"] for error in seen["errors"]] == ["LAM-USE-001"]


def test_the_session_is_left_as_it_was(seen: dict[str, Any]) -> None:
    assert (seen["zone"], seen["alive"]) == ("America/New_York", 3)
