"""What a plan decides, on values alone."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import pytest

from lamina.errors import BadTime, HistoryLost, LaminaError, Location, NotYetSupported, UnknownName
from lamina.graph.kinds import Custom, Embedded, IncrementalByUniqueKey, IncrementalPolicy, Managed, View
from lamina.graph.model import FunctionCall, SqlText
from lamina.planning.inputs import Flags
from lamina.planning.plan import make_plan
from lamina.sql.fragment import Fragment
from lamina.timeline.grain import Grain
from lamina.timeline.interval import EMPTY, Interval
from tests.kit.models import World, daily, instant, model, ranges


def steps(plan):
    return {step.node: step for step in plan.steps}


def build(world, now, **options):
    plan = make_plan(world.inputs(now, **options))
    world.carry_out(plan)
    return plan


def orders(**settings):
    return model("shop.orders", ["raw.orders"], kind=daily(**settings.pop("kind", {})), start="2024-01-01", **settings)


def test_a_first_build_covers_every_complete_day_since_start():
    plan = make_plan(World(orders()).inputs("2024-01-05T12:00:00Z"))
    step = steps(plan)["shop.orders"]
    assert (step.action, step.reason) == ("build", "first_run")
    assert step.intervals == ranges(("2024-01-01", "2024-01-05"))
    assert len(step.batches) == 1


@pytest.mark.parametrize(
    ("table_format", "storage", "fits"),
    [("parquet", "orc", False), ("delta", "avro", False), ("iceberg", "ORC", True), ("parquet", "Parquet", True)],
)
def test_files_that_a_format_does_not_have_are_refused_by_the_plan(table_format, storage, fits):
    world = World(orders(table_format=table_format, storage_format=storage))
    if fits:
        assert make_plan(world.inputs("2024-01-05")).steps
        return
    with pytest.raises(NotYetSupported, match=f"`storage_format {storage}`"):
        make_plan(world.inputs("2024-01-05"))


def test_batch_size_cuts_the_range_into_portions():
    plan = make_plan(World(orders(kind={"batch_size": 3})).inputs("2024-01-08"))
    batches = steps(plan)["shop.orders"].batches
    assert [batch.interval.to_pair()[0][:10] for batch in batches] == ["2024-01-01", "2024-01-04", "2024-01-07"]


def test_building_again_finds_nothing_to_do():
    world = World(orders(), model("shop.totals", ["shop.orders"]), model("shop.v", ["shop.totals"], kind=View()))
    build(world, "2024-01-05")
    plan = make_plan(world.inputs("2024-01-05"))
    assert not plan.has_work
    assert {step.action for step in plan.steps} == {"skip"}


def test_the_next_day_processes_only_the_new_interval():
    world = World(orders(), model("shop.totals", ["shop.orders"]))
    build(world, "2024-01-05")
    plan = make_plan(world.inputs("2024-01-06T03:00:00Z", command="run"))
    found = steps(plan)
    assert found["shop.orders"].intervals == ranges(("2024-01-05", "2024-01-06"))
    assert found["shop.orders"].reason == "missing_intervals"
    assert (found["shop.totals"].action, found["shop.totals"].reason) == ("build", "upstream_changed")


def test_a_gap_is_found_again():
    world = World(orders())
    build(world, "2024-01-10")
    place, facts = next(iter(world.facts.items()))
    world.facts[place] = replace(facts, covered=facts.covered.minus(ranges(("2024-01-03", "2024-01-05"))))
    plan = make_plan(world.inputs("2024-01-10"))
    assert steps(plan)["shop.orders"].intervals == ranges(("2024-01-03", "2024-01-05"))


def test_lookback_reprocesses_units_before_a_newly_missing_one_only():
    world = World(orders(kind={"lookback": 2}))
    build(world, "2024-01-10")
    assert not make_plan(world.inputs("2024-01-10")).has_work
    plan = make_plan(world.inputs("2024-01-11"))
    assert steps(plan)["shop.orders"].intervals == ranges(("2024-01-08", "2024-01-11"))


@pytest.mark.parametrize("lookback", [5, 3_000_000, 10**25])
def test_lookback_never_reaches_before_start(lookback: int):
    plan = make_plan(World(orders(kind={"lookback": lookback})).inputs("2024-01-03"))
    assert steps(plan)["shop.orders"].intervals == ranges(("2024-01-01", "2024-01-03"))


def test_an_edited_query_is_rebuilt_with_everything_below_it():
    world = World(orders(), model("shop.totals", ["shop.orders"]), model("shop.other", ["raw.other"]))
    build(world, "2024-01-05")
    world.change(
        orders(query="SELECT ds, x + 1 AS x FROM raw.orders"),
        model("shop.totals", ["shop.orders"]),
        model("shop.other", ["raw.other"]),
    )
    found = steps(make_plan(world.inputs("2024-01-05")))
    assert (found["shop.orders"].reason, found["shop.orders"].change) == ("query_changed", "breaking")
    assert (found["shop.totals"].reason, found["shop.totals"].cause) == ("upstream_changed", "shop.orders")
    assert found["shop.other"].action == "skip"
    assert found["shop.orders"].diff is not None


def test_a_metadata_change_touches_no_data():
    world = World(orders())
    build(world, "2024-01-05")
    world.change(orders(owner="me", cron="@hourly"))
    step = steps(make_plan(world.inputs("2024-01-05")))["shop.orders"]
    assert (step.action, step.change, step.batches) == ("metadata", "metadata", ())


def test_a_new_environment_shares_everything_that_did_not_change():
    world = World(orders(), model("shop.totals", ["shop.orders"]))
    build(world, "2024-01-05")
    plan = make_plan(world.inputs("2024-01-09", environment="dev"))
    assert {step.action for step in plan.steps} == {"skip"}
    assert plan.pointers == world.revisions["prod"].pointers


def test_a_version_of_the_baseline_is_not_extended_through_another_environment():
    world = World(orders())
    build(world, "2024-01-05")
    build(world, "2024-01-05", environment="dev")
    step = steps(make_plan(world.inputs("2024-01-09", environment="dev", command="run")))["shop.orders"]
    assert step.action == "skip"


def test_a_changed_model_in_dev_is_built_as_far_as_the_baseline_reaches():
    world = World(orders())
    build(world, "2024-01-05")
    world.change(orders(query="SELECT ds, 2 AS x FROM raw.orders"))
    step = steps(make_plan(world.inputs("2024-01-09", environment="dev")))["shop.orders"]
    assert step.intervals == ranges(("2024-01-01", "2024-01-05"))


def test_what_dev_built_is_reused_in_prod():
    world = World(orders())
    build(world, "2024-01-05")
    world.change(orders(query="SELECT ds, 2 AS x FROM raw.orders"))
    build(world, "2024-01-05", environment="dev")
    step = steps(make_plan(world.inputs("2024-01-05")))["shop.orders"]
    assert (step.action, step.batches) == ("reuse", ())


def test_a_child_waits_for_a_parent_that_its_cron_has_not_released():
    hourly = model("shop.hourly", ["shop.orders"], kind=daily(), start="2024-01-01", cron="@hourly")
    from lamina.timeline.grain import Grain

    world = World(orders(), replace(hourly, grain=Grain.HOUR))
    plan = make_plan(world.inputs("2024-01-03T05:30:00Z"))
    step = steps(plan)["shop.hourly"]
    assert step.intervals == ranges(("2024-01-01", "2024-01-03"))
    assert [(waiting.name, waiting.interval.start) for waiting in step.waiting_for] == [
        ("shop.orders", instant("2024-01-03"))
    ]


def test_waiting_can_be_switched_off():
    from lamina.timeline.grain import Grain

    hourly = model(
        "shop.hourly", ["shop.orders"], kind=daily(), start="2024-01-01", wait_for_parents=False, grain=Grain.HOUR
    )
    plan = make_plan(World(orders(), hourly).inputs("2024-01-03T05:30:00Z"))
    assert steps(plan)["shop.hourly"].intervals == ranges(("2024-01-01", "2024-01-03T05:00:00Z"))


def test_where_nothing_says_when_time_begins_it_begins_a_unit_of_the_topmost_model_ago():
    top = model("shop.shown", ["raw.x"], kind=View(), cron="@monthly", grain=Grain.MONTH)
    below = model("shop.days", ["shop.shown"], kind=daily())
    found = steps(make_plan(World(top, below).inputs("2024-02-10")))
    assert found["shop.days"].intervals == ranges(("2024-01-01", "2024-02-10"))


def test_a_start_in_the_future_waits_and_has_a_table_for_its_readers():
    world = World(
        model("shop.later", ["raw.x"], kind=daily(), start="2030-01-01"), model("shop.totals", ["shop.later"])
    )
    plan = make_plan(world.inputs("2024-01-05"))
    found = steps(plan)
    assert (found["shop.later"].action, found["shop.totals"].action) == ("wait", "build")
    assert "2030-01-01" in found["shop.later"].explanation
    assert found["shop.later"].makes_table
    assert set(plan.pointers) == {"shop.later", "shop.totals"}
    assert plan.final_status == "finalized"


def test_a_changed_model_that_cannot_be_processed_yet_stays_as_it_is():
    world = World(orders())
    world.carry_out(make_plan(world.inputs("2024-01-05")))
    world.graph = World(replace(orders(query="SELECT 2"), start="2030-01-01")).graph
    plan = make_plan(world.inputs("2024-01-05"))
    step = steps(plan)["shop.orders"]
    assert (step.action, step.makes_table) == ("wait", False)
    assert plan.pointers["shop.orders"].version == step.previous_version


def test_selecting_a_model_below_a_stale_one_is_blocked_with_its_name():
    world = World(orders(), model("shop.totals", ["shop.orders"]))
    plan = make_plan(world.inputs("2024-01-05", flags=Flags(select=("totals",))))
    step = steps(plan)["shop.totals"]
    assert step.action == "blocked"
    assert "`shop.orders`" in step.explanation


def test_stale_upstreams_can_be_included():
    world = World(orders(), model("shop.totals", ["shop.orders"]), model("shop.other"))
    flags = Flags(select=("totals",), include_stale_upstreams=True)
    plan = make_plan(world.inputs("2024-01-05", flags=flags))
    found = steps(plan)
    assert (found["shop.orders"].action, found["shop.totals"].action) == ("build", "build")
    assert found["shop.other"].action == "skip"
    assert plan.final_status == "active"


def test_a_model_that_left_the_project_is_removed():
    world = World(orders(), model("shop.totals", ["shop.orders"]))
    build(world, "2024-01-05")
    world.change(orders())
    plan = make_plan(world.inputs("2024-01-05"))
    assert steps(plan)["shop.totals"].action == "remove"
    assert "shop.totals" not in plan.pointers


def test_restating_reprocesses_the_range_and_what_lies_below():
    world = World(orders(), model("shop.daily", ["shop.orders"], kind=daily()), model("shop.totals", ["shop.daily"]))
    build(world, "2024-01-10")
    flags = Flags(restate=("shop.orders",), start="2024-01-03", end="2024-01-04")
    found = steps(make_plan(world.inputs("2024-01-10", flags=flags)))
    assert found["shop.orders"].intervals == ranges(("2024-01-03", "2024-01-05"))
    assert found["shop.orders"].reason == "restated"
    assert found["shop.daily"].reason == "upstream_rewritten"
    assert found["shop.daily"].intervals == ranges(("2024-01-03", "2024-01-10"))
    assert found["shop.totals"].action == "build"


def test_force_computes_everything_again():
    world = World(orders(), model("shop.totals", ["shop.orders"]))
    build(world, "2024-01-05")
    found = steps(make_plan(world.inputs("2024-01-05", flags=Flags(force=True))))
    assert {step.reason for step in found.values()} == {"forced"}
    assert found["shop.orders"].intervals == ranges(("2024-01-01", "2024-01-05"))


FORWARD = {"policy": IncrementalPolicy(forward_only=True)}
CHANGED = {"query": "SELECT ds, x + 1 AS x FROM raw.orders"}


@pytest.mark.parametrize(
    "flags", [{}, {"force": True}, {"restate": ("shop.orders",), "start": "2024-01-04"}], ids=["plain", "force", "part"]
)
def test_no_flag_rebuilds_a_changed_model_that_goes_forward_only(flags):
    world = World(orders(kind=FORWARD))
    build(world, "2024-01-06")
    world.change(orders(kind=FORWARD, **CHANGED))
    with pytest.raises(NotYetSupported, match="asks to keep its history") as caught:
        make_plan(world.inputs("2024-01-06", flags=Flags(**flags)))
    assert "`--reset shop.orders`" in (caught.value.hint or "")


def test_a_model_that_goes_forward_only_is_not_rebuilt_because_all_its_time_is_open_again():
    world = World(orders(kind=FORWARD))
    build(world, "2024-01-06")
    (facts,) = world.facts.values()
    world.facts[facts.physical] = replace(facts, covered=EMPTY, reopened=facts.covered, built_at=None)
    world.change(orders(kind=FORWARD, **CHANGED))
    with pytest.raises(NotYetSupported, match="asks to keep its history"):
        make_plan(world.inputs("2024-01-06"))


def test_a_reset_rebuilds_a_model_that_goes_forward_only():
    world = World(orders(kind=FORWARD))
    build(world, "2024-01-06")
    world.change(orders(kind=FORWARD, **CHANGED))
    step = steps(make_plan(world.inputs("2024-01-06", flags=Flags(reset=("shop.orders",)))))["shop.orders"]
    assert (step.action, step.replay, step.intervals) == ("build", "full", ranges(("2024-01-01", "2024-01-06")))


@pytest.mark.parametrize("flags", [{}, {"force": True}, {"restate": ("shop.orders",)}], ids=["plain", "force", "part"])
@pytest.mark.parametrize("bound", [{"start": "2024-01-05"}, {"end": "2024-01-02"}], ids=["start", "end"])
def test_bounds_do_not_shorten_the_history_of_a_changed_model(flags, bound):
    world = World(orders())
    build(world, "2024-01-06")
    world.change(orders(**CHANGED))
    with pytest.raises(HistoryLost, match="readers of `prod` have now") as caught:
        make_plan(world.inputs("2024-01-06", flags=Flags(**flags, **bound)))
    assert "`--allow-gaps`" in (caught.value.hint or "")
    allowed = make_plan(world.inputs("2024-01-06", flags=Flags(**flags, **bound, allow_gaps=True)))
    assert not steps(allowed)["shop.orders"].left_out.is_empty


def test_bounds_that_leave_readers_what_they_have_are_fine():
    world = World(orders())
    build(world, "2024-01-04")
    world.change(orders(**CHANGED))
    step = steps(make_plan(world.inputs("2024-01-08", flags=Flags(end="2024-01-05"))))["shop.orders"]
    assert step.intervals == ranges(("2024-01-01", "2024-01-06"))
    # Development may look at part of the time: promoting says what is lacking.
    inputs = world.inputs("2024-01-08", environment="dev", flags=Flags(start="2024-01-03"))
    assert steps(make_plan(inputs))["shop.orders"].intervals == ranges(("2024-01-03", "2024-01-04"))


CLOCKS = {
    "SELECT CURRENT_DATE AS ds": True,
    "SELECT now() AS ds": True,
    "SELECT x FROM shop.fixed WHERE ds < current_timestamp()": True,
    "SELECT @execution_ds AS ds": True,
    "SELECT x FROM shop.fixed WHERE ds < date_sub(@latest_ds, 3)": True,
    "SELECT 'now()' AS ds, `current_date` /* current_date */ FROM shop.fixed": False,
    "SELECT now, known FROM shop.fixed -- @execution_ds": False,
    "SELECT unix_timestamp(ds) FROM shop.fixed": False,
}


@pytest.mark.parametrize(("query", "is_due"), CLOCKS.items())
@pytest.mark.parametrize("through", [None, View(), Embedded()])
def test_run_refreshes_a_full_model_that_asks_the_clock_once_per_tick(
    query: str, is_due: bool, through: View | Embedded | None
):
    fixed = model("shop.fixed", query="SELECT 1 AS x")
    asks = model("shop.asks", ["shop.fixed"], query=query, kind=through)
    full = model("shop.full", ["shop.asks"], query="SELECT * FROM shop.asks")
    world = World(fixed, asks, full) if through else World(fixed, asks)
    build(world, "2024-01-05T10:00:00Z")
    assert not make_plan(world.inputs("2024-01-05T11:00:00Z", command="run")).has_work
    plan = make_plan(world.inputs("2024-01-06T01:00:00Z", command="run"))
    assert steps(plan)["shop.full" if through else "shop.asks"].has_work is is_due


def test_run_refreshes_a_full_model_over_an_unknown_source_once_per_tick():
    world = World(model("shop.full", ["raw.x"]))
    build(world, "2024-01-05T10:00:00Z")
    assert not make_plan(world.inputs("2024-01-05T11:00:00Z", command="run")).has_work
    plan = make_plan(world.inputs("2024-01-06T01:00:00Z", command="run"))
    assert steps(plan)["shop.full"].reason == "source_changed"
    assert not make_plan(world.inputs("2024-01-06T01:00:00Z", command="build")).has_work


UNSEEN = {
    "CREATE TEMP VIEW v USING jdbc OPTIONS (url 'x')": True,
    "CREATE TEMP VIEW v AS SELECT 1 AS x": False,
}


@pytest.mark.parametrize(("statement", "is_due"), UNSEEN.items())
def test_run_refreshes_a_full_model_that_reads_what_nobody_sees_once_per_tick(statement: str, is_due: bool):
    entry = model("shop.full", query="SELECT * FROM v")
    text = SqlText(source=Fragment(text=statement, location=Location()), expanded=statement)
    world = World(replace(entry, body=replace(entry.body, pre_statements=(text,))))
    build(world, "2024-01-05T10:00:00Z")
    assert make_plan(world.inputs("2024-01-06T01:00:00Z", command="run")).has_work is is_due


def test_run_refreshes_a_full_model_with_a_hook_before_it_once_per_tick():
    world = World(replace(model("shop.full", query="SELECT 1 AS x"), pre_hooks=(FunctionCall(name="fetch"),)))
    build(world, "2024-01-05T10:00:00Z")
    assert make_plan(world.inputs("2024-01-06T01:00:00Z", command="run")).has_work


def test_an_embedded_model_has_no_table_but_reaches_its_readers():
    world = World(model("shop.e", ["raw.x"], kind=Embedded()), model("shop.t", ["shop.e"]))
    plan = build(world, "2024-01-05")
    assert steps(plan)["shop.e"].physical is None
    world.change(
        model("shop.e", ["raw.x"], kind=Embedded(), query="SELECT 1 AS x FROM raw.x"), model("shop.t", ["shop.e"])
    )
    found = steps(make_plan(world.inputs("2024-01-05")))
    assert found["shop.e"].action == "metadata"
    assert found["shop.t"].reason == "upstream_changed"


def test_a_kind_that_cannot_be_built_blocks_what_reads_it_and_nothing_else():
    models = (
        model("shop.a", kind=Managed()),
        model("shop.b", ["shop.a"], kind=View()),
        model("shop.c", ["shop.b"]),
        model("shop.d", kind=Custom(materialization="mine")),
        model("shop.e"),
        model("shop.f", ["shop.e"]),
    )
    world = World(*models)
    blocked = {"shop.a", "shop.b", "shop.c", "shop.d"}
    plan = make_plan(world.inputs("2024-01-05"))
    found = steps(plan)
    assert {name for name, step in found.items() if step.action == "blocked"} == plan.refused == blocked
    assert (found["shop.e"].action, found["shop.f"].action) == ("build", "build")
    assert found["shop.a"].explanation.startswith("blocked: it is of kind MANAGED, which this release cannot build")
    assert found["shop.c"].explanation == "blocked: it reads `shop.b`, which is blocked"
    assert set(plan.pointers) == {"shop.e", "shop.f"}
    assert (plan.is_blocked, plan.final_status) == (False, "active")

    plan = build(world, "2024-01-05")
    again = make_plan(world.inputs("2024-01-05"))
    assert (again.has_work, again.refused) == (False, blocked)
    without = make_plan(world.inputs("2024-01-05", flags=Flags(select=("shop.f",))))
    assert (without.refused, without.is_blocked) == (frozenset(), False)


def test_a_model_that_becomes_one_that_cannot_be_built_stays_shown_as_it_was():
    world = World(model("shop.a"), model("shop.b", ["shop.a"]))
    before = build(world, "2024-01-05").pointers
    world.change(model("shop.a", kind=Managed()), model("shop.b", ["shop.a"]))
    plan = make_plan(world.inputs("2024-01-05"))
    assert plan.refused == {"shop.a", "shop.b"}
    assert dict(plan.pointers) == dict(before)


def test_what_cannot_be_written_is_all_named():
    world = World(
        model("shop.a", table_format="hudi"),
        model("shop.b", table_format="hudi"),
        model("shop.c"),
        model("shop.d", table_format="hudi"),
    )
    with pytest.raises(LaminaError) as caught:
        make_plan(world.inputs("2024-01-05"))
    assert {problem.node for problem in caught.value.problems} == {"shop.a", "shop.b", "shop.d"}
    assert {type(problem) for problem in caught.value.problems} == {NotYetSupported}


def test_an_unknown_selector_comes_with_the_nearest_name():
    with pytest.raises(UnknownName) as caught:
        make_plan(World(orders()).inputs("2024-01-05", flags=Flags(select=("shop.order",))))
    assert "shop.orders" in (caught.value.hint or "")


def test_an_unreadable_start_is_an_error():
    with pytest.raises(BadTime):
        make_plan(World(orders()).inputs("2024-01-05", flags=Flags(start="someday")))


def test_planning_after_applying_gives_no_steps_whatever_the_cron():
    for cron in ("@hourly", "@daily", "@weekly", "0 6 * * *", "@monthly"):
        from lamina.planning.missing import schedule_of

        first = orders(cron=cron)
        first = replace(first, grain=schedule_of(first).grain())
        world = World(first, model("shop.totals", ["shop.orders"], cron=cron))
        build(world, "2024-03-05T07:15:00Z")
        assert not make_plan(world.inputs("2024-03-05T07:15:00Z")).has_work
        assert not make_plan(world.inputs("2024-03-05T07:15:00Z", command="run")).has_work


def test_a_tight_schedule_with_an_old_start_is_planned_in_flat_memory():
    every_five = model("shop.ticks", ["raw.x"], kind=daily(batch_size=1), start="1970-01-01", cron="*/5 * * * *")
    every_five = replace(every_five, grain=Grain.FIVE_MINUTE)
    inputs = World(every_five).inputs("2026-01-01", command="build")
    tracemalloc.start()
    try:
        (step,) = make_plan(inputs).steps
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(step.batches) == (instant("2026-01-01").micros - instant("1970-01-01").micros) // 300_000_000
    assert step.batches[1].interval == Interval(instant("1970-01-01T00:05:00Z"), instant("1970-01-01T00:10:00Z"))
    assert step.batches[-1].interval.end == instant("2026-01-01")
    assert peak < 1_000_000


def test_what_the_bounds_of_a_command_leave_out_is_shown():
    world = World(orders())
    plan = make_plan(world.inputs("2024-01-10", flags=Flags(start="2024-01-04", end="2024-01-06")))
    (step,) = plan.steps
    assert step.intervals == ranges(("2024-01-04", "2024-01-07"))
    assert step.left_out == ranges(("2024-01-01", "2024-01-04"), ("2024-01-07", "2024-01-10"))
    assert "leave out [2024-01-01T00:00:00Z, 2024-01-04T00:00:00Z) and 1 more range" in step.explanation
    world.carry_out(plan)
    (step,) = make_plan(world.inputs("2024-01-10", flags=Flags(start="2024-01-04", end="2024-01-06"))).steps
    assert step.explanation.startswith("nothing to do within the bounds of this command, which leave out [2024-01-01")


def test_what_the_baseline_has_to_write_is_said_of_what_is_shared():
    world = World(orders(), model("shop.totals", ["shop.orders"]))
    build(world, "2024-01-05")
    plan = make_plan(world.inputs("2024-01-09", environment="dev"))
    step = steps(plan)["shop.orders"]
    assert (step.action, step.intervals) == ("skip", EMPTY)
    assert step.left_to_baseline == ranges(("2024-01-05", "2024-01-09"))
    assert step.left_to_baseline == steps(make_plan(world.inputs("2024-01-09")))["shop.orders"].intervals
    assert step.explanation == (
        "shared with the baseline `prod`, which alone writes it and lacks [2024-01-05T00:00:00Z, 2024-01-09T00:00:00Z)"
    )
    assert not plan.has_work


def test_a_version_of_ones_own_follows_when_the_baseline_goes_on():
    world = World(orders())
    build(world, "2024-01-05")
    world.change(orders(query="SELECT ds, 2 AS x FROM raw.orders"))
    step = steps(make_plan(world.inputs("2024-01-09", environment="dev")))["shop.orders"]
    assert step.intervals == ranges(("2024-01-01", "2024-01-05"))
    assert step.left_to_baseline == ranges(("2024-01-05", "2024-01-09"))
    assert step.explanation.endswith("follows when `prod` has it")
    build(world, "2024-01-09", environment="dev")
    step = steps(make_plan(world.inputs("2024-01-09", environment="dev")))["shop.orders"]
    assert step.explanation.startswith("nothing changed; [2024-01-05T00:00:00Z, 2024-01-09T00:00:00Z) follows")


@pytest.mark.parametrize("flags", [Flags(select=("shop.other",)), Flags(end="2024-01-04")])
def test_nothing_is_left_to_the_baseline_that_was_not_asked_for(flags):
    world = World(orders(), model("shop.other"))
    build(world, "2024-01-05")
    step = steps(make_plan(world.inputs("2024-01-09", environment="dev", flags=flags)))["shop.orders"]
    assert step.left_to_baseline == EMPTY


def test_the_baseline_leaves_nothing_to_itself():
    world = World(orders())
    build(world, "2024-01-05")
    assert steps(make_plan(world.inputs("2024-01-09")))["shop.orders"].left_to_baseline == EMPTY


def test_runs_of_a_shared_upsert_are_left_to_the_baseline():
    upsert = model(
        "shop.latest",
        ["raw.orders"],
        kind=IncrementalByUniqueKey(unique_key=("x",)),
        query="SELECT ds, x FROM raw.orders WHERE ds BETWEEN @start_ds AND @end_ds",
        start="2024-01-01",
    )
    world = World(upsert)
    build(world, "2024-01-05")
    step = steps(make_plan(world.inputs("2024-01-09", environment="dev")))["shop.latest"]
    assert step.left_to_baseline == ranges(("2024-01-05", "2024-01-09"))


def test_a_breaking_change_names_the_tables_that_it_reaches():
    world = World(
        orders(),
        model("shop.page", ["shop.orders"], kind=View()),
        model("shop.totals", ["shop.page"]),
        model("shop.other", ["raw.x"]),
    )
    build(world, "2024-01-05")
    world.change(*(orders(query="SELECT ds, 2 AS x FROM raw.orders"), *list(world.graph.models.values())[1:]))
    found = steps(make_plan(world.inputs("2024-01-05")))
    assert (found["shop.orders"].change, found["shop.orders"].reaches) == ("breaking", ("shop.totals",))
    assert (found["shop.totals"].change, found["shop.totals"].reaches) == ("non_breaking", ())
    assert found["shop.other"].reaches == ()
