"""Audits of external tables before they are read, and standalone ones after what they read is built, on fakes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from lamina.app.ports.events import Retried
from lamina.app.requests import AuditsRequest
from lamina.errors import AuditFailed, Location, QueryFailed, TransientFailure
from lamina.graph.kinds import View
from lamina.graph.model import AuditCall, AuditCode, Model, SqlText
from lamina.graph.names import NodeName
from lamina.sql.builtin_audits import THIS_MODEL
from lamina.sql.fragment import Fragment
from tests.kit.app import LEASE_TIME, Killed, Place, Process, january, orders, reading, statuses
from tests.kit.engine import Fault, Row
from tests.kit.models import instant

ORDERS, TOTALS, RAW = NodeName("shop.orders"), NodeName("shop.totals"), NodeName("raw.orders")


def call(name: str, query: str, *, blocking: bool = True, reads: tuple[str, ...] = ()) -> AuditCall:
    place = Location(file="audits/a.sql", line=3)
    text = SqlText(source=Fragment(text=query, location=place), expanded=query)
    code = AuditCode(query=text, references={each: NodeName(each) for each in reads})
    return AuditCall(name=name, blocking=blocking, location=place, code=code)


def alone(name: str = "balanced", *more: str) -> AuditCall:
    return call(name, f"SELECT 1 FROM {' JOIN '.join((ORDERS, *more))}", blocking=False, reads=(ORDERS, *more))


def source(*, blocking: bool = True) -> dict[NodeName, tuple[AuditCall, ...]]:
    return {RAW: (call("fresh", f"SELECT * FROM {THIS_MODEL}", blocking=blocking),)}


def watched(shop: Place, *failing: str, **options: Any) -> tuple[Process, list[str]]:
    asked: list[str] = []

    def look(audit: str, _node: str, rows: list[Row]) -> int:
        asked.append(audit)
        return len(rows) if audit in failing else 0

    return shop.process(failing=look, **options), asked


def with_alone(*audits: AuditCall) -> Place:
    totals = replace(reading("shop.totals", "shop.orders"), standalone_audits=audits)
    return Place(
        replace(orders(), standalone_audits=audits),
        totals,
        reading("shop.other", "raw.other"),
        sources={"raw.orders": january(31), "raw.other": january(1)},
    )


def with_source(**options: Any) -> Place:
    model: Model = replace(orders(), source_audits=source(**options))
    return Place(model, reading("shop.totals", "shop.orders"), sources={"raw.orders": january(31)})


# --- standalone -------------------------------------------------------------------------------------------------------
def test_a_standalone_audit_is_asked_once_what_it_reads_is_built_and_again_when_that_grows():
    shop = with_alone(alone("balanced", TOTALS))
    process, asked = watched(shop)
    report = process.build("2024-01-04")
    assert (report.status, asked) == ("succeeded", ["balanced"])
    assert process.engine.audited[0].count("__g_") == 2, "read by generation, never through a view"
    assert report.to_dict()["audits"] == [
        {
            "node": "balanced",
            "type": "audit",
            "name": "balanced",
            "call": "balanced",
            "status": "passed",
            "blocking": False,
            "failing_rows": 0,
            "failing_rows_at": None,
            "intervals": [],
            "explanation": None,
            "error": None,
        }
    ]
    process, asked = watched(shop)
    assert (process.build("2024-01-04").status, asked) == ("nothing_to_do", [])
    process, asked = watched(shop)
    assert (process.run("2024-01-05").status, asked) == ("succeeded", ["balanced"])


def test_what_a_standalone_audit_finds_is_a_warning_told_once():
    shop = with_alone(alone("balanced", TOTALS))
    process, _ = watched(shop, "balanced")
    report = process.build("2024-01-04")
    assert (report.status, report.exit_code) == ("succeeded", 0)
    (warning,) = [item for item in report.to_dict()["warnings"] if item["code"] == "LAM-WARN-010"]
    assert warning["message"].startswith("standalone audit `balanced` found 4 rows; it does not block")
    process, asked = watched(shop, "balanced")
    assert (process.build("2024-01-04").status, asked) == ("nothing_to_do", [])


def test_an_edited_standalone_audit_is_asked_without_building():
    shop = with_alone(alone())
    shop.build("2024-01-04")
    edited = alone("balanced", TOTALS)
    totals = replace(reading("shop.totals", "shop.orders"), standalone_audits=(edited,))
    shop.project.change(replace(orders(), standalone_audits=(edited,)), totals)
    assert shop.process().plan("2024-01-04").plan.standalone == ("balanced",)
    process, asked = watched(shop)
    assert (process.build("2024-01-04").status, asked) == ("succeeded", ["balanced"])
    assert not process.engine.writes
    assert shop.build("2024-01-04").status == "nothing_to_do"


def test_a_standalone_audit_waits_for_what_failed():
    shop = with_alone(alone("balanced", TOTALS))
    process, asked = watched(shop, faults=[Fault("write", QueryFailed("no"), about="totals")])
    assert process.build("2024-01-04").status == "failed"
    assert asked == []
    process, asked = watched(shop)
    assert (process.build("2024-01-04").status, asked) == ("succeeded", ["balanced"])


def test_a_standalone_audit_that_cannot_be_asked_is_told_and_tried_again():
    shop = with_alone(alone())
    process, _ = watched(shop, faults=[Fault("audit", QueryFailed("no such column"))])
    report = process.build("2024-01-04")
    assert report.exit_code == 0
    assert report.to_dict()["audits"][0]["error"]["message"] == "no such column"
    assert any("could not be asked" in item["message"] for item in report.to_dict()["warnings"])
    process, asked = watched(shop)
    assert (process.build("2024-01-04").status, asked) == ("succeeded", ["balanced"])


def test_models_that_it_does_not_read_do_not_matter_to_it():
    shop = with_alone(alone())
    shop.build("2024-01-04")
    process, asked = watched(shop)
    assert process.build("2024-01-04", force=True, select=("shop.other",)).status == "succeeded"
    assert asked == []


@pytest.mark.parametrize("point", ["promote.followed", "engine.audit", "audit.asked", "audit.recorded"])
def test_a_command_killed_around_a_standalone_audit_is_finished_by_the_next(point: str):
    shop = with_alone(alone("balanced", TOTALS))
    with pytest.raises(Killed):
        shop.dying(point).build("2024-01-04")
    rows = shop.rows("shop.totals")
    shop.clock.advance(LEASE_TIME)
    process, asked = watched(shop)
    assert process.build("2024-01-04").exit_code == 0
    assert asked == ([] if point == "audit.recorded" else ["balanced"])
    assert shop.rows("shop.totals") == rows
    assert shop.build("2024-01-04").status == "nothing_to_do"


def test_a_standalone_audit_left_out_for_once_is_not_made_up_for():
    shop = with_alone(alone())
    process, asked = watched(shop)
    report = process.build("2024-01-04", skips_audits=True)
    assert (report.to_dict()["audits"][0]["status"], asked) == ("skipped", [])
    assert shop.build("2024-01-04").status == "nothing_to_do"


# --- sources ----------------------------------------------------------------------------------------------------------
def test_a_source_is_audited_before_it_is_read_and_a_failure_stops_what_reads_it():
    shop = with_source()
    process, _ = watched(shop, "fresh")
    report = process.build("2024-01-04")
    assert (report.status, statuses(report)) == ("failed", {"shop.orders": "failed", "shop.totals": "skipped"})
    error = report.results[ORDERS].error
    assert isinstance(error, AuditFailed)
    assert error.message == (
        "audit `fresh` found 31 rows in the source `raw.orders`; `shop.orders`, which reads it, was not built"
    )
    assert str(error.location) == "audits/a.sql:3"
    assert not process.engine.writes
    assert [(row["node"], row["type"], row["failing_rows"]) for row in report.to_dict()["audits"]] == [
        ("raw.orders", "source", 31)
    ]
    process, asked = watched(shop)
    assert (process.build("2024-01-04").status, asked) == ("succeeded", ["fresh"])


def test_a_run_audits_the_source_too_by_what_is_recorded():
    shop = with_source()
    shop.build("2024-01-04")
    process, asked = watched(shop, "fresh")
    report = process.run("2024-01-05")
    assert statuses(report) == {"shop.orders": "failed", "shop.totals": "skipped"}
    assert asked == ["fresh"]
    process, asked = watched(shop)
    assert (process.run("2024-01-05").status, asked) == ("succeeded", ["fresh"])
    process, asked = watched(shop)
    assert (process.run("2024-01-05").status, asked) == ("nothing_to_do", []), "nothing reads it"


def test_a_source_is_audited_once_for_all_that_read_it():
    also = replace(reading("shop.also", "raw.orders", kind=View()), source_audits=source())
    shop = Place(replace(orders(), source_audits=source()), also, sources={"raw.orders": january(31)})
    process, asked = watched(shop)
    assert process.build("2024-01-04").status == "succeeded"
    assert asked == ["fresh"]


def test_a_failure_of_a_source_that_does_not_block_is_a_warning():
    shop = with_source(blocking=False)
    process, _ = watched(shop, "fresh")
    report = process.build("2024-01-04")
    assert report.status == "succeeded"
    assert [item["message"] for item in report.to_dict()["warnings"] if item["code"] == "LAM-WARN-010"] == [
        "source `raw.orders`: audit `fresh` found 31 rows; it does not block"
    ]


@pytest.mark.parametrize("make", [with_source, partial(with_alone, alone())])
def test_an_audit_apart_from_a_batch_is_tried_again_where_it_fails_for_a_moment(make: Callable[[], Place]):
    shop = make()
    process, asked = watched(shop, faults=[Fault("audit", TransientFailure("slow down"), times=2)])
    report = process.build("2024-01-04")
    assert (report.status, len(asked)) == ("succeeded", 1)
    assert [row["error"] for row in report.to_dict()["audits"]] == [None]
    assert [event.attempt for event in process.event(Retried)] == [1, 2]
    assert process.event(Retried)[0].what in {"audits of raw.orders", "audits of balanced"}


def test_an_audit_of_rows_that_are_shown_is_tried_again_where_it_fails_for_a_moment():
    shop = with_alone()
    shop.build("2024-01-04")
    shop.project.change(replace(orders(), audits=(call("fresh", f"SELECT * FROM {THIS_MODEL}"),)))
    process, asked = watched(shop, faults=[Fault("audit", TransientFailure("slow down"), times=2)])
    assert process.build("2024-01-04").status == "succeeded"
    assert (asked, [event.attempt for event in process.event(Retried)]) == (["fresh"], [1, 2])
    process, asked = watched(shop, faults=[Fault("audit", TransientFailure("slow down"), times=2)])
    report = process.application().audit(AuditsRequest(now=instant("2024-01-04")))
    assert (report.status, [event.attempt for event in process.event(Retried)]) == ("succeeded", [1, 2])


def test_audits_of_sources_can_be_left_out_for_once():
    process, asked = watched(with_source(), "fresh")
    assert (process.build("2024-01-04", skips_audits=True).status, asked) == ("succeeded", [])
