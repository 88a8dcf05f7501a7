"""What fails, what goes on, and what readers keep."""

from __future__ import annotations

import signal
import threading
from itertools import combinations

import pytest

from lamina.app.building.apply_plan import pointers_to_move
from lamina.app.leases.keeper import LeaseKeeper
from lamina.app.ports.events import BatchRetried, NodeFailed, NodeSkipped, Retried, Waiting
from lamina.app.ports.loaded import LoadRequest
from lamina.app.report import NodeResult
from lamina.errors import (
    AnalysisFailed,
    BatchFailed,
    FilesRewritten,
    Location,
    NoAnswer,
    QueryFailed,
    StatementUnanswered,
    TransientFailure,
)
from lamina.graph.kinds import View
from lamina.graph.names import NodeName
from tests.kit.app import A_DAY_AND_MORE, LEASE_TIME, Killed, Place, Stops, january, orders, reading, shop, statuses
from tests.kit.engine import Fault
from tests.kit.models import daily, ranges
from tests.kit.state import owner, unknown


def broken(about: str = "", operation: str = "write", times: int = 99, error=QueryFailed, **more) -> list[Fault]:
    return [Fault(operation=operation, about=about, error=error("it broke"), times=times, **more)]


def diamond() -> Place:
    """A source, two branches over it, one model that joins them, and one that has nothing to do with them."""
    return Place(
        orders(),
        reading("shop.left", "shop.orders"),
        reading("shop.right", "shop.orders"),
        reading("shop.both", "shop.left", "shop.right"),
        reading("shop.other", "raw.other"),
        sources={"raw.orders": january(31), "raw.other": january(1)},
    )


# --- a model fails ----------------------------------------------------------------------------------------------------
def test_a_failing_model_takes_only_its_descendants_with_it():
    place = diamond()
    process = place.process(faults=broken("shop.left"))
    report = process.build("2024-01-04")

    assert (report.status, report.exit_code) == ("failed", 1)
    assert statuses(report) == {
        "shop.orders": "succeeded",
        "shop.left": "failed",
        "shop.right": "succeeded",
        "shop.both": "skipped",
        "shop.other": "succeeded",
    }
    assert [event.node for event in process.event(NodeFailed)] == ["shop.left"]
    assert [event.node for event in process.event(NodeSkipped)] == ["shop.both"]
    assert "`shop.left`" in (report.results["shop.both"].explanation or "")
    assert place.unsettled().is_empty


def test_a_failure_names_node_file_and_interval():
    place = shop()
    report = place.process(faults=broken("shop.orders")).build("2024-01-04")
    error = report.results["shop.orders"].error
    assert isinstance(error, QueryFailed)
    assert (error.node, error.interval) == ("shop.orders", ("2024-01-01T00:00:00Z", "2024-01-04T00:00:00Z"))
    assert error.location is not None
    assert error.location.file == "models/shop.orders.sql"


def test_what_was_built_beside_a_failure_is_not_built_again():
    place = diamond()
    place.process(faults=broken("shop.left")).build("2024-01-04")
    process = place.process()
    report = process.build("2024-01-04")

    assert report.status == "succeeded"
    assert {node for node, _ in process.engine.writes} == {"shop.left", "shop.both"}
    assert place.build("2024-01-04").status == "nothing_to_do"


def test_finished_batches_before_a_failing_one_are_kept():
    place = shop(kind={"batch_size": 1})
    process = place.process()
    process.engine.faults = [Fault("write", QueryFailed("it broke"), "shop.orders", times=0)]

    def third_write(name: str) -> None:
        if name == "engine.write" and process.stops.reached["engine.write"] == 2:
            process.engine.faults[0].times = 1

    reach = process.engine.reach
    process.engine.reach = lambda name: (third_write(name), reach(name))
    report = process.build("2024-01-05")

    assert statuses(report) == {"shop.orders": "failed", "shop.totals": "skipped"}
    again = place.process()
    again.build("2024-01-05")
    days = [interval.start.isoformat()[:10] for node, interval in again.engine.writes if node == "shop.orders"]
    assert days == ["2024-01-03", "2024-01-04"]
    assert len(place.rows("shop.orders")) == 4


