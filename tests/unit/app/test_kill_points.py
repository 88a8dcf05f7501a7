"""Killed at every kill point: the next command finishes the work, and readers never see anything wrong."""

from __future__ import annotations

import re
import threading
from functools import cache
from pathlib import Path

import pytest

import lamina
from lamina.app.writing import layers
from lamina.errors import QueryFailed
from tests.kit.app import A_DAY_AND_MORE, LEASE_TIME, Killed, Place, Stops, january, orders, reading, shop
from tests.kit.engine import Fault
from tests.kit.histories import HISTORIES, Content, History, Readers, restate, uninterrupted
from tests.kit.models import daily

SOURCES = Path(lamina.__file__).parent
PROTOCOL = Path(__file__).parents[3] / "docs" / "concepts" / "write-protocol.md"
# Parts of the protocol that other formats, replays, dropped environments and the janitor bring.
LATER = {
    "promote.drop_pointer",
    "promote.drop_views",
}


def named_in_sources() -> set[str]:
    texts = (path.read_text(encoding="utf-8") for path in SOURCES.rglob("*.py"))
    return {name for text in texts for name in re.findall(r"reach\(\"([a-z_.]+)\"\)", text)}


def named_in_protocol() -> set[str]:
    section = PROTOCOL.read_text(encoding="utf-8").rpartition("## 9.")[2]
    return {name for name in re.findall(r"`([a-z]+\.[a-z_]+)`", section) if not name.startswith("janitor.")}


def test_the_code_has_every_kill_point_of_the_protocol_and_no_other():
    assert named_in_sources() == named_in_protocol() - LATER


@cache
def gone_through(history: History) -> tuple[Content, Content, dict[str, int]]:
    return uninterrupted(history)


def points_of(history: History) -> list[tuple[str, int]]:
    """The kill points a history goes through, the first and the second time."""
    _, _, reached = gone_through(history)
    own = {name: times for name, times in reached.items() if not name.startswith("engine.")}
    return [(name, occurrence) for name, times in own.items() for occurrence in (1, 2) if occurrence <= times]


def kill(place: Place, history: History, point: str, occurrence: int, **options) -> None:
    with pytest.raises(Killed):
        history.command(place.dying(point, occurrence, **options))


def check_settled(place: Place) -> None:
    """Lost leases stay until nothing can come from them any more; then any command closes them."""
    assert not place.unsettled().attempts
    assert not place.unsettled().revisions
    place.clock.advance(A_DAY_AND_MORE)
    place.process().application()._settle("run", place.clock.now(), None)
    assert place.unsettled().is_empty


def after_a_kill(history: History, point: str, occurrence: int, *, is_alone: bool) -> None:
    before, after, _ = gone_through(history)
    place = history.prepare()
    place.watch = readers = Readers(place, before, after)
    kill(place, history, point, occurrence, is_alone=is_alone)
    readers()
    if not is_alone:
        place.clock.advance(LEASE_TIME)
    report = history.command(place.process(is_alone=is_alone))
    assert report.exit_code == 0
    assert place.catalog.everything() == after
    assert readers.looks
    if is_alone:
        assert place.unsettled().is_empty
    else:
        check_settled(place)


@pytest.mark.parametrize("history", HISTORIES, ids=str)
def test_whatever_is_killed_another_command_finishes_once_the_lease_has_run_out(history):
    for point, occurrence in points_of(history):
        try:
            after_a_kill(history, point, occurrence, is_alone=False)
        except Exception as error:
            raise AssertionError(f"killed at `{point}`, time {occurrence}") from error


@pytest.mark.parametrize("history", HISTORIES, ids=str)
def test_whatever_is_killed_a_command_that_is_alone_finishes_at_once(history, monkeypatch):
    # Here tables are laid over former ones however small they are.
    monkeypatch.setattr(layers, "FEW", 1)
    for point, occurrence in points_of(history):
        # Who is alone does not wait for leases; in all else this is the test above.
        if occurrence == 1:
            try:
                after_a_kill(history, point, occurrence, is_alone=True)
            except Exception as error:
                raise AssertionError(f"killed at `{point}`") from error


def test_the_histories_go_through_every_kill_point_of_a_healthy_command():
    reached = {name for history in HISTORIES for name, _ in points_of(history)}
    healthy = {
        name for name in named_in_sources() if name.startswith(("write.", "promote.", "child.", "follow.", "audit."))
    }
    assert reached == healthy - {"write.recovered", "write.sister_decided"}


