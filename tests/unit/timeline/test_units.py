"""The units of a stretch of time as a sequence that costs nothing until it is looked at."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.timeline.grain import Grain
from lamina.timeline.interval import Instant, Interval
from lamina.timeline.units import Units

at = Instant.parse_iso
_MINUTES = st.integers(0, 60 * 24 * 40)


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    start = at("2024-01-30").plus(draw(_MINUTES) * 60_000_000)
    return Interval(start, start.plus((draw(_MINUTES) + 1) * 60_000_000))


def pairs(units: list[Interval]) -> list[tuple[datetime, datetime]]:
    return [(unit.start.to_datetime(), unit.end.to_datetime()) for unit in units]


@given(st.sampled_from([Grain.HOUR, Grain.DAY, Grain.MONTH, Grain.YEAR]), intervals())
def test_the_units_are_the_pieces_of_the_interval(grain: Grain, interval: Interval):
    units = Units(grain, interval)
    expected = pairs(list(grain.split(interval, 1)))

    assert list(units) == expected
    assert [units[number] for number in range(len(units))] == expected
    assert [units[-number] for number in range(1, len(units) + 1)] == expected[::-1]
    assert (units.start, units.end) == (expected[0][0], expected[-1][1])


@given(
    intervals(),
    st.one_of(st.none(), st.integers(-9, 9)),
    st.one_of(st.none(), st.integers(-9, 9)),
    st.sampled_from([None, 1, 2, -1]),
)
def test_a_slice_is_that_of_the_list(interval: Interval, start: int | None, stop: int | None, step: int | None):
    units = Units(Grain.DAY, interval)

    assert list(units[start:stop:step]) == list(units)[start:stop:step]


def test_a_slice_of_neighbours_is_again_only_computed_when_looked_at():
    units = Units(Grain.FIVE_MINUTE, Interval(at("1970-01-01"), at("2024-01-01")))

    assert len(units) == 5_680_224
    assert isinstance(units[:-1], Units)
    assert units[-1] == (datetime(2023, 12, 31, 23, 55, tzinfo=timezone.utc), datetime(2024, 1, 1, tzinfo=timezone.utc))


def test_beyond_the_ends_there_is_nothing():
    units = Units(Grain.DAY, Interval(at("2024-01-01"), at("2024-01-03")))

    with pytest.raises(IndexError):
        units[2]


@pytest.mark.parametrize(
    ("start", "end", "is_covered"),
    [
        ("2024-01-01", "2024-01-02", True),
        ("2024-01-01", "2024-01-04T06:00:00Z", True),
        ("2024-01-04", "2024-01-04T06:00:00Z", True),
        ("2024-01-04", "2024-01-04T05:00:00Z", False),
        ("2024-01-01T01:00:00Z", "2024-01-02", False),
        ("2023-12-31", "2024-01-02", False),
        ("2024-01-04", "2024-01-05", False),
    ],
)
def test_whole_units_and_a_begun_one_are_covered(start: str, end: str, is_covered: bool):
    units = Units(Grain.DAY, Interval(at("2024-01-01"), at("2024-01-04T06:00:00Z")))

    assert units.covers(Interval(at(start), at(end))) is is_covered
