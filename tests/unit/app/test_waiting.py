"""Commands beside a batch that is decided before its own statement ends: they wait for it, and say so."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from lamina.app.ports.events import Waiting
from lamina.app.requests import AuditsRequest
from lamina.graph.model import AuditCall, AuditCode, SqlText
from lamina.graph.names import NodeName
from lamina.sql.builtin_audits import THIS_MODEL
from lamina.sql.fragment import Fragment
from tests.kit.app import Place, Process, Running, january, orders, reading, sleeping
from tests.kit.models import instant

if TYPE_CHECKING:
    from collections.abc import Callable

ORDERS = NodeName("shop.orders")


def call(name: str, reads: str = THIS_MODEL, *, blocking: bool = False) -> AuditCall:
    model = orders()
    query = f"SELECT * FROM {reads} WHERE {name}"
    text = SqlText(source=Fragment(text=query, location=model.location), expanded=query)
    references = {} if reads == THIS_MODEL else {reads: NodeName(reads)}
    code = AuditCode(query=text, references=references)
    return AuditCall(name=name, blocking=blocking, location=model.location, code=code)


def built() -> Place:
    place = Place(orders(table_format="delta"), sources={"raw.orders": january(31)})
    assert place.build("2024-01-04").status == "succeeded"
    return place


def beside_a_batch(place: Place, command: Callable[[Process], Any], change: Callable[[], None]) -> tuple[Process, Any]:
    """What a command does that begins in the middle of a batch, which ends as soon as it is waited for."""
    first, sleep = sleeping(place, "write.decided")
    one = Running(lambda: first.run("2024-01-05"))
    assert sleep.begun.wait(10)
    change()
    second = place.process()
    second.on_event = lambda event: sleep.over.set() if isinstance(event, Waiting) else None
    try:
        return second, command(second)
    finally:
        sleep.over.set()
        assert one.end().report.exit_code == 0


@pytest.mark.parametrize("environment", ["prod", "dev"])
def test_a_new_audit_of_rows_that_a_long_batch_changes_waits_for_the_batch(environment):
    place = built()

    def change() -> None:
        place.project.change(replace(orders(table_format="delta"), audits=(call("first"),)))

    process, report = beside_a_batch(place, lambda it: it.build("2024-01-04", environment), change)
    assert report.status == "succeeded"
    assert [result.status for result in report.results[ORDERS].audits] == ["passed"]
    assert [event.what for event in process.event(Waiting)] == [f"version:{report.plan.pointers[ORDERS].physical}"]
    assert place.build("2024-01-05", environment).status in {"succeeded", "nothing_to_do"}
    assert place.unsettled().is_empty


def test_an_environment_that_computes_anew_what_a_long_batch_of_another_adds_to_waits_for_the_batch():
    place = built()
    assert place.build("2024-01-04", "dev").views
    restated = {"restate": (ORDERS,), "start": "2024-01-02", "end": "2024-01-02"}
    process, report = beside_a_batch(place, lambda it: it.build("2024-01-04", "dev", **restated), lambda: None)
    assert report.status == "succeeded"
    assert len(process.event(Waiting)) == 1
    assert len(place.rows("shop.orders")) == 4
    assert [unit for unit, _ in place.rows("shop.orders", "dev")][:3] == [f"2024-01-0{day}" for day in (1, 2, 3)]
    assert place.unsettled().is_empty


def test_asking_all_audits_waits_for_a_long_batch_of_what_they_are_about():
    place = Place(
        replace(orders(table_format="delta"), audits=(call("first"),)),
        sources={"raw.orders": january(31)},
    )
    place.build("2024-01-04")
    request = AuditsRequest(now=instant("2024-01-04"))
    process, report = beside_a_batch(place, lambda it: it.application().audit(request), lambda: None)
    assert [(row.result.status, row.error) for row in report.rows] == [("passed", None)]
    assert len(process.event(Waiting)) == 1


def test_an_audit_that_only_reads_a_table_with_snapshots_is_asked_beside_a_long_batch_of_it():
    other = reading("shop.other", "raw.other")
    place = Place(orders(table_format="delta"), other, sources={"raw.orders": january(31), "raw.other": january(1)})
    place.build("2024-01-04")

    def change() -> None:
        place.project.change(replace(other, audits=(call("first", ORDERS),)))

    process, report = beside_a_batch(place, lambda it: it.build("2024-01-04", select=("shop.other",)), change)
    assert report.status == "succeeded"
    assert "VERSION AS OF" in process.engine.audited[0]
    assert not process.event(Waiting)
