from __future__ import annotations

from datetime import datetime, timedelta, timezone
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.errors import BadSchedule, BadTime
from lamina.timeline.grain import Grain
from lamina.timeline.interval import Instant, Interval, Intervals

at = Instant.parse_iso

instants = st.datetimes(datetime(1900, 1, 1), datetime(2104, 1, 1)).map(Instant.of)
grains = st.sampled_from(list(Grain))


def between(start: str, end: str) -> Interval:
    return Interval(at(start), at(end))


def slow_next(grain: Grain, boundary: datetime) -> datetime:
    """The next boundary, by looking at the calendar one step at a time."""
    steps = {
        Grain.FIVE_MINUTE: timedelta(minutes=5),
        Grain.QUARTER_HOUR: timedelta(minutes=15),
        Grain.HALF_HOUR: timedelta(minutes=30),
        Grain.HOUR: timedelta(hours=1),
        Grain.DAY: timedelta(days=1),
    }
    if grain in steps:
        return boundary + steps[grain]
    day = boundary + timedelta(days=1)
    while day.day != 1 or (grain is Grain.YEAR and day.month != 1):
        day += timedelta(days=1)
    return day


def slow_boundaries(grain: Grain, around: Instant) -> list[Instant]:
    """Boundaries before and after a moment, from a boundary that is one for every grain."""
    moment = around.to_datetime()
    boundary = datetime(moment.year - 1, 1, 1, tzinfo=timezone.utc)
    if grain not in {Grain.MONTH, Grain.YEAR}:
        boundary = moment.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=1)
    found: list[datetime] = []
    while boundary <= moment or sum(Instant.of(boundary) > around for boundary in found) < 3:
        found.append(boundary)
        boundary = slow_next(grain, boundary)
    return [Instant.of(boundary) for boundary in found]


@given(grains, instants)
def test_floor_ceil_and_next_agree_with_the_calendar(grain: Grain, instant: Instant) -> None:
    boundaries = slow_boundaries(grain, instant)
    floor = max(boundary for boundary in boundaries if boundary <= instant)
    following = min(boundary for boundary in boundaries if boundary > instant)
    assert grain.floor(instant) == floor
    assert grain.next(instant) == following
    assert grain.ceil(instant) == (instant if floor == instant else following)
    assert grain.is_aligned(instant) == (floor == instant)
    assert grain.is_aligned(floor)
    assert grain.is_aligned(following)


@given(grains, instants, st.integers(0, 40))
def test_adding_units_to_a_boundary_is_going_to_the_next_one_so_often(grain: Grain, instant: Instant, n: int) -> None:
    start = grain.floor(instant)
    end = start
    for _ in range(n):
        end = grain.next(end)
    assert grain.add(start, n) == end
    assert grain.add(end, -n) == start


