"""Kinds whose runs are put into what the table holds: each once and in order, whatever happens in between."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from lamina.app.requests import PromoteRequest
from lamina.errors import EngineError, NotYetSupported, PromotionRefused
from lamina.graph.kinds import IncrementalByPartition, IncrementalByUniqueKey, IncrementalUnmanaged
from lamina.graph.model import Model
from lamina.timeline.interval import Interval
from tests.kit.app import Killed, Place, Process, Running, january, sleeping, statuses
from tests.kit.engine import Compute, FakeCatalog, Fault, Row
from tests.kit.models import instant, model, ranges

_DAYS = re.compile(r"BETWEEN '([\d-]+)' AND '([\d-]+)'")
UPSERT = IncrementalByUniqueKey(unique_key=("ds",), batch_size=2)
AT_ONCE = replace(UPSERT, batch_size=None)
APPEND = IncrementalUnmanaged()
DAY = "2024-01-{:02}T12:00:00Z"


def between(catalog: FakeCatalog) -> Compute:
    """The source's rows of the days that the query names, or all of them."""

    def compute(node: str, interval: Interval | None, sql: str) -> Iterable[Row]:
        days = _DAYS.search(sql)
        rows = catalog.sources["raw.orders"].items()
        return [row for row in rows if days is None or days[1] <= row[0] <= days[2]]

    return compute


def over_time(kind: Any, **settings: Any) -> Model:
    query = "SELECT ds, x FROM raw.orders WHERE ds BETWEEN @start_ds AND @end_ds"
    return model("shop.orders", ["raw.orders"], kind=kind, query=query, start="2024-01-01", **settings)


def whole(kind: Any, **settings: Any) -> Model:
    return model("shop.orders", ["raw.orders"], kind=kind, query="SELECT ds, x FROM raw.orders", **settings)


def place_with(made: Model) -> Place:
    return Place(made, sources={"raw.orders": january(31)})


def process(place: Place, point: str | None = None, occurrence: int = 1, **engine: Any) -> Process:
    engine.setdefault("compute", between(place.catalog))
    return place.process(**engine) if point is None else place.dying(point, occurrence, **engine)


def first_days(count: int) -> tuple[Row, ...]:
    return tuple(sorted(january(count).items()))


@pytest.mark.parametrize(
    ("clause", "missing"),
    [
        ({"merge_filter": "target.nothing > 1"}, "`merge_filter` names `nothing`"),
        ({"when_matched": ("WHEN MATCHED AND source.other = 1 THEN DELETE",)}, "`when_matched` names `other`"),
        ({"when_matched": ("WHEN MATCHED THEN UPDATE SET target.`y` = source.x",)}, "`when_matched` names `y`"),
        ({"when_matched": ("WHEN MATCHED THEN UPDATE SET target.`X` = source.DS",)}, None),
    ],
)
def test_clauses_that_name_what_no_row_has_are_refused_before_the_first_run(clause: Any, missing: str | None):
    place = place_with(whole(replace(AT_ONCE, **clause)))
    result = process(place).build(DAY.format(5)).results["shop.orders"]
    assert (result.status, missing is None) in {("failed", False), ("succeeded", True)}
    assert missing is None or missing in result.error.message


@pytest.mark.parametrize("kind", [UPSERT, APPEND, IncrementalByPartition()])
def test_runs_go_on_where_recorded_time_ends_and_building_again_does_nothing(kind: Any):
    place = place_with(over_time(kind, partitioned_by=("ds",)))
    assert statuses(process(place).build(DAY.format(6))) == {"shop.orders": "succeeded"}
    assert place.rows("shop.orders") == first_days(5)
    assert place.covered("shop.orders") == ranges(("2024-01-01", "2024-01-06"))
    assert process(place).build(DAY.format(6)).status == "nothing_to_do"

    place.catalog.sources["raw.orders"]["2024-01-02"] = "late"
    report = process(place).run(DAY.format(8))
    assert report.results["shop.orders"].intervals == ranges(("2024-01-06", "2024-01-08"))  # type: ignore[index]
    assert place.rows("shop.orders") == first_days(7)


def test_batches_run_in_order_and_after_a_failure_only_the_rest_is_done():
    place = place_with(over_time(UPSERT))
    broken = Fault("write", EngineError("no more space"), times=1)
    worker = process(place)
    worker.on_event = lambda event: (
        worker.engine.faults.append(broken) if type(event).__name__ == "BatchFinished" else None
    )
    assert worker.build(DAY.format(6)).status == "failed"

    worker = process(place)
    assert worker.build(DAY.format(6)).status == "succeeded"
    started = [event.interval.to_pair()[0][:10] for event in worker.events if type(event).__name__ == "BatchStarted"]
    assert started == ["2024-01-03", "2024-01-05"]
    assert place.rows("shop.orders") == first_days(5)