def test_a_failing_rebuild_leaves_every_reader_with_what_they_had():
    place = diamond()
    place.build("2024-01-04")
    before = place.catalog.everything()
    place.project.change(orders("y"))
    report = place.process(faults=broken("shop.both")).build("2024-01-04")

    assert report.results["shop.both"].status == "failed"
    assert report.environment_status == "active"
    assert place.catalog.everything() == before
    report = place.build("2024-01-04")
    assert statuses(report) == {
        "shop.orders": "reused",
        "shop.left": "reused",
        "shop.right": "reused",
        "shop.both": "succeeded",
    }
    assert report.environment_status == "finalized"
    assert "orders:y<a1>" in place.rows("shop.both")[0][1]


def test_a_failing_new_model_does_not_hold_back_the_others():
    place = diamond()
    place.build("2024-01-04")
    place.project.change(orders("y"), reading("shop.new", "shop.orders"))
    report = place.process(faults=broken("shop.new")).build("2024-01-04")

    assert report.status == "failed"
    assert place.rows("shop.orders")[0][1] == "orders:y<a1>"
    assert "orders:y<a1>" in place.rows("shop.both")[0][1]
    assert "shop.new" not in place.catalog.environments


def test_an_unrelated_change_is_shown_although_another_failed():
    place = diamond()
    place.build("2024-01-04")
    place.project.change(orders("y"), reading("shop.other", "raw.other", text="z"))
    place.process(faults=broken("shop.orders")).build("2024-01-04")

    assert place.rows("shop.other")[0][1].startswith("other:z")
    assert place.rows("shop.orders")[0][1] == "orders:x<a1>"


def test_nothing_is_removed_while_a_change_is_incomplete():
    place = diamond()
    place.build("2024-01-04")
    place.project.remove("shop.other")
    place.project.change(orders("y"))
    place.process(faults=broken("shop.left")).build("2024-01-04")
    assert "shop.other" in place.catalog.environments
    place.build("2024-01-04")
    assert "shop.other" not in place.catalog.environments


def test_a_new_environment_keeps_the_baselines_version_of_what_failed_there():
    place = shop()
    place.build("2024-01-04")
    place.project.change(orders("y"))
    place.process(faults=broken("shop.orders")).build("2024-01-04", "dev")

    assert place.rows("shop.orders", "dev") == place.rows("shop.orders")
    assert place.rows("shop.totals", "dev") == place.rows("shop.totals")


def test_readers_keep_the_old_rows_of_an_interval_whose_restatement_failed():
    place = shop()
    place.build("2024-01-05")
    before = place.catalog.everything()
    place.catalog.sources["raw.orders"]["2024-01-02"] = "late"
    restate = {"restate": ("shop.orders",), "start": "2024-01-02", "end": "2024-01-03"}
    place.process(faults=broken("shop.orders")).build("2024-01-05", **restate)
    assert place.catalog.everything() == before
    place.build("2024-01-05")

    assert dict(place.rows("shop.orders"))["2024-01-02"] == "orders:x<late>"
    assert "late" in place.rows("shop.totals")[0][1]


def test_models_below_a_failed_restatement_follow_when_it_succeeds():
    place = Place(
        orders(),
        reading("shop.daily", "shop.orders", kind=daily(), partitioned_by=("ds",)),
        sources={"raw.orders": january(31)},
    )
    place.build("2024-01-05")
    place.catalog.sources["raw.orders"]["2024-01-02"] = "late"
    restate = {"restate": ("shop.orders",), "start": "2024-01-02", "end": "2024-01-02"}
    place.process(faults=broken("shop.orders")).build("2024-01-05", **restate)
    place.build("2024-01-05")

    assert dict(place.rows("shop.daily"))["2024-01-02"] == "daily:x<orders:x<late>>"
    assert place.covered("shop.daily") == ranges(("2024-01-01", "2024-01-05"))


def test_fail_fast_begins_nothing_more():
    place = diamond()
    process = place.process(faults=broken("shop.left"))
    report = process.build("2024-01-04", is_fail_fast=True)

    assert report.results["shop.left"].status == "failed"
    assert {report.results[name].status for name in ("shop.both", "shop.right")} == {"skipped"}
    assert place.unsettled().is_empty


