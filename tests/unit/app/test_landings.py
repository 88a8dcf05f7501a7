"""What was shown before something went wrong is done: it is told as a success, and never computed a second time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lamina.app.ports.events import BatchRetried
from lamina.errors import BatchFailed, StatementUnanswered, TransientFailure
from lamina.graph.kinds import IncrementalByPartition, IncrementalByUniqueKey, IncrementalUnmanaged
from lamina.graph.model import AuditCall, Model
from tests.kit.app import Place, Process, january
from tests.kit.engine import Fault
from tests.kit.models import daily, model
from tests.unit.app.test_audits_in_place import call
from tests.unit.app.test_folding_kinds import between

KINDS = {
    "append": IncrementalUnmanaged(),
    "upsert": IncrementalByUniqueKey(unique_key=("ds",)),
    "partitions": IncrementalByPartition(),
    "ranges": daily(),
}
FORMATS = ("parquet", "delta", "iceberg")


def place_of(kind: str, table_format: str, *audits: AuditCall) -> Place:
    query = "SELECT ds, x FROM raw.orders WHERE ds BETWEEN @start_ds AND @end_ds"
    made: Model = model(
        "shop.orders",
        ["raw.orders"],
        kind=KINDS[kind],
        query=query,
        start="2024-01-01",
        table_format=table_format,
        partitioned_by=("ds",) if kind == "partitions" else (),
    )
    place = Place(replace(made, audits=audits), sources={"raw.orders": january(31)})
    assert worker(place).build("2024-01-03").status == "succeeded"
    return place


def worker(place: Place, *faults: Fault) -> Process:
    return place.process(compute=between(place.catalog), faults=list(faults))


def days(place: Place) -> list[str]:
    return sorted(unit for unit, _ in place.rows("shop.orders"))


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("lands", ["never", "before the error"])
@pytest.mark.parametrize("operation", ["write", "publish", "audit", "retract", "create_generation"])
@pytest.mark.parametrize("table_format", FORMATS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_row_is_lost_or_doubled_by_a_failure_after_any_step(
    kind: str, table_format: str, operation: str, lands: str, times: int
):
    place = place_of(kind, table_format, call(blocking=False))
    fault = Fault(operation, TransientFailure("the answer got lost"), times=times, lands=lands)
    report = worker(place, fault).run("2024-01-05")
    once = [f"2024-01-0{day}" for day in (1, 2, 3, 4)]

    assert len(days(place)) == len(set(days(place))), "rows are there twice"
    assert report.status == "succeeded" or days(place) in (once[:2], once)
    if report.status != "succeeded":
        assert worker(place).run("2024-01-05").exit_code == 0
    assert days(place) == once
    assert worker(place).run("2024-01-05").status == "nothing_to_do"
    assert place.unsettled().is_empty


def test_a_batch_whose_answer_got_lost_is_told_as_done_with_its_rows():
    place = place_of("append", "delta")
    lost = Fault("publish", TransientFailure("an executor was lost"), "WriteThrough", lands="before the error")
    process = worker(place, lost)
    report = process.run("2024-01-05")

    assert (report.status, report.results["shop.orders"].rows) == ("succeeded", 2)
    assert not process.event(BatchRetried), "what has landed is not tried again"
    assert days(place) == [f"2024-01-0{day}" for day in (1, 2, 3, 4)]
    (entry,) = place.store.history(limit=1)
    assert [batch.status for batch in entry.batches] == ["succeeded"]


def test_audits_that_got_no_answer_are_asked_again_and_the_batch_is_not_repeated():
    place = place_of("append", "delta", call(blocking=False))
    process = worker(place, Fault("audit", TransientFailure("an executor was lost")))
    report = process.run("2024-01-05")

    assert report.status == "succeeded"
    assert [result.status for result in report.results["shop.orders"].audits] == ["passed"]
    assert days(place) == [f"2024-01-0{day}" for day in (1, 2, 3, 4)]
    assert len([one for one in process.engine.writes if one[0] == "shop.orders"]) == 1


def test_audits_that_cannot_be_asked_fail_the_batch_and_the_next_command_asks_them():
    place = place_of("append", "delta", call(blocking=False))
    process = worker(place, Fault("audit", TransientFailure("an executor was lost"), times=99))
    report = process.run("2024-01-05")

    error = report.results["shop.orders"].error
    assert isinstance(error, BatchFailed)
    assert "are shown" in error.message
    assert days(place) == [f"2024-01-0{day}" for day in (1, 2, 3, 4)]
    again = worker(place)
    again.build("2024-01-05")
    assert again.engine.calls["audit"] == 1
    assert not again.engine.writes


@pytest.mark.parametrize("error", [TransientFailure, StatementUnanswered])
def test_what_is_in_flight_while_it_is_taken_back_never_lands(error: Any):
    place = place_of("append", "delta")
    late = Fault("publish", error("no answer"), "WriteThrough", lands="later")
    report = worker(place, late).run("2024-01-05")
    place.catalog.land()

    assert len(days(place)) == len(set(days(place)))
    if report.status != "succeeded":
        place.clock.advance(121)
        assert worker(place).run("2024-01-05").exit_code == 0
    place.catalog.land()
    assert days(place) == [f"2024-01-0{day}" for day in (1, 2, 3, 4)]
