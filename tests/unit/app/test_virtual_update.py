"""Statements that follow an environment's views, on fakes: when they run, by what, and what a failure leaves."""

from __future__ import annotations

import signal
import threading
from dataclasses import replace
from typing import Any

import pytest

from lamina.app.ports.loaded import LoadRequest
from lamina.app.requests import PromoteRequest
from lamina.errors import LeaseLost, Location, QueryFailed, StatementsFailed
from lamina.graph.kinds import Embedded, Seed, View
from lamina.graph.model import Model, SeedBody, SqlText
from lamina.sql.fragment import Fragment
from tests.kit.app import LEASE_TIME, Killed, Place, Process, Running, Stops, january, orders, reading, sleeping
from tests.kit.engine import Fault
from tests.kit.models import instant, model

GRANT = "GRANT SELECT ON VIEW @this_model TO r"


def following(entry: Model, *statements: str, **changes: Any) -> Model:
    """The model with statements behind its view, the first in line 10."""
    texts = tuple(
        SqlText(
            source=Fragment(text=text, location=Location(file=entry.location.file, line=10 + number)), expanded=text
        )
        for number, text in enumerate(statements)
    )
    return replace(entry, body=replace(entry.body, on_virtual_update=texts), **changes)


def shop(*statements: str) -> Place:
    """Orders with statements, totals over them with one, and a model apart without."""
    return Place(
        following(orders(), *(statements or (GRANT,))),
        following(reading("shop.totals", "shop.orders"), "INSERT INTO log SELECT * FROM shop.orders, totals"),
        reading("shop.other", "raw.other"),
        sources={"raw.orders": january(31), "raw.other": january(1)},
    )


def promote(process: Process, source: str = "dev", destination: str = "prod"):
    return process.application().promote(
        PromoteRequest(source=source, destination=destination, now=instant("2024-01-10"))
    )


PROD = [
    "GRANT SELECT ON VIEW `shop`.`orders` TO r",
    "INSERT INTO log SELECT * FROM `shop`.`orders`, `shop`.`totals`",
]
DEV = [
    "GRANT SELECT ON VIEW `shop__dev`.`orders` TO r",
    "INSERT INTO log SELECT * FROM `shop__dev`.`orders`, `shop__dev`.`totals`",
]


def test_they_run_once_all_views_are_there_parents_first():
    place = shop()
    report = place.build("2024-01-03")
    assert place.catalog.executed == PROD
    kinds = [operation for operation, _ in place.catalog.statements if operation in {"show", "execute"}]
    assert kinds == ["show", "show", "show", "execute", "execute"]
    assert {node["name"]: node["virtual_statements"] for node in report.to_dict()["nodes"]} == {
        "shop.orders": 1,
        "shop.totals": 1,
        "shop.other": 0,
    }


def test_nothing_runs_where_no_view_moved():
    place = shop()
    place.build("2024-01-03")
    place.catalog.executed.clear()
    assert place.build("2024-01-03").status == "nothing_to_do"
    assert place.run("2024-01-05").status == "succeeded"
    place.project.change(reading("shop.other", "raw.other", text="y"))
    place.build("2024-01-05")
    assert place.catalog.executed == []


def test_a_new_environment_runs_them_for_its_own_views():
    place = shop()
    place.build("2024-01-03")
    place.catalog.executed.clear()
    report = place.build("2024-01-03", "dev")
    assert place.catalog.executed == DEV
    assert report.exit_code == 0
    assert place.build("2024-01-03", "dev").status == "nothing_to_do"


def test_a_changed_query_runs_those_of_the_models_it_reaches():
    place = shop()
    place.build("2024-01-03")
    place.catalog.executed.clear()
    place.project.change(following(reading("shop.totals", "shop.orders", text="y"), "ANALYZE TABLE @this_model"))
    place.build("2024-01-03")
    assert place.catalog.executed == ["ANALYZE TABLE `shop`.`totals`"]