@pytest.mark.parametrize("history", HISTORIES, ids=str)
def test_an_uninterrupted_history_is_what_a_build_from_scratch_gives(history):
    _, after, _ = gone_through(history)
    place = history.prepare()
    history.command(place.process())
    fresh = Place(*place.project.models, sources=place.catalog.sources)
    fresh.build("2024-01-06" if history.name.startswith(("next day", "new audit")) else "2024-01-05")
    if history.name == "new environment":
        fresh.build("2024-01-05", "dev")
    assert fresh.catalog.everything() == after


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("restatement", "write.intent"),
        ("restatement", "write.decided"),
        ("restatement", "write.published"),
        ("restatement, delta", "write.decided"),
        ("restatement, iceberg", "write.decided"),
        ("next day, delta", "write.decided"),
        ("next day, delta", "write.published"),
        ("changed query", "write.decided"),
        ("changed query", "promote.pointer"),
    ],
)
def test_recovery_that_is_killed_itself_is_finished_by_the_next(first, name):
    history = next(history for history in HISTORIES if history.name == name)
    before, after, _ = gone_through(history)
    place = history.prepare()
    kill(place, history, first, 1)
    place.clock.advance(LEASE_TIME)
    process = place.process()
    history.command(process)
    recovering = [point for point in process.stops.reached if point.startswith("recover.")]
    assert recovering

    for point in recovering:
        place = history.prepare()
        place.watch = Readers(place, before, after)
        kill(place, history, first, 1)
        place.clock.advance(LEASE_TIME)
        kill(place, history, point, 1)
        place.clock.advance(LEASE_TIME)
        assert history.command(place.process()).exit_code == 0
        assert place.catalog.everything() == after, f"killed at `{first}`, then at `{point}`"
        check_settled(place)


def test_a_kill_while_recovering_in_the_middle_of_a_build_loses_nothing():
    """A version that is found unfinished only when its lease is taken, because it was held at the start check."""
    for point in ("recover.aborted", "recover.closing", "write.recovered"):
        place = shop()
        place.build("2024-01-03")
        process = place.process()

        def meanwhile(place: Place = place) -> None:
            with pytest.raises(Killed):
                place.dying("write.intent").build("2024-01-04")
            place.clock.advance(LEASE_TIME)

        process.stops = Stops({("engine.prepare", 1): meanwhile, (point, 1): process.die})
        with pytest.raises(Killed):
            process.build("2024-01-04")
        assert process.is_dead
        place.clock.advance(LEASE_TIME)
        place.build("2024-01-04")
        assert len(place.rows("shop.orders")) == 3
        check_settled(place)


def overlapping() -> tuple[dict, threading.Event]:
    """The first batch waits, once it is written, until a sibling batch is done."""
    is_done = threading.Event()

    def wait() -> None:
        assert is_done.wait(10)

    return {("write.written", 1): wait, ("write.done", 1): is_done.set}, is_done


def test_sister_batches_both_arrive_whoever_is_first():
    place = shop(kind={"batch_size": 1})
    actions, _ = overlapping()
    process = place.process(actions)
    assert process.build("2024-01-03", concurrency=2).status == "succeeded"
    assert process.stops.reached["write.sister_decided"]
    assert place.rows("shop.orders") == (("2024-01-01", "orders:x<a1>"), ("2024-01-02", "orders:x<a2>"))


def test_batches_that_may_share_a_partition_are_done_one_after_the_other():
    place = shop(kind={"batch_size": 1}, partitioned_by=("month",))
    process = place.process()
    assert process.build("2024-01-03", concurrency=2).exit_code == 0
    assert process.stops.reached["write.sister_decided"] == 0
    started = [type(event).__name__ for event in process.events if type(event).__name__.startswith("Batch")]
    assert started[:4] == ["BatchStarted", "BatchFinished"] * 2
    assert place.rows("shop.orders") == (("2024-01-01", "orders:x<a1>"), ("2024-01-02", "orders:x<a2>"))


def test_sister_batches_that_turn_out_to_share_a_partition_are_done_one_after_the_other():
    place = shop(kind={"batch_size": 1}, partitioned_by=("days(ds)",))
    actions, _ = overlapping()
    process = place.process(actions)
    assert process.build("2024-01-03", concurrency=2).exit_code == 0
    assert process.stops.reached["write.sister_decided"]
    assert place.rows("shop.orders") == (("2024-01-01", "orders:x<a1>"), ("2024-01-02", "orders:x<a2>"))


