"""Commands that look: query, render, env, intervals, history, doctor, and init."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lamina.app.looking.looking import ModelIntervals
from lamina.app.ports.engine import QueryResult
from lamina.app.ports.events import SparkStarted, SparkStarting
from lamina.app.ports.facts import BatchRecorded
from lamina.app.ports.loaded import HistoryEntry
from lamina.bootstrap import Diagnosis
from lamina.environments.pointers import Pointer, Revision
from lamina.graph.model import Column
from lamina.graph.names import NodeName
from lamina.identity.naming import PhysicalName, VersionId
from lamina.timeline.interval import Interval
from tests.kit.models import instant, ranges
from tests.unit.cli.conftest import Lamina
from tests.unit.cli.fake_application import NOW, FakeApplication, FakeServices

# --- query --------------------------------------------------------------------------------------------------
COLUMNS = (Column(name="id", type="int"), Column(name="name", type="string"), Column(name="tags", type="array<string>"))
ROWS = ((1, "tea", ["a", "b"]), (22, None, []))


def result(rows: tuple[tuple[object, ...], ...] = ROWS, *, is_truncated: bool = False) -> QueryResult:
    return QueryResult(columns=COLUMNS, rows=rows, is_truncated=is_truncated)


def test_rows_are_a_table(lamina: Lamina, application: FakeApplication):
    application.result = result()

    answer = lamina("query", "SELECT 1", "--env", "dev")

    lines = [line.rstrip() for line in answer.stdout.splitlines()]
    assert lines[0].split() == ["id", "name", "tags"]
    assert lines[2].split() == ["1", "tea", '["a",', '"b"]']
    assert lines[3].split() == ["22", "NULL", "[]"]
    assert "2 rows" in answer.stderr
    assert application.requests == [{"sql": "SELECT 1", "environment": "dev", "now": instant(NOW), "limit": 1000}]


def test_a_cut_result_says_so(lamina: Lamina, application: FakeApplication):
    application.result = result(is_truncated=True)

    assert "there are more: `--limit 0` fetches all" in lamina("query", "SELECT 1", "--limit", "2").stderr
    assert application.requests[0]["limit"] == 2


def test_limit_zero_fetches_all(lamina: Lamina, application: FakeApplication):
    application.result = result()

    lamina("query", "SELECT 1", "--limit", "0")

    assert application.requests[0]["limit"] is None


def test_rows_as_json(lamina: Lamina, application: FakeApplication):
    application.result = result((*ROWS, (float("nan"), "x", [float("-inf")])), is_truncated=True)

    assert json.loads(lamina("query", "SELECT 1", "--json").stdout) == {
        "schema_version": 1,
        "columns": [
            {"name": "id", "type": "int"},
            {"name": "name", "type": "string"},
            {"name": "tags", "type": "array<string>"},
        ],
        "rows": [[1, "tea", ["a", "b"]], [22, None, []], ["NaN", "x", ["-Infinity"]]],
        "truncated": True,
    }


def test_rows_as_csv(lamina: Lamina, application: FakeApplication):
    application.result = result(((1, 'say "hi"', ["a"]), (2, None, None), (True, "two\nlines", {"k": 1})))

    assert lamina("query", "SELECT 1", "--csv").stdout == (
        'id,name,tags\n1,"say ""hi""","[""a""]"\n2,,\ntrue,"two\nlines","{""k"": 1}"\n'
    )


def test_csv_and_json_exclude_each_other(lamina: Lamina, application: FakeApplication):
    answer = lamina("query", "SELECT 1", "--csv", "--json")

    assert answer.exit_code == 2
    assert json.loads(answer.stdout)["errors"][0]["code"] == "LAM-USE-001"
    assert application.requests == []


def test_a_value_cannot_command_the_terminal(lamina: Lamina, application: FakeApplication):
    application.result = result(((1, "\x1b[31mred\x07", []),))

    text = lamina("query", "SELECT 1").stdout

    assert "\x1b" not in text
    assert "\\x1b[31mred\\x07" in text


