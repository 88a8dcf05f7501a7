"""Two commands at once on one state and one catalog: one waits or plans again, nothing is done twice."""

from __future__ import annotations

import threading
from collections import Counter
from functools import partial

import pytest

from lamina.app.events import NodeFailed, Waiting
from lamina.app.leases import LeaseKeeper
from lamina.app.report import Report
from lamina.errors import LeaseHeld, PlanOutdated
from lamina.timeline.interval import Intervals
from tests.kit.app import LEASE_TIME, Process, Running, Stops, orders, reading, shop, sleeping
from tests.kit.state import owner


def units_written(*processes: Process) -> Counter:
    """How often each unit of orders was computed."""
    found: Counter = Counter()
    for process in processes:
        for node, interval in process.engine.writes:
            if node == "shop.orders":
                found.update(unit.to_pair()[0][:10] for unit in orders().grain.units(interval))
    return found


def assert_each_tells_what_it_did(commands: list[tuple[Report, Process]]) -> None:
    """Also when it had to plan again after a part of its work."""
    for report, process in commands:
        (node,) = [each for each in report.to_dict()["nodes"] if each["name"] == "shop.orders"]
        written = [interval for name, interval in process.engine.writes if name == "shop.orders"]
        told = node["intervals"] if node["status"] == "succeeded" else []
        assert Intervals.from_pairs(told) == Intervals.of(written)
        assert report.status == ("succeeded" if process.engine.writes or report.views else "nothing_to_do")
        assert (node["rows"] or 0) == len(units_written(process))


@pytest.mark.parametrize(
    "point", ["write.taken", "write.intent", "write.decided", "write.done", "write.released", "promote.pointer"]
)
def test_the_same_build_twice_computes_every_unit_once(point):
    place = shop(kind={"batch_size": 1})
    first, sleep = sleeping(place, point)
    one = Running(lambda: first.build("2024-01-04"))
    assert sleep.begun.wait(10)
    second = place.process()
    two = Running(lambda: second.build("2024-01-04"))
    threading.Timer(0.05, sleep.over.set).start()
    one.end()
    two.end()

    assert (one.error, two.error) == (None, None)
    assert units_written(first, second) == {f"2024-01-0{day}": 1 for day in (1, 2, 3)}
    assert_each_tells_what_it_did([(one.report, first), (two.report, second)])
    assert len(place.rows("shop.orders")) == 3
    assert place.unsettled().is_empty


def test_two_commands_that_start_together_end_together():
    for _ in range(2):
        place = shop(kind={"batch_size": 1})
        processes = [place.process(), place.process()]
        running = [Running(partial(process.build, "2024-01-06", concurrency=2)) for process in processes]
        for command in running:
            command.end()
            assert command.error is None
            assert command.report.exit_code == 0
        assert units_written(*processes) == {f"2024-01-0{day}": 1 for day in range(1, 6)}
        assert_each_tells_what_it_did([(run.report, process) for run, process in zip(running, processes, strict=True)])
        assert len(place.rows("shop.orders")) == 5
        assert place.unsettled().is_empty


def test_a_lease_held_by_a_living_command_is_waited_for_and_its_holder_named():
    place = shop()
    first, sleep = sleeping(place, "write.written")
    one = Running(lambda: first.build("2024-01-04"))
    assert sleep.begun.wait(10)
    second = place.process()
    two = Running(lambda: second.build("2024-01-04"))
    while not second.event(Waiting):
        assert two.error is None
    sleep.over.set()
    one.end()
    two.end()

    (waiting,) = second.event(Waiting)[:1]
    assert "process 1 on desk" in waiting.holder
    assert not second.engine.writes


def test_a_plan_that_was_overtaken_is_made_again():
    place = shop()
    first, sleep = sleeping(place, "child.parent_pinned")
    one = Running(lambda: first.build("2024-01-05"))
    assert sleep.begun.wait(10)
    place.clock.advance(LEASE_TIME)
    place.build("2024-01-04")
    sleep.over.set()
    one.end()

    assert one.report is not None
    place.clock.advance(LEASE_TIME)
    place.build("2024-01-05")
    assert len(place.rows("shop.orders")) == 4


