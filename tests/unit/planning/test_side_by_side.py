"""Batches run side by side only where no two of them can hold rows of the same partition."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.graph.kinds import IncrementalByTimeRange, TimeColumn
from lamina.graph.model import Model
from lamina.planning.batches import batches_of, concurrency_of
from lamina.timeline.grain import Grain
from lamina.timeline.interval import Interval, Intervals
from tests.kit.models import instant, model, ranges

QUARTER = ranges(("2024-01-01", "2024-04-01"))


def partitioned(*by: str, grain: Grain = Grain.DAY, time_format: str | None = None, **kind: Any) -> Model:
    time = TimeColumn(name="ds", format=time_format)
    return model("s.m", ["r"], kind=IncrementalByTimeRange(time_column=time, **kind), grain=grain, partitioned_by=by)


@pytest.mark.parametrize(
    ("by", "grain", "size", "time", "expected"),
    [
        (["ds"], Grain.DAY, 10, QUARTER, 4),
        (["`DS`"], Grain.DAY, 10, QUARTER, 4),
        (["region", "ds"], Grain.DAY, 10, QUARTER, 4),
        (["days(ds)"], Grain.DAY, 10, QUARTER, 4),
        (["hours(ds)"], Grain.HOUR, 5, QUARTER, 4),
        (["months(ds)"], Grain.DAY, 10, QUARTER, 1),
        (["month(ds)", "region"], Grain.DAY, 31, QUARTER, 1),
        (["region", "months(ds)"], Grain.MONTH, 1, QUARTER, 4),
        (["months(ds)", "ds"], Grain.DAY, 10, QUARTER, 4),
        (["years(ds)"], Grain.MONTH, 1, QUARTER, 1),
        (["year( `ds` )"], Grain.YEAR, 1, ranges(("2020-01-01", "2024-01-01")), 4),
        (["years(ds)"], Grain.MONTH, 12, ranges(("2020-01-01", "2024-01-01")), 4),
        (["years(ds)"], Grain.MONTH, 12, ranges(("2020-02-01", "2024-02-01")), 1),
        (["date_trunc('week', ds)"], Grain.DAY, 1, QUARTER, 1),
        (["months(other)"], Grain.MONTH, 1, QUARTER, 1),
        (["region"], Grain.DAY, 1, QUARTER, 1),
        ([], Grain.DAY, 1, QUARTER, 1),
        (["ds"], Grain.HOUR, 5, QUARTER, 1),
        (["ds"], Grain.HOUR, 48, QUARTER, 4),
        (["ds"], Grain.HOUR, 48, ranges(("2024-01-01T12:00:00Z", "2024-01-09")), 1),
        (["ds"], Grain.HOUR, None, ranges(("2024-01-01", "2024-01-02"), ("2024-01-03", "2024-01-04")), 4),
        (
            ["ds"],
            Grain.HOUR,
            None,
            ranges(("2024-01-01", "2024-01-02T03:00:00Z"), ("2024-01-02T05:00:00Z", "2024-01-04")),
            1,
        ),
        (["months(ds)"], Grain.DAY, None, ranges(("2024-01-01", "2024-01-03"), ("2024-01-05", "2024-01-09")), 1),
        (["months(ds)"], Grain.DAY, None, ranges(("2024-01-01", "2024-02-01"), ("2024-02-05", "2024-03-09")), 4),
    ],
)
def test_side_by_side_only_where_partitions_differ(
    by: list[str], grain: Grain, size: int | None, time: Intervals, expected: int
):
    assert concurrency_of(partitioned(*by, grain=grain, batch_size=size), time, 4) == expected
    asked = partitioned(*by, grain=grain, batch_size=size, batch_concurrency=2)
    assert concurrency_of(asked, time, 4) == min(expected, 2)


@pytest.mark.parametrize(("time_format", "expected"), [(None, 4), ("%Y-%m-%d", 4), ("%d.%m.%Y", 1), ("%Y%m%d", 1)])
def test_what_a_transform_makes_of_other_texts_is_not_known(time_format: str | None, expected: int):
    by_month = partitioned("months(ds)", grain=Grain.MONTH, batch_size=1, time_format=time_format)
    assert concurrency_of(by_month, QUARTER, 4) == expected
    by_text = partitioned("ds", batch_size=1, time_format=time_format)
    assert concurrency_of(by_text, QUARTER, 4) == 4


HOURS = st.integers(0, 24 * 400)
UNITS = {"hours": Grain.HOUR, "days": Grain.DAY, "months": Grain.MONTH, "years": Grain.YEAR}


@given(
    st.sampled_from(sorted(UNITS)),
    st.sampled_from([Grain.HALF_HOUR, Grain.HOUR, Grain.DAY, Grain.MONTH]),
    st.sampled_from([None, 1, 12, 24, 48, 744]),
    st.lists(st.tuples(HOURS, st.integers(1, 100)), min_size=1, max_size=3),
)
def test_two_that_run_side_by_side_never_hold_time_of_one_partition(
    unit: str, grain: Grain, size: int | None, spans: list[tuple[int, int]]
):
    hour = Grain.HOUR.smallest_micros
    first = instant("2023-01-01")
    time = Intervals.of(
        Interval(grain.floor(first.plus(at * hour)), grain.ceil(first.plus((at + length) * hour)))
        for at, length in spans
    )
    made = partitioned(f"{unit}(ds)", grain=grain, batch_size=size)
    if concurrency_of(made, time, 4) == 1:
        return
    held = []
    for batch in batches_of(made, time):
        interval = batch.interval
        assert interval is not None
        starts, moment = set(), UNITS[unit].floor(interval.start)
        while moment < interval.end:
            starts.add(moment)
            moment = UNITS[unit].next(moment)
        held.append(starts)
    assert all(one.isdisjoint(other) for one, other in combinations(held, 2))