def test_a_wide_result_is_not_cut_when_nobody_looks(lamina: Lamina, application: FakeApplication):
    application.result = result(((1, "x" * 500, []),))

    assert "x" * 500 in lamina("query", "SELECT 1").stdout


def test_a_result_without_rows_shows_its_columns(lamina: Lamina, application: FakeApplication):
    application.result = result(())

    answer = lamina("query", "SELECT 1")

    assert "id" in answer.stdout
    assert "0 rows" in answer.stderr


# --- render -------------------------------------------------------------------------------------------------
def test_render_prints_the_sql_and_nothing_else(lamina: Lamina, application: FakeApplication):
    application.sql = "SELECT [x]\nFROM y"

    answer = lamina("render", "shop.orders", "--start", "2024-01-03", "--end", "2024-01-04", "--env", "dev")

    assert answer.stdout == "SELECT [x]\nFROM y\n"
    assert answer.stderr == ""
    days = {"start": "2024-01-03", "end": "2024-01-04"}
    assert application.requests == [{"model": "shop.orders", **days, "now": instant(NOW), "environment": "dev"}]


def test_render_as_json(lamina: Lamina):
    assert json.loads(lamina("render", "shop.orders", "--env", "dev", "--json").stdout) == {
        "schema_version": 1,
        "model": "shop.orders",
        "environment": "dev",
        "sql": "SELECT 1",
    }


# --- env ----------------------------------------------------------------------------------------------------
def revision(name: str = "prod", number: int = 3) -> Revision:
    return Revision(
        environment=name,
        number=number,
        status="finalized",
        created_at=instant("2024-01-08T10:20:30.5Z"),
        pointers={
            NodeName("shop.orders"): Pointer(
                version=VersionId("0123456789abcdef"),
                definition_id="d1",
                physical=PhysicalName("shop__lamina.orders__v_0123456789abcdef"),
            ),
            NodeName("shop.part"): Pointer(version=VersionId("fedcba9876543210"), definition_id="d2", physical=None),
        },
    )


def test_environments_are_listed(lamina: Lamina, application: FakeApplication):
    application.revisions = (revision("dev", 1), revision())

    lines = lamina("env", "list").stdout.splitlines()

    assert lines[2].split() == ["dev", "finalized", "1", "2", "2024-01-08", "10:20:30"]
    assert lines[3].split() == ["prod", "finalized", "3", "2", "2024-01-08", "10:20:30", "baseline"]


def test_environments_as_json(lamina: Lamina, application: FakeApplication):
    application.revisions = (revision(),)

    assert json.loads(lamina("env", "list", "--json").stdout) == {
        "schema_version": 1,
        "environments": [
            {
                "name": "prod",
                "status": "finalized",
                "baseline": "prod",
                "revision": 3,
                "models": 2,
                "created_at": "2024-01-08T10:20:30.500000Z",
            }
        ],
    }


def test_without_environments_the_way_to_the_first_is_shown(lamina: Lamina):
    assert "`lamina build` creates the first one" in lamina("env", "list").stdout


@pytest.mark.parametrize("words", [("dev",), ("--env", "dev")])
def test_an_environment_is_shown_with_tables_and_checkpoints(
    lamina: Lamina, application: FakeApplication, words: tuple[str, ...]
):
    application.revisions, application.checkpoints = (revision("dev"),), (revision("dev"), revision("dev", 1))

    text = lamina("env", "show", *words).stdout

    assert "Environment dev: finalized, revision 3, baseline prod" in text
    assert "shop__lamina.orders__v_0123456789abcdef" in text
    assert "none of its own" in text
    assert "checkpoints: 3 (2024-01-08 10:20:30), 1 (2024-01-08 10:20:30)" in text
    assert application.requests == ["dev"]


def test_an_environment_as_json(lamina: Lamina, application: FakeApplication):
    application.revisions, application.checkpoints = (revision("dev"),), (revision("dev", 1),)

    document = json.loads(lamina("env", "show", "dev", "--json").stdout)

    assert document["name"] == "dev"
    assert (document["status"], document["baseline"], document["revision"]) == ("finalized", "prod", 3)
    assert document["pointers"]["shop.orders"] == {
        "version": "0123456789abcdef",
        "physical_table": "shop__lamina.orders__v_0123456789abcdef",
    }
    assert len(document["checkpoints"]) == 1


