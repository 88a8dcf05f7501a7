"""Signals: who is asked about what, what their answers hold back, and what comes of wrong ones."""

from __future__ import annotations

import pytest

from lamina.app.planning.signals import plan_with_signals
from lamina.app.requests import PlanRequest
from lamina.errors import JavaMissing, NotYetSupported, SignalFailed
from lamina.graph.kinds import View
from lamina.planning.inputs import Flags
from lamina.planning.plan import make_plan
from lamina.project.python.recorded_signals import ask_recorded_signal
from lamina.timeline.grain import Grain
from lamina.timeline.interval import EMPTY
from tests.kit.app import Place, january, orders, reading, statuses
from tests.kit.models import World, daily, instant, model, ranges
from tests.kit.signals import FILE, Answers, named, recorded


def day(number: int) -> str:
    return f"2024-01-{number:02}"


def days(first: int, last: int) -> str:
    return str(ranges((day(first), day(last + 1))).ranges[0])


def steps(plan):
    return {step.node: step for step in plan.steps}


def waits(step) -> list[tuple[str, str]]:
    return [(waiting.name, str(waiting.interval)) for waiting in step.waiting_for]


def no_session():
    raise AssertionError("Spark was started")


def decide(world: World, now: str, answers: Answers, **options):
    return plan_with_signals(world.inputs(now, **options), answers, no_session)


def source(*signals: str, **settings):
    return model(
        "shop.orders",
        ["raw.orders"],
        kind=daily(**settings.pop("kind", {})),
        start=day(1),
        signals=tuple(named(name) for name in signals),
        **settings,
    )


# --- asking -----------------------------------------------------------------------------------------------------------
def test_a_signal_is_asked_once_about_a_contiguous_range():
    answers = Answers()
    plan = decide(World(source("ready")), day(6), answers)

    assert answers.asked == [("shop.orders", "ready", days(1, 5))]
    assert steps(plan)["shop.orders"].intervals == ranges((day(1), day(6)))
    assert waits(steps(plan)["shop.orders"]) == []


def test_every_gap_is_a_range_of_its_own():
    world = World(source("ready"))
    world.carry_out(make_plan(world.inputs(day(6), flags=Flags(start=day(3), end=day(3)))))
    answers = Answers()
    decide(world, day(6), answers)

    assert answers.asked == [("shop.orders", "ready", days(1, 2)), ("shop.orders", "ready", days(4, 5))]


def test_nobody_is_asked_when_nothing_could_be_processed():
    world = World(source("ready"))
    world.carry_out(make_plan(world.inputs(day(6))))
    answers = Answers()

    assert not decide(world, day(6), answers).has_work
    assert answers.asked == []


def test_a_model_without_work_or_outside_the_selection_is_not_asked():
    answers = Answers()
    world = World(source("ready"), model("shop.other", ["raw.x"]))
    decide(world, day(6), answers, flags=Flags(select=("shop.other",)))

    assert answers.asked == []


def test_a_part_that_is_not_released_waits_for_the_signal():
    plan = decide(World(source("ready")), day(6), Answers(ready=ranges((day(1), day(3)), (day(4), day(5)))))
    step = steps(plan)["shop.orders"]

    assert (step.action, step.intervals) == ("build", ranges((day(1), day(3)), (day(4), day(5))))
    assert waits(step) == [("signal:ready", days(3, 3)), ("signal:ready", days(5, 5))]
    assert f"signal `ready` to release {days(3, 3)} and 1 more ranges" in step.explanation


def test_what_is_held_back_completely_waits_with_a_table_that_has_no_rows():
    plan = decide(World(source("ready")), day(6), Answers(ready=EMPTY))
    step = steps(plan)["shop.orders"]

    assert (step.action, step.intervals) == ("wait", EMPTY)
    assert "signal `ready` to release" in step.explanation
    assert step.makes_table
    assert "shop.orders" in plan.pointers


def test_each_signal_narrows_what_the_one_before_left():
    answers = Answers(first=ranges((day(1), day(3)), (day(4), day(6))), second=ranges((day(2), day(5))))
    step = steps(decide(World(source("first", "second", "third")), day(6), answers))["shop.orders"]

    assert answers.asked == [
        ("shop.orders", "first", days(1, 5)),
        ("shop.orders", "second", days(1, 2)),
        ("shop.orders", "second", days(4, 5)),
        ("shop.orders", "third", days(2, 2)),
        ("shop.orders", "third", days(4, 4)),
    ]
    assert step.intervals == ranges((day(2), day(3)), (day(4), day(5)))
    assert waits(step) == [
        ("signal:first", days(3, 3)),
        ("signal:second", days(1, 1)),
        ("signal:second", days(5, 5)),
    ]