def test_changed_statements_run_without_anything_being_computed():
    place = shop()
    place.build("2024-01-03")
    place.catalog.executed.clear()
    place.project.change(following(orders(), "GRANT ALL ON @this_model TO q"))
    process = place.process()
    assert process.build("2024-01-03").exit_code == 0
    assert place.catalog.executed == ["GRANT ALL ON `shop`.`orders` TO q"]
    assert not process.engine.writes
    place.catalog.executed.clear()
    place.project.change(following(orders(), "GRANT ALL ON @this_model TO q", owner="me"))
    place.build("2024-01-03")
    assert place.catalog.executed == []


def test_promotion_runs_the_recorded_statements_for_the_views_that_move():
    place = shop()
    place.build("2024-01-10")
    place.project.change(following(orders("y"), "GRANT ALL ON @this_model TO new"))
    place.build("2024-01-10", "dev")
    place.project.change(following(orders("y"), "what the files say now"))
    place.catalog.executed.clear()
    report = promote(place.process())
    assert place.catalog.executed == ["GRANT ALL ON `shop`.`orders` TO new", PROD[1]]
    promoted = {row["name"]: row["virtual_statements"] for row in report.to_dict()["promoted"]}
    assert promoted == {"shop.orders": 1, "shop.totals": 1}
    place.catalog.executed.clear()
    assert promote(place.process()).status == "nothing_to_do"
    assert place.catalog.executed == []


def test_names_follow_the_targets_schema_and_suffix():
    place = Place(
        following(model("shop_ci.orders", ["raw.orders"]), "ANALYZE TABLE shop.orders", "ANALYZE TABLE notes"),
        model("shop.notes", ["raw.orders"]),
        sources={"raw.orders": january(1)},
    )
    place.project.configure(schema_suffix="_ci")
    place.build("2024-01-03")
    assert place.catalog.executed == ["ANALYZE TABLE `shop_ci`.`orders`", "ANALYZE TABLE `shop`.`notes`"]


def test_seeds_and_views_have_them_too_and_embedded_models_never_run_theirs():
    seed = model("shop.codes", kind=Seed(path="seeds/codes.csv"))
    place = Place(
        following(replace(seed, body=SeedBody(path="seeds/codes.csv", content_hash="1")), GRANT),
        following(reading("shop.page", "raw.other", kind=View()), GRANT),
        following(reading("shop.part", "raw.other", kind=Embedded()), GRANT),
        sources={"raw.other": january(1)},
    )
    place.project.seeds["seeds/codes.csv"] = "ds,x"
    report = place.build("2024-01-03")
    assert sorted(place.catalog.executed) == [
        "GRANT SELECT ON VIEW `shop`.`codes` TO r",
        "GRANT SELECT ON VIEW `shop`.`page` TO r",
    ]
    assert [warning["code"] for warning in report.to_dict()["warnings"]] == ["LAM-WARN-022"]


# --- failures ---------------------------------------------------------------------------------------------------------
def failing(place: Place, about: str = "GRANT", times: int = 99) -> Process:
    process = place.process()
    process.engine.faults = [Fault("execute", QueryFailed("no such role"), about, times=times)]
    return process


def test_a_failing_statement_fails_its_model_and_nothing_else():
    place = shop()
    report = failing(place).build("2024-01-03")
    assert report.exit_code == 1
    error = report.results["shop.orders"].error
    assert isinstance(error, StatementsFailed)
    assert all(word in error.message for word in ("`shop.orders`", "`prod`", "no such role"))
    assert "lamina build prod" in error.hint
    assert report.results["shop.totals"].status == "succeeded"
    assert place.catalog.executed == PROD[1:]
    assert len(place.rows("shop.orders")) == 2
    assert sorted(place.catalog.environments) == ["shop.orders", "shop.other", "shop.totals"]