# --- intervals ----------------------------------------------------------------------------------------------
FOUND = ModelIntervals(
    model=NodeName("shop.orders"),
    environment="prod",
    kind="INCREMENTAL_BY_TIME_RANGE",
    grain="day",
    start=instant("2024-01-01"),
    covered=ranges(("2024-01-01", "2024-01-03"), ("2024-01-04", "2024-01-05")),
    missing=ranges(("2024-01-03", "2024-01-04")),
    waiting=ranges(("2024-01-05", "2024-01-06")),
    waiting_for=({"name": "raw.orders", "interval": ["2023-12-06T00:00:00Z", "2024-01-06T00:00:00Z"]},),
    reads=({"name": "raw.orders", "window": "from start - 30 days to end"},),
    explanation="built because intervals are missing",
)


def test_intervals_come_in_the_order_of_time(lamina: Lamina, application: FakeApplication):
    application.found = FOUND

    lines = [line.rstrip() for line in lamina("intervals", "shop.orders").stdout.splitlines()]

    assert lines[:3] == [
        "shop.orders in prod: INCREMENTAL_BY_TIME_RANGE, unit day",
        "built because intervals are missing",
        "reads raw.orders from start - 30 days to end",
    ]
    assert [line.split("  ")[0] for line in lines[6:]] == [
        "2024-01-01 to 2024-01-02",
        "2024-01-03",
        "2024-01-04",
        "2024-01-05",
    ]
    assert lines[9].endswith("raw.orders")
    assert "missing" in lines[7]


def test_intervals_as_json(lamina: Lamina, application: FakeApplication):
    application.found = FOUND

    document = json.loads(lamina("intervals", "shop.orders", "--env", "prod", "--json").stdout)

    assert document["model"] == "shop.orders"
    assert document["missing"] == [["2024-01-03T00:00:00Z", "2024-01-04T00:00:00Z"]]
    assert [row["status"] for row in document["intervals"]] == ["covered", "missing", "covered", "waiting"]
    assert document["intervals"][3]["waiting_for"] == ["raw.orders"]
    name, request = application.requests[0]
    assert (name, request.environment, request.now) == ("shop.orders", "prod", instant(NOW))


# --- history ------------------------------------------------------------------------------------------------
ENTRY = HistoryEntry(
    run_id="abc123",
    command="build",
    environment="prod",
    status="failed",
    started_at=instant("2024-01-08T00:00:00Z"),
    finished_at=instant("2024-01-08T00:01:05Z"),
    execution_time=instant("2024-01-07T06:00:00Z"),
    batches=(
        BatchRecorded(
            run_id="abc123",
            node=NodeName("shop.orders"),
            physical=PhysicalName("shop__lamina.orders__v_1"),
            number=1,
            interval=Interval(instant("2024-01-01"), instant("2024-01-02")),
            status="succeeded",
            rows=1200,
            seconds=1.5,
            statements=3,
            finished_at=instant("2024-01-08T00:00:30Z"),
        ),
        BatchRecorded(
            run_id="abc123",
            node=NodeName("shop.revenue"),
            physical=PhysicalName("shop__lamina.revenue__v_1"),
            number=2,
            interval=None,
            status="failed",
            rows=None,
            seconds=0.5,
            statements=1,
            finished_at=instant("2024-01-08T00:01:00Z"),
            error={"code": "LAM-SPARK-006", "message": "division by zero", "hint": "guard the divisor"},
        ),
    ),
)


def test_runs_are_listed(lamina: Lamina, application: FakeApplication):
    application.entries = (ENTRY,)

    row = lamina("history").stdout.splitlines()[2]

    assert row.split() == [
        "abc123",
        "build",
        "prod",
        "failed",
        "2024-01-08",
        "00:00:00",
        "2024-01-07",
        "06:00",
        "1",
        "min",
        "05",
        "s",
        "2",
        "1,200",
        "shop.orders,",
        "shop.revenue",
    ]
    assert application.requests == [(None, 20)]


