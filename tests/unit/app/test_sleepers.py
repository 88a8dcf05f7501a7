"""Processes that stop, lose their lease to another command, and go on: they lose cleanly and nothing stays wrong."""

from __future__ import annotations

from functools import cache

import pytest

from lamina.app.ports.events import Waiting
from lamina.errors import LeaseHeld, LeaseLost, PlanOutdated
from tests.kit.app import A_DAY_AND_MORE, LEASE_TIME, Place, Process, Running, january, orders, reading, shop, sleeping
from tests.kit.histories import HISTORIES, Content, History, Readers, restate, uninterrupted, with_late_rows
from tests.kit.models import daily

# By how much a clock is off that shows local time for UTC, at most.
LOCAL_TIME = 14 * 3600.0
# Right before a statement of the catalog, when nothing can hold it back any more.
LATE_STATEMENTS = ("engine.publish", "engine.show", "engine.create_generation", "engine.write")


@cache
def gone_through(history: History) -> tuple[Content, Content, dict[str, int]]:
    return uninterrupted(history)


def points_of(history: History) -> list[tuple[str, int]]:
    """Every kill point, and every statement the first and the second time."""
    _, _, reached = gone_through(history)
    kept = {name: times for name, times in reached.items() if not name.startswith("engine.") or name in LATE_STATEMENTS}
    return [
        (name, occurrence)
        for name, times in kept.items()
        for occurrence in ((1, 2) if name in LATE_STATEMENTS else (1,))
        if occurrence <= times
    ]


def is_clean(ended: Running) -> bool:
    """Whether a command that was overtaken found nothing to do, did its part, or said that it was overtaken."""
    overtaken = (LeaseLost, LeaseHeld, PlanOutdated)
    if ended.report is None:
        return isinstance(ended.error, overtaken)
    errors = [result.error for result in ended.report.results.values() if result.error is not None]
    return all(isinstance(error, overtaken) for error in errors)


def check_healed(place: Place, expected: Content) -> None:
    assert place.catalog.everything() == expected
    assert not place.unsettled().attempts
    assert not place.unsettled().revisions
    place.clock.advance(A_DAY_AND_MORE)
    place.process().application()._settle("run", place.clock.now(), None)
    assert place.unsettled().is_empty
    assert place.catalog.everything() == expected


def overtake(history: History, point: str, occurrence: int) -> None:
    before, after, _ = gone_through(history)
    place = history.prepare()
    place.watch = Readers(place, before, after)
    process, sleep = sleeping(place, point, occurrence)
    sleeper = Running(lambda: history.command(process))
    assert sleep.begun.wait(10)
    place.clock.advance(LEASE_TIME)
    try:
        report = history.command(place.process())
        assert report.exit_code == 0
        assert place.catalog.everything() == after
    finally:
        sleep.over.set()
        sleeper.end()
    assert is_clean(sleeper), sleeper.error or sleeper.report
    assert place.catalog.everything() == after
    assert history.command(place.process()).exit_code == 0
    check_healed(place, after)


@pytest.mark.parametrize("history", [each for each in HISTORIES if each.name != "everything again"], ids=str)
def test_whoever_sleeps_past_the_lease_loses_cleanly(history):
    for point, occurrence in points_of(history):
        try:
            overtake(history, point, occurrence)
        except Exception as error:
            raise AssertionError(f"slept at `{point}`, time {occurrence}") from error


def newer_rows(place: Place) -> None:
    """The source changes twice more, and both times the days are computed again and shown."""
    for value in ("newer", "newest"):
        place.catalog.sources["raw.orders"] |= january(4, value)
        assert restate(place.process()).exit_code == 0


def test_an_older_publish_that_arrives_late_does_not_stay():
    """Two more publishes happen while a process sleeps: what it still issues is an older one, and it takes it back."""
    history = next(history for history in HISTORIES if history.command is restate)
    twin = with_late_rows()
    restate(twin.process())
    newer_rows(twin)
    expected = twin.catalog.everything()
    is_seen_older = []
    for point, occurrence in points_of(history):
        place = history.prepare()
        process, sleep = sleeping(place, point, occurrence)
        sleeper = Running(lambda process=process: restate(process))
        assert sleep.begun.wait(10)
        place.clock.advance(LEASE_TIME)
        newer_rows(place)
        assert place.catalog.everything() == expected
        looks: list[bool] = []
        place.watch = lambda place=place, looks=looks: looks.append(place.catalog.everything() == expected)
        sleep.over.set()
        assert is_clean(sleeper.end()), (point, sleeper.error or sleeper.report)
        is_seen_older.append(not all(looks))
        place.watch = lambda: None
        assert restate(place.process()).exit_code == 0
        check_healed(place, expected)
    assert any(is_seen_older)


