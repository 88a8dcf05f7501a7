"""What is remembered of a version's rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lamina.app.ports.engine import Base, Written
from lamina.app.ports.published import Head, TableShape
from lamina.app.writing.contents import MOST_UNITS, contents_after, units_to_measure
from lamina.graph.model import Column
from lamina.identity.naming import PhysicalName
from lamina.timeline.interval import EMPTY, Interval, Intervals
from tests.kit.models import daily, model

SHAPE = TableShape(columns=(Column(name="id", type="bigint"),))


def days(first: int, last: int) -> Interval:
    return Interval.from_pair((f"2024-01-{first:02}", f"2024-01-{last:02}"))


def measured(lookback: int, interval: Interval, recorded: Intervals = EMPTY) -> list[tuple[int, int]]:
    found = units_to_measure(model("shop.orders", ["raw.x"], kind=daily(lookback=lookback)), interval, recorded)
    return [(unit.start.to_datetime().day, unit.end.to_datetime().day) for unit in found]


@pytest.mark.parametrize(
    ("lookback", "interval", "recorded", "expected"),
    [
        (0, days(1, 5), EMPTY, []),
        (2, days(1, 10), EMPTY, [(8, 9), (9, 10)]),
        (2, days(3, 6), Intervals.of([days(3, 5)]), [(3, 4), (4, 5), (5, 6)]),
        (1, days(1, 6), Intervals.of([days(1, 3)]), [(1, 2), (2, 3), (5, 6)]),
        (MOST_UNITS, days(1, 5), EMPTY, []),
    ],
)
def test_measured_is_what_was_computed_before_and_what_will_be_looked_back_at(
    lookback: int, interval: Interval, recorded: Intervals, expected: list[tuple[int, int]]
) -> None:
    assert measured(lookback, interval, recorded) == expected


def test_a_unit_that_was_computed_in_part_is_measured_in_two_parts() -> None:
    noon = Interval.from_pair(("2024-01-01T00:00:00", "2024-01-01T12:00:00"))
    found = units_to_measure(model("shop.orders", ["raw.x"], kind=daily(lookback=1)), days(1, 2), Intervals.of([noon]))
    assert [unit.to_pair()[1][:13] for unit in found] == ["2024-01-01T12", "2024-01-02T00"]


def test_very_much_recorded_time_is_not_measured() -> None:
    year = Interval.from_pair(("2024-01-01", "2025-01-01"))
    found = units_to_measure(model("shop.orders", ["raw.x"], kind=daily(lookback=2)), year, Intervals.of([year]))
    assert [unit.to_pair()[0][:10] for unit in found] == ["2024-12-30", "2024-12-31"]


def base(contents: dict[Interval | None, str], shape: TableShape = SHAPE) -> Base:
    head = Head(physical=PhysicalName("s.t"), sequence=1, generation="g", attempt=1, shape=shape, contents=contents)
    return Base(head=head, manifest={})


def written(contents: dict[Interval | None, str], **changes: Any) -> Written:
    return replace(Written(rows=1, shape=SHAPE, folders={}, contents=contents), **changes)


def test_what_a_batch_replaces_is_forgotten_and_what_it_measured_is_remembered() -> None:
    before = base({None: "all", days(1, 2): "a", days(2, 3): "b", days(3, 4): "c"})
    after = contents_after(days(2, 4), before, written({days(3, 4): "new"}))
    assert after == {days(1, 2): "a", days(3, 4): "new"}


def test_columns_that_changed_make_everything_unknown() -> None:
    other = TableShape(columns=(Column(name="other", type="bigint"),))
    assert contents_after(days(2, 3), base({days(1, 2): "a"}, other), written({days(2, 3): "b"})) == {days(2, 3): "b"}


def test_only_the_newest_is_remembered() -> None:
    start = days(1, 2).start
    many = [Interval(start.plus(number), start.plus(number + 1)) for number in range(MOST_UNITS + 5)]
    after = contents_after(days(30, 31), base(dict.fromkeys(many, "x")), written({}))
    assert list(after) == many[5:]


def test_a_whole_table_is_remembered_as_a_whole() -> None:
    assert contents_after(None, base({days(1, 2): "a"}), written({None: "b"})) == {None: "b"}