def test_what_a_parent_holds_back_holds_its_children_back():
    child = model("shop.child", ["shop.orders"], kind=daily(), start=day(1))
    found = steps(decide(World(source("ready"), child), day(6), Answers(ready=ranges((day(1), day(3))))))

    assert found["shop.child"].intervals == ranges((day(1), day(3)))
    assert [name for name, _ in waits(found["shop.child"])] == ["shop.orders"]


def test_a_model_below_is_asked_only_about_what_its_parents_will_cover():
    child = model("shop.child", ["shop.orders"], kind=daily(), start=day(1), signals=(named("also"),))
    answers = Answers(ready=ranges((day(1), day(3))))
    decide(World(source("ready"), child), day(6), answers)

    assert answers.asked == [("shop.orders", "ready", days(1, 5)), ("shop.child", "also", days(1, 2))]


def test_a_model_that_reads_its_own_past_leaves_no_unit_out():
    own = model("shop.sums", ["raw.x", "shop.sums"], kind=daily(), start=day(1), signals=(named("ready"),))
    answers = Answers(ready=ranges((day(1), day(3)), (day(4), day(6))))
    step = steps(decide(World(own), day(6), answers))["shop.sums"]

    assert step.intervals == ranges((day(1), day(3)))
    assert waits(step) == [("signal:ready", days(3, 5))]


def test_lookback_goes_along_with_what_is_released_and_never_with_what_waits():
    world = World(source("ready", kind={"lookback": 2}))
    world.carry_out(make_plan(world.inputs(day(6))))
    released = decide(world, day(8), Answers(ready=ranges((day(6), day(7)))))
    held = decide(world, day(8), Answers(ready=EMPTY))
    later = decide(world, day(8), Answers(ready=ranges((day(7), day(8)))))

    assert steps(released)["shop.orders"].intervals == ranges((day(4), day(7)))
    assert steps(held)["shop.orders"].intervals == EMPTY
    assert steps(later)["shop.orders"].intervals == ranges((day(5), day(6)), (day(7), day(8)))
    assert waits(steps(later)["shop.orders"]) == [("signal:ready", days(6, 6))]


def test_a_restated_range_is_asked_about_too():
    world = World(source("ready"))
    world.carry_out(make_plan(world.inputs(day(6))))
    answers = Answers(ready=ranges((day(2), day(3))))
    flags = Flags(restate=("shop.orders",), start=day(2), end=day(3))
    step = steps(decide(world, day(6), answers, flags=flags))["shop.orders"]

    assert answers.asked == [("shop.orders", "ready", days(2, 3))]
    assert step.intervals == ranges((day(2), day(3)))
    assert waits(step) == [("signal:ready", days(3, 3))]


def test_asking_about_five_minutes_since_1970_costs_nothing():
    long = model(
        "shop.ticks",
        ["raw.x"],
        kind=daily(),
        start="1970-01-01",
        cron="*/5 * * * *",
        grain=Grain.FIVE_MINUTE,
        signals=(named("ready"),),
    )
    counts = []

    def latest_is_late(question):
        counts.append(len(question.units))
        return ranges(("1970-01-01", "2023-12-31T23:55:00Z"))

    step = steps(decide(World(long), "2024-01-01", Answers(ready=latest_is_late)))["shop.ticks"]

    assert counts == [5_680_224]
    assert waits(step) == [("signal:ready", "[2023-12-31T23:55:00Z, 2024-01-01T00:00:00Z)")]


@pytest.mark.parametrize("kind", [None, View()])
def test_signals_on_models_without_intervals_are_refused(kind):
    whole = model("shop.all", ["raw.x"], kind=kind, signals=(named("ready"),))

    with pytest.raises(NotYetSupported, match="signals"):
        decide(World(whole), day(6), Answers())


# --- with recorded code -----------------------------------------------------------------------------------------------
UNTIL = "return [pair for pair in batch if pair[1].day <= day]"