@pytest.mark.parametrize("restated", [False, True])
def test_a_kill_between_sister_batches_loses_neither(restated):
    for point in ("write.sister_decided", "write.decide", "write.decided", "write.published", "write.done"):
        place = shop(kind={"batch_size": 1})
        if restated:
            place.build("2024-01-03")
            place.catalog.sources["raw.orders"] |= january(2, "late")
        options = {"restate": ("shop.orders",)} if restated else {}
        actions, _ = overlapping()
        process = place.process()
        # At a point that its sibling has passed before, the one that waited is killed the second time.
        occurrence = 1 if point == "write.sister_decided" else 2
        process.stops = Stops({**actions, (point, occurrence): process.die})
        with pytest.raises(Killed):
            process.build("2024-01-03", concurrency=2, **options)
        place.clock.advance(LEASE_TIME)
        place.build("2024-01-03", **options)
        value = "late" if restated else "a"
        assert place.rows("shop.orders") == tuple(
            (day, f"orders:x<{text}>") for day, text in january(2, value).items()
        ), point
        check_settled(place)


def test_a_restatement_that_was_killed_is_finished_by_a_plain_build():
    """Once it has begun, everything it would have computed again is known to be missing, also in models below it."""
    history = next(history for history in HISTORIES if history.command is restate)
    _, after, _ = gone_through(history)
    for point, occurrence in points_of(history):
        place = history.prepare()
        kill(place, history, point, occurrence)
        place.clock.advance(LEASE_TIME)
        place.build("2024-01-05")
        assert place.catalog.everything() == after, f"killed at `{point}`, time {occurrence}"


def test_a_removed_models_view_goes_even_when_the_command_is_killed_before_that():
    for point in ("promote.pointer", "promote.between_views", "promote.views"):
        place = shop()
        place.build("2024-01-03")
        place.project.remove("shop.totals")
        with pytest.raises(Killed):
            place.dying(point).build("2024-01-03")
        place.clock.advance(LEASE_TIME)
        place.run("2024-01-03")
        assert sorted(place.catalog.environments) == ["shop.orders"]


@pytest.mark.parametrize("point", ["promote.pointer", "promote.between_views", "promote.views"])
def test_a_view_goes_though_its_model_was_only_ever_part_of_an_environment_that_was_not_complete(point):
    place = shop()
    place.build("2024-01-03")
    place.project.change(reading("shop.extra", "shop.orders"))
    place.project.change(reading("shop.broken", "shop.orders"))
    failing = place.process()
    failing.engine.faults = [Fault("write", QueryFailed("it broke"), "shop.broken", times=9)]
    assert failing.build("2024-01-03").exit_code == 1
    assert "shop.extra" in place.catalog.environments
    place.project.remove("shop.extra")
    place.project.remove("shop.broken")
    with pytest.raises(Killed):
        place.dying(point).build("2024-01-03")
    place.clock.advance(LEASE_TIME)
    place.run("2024-01-03")
    assert sorted(place.catalog.environments) == ["shop.orders", "shop.totals"]


def test_a_command_without_work_still_recovers():
    place = shop()
    with pytest.raises(Killed):
        place.dying("promote.pointer").build("2024-01-03")
    place.clock.advance(LEASE_TIME)
    process = place.process()
    assert process.build("2024-01-03").status == "nothing_to_do"
    assert len(place.rows("shop.orders")) == 2


def test_plan_only_says_that_something_is_unfinished():
    place = shop()
    with pytest.raises(Killed):
        place.dying("write.decided").build("2024-01-03")
    process = place.process()
    report = process.plan("2024-01-03")
    assert [notice.code for notice in report.notices] == ["LAM-WARN-020"]
    assert not process.engine.calls


def test_models_below_a_killed_model_are_built_with_it():
    place = Place(
        orders(),
        reading("shop.daily", "shop.orders", kind=daily(), partitioned_by=("ds",)),
        sources={"raw.orders": january(31)},
    )
    for point in ("write.intent", "write.decided", "write.done"):
        for occurrence in (1, 2):
            place.catalog.sources["raw.orders"]["2024-01-02"] = f"{point} {occurrence}"
            with pytest.raises(Killed):
                place.dying(point, occurrence).build("2024-01-05", force=True)
            place.clock.advance(LEASE_TIME)
    place.build("2024-01-05")
    assert place.rows("shop.daily") == tuple((day, f"daily:x<{value}>") for day, value in place.rows("shop.orders"))