@given(grains, instants, st.integers(1, 400), st.integers(0, 10**12), st.integers(0, 10**12))
def test_count_and_units_agree_with_walking_from_boundary_to_boundary(
    grain: Grain, instant: Instant, length: int, before: int, after: int
) -> None:
    start = instant.plus(before % grain.smallest_micros)
    end = start.plus(length * grain.smallest_micros // 10 + after % grain.smallest_micros + 1)
    interval = Interval(start, end)
    walked = []
    boundary = grain.ceil(start)
    while grain.next(boundary) <= end:
        walked.append(Interval(boundary, grain.next(boundary)))
        boundary = grain.next(boundary)
    assert list(grain.units(interval)) == walked
    assert grain.count(interval) == len(walked)


@given(grains, instants, st.integers(1, 10**10), st.integers(1, 50), st.integers(1, 9))
def test_batches_partition_their_interval_at_boundaries(
    grain: Grain, start: Instant, extra: int, length: int, size: int
) -> None:
    interval = Interval(start, start.plus(length * grain.smallest_micros // 3 + extra % grain.smallest_micros + 1))
    batches = list(grain.split(interval, size))
    assert Intervals.of(batches) == Intervals.of([interval])
    assert all(earlier.end == later.start for earlier, later in pairwise(batches))
    assert all(grain.is_aligned(batch.end) for batch in batches[:-1])
    for batch in batches:
        widened = Interval(grain.floor(batch.start), grain.ceil(batch.end))
        assert grain.count(widened) <= size
    for batch in batches[:-1]:
        assert grain.count(Interval(grain.floor(batch.start), batch.end)) == size


@given(grains, instants, st.integers(1, 30), st.integers(1, 9))
def test_batches_of_whole_units_are_full_except_the_last(grain: Grain, instant: Instant, units: int, size: int) -> None:
    start = grain.floor(instant)
    counts = [grain.count(batch) for batch in grain.split(Interval(start, grain.add(start, units)), size)]
    assert sum(counts) == units
    assert all(count == size for count in counts[:-1])


@pytest.mark.parametrize(
    ("grain", "start", "end", "count"),
    [
        # Since midnight of yesterday, today at noon; and a day later.
        (Grain.HOUR, "2024-01-09", "2024-01-10T12:00:00", 36),
        (Grain.HOUR, "2024-01-09", "2024-01-11T12:00:00", 60),
        # Since midnight two days ago, today at noon; and a day later.
        (Grain.HOUR, "2024-01-08", "2024-01-10T12:00:00", 60),
        (Grain.HOUR, "2024-01-08", "2024-01-11T12:00:00", 84),
        (Grain.DAY, "2024-01-08", "2024-01-10T12:00:00", 2),
        (Grain.DAY, "2024-02-28", "2024-03-01", 2),
        (Grain.DAY, "2023-02-28", "2023-03-01", 1),
        (Grain.DAY, "2000-01-01", "2001-01-01", 366),
        (Grain.DAY, "1900-01-01", "1901-01-01", 365),
        (Grain.MONTH, "2024-01-31", "2024-03-31", 1),
        (Grain.MONTH, "2023-11-01", "2024-03-01", 4),
        (Grain.YEAR, "2020-01-01", "2024-12-31", 4),
        (Grain.YEAR, "2020-01-02", "2021-12-31T23:59:59", 0),
        (Grain.QUARTER_HOUR, "2024-01-01T00:01:00", "2024-01-01T00:44:00", 1),
        (Grain.HALF_HOUR, "2024-01-01T00:01:00", "2024-01-01T00:59:00", 0),
    ],
)
def test_whole_units_are_counted(grain: Grain, start: str, end: str, count: int) -> None:
    assert grain.count(between(start, end)) == count


def test_tomorrow_only_the_new_hours_are_missing() -> None:
    recorded = Intervals.of([between("2024-01-08", "2024-01-10T12:00:00")])
    asked = Intervals.of([between("2024-01-08", "2024-01-11T12:00:00")])
    missing = asked.minus(recorded)
    assert [Grain.HOUR.count(interval) for interval in missing] == [24]


@pytest.mark.parametrize(
    ("grain", "start", "count", "end"),
    [
        (Grain.MONTH, "2024-01-31T06:00:00", 1, "2024-02-29T06:00:00"),
        (Grain.MONTH, "2023-01-31", 1, "2023-02-28"),
        (Grain.MONTH, "2024-03-31", -1, "2024-02-29"),
        (Grain.MONTH, "2024-01-15", -13, "2022-12-15"),
        (Grain.YEAR, "2024-02-29", 1, "2025-02-28"),
        (Grain.YEAR, "2024-02-29", -4, "2020-02-29"),
        (Grain.DAY, "2024-02-28T23:59:59", 2, "2024-03-01T23:59:59"),
        (Grain.FIVE_MINUTE, "2024-01-01T00:01:00", -1, "2023-12-31T23:56:00"),
    ],
)
def test_an_instant_inside_a_unit_keeps_its_place(grain: Grain, start: str, count: int, end: str) -> None:
    assert grain.add(at(start), count) == at(end)


def test_a_ragged_interval_keeps_its_edges_when_split() -> None:
    interval = between("2024-01-01T06:00:00", "2024-01-04T12:00:00")
    assert [batch.to_pair() for batch in Grain.DAY.split(interval, 2)] == [
        ("2024-01-01T06:00:00Z", "2024-01-03T00:00:00Z"),
        ("2024-01-03T00:00:00Z", "2024-01-04T12:00:00Z"),
    ]


def test_a_batch_holds_at_least_one_unit() -> None:
    with pytest.raises(ValueError, match="at least one"):
        next(Grain.DAY.split(between("2024-01-01", "2024-01-02"), 0))


def test_half_a_century_of_five_minutes_costs_no_more_than_a_day() -> None:
    since_1970 = between("1970-01-01", "2024-01-01")
    assert Grain.FIVE_MINUTE.count(since_1970) == 19_723 * 288
    assert list(islice(Grain.FIVE_MINUTE.units(since_1970), 2))[1].to_pair() == (
        "1970-01-01T00:05:00Z",
        "1970-01-01T00:10:00Z",
    )
    assert next(Grain.FIVE_MINUTE.split(since_1970, 10**6)).start == since_1970.start
    # Ten thousand rounds would never end if any of these looked at each unit.
    held = Intervals.of([since_1970])
    for second in range(10_000):
        moment = since_1970.end.minus(second * 1_000_000 + 1)
        assert Grain.FIVE_MINUTE.count(Interval(since_1970.start, moment)) > 5_000_000
        assert held.covers(Interval(Grain.FIVE_MINUTE.floor(moment), moment.plus(1)))


def test_the_last_years_can_be_counted_but_not_left() -> None:
    end = at("9999-12-31T23:59:59.999999")
    assert Grain.YEAR.count(Interval(at("9998-01-01"), end)) == 1
    assert Grain.DAY.floor(end) == at("9999-12-31")
    for grain in Grain:
        with pytest.raises(BadTime):
            grain.next(end)
    with pytest.raises(BadTime):
        Grain.YEAR.add(at("0001-01-01"), -1)


@pytest.mark.parametrize("name", ["five_minute", "quarter_hour", "half_hour", "hour", "day", "month", "year"])
def test_every_unit_is_found_by_its_name_in_any_case(name: str) -> None:
    assert Grain.from_name(name) is Grain.from_name(f" {name.upper()} ") is Grain(name)


@pytest.mark.parametrize(
    ("name", "near"), [("dayy", "`day`"), ("5_minute", "`five_minute`"), ("week", "The units are")]
)
def test_an_unknown_unit_is_refused_with_the_nearest_one(name: str, near: str) -> None:
    with pytest.raises(BadSchedule) as refused:
        Grain.from_name(name)
    assert near in str(refused.value.hint)


def test_grains_are_compared_by_length() -> None:
    ordered = list(Grain)
    assert all(later.is_coarser_than(earlier) for earlier, later in pairwise(ordered))
    assert not Grain.DAY.is_coarser_than(Grain.DAY)