def shop(*signals, **settings) -> Place:
    return Place(
        orders(signals=signals, **settings),
        reading("shop.daily", "shop.orders", kind=daily(), partitioned_by=("ds",), start=day(1)),
        reading("shop.other", "raw.orders"),
        sources={"raw.orders": january(31)},
    )


def until(last: int):
    return recorded("arrived", UNTIL, parameters="batch, day", day=last)


def test_a_build_does_what_is_released_and_the_rest_when_it_is():
    place = shop(until(3))
    report = place.build(day(6))

    assert (report.status, report.exit_code) == ("succeeded", 0)
    assert place.covered("shop.orders") == ranges((day(1), day(3)))
    assert place.covered("shop.daily") == ranges((day(1), day(3)))

    place.project.change(orders(signals=(until(9),)))
    again = place.build(day(6))
    assert [step.change for step in again.plan.steps if step.node == "shop.orders"] == ["metadata"]
    assert place.covered("shop.orders") == ranges((day(1), day(6)))
    assert place.covered("shop.daily") == ranges((day(1), day(6)))


def test_a_run_asks_the_recorded_code():
    place = shop(
        recorded("arrived", "return [pair for pair in batch if pair[1] <= context.execution_time - timedelta(days=2)]")
    )
    place.build(day(4))
    assert place.covered("shop.orders") == ranges((day(1), day(2)))

    place.project.problem = SignalFailed("the files are not read")
    assert place.run(day(7)).status == "succeeded"
    assert place.covered("shop.orders") == ranges((day(1), day(5)))


def test_a_changed_signal_computes_nothing_again():
    place = shop(recorded("ready", "return True"))
    place.build(day(4))
    place.project.change(orders(signals=(recorded("ready", "return batch[:1]"),)))
    process = place.process()
    report = process.build(day(4))

    assert process.engine.writes == []
    assert {step.action for step in report.plan.steps if step.node == "shop.orders"} == {"metadata"}


def test_a_changed_signal_is_recorded_even_when_it_still_holds_everything_back():
    place = shop(until(3))
    place.build(day(6))
    place.project.change(orders(signals=(recorded("arrived", "return context.execution_time.day > 8"),)))
    place.build(day(6))
    assert place.covered("shop.orders") == ranges((day(1), day(3)))

    place.run(day(9))
    assert place.covered("shop.orders") == ranges((day(1), day(9)))


def test_nothing_to_do_because_of_a_signal_is_no_failure():
    place = shop(until(3))
    place.build(day(6))
    report = place.run(day(6))
    step = next(step for step in report.plan.steps if step.node == "shop.orders")

    assert (report.status, report.exit_code, step.action) == ("nothing_to_do", 0, "wait")
    assert waits(step) == [("signal:arrived", days(3, 5))]


def test_intervals_say_which_signal_is_waited_for():
    place = shop(until(3))
    place.build(day(6))
    request = PlanRequest(command="run", now=instant(day(6)))
    found = place.process().application().intervals("shop.orders", request)

    assert found.covered == ranges((day(1), day(3)))
    assert found.waiting == ranges((day(3), day(6)))
    assert found.waiting_for == (
        {"name": "signal:arrived", "interval": [f"{day(3)}T00:00:00Z", f"{day(6)}T00:00:00Z"]},
    )
    assert "signal `arrived`" in found.explanation


def test_what_a_signal_prints_does_not_reach_the_result(capsys):
    shop(recorded("ready", "print('asked')\nreturn True")).build(day(3))

    assert capsys.readouterr() == ("", "asked\n")


@pytest.mark.parametrize(
    "body",
    [
        "return True",
        "return batch",
        "return list(batch)",
        "return (pair for pair in batch)",
        "return [(batch.start, batch.end)]",
        "return [list(pair) for pair in batch]",
        "return [(start.replace(tzinfo=None), end.replace(tzinfo=None)) for start, end in batch]",
        "return [(a.astimezone(timezone(timedelta(hours=5))), b) for a, b in reversed(batch)]",
        "return batch[0:2] if len(batch) == 2 else False",
    ],
)
def test_all_can_be_said_in_several_ways(body):
    place = shop(recorded("ready", body))
    place.build(day(3))

    assert place.covered("shop.orders") == ranges((day(1), day(3)))