def kill_points(make: Any, kind: Any) -> list[tuple[str, int]]:
    place = place_with(make(kind))
    watched = process(place)
    watched.build(DAY.format(5))
    return sorted((point, number + 1) for point, often in watched.stops.reached.items() for number in range(often))


@pytest.mark.parametrize("make", [over_time, whole])
@pytest.mark.parametrize("kind", [UPSERT, APPEND])
def test_killed_anywhere_the_next_command_ends_with_every_run_done_once(make: Any, kind: Any):
    expected = first_days(4) if make is over_time else first_days(31)
    for point, occurrence in kill_points(make, kind):
        place = place_with(make(kind))
        with pytest.raises(Killed):
            process(place, point, occurrence).build(DAY.format(5))
        place.clock.advance(200)
        assert process(place).build(DAY.format(5)).status in {"succeeded", "nothing_to_do"}, point
        assert place.rows("shop.orders") == expected, point
        assert process(place).build(DAY.format(5)).status == "nothing_to_do", point


def test_a_due_tick_over_an_unknown_source_appends_once_more():
    place = place_with(whole(APPEND))
    process(place).build(DAY.format(5))
    assert process(place).build(DAY.format(9)).status == "nothing_to_do"
    process(place).run(DAY.format(9))
    assert place.rows("shop.orders") == tuple(sorted(first_days(31) * 2))
    assert process(place).run(DAY.format(9)).status == "nothing_to_do"


def test_partitions_that_occur_are_replaced_and_absent_ones_stay():
    place = place_with(whole(IncrementalByPartition(), partitioned_by=("ds",)))
    process(place).build(DAY.format(5))
    place.catalog.sources["raw.orders"] = {"2024-01-02": "new"}
    process(place).run(DAY.format(6))
    assert dict(place.rows("shop.orders")) == {**january(31), "2024-01-02": "new"}


def test_a_restatement_builds_the_table_anew_and_says_so_loudly():
    place = place_with(over_time(AT_ONCE))
    process(place).build(DAY.format(7))
    place.catalog.sources["raw.orders"] = {"2024-01-02": "new", "2024-01-05": "other"}
    report = process(place).build(DAY.format(7), restate=("shop.orders",), start="2024-01-05")
    assert [notice.code for notice in report.plan.warnings] == ["LAM-WARN-016"]
    assert place.rows("shop.orders") == (("2024-01-02", "new"), ("2024-01-05", "other"))
    assert place.covered("shop.orders") == ranges(("2024-01-01", "2024-01-07"))
    assert process(place).build(DAY.format(7)).status == "nothing_to_do"


@pytest.mark.parametrize(
    ("point", "occurrence"),
    [("write.taken", 1), *((f"write.{step}", n) for step in ("intent", "written", "decided", "done") for n in (1, 2))],
)
def test_a_restatement_that_was_killed_is_finished_by_the_next_command(point: str, occurrence: int):
    place = place_with(over_time(UPSERT))
    process(place).build(DAY.format(7))
    process(place).build(DAY.format(7), "dev", restate=("shop.orders",))
    place.catalog.sources["raw.orders"] = {"2024-01-02": "new", "2024-01-05": "other"}
    with pytest.raises(Killed):
        process(place, point, occurrence).build(DAY.format(7), "dev", restate=("shop.orders",))
    place.clock.advance(200)
    process(place).build(DAY.format(7), "dev")
    assert place.rows("shop.orders", "dev") == (("2024-01-02", "new"), ("2024-01-05", "other"))
    assert process(place).build(DAY.format(7), "dev").status == "nothing_to_do"


@pytest.mark.parametrize("point", ["write.taken", "write.intent", "write.written", "write.decided", "write.done"])
def test_readers_of_a_restated_table_see_the_old_rows_or_the_new_ones(point: str):
    place = place_with(over_time(AT_ONCE))
    process(place).build(DAY.format(7))
    before, after = place.rows("shop.orders"), (("2024-01-02", "new"), ("2024-01-05", "other"))
    place.catalog.sources["raw.orders"] = dict(after)
    with pytest.raises(Killed):
        process(place, point, 1).build(DAY.format(7), restate=("shop.orders",))
    assert place.rows("shop.orders") in {before, after}
    place.clock.advance(200)
    process(place).build(DAY.format(7))
    assert place.rows("shop.orders") == after


def test_a_restatement_of_several_runs_is_not_done_in_front_of_readers():
    place = place_with(over_time(UPSERT))
    process(place).build(DAY.format(7))
    before = place.rows("shop.orders")
    for request in ({"restate": ("shop.orders",)}, {"force": True}):
        with pytest.raises(NotYetSupported, match="3 runs") as caught:
            process(place).build(DAY.format(7), **request)
        assert "lamina build dev --restate shop.orders" in (caught.value.hint or "")
    assert place.rows("shop.orders") == before


