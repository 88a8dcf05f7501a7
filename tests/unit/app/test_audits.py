"""Write, audit, publish on fakes: what a blocking audit refuses is never seen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lamina.errors import AuditFailed, Location
from lamina.graph.kinds import IncrementalUnmanaged, View
from lamina.graph.model import AuditCall, AuditCode, Model, SqlText
from lamina.graph.names import NodeName
from lamina.sql.builtin_audits import THIS_MODEL
from lamina.sql.fragment import Fragment
from tests.kit.app import Killed, Place, Process, january, orders, reading, statuses
from tests.kit.engine import Row
from tests.kit.models import model

ORDERS = NodeName("shop.orders")


def audited(model: Model, *, blocking: bool = True, reads: str | None = None, name: str = "no_late") -> Model:
    query = f"SELECT * FROM {THIS_MODEL}" + (f" JOIN {reads}" if reads else "")
    text = SqlText(source=Fragment(text=query, location=Location(file="models/m.sql", line=9)), expanded=query)
    references = {reads: NodeName(reads)} if reads else {}
    call = AuditCall(
        name=name,
        blocking=blocking,
        location=Location(file="models/m.sql", line=7),
        code=AuditCode(query=text, references=references),
    )
    return replace(model, audits=(call,))


def late(_audit: str, node: str, rows: list[Row]) -> int:
    """Rows with a value that should not be."""
    return sum("late" in row[1] for row in rows) if node == ORDERS else 0


def place(*, blocking: bool = True, **settings: Any) -> Place:
    model = audited(orders(**settings), blocking=blocking)
    return Place(model, reading("shop.totals", "shop.orders"), sources={"raw.orders": january(31)})


def watched(shop: Place) -> Process:
    return shop.process(failing=late)


def test_what_a_blocking_audit_finds_is_not_published_and_stops_what_reads_it():
    shop = place()
    assert watched(shop).build("2024-01-04").status == "succeeded"
    before, totals = shop.rows("shop.orders"), shop.rows("shop.totals")
    shop.catalog.sources["raw.orders"]["2024-01-04"] = "late"
    report = watched(shop).run("2024-01-05")

    assert (report.status, report.exit_code) == ("failed", 1)
    assert statuses(report) == {"shop.orders": "failed", "shop.totals": "skipped"}
    assert (shop.rows("shop.orders"), shop.rows("shop.totals")) == (before, totals)
    assert shop.covered("shop.orders").to_pairs()[0][1][:10] == "2024-01-04"
    error = report.results[ORDERS].error
    assert isinstance(error, AuditFailed)
    assert error.message == "audit `no_late` found 1 row; nothing of this was published"
    assert error.hint is not None
    assert "\n    lamina query 'SELECT * FROM kept.no_late'" in error.hint
    assert str(error.location) == "models/m.sql:7"
    assert error.interval == ("2024-01-04T00:00:00Z", "2024-01-05T00:00:00Z")
    node = next(node for node in report.to_dict()["nodes"] if node["name"] == ORDERS)
    assert node["audits"] == [
        {"name": "no_late", "call": "no_late", "status": "failed", "blocking": True, "failing_rows": 1}
    ]

    shop.catalog.sources["raw.orders"]["2024-01-04"] = "mended"
    mended = watched(shop).run("2024-01-05")
    assert mended.status == "succeeded"
    assert [row[0] for row in shop.rows("shop.orders")] == [f"2024-01-0{day}" for day in range(1, 5)]
    assert mended.to_dict()["nodes"][0]["audits"][0]["status"] == "passed"


def test_batches_before_the_refused_one_stay_done():
    shop = place(kind={"batch_size": 1, "batch_concurrency": 1})
    shop.catalog.sources["raw.orders"]["2024-01-02"] = "late"
    assert watched(shop).build("2024-01-04").status == "failed"
    shop.catalog.sources["raw.orders"]["2024-01-02"] = "mended"
    process = watched(shop)
    assert process.build("2024-01-04").status == "succeeded"
    assert [interval.to_pair()[0][:10] for node, interval in process.engine.writes if node == ORDERS and interval] == [
        "2024-01-02",
        "2024-01-03",
    ]


@pytest.mark.parametrize("table_format", ["parquet", "delta", "iceberg"])
def test_an_audit_sees_what_earlier_runs_appended(table_format: str):
    made = model("shop.orders", ["raw.orders"], kind=IncrementalUnmanaged(), table_format=table_format)
    shop = Place(audited(made), sources={"raw.orders": january(3)})

    def repeated(_audit: str, _node: str, rows: list[Row]) -> int:
        return len(rows) - len({day for day, _ in rows})

    def process() -> Process:
        return shop.process(failing=repeated, compute=lambda _node, _interval, _sql: [("2024-01-01", "x")])

    assert process().build("2024-01-04").status == "succeeded"
    report = process().run("2024-01-05")
    assert isinstance(report.results[ORDERS].error, AuditFailed)
    assert shop.rows("shop.orders") == (("2024-01-01", "x"),)


def test_an_audit_that_does_not_block_is_a_warning():
    shop = place(blocking=False)
    shop.catalog.sources["raw.orders"]["2024-01-02"] = "late"
    report = watched(shop).build("2024-01-04")
    assert (report.status, report.exit_code) == ("succeeded", 0)
    assert len(shop.rows("shop.orders")) == 3
    (warning,) = [item for item in report.to_dict()["warnings"] if item["code"] == "LAM-WARN-010"]
    assert warning["message"] == (
        "audit `no_late` of `shop.orders` found 1 row; it does not block, so the rows are published"
    )


def test_audits_can_be_left_out_for_once():
    shop = place()
    shop.catalog.sources["raw.orders"]["2024-01-02"] = "late"
    process = watched(shop)
    report = process.build("2024-01-04", skips_audits=True)
    assert report.status == "succeeded"
    assert not process.engine.calls["audit"]
    assert report.to_dict()["nodes"][0]["audits"][0]["status"] == "skipped"


def test_an_interval_is_audited_without_what_is_kept_of_its_partition():
    shop = place(partitioned_by=("month",))
    assert watched(shop).build("2024-01-04").status == "succeeded"
    seen: list[list[str]] = []

    def look(_audit: str, _node: str, rows: list[Row]) -> int:
        seen.append([row[0] for row in rows])
        return 0

    assert shop.process(failing=look).run("2024-01-05").status == "succeeded"
    assert seen == [["2024-01-04"]]
    assert len(shop.rows("shop.orders")) == 4


@pytest.mark.parametrize("point", ["write.written", "write.audited", "write.decided", "write.published"])
def test_a_command_killed_around_the_audit_is_finished_by_the_next(point: str):
    shop = place()
    process = shop.dying(point, failing=late)
    with pytest.raises(Killed):
        process.build("2024-01-04")
    shop.clock.advance(3600)
    assert watched(shop).build("2024-01-04").status == "succeeded"
    assert [row[0] for row in shop.rows("shop.orders")] == ["2024-01-01", "2024-01-02", "2024-01-03"]


def test_a_view_is_audited_before_it_is_shown():
    view = audited(reading("shop.recent", "shop.orders", kind=View()), name="plausible")
    shop = Place(orders(), view, sources={"raw.orders": january(31)})
    refused = shop.process(failing=lambda _audit, node, _rows: 2 if node == "shop.recent" else 0).build("2024-01-04")
    assert statuses(refused) == {"shop.orders": "succeeded", "shop.recent": "failed"}
    assert "shop.recent" not in shop.pointers()
    assert shop.build("2024-01-04").status == "succeeded"


def test_an_audit_reads_another_model_by_what_is_published_of_it():
    customers = reading("shop.customers", "shop.orders")
    deep = reading("shop.middle", "shop.customers")
    last = audited(reading("shop.last", "shop.middle"), reads="shop.customers")
    shop = Place(orders(), customers, deep, last, sources={"raw.orders": january(31)})
    process = shop.process()
    assert process.build("2024-01-04").status == "succeeded"
    (asked,) = process.engine.audited
    assert "shop__lamina`.`customers__v_" in asked