def test_who_sees_by_its_own_clock_that_the_lease_has_run_out_publishes_nothing():
    for point, restated in (("write.decided", True), ("promote.pointer", False)):
        place = with_late_rows()
        if not restated:
            place.project.change(orders("y", kind={"batch_size": 2}))
        process, sleep = sleeping(place, point)
        sleeper = Running(
            lambda process=process, now=restated: restate(process) if now else process.build("2024-01-05")
        )
        assert sleep.begun.wait(10)
        place.clock.advance(LEASE_TIME)
        if not restated:
            place.project.change(orders("z", kind={"batch_size": 2}))
            place.build("2024-01-05")
        newer_rows(place)
        expected = place.catalog.everything()
        looks: list[bool] = []
        place.watch = lambda place=place, looks=looks, expected=expected: looks.append(
            place.catalog.everything() == expected
        )
        sleep.over.set()
        assert is_clean(sleeper.end())
        assert looks
        assert all(looks), point


def test_who_slept_past_its_lease_and_was_not_overtaken_finishes_what_it_decided():
    for point in ("write.decided", "engine.publish", "promote.pointer", "engine.show"):
        place = shop()
        process, sleep = sleeping(place, point)
        sleeper = Running(lambda process=process: process.build("2024-01-03"))
        assert sleep.begun.wait(10)
        place.clock.advance(LEASE_TIME)
        sleep.over.set()
        assert is_clean(sleeper.end())
        assert not place.unsettled().attempts
        assert not place.unsettled().revisions
        place.build("2024-01-03")
        assert len(place.rows("shop.orders")) == 2
        assert place.unsettled().is_empty


def dies_after(place: Place, point: str, occurrence: int, next_point: str) -> tuple[Process, Running]:
    """A process that sleeps past its lease, goes on with what it was about to do, and dies at its next step."""
    process, sleep = sleeping(place, point, occurrence)
    sleeper = Running(lambda: restate(process))
    assert sleep.begun.wait(10)
    place.clock.advance(LEASE_TIME)
    newer_rows(place)
    reached = process.stops.reached[next_point]
    process.stops._actions[next_point, reached + 1] = process.die
    sleep.over.set()
    sleeper.end()
    assert process.is_dead
    return process, sleeper


def test_an_older_publish_of_a_process_that_dies_in_that_instant_is_healed_by_the_next_command():
    place = with_late_rows()
    restate(place.process())
    newer_rows(place)
    expected = place.catalog.everything()
    for occurrence, next_point in ((1, "write.published"), (2, "write.published"), (1, "lose.refused")):
        place = with_late_rows()
        dies_after(place, "engine.publish", occurrence, next_point)
        place.build("2024-01-05")
        check_healed(place, expected)


@pytest.mark.parametrize("next_point", ["promote.between_views", "lose.refused", "lose.taken"])
def test_an_older_pointer_of_a_process_that_dies_in_that_instant_is_healed_by_the_next_command(next_point):
    place = shop()
    place.build("2024-01-03")
    place.project.change(orders("y"))
    process, sleep = sleeping(place, "engine.show", 1)
    sleeper = Running(lambda: process.build("2024-01-03"))
    assert sleep.begun.wait(10)
    place.clock.advance(LEASE_TIME)
    place.project.change(orders("z"))
    place.build("2024-01-03")
    expected = place.catalog.everything()
    process.stops._actions[next_point, process.stops.reached[next_point] + 1] = process.die
    sleep.over.set()
    sleeper.end()
    assert process.is_dead
    place.clock.advance(LEASE_TIME)
    place.run("2024-01-03")
    check_healed(place, expected)


