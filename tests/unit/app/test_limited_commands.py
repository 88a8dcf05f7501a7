"""Commands about part of the time: what lies outside of it is neither taken for done nor forgotten."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lamina.errors import HistoryLost
from lamina.graph.names import NodeName
from lamina.sql.lineage.input_windows import InputWindow, Offset
from lamina.timeline.interval import MICROS_PER_DAY
from tests.kit.app import LEASE_TIME, Killed, Place, january, orders, reading
from tests.kit.models import daily, ranges

TWO_DAYS_BACK = InputWindow(lower=Offset(base="start", micros=-2 * MICROS_PER_DAY), upper=Offset(base="end"))


def trailing():
    made = reading("shop.trailing", "shop.orders", kind=daily(), partitioned_by=("ds",))
    return replace(made, windows={NodeName("shop.orders"): TWO_DAYS_BACK})


def place() -> Place:
    return Place(orders(), trailing(), sources={"raw.orders": january(31)})


def test_a_gap_before_the_start_of_a_command_is_waited_for():
    one = place()
    one.build("2024-01-04")
    one.build("2024-01-09", start="2024-01-07", end="2024-01-08")
    # The 7th and the 8th read the 5th and the 6th, which nobody has computed yet.
    assert one.covered("shop.orders") == ranges(("2024-01-01", "2024-01-04"), ("2024-01-07", "2024-01-09"))
    assert one.covered("shop.trailing") == ranges(("2024-01-01", "2024-01-04"))
    one.build("2024-01-09")
    assert one.covered("shop.trailing") == ranges(("2024-01-01", "2024-01-09"))


def test_history_that_was_limited_from_the_beginning_needs_nothing_before_it():
    one = place()
    one.build("2024-01-09", start="2024-01-07")
    one.build("2024-01-10", start="2024-01-08")
    assert one.covered("shop.trailing") == ranges(("2024-01-07", "2024-01-10"))


@pytest.mark.parametrize("point", ["write.intent", "write.written", "write.decided"])
def test_a_restatement_of_the_last_unit_that_was_killed_can_be_given_again(point: str):
    one = Place(orders(), sources={"raw.orders": january(31)})
    one.build("2024-01-04")
    one.catalog.sources["raw.orders"]["2024-01-03"] = "late"
    options = {"restate": ("shop.orders",), "start": "2024-01-03T06:00:00Z", "end": "2024-01-03T07:00:00Z"}
    with pytest.raises(Killed):
        one.dying(point).build("2024-01-04", **options)
    one.clock.advance(LEASE_TIME)
    one.build("2024-01-04", **options)
    assert one.covered("shop.orders") == ranges(("2024-01-01", "2024-01-04"))
    assert dict(one.rows("shop.orders"))["2024-01-03"] == "orders:x<late>"


def test_a_start_does_not_shorten_what_an_interrupted_restatement_opened_again():
    one = Place(orders(), sources={"raw.orders": january(31)})
    one.build("2024-01-06")
    with pytest.raises(Killed):
        one.dying("write.intent").build("2024-01-06", restate=("shop.orders",))
    one.clock.advance(LEASE_TIME)
    assert one.covered("shop.orders").is_empty
    one.project.change(orders("y"))
    with pytest.raises(HistoryLost, match="would lack"):
        one.build("2024-01-06", start="2024-01-05")
    assert len(one.rows("shop.orders")) == 5
    one.build("2024-01-06")
    assert [text for _, text in one.rows("shop.orders")] == [f"orders:y<a{day}>" for day in range(1, 6)]


def test_another_environment_reaches_as_far_as_what_an_interrupted_restatement_opened_again():
    one = Place(orders(), sources={"raw.orders": january(31)})
    one.build("2024-01-06")
    with pytest.raises(Killed):
        one.dying("write.intent").build("2024-01-06", restate=("shop.orders",))
    one.clock.advance(LEASE_TIME)
    one.project.change(orders("y"))
    one.build("2024-01-09", "dev")
    assert one.covered("shop.orders", "dev") == ranges(("2024-01-01", "2024-01-06"))
