from __future__ import annotations

from datetime import datetime, timedelta, timezone
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.errors import BadTime
from lamina.timeline.interval import EMPTY, Instant, Interval, Intervals

at = Instant.parse_iso


def between(start: str, end: str) -> Interval:
    return Interval(at(start), at(end))


# --- instants --------------------------------------------------------------------------------------------------------
moments = st.datetimes(timezones=st.just(timezone.utc))


@given(moments)
def test_an_instant_comes_back_from_a_datetime_and_from_its_text(moment: datetime) -> None:
    instant = Instant.of(moment)
    assert instant.to_datetime() == moment
    assert Instant.parse_iso(instant.isoformat()) == instant


@given(moments, moments)
def test_instants_order_like_datetimes(one: datetime, other: datetime) -> None:
    first, second = Instant.of(one), Instant.of(other)
    assert (first < second, first <= second, first > second, first >= second, first == second) == (
        one < other,
        one <= other,
        one > other,
        one >= other,
        one == other,
    )
    assert (hash(first) == hash(second)) or first != second


def test_an_instant_is_no_other_type() -> None:
    assert Instant(5) != 5
    assert len({Instant(5), Instant(5), Instant(6)}) == 2


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("1970-01-01", 0),
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01t00:00:01z", 1_000_000),
        ("1970-01-01 00:01", 60_000_000),
        ("1970-01-01T02:00:00+02:00", 0),
        ("1970-01-01T02:00:00 +0200", 0),
        ("1969-12-31T19:00-05", 0),
        ("1970-01-01T00:00:00.5", 500_000),
        ("1970-01-01T00:00:00.000001", 1),
        ("1970-01-01T00:00:00.000000999", 0),
        ("1969-12-31T23:59:59.999999Z", -1),
        ("2024-02-29T00:00:00Z", 1_709_164_800_000_000),
    ],
)
def test_iso_text_is_read_as_utc(text: str, micros: int) -> None:
    assert Instant.parse_iso(text).micros == micros


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2024",
        "2024-1-1",
        "2023-02-29",
        "2024-13-01",
        "2024-01-01T24:00:00",
        "2024-01-01T00:00:60",
        "2024-01-01T00:00:00+24:00",
        "2024-01-01T00:00:00+01:60",
        "2024-01-01T",
        "2024-01-01T00:00:00Z!",
        "٢٠٢٤-٠١-٠١",
        "2024-01-01\n",
        "0000-01-01",
        "0001-01-01T00:00:00+01:00",
    ],
)
def test_text_that_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(BadTime) as refused:
        Instant.parse_iso(text)
    assert refused.value.hint


@pytest.mark.parametrize(
    ("micros", "text"),
    [(0, "1970-01-01T00:00:00Z"), (1, "1970-01-01T00:00:00.000001Z"), (500_000, "1970-01-01T00:00:00.500000Z")],
)
def test_a_fraction_is_written_only_when_there_is_one(micros: int, text: str) -> None:
    assert Instant(micros).isoformat() == str(Instant(micros)) == text


def test_a_datetime_without_a_zone_is_utc_and_one_with_a_zone_is_converted() -> None:
    assert Instant.of(datetime(2024, 1, 1)) == at("2024-01-01")
    assert Instant.of(datetime(2024, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))) == at("2024-01-01")


def test_instants_stay_within_the_years_of_datetime() -> None:
    first, last = at("0001-01-01"), at("9999-12-31T23:59:59.999999")
    assert first.plus(1).minus(1) == first
    with pytest.raises(BadTime):
        first.minus(1)
    with pytest.raises(BadTime):
        last.plus(1)


# --- intervals -------------------------------------------------------------------------------------------------------
def test_an_interval_is_half_open() -> None:
    day = between("2024-01-01", "2024-01-02")
    assert day.contains(day.start)
    assert not day.contains(day.end)
    assert day.contains(day.end.minus(1))
    assert day.contains(day)
    assert not day.contains(between("2024-01-01", "2024-01-02T00:00:00.000001"))


@pytest.mark.parametrize("end", ["2024-01-01", "2023-12-31"])
def test_an_empty_interval_is_refused(end: str) -> None:
    with pytest.raises(BadTime) as refused:
        between("2024-01-01", end)
    assert refused.value.code == "LAM-USE-003"


def test_touching_intervals_do_not_overlap() -> None:
    one, two = between("2024-01-01", "2024-01-02"), between("2024-01-02", "2024-01-03")
    assert not one.overlaps(two)
    assert one.intersect(two) is None