def test_the_next_command_runs_them_again_and_fails_until_they_go_through():
    place = shop()
    failing(place).build("2024-01-03")
    report = failing(place).build("2024-01-03")
    assert report.status == "failed"
    assert isinstance(report.results["shop.orders"].error, StatementsFailed)
    report = failing(place).run("2024-01-05")
    assert report.status == "failed"
    assert len(place.rows("shop.orders")) == 4
    place.catalog.executed.clear()
    assert place.run("2024-01-05").status == "nothing_to_do"
    assert place.catalog.executed == PROD
    assert place.unsettled().is_empty
    assert place.build("2024-01-05").status == "nothing_to_do"
    assert place.catalog.executed == PROD


def test_a_corrected_statement_takes_the_place_of_the_one_that_fails():
    place = shop()
    failing(place).build("2024-01-03")
    place.project.change(following(orders(), "ANALYZE TABLE @this_model"))
    report = failing(place).build("2024-01-03")
    assert report.exit_code == 0
    assert "ANALYZE TABLE `shop`.`orders`" in place.catalog.executed
    assert place.unsettled().is_empty


def test_a_failure_in_one_environment_is_a_warning_in_another():
    place = shop()
    place.build("2024-01-03")
    assert failing(place).build("2024-01-03", "dev").exit_code == 1
    report = failing(place).run("2024-01-05")
    assert report.exit_code == 0
    assert [notice.code for notice in report.notices] == ["LAM-WARN-021"]
    assert "dev" in report.notices[0].message


def test_a_promotion_whose_statements_fail_has_moved_the_views():
    place = shop()
    place.build("2024-01-10")
    place.project.change(following(orders("y"), GRANT))
    place.build("2024-01-10", "dev")
    with pytest.raises(StatementsFailed):
        promote(failing(place))
    assert place.pointers("prod") == place.pointers("dev")
    assert place.rows("shop.orders") == place.rows("shop.orders", "dev")
    with pytest.raises(StatementsFailed):
        promote(failing(place))
    assert promote(place.process()).status == "nothing_to_do"
    assert place.unsettled().is_empty


def test_a_version_shown_in_between_counts_though_the_pointer_came_back():
    """Killed after the views moved, then promoted back: the view moved twice, and its statements run for the last."""
    place = shop()
    place.build("2024-01-10")
    place.build("2024-01-10", "old")
    place.project.change(following(orders("y"), GRANT))
    place.build("2024-01-10", "dev")
    with pytest.raises(Killed):
        promote(place.dying("promote.statements"))
    place.clock.advance(LEASE_TIME)
    place.catalog.executed.clear()
    promote(failing(place, times=1), "old", "prod")
    assert place.rows("shop.orders") == place.rows("shop.orders", "old")
    assert place.catalog.executed[-2:] == PROD


# --- killed -----------------------------------------------------------------------------------------------------------
POINTS = ("promote.taken", "promote.pointer", "promote.between_views", "promote.views", "engine.execute")


@pytest.mark.parametrize("is_alone", [True, False])
@pytest.mark.parametrize("occurrence", [1, 2])
@pytest.mark.parametrize("point", [*POINTS, "promote.statements", "promote.followed"])
def test_whenever_it_is_killed_every_statement_has_run_after_its_view_was_set(
    point: str, occurrence: int, is_alone: bool
):
    place = shop(GRANT, "ANALYZE TABLE @this_model")
    place.build("2024-01-10")
    place.project.change(following(orders("y"), GRANT, "ANALYZE TABLE @this_model"))
    place.build("2024-01-10", "dev")
    place.catalog.executed.clear()
    process = place.dying(point, occurrence, is_alone=is_alone)
    try:
        promote(process)
    except Killed:
        place.clock.advance(0 if is_alone else LEASE_TIME)
    first = len(place.catalog.executed)
    promote(place.process(is_alone=is_alone))
    expected = [PROD[0], "ANALYZE TABLE `shop`.`orders`", PROD[1]]
    again = place.catalog.executed[first:]
    assert again == (expected if process.is_dead and point != "promote.followed" else [])
    assert set(place.catalog.executed) == set(expected)
    assert place.rows("shop.orders") == place.rows("shop.orders", "dev")
    last_show = max(n for n, (operation, _) in enumerate(place.catalog.statements) if operation == "show")
    after = [about for operation, about in place.catalog.statements[last_show:] if operation == "execute"]
    assert set(expected) <= set(after)
    assert not place.unsettled().revisions


