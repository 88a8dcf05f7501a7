"""What models whose table is the sum of its runs make of rows that were rewritten above them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from lamina.app import application
from lamina.app.building import apply_plan
from lamina.graph.kinds import IncrementalByPartition, IncrementalByUniqueKey, IncrementalPolicy, IncrementalUnmanaged
from lamina.graph.model import Model
from lamina.graph.names import NodeName
from lamina.sql.lineage.input_windows import InputWindow, Offset
from lamina.timeline.interval import Interval
from tests.kit.app import LEASE_TIME, Killed, Place, Process, january, orders, statuses
from tests.kit.engine import Compute, FakeCatalog, Row
from tests.kit.models import model, ranges
from tests.unit.app.test_folding_kinds import _DAYS

UPSERT = IncrementalByUniqueKey(unique_key=("ds",))
ADDING = replace(UPSERT, when_matched=("WHEN MATCHED THEN UPDATE SET target.x = concat(target.x, source.x)",))
OWN_DAY = InputWindow(lower=Offset(base="start"), upper=Offset(base="end"))
LATEST = "shop.latest"


def below(kind: Any, query: str = "SELECT ds, x FROM shop.orders WHERE ds BETWEEN @start_ds AND @end_ds") -> Model:
    made = model(LATEST, ["shop.orders"], kind=kind, query=query, start="2024-01-01", partitioned_by=("ds",))
    return replace(made, windows={NodeName("shop.orders"): OWN_DAY})


def computed(catalog: FakeCatalog) -> Compute:
    """Rows of the source for the days that are asked for; the model below is given what the one above it has read."""

    def compute(node: str, interval: Interval | None, sql: str) -> Iterable[Row]:
        days = _DAYS.search(sql)
        rows = catalog.sources["raw.orders"].items()
        if interval is not None:
            first, last = (moment[:10] for moment in interval.to_pair())
            return [row for row in rows if first <= row[0] < last]
        return [row for row in rows if days is None or days[1] <= row[0] <= days[2]]

    return compute


def process(place: Place, point: str | None = None, occurrence: int = 1) -> Process:
    compute = computed(place.catalog)
    return place.process(compute=compute) if point is None else place.dying(point, occurrence, compute=compute)


def place_with(made: Model) -> Place:
    place = Place(orders(), made, sources={"raw.orders": january(31)})
    assert process(place).build("2024-01-10").status == "succeeded"
    return place


def restate(place: Place, worker: Process | None = None, **flags: Any) -> Any:
    flags = {"restate": ("shop.orders",), "start": "2024-01-02", "end": "2024-01-03"} | flags
    return (worker or process(place)).build("2024-01-10", **flags)


def change(place: Place) -> None:
    place.catalog.sources["raw.orders"]["2024-01-02"] = "late"


def runs(worker: Process) -> list[tuple[str, str]]:
    return [
        (event.interval.to_pair()[0][:10], event.interval.to_pair()[1][:10])
        for event in worker.events
        if type(event).__name__ == "BatchStarted" and event.node == LATEST
    ]


def told(report: Any) -> list[str]:
    return [notice.message for notice in report.plan.warnings if notice.code == "LAM-WARN-024"]


def test_an_upsert_goes_over_rewritten_time_once_more_in_the_same_command():
    place = place_with(below(UPSERT))
    change(place)
    worker = process(place)
    report = restate(place, worker)
    assert statuses(report) == {"shop.orders": "succeeded", LATEST: "succeeded"}
    step = next(step for step in report.plan.steps if step.node == LATEST)
    assert (step.reason, step.cause) == ("upstream_rewritten", "shop.orders")
    assert step.explanation.endswith(
        "rows that vanished above stay, and rows with the same keys that later runs brought are replaced"
    )
    assert runs(worker) == [("2024-01-02", "2024-01-03")]
    assert dict(place.rows(LATEST))["2024-01-02"] == "late"
    assert process(place).build("2024-01-10").status == "nothing_to_do"
    assert place.covered(LATEST) == ranges(("2024-01-01", "2024-01-10"))


def test_a_rewrite_that_changes_nothing_leaves_an_upsert_alone():
    place = place_with(below(UPSERT))
    worker = process(place)
    restate(place, worker)
    assert runs(worker) == []


def test_a_rewrite_is_followed_by_the_next_command_also_beside_new_time():
    place = place_with(below(UPSERT))
    change(place)
    restate(place, select=("shop.orders",))
    plan = process(place).plan("2024-01-10").plan
    step = next(step for step in plan.steps if step.node == LATEST)
    assert (step.action, step.reason, step.intervals) == (
        "build",
        "upstream_rewritten",
        ranges(("2024-01-02", "2024-01-03")),
    )
    worker = process(place)
    worker.run("2024-01-11")
    assert runs(worker) == [("2024-01-02", "2024-01-03"), ("2024-01-10", "2024-01-11")]
    assert process(place).run("2024-01-11").status == "nothing_to_do"


def test_a_run_over_new_time_does_not_forget_what_is_not_followed_yet():
    place = place_with(below(replace(UPSERT, when_matched=ADDING.when_matched)))
    change(place)
    restate(place, select=("shop.orders",))
    report = process(place).run("2024-01-11")
    assert len(told(report)) == 1


@pytest.mark.parametrize("occurrence", [1, 2])
@pytest.mark.parametrize(
    "point", ["write.intent", "write.decided", "write.published", "write.done", "follow.recorded", "write.released"]
)
def test_after_a_crash_the_next_command_brings_it_to_its_end(point: str, occurrence: int):
    place = place_with(below(UPSERT))
    change(place)
    try:
        restate(place, process(place, point, occurrence))
    except Killed:
        place.clock.advance(LEASE_TIME + 1)
    process(place).build("2024-01-10", restate=("shop.orders",), start="2024-01-02", end="2024-01-03")
    assert dict(place.rows(LATEST))["2024-01-02"] == "late"
    assert place.covered(LATEST) == ranges(("2024-01-01", "2024-01-10"))
    assert process(place).build("2024-01-10").status == "nothing_to_do"


@pytest.mark.parametrize(
    ("kind", "why", "command"),
    [
        (IncrementalUnmanaged(), "kind INCREMENTAL_UNMANAGED does each run once", "--reset shop.latest"),
        (IncrementalByPartition(), "kind INCREMENTAL_BY_PARTITION does each run once", "--reset shop.latest"),
        (
            replace(ADDING, policy=IncrementalPolicy(forward_only=True)),
            "rows would count twice",
            "--reset shop.latest",
        ),
        (ADDING, "rows would count twice", "--restate shop.latest"),
        (
            replace(UPSERT, when_matched=("WHEN MATCHED AND target.x <> source.x THEN DELETE",)),
            "or come back",
            "--restate shop.latest",
        ),
        (replace(UPSERT, merge_filter="source.x <> 'a1'"), "which would be there twice", "--restate shop.latest"),
        (
            replace(UPSERT, policy=IncrementalPolicy(disable_restatement=True)),
            "`disable_restatement` protects",
            "--reset shop.latest",
        ),
    ],
)
def test_what_must_not_run_twice_does_not_follow_and_says_so_once(kind: Any, why: str, command: str):
    place = place_with(below(kind))
    rows = place.rows(LATEST)
    change(place)
    assert told(restate(place, select=("shop.orders",))) == []
    for _ in range(2):
        report = process(place).plan("2024-01-10")
        (message,) = told(report)
        assert why in message
        assert command in message
        step = next(step for step in report.plan.steps if step.node == LATEST)
        assert (step.action, step.reason) == ("skip", "upstream_rewritten")
        assert "nothing changed" not in step.explanation
    report = process(place).build("2024-01-10")
    assert (report.status, len(told(report))) == ("nothing_to_do", 1)
    assert told(process(place).build("2024-01-10")) == []
    assert told(process(place).run("2024-01-11")) == []
    assert place.rows(LATEST)[: len(rows)] == rows


def test_the_command_that_rewrites_says_it_and_later_ones_do_not():
    place = place_with(below(IncrementalUnmanaged()))
    change(place)
    (message,) = told(restate(place))
    assert "is computed again by this plan" in message
    assert told(process(place).build("2024-01-10")) == []


def restate_the_sixth(place: Place) -> None:
    place.catalog.sources["raw.orders"]["2024-01-06"] = "late too"
    restate(place, select=("shop.orders",), start="2024-01-06", end="2024-01-06")


def overtaken(monkeypatch: pytest.MonkeyPatch, module: Any, happens: Callable[[], None]) -> None:
    """Have something happen between what a command tells and that it remembers it."""
    remember = module.remember_told

    def remember_later(*arguments: Any) -> None:
        monkeypatch.undo()
        happens()
        remember(*arguments)

    monkeypatch.setattr(module, "remember_told", remember_later)


def test_what_another_command_rewrites_while_one_tells_is_told_by_the_next(monkeypatch: pytest.MonkeyPatch):
    place = place_with(below(IncrementalUnmanaged()))
    change(place)
    restate(place, select=("shop.orders",))
    overtaken(monkeypatch, application, lambda: restate_the_sixth(place))
    (message,) = told(process(place).build("2024-01-10"))
    assert "2024-01-02" in message
    (message,) = told(process(place).build("2024-01-10"))
    assert "2024-01-02" not in message
    assert "2024-01-06" in message
    assert told(process(place).build("2024-01-10")) == []


def test_what_another_command_rewrites_after_one_that_rewrites_itself_is_told_by_the_next(
    monkeypatch: pytest.MonkeyPatch,
):
    place = place_with(below(IncrementalUnmanaged()))
    change(place)
    overtaken(monkeypatch, apply_plan, lambda: restate_the_sixth(place))
    assert len(told(restate(place))) == 1
    (message,) = told(process(place).build("2024-01-10"))
    assert "2024-01-06" in message
    assert "2024-01-02" not in message


def test_a_model_that_was_told_not_to_follow_is_not_mentioned():
    place = place_with(replace(below(IncrementalUnmanaged()), follow_rewrites=False))
    change(place)
    assert told(restate(place)) == []
    assert told(process(place).build("2024-01-10")) == []


# --- queries that say nothing about time ---
EVERYTHING = "SELECT ds, x FROM shop.orders"
SUMS = [
    IncrementalUnmanaged(),
    replace(IncrementalUnmanaged(), policy=IncrementalPolicy(forward_only=True)),
    UPSERT,
]


@pytest.mark.parametrize("kind", SUMS, ids=["append", "open append", "upsert"])
def test_without_time_a_rewrite_is_told_once_and_only_new_rows_bring_a_run(kind: Any):
    place = place_with(below(kind, EVERYTHING))
    rows = place.rows(LATEST)
    change(place)
    (message,) = told(restate(place))
    assert "its query says nothing about time" in message
    assert "2024-01-02T00:00:00Z, 2024-01-04T00:00:00Z" in message
    assert place.rows(LATEST) == rows
    for worker in (process(place), process(place)):
        report = worker.build("2024-01-10")
        assert (report.status, told(report)) == ("nothing_to_do", [])
    report = process(place).run("2024-01-11")
    assert statuses(report) == {"shop.orders": "succeeded", LATEST: "succeeded"}
    assert told(report) == []
    assert dict(place.rows(LATEST))["2024-01-02"] == "late"


@pytest.mark.parametrize("kind", SUMS, ids=["append", "open append", "upsert"])
def test_without_time_a_recorded_rewrite_is_told_until_a_command_has_said_it(kind: Any):
    place = place_with(below(kind, EVERYTHING))
    change(place)
    restate(place, select=("shop.orders",))
    for _ in range(2):
        report = process(place).plan("2024-01-10")
        (message,) = told(report)
        assert "which came out different after it was read for [2024-01-02T00:00:00Z" in message
        step = next(step for step in report.plan.steps if step.node == LATEST)
        assert (step.action, step.reason, step.cause) == ("skip", "upstream_rewritten", "shop.orders")
    assert len(told(process(place).build("2024-01-10"))) == 1
    assert told(process(place).build("2024-01-10")) == []


def test_without_time_what_others_rewrite_after_it_was_told_is_told_too(monkeypatch: pytest.MonkeyPatch):
    place = place_with(below(IncrementalUnmanaged(), EVERYTHING))
    change(place)
    overtaken(monkeypatch, apply_plan, lambda: restate_the_sixth(place))
    assert len(told(restate(place))) == 1
    (message,) = told(process(place).build("2024-01-10"))
    assert "2024-01-06" in message
    assert "2024-01-02" not in message


def test_new_time_that_comes_with_a_restatement_brings_a_run():
    place = place_with(below(UPSERT, EVERYTHING))
    change(place)
    report = process(place).build("2024-01-11", restate=("shop.orders",), start="2024-01-02")
    assert statuses(report)[LATEST] == "succeeded"
    assert told(report) == []
    assert process(place).build("2024-01-11").status == "nothing_to_do"


def test_what_is_rewritten_while_new_time_was_not_taken_in_yet_brings_one_run():
    place = place_with(below(IncrementalUnmanaged(), EVERYTHING))
    process(place).run("2024-01-11", select=("shop.orders",))
    change(place)
    restate(place, select=("shop.orders",))
    report = process(place).build("2024-01-11")
    assert (statuses(report), told(report)) == ({LATEST: "succeeded"}, [])
    assert process(place).build("2024-01-11").status == "nothing_to_do"


def test_a_rewrite_is_told_through_a_model_that_is_computed_whole():
    copied = model("shop.copied", ["shop.orders"], query=EVERYTHING)
    log = model(LATEST, ["shop.copied"], kind=IncrementalUnmanaged(), query="SELECT ds, x FROM shop.copied")
    place = Place(orders(), copied, log, sources={"raw.orders": january(31)})
    process(place).build("2024-01-10")
    rows = place.rows(LATEST)
    change(place)
    report = restate(place)
    assert statuses(report) == {"shop.orders": "succeeded", "shop.copied": "succeeded"}
    (message,) = told(report)
    assert "is computed again by this plan after it was read: its query" in message
    assert told(process(place).build("2024-01-10")) == []
    assert place.rows(LATEST) == rows
    place.catalog.sources["raw.orders"]["2024-01-10"] = "new"
    process(place).run("2024-01-11")
    assert len(place.rows(LATEST)) == 2 * len(rows)


def test_partitions_without_time_are_put_in_once_more():
    place = place_with(below(IncrementalByPartition(), EVERYTHING))
    rows = place.rows(LATEST)
    change(place)
    (message,) = told(restate(place))
    assert "what earlier runs made stays" in message
    assert dict(place.rows(LATEST)) == {**dict(rows), "2024-01-02": "late"}
    assert told(process(place).build("2024-01-10")) == []


def test_without_time_a_model_that_was_told_not_to_follow_is_left_alone_without_a_word():
    place = place_with(replace(below(IncrementalUnmanaged(), EVERYTHING), follow_rewrites=False))
    rows = place.rows(LATEST)
    change(place)
    assert told(restate(place)) == []
    assert process(place).build("2024-01-10").status == "nothing_to_do"
    assert place.rows(LATEST) == rows
    assert statuses(process(place).run("2024-01-11"))[LATEST] == "succeeded"


@pytest.mark.parametrize("point", ["write.intent", "write.decided", "write.done", "write.released"])
@pytest.mark.parametrize("is_given_again", [True, False])
def test_without_time_a_restatement_that_is_killed_never_brings_a_run(point: str, is_given_again: bool):
    place = place_with(below(IncrementalUnmanaged(), EVERYTHING))
    rows = place.rows(LATEST)
    change(place)
    with pytest.raises(Killed):
        restate(place, process(place, point, 1))
    place.clock.advance(LEASE_TIME + 1)
    reports = [restate(place) if is_given_again else process(place).build("2024-01-10")]
    reports.append(process(place).build("2024-01-10"))
    assert sum(len(told(report)) for report in reports) == 1
    assert place.rows(LATEST) == rows


def test_a_copy_for_another_environment_does_not_follow_either():
    place = place_with(below(UPSERT, EVERYTHING))
    rows = place.rows(LATEST)
    process(place).build("2024-01-10", "dev")
    change(place)
    report = process(place).build("2024-01-10", "dev", restate=("shop.orders",), start="2024-01-02", end="2024-01-03")
    step = next(step for step in report.plan.steps if step.node == LATEST)
    assert (step.reason, step.cause, len(told(report))) == ("upstream_rewritten", "shop.orders", 1)
    assert place.rows(LATEST, "dev") == rows
    report = process(place).build("2024-01-10", "dev")
    assert (report.status, told(report)) == ("nothing_to_do", [])
