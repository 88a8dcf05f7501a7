"""Models without intervals in `run`: once for each tick of their own cron, whatever changes above them in between."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from lamina.app.ports.loaded import LoadRequest
from lamina.app.report import Report
from lamina.graph.kinds import (
    Full,
    IncrementalByPartition,
    IncrementalByUniqueKey,
    IncrementalUnmanaged,
    ScdType2ByColumn,
    ScdType2ByTime,
)
from lamina.graph.model import Model
from lamina.timeline.grain import Grain
from lamina.timeline.interval import Interval
from tests.kit.app import Killed, Place, Process
from tests.kit.engine import Row
from tests.kit.models import daily, instant, model

CHILD = "shop.child"
KINDS = [
    Full(),
    IncrementalUnmanaged(),
    IncrementalUnmanaged(insert_overwrite=True),
    IncrementalByUniqueKey(unique_key=("ds",)),
    IncrementalByPartition(),
    ScdType2ByTime(unique_key=("ds",), updated_at_name="ds"),
    ScdType2ByColumn(unique_key=("ds",), columns=("x",)),
]
HOURS = [f"2024-01-{day:02}T{hour:02}:05:00Z" for day in (2, 3) for hour in range(24)]
"""Five past every hour of two days."""
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: type(kind).__name__)


def hourly_parent(**settings: Any) -> Model:
    kind = daily(partition_by_time_column=False)
    return model(
        "shop.events", ["raw.events"], kind=kind, cron="@hourly", grain=Grain.HOUR, start="2024-01-01", **settings
    )


def child(kind: Any, *parents: str, cron: str = "@daily", **settings: Any) -> Model:
    settings.setdefault("query", f"SELECT ds, x FROM {', '.join(parents)}")
    return model(CHILD, parents, kind=kind, cron=cron, partitioned_by=("ds",), **settings)


def hours(place: Place) -> Any:
    """An interval gives a row for its end; a whole build the newest row that it reads of each hour."""

    def compute(node: str, interval: Interval | None, sql: str) -> Iterable[Row]:
        if interval is not None:
            return [(interval.start.isoformat(), interval.end.isoformat())]
        return dict(sorted(place.catalog.rows_read(sql))).items() or [("2000-01-01", "none")]

    return compute


def place_of(*models: Model) -> Place:
    return Place(*models, sources={"raw.events": {"2024-01-01": "a"}})


def process(place: Place, point: str | None = None, occurrence: int = 1) -> Process:
    compute = hours(place)
    return place.process(compute=compute) if point is None else place.dying(point, occurrence, compute=compute)


def ran(report: Report, name: str = CHILD) -> bool:
    return name in report.results and report.results[name].status == "succeeded"  # type: ignore[index]


def times_run(place: Place, moments: Iterable[str], **options: Any) -> list[str]:
    """The moments at which `run` computed the child."""
    return [now for now in moments if ran(process(place).run(now, **options))]


def explanation(report: Report) -> tuple[str, str, str, str | None]:
    (step,) = (each for each in report.plan.steps if each.node == CHILD)
    return step.action, step.reason, step.explanation, step.cause


@every_kind
def test_below_an_hourly_parent_a_daily_model_runs_once_a_day(kind: Any):
    place = place_of(hourly_parent(), child(kind, "shop.events"))
    process(place).build("2024-01-01T12:30:00Z")
    assert times_run(place, HOURS) == ["2024-01-02T00:05:00Z", "2024-01-03T00:05:00Z"]


@every_kind
def test_below_an_unknown_table_a_daily_model_runs_once_a_day(kind: Any):
    place = place_of(hourly_parent(), child(kind, "raw.events"))
    process(place).build("2024-01-01T12:30:00Z")
    assert times_run(place, HOURS) == ["2024-01-02T00:05:00Z", "2024-01-03T00:05:00Z"]


@every_kind
def test_a_build_between_two_runs_counts_as_the_tick_that_has_passed(kind: Any):
    place = place_of(hourly_parent(), child(kind, "shop.events"))
    process(place).build("2024-01-01T12:30:00Z")
    assert not times_run(place, [f"2024-01-01T{hour}:05:00Z" for hour in range(13, 20)])
    assert ran(process(place).build("2024-01-01T20:30:00Z")), "a build does not wait for cron"
    assert process(place).build("2024-01-01T20:30:00Z").status == "nothing_to_do"
    assert process(place).run("2024-01-01T20:30:00Z").status == "nothing_to_do"
    assert ran(process(place).build("2024-01-02T00:30:00Z"))
    assert times_run(place, HOURS[1:25]) == ["2024-01-03T00:05:00Z"]


@every_kind
def test_what_waits_says_until_when_and_a_tick_that_was_missed_is_made_up_for(kind: Any):
    place = place_of(hourly_parent(), child(kind, "shop.events"))
    process(place).build("2024-01-01T12:30:00Z")
    assert not ran(process(place).run("2024-01-01T13:05:00Z"))
    report = process(place).run("2024-01-01T13:10:00Z")
    assert explanation(report) == (
        "wait",
        "upstream_changed",
        "waits for its cron: next tick 2024-01-02T00:00:00Z; `shop.events` above it changed",
        "shop.events",
    )
    assert (report.status, report.exit_code) == ("nothing_to_do", 0)
    assert times_run(place, HOURS[7:24]) == ["2024-01-02T07:05:00Z"], "nothing ran at midnight"


@every_kind
@pytest.mark.parametrize("point", ["write.intent", "write.written", "write.decided", "write.published"])
def test_killed_at_its_tick_the_next_run_makes_up_for_it_once(kind: Any, point: str):
    place = place_of(hourly_parent(), child(kind, "shop.events"))
    process(place).build("2024-01-01T12:30:00Z")
    place.clock.advance(200)
    for occurrence in (1, 2):
        try:
            process(place, point, occurrence).run("2024-01-02T00:05:00Z")
        except Killed:
            place.clock.advance(200)
    times = times_run(place, HOURS[1:24])
    assert len(times) <= 1
    found = place.store.load(LoadRequest(environments=("prod",))).facts.values()
    built_at = [facts.built_at for facts in found if facts.node == CHILD]
    assert built_at == [instant("2024-01-02T01:05:00Z" if times else "2024-01-02T00:05:00Z")]


@pytest.mark.parametrize(
    ("cron", "zone", "expected"),
    [
        ("@hourly", "UTC", HOURS),
        ("*/5 * * * *", "UTC", HOURS),
        ("0 6 * * *", "UTC", ["2024-01-02T06:05:00Z", "2024-01-03T06:05:00Z"]),
        ("0 6 * * *", "America/New_York", ["2024-01-02T11:05:00Z", "2024-01-03T11:05:00Z"]),
        ("0 */12 * * *", "UTC", [HOURS[0], HOURS[12], HOURS[24], HOURS[36]]),
        ("@weekly", "UTC", []),
        ("0 3 * * 3", "UTC", ["2024-01-03T03:05:00Z"]),
    ],
)
def test_every_schedule_counts_in_its_zone(cron: str, zone: str, expected: list[str]):
    place = place_of(hourly_parent(), child(IncrementalUnmanaged(), "shop.events", cron=cron, cron_tz=zone))
    process(place).build("2024-01-01T23:30:00Z")
    assert times_run(place, HOURS) == expected


def test_ignoring_cron_takes_in_what_changed_at_once():
    place = place_of(hourly_parent(), child(IncrementalUnmanaged(), "shop.events"))
    process(place).build("2024-01-01T12:30:00Z")
    assert times_run(place, HOURS[:3], ignore_cron=True) == HOURS[:3]


def test_an_unchanged_parent_brings_no_run_at_the_tick_and_a_late_one_brings_it_afterwards():
    place = place_of(hourly_parent(), child(Full(), "shop.events"))
    process(place).build("2024-01-02T12:30:00Z")
    late = [f"2024-01-03T{hour:02}:05:00Z" for hour in range(4)]
    assert not [now for now in late if ran(process(place).run(now, select=(CHILD,)))]
    assert times_run(place, [f"2024-01-03T{hour:02}:05:00Z" for hour in range(4, 24)]) == ["2024-01-03T04:05:00Z"]


def test_what_reads_a_daily_model_follows_it_and_not_what_is_above_it():
    grandchild = model("shop.top", [CHILD], kind=Full(), cron="@hourly", query=f"SELECT ds, x FROM {CHILD}")
    place = place_of(hourly_parent(), child(Full(), "shop.events"), grandchild)
    process(place).build("2024-01-01T12:30:00Z")
    reports = {now: process(place).run(now) for now in HOURS}
    assert [now for now, report in reports.items() if ran(report, "shop.top")] == [HOURS[0], HOURS[24]]


def test_a_model_that_asks_the_clock_runs_at_its_own_ticks():
    asking = child(Full(), query="SELECT 1 AS ds, current_timestamp() AS x")
    place = place_of(hourly_parent(), asking)
    process(place).build("2024-01-01T12:30:00Z")
    assert times_run(place, HOURS) == [HOURS[0], HOURS[24]]
    assert explanation(process(place).run("2024-01-03T23:05:00Z")) == (
        "skip",
        "unchanged",
        "nothing is known to have changed; waits for its cron: next tick 2024-01-04T00:00:00Z",
        None,
    )
