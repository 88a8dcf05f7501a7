"""Commands about part of the time: what lies outside of it is neither taken for done nor forgotten."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lamina.errors import HistoryLost
from lamina.graph.kinds import IncrementalPolicy, IncrementalUnmanaged
from lamina.graph.names import NodeName
from lamina.sql.lineage.input_windows import InputWindow, Offset
from lamina.timeline.interval import MICROS_PER_DAY
from tests.kit.app import LEASE_TIME, Killed, Place, january, orders, reading
from tests.kit.models import daily, model, ranges

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


# --- history that readers have does not get shorter by any other flag -------------------------------------------------
JANUARY = ranges(("2024-01-01", "2024-01-06"))


def log(text: str = "x"):
    policy = IncrementalPolicy(forward_only=True, disable_restatement=False)
    query = f"SELECT ds, {text} FROM shop.orders WHERE ds BETWEEN @start_ds AND @end_ds"
    return model("shop.log", ["shop.orders"], kind=IncrementalUnmanaged(policy=policy), query=query, start="2024-01-01")


def robbed(*above: object) -> Place:
    """A place in which two days of a parent are open again, because computing them anew was interrupted."""
    one = Place(orders(), *above, sources={"raw.orders": january(31)})
    one.build("2024-01-06")
    with pytest.raises(Killed):
        one.dying("write.intent").build(
            "2024-01-06", restate=("shop.orders",), start="2024-01-02", end="2024-01-03", select=("shop.orders",)
        )
    one.clock.advance(LEASE_TIME)
    return one


def test_a_changed_model_is_not_shortened_by_an_earlier_time_of_the_command():
    one = Place(orders(), sources={"raw.orders": january(31)})
    one.build("2024-01-06")
    one.project.change(orders("y"))
    with pytest.raises(HistoryLost, match=r"would lack.*lies after the time of this command") as caught:
        one.build("2024-01-03")
    assert "`--allow-gaps`" in (caught.value.hint or "")
    assert len(one.rows("shop.orders")) == 5
    assert "`--execution-time`" in (caught.value.hint or "")
    one.build("2024-01-03", "dev")
    one.build("2024-01-03", allow_gaps=True)
    assert one.covered("shop.orders") == ranges(("2024-01-01", "2024-01-03"))


def test_a_version_that_was_shown_before_is_not_shown_again_without_what_came_since():
    one = Place(orders(), sources={"raw.orders": january(31)})
    one.build("2024-01-03")
    one.project.change(orders("y"))
    one.build("2024-01-06")
    one.project.change(orders())
    with pytest.raises(HistoryLost):
        one.build("2024-01-04")
    assert len(one.rows("shop.orders")) == 5
    one.build("2024-01-06")
    assert one.covered("shop.orders") == JANUARY


def test_a_changed_model_keeps_its_readers_while_a_parent_does_not_cover_what_they_have():
    def child(text: str):
        return reading("shop.child", "shop.orders", kind=daily(), text=text, partitioned_by=("ds",))

    one = robbed(child("x"))
    one.project.change(orders(), child("y"))
    with pytest.raises(HistoryLost, match=r"would lack.*waits for `shop\.orders`") as caught:
        one.build("2024-01-06", select=("shop.child",))
    assert "`--select +shop.child`" in (caught.value.hint or "")
    assert len(one.rows("shop.child")) == 5
    one.build("2024-01-06", select=("+shop.child",))
    assert [text[:7] for _, text in one.rows("shop.child")] == ["child:y"] * 5


def test_a_table_of_runs_is_not_built_anew_shorter():
    one = robbed(log())
    for now, options in (("2024-01-03", {"select": ("+shop.log",)}), ("2024-01-06", {"select": ("shop.log",)})):
        with pytest.raises(HistoryLost, match="would lack"):
            one.build(now, restate=("shop.log",), **options)
        assert one.covered("shop.log") == JANUARY
    one.build("2024-01-06", restate=("shop.log",))
    assert one.covered("shop.log") == JANUARY


@pytest.mark.parametrize("bound", [{"start": "2024-01-05"}, {"end": "2024-01-02"}], ids=["start", "end"])
def test_bounds_do_not_shorten_a_table_of_runs_that_was_about_to_be_built_anew(bound: dict[str, str]):
    one = Place(orders(), log(), sources={"raw.orders": january(31)})
    one.build("2024-01-06")
    with pytest.raises(Killed):
        one.dying("write.intent").build("2024-01-06", restate=("shop.log",))
    one.clock.advance(LEASE_TIME)
    assert one.covered("shop.log").is_empty
    with pytest.raises(HistoryLost, match="would lack"):
        one.build("2024-01-06", **bound)
    one.build("2024-01-06")
    assert one.covered("shop.log") == JANUARY


@pytest.mark.parametrize("command", ["build", "run"])
def test_a_table_of_runs_that_was_about_to_be_built_anew_waits_for_all_that_it_showed(command: str):
    one = robbed(log())
    with pytest.raises(Killed):
        one.dying("write.intent").build("2024-01-06", restate=("shop.log",), select=("shop.log",), allow_gaps=True)
    one.clock.advance(LEASE_TIME)
    assert one.covered("shop.log").is_empty
    getattr(one, command)("2024-01-06", select=("shop.log",))
    assert one.covered("shop.log").is_empty
    assert "a5" in str(one.rows("shop.log"))
    getattr(one, command)("2024-01-06")
    assert one.covered("shop.log") == JANUARY


def test_a_table_of_runs_that_another_environment_began_later_is_not_taken_over():
    one = Place(orders(), log(), sources={"raw.orders": january(31)})
    one.build("2024-01-06")
    one.project.change(orders(), replace(log("y"), replay_on_change="full"))
    one.build("2024-01-06", "dev", start="2024-01-03")
    assert one.covered("shop.log", "dev") == ranges(("2024-01-03", "2024-01-06"))
    with pytest.raises(HistoryLost, match=r"would lack \[2024-01-01T00:00:00Z, 2024-01-03T00:00:00Z\)") as caught:
        one.build("2024-01-06")
    assert "`--reset shop.log`" in (caught.value.hint or "")
    assert one.covered("shop.log") == JANUARY
    one.build("2024-01-06", reset=("shop.log",))
    assert one.covered("shop.log") == JANUARY