def test_fail_fast_also_stops_models_that_have_batches_left():
    place = Place(
        orders(kind={"batch_size": 1}),
        reading("shop.earlier", "raw.other"),
        sources={"raw.orders": january(31), "raw.other": january(1)},
    )
    process = place.process(faults=broken("shop.earlier"))
    has_failed = threading.Event()
    compute = process.engine.compute

    def after_the_failure(node, interval, sql):
        assert has_failed.wait(10)
        return compute(node, interval, sql)

    process.engine.compute = after_the_failure
    process.on_event = lambda event: has_failed.set() if isinstance(event, NodeFailed) else None
    report = process.build("2024-01-20", is_fail_fast=True, concurrency=2)

    assert statuses(report) == {"shop.earlier": "failed", "shop.orders": "skipped"}
    assert len(process.engine.writes) <= 2


def test_an_unexpected_error_is_reported_and_spares_the_others():
    place = diamond()

    def compute(node, interval, sql):
        if node == "shop.left":
            raise ZeroDivisionError("division by zero")
        return [("2024-01-01", "x")]

    report = place.process(compute=compute).build("2024-01-04")
    assert isinstance(report.results["shop.left"].error, BatchFailed)
    assert report.results["shop.right"].status == "succeeded"
    assert place.build("2024-01-04").status == "succeeded"


# --- it passes when tried again ---------------------------------------------------------------------------------------
def test_a_transient_failure_is_tried_again_in_another_folder():
    place = shop()
    process = place.process(faults=broken("shop.orders", times=2, error=TransientFailure))
    report = process.build("2024-01-04")

    assert report.status == "succeeded"
    assert [event.attempt for event in process.event(BatchRetried)] == [1, 2]
    assert len(place.rows("shop.orders")) == 3
    assert place.unsettled().is_empty


def test_a_failure_that_does_not_pass_is_given_up_after_three_tries():
    place = shop()
    process = place.process(faults=broken("shop.orders", error=TransientFailure))
    report = process.build("2024-01-04")

    assert isinstance(report.results["shop.orders"].error, TransientFailure)
    assert process.engine.calls["write"] == 3


def test_a_final_failure_is_not_tried_again():
    place = shop()
    process = place.process(faults=broken("shop.orders"))
    process.build("2024-01-04")
    assert process.engine.calls["write"] == 1


@pytest.mark.parametrize("operation", ["publish", "create_generation"])
def test_a_catalog_statement_that_fails_for_a_moment_is_tried_again(operation):
    place = shop(kind={"batch_size": 1})
    process = place.process(faults=broken("orders", operation, times=2, error=TransientFailure))
    report = process.build("2024-01-04", concurrency=3)

    assert report.status == "succeeded"
    assert place.rows("shop.orders") == shop_rows(3)


@pytest.mark.parametrize("operation", ["create_generation", "publish"])
def test_the_copy_for_another_environment_is_tried_again(operation):
    place = shop()
    place.build("2024-01-04")
    place.build("2024-01-04", "dev")
    process = place.process(faults=broken("orders", operation, times=2, error=TransientFailure))
    report = process.build("2024-01-04", "dev", restate=("shop.orders",), start="2024-01-02", end="2024-01-02")

    assert report.status == "succeeded"
    told = [(event.what, event.attempt) for event in process.event(Retried)]
    assert told == ([("the copy of shop.orders", 1), ("the copy of shop.orders", 2)] if "create" in operation else [])
    assert place.rows("shop.orders", "dev") == shop_rows(3)
    assert place.unsettled().is_empty


def test_the_copy_for_another_environment_is_given_up_after_three_tries_and_made_by_the_next_command():
    place = shop()
    place.build("2024-01-04")
    place.build("2024-01-04", "dev")
    restated = {"restate": ("shop.orders",), "start": "2024-01-02", "end": "2024-01-02"}
    process = place.process(faults=broken("orders", "create_generation", error=TransientFailure))
    with pytest.raises(TransientFailure):
        process.build("2024-01-04", "dev", **restated)
    assert process.engine.calls["create_generation"] == 3
    assert place.build("2024-01-04", "dev", **restated).status == "succeeded"
    assert place.rows("shop.orders", "dev") == shop_rows(3)
    assert place.unsettled().is_empty


