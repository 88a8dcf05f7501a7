"""Recorded time that is computed again: how far it travels, where it stops, and what a crash leaves of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lamina.errors import QueryFailed
from lamina.graph.kinds import IncrementalPolicy, View
from lamina.graph.names import NodeName
from lamina.sql.lineage.input_windows import InputWindow, Offset
from lamina.timeline.interval import MICROS_PER_DAY
from tests.kit.app import LEASE_TIME, Killed, Place, Process, january, orders, reading, statuses
from tests.kit.engine import from_inputs
from tests.kit.models import daily, ranges

OWN_DAY = InputWindow(lower=Offset(base="start"), upper=Offset(base="end"))


def days_back(days: int) -> InputWindow:
    return InputWindow(lower=Offset(base="start", micros=-days * MICROS_PER_DAY), upper=Offset(base="end"))


def below(name: str, parent: str, window: InputWindow | None = OWN_DAY, **settings: object):
    """Incremental by day, reading its own day of the parent unless another window is given."""
    made = reading(name, parent, kind=settings.pop("kind", daily()), partitioned_by=("ds",), **settings)
    return replace(made, windows={NodeName(parent): window}) if window is not None else made


def chain(window: InputWindow | None = OWN_DAY, **kind: object) -> Place:
    """Orders, two models below each other that read by day, and a table over everything."""
    place = Place(
        orders(kind=kind),
        below("shop.daily", "shop.orders", window),
        below("shop.weekly", "shop.daily", window),
        reading("shop.totals", "shop.weekly"),
        sources={"raw.orders": january(31)},
    )
    place.build("2024-01-10")
    return place


def written(process: Process) -> list[tuple[str, str, str]]:
    return [
        (node, *(pair[:10] for pair in at.to_pair())) if at else (node, "", "") for node, at in process.engine.writes
    ]


# --- lookback ---------------------------------------------------------------------------------------------------------
def test_a_lookback_that_finds_nothing_new_computes_no_child_again():
    place = chain(lookback=3)
    process = place.process()
    report = process.run("2024-01-11")
    assert written(process) == [
        ("shop.orders", "2024-01-07", "2024-01-11"),
        ("shop.daily", "2024-01-10", "2024-01-11"),
        ("shop.weekly", "2024-01-10", "2024-01-11"),
        ("shop.totals", "", ""),
    ]
    assert all(result.changed.is_empty for result in report.results.values())


def test_late_rows_found_by_a_lookback_reach_every_descendant_exactly_where_they_change_something():
    place = chain(lookback=3)
    place.catalog.sources["raw.orders"]["2024-01-08"] = "late"
    process = place.process()
    report = process.run("2024-01-11")
    assert written(process) == [
        ("shop.orders", "2024-01-07", "2024-01-11"),
        ("shop.daily", "2024-01-08", "2024-01-09"),
        ("shop.daily", "2024-01-10", "2024-01-11"),
        ("shop.weekly", "2024-01-08", "2024-01-09"),
        ("shop.weekly", "2024-01-10", "2024-01-11"),
        ("shop.totals", "", ""),
    ]
    document = {node["name"]: node for node in report.to_dict()["nodes"]}
    assert document["shop.daily"]["changed"] == [["2024-01-08T00:00:00Z", "2024-01-09T00:00:00Z"]]
    assert document["shop.daily"]["intervals"] == [
        ["2024-01-08T00:00:00Z", "2024-01-09T00:00:00Z"],
        ["2024-01-10T00:00:00Z", "2024-01-11T00:00:00Z"],
    ]
    assert not place.run("2024-01-11").results


def test_rows_that_are_late_for_a_child_without_other_work_are_followed_in_the_same_command():
    place = Place(
        orders(kind={"lookback": 3}),
        below("shop.monthly", "shop.orders", cron="@monthly"),
        sources={"raw.orders": january(31)},
    )
    place.build("2024-01-10")
    place.catalog.sources["raw.orders"]["2024-01-08"] = "late"
    process = place.process()
    report = process.run("2024-01-11")
    assert written(process)[1:] == [("shop.monthly", "2024-01-08", "2024-01-09")]
    document = {node["name"]: node for node in report.to_dict()["nodes"]}
    assert (document["shop.monthly"]["action"], document["shop.monthly"]["reason"]) == ("build", "upstream_rewritten")
    assert document["shop.monthly"]["status"] == "succeeded"


def test_a_lookback_that_failed_does_not_grow_with_every_try():
    place = chain(lookback=3)
    for _ in range(3):
        with pytest.raises(Killed):
            place.dying("write.written").run("2024-01-11")
        place.clock.advance(LEASE_TIME)
    process = place.process()
    process.run("2024-01-11")
    assert written(process)[0] == ("shop.orders", "2024-01-07", "2024-01-11")


def test_an_old_gap_looks_back_from_there_and_leaves_recent_days_alone():
    place = Place(orders(kind={"lookback": 2}, start="2024-01-01"), sources={"raw.orders": january(31)})
    place.build("2024-01-04")
    place.build("2024-01-12", start="2024-01-08")
    process = place.process()
    process.build("2024-01-12")
    assert written(process) == [("shop.orders", "2024-01-02", "2024-01-08")]


# --- restatement ------------------------------------------------------------------------------------------------------
def restated(place: Place, **options: str) -> Process:
    process = place.process()
    process.build("2024-01-10", restate=("shop.orders",), **options)
    return process


def test_a_restatement_with_the_same_rows_stops_there_and_publishes_nothing():
    place = chain()
    statements = list(place.catalog.statements)
    process = place.process()
    report = process.build("2024-01-10", restate=("shop.orders",), start="2024-01-03", end="2024-01-04")
    assert written(process) == [("shop.orders", "2024-01-03", "2024-01-05")]
    assert place.catalog.statements == statements
    assert statuses(report) == {
        "shop.orders": "succeeded",
        "shop.daily": "skipped",
        "shop.weekly": "skipped",
        "shop.totals": "skipped",
    }
    assert report.results["shop.daily"].explanation == "skipped: the models it reads came out the same"
    assert place.build("2024-01-10").status == "nothing_to_do"


def test_a_restatement_travels_as_far_as_rows_differ():
    place = chain()
    place.catalog.sources["raw.orders"]["2024-01-04"] = "late"
    assert written(restated(place, start="2024-01-03", end="2024-01-05")) == [
        ("shop.orders", "2024-01-03", "2024-01-06"),
        ("shop.daily", "2024-01-04", "2024-01-05"),
        ("shop.weekly", "2024-01-04", "2024-01-05"),
        ("shop.totals", "", ""),
    ]
    assert place.build("2024-01-10").status == "nothing_to_do"


def test_a_dry_plan_shows_every_model_and_range_that_may_be_reached():
    place = chain(days_back(2))
    report = place.process().plan("2024-01-10", restate=("shop.orders",), start="2024-01-03", end="2024-01-03")
    found = {step.node: step for step in report.plan.steps}
    assert found["shop.orders"].intervals == ranges(("2024-01-03", "2024-01-04"))
    assert found["shop.daily"].intervals == ranges(("2024-01-03", "2024-01-06"))
    assert found["shop.weekly"].intervals == ranges(("2024-01-03", "2024-01-08"))
    assert {step.reason for name, step in found.items() if name != "shop.orders"} == {"upstream_rewritten"}
    assert all(step.cause == "shop.orders" for step in found.values())


def test_a_window_that_reaches_back_makes_later_days_read_the_rewrite():
    place = chain(days_back(2))
    place.catalog.sources["raw.orders"]["2024-01-03"] = "late"
    found = written(restated(place, start="2024-01-03", end="2024-01-03"))
    # What later days compute comes out the same here, so nothing travels on from them.
    assert found[1:3] == [("shop.daily", "2024-01-03", "2024-01-06"), ("shop.weekly", "2024-01-03", "2024-01-06")]


def test_a_window_that_is_not_known_is_open_to_the_past():
    place = chain(None)
    place.catalog.sources["raw.orders"]["2024-01-03"] = "late"
    found = written(restated(place, start="2024-01-03", end="2024-01-03"))
    assert found[1] == ("shop.daily", "2024-01-03", "2024-01-10")


def test_a_restated_interval_that_is_empty_now_is_empty_afterwards():
    place = chain()
    del place.catalog.sources["raw.orders"]["2024-01-03"]
    restated(place, start="2024-01-03", end="2024-01-03")
    for name in ("shop.orders", "shop.daily", "shop.weekly"):
        assert [unit for unit, _ in place.rows(name)] == [f"2024-01-{day:02}" for day in (1, 2, 4, 5, 6, 7, 8, 9)]


def test_a_restatement_travels_through_tables_that_are_computed_whole_and_through_views():
    place = Place(
        orders(),
        reading("shop.totals", "shop.orders"),
        reading("shop.shown", "shop.totals", kind=View()),
        below("shop.daily", "shop.shown", None),
        sources={"raw.orders": january(31)},
    )
    place.process(compute=_by_day(place)).build("2024-01-04")
    place.catalog.sources["raw.orders"]["2024-01-02"] = "late"
    process = place.process(compute=_by_day(place))
    process.build("2024-01-04", restate=("shop.orders",), start="2024-01-02", end="2024-01-02")
    assert written(process)[1:] == [("shop.totals", "", ""), ("shop.daily", "2024-01-01", "2024-01-04")]


def test_a_table_computed_whole_that_only_grew_leaves_the_history_of_its_readers_alone():
    place = Place(
        orders(kind={"lookback": 1}),
        reading("shop.totals", "shop.orders"),
        below("shop.daily", "shop.totals", None),
        sources={"raw.orders": january(31)},
    )
    place.process(compute=_by_day(place)).build("2024-01-04")
    place.catalog.sources["raw.orders"]["2024-01-03"] = "late"
    process = place.process(compute=_by_day(place))
    process.run("2024-01-05")
    assert written(process)[-1] == ("shop.daily", "2024-01-04", "2024-01-05")


def _by_day(place: Place):
    """Every model gives the rows it reads, whole ones too."""

    def compute(node, interval, sql):
        read = place.catalog.rows_read(sql)
        return [(unit, f"{node}<{value}>") for unit, value in read]

    return compute


def test_a_model_that_does_not_follow_is_left_alone_and_so_is_what_only_it_would_reach():
    place = Place(
        orders(),
        below("shop.daily", "shop.orders", follow_rewrites=False),
        below("shop.weekly", "shop.daily"),
        sources={"raw.orders": january(31)},
    )
    place.build("2024-01-10")
    place.catalog.sources["raw.orders"]["2024-01-03"] = "late"
    assert written(restated(place, start="2024-01-03", end="2024-01-03")) == [
        ("shop.orders", "2024-01-03", "2024-01-04")
    ]


def test_a_model_that_forbids_it_is_neither_restated_nor_reached():
    protected = daily(policy=IncrementalPolicy(disable_restatement=True))
    place = Place(orders(), below("shop.daily", "shop.orders", kind=protected), sources={"raw.orders": january(31)})
    place.build("2024-01-10")
    place.catalog.sources["raw.orders"]["2024-01-03"] = "late"
    process = place.process()
    report = process.build("2024-01-10", restate=("shop.orders", "shop.daily"), start="2024-01-03", end="2024-01-03")
    assert written(process) == [("shop.orders", "2024-01-03", "2024-01-04")]
    assert [notice.code for notice in report.plan.warnings] == ["LAM-WARN-015"]


# --- crashes and other environments -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "point", ["write.intent", "write.written", "write.decided", "write.published", "write.done", "follow.recorded"]
)
@pytest.mark.parametrize("occurrence", [1, 2])
def test_after_a_crash_the_next_command_brings_a_rewrite_to_its_end(point: str, occurrence: int):
    place = chain(days_back(2))
    place.catalog.sources["raw.orders"]["2024-01-04"] = "late"
    with pytest.raises(Killed):
        place.dying(point, occurrence).build(
            "2024-01-10", restate=("shop.orders",), start="2024-01-04", end="2024-01-04"
        )
    place.clock.advance(LEASE_TIME)
    place.build("2024-01-10")
    fresh = Place(*place.project.models, sources=place.catalog.sources)
    fresh.build("2024-01-10")
    assert place.catalog.everything() == fresh.catalog.everything()
    assert place.build("2024-01-10").status == "nothing_to_do"


def test_a_crash_in_the_middle_leaves_the_interval_marked_as_not_done():
    place = chain()
    with pytest.raises(Killed):
        place.dying("write.intent").build("2024-01-10", restate=("shop.orders",), start="2024-01-04", end="2024-01-04")
    assert place.covered("shop.orders") == ranges(("2024-01-01", "2024-01-04"), ("2024-01-05", "2024-01-10"))


def test_a_failed_parent_leaves_the_rewrite_of_another_one_to_the_next_command():
    place = Place(
        orders(),
        model_of("shop.other", "raw.other"),
        replace(
            reading("shop.both", "shop.orders", "shop.other", kind=daily(), partitioned_by=("ds",)),
            windows={NodeName("shop.orders"): OWN_DAY, NodeName("shop.other"): OWN_DAY},
        ),
        sources={"raw.orders": january(31), "raw.other": january(31, "b")},
    )
    place.build("2024-01-10")
    place.catalog.sources["raw.orders"]["2024-01-04"] = "late"
    process = place.process(compute=_failing_once(place, "shop.other"))
    report = process.build("2024-01-10", restate=("shop.orders", "shop.other"), start="2024-01-04", end="2024-01-04")
    assert statuses(report) == {"shop.orders": "succeeded", "shop.other": "failed", "shop.both": "skipped"}
    process = place.process()
    process.build("2024-01-10")
    assert written(process) == [
        ("shop.other", "2024-01-04", "2024-01-05"),
        ("shop.both", "2024-01-04", "2024-01-05"),
    ]


def model_of(name: str, source: str):
    return reading(name, source, kind=daily(), partitioned_by=("ds",), start="2024-01-01")


def _failing_once(place: Place, failing: str):
    plain = from_inputs(place.catalog)

    def compute(node, interval, sql):
        if node == failing:
            raise QueryFailed("no luck")
        return plain(node, interval, sql)

    return compute


def test_what_prod_rewrites_is_followed_by_a_model_that_only_dev_has():
    place = chain()
    place.project.change(below("shop.extra", "shop.daily"))
    place.build("2024-01-10", "dev")
    place.project.remove("shop.extra")
    place.catalog.sources["raw.orders"]["2024-01-04"] = "late"
    restated(place, start="2024-01-04", end="2024-01-04")
    place.project.change(below("shop.extra", "shop.daily"))
    process = place.process()
    process.build("2024-01-10", "dev")
    assert written(process) == [("shop.extra", "2024-01-04", "2024-01-05")]
    assert dict(place.rows("shop.extra", "dev"))["2024-01-04"] == "extra:x<daily:x<orders:x<late>>>"


def test_a_limited_restatement_that_was_killed_is_finished_by_giving_it_again():
    place = chain(days_back(2))
    place.catalog.sources["raw.orders"]["2024-01-03"] = "late"
    limited = {"restate": ("shop.orders",), "start": "2024-01-03", "end": "2024-01-03"}
    with pytest.raises(Killed):
        place.dying("follow.recorded").build("2024-01-10", **limited)
    place.clock.advance(LEASE_TIME)
    place.build("2024-01-10", **limited)
    assert place.build("2024-01-10").status == "nothing_to_do"


def test_limited_history_that_is_filled_later_reaches_what_was_computed_without_it():
    place = Place(orders(), below("shop.daily", "shop.orders", days_back(2)), sources={"raw.orders": january(31)})
    place.build("2024-01-10", start="2024-01-07")
    process = place.process()
    process.build("2024-01-10")
    assert written(process) == [
        ("shop.orders", "2024-01-01", "2024-01-07"),
        ("shop.daily", "2024-01-01", "2024-01-09"),
    ]
    assert place.build("2024-01-10").status == "nothing_to_do"


def running_total() -> Place:
    """A model that reads its own past, day by day."""
    total = reading("shop.running", "shop.orders", "shop.running", kind=daily(batch_size=1), partitioned_by=("ds",))
    place = Place(
        orders(), replace(total, windows={NodeName("shop.orders"): OWN_DAY}), sources={"raw.orders": january(31)}
    )
    place.build("2024-01-06")
    return place


def test_a_model_that_reads_its_own_past_is_computed_again_from_there_on():
    place = running_total()
    place.catalog.sources["raw.orders"]["2024-01-03"] = "late"
    process = place.process()
    process.build("2024-01-06", restate=("shop.orders",), start="2024-01-03", end="2024-01-03")
    assert written(process)[1:] == [("shop.running", f"2024-01-{day:02}", f"2024-01-{day + 1:02}") for day in (3, 4, 5)]
    process = place.process()
    process.build("2024-01-06", restate=("shop.running",), start="2024-01-04", end="2024-01-04")
    assert written(process) == [("shop.running", f"2024-01-{day:02}", f"2024-01-{day + 1:02}") for day in (4, 5)]


# --- forks ------------------------------------------------------------------------------------------------------------
def with_view() -> Place:
    place = Place(
        orders(),
        below("shop.daily", "shop.orders"),
        reading("shop.shown", "shop.daily", kind=View()),
        reading("shop.totals", "shop.shown"),
        reading("shop.other", "raw.other"),
        sources={"raw.orders": january(31), "raw.other": january(1)},
    )
    place.build("2024-01-10")
    place.build("2024-01-10", "dev")
    place.catalog.sources["raw.orders"]["2024-01-04"] = "late"
    return place


def fork(process: Process, **options: str):
    days = {"start": "2024-01-04", "end": "2024-01-04", **options}
    return process.build("2024-01-10", "dev", restate=("shop.orders",), **days)


def shown_by_prod(place: Place) -> dict:
    return {name: rows for name, rows in place.catalog.everything().items() if "__dev" not in name}


def check_forked(place: Place, prod: dict) -> None:
    """Dev shows what a build from scratch shows, prod what it showed before."""
    fresh = Place(*place.project.models, sources=place.catalog.sources)
    fresh.build("2024-01-10")
    expected = fresh.catalog.everything()
    for name, rows in expected.items():
        schema, _, table = name.partition(".")
        assert place.catalog.rows(f"{schema}__dev.{table}") == rows
        assert place.catalog.rows(name) == prod[name]


def test_restating_in_dev_forks_what_it_shares_with_prod():
    place = with_view()
    prod, process = shown_by_prod(place), place.process()
    report = fork(process)
    assert written(process) == [
        ("shop.orders", "2024-01-04", "2024-01-05"),
        ("shop.daily", "2024-01-04", "2024-01-05"),
        ("shop.totals", "", ""),
    ]
    check_forked(place, prod)
    found = {step.node: step for step in report.plan.steps}
    assert found["shop.orders"].action == "seed_and_build"
    assert found["shop.orders"].physical.endswith("_2")
    assert found["shop.other"].action == "skip"
    assert place.pointers("dev") == place.pointers("prod")
    assert report.environment_status == "finalized"


def test_what_is_forked_once_is_not_forked_again():
    place = with_view()
    fork(place.process())
    place.catalog.sources["raw.orders"]["2024-01-05"] = "later still"
    report = fork(place.process(), start="2024-01-05", end="2024-01-05")
    assert not any(step.seed for step in report.plan.steps)
    assert not any(str(step.physical).endswith("_3") for step in report.plan.steps)
    assert place.build("2024-01-10", "dev").status == "nothing_to_do"
    assert place.build("2024-01-10").status == "nothing_to_do"


def test_forks_go_on_by_themselves():
    place = with_view()
    fork(place.process())
    process = place.process()
    process.run("2024-01-11", "dev")
    assert ("shop.orders", "2024-01-10", "2024-01-11") in written(process)
    assert [unit for unit, _ in place.rows("shop.orders")][-1] == "2024-01-09"
    assert [unit for unit, _ in place.rows("shop.orders", "dev")][-1] == "2024-01-10"


def test_what_prod_rewrites_while_dev_forks_it_is_not_half_of_the_fork():
    place = with_view()

    def restate_in_prod() -> None:
        place.catalog.sources["raw.orders"]["2024-01-07"] = "later"
        place.build("2024-01-10", restate=("shop.orders",), start="2024-01-07", end="2024-01-07")

    # The second lease that is taken is the one for the fork of `shop.daily`, once `shop.orders` was forked.
    fork(place.process({("write.taken", 2): restate_in_prod}))
    place.build("2024-01-10", "dev")
    days = {name: dict(place.rows(name, "dev"))["2024-01-07"] for name in ("shop.orders", "shop.daily")}
    assert days["shop.daily"] == f"daily:x<{days['shop.orders']}>"


def test_forcing_in_dev_forks_too():
    place = with_view()
    prod = shown_by_prod(place)
    place.process().build("2024-01-10", "dev", force=True)
    check_forked(place, prod)


@pytest.mark.parametrize(
    "point",
    [
        "seed.intent",
        "seed.decided",
        "write.decided",
        "write.published",
        "write.done",
        "promote.pointer",
        "promote.views",
        "write.intent",
        "write.written",
        "follow.recorded",
    ],
)
@pytest.mark.parametrize("occurrence", [1, 2])
def test_a_fork_that_is_killed_is_finished_by_the_next_command(point: str, occurrence: int):
    place = with_view()
    prod = shown_by_prod(place)
    try:
        fork(place.dying(point, occurrence))
    except Killed:
        place.clock.advance(LEASE_TIME)
    assert shown_by_prod(place) == prod
    fork(place.process())
    check_forked(place, prod)
    assert place.build("2024-01-10", "dev").status == "nothing_to_do"


# --- restatements that a model's own schedule asks for ----------------------------------------------------------------
def scheduled(count: int | None = 2) -> Place:
    policy = IncrementalPolicy(auto_restatement_cron="@weekly", auto_restatement_intervals=count)
    place = Place(
        orders(kind={"policy": policy}), below("shop.daily", "shop.orders"), sources={"raw.orders": january(31)}
    )
    place.build("2024-01-05")
    return place


def test_a_run_restates_the_last_units_once_the_schedule_ticked():
    place = scheduled()
    place.run("2024-01-06")
    place.catalog.sources["raw.orders"] |= {"2024-01-03": "too old", "2024-01-05": "late"}
    process = place.process()
    report = process.run("2024-01-07")
    assert written(process) == [
        ("shop.orders", "2024-01-05", "2024-01-07"),
        ("shop.daily", "2024-01-05", "2024-01-07"),
    ]
    assert {step.node: step.reason for step in report.plan.steps}["shop.orders"] == "restated"
    process = place.process()
    process.run("2024-01-08")
    assert written(process)[0] == ("shop.orders", "2024-01-07", "2024-01-08")


def test_without_a_number_of_units_all_of_them_are_restated():
    place = scheduled(None)
    process = place.process()
    process.run("2024-01-08")
    assert written(process)[0] == ("shop.orders", "2024-01-01", "2024-01-08")


def test_only_runs_of_the_baseline_follow_the_schedule():
    place = scheduled()
    process = place.process()
    process.build("2024-01-09")
    assert written(process)[0] == ("shop.orders", "2024-01-05", "2024-01-09")
