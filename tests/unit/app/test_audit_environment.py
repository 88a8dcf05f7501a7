"""`lamina audit` on fakes: everything is asked about what is built, and nothing else happens."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lamina.app.auditing.environment import AuditsReport
from lamina.app.requests import AuditsRequest
from lamina.errors import QueryFailed, UnknownEnvironment, UnknownName
from lamina.graph.kinds import View
from tests.kit.app import Killed, Place, Process, january, orders, reading
from tests.kit.engine import Fault, Row
from tests.kit.models import instant
from tests.unit.app.test_audit_records import call, with_audits
from tests.unit.app.test_audits_apart import alone, source


def audit(process: Process, now: str = "2024-01-04", environment: str | None = None, **options: Any) -> AuditsReport:
    return process.application().audit(AuditsRequest(now=instant(now), environment=environment, **options))


def shop() -> Place:
    place = Place(
        replace(with_audits(orders(), call()), standalone_audits=(alone(),), source_audits=source()),
        with_audits(reading("shop.shown", "shop.orders", kind=View()), call("visible", "2", blocking=False)),
        with_audits(reading("shop.totals", "shop.orders"), replace(call("off", "3"), skip=True), call("sum", "4")),
        reading("shop.other", "raw.other"),
        sources={"raw.orders": january(31), "raw.other": january(1)},
    )
    assert place.build("2024-01-04").status == "succeeded"
    return place


def watched(place: Place, *failing: str, **options: Any) -> tuple[Process, dict[str, list[str]]]:
    asked: dict[str, list[str]] = {}

    def look(audit: str, _node: str, rows: list[Row]) -> int:
        asked.setdefault(audit, []).extend(sorted({row[0] for row in rows}))
        return 2 if audit in failing else 0

    return place.process(failing=look, **options), asked


def outcomes(report: AuditsReport) -> dict[tuple[str, str], str]:
    return {(row.node, row.result.name): row.result.status for row in report.rows}


def test_everything_is_asked_about_what_is_built_whether_it_passed_or_not():
    place = shop()
    process, asked = watched(place)
    report = audit(process)
    assert (report.status, report.exit_code) == ("succeeded", 0)
    assert outcomes(report) == {
        ("raw.orders", "fresh"): "passed",
        ("shop.orders", "first"): "passed",
        ("shop.shown", "visible"): "passed",
        ("shop.totals", "sum"): "passed",
        ("shop.totals", "off"): "skipped",
        ("balanced", "balanced"): "passed",
    }
    assert asked["first"] == ["2024-01-01", "2024-01-02", "2024-01-03"]
    assert not process.engine.writes
    assert not process.engine.calls["show"]
    again, asked = watched(place)
    assert audit(again).status == "succeeded"
    assert asked["first"]


def test_a_blocking_failure_is_the_answer_and_a_build_is_not_troubled_by_it():
    place = shop()
    process, _ = watched(place, "first", "visible")
    report = audit(process)
    assert (report.status, report.exit_code) == ("failed", 1)
    document = report.to_dict()
    assert (document["schema_version"], document["command"], document["environment"]) == (1, "audit", "prod")
    (row,) = [row for row in document["audits"] if row["name"] == "first"]
    assert row == {
        "node": "shop.orders",
        "type": "model",
        "name": "first",
        "call": "first",
        "status": "failed",
        "blocking": True,
        "failing_rows": 2,
        "failing_rows_at": "kept.first",
        "intervals": [["2024-01-01T00:00:00Z", "2024-01-04T00:00:00Z"]],
        "explanation": None,
        "error": None,
    }
    assert place.build("2024-01-04").status == "nothing_to_do"
    run = place.store.history(limit=1)[0]
    assert (run.command, run.status) == ("audit", "failed")
    assert {result.name for recorded in run.audits for result in recorded.results} >= {"first", "visible", "sum"}


def test_a_failure_that_does_not_block_is_told_and_no_failure_of_the_command():
    process, _ = watched(shop(), "visible", "balanced")
    report = audit(process)
    assert (report.status, report.exit_code) == ("succeeded", 0)
    assert outcomes(report)["shop.shown", "visible"] == "failed"


def test_bounds_and_selectors_say_what_is_asked():
    place = shop()
    process, asked = watched(place)
    report = audit(process, select=("shop.orders",), start="2024-01-02", end="2024-01-02")
    assert asked == {"fresh": asked["fresh"], "first": ["2024-01-02"], "balanced": asked["balanced"]}
    assert {row.node for row in report.rows} == {"raw.orders", "shop.orders", "balanced"}
    process, _ = watched(place)
    late = audit(process, select=("shop.orders",), start="2024-02-01")
    (row,) = [row for row in late.rows if row.type == "model"]
    assert (row.result.status, row.explanation) == ("skipped", "nothing is built in this time")
    process, asked = watched(place)
    assert {row.node for row in audit(process, exclude=("shop.orders",)).rows} == {"shop.shown", "shop.totals"}
    with pytest.raises(UnknownName):
        audit(place.process(), select=("shop.nothing",))
    with pytest.raises(UnknownEnvironment):
        audit(place.process(), environment="nowhere")
    process = place.process()
    assert audit(process, select=("shop.other",)).status == "nothing_to_do"
    assert not process.engine.calls["prepare"]


def test_one_that_cannot_be_asked_does_not_keep_the_others_from_being_asked():
    process, _ = watched(shop(), faults=[Fault("audit", QueryFailed("no such column"), about="shop.orders")])
    report = audit(process, concurrency=1)
    assert report.exit_code == 1
    (row,) = [row for row in report.to_dict()["audits"] if row["node"] == "shop.orders"]
    assert (row["status"], row["error"]["message"]) == ("failed", "no such column")
    assert outcomes(report)["shop.totals", "sum"] == "passed"


def test_what_passes_here_is_not_asked_again_by_a_build():
    place = shop()
    place.project.change(replace(with_audits(orders(), call("second", "5")), standalone_audits=(alone(),)))
    process, _ = watched(place, "second")
    assert process.build("2024-01-04").status == "failed"
    process, asked = watched(place)
    assert audit(process).status == "succeeded"
    assert "second" not in asked, "the environment still runs by the definition it had"


@pytest.mark.parametrize("point", ["engine.audit", "audit.asked", "audit.recorded"])
def test_killed_it_leaves_nothing_to_mend(point: str):
    place = shop()
    rows = place.rows("shop.orders")
    with pytest.raises(Killed):
        audit(place.dying(point), concurrency=1)
    assert place.unsettled().is_empty
    assert place.rows("shop.orders") == rows
    assert audit(place.process()).status == "succeeded"
    assert place.build("2024-01-04").status == "nothing_to_do"


def test_rows_that_another_command_replaces_meanwhile_are_looked_at_again():
    place = shop()

    def rewrite() -> None:
        place.catalog.sources["raw.orders"]["2024-01-02"] = "late"
        assert place.build("2024-01-04", restate=("shop.orders",)).exit_code == 0

    process, asked = watched(place)
    process.stops._actions[("audit.asked", 1)] = rewrite
    assert audit(process, select=("shop.orders",), concurrency=1).status == "succeeded"
    assert len(asked["first"]) == 6