def test_a_plan_whose_ground_moved_while_spark_started_is_made_again_before_anything_begins():
    place = shop()
    place.build("2024-01-03")
    process = place.process()
    process.stops = Stops({("engine.prepare", 1): lambda: place.build("2024-01-05")})
    report = process.build("2024-01-05")

    assert report.status == "nothing_to_do"
    assert not process.engine.writes
    assert not process.event(NodeFailed)
    assert [entry.status for entry in place.store.history()] == ["succeeded", "succeeded"]


def test_a_plan_whose_ground_moved_before_the_first_intent_is_made_again():
    place = shop()
    process = place.process()
    process.stops = Stops({("engine.analyse", 1): lambda: place.build("2024-01-05")})
    report = process.build("2024-01-05")

    assert report.status == "nothing_to_do"
    assert not process.engine.writes
    assert sorted(entry.status for entry in place.store.history()) == ["outdated", "succeeded"]


def test_a_plan_that_is_overtaken_every_time_says_so():
    place = shop(days=60)
    place.build("2024-01-03")
    days = iter(range(4, 20))
    process = place.process()
    reach = process.stops

    def overtake(name: str) -> None:
        if name == "engine.prepare":
            place.build(f"2024-01-{next(days):02}")
        reach(name)

    process.stops = overtake
    with pytest.raises(PlanOutdated):
        process.build("2024-01-31")


def test_a_restatement_is_refused_ground_that_moved():
    place = shop()
    place.build("2024-01-04")
    process = place.process()
    process.stops = Stops({("engine.prepare", 1): lambda: place.build("2024-01-05")})
    place.catalog.sources["raw.orders"]["2024-01-02"] = "late"
    report = process.build("2024-01-05", restate=("shop.orders",), start="2024-01-02", end="2024-01-02")

    assert report.status == "succeeded"
    assert dict(place.rows("shop.orders"))["2024-01-02"] == "orders:x<late>"


def test_an_environment_that_was_moved_meanwhile_is_planned_again():
    place = shop()
    place.build("2024-01-03")
    place.project.change(orders("y"))
    process = place.process()

    def other() -> None:
        place.project.change(reading("shop.new", "shop.orders"))
        place.build("2024-01-03", select=("shop.new", "shop.orders", "shop.totals"))

    process.stops = Stops({("promote.taken", 1): lambda: None, ("engine.analyse", 1): other})
    report = process.build("2024-01-03")
    assert report.exit_code == 0
    assert place.rows("shop.orders")[0][1] == "orders:y<a1>"
    assert "shop.new" in place.catalog.environments


def test_a_child_does_not_read_a_publish_that_is_not_carried_out_yet():
    place = shop()
    place.build("2024-01-03")
    first, sleep = sleeping(place, "write.decided")
    one = Running(lambda: first.run("2024-01-04"))
    assert sleep.begun.wait(10)
    second = place.process({("child.parent_pinned", 2): sleep.over.set})
    two = Running(lambda: second.build("2024-01-03", select=("shop.totals",)))
    two.end()
    one.end()

    assert two.error is None or isinstance(two.error, PlanOutdated)
    assert one.report.exit_code == 0
    place.build("2024-01-04")
    assert "2024-01-03=orders:x<a3>" in place.rows("shop.totals")[0][1]


def test_patience_runs_out():
    place = shop()
    place.store.take("version:x", owner(), now=place.clock.now(), seconds=100000, is_alone=False)
    keeper = LeaseKeeper(
        place.store, place.clock, owner(), lambda _: place.clock.advance(50), is_alone=False, patience=40
    )
    with pytest.raises(LeaseHeld):
        keeper.take("version:x")
    keeper.close()


def test_a_process_that_is_provably_alone_takes_a_held_lease_at_once():
    place = shop()
    place.store.take("version:x", owner(), now=place.clock.now(), seconds=100000, is_alone=False)
    keeper = LeaseKeeper(place.store, place.clock, owner(), lambda _: None, is_alone=True)
    grant = keeper.take("version:x")
    assert (grant.lease.token, grant.lost) == (2, ())
    assert keeper.is_live(grant.lease)
    place.clock.advance(LEASE_TIME)
    assert not keeper.is_live(grant.lease)
    keeper.close()