def test_what_forbids_restatement_keeps_its_rows():
    place = place_with(whole(APPEND))
    process(place).build(DAY.format(5))
    report = process(place).build(DAY.format(6), restate=("shop.orders",))
    assert report.status == "nothing_to_do"
    assert [notice.code for notice in report.plan.warnings] == ["LAM-WARN-015"]
    assert process(place).build(DAY.format(6), force=True).status == "nothing_to_do"
    assert place.rows("shop.orders") == first_days(31)


@pytest.mark.parametrize("make", [over_time, whole])
def test_a_restatement_in_another_environment_leaves_prod_alone(make: Any):
    place = place_with(make(UPSERT))
    process(place).build(DAY.format(7))
    before = place.rows("shop.orders")
    place.catalog.sources["raw.orders"] = {"2024-01-02": "new"}
    assert process(place).build(DAY.format(7), "dev").results == {}
    assert place.rows("shop.orders", "dev") == before
    process(place).build(DAY.format(7), "dev", restate=("shop.orders",))
    assert place.rows("shop.orders") == before
    assert place.rows("shop.orders", "dev") == (("2024-01-02", "new"),)
    assert process(place).build(DAY.format(7), "dev").status == "nothing_to_do"


def test_what_covers_less_than_what_it_replaces_is_not_promoted():
    place = place_with(over_time(UPSERT))
    process(place).build(DAY.format(4))
    place.project.change(over_time(UPSERT, stamp="again"))
    process(place).build(DAY.format(4), "dev")
    process(place).run(DAY.format(6))
    application = process(place).application()
    with pytest.raises(PromotionRefused, match="lacks"):
        application.promote(PromoteRequest(source="dev", destination="prod", now=instant(DAY.format(6))))
    process(place).run(DAY.format(6), "dev")
    application.promote(PromoteRequest(source="dev", destination="prod", now=instant(DAY.format(6))))
    assert place.rows("shop.orders") == first_days(5)


def test_a_query_about_time_is_rendered_for_the_last_unit():
    place = place_with(over_time(UPSERT))
    rendered = process(place).application().render("shop.orders", start=None, end=None, now=instant("2024-01-04"))
    assert "BETWEEN '2024-01-03' AND '2024-01-03'" in rendered


def test_a_table_whose_time_has_not_come_is_made_without_rows_and_filled_when_it_has():
    place = place_with(over_time(APPEND))
    process(place).build("2023-12-30T12:00:00Z")
    assert place.rows("shop.orders") == ()
    process(place).run(DAY.format(3))
    assert place.rows("shop.orders") == first_days(2)


def test_rows_of_a_parent_that_changed_are_put_in_by_the_next_run():
    parent = whole(IncrementalByUniqueKey(unique_key=("ds",)))
    child = model("shop.copy", ["shop.orders"], kind=UPSERT, query="SELECT ds, x FROM shop.orders")
    place = Place(parent, child, sources={"raw.orders": {"2024-01-01": "a"}})
    process(place).build(DAY.format(5))
    place.catalog.sources["raw.orders"] = {"2024-01-02": "b"}
    assert statuses(process(place).run(DAY.format(6))) == {"shop.orders": "succeeded", "shop.copy": "succeeded"}
    assert place.rows("shop.copy") == (("2024-01-01", "a"), ("2024-01-02", "b"))


def test_a_query_that_reads_its_own_table_finds_it_empty_when_it_is_built_anew():
    query = "SELECT ds, x FROM shop.orders"
    made = model("shop.orders", ["raw.orders", "shop.orders"], kind=UPSERT, query=query, start="2024-01-01")
    place = place_with(made)
    read: list[str] = []

    def compute(node: str, interval: Interval | None, sql: str) -> Iterable[Row]:
        read.append(sql)
        return [("2024-01-01", "a")]

    process(place, compute=compute).build(DAY.format(3))
    process(place, compute=compute).run(DAY.format(4))
    process(place, compute=compute).build(DAY.format(4), restate=("shop.orders",))
    assert ["WHERE false" in sql for sql in read] == [True, False, True]


@pytest.mark.parametrize("make", [over_time, whole])
@pytest.mark.parametrize("point", ["engine.prepare", "write.taken", "write.written", "write.decided"])
def test_two_commands_at_once_append_once(make: Any, point: str):
    place = place_with(make(APPEND))
    first, sleep = sleeping(place, point, compute=between(place.catalog))
    running = Running(lambda: first.build(DAY.format(5)))
    assert sleep.begun.wait(20)
    if point == "engine.prepare":
        process(place).build(DAY.format(5))
        sleep.over.set()
    else:
        second = Running(lambda: process(place).build(DAY.format(5)))
        sleep.over.set()
        assert second.end().error is None
    assert running.end().error is None
    assert place.rows("shop.orders") == (first_days(4) if make is over_time else first_days(31))
