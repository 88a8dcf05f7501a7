"""Two commands at once on one state and one catalog: one waits or plans again, nothing is done twice."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from dataclasses import replace
from functools import partial

import pytest

from lamina.app.leases.keeper import LeaseKeeper
from lamina.app.ports.events import NodeFailed, NodeSkipped, Recovering, ViewsLeft, Waiting
from lamina.app.ports.loaded import Owner
from lamina.app.ports.machine import Standing
from lamina.app.report import Report
from lamina.errors import LeaseHeld, PlanOutdated, QueryFailed
from lamina.timeline.interval import Intervals
from tests.kit.app import A_DAY_AND_MORE, LEASE_TIME, Killed, Process, Running, Stops, orders, reading, shop, sleeping
from tests.kit.engine import Fault
from tests.kit.state import owner, unknown


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


@pytest.mark.parametrize("skew", [-125.0, 125.0])
def test_a_clock_that_is_two_minutes_off_neither_steals_a_lease_nor_keeps_it(skew):
    place = shop()
    first, sleep = sleeping(place, "write.written")
    one = Running(lambda: first.build("2024-01-04"))
    assert sleep.begun.wait(10)
    second = place.process(skew=skew)
    two = Running(lambda: second.build("2024-01-04"))
    while not second.event(Waiting):
        assert (two.error, two.report) == (None, None)
    assert not second.engine.writes
    place.clock.advance(LEASE_TIME)
    assert two.end().report.exit_code == 0
    assert second.engine.writes
    sleep.over.set()
    one.end()
    assert len(place.rows("shop.orders")) == 3


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
    assert not process.event(NodeFailed)
    assert not process.event(NodeSkipped)
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
    place.project.change(reading("shop.more", "shop.orders"))
    second = place.process()
    second.on_event = lambda event: sleep.over.set() if isinstance(event, Waiting) else None
    two = Running(lambda: second.build("2024-01-04", select=("shop.more",)))
    two.end()
    one.end()

    assert two.error is None
    assert (one.report.exit_code, two.report.exit_code) == (0, 0)
    assert all(event.what.startswith("version:") for event in second.event(Waiting)), "it waits as for a lease"
    assert second.event(Waiting)
    assert "2024-01-03=orders:x<a3>" in place.rows("shop.more")[0][1]


@pytest.mark.parametrize("point", ["write.decided", "write.published"])
def test_a_child_of_a_table_with_snapshots_reads_on_beside_a_long_batch(point):
    place = shop(table_format="delta")
    place.build("2024-01-03")
    place.project.change(reading("shop.more", "shop.orders"))
    first, sleep = sleeping(place, point)
    one = Running(lambda: first.run("2024-01-04"))
    assert sleep.begun.wait(10)
    second = place.process()
    report = second.build("2024-01-03", select=("shop.more",))
    sleep.over.set()
    one.end()

    assert (report.exit_code, one.report.exit_code) == (0, 0)
    assert not second.event(Waiting)
    assert "2024-01-02=orders:x<a2>" in place.rows("shop.more")[0][1]
    assert "2024-01-03" not in place.rows("shop.more")[0][1]
    place.build("2024-01-04")
    assert "2024-01-03=orders:x<a3>" in place.rows("shop.more")[0][1]


def test_patience_runs_out():
    place = shop()
    place.store.take("version:x", owner(), seconds=100000, fate_of=unknown)
    keeper = LeaseKeeper(
        place.store, place.clock, owner(), lambda _: place.clock.advance(50), place.processes, patience=40
    )
    with pytest.raises(LeaseHeld):
        keeper.take("version:x")
    keeper.close()


def test_a_process_that_is_provably_alone_takes_a_held_lease_at_once():
    place = shop()
    place.store.take("version:x", replace(owner(7), catalog="the lock"), seconds=100000, fate_of=unknown)
    standing = Standing(catalog="the lock")
    keeper = LeaseKeeper(place.store, place.clock, owner(), lambda _: None, place.processes, standing)
    grant = keeper.take("version:x")
    assert (grant.lease.token, grant.lost) == (2, ())
    assert keeper.is_live(grant.lease)
    place.clock.advance(LEASE_TIME)
    assert not keeper.is_live(grant.lease)
    keeper.close()


def test_the_lock_of_another_catalog_proves_nothing():
    """Two copies of a project, each with a catalog of its own, that share one state."""
    place = shop()
    place.store.take("version:x", replace(owner(7), catalog="the lock"), seconds=1000, fate_of=unknown)
    place.store.take("version:y", owner(7), seconds=1000, fate_of=unknown)
    standing = Standing(catalog="another lock")
    keeper = LeaseKeeper(place.store, place.clock, owner(), lambda _: None, place.processes, standing)
    for resource in ("version:x", "version:y"):
        with pytest.raises(LeaseHeld):
            keeper.take_now(resource)
    keeper.close()


# --- owners that are gone ---------------------------------------------------------------------------------------------
def known(number: int, *helpers: str) -> Owner:
    return replace(owner(number), processes=(f"desk {number}", *helpers))


def keeper_of(place, number: int, **standing) -> LeaseKeeper:
    standing = {"is_carried": False, **standing}
    return LeaseKeeper(place.store, place.clock, known(number), lambda _: None, place.processes, Standing(**standing))


def test_an_owner_that_is_proven_gone_is_succeeded_at_once_and_its_lease_closed_when_it_would_have_run_out():
    place = shop()
    first, second = keeper_of(place, 1, processes=(11,)), keeper_of(place, 2)
    first.take_now("version:x")
    with pytest.raises(LeaseHeld):
        second.take_now("version:x")
    place.processes.gone = {"desk 1"}
    (lost,) = second.take_now("version:x").lost
    assert not second.is_settled(lost), "its JVM may be in the middle of a statement"
    place.processes.gone = {"desk 1", "desk 11"}
    assert second.is_settled(lost)
    first.close()
    second.close()


def test_what_a_server_carries_out_may_land_after_its_owner_is_gone():
    place = shop()
    first, second = keeper_of(place, 1, is_carried=True), keeper_of(place, 2)
    first.take_now("version:x")
    place.processes.gone = {"desk 1"}
    (lost,) = second.take_now("version:x").lost
    assert not second.is_settled(lost)
    first.close()
    second.close()


def test_two_projects_that_are_open_in_one_process_do_not_take_each_other_for_dead():
    place = shop()
    first, second = keeper_of(place, 1, catalog="the lock"), keeper_of(place, 1, catalog="the lock")
    first.take_now("version:x")
    with pytest.raises(LeaseHeld):
        second.take_now("version:x")
    first.close()
    assert [lease.token for lease in second.take_now("version:x").lost] == [1]
    second.close()


def test_projects_may_be_opened_and_closed_while_another_one_of_the_process_asks_who_holds_a_lease():
    place = shop()
    first, second = keeper_of(place, 1), keeper_of(place, 1)
    first.take_now("version:x")
    others = [keeper_of(place, 1) for _ in range(300)]
    is_over, before = threading.Event(), sys.getswitchinterval()

    def open_and_close() -> None:
        while not is_over.is_set():
            keeper_of(place, 1).close()

    opening = threading.Thread(target=open_and_close)
    sys.setswitchinterval(1e-6)
    opening.start()
    try:
        for _ in range(5000):
            with pytest.raises(LeaseHeld):
                second.take_now("version:x")
    finally:
        is_over.set()
        opening.join()
        sys.setswitchinterval(before)
        for keeper in (first, second, *others):
            keeper.close()


def test_views_that_a_dead_command_left_behind_are_set_by_the_next_one_without_waiting():
    place = shop()
    dying = place.dying("promote.pointer")
    with pytest.raises(Killed):
        dying.build("2024-01-03")
    place.bury(dying)
    process = place.process()
    assert process.build("2024-01-03").status == "nothing_to_do"
    assert not process.event(Waiting)
    assert [event.resource for event in process.event(Recovering)] == ["prod"]
    assert len(place.rows("shop.orders")) == 2
    again = place.process()
    again.build("2024-01-03")
    assert not again.event(Recovering)


def test_views_that_another_command_is_about_to_set_are_waited_for():
    place = shop()
    first, sleep = sleeping(place, "promote.pointer")
    one = Running(lambda: first.build("2024-01-03"))
    assert sleep.begun.wait(10)
    second = place.process()
    two = Running(lambda: second.build("2024-01-03"))
    while not second.event(Waiting):
        assert (two.error, two.report) == (None, None)
    assert 0 < second.event(Waiting)[0].seconds <= 120
    sleep.over.set()
    one.end()
    assert two.end().report.status == "nothing_to_do"
    assert len(place.rows("shop.orders")) == 2
    assert not second.event(Recovering)
    assert place.unsettled().is_empty


@pytest.mark.parametrize("command", [Process.build, Process.run])
def test_views_of_another_environment_that_are_left_to_its_command_are_told_of(command):
    place = shop()
    place.build("2024-01-03")
    place.project.change(orders("y"))
    with pytest.raises(Killed):
        place.dying("promote.pointer").build("2024-01-03", "dev")
    place.project.change(orders("x"))
    place.clock.advance(20)
    process = place.process()
    report = command(process, "2024-01-03")
    assert report.status == "nothing_to_do"
    (left,) = process.event(ViewsLeft)
    assert (left.environment, left.seconds) == ("dev", 100)
    (notice,) = [each for each in report.notices if each.code == "LAM-WARN-020"]
    assert "`dev`" in notice.message
    assert "process 3 on desk" in notice.message
    assert "100 s" in notice.message
    place.clock.advance(LEASE_TIME)
    process = place.process()
    assert not command(process, "2024-01-03").notices
    assert not process.event(ViewsLeft)
    assert place.rows("shop.orders", "dev")[0][1] == "orders:y<a1>"


@pytest.mark.parametrize("is_carried", [True, False])
def test_a_lost_lease_is_told_of_only_when_something_is_set_right_and_closed_when_its_owner_is_gone(is_carried):
    place = shop()
    dying = place.dying("write.decided", is_carried=is_carried)
    with pytest.raises(Killed):
        dying.build("2024-01-03")
    place.bury(dying)
    second = place.process()
    assert second.build("2024-01-03").status == "succeeded"
    assert second.event(Recovering)
    assert [lease.status for lease in place.unsettled().leases] == ["lost"]
    assert not place.process().plan("2024-01-03").notices
    place.clock.advance(LEASE_TIME)
    third = place.process()
    assert third.build("2024-01-03").status == "nothing_to_do"
    assert not third.event(Recovering)
    assert place.unsettled().is_empty is not is_carried


def test_a_lost_lease_that_has_been_quiet_for_long_costs_a_command_without_work_nothing():
    place = shop()
    dying = place.dying("write.decided", is_carried=True)
    with pytest.raises(Killed):
        dying.build("2024-01-03")
    place.bury(dying)
    assert place.build("2024-01-03").status == "succeeded"
    shown = dict(place.catalog.versions)
    for seconds, is_looked_at in ((LEASE_TIME, True), (3600.0, False), (3600.0, False), (A_DAY_AND_MORE, True)):
        place.clock.advance(seconds)
        process = place.process()
        assert process.build("2024-01-03").status == "nothing_to_do"
        assert bool(process.engine.calls) is is_looked_at
    assert place.unsettled().is_empty
    process = place.process()
    assert process.build("2024-01-03").status == "nothing_to_do"
    assert not process.engine.calls
    assert place.catalog.versions == shown


def test_a_view_that_goes_back_under_a_quiet_lost_lease_is_set_right_by_the_next_command_with_work():
    place = shop()
    place.build("2024-01-03")
    before = dict(place.catalog.versions)
    place.catalog.sources["raw.orders"]["2024-01-02"] = "late"
    dying = place.dying("write.decided", is_carried=True)
    with pytest.raises(Killed):
        dying.build("2024-01-03", restate=("shop.orders",))
    place.bury(dying)
    place.build("2024-01-03")
    place.clock.advance(LEASE_TIME + 3600)
    place.catalog.versions.update(before)
    assert dict(place.rows("shop.orders"))["2024-01-02"] != "orders:x<late>"
    place.project.change(reading("shop.more", "raw.orders"))
    process = place.process()
    assert process.build("2024-01-03").status == "succeeded"
    assert dict(place.rows("shop.orders"))["2024-01-02"] == "orders:x<late>"
    assert process.event(Recovering)


def test_a_lost_lease_whose_owner_may_only_sleep_is_looked_at_by_every_command():
    place = shop()
    dying = place.dying("write.decided", is_carried=True)
    with pytest.raises(Killed):
        dying.build("2024-01-03")
    place.clock.advance(LEASE_TIME)
    assert place.build("2024-01-03").status == "succeeded"
    place.clock.advance(3600)
    process = place.process()
    assert process.build("2024-01-03").status == "nothing_to_do"
    assert process.engine.calls["published"]


def test_a_model_that_fails_beside_one_that_was_overtaken_has_both_told():
    place = shop()
    place.project.change(reading("shop.broken", "raw.orders"))
    process = place.process(faults=[Fault("write", "shop.broken", QueryFailed("broken"))])
    overtaking = Stops({("engine.analyse", 1): lambda: place.build("2024-01-05", select=("shop.orders",))})
    process.stops = overtaking
    report = process.build("2024-01-05")
    assert report.exit_code != 0
    assert {event.node for event in process.event(NodeFailed)} >= {"shop.broken"}
