"""Promotion on fakes: what moves, what readers see, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lamina.app import application
from lamina.app.ports.facts import RevisionWritten
from lamina.app.ports.loaded import LoadRequest
from lamina.app.requests import PromoteRequest
from lamina.errors import (
    EnvironmentDetached,
    LaminaError,
    PlanOutdated,
    PromotionRefused,
    StaleUpstreams,
    UnknownEnvironment,
    UsageError,
)
from lamina.graph.kinds import View
from tests.kit.app import LEASE_TIME, Killed, Place, Process, Running, Stops, january, orders, reading, sleeping
from tests.kit.models import daily, instant, ranges


def promote(process: Process, source: str = "dev", destination: str = "prod", **options: object):
    request = PromoteRequest(source=source, destination=destination, now=instant("2024-01-10"), **options)
    return process.application().promote(request)


def changed() -> Place:
    """Prod is built; dev has another query of orders and everything below it."""
    place = Place(
        orders(),
        reading("shop.daily", "shop.orders", kind=daily(), partitioned_by=("ds",)),
        reading("shop.shown", "shop.daily", kind=View()),
        reading("shop.other", "raw.other"),
        sources={"raw.orders": january(31), "raw.other": january(1)},
    )
    place.build("2024-01-10")
    place.project.change(orders("y"))
    place.build("2024-01-10", "dev")
    return place


def test_a_promotion_copies_pointers_and_computes_nothing():
    place = changed()
    process = place.process()
    report = promote(process)
    assert not process.engine.writes
    assert [move.node for move in report.promotion.moves] == ["shop.orders", "shop.daily", "shop.shown"]
    assert place.pointers("prod") == place.pointers("dev")
    for name in ("shop.orders", "shop.daily", "shop.shown"):
        assert place.rows(name) == place.rows(name, "dev")
    assert place.build("2024-01-10").status == "nothing_to_do"
    assert report.to_dict()["environment"] == {"name": "prod", "status": "finalized"}


def test_promoting_again_does_nothing():
    place = changed()
    promote(place.process())
    process = place.process()
    assert promote(process).status == "nothing_to_do"
    assert not process.engine.calls


def test_a_model_that_the_source_does_not_have_goes_away():
    place = changed()
    place.project.remove("shop.other")
    place.build("2024-01-10", "dev")
    assert promote(place.process()).promotion.removed == ("shop.other",)
    assert "shop.other" not in place.catalog.environments


def test_a_selection_needs_what_it_was_built_from():
    place = changed()
    with pytest.raises(StaleUpstreams, match="orders"):
        promote(place.process(), select=("shop.daily",))
    report = promote(place.process(), select=("shop.daily",), include_stale_upstreams=True)
    assert [move.node for move in report.promotion.moves] == ["shop.orders", "shop.daily"]
    assert report.promotion.status == "active"


def test_limited_history_is_not_promoted_unless_that_is_allowed():
    place = changed()
    place.project.change(orders("z"))
    place.build("2024-01-10", "dev", start="2024-01-05")
    with pytest.raises(LaminaError) as caught:
        promote(place.process())
    assert {type(problem) for problem in caught.value.problems} == {PromotionRefused}
    assert [problem.node for problem in caught.value.problems] == ["shop.orders", "shop.daily"]
    assert "2024-01-01T00:00:00Z, 2024-01-05T00:00:00Z" in str(caught.value.problems[0])
    assert place.rows("shop.orders")[0][1] == "orders:x<a1>"

    report = promote(place.process(), allow_gaps=True)
    assert report.gaps["shop.orders"] == ranges(("2024-01-01", "2024-01-05"))
    assert len(place.rows("shop.orders")) == 5
    place.build("2024-01-10")
    assert len(place.rows("shop.orders")) == 9


def test_gaps_that_were_filled_are_no_reason_to_refuse():
    place = changed()
    place.project.change(orders("z"))
    place.build("2024-01-10", "dev", start="2024-01-05")
    place.build("2024-01-10", "dev")
    assert promote(place.process()).status == "succeeded"


def test_what_is_newer_in_prod_is_not_taken_away():
    place = changed()
    place.project.change(orders())
    place.run("2024-01-12")
    place.project.change(orders("y"))
    with pytest.raises(LaminaError, match="2024-01-10T00:00:00Z, 2024-01-12T00:00:00Z"):
        promote(place.process())


def test_what_prod_shows_while_it_is_to_be_computed_again_is_not_taken_away():
    place = Place(orders(), sources={"raw.orders": january(31)})
    place.build("2024-01-10")
    place.project.change(orders("y"))
    place.build("2024-01-10", "dev", end="2024-01-05")
    place.project.change(orders())
    with pytest.raises(Killed):
        place.dying("write.intent").build("2024-01-10", restate=("shop.orders",))
    place.clock.advance(LEASE_TIME)
    assert place.covered("shop.orders").is_empty
    with pytest.raises(LaminaError, match="2024-01-06T00:00:00Z, 2024-01-10T00:00:00Z"):
        promote(place.process())
    assert len(place.rows("shop.orders")) == 9


def test_an_environment_that_is_not_complete_is_promoted_only_when_allowed():
    place = changed()
    place.project.change(orders("z"))
    place.build("2024-01-10", "dev", select=("shop.orders",))
    with pytest.raises(PromotionRefused, match="active"):
        promote(place.process())
    assert promote(place.process(), allow_partial=True).promotion.status == "active"


def test_wrong_environments_are_named():
    place = changed()
    with pytest.raises(UsageError):
        promote(place.process(), "prod", "prod")
    with pytest.raises(UnknownEnvironment, match="nowhere"):
        promote(place.process(), "nowhere", "prod")


def test_a_table_that_somebody_removed_is_not_pointed_to():
    place = changed()
    physical = next(name for name in place.catalog.versions if place.pointers("dev")["shop.orders"] in name)
    del place.catalog.versions[physical]
    before = place.pointers("prod")
    with pytest.raises(PromotionRefused, match="not in the catalog"):
        promote(place.process())
    assert place.pointers("prod") == before


@pytest.mark.parametrize("point", ["promote.taken", "promote.pointer", "promote.between_views", "promote.views"])
def test_a_promotion_that_is_killed_is_finished_by_the_next_command(point: str):
    place = changed()
    with pytest.raises(Killed):
        promote(place.dying(point))
    place.clock.advance(LEASE_TIME)
    promote(place.process())
    for name in ("shop.orders", "shop.daily", "shop.shown"):
        assert place.rows(name) == place.rows(name, "dev")
    assert place.unsettled().revisions == ()


def test_detached_environments_stay_as_they_are():
    place = changed()
    revision = place.store.load(LoadRequest(environments=("dev",))).revisions["dev"]
    detached = replace(revision, number=revision.number + 1, status="detached")
    place.store.commit([RevisionWritten(revision=detached)])
    with pytest.raises(EnvironmentDetached):
        promote(place.process())


def test_gaps_that_come_up_while_it_waits_for_the_environment_are_found():
    place = changed()
    process = place.process()

    def reopen() -> None:
        dying = place.dying("write.intent")
        with pytest.raises(Killed):
            dying.build("2024-01-10", "dev", restate=("shop.orders",), start="2024-01-03", end="2024-01-04")

    process.stops = Stops({("promote.taken", 1): reopen})
    with pytest.raises(PromotionRefused, match=r"shop\.orders"):
        promote(process)
    assert place.pointers("prod") != place.pointers("dev")


def counting_looks(monkeypatch, before_the_move) -> list[int]:
    """Have something happen each time between the last look and the move."""
    looks: list[int] = []
    look = application.look_again

    def look_and_change(*arguments):
        required = look(*arguments)
        looks.append(len(looks) + 1)
        before_the_move(looks[-1])
        return required

    monkeypatch.setattr(application, "look_again", look_and_change)
    return looks


def restate_in_dev(place: Place, value: str) -> None:
    place.catalog.sources["raw.orders"]["2024-01-03"] = value
    place.build("2024-01-10", "dev", restate=("shop.orders",), start="2024-01-03", end="2024-01-03")


def test_what_is_computed_anew_between_the_last_look_and_the_move_is_looked_at_again(monkeypatch):
    place = changed()
    looks = counting_looks(monkeypatch, lambda number: number > 1 or restate_in_dev(place, "late"))
    assert promote(place.process()).status == "succeeded"
    assert looks == [1, 2]
    assert place.pointers("prod") == place.pointers("dev")
    assert dict(place.rows("shop.orders"))["2024-01-03"] == "orders:y<late>"
    history = place.process().application().history(None, 9)
    assert [entry.status for entry in history if entry.command == "promote"] == ["succeeded", "outdated"]


def test_a_promotion_that_others_overtake_again_and_again_gives_up(monkeypatch):
    place = changed()
    before = place.pointers("prod")
    looks = counting_looks(monkeypatch, lambda number: restate_in_dev(place, f"late{number}"))
    with pytest.raises(PlanOutdated):
        promote(place.process())
    assert len(looks) == application._PLANNING_ROUNDS
    assert place.pointers("prod") == before


def test_a_promotion_that_is_refused_once_it_is_looked_at_again_says_why(monkeypatch):
    place = changed()
    place.project.change(orders("z"))

    def replace_by_less(_: int) -> None:
        place.build("2024-01-10", "dev", start="2024-01-05")

    counting_looks(monkeypatch, replace_by_less)
    with pytest.raises(LaminaError) as caught:
        promote(place.process())
    assert {type(problem) for problem in caught.value.problems} == {PromotionRefused}


def test_views_of_the_source_that_follow_while_it_waits_change_nothing():
    place = changed()
    place.project.change(orders("z"))
    first, sleep = sleeping(place, "promote.pointer")
    building = Running(lambda: first.build("2024-01-10", "dev"))
    assert sleep.begun.wait(10)
    process = place.process()

    def wake() -> None:
        sleep.over.set()
        building.end()

    process.stops = Stops({("promote.taken", 1): wake})
    assert promote(process).status == "succeeded"
    assert process.stops.reached["promote.taken"] == 1
    assert place.pointers("prod") == place.pointers("dev")