@pytest.mark.parametrize(
    ("body", "said", "line"),
    [
        ("if batch:\n    raise KeyError('no table')", "raised `KeyError`", 7),
        ("import sys\nsys.exit(3)", "raised `SystemExit`: 3", 7),
        ("for pair in batch:\n    yield pair\n    1 / 0", "raised `ZeroDivisionError`", 8),
        ("return None", "answered `None`, expected True, False", 4),
        ("return 'yes'", "answered `'yes'`, expected True, False", 4),
        ("return 1", "answered `1`, expected True, False", 4),
        ("return [1]", "answered a list with `1`", 4),
        ("return ['ab']", "answered a list with `'ab'`", 4),
        ("return [(batch.start.date(), batch.end)]", "answered a list with `(datetime.date", 4),
        ("return [(batch.end, batch.start)]", "answered the empty interval", 4),
        ("return [(batch.start - timedelta(days=1), batch.end)]", "which is not made of units", 4),
        ("return [(batch.start, batch.start + timedelta(hours=1))]", "which is not made of units", 4),
    ],
)
def test_a_failing_signal_stops_its_model_and_what_reads_it_and_nothing_else(body, said, line):
    place = shop(recorded("ready", body))
    report = place.build(day(3))
    found = report.results["shop.orders"].error

    assert (report.status, report.exit_code) == ("failed", 1)
    assert statuses(report) == {"shop.orders": "failed", "shop.other": "succeeded"}
    assert found.code == "LAM-PLAN-010"
    assert said in found.message
    assert "signal `ready` of `shop.orders`" in found.message
    assert (found.location.file, found.location.line) == (FILE, line)
    assert (found.node, found.interval) == ("shop.orders", (f"{day(1)}T00:00:00Z", f"{day(3)}T00:00:00Z"))


def test_a_dry_plan_names_the_failure_too():
    place = shop(recorded("ready", "return None"))
    report = place.process().plan(day(3))
    document = report.to_dict()
    node = next(node for node in document["nodes"] if node["name"] == "shop.orders")

    assert (document["status"], report.exit_code) == ("failed", 1)
    assert node["error"]["code"] == "LAM-PLAN-010"
    assert node["action"] == "wait"


def test_a_failure_with_nothing_else_to_do_is_a_failure():
    place = shop(recorded("ready", "return batch.start.day < 3 or None"))
    assert place.build(day(3)).status == "succeeded"
    report = place.run(day(4), select=("shop.orders",))

    assert (report.status, report.exit_code) == ("failed", 1)
    assert place.covered("shop.orders") == ranges((day(1), day(3)))
    assert place.unsettled().is_empty


def test_a_helper_that_fails_is_named_by_its_own_line():
    call = recorded(
        "ready", "import rules\nreturn rules.check(batch)", helpers={"rules": "def check(b):\n    return b.x\n"}
    )
    found = shop(call).build(day(3)).results["shop.orders"].error

    assert (found.location.file, found.location.line) == ("rules.py", 2)


def test_variables_and_arguments_reach_the_function():
    call = recorded(
        "ready",
        "return context.var('LAG') == 2 and context.var('none', 7) == 7 and extra == {'days': [1]}",
        parameters="batch, context, **extra",
        variables={"lag": 2},
        days=[1],
    )
    place = shop(call)
    place.build(day(3))

    assert place.covered("shop.orders") == ranges((day(1), day(3)))


def test_spark_is_not_started_to_ask():
    process = shop(recorded("ready", "return True")).process()
    process.plan(day(3))

    assert process.engine.calls["prepare"] == 0


def test_a_signal_gets_a_session_when_it_touches_it():
    started = []

    def session() -> str:
        started.append("spark")
        return "session"

    world = World(orders(signals=(recorded("ready", "return context.spark == 'session' and batch[:1]"),)))
    plan = plan_with_signals(world.inputs(day(3)), ask_recorded_signal, session)

    assert started == ["spark"]
    assert steps(plan)["shop.orders"].intervals == ranges((day(1), day(2)))


def test_spark_that_does_not_start_is_the_failure_of_the_signal():
    def session() -> str:
        raise JavaMissing("Java was not found", hint="install Java")

    world = World(orders(signals=(recorded("ready", "context.spark"),)))
    (error,) = plan_with_signals(world.inputs(day(3)), ask_recorded_signal, session).failures.values()

    assert error.message == "signal `ready` of `shop.orders` failed: Java was not found"
    assert (error.hint, error.location.line) == ("install Java", 6)
