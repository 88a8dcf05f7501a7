"""What state remembers of audits: none is asked twice about the same rows, and an edited one alone is asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lamina.app.ports.loaded import LoadRequest
from lamina.errors import AuditFailed, Location
from lamina.graph.kinds import IncrementalByUniqueKey, View
from lamina.graph.model import AuditCall, AuditCode, Model, SqlText
from lamina.graph.names import NodeName
from lamina.sql.builtin_audits import THIS_MODEL
from lamina.sql.fragment import Fragment
from tests.kit.app import LEASE_TIME, Killed, Place, Process, january, orders, reading, statuses
from tests.kit.engine import Fault, Row
from tests.kit.models import daily

ORDERS, TOTALS = NodeName("shop.orders"), NodeName("shop.totals")


def call(name: str = "first", condition: str = "1", *, blocking: bool = True) -> AuditCall:
    query = f"SELECT * FROM {THIS_MODEL} WHERE {condition}"
    text = SqlText(source=Fragment(text=query, location=Location(file="audits/a.sql", line=2)), expanded=query)
    location = Location(file="models/m.sql", line=7)
    return AuditCall(name=name, blocking=blocking, location=location, code=AuditCode(query=text))


def with_audits(model: Model, *calls: AuditCall) -> Model:
    return replace(model, audits=calls)


def place(*calls: AuditCall, **settings: Any) -> Place:
    model = with_audits(orders(**settings), *calls)
    return Place(model, reading("shop.totals", "shop.orders"), sources={"raw.orders": january(31)})


def edit(shop: Place, *calls: AuditCall) -> None:
    shop.project.change(with_audits(orders(), *calls))


def looking(shop: Place, *failing: str, **options: Any) -> tuple[Process, list[tuple[str, str, list[str]]]]:
    """A process whose audits of these names fail, and what each audit was asked about."""
    seen: list[tuple[str, str, list[str]]] = []

    def look(audit: str, node: str, rows: list[Row]) -> int:
        seen.append((audit, node, [row[0] for row in rows]))
        return 2 if audit in failing else 0

    return shop.process(failing=look, **options), seen


def node_of(report: Any, name: str = ORDERS) -> dict[str, Any]:
    return next(node for node in report.to_dict()["nodes"] if node["name"] == name)


def definition(shop: Place, name: NodeName = ORDERS) -> str:
    return shop.store.load(LoadRequest(environments=("prod",))).revisions["prod"].pointers[name].definition_id


DAYS = ["2024-01-01", "2024-01-02", "2024-01-03"]


def test_a_new_audit_is_asked_about_what_is_built_and_nothing_is_computed():
    shop = place(call())
    assert shop.build("2024-01-04").status == "succeeded"
    edit(shop, call(), call("second", "2"))
    node = node_of(shop.process().plan("2024-01-04"))
    assert (node["action"], node["change"]) == ("metadata", "metadata")
    assert node["explanation"] == (
        "audits changed: 1 to ask over [2024-01-01T00:00:00Z, 2024-01-04T00:00:00Z); no data is touched"
    )

    process, seen = looking(shop)
    report = process.build("2024-01-04")
    assert (report.status, statuses(report)) == ("succeeded", {"shop.orders": "succeeded"})
    assert seen == [("second", ORDERS, DAYS)]
    assert not process.engine.writes
    assert [(audit["name"], audit["status"]) for audit in node_of(report)["audits"]] == [("second", "passed")]

    again, asked = looking(shop)
    assert again.build("2024-01-04").status == "nothing_to_do"
    assert not asked


def test_an_edited_audit_is_asked_alone():
    shop = place(call(), call("second", "2"))
    shop.build("2024-01-04")
    edit(shop, call(), call("second", "3"))
    process, seen = looking(shop)
    assert process.build("2024-01-04").status == "succeeded"
    assert [audit for audit, _, _ in seen] == ["second"]
    edit(shop, call(), call("second", "2"))
    process, seen = looking(shop)
    assert process.build("2024-01-04").status == "succeeded"
    assert not seen, "it passed over these rows before"


def test_other_metadata_asks_nothing():
    shop = place(call())
    shop.build("2024-01-04")
    shop.project.change(replace(with_audits(orders(), call()), description="orders by day"))
    process, seen = looking(shop)
    report = process.build("2024-01-04")
    assert node_of(report)["explanation"] == "only metadata changed; no data is touched"
    assert not seen
    assert not process.engine.calls["prepare"]


def test_a_blocking_failure_keeps_readers_where_they_are_and_stops_what_reads_it():
    shop = place(call())
    shop.build("2024-01-04")
    before, rows = definition(shop), shop.rows("shop.orders")
    shop.project.change(with_audits(orders(), call("second", "2")), reading("shop.totals", "shop.orders", text="y"))
    process, _ = looking(shop, "second")
    report = process.build("2024-01-04")

    assert (report.status, report.exit_code) == ("failed", 1)
    assert statuses(report) == {"shop.orders": "failed", "shop.totals": "skipped"}
    error = report.results[ORDERS].error
    assert isinstance(error, AuditFailed)
    assert error.message == (
        "audit `second` found 2 rows in what is built; readers keep it, and the changed definition does not take effect"
    )
    assert "SELECT * FROM kept.second" in (error.hint or "")
    assert (str(error.location), error.interval) == (
        "models/m.sql:7",
        ("2024-01-01T00:00:00Z", "2024-01-04T00:00:00Z"),
    )
    assert (definition(shop), shop.rows("shop.orders")) == (before, rows)
    assert report.environment_status == "active"
    assert not process.engine.writes

    process, seen = looking(shop)
    report = process.build("2024-01-04")
    assert statuses(report) == {"shop.orders": "succeeded", "shop.totals": "succeeded"}
    assert seen == [("second", ORDERS, DAYS)]
    assert definition(shop) != before


def test_a_run_goes_on_with_the_audits_it_had_while_the_new_one_fails():
    shop = place(call())
    shop.build("2024-01-04")
    edit(shop, call("second", "2"))
    process, _ = looking(shop, "second")
    assert process.build("2024-01-04").status == "failed"
    process, seen = looking(shop, "second")
    assert process.run("2024-01-05").status == "succeeded"
    assert [(audit, rows) for audit, node, rows in seen if node == ORDERS] == [("first", ["2024-01-04"])]


def test_a_failure_that_does_not_block_is_told_once():
    shop = place(call())
    shop.build("2024-01-04")
    edit(shop, call(), call("second", "2", blocking=False))
    process, _ = looking(shop, "second")
    report = process.build("2024-01-04")
    assert (report.status, report.exit_code) == ("succeeded", 0)
    assert [item["code"] for item in report.to_dict()["warnings"]].count("LAM-WARN-010") == 1
    assert shop.build("2024-01-04").status == "nothing_to_do"
    edit(shop, call(), call("second", "2"))
    process, seen = looking(shop, "second")
    assert process.build("2024-01-04").status == "failed", "now that it blocks, what it found counts"
    assert [audit for audit, _, _ in seen] == ["second"]


def test_new_days_are_audited_with_their_batch_and_old_ones_before_it():
    shop = place(call())
    shop.build("2024-01-04")
    edit(shop, call(), call("second", "2"))
    process, seen = looking(shop)
    report = process.build("2024-01-05")
    assert (node_of(report)["action"], node_of(report)["reason"]) == ("build", "missing_intervals")
    assert [(audit, rows) for audit, node, rows in seen if node == ORDERS] == [
        ("second", DAYS),
        ("first", ["2024-01-04"]),
        ("second", ["2024-01-04"]),
    ]
    assert {audit["name"]: audit["status"] for audit in node_of(report)["audits"]} == {
        "second": "passed",
        "first": "passed",
    }
    assert shop.build("2024-01-05").status == "nothing_to_do"


def test_an_old_day_that_fails_keeps_the_new_one_from_being_written():
    shop = place(call())
    shop.build("2024-01-04")
    edit(shop, call("second", "2"))
    process, _ = looking(shop, "second")
    assert statuses(process.build("2024-01-05")) == {"shop.orders": "failed", "shop.totals": "skipped"}
    assert not process.engine.writes


def test_days_that_are_computed_again_are_not_asked_about_before():
    shop = place(call())
    shop.build("2024-01-04")
    edit(shop, call(), call("second", "2"))
    process, seen = looking(shop)
    assert process.build("2024-01-04", restate=("shop.orders",), start="2024-01-02", end="2024-01-02").exit_code == 0
    assert [(audit, rows) for audit, node, rows in seen if node == ORDERS] == [
        ("second", ["2024-01-01"]),
        ("second", ["2024-01-03"]),
        ("first", ["2024-01-02"]),
        ("second", ["2024-01-02"]),
    ]
    assert shop.build("2024-01-04").status == "nothing_to_do"


def test_audits_left_out_for_once_are_not_made_up_for():
    shop = place(call())
    shop.process().build("2024-01-04", skips_audits=True)
    assert shop.build("2024-01-04").status == "nothing_to_do"
    edit(shop, call(), call("second", "2"))
    process, seen = looking(shop)
    report = process.build("2024-01-04", skips_audits=True)
    assert (report.status, seen) == ("succeeded", [])
    assert [audit["status"] for audit in node_of(report)["audits"]] == ["skipped"]
    assert shop.build("2024-01-04").status == "nothing_to_do"


def test_a_switched_off_audit_is_asked_once_it_is_switched_on():
    shop = place(replace(call(), skip=True))
    shop.build("2024-01-04")
    edit(shop, call())
    process, seen = looking(shop)
    assert process.build("2024-01-04").status == "succeeded"
    assert [rows for _, _, rows in seen] == [DAYS]


@pytest.mark.parametrize("kind", [None, View(), IncrementalByUniqueKey(unique_key=("ds",))], ids=str)
def test_whole_tables_and_views_are_asked_about_as_a_whole(kind: Any):
    def totals(*calls: AuditCall) -> Model:
        return with_audits(reading("shop.totals", "shop.orders", kind=kind), *calls)

    shop = Place(orders(), totals(call()), sources={"raw.orders": january(31)})
    shop.build("2024-01-04")
    shop.project.change(totals(call(), call("second", "2")))
    assert node_of(shop.process().plan("2024-01-04"), TOTALS)["explanation"] == (
        "audits changed: 1 to ask over the whole table; no data is touched"
    )
    process, seen = looking(shop)
    assert process.build("2024-01-04").status == "succeeded"
    assert [(audit, node) for audit, node, _ in seen] == [("second", TOTALS)]
    assert seen[0][2]
    assert not process.engine.writes
    assert all("__g_" in sql for sql in process.engine.audited), "read by generation, never through a view"
    assert shop.build("2024-01-04").status == "nothing_to_do"


def test_a_whole_table_that_is_built_again_is_audited_as_built():
    shop = Place(
        orders(),
        with_audits(reading("shop.totals", "shop.orders"), call()),
        sources={"raw.orders": january(31)},
    )
    shop.build("2024-01-04")
    shop.project.change(with_audits(reading("shop.totals", "shop.orders"), call("second", "2")))
    process, seen = looking(shop)
    assert process.build("2024-01-05").status == "succeeded"
    assert [(audit, len(rows)) for audit, _, rows in seen] == [("second", 1)]
    assert shop.build("2024-01-05").status == "nothing_to_do"


def test_another_environment_asks_its_own_audits_about_what_it_shares():
    shop = place(call())
    shop.build("2024-01-04")
    edit(shop, call(), call("second", "2"))
    process, seen = looking(shop)
    assert process.build("2024-01-04", "dev").status == "succeeded"
    assert [(audit, rows) for audit, _, rows in seen] == [("second", DAYS)]
    assert not process.engine.writes
    process, seen = looking(shop)
    assert process.build("2024-01-04").status == "succeeded"
    assert not seen, "it passed over the same version in dev"
    process, seen = looking(shop)
    assert (
        process.build("2024-01-05", "dev", restate=("shop.orders",), start="2024-01-02", end="2024-01-02").exit_code
        == 0
    )
    assert {tuple(rows) for _, node, rows in seen if node == ORDERS} == {("2024-01-02",)}, "a copy knows what passed"


def test_rows_that_were_replaced_meanwhile_are_looked_at_again():
    shop = place(call())
    shop.build("2024-01-04")
    edit(shop, call(), call("second", "2"))

    def rewrite() -> None:
        shop.catalog.sources["raw.orders"]["2024-01-02"] = "late"
        edit(shop, call())
        assert shop.build("2024-01-04", restate=("shop.orders",)).status == "succeeded"
        edit(shop, call(), call("second", "2"))

    process, seen = looking(shop)
    process.stops._actions[("audit.asked", 1)] = rewrite
    assert process.build("2024-01-04").status == "succeeded"
    assert [rows for audit, _, rows in seen if audit == "second"] == [DAYS, DAYS]


@pytest.mark.parametrize("point", ["engine.audit", "audit.asked", "audit.recorded", "promote.taken", "promote.pointer"])
def test_a_command_killed_while_it_asks_is_finished_by_the_next(point: str):
    shop = place(call())
    shop.build("2024-01-04")
    rows = shop.rows("shop.orders")
    edit(shop, call(), call("second", "2"))
    before = definition(shop)
    with pytest.raises(Killed):
        shop.dying(point).build("2024-01-04")
    assert shop.rows("shop.orders") == rows
    assert (definition(shop) != before) == (point == "promote.pointer")
    shop.clock.advance(LEASE_TIME)
    process, seen = looking(shop)
    assert process.build("2024-01-04").exit_code == 0
    assert bool(seen) == (point in {"engine.audit", "audit.asked"})
    assert definition(shop) != before
    assert shop.build("2024-01-04").status == "nothing_to_do"


@pytest.mark.parametrize("point", ["write.audited", "write.decide", "write.decided", "write.published", "write.done"])
def test_what_a_killed_command_has_decided_keeps_its_outcomes(point: str):
    shop = place(call())
    with pytest.raises(Killed):
        shop.dying(point).build("2024-01-04")
    shop.clock.advance(LEASE_TIME)
    process, seen = looking(shop)
    assert process.build("2024-01-04").exit_code == 0
    asked = [rows for _, node, rows in seen if node == ORDERS]
    assert asked == ([DAYS] if point in {"write.audited", "write.decide"} else [])
    process, seen = looking(shop)
    assert process.build("2024-01-04").status == "nothing_to_do"


def test_history_tells_how_audits_came_out():
    shop = place(call(), call("second", "2"))
    process, _ = looking(shop, "second")
    assert process.build("2024-01-04").status == "failed"
    (run,) = shop.store.history()
    (asked,) = run.audits
    assert (asked.node, asked.is_shown) == (ORDERS, False)
    assert [(result.name, result.status, result.failing_rows) for result in asked.results] == [
        ("first", "passed", 0),
        ("second", "failed", 2),
    ]
    assert shop.build("2024-01-04").status == "succeeded"
    ended = shop.store.history(limit=1)[0]
    assert [(asked.is_shown, asked.interval) for asked in ended.audits] == [
        (True, shop.covered("shop.orders").ranges[0]),
    ]


def test_an_audit_that_cannot_be_carried_out_changes_nothing():
    shop = place(call())
    shop.build("2024-01-04")
    before = definition(shop)
    edit(shop, call("second", "2"))
    broken = AuditFailed("the query is wrong")
    process = shop.process(faults=[Fault("audit", broken)])
    assert statuses(process.build("2024-01-04")) == {"shop.orders": "failed"}
    assert definition(shop) == before
    assert shop.build("2024-01-04").status == "succeeded"


def test_a_day_reached_by_a_rewrite_is_audited_when_it_is_computed_again():
    below = reading("shop.daily", "shop.orders", kind=daily(), partitioned_by=("ds",))
    shop = Place(orders(), with_audits(below, call()), sources={"raw.orders": january(31)})
    shop.build("2024-01-04")
    shop.project.change(with_audits(below, call(), call("second", "2")))
    shop.catalog.sources["raw.orders"]["2024-01-02"] = "late"
    process, seen = looking(shop)
    assert process.build("2024-01-04", restate=("shop.orders",), start="2024-01-02", end="2024-01-02").exit_code == 0
    assert [(audit, rows) for audit, _, rows in seen] == [
        ("second", DAYS[:1]),
        ("first", DAYS[1:]),
        ("second", DAYS[1:]),
    ]
    assert shop.build("2024-01-04").status == "nothing_to_do"


def test_what_a_stopped_command_did_not_ask_does_not_count_as_asked():
    shop = Place(with_audits(orders(), call()), reading("shop.a", "raw.a"), sources={"raw.orders": january(31)})
    shop.build("2024-01-04")
    before = definition(shop)
    shop.project.change(with_audits(orders(), call("second", "2")), reading("shop.a", "raw.a", text="y"))
    process, seen = looking(shop, faults=[Fault("write", AuditFailed("no"), about="shop.a")])
    report = process.build("2024-01-04", is_fail_fast=True, concurrency=1)
    assert statuses(report) == {"shop.a": "failed", "shop.orders": "skipped"}
    assert (seen, definition(shop)) == ([], before)
    process, seen = looking(shop)
    assert process.build("2024-01-04").status == "succeeded"
    assert [audit for audit, _, _ in seen] == ["second"]
