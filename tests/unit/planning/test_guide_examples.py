"""The worked examples of the two guides to time ranges and of the page on kinds, with their numbers.

In all of them today is the third of May 2024 and it is noon, unless an example gives dates of its own.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from lamina.graph.names import Naming
from lamina.planning.inputs import Flags
from lamina.planning.missing import missing_intervals, released_until, schedule_of
from lamina.planning.plan import make_plan
from lamina.reading.drafts import Surroundings
from lamina.reading.model_files import read_sql_model
from lamina.reading.resolve import resolve
from lamina.sql.header.document import read_document
from lamina.timeline.grain import Grain
from lamina.timeline.interval import EMPTY, Interval, Intervals
from lamina.timeline.macro_times import time_values
from lamina.timeline.units import Units
from tests.kit.app import Place, orders, reading
from tests.kit.models import World, daily, instant, model, ranges

TWO_DAYS_AGO, YESTERDAY, TODAY, TOMORROW = "2024-05-01", "2024-05-02", "2024-05-03", "2024-05-04"
NOON, NOON_TOMORROW = "2024-05-03T12:00:00Z", "2024-05-04T12:00:00Z"
EXAMPLES = Path(__file__).parents[2] / "fixtures" / "seed_examples"


def events(unit: Grain = Grain.HOUR, start: str = TWO_DAYS_AGO, **settings):
    """A model that reads one table by time; its schedule ticks once in each unit."""
    cron = {Grain.HOUR: "@hourly", Grain.DAY: "@daily"}[unit]
    settings = {"cron": cron, "grain": unit, **settings}
    return model("shop.events", ["raw.events"], kind=daily(**settings.pop("kind", {})), start=start, **settings)


def step_of(plan, name: str = "shop.events"):
    return next(step for step in plan.steps if step.node == name)


def planned(world: World, now: str, **options):
    """The step of the model, which is also carried out."""
    plan = make_plan(world.inputs(now, **options))
    world.carry_out(plan)
    return step_of(plan)


def count(intervals: Intervals, unit: Grain = Grain.HOUR) -> int:
    return sum(unit.count(interval) for interval in intervals)


# --- counting time ----------------------------------------------------------------------------------------------------
def test_a_day_as_unit_gives_three_intervals_of_which_today_is_not_complete():
    everything = Interval(instant(TWO_DAYS_AGO), Grain.DAY.ceil(instant(NOON)))
    assert [start.date().isoformat() for start, _ in Units(Grain.DAY, everything)] == [TWO_DAYS_AGO, YESTERDAY, TODAY]
    step = planned(World(events(Grain.DAY)), NOON)
    assert step.intervals == ranges((TWO_DAYS_AGO, TODAY))
    assert count(step.intervals, Grain.DAY) == 2


def test_an_hour_as_unit_gives_sixty_intervals_all_complete_at_noon():
    step = planned(World(events()), NOON)
    assert step.intervals == ranges((TWO_DAYS_AGO, NOON))
    assert count(step.intervals) == 60
    by_day = Counter(start.date().isoformat() for start, _ in Units(Grain.HOUR, step.intervals.span()))
    assert by_day == {TWO_DAYS_AGO: 24, YESTERDAY: 24, TODAY: 12}


def test_tomorrow_eighty_four_intervals_less_the_sixty_recorded_leave_twenty_four():
    world = World(events())
    planned(world, NOON)
    assert count(world.covered("shop.events")) == 60
    everything = Interval(instant(TWO_DAYS_AGO), released_until(events(), instant(NOON_TOMORROW), respects_cron=True))
    assert count(Intervals.of([everything])) == 84
    assert count(missing_intervals(events(), everything, world.covered("shop.events"))) == 24

    step = planned(world, NOON_TOMORROW, command="run")
    assert step.intervals == ranges((NOON, NOON_TOMORROW))
    assert count(step.intervals) == 24
    assert count(world.covered("shop.events")) == 84


def test_a_start_of_yesterday_gives_thirty_six_intervals_and_sixty_a_day_later():
    world = World(events(start=YESTERDAY))
    first = planned(world, NOON)
    assert first.intervals == ranges((YESTERDAY, NOON))
    assert count(first.intervals) == 24 + 12 == 36

    second = planned(world, NOON_TOMORROW, command="run")
    assert second.intervals == ranges((NOON, NOON_TOMORROW))
    assert count(second.intervals) == 24
    assert count(world.covered("shop.events")) == 24 + 24 + 12 == 60


def test_every_interval_is_recorded_once_it_was_processed():
    world = World(events(start=YESTERDAY))
    planned(world, NOON)
    for command in ("plan", "build", "run"):
        assert not make_plan(world.inputs(NOON, command=command)).has_work


def test_another_end_leaves_a_gap_and_the_next_run_that_includes_it_fills_it():
    world = World(events(start=YESTERDAY))
    planned(world, NOON, flags=Flags(end=YESTERDAY))
    assert count(world.covered("shop.events")) == 24
    planned(world, NOON_TOMORROW, command="run", flags=Flags(start=TOMORROW))
    assert count(world.covered("shop.events")) == 24 + 12
    # A run about other days leaves the gap where it is.
    assert step_of(make_plan(world.inputs(NOON_TOMORROW, command="run", flags=Flags(start=TOMORROW)))).action == "skip"

    step = planned(world, NOON_TOMORROW, command="run")
    assert step.intervals == ranges((TODAY, TOMORROW))
    assert count(step.intervals) == 24
    assert count(world.covered("shop.events")) == 60


def test_time_does_not_begin_with_the_first_row():
    """The table need not exist, hours without a row count like any other, and one pass is not needed."""
    place = Place(
        orders(grain=Grain.HOUR, cron="@hourly", start=YESTERDAY, kind={"batch_size": 12}),
        sources={"raw.orders": {f"{TODAY}T03:00:00Z": "the only row"}},
    )
    process = place.process()
    assert process.build(NOON).status == "succeeded"
    assert len(process.engine.writes) == 3
    assert count(place.covered("shop.orders")) == 36


# --- run --------------------------------------------------------------------------------------------------------------
def test_at_noon_a_daily_schedule_has_released_yesterday_and_an_hourly_one_the_hour_before():
    assert released_until(events(Grain.DAY), instant(NOON), respects_cron=True) == instant(TODAY)
    assert released_until(events(), instant(NOON), respects_cron=True) == instant(NOON)
    # Hours that are released once a day: at noon those of this morning are over, and wait for midnight.
    hours_by_day = events(cron="@daily")
    assert released_until(hours_by_day, instant(NOON), respects_cron=True) == instant(TODAY)
    assert released_until(hours_by_day, instant(NOON), respects_cron=False) == instant(NOON)


def test_when_run_is_called_every_hour_the_hourly_model_runs_each_time_and_the_daily_one_once():
    by_day = model("shop.by_day", ["raw.events"], kind=daily(), start=TWO_DAYS_AGO)
    world = World(events(), by_day)
    planned(world, NOON)
    times: Counter[str] = Counter()
    for hour in range(13, 13 + 24):
        now = instant(TODAY).plus(hour * 3_600_000_000).isoformat()
        plan = make_plan(world.inputs(now, command="run"))
        world.carry_out(plan)
        for step in plan.steps:
            times[step.node] += step.has_work
            if step.node == "shop.events":
                assert count(step.intervals) == 1
    assert times == {"shop.events": 24, "shop.by_day": 1}
    assert world.covered("shop.by_day") == ranges((TWO_DAYS_AGO, TOMORROW))


def test_a_day_is_due_when_twenty_four_hours_have_passed_and_not_before():
    world = World(events(Grain.DAY))
    planned(world, NOON)
    assert not make_plan(world.inputs("2024-05-03T23:59:59Z", command="run")).has_work
    assert planned(world, TOMORROW, command="run").intervals == ranges((TODAY, TOMORROW))


def test_run_can_ignore_schedules_and_still_processes_only_whole_units():
    world = World(events(cron="@daily"))
    planned(world, TODAY)
    assert not make_plan(world.inputs(NOON, command="run")).has_work
    assert schedule_of(events(cron="@daily")).next_tick(instant(NOON)) == instant(TOMORROW)

    step = planned(world, "2024-05-03T12:30:00Z", command="run", flags=Flags(ignore_cron=True))
    assert step.intervals == ranges((TODAY, NOON))
    assert count(step.intervals) == 12


def test_by_default_everything_that_elapsed_is_one_job():
    world = World(events())
    assert len(planned(world, NOON).batches) == 1
    assert len(planned(world, NOON_TOMORROW, command="run").batches) == 1


@pytest.mark.parametrize(("size", "sizes"), [(1, [1] * 60), (12, [12] * 5), (24, [24, 24, 12]), (100, [60])])
def test_sixty_intervals_are_divided_into_jobs_of_the_batch_size(size, sizes):
    batches = planned(World(events(kind={"batch_size": size})), NOON).batches
    assert [Grain.HOUR.count(batch.interval) for batch in batches] == sizes


def test_a_gap_parts_two_jobs():
    world = World(events(start=YESTERDAY))
    planned(world, NOON)
    place, facts = next(iter(world.facts.items()))
    world.facts[place] = replace(facts, covered=facts.covered.minus(ranges((YESTERDAY, "2024-05-02T06:00:00Z"))))
    step = planned(world, NOON_TOMORROW, command="run")
    assert [Grain.HOUR.count(batch.interval) for batch in step.batches] == [6, 24]


# --- the page on kinds ------------------------------------------------------------------------------------------------
def demo(**kind):
    """Daily at midnight from 25 October 2024 on; late rows are looked for on the two days before."""
    settings = {"kind": daily(lookback=2, **kind), "start": "2024-10-25"}
    return model("demo.incrementals_demo", ["raw.sales"], **settings)


def test_the_first_plan_covers_the_days_from_the_start_to_yesterday():
    step = step_of(make_plan(World(demo()).inputs("2024-11-05T09:00:00Z")), "demo.incrementals_demo")
    assert step.intervals == ranges(("2024-10-25", "2024-11-05"))
    assert count(step.intervals, Grain.DAY) == 11
    values = time_values(step.batches[0].interval, instant("2024-11-05"))
    assert values["start_dt"].value == "2024-10-25 00:00:00+00:00"
    assert values["end_dt"].value == "2024-11-04 23:59:59.999999+00:00"
    assert (values["start_ds"].value, values["end_ds"].value) == ("2024-10-25", "2024-11-04")


def test_with_a_lookback_of_two_each_run_processes_the_new_day_and_the_two_before():
    world = World(demo())
    world.carry_out(make_plan(world.inputs("2024-11-05")))
    times: Counter[str] = Counter()
    for day in range(6, 16):
        plan = make_plan(world.inputs(f"2024-11-{day:02}", command="run"))
        world.carry_out(plan)
        step = step_of(plan, "demo.incrementals_demo")
        assert step.intervals == ranges((f"2024-11-{day - 3:02}", f"2024-11-{day:02}"))
        times.update(start.date().isoformat() for start, _ in Units(Grain.DAY, step.intervals.span()))
    # Once as the new day, once as yesterday, once as the day before; the last two have runs to come.
    assert [times[f"2024-11-{day:02}"] for day in range(5, 15)] == [3] * 8 + [2, 1]


def test_lookback_is_counted_in_units_of_the_schedule():
    world = World(events(kind={"lookback": 2}))
    planned(world, NOON)
    step = planned(world, "2024-05-03T13:00:00Z", command="run")
    assert step.intervals == ranges(("2024-05-03T10:00:00Z", "2024-05-03T13:00:00Z"))


def test_filling_an_old_gap_looks_back_from_there_and_leaves_recent_days_alone():
    world = World(demo())
    world.carry_out(make_plan(world.inputs("2024-11-15")))
    place, facts = next(iter(world.facts.items()))
    world.facts[place] = replace(facts, covered=facts.covered.minus(ranges(("2024-11-01", "2024-11-02"))))
    step = step_of(make_plan(world.inputs("2024-11-15")), "demo.incrementals_demo")
    assert step.intervals == ranges(("2024-10-30", "2024-11-02"))


def test_the_usage_of_thirty_days_before_is_part_of_what_the_walkthrough_reads():
    """Both inputs are tables of others in the page; as models with a time they say how far they are read."""

    def read(text: str):
        (draft,) = read_sql_model(read_document(text, "m.sql"), "m", Surroundings())
        return draft

    sales, usage = (
        f"MODEL (name raw.{name}, kind INCREMENTAL_BY_TIME_RANGE (time_column {time}), start '2024-09-01'); "
        f"SELECT CAST({time} AS TIMESTAMP) AS {time}, * FROM landing.{name} "
        f"WHERE {time} BETWEEN @start_dt AND @end_dt"
        for name, time in (("sales", "transaction_timestamp"), ("product_usage", "last_usage_date"))
    )
    example = (EXAMPLES / "time_range_walkthrough.sql").read_text(encoding="utf-8")
    walkthrough = example.replace("sqlmesh-public-demo.tcloud_raw_data", "raw")
    found = resolve([read(sales), read(usage), read(walkthrough)], (), Naming(schema="demo"))
    world = World()
    world.graph = found
    step = step_of(make_plan(world.inputs("2024-11-05")), "demo.incrementals_demo")
    assert [(window.name, window.start, window.end) for window in step.reads] == [
        ("raw.product_usage", instant("2024-09-25"), instant("2024-11-05")),
        ("raw.sales", instant("2024-10-25"), instant("2024-11-05")),
    ]
    assert step.waiting == EMPTY
    assert step.intervals == ranges(("2024-10-25", "2024-11-05"))


def test_the_placeholder_day_of_validation_reaches_back_to_the_second_of_december_1969():
    values = time_values(Interval(instant("1970-01-01"), instant("1970-01-02")), instant("2024-11-05"))
    assert (values["start_dt"].value, values["end_dt"].value) == (
        "1970-01-01 00:00:00+00:00",
        "1970-01-01 23:59:59.999999+00:00",
    )
    assert Grain.DAY.add(instant("1970-01-01"), -30) == instant("1969-12-02")


# --- partial units ----------------------------------------------------------------------------------------------------
def test_a_partial_day_is_processed_at_noon_and_again_until_it_is_over():
    world = World(events(Grain.DAY, allow_partials=True))
    first = planned(world, NOON)
    assert first.intervals == ranges((TWO_DAYS_AGO, NOON))
    assert len(Units(Grain.DAY, first.intervals.span())) == 3

    again = planned(world, "2024-05-03T18:00:00Z", command="build")
    assert again.intervals == ranges((TODAY, "2024-05-03T18:00:00Z"))
    # A schedule that ticks at midnight has nothing new at six in the evening; one that ticks every hour has.
    assert not make_plan(world.inputs("2024-05-03T18:00:00Z", command="run")).has_work
    world.change(events(Grain.DAY, allow_partials=True, cron="@hourly"))
    assert planned(world, "2024-05-03T19:30:00Z", command="run").intervals == ranges((TODAY, "2024-05-03T19:00:00Z"))

    last = planned(world, "2024-05-04T00:00:00Z", command="run")
    assert last.intervals == ranges((TODAY, TOMORROW))
    assert not make_plan(world.inputs("2024-05-04T00:00:00Z", command="run")).has_work


# --- starts and ends --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("start", "end", "covered"),
    [
        ("3 days ago", None, ("2024-04-30", "2024-05-03")),
        ("1 week ago", None, ("2024-04-26", "2024-05-03")),
        ("1 week ago", "yesterday", ("2024-04-26", "2024-05-03")),
        ("1 week ago", "3 days ago", ("2024-04-26", "2024-05-01")),
        ("yesterday", None, ("2024-05-02", "2024-05-03")),
        ("2024-05-01", "2024-05-01", ("2024-05-01", "2024-05-02")),
        ("2024-05-01", "2024-05-02 00:00:00", ("2024-05-01", "2024-05-02")),
        ("2024-05-01", "2024-05-02T18:00:00Z", ("2024-05-01", "2024-05-02")),
        ("20240501", "20240502", ("2024-05-01", "2024-05-03")),
        ("2024-05-01T06:00:00Z", None, ("2024-05-01", "2024-05-03")),
    ],
)
def test_a_model_starts_and_ends_when_it_says_with_dates_included_and_moments_not(start, end, covered):
    assert planned(World(events(Grain.DAY, start=start, end=end)), NOON).intervals == ranges(covered)


def test_a_relative_start_moves_on_and_what_was_built_before_stays():
    world = World(events(Grain.DAY, start="3 days ago"))
    assert planned(world, TODAY).intervals == ranges(("2024-04-30", TODAY))
    assert planned(world, "2024-05-06", command="run").intervals == ranges((TODAY, "2024-05-06"))
    assert world.covered("shop.events") == ranges(("2024-04-30", "2024-05-06"))
    # A pause longer than the start reaches back leaves a gap that is not asked for.
    assert planned(world, "2024-05-20", command="run").intervals == ranges(("2024-05-17", "2024-05-20"))
    assert not make_plan(world.inputs("2024-05-20")).has_work


def test_without_a_start_a_model_begins_with_the_earliest_of_its_parents():
    world = World(
        model("shop.a", ["raw.a"], kind=daily(), start="1 week ago"),
        model("shop.b", ["raw.b"], kind=daily(), start="yesterday"),
        model("shop.c", ["shop.a", "shop.b"], kind=daily()),
        model("shop.d", ["shop.c"], kind=daily()),
    )
    plan = make_plan(world.inputs(NOON))
    assert step_of(plan, "shop.c").intervals == step_of(plan, "shop.d").intervals == ranges(("2024-04-26", TODAY))


def test_without_any_start_there_is_the_projects_and_else_one_unit():
    alone = World(model("shop.events", ["raw.events"], kind=daily()))
    assert step_of(make_plan(alone.inputs(NOON))).intervals == ranges((YESTERDAY, TODAY))
    by_default = replace(alone.inputs(NOON), default_start="3 days ago")
    assert step_of(make_plan(by_default)).intervals == ranges(("2024-04-30", TODAY))


@pytest.mark.parametrize(
    ("flags", "covered"),
    [
        (Flags(start="1 week ago"), ("2024-04-26", "2024-05-03")),
        (Flags(start="1 week ago", end="3 days ago"), ("2024-04-26", "2024-05-01")),
        (Flags(start="3 days ago", end="yesterday"), ("2024-04-30", "2024-05-03")),
        (Flags(end="2024-04-02"), ("2024-04-01", "2024-04-03")),
        (Flags(end="2024-04-02 00:00:00"), ("2024-04-01", "2024-04-02")),
        (Flags(start="2024-01-01", end="2024-04-01"), ("2024-04-01", "2024-04-02")),
        (Flags(start="yesterday", end="2030-01-01"), ("2024-05-02", "2024-05-03")),
    ],
)
def test_a_build_of_dev_covers_the_part_that_was_asked_for(flags, covered):
    world = World(events(Grain.DAY, start="2024-04-01"))
    plan = make_plan(world.inputs(NOON, environment="dev", flags=flags))
    assert step_of(plan).intervals == ranges(covered)
    world.carry_out(plan)
    left = step_of(make_plan(world.inputs(NOON, environment="dev")))
    assert left.intervals == ranges(("2024-04-01", TODAY)).minus(ranges(covered))


# --- parents and children of different schedules ----------------------------------------------------------------------
def test_an_hourly_child_of_a_daily_parent_waits_for_the_day():
    child = model("shop.by_hour", ["shop.events"], kind=daily(), cron="@hourly", grain=Grain.HOUR)
    world = World(events(Grain.DAY), child)
    first = step_of(make_plan(world.inputs(NOON)), "shop.by_hour")
    assert count(first.intervals) == 48
    assert count(first.waiting) == 12
    assert [(waiting.name, waiting.interval.start) for waiting in first.waiting_for] == [
        ("shop.events", instant(TODAY))
    ]
    planned(world, NOON)
    after_midnight = step_of(make_plan(world.inputs("2024-05-04T00:30:00Z", command="run")), "shop.by_hour")
    assert count(after_midnight.intervals) == 24


def test_a_daily_child_of_an_hourly_parent_is_processed_once_all_twenty_four_hours_are_there():
    child = model("shop.by_day", ["shop.events"], kind=daily())
    world = World(events(), child)
    planned(world, NOON)
    assert world.covered("shop.by_day") == ranges((TWO_DAYS_AGO, TODAY))
    place, facts = next((place, facts) for place, facts in world.facts.items() if facts.node == "shop.events")
    world.facts[place] = replace(facts, covered=facts.covered.union(ranges((NOON, "2024-05-03T23:00:00Z"))))
    late = Flags(select=("shop.by_day",))
    waiting = step_of(make_plan(world.inputs(TOMORROW, command="run", flags=late)), "shop.by_day")
    assert (waiting.action, count(waiting.waiting, Grain.DAY)) == ("wait", 1)
    assert waiting.waiting_for[0].interval.to_pair() == ("2024-05-03T23:00:00Z", "2024-05-04T00:00:00Z")
    plan = make_plan(world.inputs(TOMORROW, command="run"))
    assert step_of(plan, "shop.by_day").intervals == ranges((TODAY, TOMORROW))


def test_a_weekly_child_takes_the_seven_days_since_its_last_tick():
    child = model("shop.by_week", ["shop.events"], kind=daily(), cron="@weekly")
    world = World(events(Grain.DAY, start="2024-04-21"), child)
    planned(world, "2024-04-28")
    for day in ("2024-04-29", "2024-05-02", "2024-05-04"):
        plan = make_plan(world.inputs(day, command="run"))
        world.carry_out(plan)
        assert (step_of(plan).has_work, step_of(plan, "shop.by_week").has_work) == (True, False)
    step = step_of(make_plan(world.inputs("2024-05-05", command="run")), "shop.by_week")
    assert step.intervals == ranges(("2024-04-28", "2024-05-05"))
    assert count(step.intervals, Grain.DAY) == 7


def test_nothing_due_comes_with_the_next_tick_of_the_nearest_schedule():
    by_hour = orders(cron="30 * * * *", grain=Grain.HOUR, start=TODAY)
    place = Place(by_hour, reading("shop.totals", "shop.orders"), sources={"raw.orders": {}})
    place.build(NOON)
    report = place.run("2024-05-03T12:10:00Z")
    assert (report.status, report.next_release) == ("nothing_to_do", instant("2024-05-03T12:30:00Z"))
    assert place.run("2024-05-03T13:31:00Z").status == "succeeded"