def test_one_run_is_shown_with_its_batches_and_failures(lamina: Lamina, application: FakeApplication):
    application.entries = (ENTRY,)

    text = lamina("history", "abc123").stdout

    assert "Run abc123: build of prod, failed, took 1 min 05 s" in text
    assert "worked at 2024-01-07 06:00:00 UTC" in text
    assert "2024-01-01" in text
    assert "error LAM-SPARK-006: shop.revenue: division by zero" in text
    assert application.requests == [("abc123", 20)]


def test_history_as_json(lamina: Lamina, application: FakeApplication):
    application.entries = (ENTRY,)

    (run,) = json.loads(lamina("history", "--limit", "1", "--json").stdout)["history"]

    assert (run["run_id"], run["seconds"]) == ("abc123", 65.0)
    assert run["execution_time"] == "2024-01-07T06:00:00Z"
    assert run["models"] == ["shop.orders", "shop.revenue"]
    assert run["batches"][0]["interval"] == ["2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z"]
    assert run["batches"][1]["error"]["code"] == "LAM-SPARK-006"
    assert application.requests == [(None, 1)]


def test_an_empty_history_says_so(lamina: Lamina):
    assert lamina("history").stdout == "Nothing has been built yet\n"


# --- doctor -------------------------------------------------------------------------------------------------
GOOD = Diagnosis(name="Java", status="ok", detail="17.0.9")
BAD = Diagnosis(name="state", status="fault", detail="not writable", fix="make the folder writable")
ODD = Diagnosis(name="memory", status="warning", detail="1 GB", fix="give it more")


def test_doctor_answers_zero_without_a_fault(lamina: Lamina, services: FakeServices):
    services.checks = (GOOD, ODD)

    answer = lamina("doctor")

    assert answer.exit_code == 0
    assert "no fault found" in answer.stdout
    assert "memory: give it more" in answer.stdout


def test_doctor_answers_one_with_a_fault_and_its_fix(lamina: Lamina, services: FakeServices):
    services.checks = (GOOD, BAD)

    answer = lamina("doctor")

    assert answer.exit_code == 1
    assert "1 fault found" in answer.stdout
    assert "state: make the folder writable" in answer.stdout


def test_doctor_announces_spark_before_it_answers(lamina: Lamina, services: FakeServices):
    services.application.events = (
        SparkStarting(detail="Spark at local[*]"),
        SparkStarted(version="4.1.4", seconds=7.5),
    )
    services.checks = (GOOD,)

    answer = lamina("doctor", "--json")

    assert answer.stderr == "starting Spark at local[*]\nSpark 4.1.4 started in 7.5 s\n"
    assert json.loads(answer.stdout)["checks"][0]["name"] == "Java"


def test_doctor_as_json(lamina: Lamina, services: FakeServices):
    services.checks = (GOOD, BAD)

    answer = lamina("doctor", "--json")

    assert answer.exit_code == 1
    assert json.loads(answer.stdout)["checks"][1] == {
        "name": "state",
        "status": "fault",
        "detail": "not writable",
        "fix": "make the folder writable",
    }


# --- init ---------------------------------------------------------------------------------------------------
def test_init_creates_a_project(lamina: Lamina, services: FakeServices):
    answer = lamina("init", "my shop")

    assert services.created == [(Path("my shop"), "shop", "parquet")]
    assert answer.stdout == "Created a project in my shop:\n  lamina.yaml\n  models/orders.sql\n"
    assert "`cd 'my shop'`" in answer.stderr


def test_init_takes_template_format_and_folder(lamina: Lamina, services: FakeServices):
    answer = lamina("init", "new", "--template", "empty", "--format", "delta", "-C", "base", "--json")

    assert services.created == [(Path("base/new"), "empty", "delta")]
    assert json.loads(answer.stdout) == {
        "schema_version": 1,
        "directory": "base/new",
        "files": ["lamina.yaml", "models/orders.sql"],
    }


def test_init_refuses_an_unknown_template(lamina: Lamina, services: FakeServices):
    answer = lamina("init", "new", "--template", "shopp")

    assert answer.exit_code == 2
    assert services.created == []
    assert "`--template`" in answer.stderr