def test_a_publish_that_cannot_be_carried_out_is_left_to_the_next_command():
    place = shop()
    process = place.process(faults=broken("orders", "publish", error=TransientFailure))
    report = process.build("2024-01-04")
    assert isinstance(report.results["shop.orders"].error, BatchFailed)
    assert [attempt.status for attempt in place.unsettled().attempts] == ["decided"]
    again = place.process()
    again.build("2024-01-04")

    assert place.rows("shop.orders") == shop_rows(3)
    assert [node for node, _ in again.engine.writes] == ["shop.totals"]
    assert place.unsettled().is_empty


def test_a_batch_beside_which_files_are_rewritten_is_done_once_more():
    place = Place(orders(table_format="iceberg"), sources={"raw.orders": january(31)})
    place.build("2024-01-03")
    (lake,) = place.catalog.lakes.values()
    process = place.process({("write.decided", 1): lake.rewrite_files})
    report = process.build("2024-01-04")

    assert report.status == "succeeded"
    assert [type(event.error) for event in process.event(BatchRetried)] == [FilesRewritten]
    assert place.rows("shop.orders") == shop_rows(3)
    assert place.unsettled().is_empty


@pytest.mark.parametrize("point", ["write.decided", "recover.retracting", "recover.fenced"])
def test_a_batch_beside_which_files_are_rewritten_may_be_killed_too(point):
    place = Place(orders(table_format="iceberg"), sources={"raw.orders": january(31)})
    place.build("2024-01-03")
    (lake,) = place.catalog.lakes.values()
    process = place.process()
    process.stops = Stops({("write.audited", 1): lake.rewrite_files, (point, 1): process.die})
    with pytest.raises(Killed):
        process.build("2024-01-04")
    place.clock.advance(LEASE_TIME)

    assert place.build("2024-01-04").status == "succeeded"
    assert place.rows("shop.orders") == shop_rows(3)
    assert not place.unsettled().attempts


def shop_rows(days: int) -> tuple:
    return tuple((day, f"orders:x<{value}>") for day, value in january(days).items())


# --- no answer --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("lands", ["never", "before the error", "later"])
def test_a_publish_without_an_answer_keeps_the_lease_open_until_it_is_settled(lands):
    place = shop()
    place.build("2024-01-03")
    place.catalog.sources["raw.orders"]["2024-01-01"] = "late"
    restate = {"restate": ("shop.orders",), "end": "2024-01-01"}
    faults = broken("orders", "publish", error=StatementUnanswered, lands=lands)
    report = place.process(faults=faults).build("2024-01-03", **restate)
    assert report.status == "failed"

    place.clock.advance(LEASE_TIME)
    place.build("2024-01-03")
    assert dict(place.rows("shop.orders"))["2024-01-01"] == "orders:x<late>"
    place.catalog.sources["raw.orders"]["2024-01-01"] = "later"
    place.build("2024-01-03", **restate)
    place.catalog.land()
    assert [lease.status for lease in place.unsettled().leases] == ["lost"]
    place.build("2024-01-03")
    assert dict(place.rows("shop.orders"))["2024-01-01"] == "orders:x<later>"
    place.clock.advance(A_DAY_AND_MORE)
    place.build("2024-01-03")

    assert place.unsettled().is_empty


@pytest.mark.parametrize("lands", ["never", "before the error", "later"])
def test_an_environments_view_without_an_answer_is_looked_at_again(lands):
    place = shop()
    place.build("2024-01-03")
    place.project.change(orders("y"))
    faults = broken("shop.orders", "show", times=1, error=StatementUnanswered, lands=lands)
    with pytest.raises(StatementUnanswered):
        place.process(faults=faults).build("2024-01-03")
    place.clock.advance(LEASE_TIME)
    place.project.change(orders("z"))
    place.build("2024-01-03")
    place.catalog.land()
    place.build("2024-01-03")

    assert place.rows("shop.orders")[0][1] == "orders:z<a1>"
    place.clock.advance(A_DAY_AND_MORE)
    place.build("2024-01-03")
    assert place.unsettled().is_empty


