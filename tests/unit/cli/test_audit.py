"""`lamina audit` on the command line, and how builds tell of audits."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from lamina.app.auditing.environment import AuditsReport
from lamina.app.auditing.sources_and_standalone import AuditRow
from lamina.app.ports.facts import AuditResult, AuditsRecorded
from lamina.app.ports.loaded import HistoryEntry
from lamina.app.report import NodeResult
from lamina.app.requests import AuditsRequest
from lamina.errors import QueryFailed
from lamina.graph.dag import Notice
from lamina.graph.names import NodeName
from lamina.identity.naming import PhysicalName
from tests.kit.models import instant, ranges
from tests.unit.cli.conftest import Lamina
from tests.unit.cli.fake_application import NOW, FakeApplication, Shop, succeeded

ORDERS = NodeName("shop.orders")


def row(status: str = "passed", *, name: str = "not_null", blocking: bool = True, **further: object) -> AuditRow:
    result = AuditResult(
        name=name,
        call=f"{name}(columns := id)",
        status=status,  # type: ignore[arg-type]
        is_blocking=blocking,
        failing_rows=3 if status == "failed" else 0,
        kept_at="parquet.`/place`" if status == "failed" and blocking else None,
    )
    given: dict[str, object] = {"node": ORDERS, "type": "model", "intervals": ranges(("2024-01-01", "2024-01-04"))}
    return AuditRow(result=result, **{**given, **further})  # type: ignore[arg-type]


def report(*rows: AuditRow) -> AuditsReport:
    return AuditsReport(project="shop", environment="prod", now=instant(NOW), run_id="run1", rows=rows, seconds=1.5)


def test_every_audit_has_a_line_and_the_command_answers_whether_one_failed(
    lamina: Lamina, application: FakeApplication
):
    application.report = report(
        row(),
        row("failed", name="unique_values"),
        row("failed", name="plausible", blocking=False),
        row("skipped", name="x"),
    )
    answer = lamina("audit", "dev", "--select", "shop.orders", "--start", "2024-01-01", "--concurrency", "2")
    assert answer.exit_code == 1
    lines = answer.stdout.splitlines()
    assert lines[2].split() == [
        "shop.orders",
        "not_null(columns",
        ":=",
        "id)",
        "passed",
        "2024-01-01",
        "to",
        "2024-01-03",
    ]
    assert "failed" in lines[3]
    assert "does not block" in lines[4]
    assert lines[-1] == (
        "failed: 4 audits of prod, 1 passed, 2 failed, 1 skipped, 1 of the failures does not block, in 1.5 s"
    )
    assert "\n    lamina query 'SELECT * FROM parquet.`/place`'\n" in answer.stderr
    assert application.requests == [
        AuditsRequest(now=instant(NOW), environment="dev", select=("shop.orders",), start="2024-01-01", concurrency=2)
    ]


def test_a_failure_that_does_not_block_is_no_failure_of_the_command(lamina: Lamina, application: FakeApplication):
    application.report = report(row("failed", blocking=False))
    assert lamina("audit").exit_code == 0


def test_the_document_has_the_rows(lamina: Lamina, application: FakeApplication):
    application.report = report(row("failed"))
    answer = lamina("audit", "--json")
    document = json.loads(answer.stdout)
    assert (answer.exit_code, document["schema_version"], document["status"]) == (1, 1, "failed")
    assert document["audits"][0]["failing_rows_at"] == "parquet.`/place`"
    assert document["audits"][0]["intervals"] == [["2024-01-01T00:00:00Z", "2024-01-04T00:00:00Z"]]


def test_an_audit_that_could_not_be_asked_is_explained(lamina: Lamina, application: FakeApplication):
    application.report = report(row("failed", error=QueryFailed("no such column", hint="mend it")))
    answer = lamina("audit")
    assert answer.exit_code == 1
    assert "no such column" in answer.stderr


def test_without_audits_there_is_nothing_to_do(lamina: Lamina, application: FakeApplication):
    application.report = report()
    answer = lamina("audit")
    assert (answer.exit_code, "Nothing to do" in answer.stdout) == (0, True)


def test_a_build_tells_at_its_end_what_did_not_block(lamina: Lamina, application: FakeApplication, shop: Shop):
    notice = Notice(code="LAM-WARN-010", message="audit `x` found 2 rows; it does not block", node=ORDERS)
    application.report = replace(succeeded(shop.plan(command="build")), notices=(notice,))
    assert "warning LAM-WARN-010: audit `x` found 2 rows" in lamina("build").stderr


def test_a_build_that_only_asks_says_that_nothing_was_computed(
    lamina: Lamina, application: FakeApplication, shop: Shop
):
    plan = shop.plan(command="build")
    asked = NodeResult(status="succeeded", seconds=0.5, audits=(row().result,))
    application.report = replace(succeeded(plan), results={ORDERS: asked})
    answer = lamina("build")
    assert "1 audit asked, nothing computed" in answer.stdout
    assert "succeeded: 1 audited," in answer.stdout


@pytest.mark.parametrize("is_json", [False, True])
def test_history_shows_audits(lamina: Lamina, application: FakeApplication, is_json: bool):
    recorded = AuditsRecorded(
        run_id="run1",
        node=ORDERS,
        physical=PhysicalName("shop__lamina.orders__v_1"),
        number=3,
        interval=ranges(("2024-01-01", "2024-01-04")).ranges[0],
        results=(row("failed").result,),
        recorded_at=instant(NOW),
    )
    application.entries = (
        HistoryEntry(
            run_id="run1",
            command="audit",
            environment="prod",
            status="failed",
            started_at=instant(NOW),
            finished_at=instant(NOW),
            execution_time=instant(NOW),
            audits=(recorded,),
        ),
    )
    answer = lamina("history", "run1", *(["--json"] if is_json else []))
    if is_json:
        (audit,) = json.loads(answer.stdout)["history"][0]["audits"]
        assert (audit["node"], audit["status"], audit["failing_rows"]) == ("shop.orders", "failed", 3)
    else:
        assert "not_null(columns := id)" in answer.stdout