@pytest.mark.parametrize("point", ["lose.taken", "recover.view_read", "recover.view_set", "recover.closing"])
def test_a_loser_that_dies_while_it_sets_things_right_is_followed_by_the_next_command(point):
    place = with_late_rows()
    restate(place.process())
    newer_rows(place)
    expected = place.catalog.everything()
    place = with_late_rows()
    dies_after(place, "engine.publish", 1, point)
    place.clock.advance(LEASE_TIME)
    place.build("2024-01-05")
    check_healed(place, expected)


def test_a_removed_view_that_a_sleeper_shows_again_goes_away():
    place = shop()
    place.build("2024-01-03")
    place.project.change(reading("shop.new", "raw.orders"))
    process, sleep = sleeping(place, "engine.show", 1)
    sleeper = Running(lambda: process.build("2024-01-03"))
    assert sleep.begun.wait(10)
    place.clock.advance(LEASE_TIME)
    place.build("2024-01-03")
    place.project.remove("shop.new")
    place.build("2024-01-03")
    assert "shop.new" not in place.catalog.environments
    sleep.over.set()
    assert is_clean(sleeper.end())
    assert "shop.new" not in place.catalog.environments


@pytest.mark.parametrize("slow", [0.0, -LOCAL_TIME])
@pytest.mark.parametrize("fast", [0.0, LOCAL_TIME])
def test_a_removed_view_that_is_shown_again_goes_away_where_machines_take_local_time_for_utc(slow, fast):
    place = shop()
    place.process(skew=slow).build("2024-01-03")
    place.project.change(reading("shop.new", "raw.orders"))
    process, sleep = sleeping(place, "engine.show", 1, skew=fast)
    sleeper = Running(lambda: process.build("2024-01-03"))
    assert sleep.begun.wait(10)
    place.clock.advance(LEASE_TIME)
    place.process(skew=slow).build("2024-01-03")
    place.project.remove("shop.new")
    place.process(skew=slow).build("2024-01-03")
    assert "shop.new" not in place.catalog.environments
    sleep.over.set()
    assert is_clean(sleeper.end())
    assert "shop.new" not in place.catalog.environments


@pytest.mark.parametrize("is_removed", [False, True])
def test_a_revision_whose_views_are_still_missing_is_made_up_for_by_the_next_one(is_removed):
    """Another command was at it, and then no more."""
    place = shop()
    place.build("2024-01-03")
    if is_removed:
        place.project.remove("shop.totals")
    else:
        place.project.change(orders("y"))
    process, sleep = sleeping(place, "promote.pointer")
    sleeper = Running(lambda: process.build("2024-01-03"))
    assert sleep.begun.wait(10)
    place.project.change(reading("shop.new", "raw.orders"))
    second = place.process()
    second.on_event = lambda event: place.clock.advance(LEASE_TIME) if isinstance(event, Waiting) else None
    assert second.build("2024-01-03").exit_code == 0
    assert "shop.new" in place.catalog.environments
    if is_removed:
        assert "shop.totals" not in place.catalog.environments
    else:
        assert place.rows("shop.orders")[0][1] == "orders:y<a1>"
    expected = place.catalog.everything()
    sleep.over.set()
    assert is_clean(sleeper.end())
    check_healed(place, expected)


def test_who_lost_while_another_holds_the_lease_leaves_it_to_the_next_command():
    place = Place(
        orders(),
        reading("shop.daily", "shop.orders", kind=daily(), partitioned_by=("ds",)),
        sources={"raw.orders": january(31)},
    )
    place.build("2024-01-05")
    place.catalog.sources["raw.orders"]["2024-01-02"] = "late"
    first, sleep = sleeping(place, "engine.publish", 1)
    sleeper = Running(lambda: first.build("2024-01-05", force=True))
    assert sleep.begun.wait(10)
    place.clock.advance(LEASE_TIME)
    second, other_sleep = sleeping(place, "write.written", 1)
    other = Running(lambda: second.build("2024-01-05", force=True))
    assert other_sleep.begun.wait(10)
    sleep.over.set()
    assert is_clean(sleeper.end())
    assert [lease.status for lease in place.unsettled().leases] == ["lost"]
    other_sleep.over.set()
    assert other.end().error is None
    place.build("2024-01-05")
    assert place.rows("shop.daily") == tuple((day, f"daily:x<{value}>") for day, value in place.rows("shop.orders"))