@pytest.mark.parametrize("fact", ["AttemptOpened", "AttemptDecided", "AttemptDone"])
@pytest.mark.parametrize("lands", [True, False])
def test_a_commit_without_an_answer_is_made_up_for(fact, lands):
    place = shop(kind={"batch_size": 1})
    process = place.process()
    commit, is_over = place.store.commit, []

    def lossy(facts, requires=()):
        if not is_over and any(type(one).__name__ == fact for one in facts):
            is_over.append(True)
            if lands:
                commit(facts, requires)
            raise NoAnswer("the connection is gone")
        commit(facts, requires)

    place.store.commit = lossy
    report = process.build("2024-01-04")
    assert report.status == "failed"
    place.clock.advance(LEASE_TIME)
    place.build("2024-01-04")

    assert place.rows("shop.orders") == shop_rows(3)
    assert not place.unsettled().attempts


# --- analysis ---------------------------------------------------------------------------------------------------------
def test_refused_queries_are_reported_together_before_anything_is_written():
    place = diamond()
    refusals = {name: AnalysisFailed(f"`{name}` is wrong") for name in ("shop.left", "shop.other")}
    process = place.process(refusals=refusals)
    report = process.build("2024-01-04")

    assert (report.status, report.exit_code) == ("failed", 1)
    assert {name for name, result in report.results.items() if result.status == "failed"} == set(refusals)
    assert statuses(report)["shop.orders"] == "skipped"
    assert not process.engine.writes
    assert not place.catalog.statements
    assert not place.pointers()


def missing(table: str) -> AnalysisFailed:
    error = AnalysisFailed("the query was refused by Spark", location=Location(file="models/m.sql", line=7))
    error.missing_table = table
    return error


def test_a_table_that_is_not_there_is_one_error_that_names_its_readers():
    place = Place(
        orders(),
        reading("shop.v", "raw.orders", kind=View()),
        reading("shop.last", "shop.v"),
        reading("shop.raw_order", "shop.orders"),
        reading("shop.fine", "raw.others"),
        sources={"raw.orders": january(31), "raw.others": january(1)},
    )
    names = ("shop.orders", "shop.v", "shop.last")
    refusals = {**{name: missing("raw.orders") for name in names}, "shop.fine": AnalysisFailed("other")}
    report = place.process(refusals=refusals).build("2024-01-04")

    assert statuses(report) == {
        "shop.orders": "failed",
        "shop.fine": "failed",
        "shop.v": "skipped",
        "shop.last": "skipped",
        "shop.raw_order": "skipped",
    }
    error = report.results[NodeName("shop.orders")].error
    assert isinstance(error, AnalysisFailed)
    assert error.message == "the table `raw.orders`, read by `shop.orders` and `shop.v`, does not exist"
    assert error.location == Location(file="models/m.sql", line=7)
    assert "did you mean" not in (error.hint or "")


def test_a_model_is_suggested_for_a_missing_table_that_would_close_no_circle():
    place = Place(
        orders(), reading("shop.m", "shop.order"), reading("shop.orderz", "shop.m"), sources={"raw.orders": january(31)}
    )
    report = place.process(refusals={"shop.m": missing("shop.order")}).build("2024-01-04")
    error = report.results[NodeName("shop.m")].error
    assert (error.hint or "").startswith("did you mean `shop.orders`?")


def test_a_refused_query_does_not_reopen_what_is_done():
    place = shop()
    place.build("2024-01-05")
    place.project.change(reading("shop.new", "shop.orders"))
    process = place.process(refusals={"shop.new": AnalysisFailed("wrong")})
    process.build("2024-01-05", restate=("shop.orders",))
    assert place.covered("shop.orders") == ranges(("2024-01-01", "2024-01-05"))


def test_a_view_that_spark_refuses_when_it_is_made_fails_alone():
    place = Place(orders(), reading("shop.v", "shop.orders", kind=View()), sources={"raw.orders": january(31)})
    process = place.process()
    process.stops = Stops(
        {("write.intent", 2): lambda: process.engine.refusals.update({"shop.v": AnalysisFailed("no")})}
    )
    report = process.build("2024-01-04")
    assert statuses(report) == {"shop.orders": "succeeded", "shop.v": "failed"}
    assert place.unsettled().is_empty
    assert place.build("2024-01-04").status == "succeeded"


# --- interrupts -------------------------------------------------------------------------------------------------------
def interrupt() -> None:
    """What Ctrl-C does."""
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