def test_an_interrupt_cancels_a_statement_and_leaves_the_rest_to_the_next_command():
    place = shop()
    process = place.process()

    def interrupted() -> None:
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        assert process.engine.cancelled.wait(10)

    process.stops = Stops({("engine.execute", 1): interrupted})
    with pytest.raises(KeyboardInterrupt):
        process.build("2024-01-03")
    assert place.catalog.executed == []
    assert sorted(place.catalog.environments) == ["shop.orders", "shop.other", "shop.totals"]
    assert place.build("2024-01-03").status == "nothing_to_do"
    assert place.catalog.executed == PROD
    assert place.unsettled().is_empty


def test_who_lost_the_lease_takes_it_again_before_anything_more_is_run():
    place = shop()

    def sleep_long() -> None:
        place.clock.advance(LEASE_TIME)

    process = place.process({("engine.execute", 1): sleep_long})
    with pytest.raises(LeaseLost):
        process.build("2024-01-03")
    assert place.catalog.executed == [PROD[0], *PROD]
    assert place.store.load(LoadRequest(environments=("prod",))).revisions["prod"].is_followed


def test_statements_that_came_late_are_followed_by_those_of_the_newest_revision():
    place = shop()
    place.build("2024-01-10")
    place.project.change(following(orders("y"), "the first"))
    process, sleep = sleeping(place, "engine.execute")
    late = Running(lambda: process.build("2024-01-10"))
    assert sleep.begun.wait(10)
    place.clock.advance(LEASE_TIME)
    place.project.change(following(orders("y"), "the second"))
    place.build("2024-01-10")
    assert place.catalog.executed[-1] == "the second"
    before = len(place.catalog.executed)
    sleep.over.set()
    late.end()
    assert isinstance(late.error, LeaseLost)
    assert place.catalog.executed[before:] == ["the first", "the second", PROD[1]]


# --- properties of views ----------------------------------------------------------------------------------------------
def test_the_views_of_environments_have_the_properties_of_their_models():
    place = Place(orders(virtual_properties={"team": "sales"}), sources={"raw.orders": january(3)})
    place.build("2024-01-03")
    assert place.catalog.properties["shop.orders"] == {"team": "sales"}
    place.build("2024-01-03", "dev")
    assert place.catalog.properties["shop__dev.orders"] == {"team": "sales"}


def test_a_change_of_properties_alone_reaches_the_view_and_nothing_else():
    place = Place(orders(), sources={"raw.orders": january(3)})
    place.build("2024-01-03")
    before = len(place.catalog.folders)
    place.project.change(orders(virtual_properties={"team": "sales"}))
    report = place.build("2024-01-03")
    assert [step.action for step in report.plan.steps] == ["metadata"]
    assert (place.catalog.properties["shop.orders"], len(place.catalog.folders)) == ({"team": "sales"}, before)
    place.project.change(orders())
    place.build("2024-01-03")
    assert place.catalog.properties["shop.orders"] == {}
    assert place.build("2024-01-03").status == "nothing_to_do"


def test_other_metadata_leaves_views_alone():
    place = Place(orders(virtual_properties={"team": "sales"}), sources={"raw.orders": january(3)})
    place.build("2024-01-03")
    shown = [entry for entry in place.catalog.statements if entry[0] == "show"]
    place.project.change(orders(virtual_properties={"team": "sales"}, owner="ada"))
    place.build("2024-01-03")
    assert [entry for entry in place.catalog.statements if entry[0] == "show"] == shown


def test_views_keep_their_properties_when_they_are_set_right():
    place = Place(orders(virtual_properties={"team": "sales"}), sources={"raw.orders": january(3)})
    place.build("2024-01-03")
    place.catalog.environments["shop.orders"] = "elsewhere"
    place.catalog.properties["shop.orders"] = {}
    place.process().application().repair(None, instant("2024-01-03"))
    assert place.catalog.properties["shop.orders"] == {"team": "sales"}
