"""`lamina build` and `lamina run`."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from lamina.app.report import NodeResult, Report
from lamina.errors import AnalysisFailed, BatchFailed, LaminaError, Location, QueryFailed
from lamina.graph.names import NodeName
from lamina.planning.inputs import Flags
from tests.kit.models import instant
from tests.unit.cli.conftest import Lamina
from tests.unit.cli.fake_application import FakeApplication, Shop, succeeded


def failure() -> LaminaError:
    error = QueryFailed(
        "division by zero",
        hint="guard the divisor",
        location=Location(file="models/revenue.sql", line=7),
        node="shop.revenue",
        interval=("2024-01-02T00:00:00Z", "2024-01-03T00:00:00Z"),
    )
    error.sql = "SELECT 1 / 0\nFROM orders"
    return error


def failed(report: Report) -> Report:
    results = {
        **succeeded(report).results,
        NodeName("shop.revenue"): NodeResult(status="failed", seconds=0.5, error=failure()),
        NodeName("shop.page"): NodeResult(status="skipped", explanation="skipped: `shop.revenue` above it failed"),
    }
    return replace(report, status="failed", environment_status="active", run_id="run2", results=results)


@pytest.mark.parametrize("command", ["build", "run"])
def test_the_summary_has_rows_seconds_and_totals(
    lamina: Lamina, application: FakeApplication, shop: Shop, command: str
):
    application.planned = shop.plan(command=command)
    application.report = succeeded(application.planned)

    answer = lamina(command)

    assert answer.exit_code == 0
    cells = next(line.split() for line in answer.stdout.splitlines() if line.startswith("shop.orders"))
    assert cells == ["shop.orders", "succeeded", "1,200", "1", "1.2"]
    assert "succeeded: 3 built, 3 batches, 3,600 rows, 3 views changed, in 4.2 s" in answer.stdout
    assert "environment prod is finalized, run run1" in answer.stdout


def test_a_build_announces_its_plan_on_stderr(lamina: Lamina, application: FakeApplication, shop: Shop):
    application.planned = shop.plan(command="build")
    application.report = succeeded(application.planned)

    answer = lamina("build")

    assert "first run" in answer.stderr
    assert "3 to build" in answer.stderr
    assert "first run" not in answer.stdout


def test_failures_come_last_with_all_that_is_known_of_them(lamina: Lamina, application: FakeApplication, shop: Shop):
    application.report = failed(shop.plan(command="build"))

    answer = lamina("build")

    assert answer.exit_code == 1
    assert "failed: 1 built, 1 failed, 1 skipped" in answer.stdout
    assert "`shop.revenue` above it failed" in answer.stdout
    told = answer.stderr
    for expected in (
        "error LAM-SPARK-006: division by zero",
        "at models/revenue.sql:7",
        "model: shop.revenue",
        "interval: 2024-01-02",
        "    SELECT 1 / 0\n    FROM orders",
        "hint: guard the divisor",
        "`lamina build` goes on",
        "`lamina history run2`",
    ):
        assert expected in told


def test_a_table_that_is_missing_for_several_models_is_told_once(
    lamina: Lamina, application: FakeApplication, shop: Shop
):
    report = shop.plan(command="run")

    def missing(node: str, table: str | None) -> NodeResult:
        error = AnalysisFailed(f"`{node}` was refused by Spark: nothing is called `{table}`", node=NodeName(node))
        error.missing_table = table
        return NodeResult(status="failed", error=error)

    tables = {"shop.orders": "raw.orders", "shop.revenue": "raw.orders", "shop.page": None}
    results = {NodeName(node): missing(node, table) for node, table in tables.items()}
    application.report = replace(report, status="failed", run_id="run2", results=results)

    told = lamina("run").stderr

    assert told.count("error LAM-SPARK-005") == 2
    assert told.count("nothing is called `raw.orders`") == 1
    assert "`shop.revenue` failed for the same reason" in told


def test_a_failed_build_is_still_one_document(lamina: Lamina, application: FakeApplication, shop: Shop):
    application.report = failed(shop.plan(command="build"))

    answer = lamina("build", "--json")

    document = json.loads(answer.stdout)
    assert answer.exit_code == 1
    assert document["status"] == "failed"
    errors = {node["name"]: node["error"] for node in document["nodes"]}
    assert errors["shop.revenue"]["code"] == "LAM-SPARK-006"


def test_a_second_build_says_that_there_is_nothing_to_do(lamina: Lamina, application: FakeApplication, shop: Shop):
    shop.build()
    application.report = shop.plan(command="build")

    answer = lamina("build")

    assert answer.exit_code == 0
    assert "Nothing to do: prod matches the project and no interval is missing" in answer.stdout


def test_a_run_with_nothing_due_says_when_something_will_be(lamina: Lamina, application: FakeApplication, shop: Shop):
    shop.build()
    application.report = replace(
        shop.plan(command="run"), status="nothing_to_do", next_release=instant("2024-01-09T00:00:00Z")
    )

    answer = lamina("run")

    assert answer.exit_code == 0
    assert "Nothing to do: no interval of prod is due" in answer.stdout
    assert "The next interval is due at 2024-01-09 00:00:00 UTC" in answer.stdout


def test_what_waits_is_named_when_nothing_can_be_done(lamina: Lamina, application: FakeApplication, shop: Shop):
    report = shop.plan(command="run")
    waiting = replace(report.plan.steps[0], action="wait", explanation="waits for `raw.events`")
    application.report = replace(report, status="nothing_to_do", plan=replace(report.plan, steps=(waiting,)))

    answer = lamina("run")

    assert answer.exit_code == 0
    assert "waiting shop.orders: waits for `raw.events`" in answer.stdout


def test_a_blocked_build_changes_nothing_and_answers_one(lamina: Lamina, application: FakeApplication, shop: Shop):
    shop.build()
    shop.change("shop.revenue", "SELECT ds, 2 AS revenue FROM shop.orders")
    application.report = shop.plan(command="build", flags=Flags(select=("shop.page",)))

    answer = lamina("build", "--select", "shop.page")

    assert answer.exit_code == 1
    assert "stale upstreams are not selected: `shop.revenue`" in answer.stdout
    assert "nothing was changed" in answer.stderr


def test_an_interrupted_report_answers_130(lamina: Lamina, application: FakeApplication, shop: Shop):
    application.report = replace(shop.plan(command="build"), status="interrupted")

    assert lamina("build").exit_code == 130


def test_the_flags_of_run_reach_its_request(lamina: Lamina, application: FakeApplication, shop: Shop):
    application.report = succeeded(shop.plan(command="run"))

    lamina(
        "run", "prod", "--select", "tag:nightly", "--start", "2024-01-01", "--end", "2024-01-02", "--ignore-cron",
        "--concurrency", "2", "--fail-fast",
    )  # fmt: skip

    request = application.requests[0]
    assert (request.command, request.environment) == ("run", "prod")
    assert (request.concurrency, request.is_fail_fast) == (2, True)
    assert request.flags == Flags(select=("tag:nightly",), start="2024-01-01", end="2024-01-02", ignore_cron=True)


@pytest.mark.parametrize("flag", ["--force", "--restate", "--exclude", "--skip-tests"])
def test_run_has_no_flags_that_change_code(lamina: Lamina, flag: str):
    assert lamina("run", flag, "x").exit_code == 2


def test_the_application_is_closed_after_a_failure(lamina: Lamina, application: FakeApplication):
    application.report = BatchFailed("no")

    assert lamina("build").exit_code == 1
    assert application.is_closed