def test_an_interrupt_cancels_jobs_and_leaves_nothing_unsettled():
    place = shop(kind={"batch_size": 1})
    process = place.process()

    def compute(node, interval, sql):
        if interval.start.isoformat().startswith("2024-01-01"):
            interrupt()
        assert process.engine.cancelled.wait(10)
        return []

    process.engine.compute = compute
    with pytest.raises(KeyboardInterrupt):
        process.build("2024-01-06", concurrency=2)

    assert process.engine.calls["cancel"] == 1
    assert place.unsettled().is_empty
    assert place.store.history()[0].status == "interrupted"
    assert place.build("2024-01-06").status == "succeeded"
    assert place.rows("shop.orders") == shop_rows(5)


def test_an_interrupt_after_the_decision_finishes_the_publish():
    place = shop()
    process = place.process()
    is_interrupted = threading.Event()

    def interrupted() -> None:
        interrupt()
        is_interrupted.set()
        assert process.engine.cancelled.wait(10)

    process.stops = Stops({("write.decided", 1): interrupted})
    with pytest.raises(KeyboardInterrupt):
        process.build("2024-01-04")

    assert is_interrupted.is_set()
    assert place.unsettled().is_empty
    versions = place.store.load(LoadRequest(all_environments=True)).revisions
    assert not versions
    again = place.process()
    again.build("2024-01-04")
    assert [node for node, _ in again.engine.writes] == ["shop.totals"]
    assert place.rows("shop.orders") == shop_rows(3)


def test_an_interrupt_does_not_wait_for_another_commands_lease():
    place = shop()
    place.build("2024-01-03")
    physical = place.store.load(LoadRequest(environments=("prod",))).revisions["prod"].pointers["shop.orders"].physical
    place.store.take(f"version:{physical}", owner(), seconds=1000, fate_of=unknown)
    process = place.process()
    process.on_event = lambda event: interrupt() if isinstance(event, Waiting) else None
    with pytest.raises(KeyboardInterrupt):
        process.build("2024-01-04")


@pytest.mark.parametrize(
    ("point", "is_decided"),
    [("promote.taken", False), ("promote.pointer", True), ("promote.between_views", True), ("promote.views", True)],
)
def test_an_interrupt_while_pointers_move_leaves_no_claim_and_finishes_what_is_decided(point, is_decided, monkeypatch):
    place = shop()
    process = place.process()
    is_told = threading.Event()
    give_up = LeaseKeeper.give_up_waiting

    def tell(keeper: LeaseKeeper) -> None:
        give_up(keeper)
        is_told.set()

    def interrupted() -> None:
        interrupt()
        assert is_told.wait(10)

    monkeypatch.setattr(LeaseKeeper, "give_up_waiting", tell)
    process.stops = Stops({(point, 1): interrupted})
    with pytest.raises(KeyboardInterrupt):
        process.build("2024-01-04")

    assert sorted(place.catalog.environments) == (["shop.orders", "shop.totals"] if is_decided else [])
    assert place.unsettled().is_empty
    place.store.take("environment:prod", owner(), seconds=1, fate_of=unknown)


def test_an_interrupt_while_recovering_leaves_no_claim():
    place = shop()
    with pytest.raises(Killed):
        place.dying("write.decided").build("2024-01-04")
    place.clock.advance(LEASE_TIME)
    process = place.process()
    process.stops = Stops({("recover.published", 1): interrupt})
    with pytest.raises(KeyboardInterrupt):
        process.build("2024-01-04")

    assert not place.unsettled().attempts
    again = place.process()
    assert again.build("2024-01-04").status == "succeeded"
    assert not again.event(Waiting)


# --- which pointers move ----------------------------------------------------------------------------------------------
def test_readers_never_see_half_of_a_change_whatever_fails():
    """For every set of failing models: a node moves together with all of its changed neighbours, or not at all."""
    place = diamond()
    place.build("2024-01-04")
    place.project.change(orders("y"))
    plan = place.process().plan("2024-01-04").plan
    changed = [step.node for step in plan.steps if step.has_work]
    assert len(changed) == 4
    for size in range(len(changed) + 1):
        for failing in combinations(changed, size):
            results = {name: NodeResult(status="failed" if name in failing else "succeeded") for name in changed}
            after = pointers_to_move(plan, plan.before, results)
            moved = {name for name in changed if after[name] != plan.before[name]}
            assert moved == (set() if failing else set(changed))