def test_an_intersection_is_what_both_share() -> None:
    one, two = between("2024-01-01", "2024-01-03"), between("2024-01-02", "2024-01-04")
    assert one.intersect(two) == two.intersect(one) == between("2024-01-02", "2024-01-03")


def test_an_interval_comes_back_from_its_pair() -> None:
    day = between("2024-01-01", "2024-01-02T00:00:00.000001")
    assert day.to_pair() == ("2024-01-01T00:00:00Z", "2024-01-02T00:00:00.000001Z")
    assert Interval.from_pair(day.to_pair()) == day


# --- sets: every law against plain sets of moments ------------------------------------------------------------------
def interval_of(start: int, end: int) -> Interval:
    return Interval(Instant(start), Instant(end))


small_intervals = st.tuples(st.integers(0, 40), st.integers(1, 12)).map(lambda p: interval_of(p[0], p[0] + p[1]))
small_sets = st.lists(small_intervals, max_size=8).map(Intervals.of)


def moments_of(intervals: Intervals | Interval) -> set[int]:
    ranges = [intervals] if isinstance(intervals, Interval) else list(intervals)
    return {moment for interval in ranges for moment in range(interval.start.micros, interval.end.micros)}


def is_normal(intervals: Intervals) -> bool:
    return all(earlier.end < later.start for earlier, later in pairwise(intervals))


@given(st.lists(small_intervals, max_size=8))
def test_a_set_holds_what_was_put_in_as_maximal_ranges(given_intervals: list[Interval]) -> None:
    made = Intervals.of(given_intervals)
    assert moments_of(made) == set().union(*map(moments_of, given_intervals))
    assert is_normal(made)
    assert Intervals.of(made) == made
    assert Intervals.of(reversed(given_intervals)) == made


@given(small_sets, small_sets)
def test_union_intersection_and_difference_agree_with_plain_sets(one: Intervals, other: Intervals) -> None:
    for made, expected in [
        (one.union(other), moments_of(one) | moments_of(other)),
        (one.intersect(other), moments_of(one) & moments_of(other)),
        (one.minus(other), moments_of(one) - moments_of(other)),
    ]:
        assert moments_of(made) == expected
        assert is_normal(made)


@given(small_sets, small_sets)
def test_covered_plus_missing_is_what_was_asked(recorded: Intervals, asked: Intervals) -> None:
    missing, covered = asked.minus(recorded), asked.intersect(recorded)
    assert missing.union(covered) == asked
    assert missing.intersect(covered).is_empty
    assert asked.minus(recorded.union(missing)).is_empty


@given(small_sets, small_intervals)
def test_a_set_covers_an_interval_when_it_holds_all_its_moments(held: Intervals, interval: Interval) -> None:
    assert held.covers(interval) == (moments_of(interval) <= moments_of(held))


@given(small_sets)
def test_a_span_reaches_from_first_to_last(held: Intervals) -> None:
    inside = moments_of(held)
    if held.is_empty:
        assert held.span() is None
    else:
        assert held.span() == interval_of(min(inside), max(inside) + 1)


@given(small_sets)
def test_a_set_comes_back_from_its_pairs(held: Intervals) -> None:
    assert Intervals.from_pairs(held.to_pairs()) == held
    assert Intervals.from_pairs([list(pair) for pair in held.to_pairs()]) == held


def test_touching_ranges_become_one() -> None:
    made = Intervals.of([between("2024-01-02", "2024-01-03"), between("2024-01-01", "2024-01-02")])
    assert list(made) == [between("2024-01-01", "2024-01-03")]


def test_the_empty_set_is_empty() -> None:
    assert EMPTY == Intervals.EMPTY == Intervals.of([])
    assert EMPTY.is_empty
    assert not EMPTY
    assert EMPTY.to_pairs() == ()
    assert not EMPTY.covers(between("2024-01-01", "2024-01-02"))


def test_a_gap_is_found_again() -> None:
    recorded = Intervals.from_pairs([("2024-01-01", "2024-01-03"), ("2024-01-04", "2024-01-06")])
    asked = Intervals.from_pairs([("2024-01-01", "2024-01-07")])
    assert asked.minus(recorded).to_pairs() == (
        ("2024-01-03T00:00:00Z", "2024-01-04T00:00:00Z"),
        ("2024-01-06T00:00:00Z", "2024-01-07T00:00:00Z"),
    )


def test_values_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Instant(0).micros = 1  # type: ignore[misc]
    with pytest.raises(AttributeError):
        EMPTY.ranges = ()  # type: ignore[misc]
