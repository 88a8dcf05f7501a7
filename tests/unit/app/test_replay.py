"""Models that keep their history when they or what they read change: nothing is lost, and no run is done twice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from lamina.app.ports.events import Retried
from lamina.errors import EngineError, HistoryLost, NotYetSupported, TransientFailure
from lamina.graph.kinds import Full, IncrementalByUniqueKey, IncrementalPolicy, IncrementalUnmanaged
from lamina.graph.model import Model
from lamina.timeline.interval import Interval
from tests.kit.app import Killed, Place, Process, Running, january, sleeping, statuses
from tests.kit.engine import Fault, Row
from tests.kit.models import daily, model, ranges

NOON = "2024-01-{:02}T12:00:00Z"
APPEND = IncrementalUnmanaged()
KEPT_UPSERT = IncrementalByUniqueKey(unique_key=("ds",), policy=IncrementalPolicy(forward_only=True))
FORMATS = ["parquet", "delta", "iceberg"]


def parent(text: str) -> Model:
    return model("shop.menu", ["raw.menu"], query=f"SELECT ds, '{text}' AS x FROM raw.menu")


def history(kind: Any = APPEND, **settings: Any) -> Model:
    settings.setdefault("query", "SELECT ds, x FROM shop.menu")
    return model("shop.history", ["shop.menu"], kind=kind, **settings)


class Menu:
    """A project whose menu changes; what a run of the history gives is what the menu is at that time."""

    def __init__(self, kind: Any = APPEND, **settings: Any) -> None:
        self.kind, self.settings = kind, settings
        self.text = "first"
        self.place = Place(parent("first"), history(kind, **settings), sources={"raw.menu": january(1)})

    def change(self, text: str) -> None:
        self.text = text
        self.place.project.change(parent(text), history(self.kind, **self.settings))

    def compute(self, node: str, interval: Interval | None, sql: str) -> Iterable[Row]:
        return [("2024-01-01", self.text)]

    def process(self, point: str | None = None, occurrence: int = 1) -> Process:
        if point is None:
            return self.place.process(compute=self.compute)
        return self.place.dying(point, occurrence, compute=self.compute)

    def rows(self, environment: str = "prod") -> list[str]:
        return [text for _, text in self.place.rows("shop.history", environment)]


@pytest.mark.parametrize("table_format", FORMATS)
def test_a_history_goes_on_when_what_it_reads_changes(table_format: str):
    menu = Menu(table_format=table_format)
    menu.process().build(NOON.format(2))
    menu.change("second")
    report = menu.process().build(NOON.format(3))
    assert statuses(report) == {"shop.menu": "succeeded", "shop.history": "succeeded"}
    assert menu.rows() == ["first", "second"]
    assert menu.process().build(NOON.format(3)).status == "nothing_to_do"


def test_going_back_to_what_was_read_before_goes_on_all_the_same():
    menu = Menu()
    menu.process().build(NOON.format(2))
    for day, text in enumerate(("second", "first", "second"), 3):
        menu.change(text)
        menu.process().build(NOON.format(day))
    assert sorted(menu.rows()) == ["first", "first", "second", "second"]
    assert len(set(menu.place.pointers().values())) == 2


def test_a_table_that_no_run_has_filled_yet_has_no_history_to_keep():
    menu = Menu(query="SELECT ds, x FROM shop.menu WHERE ds BETWEEN @start_ds AND @end_ds", start="2024-01-01")
    menu.process().build("2024-01-01T06:00:00Z")
    assert menu.rows() == []
    menu.change("second")
    report = menu.process().build(NOON.format(2))
    assert statuses(report)["shop.history"] == "succeeded"
    assert menu.rows() == ["second"]
    assert menu.process().build(NOON.format(2)).status == "nothing_to_do"


def test_another_environment_goes_on_by_itself():
    menu = Menu()
    menu.process().build(NOON.format(2))
    menu.change("second")
    menu.process().build(NOON.format(3), "dev")
    assert (menu.rows(), menu.rows("dev")) == (["first"], ["first", "second"])
    menu.process().build(NOON.format(3))
    assert menu.rows() == ["first", "second"]


def points(menu: Menu) -> list[tuple[str, int]]:
    menu.process().build(NOON.format(2))
    menu.change("second")
    watched = menu.process()
    watched.build(NOON.format(3))
    return sorted((point, number + 1) for point, often in watched.stops.reached.items() for number in range(often))


@pytest.mark.parametrize("table_format", FORMATS)
@pytest.mark.parametrize("kind", [APPEND, KEPT_UPSERT])
def test_killed_anywhere_the_next_command_does_the_run_once(kind: Any, table_format: str):
    expected = ["first", "second"] if kind is APPEND else ["second"]
    found = points(Menu(kind, table_format=table_format))
    assert {"seed.intent", "seed.decided"} <= {point for point, _ in found}
    for point, occurrence in found:
        menu = Menu(kind, table_format=table_format)
        menu.process().build(NOON.format(2))
        menu.change("second")
        with pytest.raises(Killed):
            menu.process(point, occurrence).build(NOON.format(3))
        assert menu.rows() in (["first"], expected), point
        menu.place.clock.advance(200)
        assert menu.process().build(NOON.format(3)).status in {"succeeded", "nothing_to_do"}, point
        assert menu.rows() == expected, point
        assert menu.process().build(NOON.format(3)).status == "nothing_to_do", point


@pytest.mark.parametrize("table_format", FORMATS)
def test_the_copy_that_a_history_goes_on_with_is_made_again_where_that_fails_for_a_moment(table_format: str):
    menu = Menu(table_format=table_format)
    menu.process().build(NOON.format(2))
    menu.change("second")
    slow = menu.process()
    slow.engine.faults.append(Fault("create_generation", TransientFailure("slow down"), about="history", times=2))
    assert slow.build(NOON.format(3)).status == "succeeded"
    assert [(event.what, event.attempt) for event in slow.event(Retried)] == [
        ("the copy of shop.history", 1),
        ("the copy of shop.history", 2),
    ]
    assert menu.rows() == ["first", "second"]


def test_a_run_that_fails_leaves_readers_with_what_they_had():
    menu = Menu()
    menu.process().build(NOON.format(2))
    menu.change("second")
    broken = menu.process()
    broken.engine.faults.append(Fault("write", EngineError("no more space"), about="history"))
    assert broken.build(NOON.format(3)).status == "failed"
    assert menu.rows() == ["first"]
    assert menu.process().build(NOON.format(3)).status == "succeeded"
    assert menu.rows() == ["first", "second"]


def test_a_source_that_others_write_meanwhile_is_planned_for_anew():
    menu = Menu()
    menu.process().build(NOON.format(2))
    menu.change("second")
    first, sleep = sleeping(menu.place, "engine.prepare", compute=menu.compute)
    running = Running(lambda: first.build(NOON.format(3)))
    assert sleep.begun.wait(20)
    menu.process().build(NOON.format(3))
    sleep.over.set()
    assert running.end().error is None
    assert menu.rows() == ["first", "second"]


def test_recorded_time_goes_on_where_it_ends():
    query = "SELECT ds, x FROM shop.menu WHERE ds BETWEEN @start_ds AND @end_ds"
    menu = Menu(query=query, start="2024-01-01")
    menu.process().build(NOON.format(3))
    menu.change("second")
    report = menu.process().build(NOON.format(3))
    assert [step.replay for step in report.plan.steps] == ["full", "forward"]
    assert menu.rows() == ["first"]
    assert menu.place.covered("shop.history") == ranges(("2024-01-01", "2024-01-03"))
    menu.process().run(NOON.format(4))
    assert menu.rows() == ["first", "second"]
    assert menu.place.covered("shop.history") == ranges(("2024-01-01", "2024-01-04"))


def test_a_model_that_says_so_is_built_anew():
    menu = Menu(replace(APPEND, policy=IncrementalPolicy(disable_restatement=True)))
    menu.process().build(NOON.format(2))
    menu.change("second")
    report = menu.process().build(NOON.format(3))
    assert [notice.code for notice in report.plan.warnings] == ["LAM-WARN-016"]
    assert menu.rows() == ["second"]


def test_a_reset_that_was_killed_before_its_first_run_leaves_a_history_that_goes_on():
    query = "SELECT ds, x FROM shop.menu WHERE ds BETWEEN @start_ds AND @end_ds"
    menu = Menu(query=query, start="2024-01-01")
    menu.process().build(NOON.format(3))
    with pytest.raises(Killed):
        menu.process("write.intent").build(NOON.format(3), reset=("shop.history",))
    menu.place.clock.advance(200)
    assert menu.place.covered("shop.history").is_empty
    menu.change("second")
    menu.process().build(NOON.format(3))
    assert menu.rows() == ["first"]
    assert menu.place.covered("shop.history") == ranges(("2024-01-01", "2024-01-03"))
    menu.process().run(NOON.format(4))
    assert menu.rows() == ["first", "second"]


@pytest.mark.parametrize("request_", [{"force": True}, {"restate": ("shop.history",)}])
def test_no_request_but_a_reset_takes_what_only_earlier_runs_knew(request_: dict[str, Any]):
    query = "SELECT ds, x FROM raw.menu WHERE ds BETWEEN @start_ds AND @end_ds"
    made = model("shop.history", ["raw.menu"], kind=KEPT_UPSERT, query=query, start="2024-01-01")
    place = Place(made, sources={"raw.menu": january(31)})

    def process() -> Process:
        return place.process(compute=lambda node, interval, sql: place.catalog.sources["raw.menu"].items())

    process().build("2024-01-06")
    rows = place.rows("shop.history")
    place.catalog.sources["raw.menu"] = {"2024-01-31": "last"}
    for environment in ("prod", "dev"):
        if "restate" in request_:
            with pytest.raises(HistoryLost):
                process().build("2024-01-06", environment, **request_)
        else:
            assert process().build("2024-01-06", environment, **request_).results == {}
        assert place.rows("shop.history") == rows
    process().build("2024-01-06", reset=("shop.history",))
    assert place.rows("shop.history") == (("2024-01-31", "last"),)


# --- what the project says --------------------------------------------------------------------------------------------
def upserts(text: str, **settings: Any) -> Model:
    return model(
        "shop.keys",
        ["raw.orders"],
        kind=IncrementalByUniqueKey(unique_key=("x",)),
        query=f"SELECT ds, {text} FROM raw.orders",
        **settings,
    )


def test_the_projects_policy_is_for_the_own_change_of_models_that_do_not_say():
    place = Place(upserts("x"), sources={"raw.orders": january(3)})
    place.project.configure(replay_on_change="forward")
    place.build("2024-01-03")
    place.project.change(upserts("y"))
    assert [step.action for step in place.process().plan("2024-01-04").plan.steps] == ["seed_and_build"]
    place.project.change(upserts("y", replay_on_change="full"))
    assert [step.action for step in place.process().plan("2024-01-04").plan.steps] == ["build"]


def test_without_a_policy_of_the_project_a_changed_upsert_is_built_anew():
    place = Place(upserts("x"), sources={"raw.orders": january(3)})
    place.build("2024-01-03")
    place.project.change(upserts("y"))
    assert [step.action for step in place.process().plan("2024-01-04").plan.steps] == ["build"]


def test_the_projects_policy_says_nothing_about_models_that_are_only_reached():
    above = [model("shop.up", ["raw.orders"], query=f"SELECT ds, {text} FROM raw.orders") for text in "ab"]
    below = replace(upserts("x"), reads=("shop.up",), references={"shop.up": "shop.up"})
    place = Place(above[0], below, sources={"raw.orders": january(3)})
    place.project.configure(replay_on_change="forward")
    place.build("2024-01-03")
    place.project.change(above[1])
    actions = {str(step.node): step.action for step in place.process().plan("2024-01-04").plan.steps}
    assert actions == {"shop.up": "build", "shop.keys": "build"}


def test_the_projects_policy_never_rebuilds_in_silence_what_cannot_go_on():
    place = Place(
        model("shop.days", ["raw.orders"], kind=daily(), start="2024-01-01"), sources={"raw.orders": january(3)}
    )
    place.project.configure(replay_on_change="forward")
    place.build("2024-01-03")
    place.project.change(
        model("shop.days", ["raw.orders"], kind=daily(), start="2024-01-01", query="SELECT ds, y FROM raw.orders")
    )
    with pytest.raises(NotYetSupported):
        place.build("2024-01-04")


def asking(kind: Any, **settings: Any) -> list[str]:
    """What a first plan says of a model that asks to keep its history."""
    return said(model("shop.days", ["raw.orders"], kind=kind, start="2024-01-01", **settings))


def said(*models: Model, policy: str = "full", command: str = "plan") -> list[str]:
    place = Place(*models, sources={"raw.orders": january(3)})
    place.project.configure(replay_on_change=policy)
    if command == "run":
        place.build("2024-01-03")
    report = getattr(place.process(), command)("2024-01-03")
    return [notice.message for notice in report.plan.warnings if notice.code == "LAM-WARN-049"]


@pytest.mark.parametrize(
    ("kind", "settings", "words"),
    [
        (replace(daily(), policy=IncrementalPolicy(forward_only=True)), {}, "kind INCREMENTAL_BY_TIME_RANGE"),
        (daily(), {"replay_on_change": "forward"}, "kind INCREMENTAL_BY_TIME_RANGE"),
        (daily(), {"replay_on_change": "bounded-7d"}, "kind INCREMENTAL_BY_TIME_RANGE"),
        (KEPT_UPSERT, {"replay_on_change": "bounded-7d"}, "with `replay_on_change bounded-7d`"),
    ],
)
def test_a_policy_that_cannot_be_carried_out_is_said_before_anything_changes(
    kind: Any, settings: dict[str, Any], words: str
):
    (message,) = asking(kind, **settings)
    assert words in message


@pytest.mark.parametrize(
    ("kind", "settings"),
    [(daily(), {}), (daily(), {"replay_on_change": "full"}), (KEPT_UPSERT, {}), (APPEND, {}), (Full(), {})],
)
def test_nothing_is_said_of_policies_that_are_carried_out(kind: Any, settings: dict[str, Any]):
    assert asking(kind, **settings) == []


def test_the_projects_policy_is_said_once_for_all_models_that_cannot_follow_it():
    days = [model(f"shop.d{n}", ["raw.orders"], kind=daily(), start="2024-01-01") for n in range(3)]
    (message,) = said(*days, upserts("x"), policy="forward")
    assert "`shop.d0` and 2 more" in message
    (message,) = said(upserts("x"), history(query="SELECT ds, x FROM raw.orders"), policy="bounded-7d")
    assert "and 1 more" in message
    assert said(*days, policy="forward", command="run") == []


def test_a_table_that_is_made_anew_each_time_has_no_history_that_a_change_could_lose():
    place = Place(
        model("shop.whole", ["raw.orders"], replay_on_change="forward"),
        sources={"raw.orders": january(3)},
    )
    place.build("2024-01-03")
    place.project.change(
        model("shop.whole", ["raw.orders"], replay_on_change="forward", query="SELECT ds, 'y' AS x FROM raw.orders")
    )
    assert place.build("2024-01-03").status == "succeeded"
