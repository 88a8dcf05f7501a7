"""What the next command does with models whose runs are put into what their table holds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lamina.errors import HistoryLost, NotYetSupported
from lamina.graph.kinds import (
    IncrementalByPartition,
    IncrementalByUniqueKey,
    IncrementalPolicy,
    IncrementalUnmanaged,
    ScdType2ByColumn,
    ScdType2ByTime,
)
from lamina.graph.model import Model
from lamina.graph.names import NodeName
from lamina.graph.spans import uses_span
from lamina.planning.inputs import Flags
from lamina.planning.plan import make_plan
from lamina.planning.steps import Plan, Step
from tests.kit.models import World, daily, model, ranges

UPSERT = IncrementalByUniqueKey(unique_key=("x",))
KINDS = [UPSERT, IncrementalByPartition(), IncrementalUnmanaged(), ScdType2ByTime(unique_key=("x",))]
OVER_TIME = "SELECT ds, x FROM raw.t WHERE ds BETWEEN @start_ds AND @end_ds"


def folding(kind: Any = UPSERT, query: str = OVER_TIME, reads: tuple[str, ...] = ("raw.t",), **settings: Any) -> Model:
    settings.setdefault("start", "2024-01-01")
    return model("shop.t", reads, kind=kind, query=query, **settings)


def planned(world: World, now: str, *, carry_out: bool = True, **flags: Any) -> tuple[Plan, Step]:
    command = flags.pop("command", "build")
    plan = make_plan(world.inputs(now, command=command, flags=Flags(**flags)))
    if carry_out:
        world.carry_out(plan)
    return plan, next(step for step in plan.steps if step.node == "shop.t")


def spans(step: Step) -> list[tuple[str, str]]:
    assert all(batch.interval is None for batch in step.batches)
    return [(batch.span.to_pair()[0][:10], batch.span.to_pair()[1][:10]) for batch in step.batches if batch.span]


@pytest.mark.parametrize("kind", KINDS)
def test_time_is_gone_over_once_and_in_order(kind: Any):
    world = World(folding(kind))
    _, step = planned(world, "2024-01-05T12:00:00Z")
    assert spans(step) == [("2024-01-01", "2024-01-05")]
    assert (step.reason, step.batches[0].begins_anew) == ("first_run", True)
    assert planned(world, "2024-01-05T18:00:00Z")[1].action == "skip"
    _, step = planned(world, "2024-01-07T12:00:00Z")
    assert spans(step) == [("2024-01-05", "2024-01-07")]
    assert (step.reason, step.batches[0].begins_anew) == ("missing_intervals", False)


def test_batches_hold_as_many_units_as_is_said_and_only_the_first_begins_anew():
    world = World(folding(IncrementalByUniqueKey(unique_key=("x",), batch_size=2)))
    _, step = planned(world, "2024-01-06T12:00:00Z")
    assert spans(step) == [("2024-01-01", "2024-01-03"), ("2024-01-03", "2024-01-05"), ("2024-01-05", "2024-01-06")]
    assert [batch.begins_anew for batch in step.batches] == [True, False, False]
    assert step.batches[1] == tuple(step.batches)[1]


def test_a_run_looks_back_at_recorded_time_only():
    world = World(folding(IncrementalByUniqueKey(unique_key=("x",), lookback=3)))
    assert spans(planned(world, "2024-01-03T12:00:00Z")[1]) == [("2024-01-01", "2024-01-03")]
    assert spans(planned(world, "2024-01-04T12:00:00Z")[1]) == [("2024-01-01", "2024-01-04")]
    assert spans(planned(world, "2024-01-06T12:00:00Z")[1]) == [("2024-01-01", "2024-01-06")]
    assert spans(planned(world, "2024-01-07T12:00:00Z")[1]) == [("2024-01-03", "2024-01-07")]


def test_a_run_processes_what_cron_has_released():
    world = World(folding(cron="0 12 * * *"))
    planned(world, "2024-01-05T13:00:00Z")
    assert planned(world, "2024-01-06T11:00:00Z", command="run")[1].action == "skip"
    assert spans(planned(world, "2024-01-06T12:00:00Z", command="run")[1]) == [("2024-01-05", "2024-01-06")]


def test_bounds_count_for_the_first_run_and_never_leave_a_gap():
    world = World(folding())
    plan, step = planned(world, "2024-01-09T12:00:00Z", start="2024-01-03", end="2024-01-04")
    assert [notice.code for notice in plan.warnings] == ["LAM-WARN-018"]
    assert spans(step) == [("2024-01-03", "2024-01-05")]
    assert step.left_out == ranges(("2024-01-01", "2024-01-03"), ("2024-01-05", "2024-01-09"))
    assert spans(planned(world, "2024-01-09T12:00:00Z", start="2024-01-07")[1]) == [("2024-01-05", "2024-01-09")]
    assert planned(world, "2024-01-09T12:00:00Z")[1].action == "skip"


def test_only_the_time_before_the_first_unit_that_waits_is_processed():
    parent = model("shop.p", ["raw.t"], kind=daily(), start="2024-01-01", end="2024-01-31")
    child = folding(query=OVER_TIME.replace("raw.t", "shop.p"), reads=("shop.p",))
    world = World(parent, child)
    _, step = planned(world, "2024-01-08T12:00:00Z", end="2024-01-03")
    assert spans(step) == [("2024-01-01", "2024-01-04")]
    plan, step = planned(world, "2024-01-08T12:00:00Z", select=("shop.t",), carry_out=False)
    assert (step.action, step.waiting) == ("wait", ranges(("2024-01-04", "2024-01-08")))
    assert not plan.is_blocked


def test_a_query_that_says_nothing_about_time_runs_whole():
    whole = folding(query="SELECT ds, x FROM raw.t WHERE ds < @execution_ds")
    assert not uses_span({}, whole)
    world = World(whole)
    _, step = planned(world, "2024-01-05T12:00:00Z")
    assert [(batch.span, batch.begins_anew) for batch in step.batches] == [(None, False)]
    assert planned(world, "2024-01-09T12:00:00Z")[1].action == "skip"
    assert planned(world, "2024-01-09T12:00:00Z", command="run")[1].reason == "source_changed"


def test_what_a_clause_says_about_time_counts_as_the_query_does():
    kind = IncrementalByUniqueKey(unique_key=("x",), merge_filter="target.ds >= @start_ds")
    assert uses_span({}, folding(kind, query="SELECT ds, x FROM raw.t"))


@pytest.mark.parametrize("request_", [{"restate": ("shop.t",)}, {"force": True}])
def test_a_request_builds_everything_anew_and_is_loud(request_: dict[str, Any]):
    world = World(folding())
    planned(world, "2024-01-05T12:00:00Z")
    plan, step = planned(world, "2024-01-06T12:00:00Z", start="2024-01-04", **request_)
    assert spans(step) == [("2024-01-01", "2024-01-06")]
    assert step.batches[0].begins_anew
    assert step.redone == ranges(("2024-01-01", "2024-01-05"))
    assert [notice.code for notice in plan.warnings] == ["LAM-WARN-016"]


@pytest.mark.parametrize("query", [OVER_TIME, "SELECT ds, x FROM raw.t"])
@pytest.mark.parametrize("request_", [{"restate": ("shop.t",)}, {"force": True}])
def test_what_forbids_restatement_is_left_alone(query: str, request_: dict[str, Any]):
    world = World(folding(IncrementalUnmanaged(), query=query))
    planned(world, "2024-01-05T12:00:00Z")
    assert planned(world, "2024-01-05T12:00:00Z", **request_)[1].action == "skip"


HISTORY = ScdType2ByTime(unique_key=("x",))
CHANGED = OVER_TIME.replace("x FROM", "x + 1 AS x FROM")
NARROWER = OVER_TIME.replace("ds, x", "x")
WIDER = OVER_TIME.replace("x FROM", "x, 1 AS y FROM")


def test_a_changed_history_is_rebuilt_only_where_somebody_says_so():
    world = World(folding(HISTORY))
    planned(world, "2024-01-05T12:00:00Z")
    allowed = (
        folding(HISTORY, query=CHANGED, replay_on_change="full"),
        folding(replace(HISTORY, policy=IncrementalPolicy()), query=CHANGED),
    )
    for made in allowed:
        world.change(made)
        plan, step = planned(world, "2024-01-05T12:00:00Z", carry_out=False)
        assert (step.reason, spans(step)) == ("query_changed", [("2024-01-01", "2024-01-05")])
        assert (step.replay, step.continues) == ("full", None)
        assert [notice.code for notice in plan.warnings] == ["LAM-WARN-016"]


@pytest.mark.parametrize(
    ("query", "columns", "policy"),
    [
        (CHANGED, ("ds", "x"), "error"),
        (WIDER, ("ds", "x", "y"), "error"),
        (NARROWER, ("x",), "ignore"),
        (NARROWER, ("x",), "allow"),
    ],
)
def test_a_changed_history_goes_on_with_the_rows_of_the_version_before_it(
    query: str, columns: tuple[str, ...], policy: Any
):
    world = World(folding(HISTORY))
    _, first = planned(world, "2024-01-05T12:00:00Z")
    kind = replace(HISTORY, policy=replace(HISTORY.policy, on_destructive_change=policy))
    world.change(folding(kind, query=query, columns=columns))
    plan, step = planned(world, "2024-01-05T12:00:00Z")
    assert (step.action, step.replay, step.change) == ("seed_and_build", "forward", "forward_only")
    assert step.explanation == (
        "goes on with the rows that it holds now, because its query changed and its history is kept"
    )
    assert step.continues is not None
    assert (step.continues.source, spans(step)) == (first.physical, [])
    assert plan.warnings == ()
    assert planned(world, "2024-01-05T12:00:00Z")[1].action == "skip"
    _, step = planned(world, "2024-01-07T12:00:00Z")
    assert (step.action, spans(step)) == ("build", [("2024-01-05", "2024-01-07")])


def test_what_a_model_with_a_history_reads_may_change():
    parent = model("shop.p", ["raw.t"], query="SELECT ds, x FROM raw.t")
    child = folding(HISTORY, query="SELECT ds, x FROM shop.p", reads=("shop.p",))
    world = World(parent, child)
    planned(world, "2024-01-05T12:00:00Z")
    world.change(model("shop.p", ["raw.t"], query="SELECT ds, x + 1 AS x FROM raw.t"), child)
    _, step = planned(world, "2024-01-05T12:00:00Z")
    assert (step.action, step.reason, step.cause) == ("seed_and_build", "upstream_changed", "shop.p")
    assert [(batch.span, batch.begins_anew) for batch in step.batches] == [(None, False)]
    assert all(step.action == "skip" for step in make_plan(world.inputs("2024-01-05T12:00:00Z")).steps)


@pytest.mark.parametrize(
    ("kind", "query", "settings", "why"),
    [
        (HISTORY, NARROWER, {"columns": ("x",)}, "where columns go away or are not known"),
        (HISTORY, "SELECT ds, x FROM raw.t", {}, "runs that go on in time, or the other way round"),
        (replace(HISTORY, unique_key=("ds",)), OVER_TIME, {}, "where keys, partitions or other settings changed"),
        (HISTORY, CHANGED, {"replay_on_change": "bounded-7d"}, "with `replay_on_change bounded-7d`"),
    ],
    ids=["a column less", "no time any more", "another key", "a part of it"],
)
def test_a_history_that_cannot_go_on_is_refused(kind: Any, query: str, settings: dict[str, Any], why: str):
    world = World(folding(HISTORY))
    planned(world, "2024-01-05T12:00:00Z")
    world.change(folding(kind, query=query, **settings))
    with pytest.raises(NotYetSupported) as caught:
        planned(world, "2024-01-05T12:00:00Z")
    assert caught.value.message.endswith(why)
    assert "`--reset shop.t` builds it anew, and its history is lost" in (caught.value.hint or "")
    # What the hint offers instead.
    world.change(folding(HISTORY), replace(folding(kind, query=query, **settings), name=NodeName("shop.other")))
    plan = make_plan(world.inputs("2024-01-05T12:00:00Z"))
    assert {step.node: step.action for step in plan.steps} == {"shop.t": "skip", "shop.other": "build"}


BY_COLUMN = ScdType2ByColumn(unique_key=("x",), columns=("ds",))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (HISTORY, replace(HISTORY, invalidate_hard_deletes=True)),
        (HISTORY, replace(HISTORY, updated_at_name="ds", updated_at_as_valid_from=True)),
        (BY_COLUMN, replace(BY_COLUMN, columns=(), updated_at_name="ds", execution_time_as_valid_from=True)),
    ],
)
@pytest.mark.parametrize("query", [OVER_TIME, CHANGED])
def test_a_history_goes_on_by_other_rules_for_later_runs(before: Any, after: Any, query: str):
    world = World(folding(before))
    planned(world, "2024-01-05T12:00:00Z")
    world.change(folding(after, query=query))
    _, step = planned(world, "2024-01-06T12:00:00Z")
    assert (step.action, step.change, spans(step)) == (
        "seed_and_build",
        "forward_only",
        [("2024-01-05", "2024-01-06")],
    )
    assert not step.batches[0].begins_anew


@pytest.mark.parametrize(
    "after", [{"valid_from_name": "since"}, {"time_data_type": "date"}, {"unique_key": ("ds",)}], ids=str
)
def test_a_history_does_not_go_on_with_other_keys_or_columns_of_validity(after: dict[str, Any]):
    world = World(folding(HISTORY))
    planned(world, "2024-01-05T12:00:00Z")
    world.change(folding(replace(HISTORY, **after)))
    with pytest.raises(NotYetSupported, match="where keys, partitions or other settings changed"):
        planned(world, "2024-01-05T12:00:00Z")


KEPT = replace(UPSERT, policy=IncrementalPolicy(forward_only=True))


def changed_upsert() -> World:
    world = World(folding(KEPT))
    planned(world, "2024-01-05T12:00:00Z")
    world.change(folding(KEPT, query=CHANGED))
    return world


def test_force_lets_a_changed_model_that_keeps_its_history_go_on():
    plan, step = planned(changed_upsert(), "2024-01-06T12:00:00Z", force=True)
    assert (step.action, spans(step)) == ("seed_and_build", [("2024-01-05", "2024-01-06")])
    assert not step.batches[0].begins_anew
    assert plan.warnings == ()


def test_restating_a_model_that_keeps_its_history_while_it_changes_is_refused():
    with pytest.raises(HistoryLost, match="would build it anew") as caught:
        planned(changed_upsert(), "2024-01-05T12:00:00Z", restate=("shop.t",))
    assert "`--reset shop.t` begins from scratch" in (caught.value.hint or "")


WHOLE = "SELECT ds, x FROM raw.t"
OPEN_HISTORY = replace(HISTORY, policy=IncrementalPolicy(forward_only=True))
LOG = IncrementalUnmanaged(policy=IncrementalPolicy(forward_only=True))


@pytest.mark.parametrize("environment", ["prod", "dev"])
@pytest.mark.parametrize("query", [OVER_TIME, WHOLE])
@pytest.mark.parametrize("kind", [KEPT, IncrementalByPartition()], ids=["upsert", "partitions"])
def test_a_kept_history_is_not_built_anew_by_a_restatement(kind: Any, query: str, environment: str):
    world = World(folding(kind, query=query))
    planned(world, "2024-01-05T12:00:00Z")
    inputs = world.inputs("2024-01-05T12:00:00Z", environment=environment, flags=Flags(restate=("shop.t",)))
    with pytest.raises(HistoryLost, match="keeps its history") as caught:
        make_plan(inputs)
    assert "`--reset shop.t` begins from scratch" in (caught.value.hint or "")


@pytest.mark.parametrize("kind", [KEPT, IncrementalByPartition(), OPEN_HISTORY, LOG])
def test_force_leaves_the_recorded_runs_of_a_kept_history_alone_and_says_so(kind: Any):
    world = World(folding(kind))
    planned(world, "2024-01-05T12:00:00Z")
    plan, step = planned(world, "2024-01-05T12:00:00Z", force=True, carry_out=False)
    assert (step.action, step.redone.is_empty) == ("skip", True)
    assert [(notice.code, "does not do its recorded runs again" in notice.message) for notice in plan.warnings] == [
        ("LAM-WARN-025", True)
    ]
    _, step = planned(world, "2024-01-06T12:00:00Z", force=True)
    assert (spans(step), step.batches[0].begins_anew) == ([("2024-01-05", "2024-01-06")], False)


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        (KEPT, "what earlier runs made stays; `lamina build --reset shop.t`"),
        (IncrementalByPartition(), "what earlier runs made stays; `lamina build --reset shop.t`"),
        (OPEN_HISTORY, "what earlier runs made stays; `lamina build --restate shop.t`"),
        (LOG, "rows may be there twice; `lamina build --restate shop.t`"),
    ],
)
def test_force_puts_one_more_run_on_top_of_a_kept_history_without_time(kind: Any, what: str):
    world = World(folding(kind, query=WHOLE))
    planned(world, "2024-01-05T12:00:00Z")
    plan, step = planned(world, "2024-01-05T12:00:00Z", force=True)
    assert (step.action, step.reason, [batch.begins_anew for batch in step.batches]) == ("build", "forced", [False])
    (notice,) = plan.warnings
    assert (notice.code, what in notice.message) == ("LAM-WARN-025", True)


@pytest.mark.parametrize("query", [OVER_TIME, WHOLE])
@pytest.mark.parametrize("kind", [OPEN_HISTORY, LOG])
def test_a_model_that_lifts_the_protection_of_its_kind_may_be_restated(kind: Any, query: str):
    world = World(folding(kind, query=query))
    planned(world, "2024-01-05T12:00:00Z")
    plan, step = planned(world, "2024-01-05T12:00:00Z", restate=("shop.t",))
    assert (step.reason, step.batches[0].begins_anew) == ("restated", True)
    assert [notice.code for notice in plan.warnings] == ["LAM-WARN-016"]


@pytest.mark.parametrize("kind", [KEPT, HISTORY], ids=["upsert", "protected history"])
def test_a_reset_builds_a_model_that_keeps_its_history_anew(kind: Any):
    world = World(folding(kind))
    planned(world, "2024-01-05T12:00:00Z")
    plan, step = planned(world, "2024-01-05T12:00:00Z", reset=("shop.t",), carry_out=False)
    assert (step.reason, spans(step), step.batches[0].begins_anew) == (
        "restated",
        [("2024-01-01", "2024-01-05")],
        True,
    )
    world.change(folding(kind, query=CHANGED))
    plan, step = planned(world, "2024-01-05T12:00:00Z", reset=("shop.t",))
    assert (step.action, step.continues, spans(step)) == ("build", None, [("2024-01-01", "2024-01-05")])
    assert [notice.code for notice in plan.warnings] == ["LAM-WARN-016"]


def test_a_changed_table_of_runs_is_not_shortened_by_a_start():
    world = World(folding())
    planned(world, "2024-01-05T12:00:00Z")
    world.change(folding(query=CHANGED))
    with pytest.raises(HistoryLost, match="would lack"):
        planned(world, "2024-01-05T12:00:00Z", start="2024-01-04")
    _, step = planned(world, "2024-01-05T12:00:00Z", start="2024-01-04", allow_gaps=True)
    assert spans(step) == [("2024-01-04", "2024-01-05")]


def test_children_of_a_fold_do_not_wait_for_its_time():
    child = model("shop.c", ["shop.t"], kind=daily(), start="2024-01-01")
    world = World(folding(), child)
    plan, _ = planned(world, "2024-01-05T12:00:00Z")
    assert plan.steps[1].intervals == ranges(("2024-01-01", "2024-01-05"))


@pytest.mark.parametrize(("kind", "is_done"), [(kind, isinstance(kind, IncrementalByPartition)) for kind in KINDS])
def test_a_query_that_says_nothing_about_time_runs_again_for_new_rows_not_for_other_ones(kind: Any, is_done: bool):
    parent = model("shop.p", ["raw.t"], kind=daily(), start="2024-01-01")
    world = World(parent, folding(kind, query="SELECT ds, x FROM shop.p", reads=("shop.p",)))
    planned(world, "2024-01-05T12:00:00Z")
    restated = {"restate": ("shop.p",), "start": "2024-01-02"}
    plan, step = planned(world, "2024-01-05T12:00:00Z", carry_out=False, **restated)
    assert (step.action, step.reason, step.cause) == ("build" if is_done else "skip", "upstream_rewritten", "shop.p")
    assert [notice.code for notice in plan.warnings] == ["LAM-WARN-024"]
    if not is_done:
        assert "left as it is, although `shop.p` is computed again" in step.explanation
    plan, step = planned(world, "2024-01-06T12:00:00Z", **restated)
    assert (step.action, step.cause) == ("build", "shop.p")
