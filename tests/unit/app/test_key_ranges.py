"""Which folders of a parent a batch looks into: hidden keys of its derived window, and of nothing narrower."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.app.ports.published import Head, PartitionColumn, TableShape
from lamina.app.rendering.key_ranges import key_range, may_hold, unit_key
from lamina.app.rendering.models import Relations
from lamina.graph.model import Column
from lamina.graph.names import NodeName
from lamina.identity.naming import PhysicalName
from lamina.timeline.interval import FIRST_INSTANT, LAST_INSTANT, Instant, Interval
from tests.unit.reading.test_resolve import graph_of, model

NOW = Instant.parse_iso("2024-02-01")
UNITS = {"years": "%Y", "months": "%Y-%m", "days": "%Y-%m-%d", "hours": "%Y-%m-%d-%H"}
HOURLY = ", kind INCREMENTAL_BY_TIME_RANGE (time_column at), cron '@hourly', start '2020-01-01'"
DAILY = ", kind INCREMENTAL_BY_TIME_RANGE (time_column day), start '2020-01-01'"
BY_DAY = "`lamina_p0` >= '{}' AND `lamina_p0` <= '{}'"


def shape(unit: str = "days", time_type: str = "timestamp") -> TableShape:
    return TableShape(
        columns=(Column(name="id", type="bigint"), Column(name="At", type=time_type)),
        partition_columns=(PartitionColumn(name="lamina_p0", type="string", expression=unit_key(unit, "At")),),
    )


def instants() -> st.SearchStrategy[Instant]:
    return st.integers(0, 3 * 366 * 24 * 60).map(
        lambda minutes: Instant.of(datetime(2022, 12, 1, tzinfo=timezone.utc) + timedelta(minutes=minutes))
    )


# --- ranges -----------------------------------------------------------------------------------------------------------
@given(moment=instants(), begin=st.none() | instants(), end=st.none() | instants(), unit=st.sampled_from(list(UNITS)))
def test_the_key_of_every_row_of_a_stretch_is_in_its_range(
    moment: Instant, begin: Instant | None, end: Instant | None, unit: str
) -> None:
    condition = key_range(shape(unit), "at", begin, end)
    assert (condition is None) == (begin is None and end is None)
    key = moment.to_datetime().strftime(UNITS[unit])
    bounds = [part.split(" ") for part in (condition or "").split(" AND ") if part]
    is_in = all(key >= text.strip("'") if sign == ">=" else key <= text.strip("'") for _, sign, text in bounds)
    assert may_hold(shape(unit), "at", begin, end)((key,)) == is_in
    if (begin is None or begin <= moment) and (end is None or moment < end):
        assert is_in
    # No unit further out than the one that a bound lies in.
    if begin is not None and moment.plus(366 * 86_400 * 1_000_000) < begin:
        assert not is_in


def test_partitions_by_a_date_are_told_by_their_keys_and_others_may_hold_anything() -> None:
    begin, end = Instant.parse_iso("2024-01-31"), Instant.parse_iso("2024-02-01")
    place = PartitionColumn(name="place", type="string")
    by_day = TableShape(
        columns=(Column(name="day", type="date"), Column(name="place", type="string")),
        partition_columns=(place, PartitionColumn(name="day", type="date")),
    )
    is_read = may_hold(by_day, "day", begin, end)
    days = ("2024-01-30", "2024-01-31", "2024-02-01", None)
    assert [is_read(("Oslo", day)) for day in days] == [False, True, False, False]
    assert all(may_hold(by_day, "day", None, None)(("Oslo", day)) for day in days)
    assert may_hold(replace(by_day, partition_columns=(place,)), "day", begin, end)(("Oslo",))


def test_a_stretch_that_ends_at_midnight_does_not_reach_the_next_day() -> None:
    begin, end = Instant.parse_iso("2024-01-31"), Instant.parse_iso("2024-02-01")
    assert key_range(shape(), "at", begin, end) == BY_DAY.format("2024-01-31", "2024-01-31")


def test_the_ends_of_time_have_keys() -> None:
    assert key_range(shape(), "at", FIRST_INSTANT, LAST_INSTANT) == BY_DAY.format("0001-01-01", "9999-12-31")
    assert key_range(shape(), "at", None, FIRST_INSTANT) == "`lamina_p0` <= '0001-01-01'"


@pytest.mark.parametrize(
    "laid_out",
    [
        shape(time_type="string"),
        TableShape(columns=shape().columns),
        TableShape(
            columns=shape().columns,
            partition_columns=(PartitionColumn(name="lamina_p0", type="string", expression=unit_key("days", "seen")),),
        ),
    ],
    ids=["text", "no partitions", "the day of another column"],
)
def test_keys_that_are_not_made_of_the_time_say_nothing(laid_out: TableShape) -> None:
    assert key_range(laid_out, "at", NOW, NOW) is None


# --- in queries -------------------------------------------------------------------------------------------------------
def rendered(query: str, *, more: str = DAILY, interval: tuple[str, str] = ("2024-01-05", "2024-01-06")) -> str:
    files = {
        "events": model("shop.events", "SELECT id, at FROM raw.events WHERE at BETWEEN @start_dt AND @end_dt", HOURLY),
        "seen": model("shop.seen", "SELECT * FROM shop.events", ", kind VIEW"),
        "part": model("shop.part", "SELECT * FROM shop.seen", ", kind EMBEDDED"),
        "late": model(
            "shop.late", "SELECT * FROM shop.events WHERE @IF(@execution_ds > '2020-01-01', true, false)", ", kind VIEW"
        ),
        "reader": model("shop.reader", query, more),
    }
    physical = PhysicalName("shop__lamina.events__v_0123456789abcdef")
    head = Head(physical=physical, sequence=1, generation=f"{physical}__g_1", attempt=1, shape=shape())
    graph = graph_of(files)
    relations = Relations(models=graph.models, heads={NodeName("shop.events"): head})
    return relations.query(graph.models[NodeName("shop.reader")], Interval.from_pair(interval), NOW)


FILTERED = "WHERE at BETWEEN @start_dt AND @end_dt"
COUNTED = "SELECT to_date(at) AS day, count(*) AS n FROM {} {} GROUP BY 1"
RANGES = {
    "its own day": (COUNTED.format("shop.events", FILTERED), BY_DAY.format("2024-01-05", "2024-01-05")),
    "a week back": (
        COUNTED.format("shop.events", "WHERE at >= @start_dt - INTERVAL 6 DAYS AND at <= @end_dt"),
        BY_DAY.format("2023-12-30", "2024-01-05"),
    ),
    "no end": (COUNTED.format("shop.events", "WHERE at >= @start_dt"), "`lamina_p0` >= '2024-01-05'"),
    "no beginning": (COUNTED.format("shop.events", "WHERE at <= @end_dt"), "`lamina_p0` <= '2024-01-05'"),
    "through a view and an embedded model": (
        COUNTED.format("shop.part", FILTERED),
        BY_DAY.format("2024-01-05", "2024-01-05"),
    ),
}


@pytest.mark.parametrize(("query", "expected"), RANGES.values(), ids=RANGES)
def test_a_batch_reads_the_folders_of_its_window(query: str, expected: str) -> None:
    assert f"FROM `shop__lamina`.`events__v_0123456789abcdef__g_1` WHERE {expected})" in rendered(query)


@pytest.mark.parametrize(
    "query",
    [
        COUNTED.format("shop.events", ""),
        COUNTED.format("shop.events", "WHERE at <= @end_dt OR at IS NULL"),
        f"{COUNTED.format('shop.events', FILTERED)} UNION ALL {COUNTED.format('shop.late', '')}",
    ],
    ids=["no filter", "rows without a time", "and more through a view"],
)
def test_a_batch_that_reads_everything_is_not_narrowed(query: str) -> None:
    assert "lamina_p0" not in rendered(query)


def test_a_window_of_whole_days_says_nothing_about_a_part_of_one() -> None:
    query = COUNTED.format("shop.events", "WHERE to_date(at) BETWEEN @start_ds AND @end_ds")
    noon = ("2024-01-05T12:00:00", "2024-01-05T13:00:00")
    assert BY_DAY.format("2024-01-05", "2024-01-05") in rendered(query)
    assert "lamina_p0" not in rendered(query, interval=noon)
    hourly = HOURLY.replace("at)", "day)")
    assert BY_DAY.format("2024-01-05", "2024-01-06") in rendered(query, more=hourly, interval=noon)
