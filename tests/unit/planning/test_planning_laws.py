"""What holds for every plan, whatever the graph, the schedules and what happened before."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.graph.kinds import Embedded, Full, IncrementalByTimeRange, View, has_intervals
from lamina.graph.model import Model
from lamina.graph.names import NodeName
from lamina.planning.batches import batches_of
from lamina.planning.inputs import Flags, VersionFacts
from lamina.planning.missing import (
    asked_range,
    missing_intervals,
    schedule_of,
    starts_of,
    whole_units,
    with_lookback,
)
from lamina.planning.plan import make_plan
from lamina.planning.readiness import split_by_readiness, stored_parents
from lamina.planning.steps import Plan, Step
from lamina.timeline.grain import Grain
from lamina.timeline.interval import EMPTY, MICROS_PER_DAY, MICROS_PER_HOUR, Instant, Interval, Intervals
from tests.kit.models import World, daily, graph, instant, model

FIRST = instant("2024-01-01")
CRONS = ("@daily", "@hourly", "0 6 * * *", "30 */6 * * *", "@weekly", "@monthly")


class Ledger(World):
    """A world that also forgets what a plan reopens, as state does."""

    def carry_out(self, plan: Plan, failing: Any = ()) -> None:
        for step in plan.steps:
            if step.physical in self.facts and not step.redone.is_empty:
                facts = self.facts[step.physical]
                self.facts[step.physical] = replace(
                    facts, covered=facts.covered.minus(step.redone), mark=facts.mark + 1
                )
        super().carry_out(plan, failing)

    def forget(self, name: str, hole: Intervals) -> None:
        """Part of a model's recorded time is lost."""
        for place, facts in self.facts.items():
            if facts.node == name:
                self.facts[place] = replace(facts, covered=facts.covered.minus(hole))

    def plan(self, now: Instant, command: str = "build", **options: Any) -> Plan:
        return make_plan(self.inputs(now.isoformat(), command=command, **options))

    def apply(self, now: Instant, command: str = "build", **options: Any) -> Plan:
        plan = self.plan(now, command, **options)
        self.carry_out(plan)
        return plan


def steps_of(plan: Plan) -> dict[NodeName, Step]:
    return {step.node: step for step in plan.steps}


def facts_of(world: Ledger, step: Step) -> VersionFacts | None:
    return world.facts.get(step.physical) if step.physical is not None else None


def after(hours: int, start: Instant = FIRST) -> Instant:
    return start.plus(hours * MICROS_PER_HOUR)


# --- strategies -------------------------------------------------------------------------------------------------------
moments = st.integers(24, 24 * 70).map(after)
commands = st.sampled_from(["build", "run"])


@st.composite
def incremental(draw, name: str, reads: list[str], *, lookback: int = 0) -> Model:
    """An incremental model on any schedule."""
    cron = draw(st.sampled_from(CRONS))
    kind = daily(
        batch_size=draw(st.none() | st.integers(1, 9)),
        lookback=draw(st.integers(0, lookback)),
    )
    start = draw(st.none() | st.integers(0, 20))
    made = model(
        name,
        reads or ["raw.x"],
        kind=kind,
        cron=cron,
        start=after(24 * (start or 0)).isoformat()[:10] if start is not None or not reads else None,
    )
    return replace(made, grain=schedule_of(made).grain())


@st.composite
def projects(draw, *, lookback: int = 0) -> list[Model]:
    """Up to five models, each reading some of those before it."""
    made: list[Model] = []
    for number in range(draw(st.integers(1, 5))):
        earlier = [str(other.name) for other in made]
        reads = draw(st.lists(st.sampled_from(earlier), unique=True, max_size=2)) if earlier else []
        name = f"shop.m{number}"
        kind = draw(st.sampled_from(["incremental", "incremental", "full", "view", "embedded"]))
        if kind == "incremental":
            made.append(draw(incremental(name, reads, lookback=lookback)))
        else:
            whole = {"full": Full(), "view": View(), "embedded": Embedded()}[kind]
            made.append(model(name, reads or ["raw.x"], kind=whole, start="2024-01-01"))
    return made


@st.composite
def holes(draw) -> Intervals:
    """Any time within the first forty days, cut at hours."""
    pairs = draw(st.lists(st.tuples(st.integers(0, 960), st.integers(1, 120)), max_size=4))
    return Intervals.of(Interval(after(begin), after(begin + length)) for begin, length in pairs)


def aligned(grain: Grain, time: Intervals) -> Intervals:
    """The whole units that lie inside."""
    return Intervals.of(unit for interval in time for unit in grain.units(interval))


# --- one model --------------------------------------------------------------------------------------------------------
@given(one=incremental("shop.m", [], lookback=4), now=moments, done=holes(), command=commands)
@settings(max_examples=35)
def test_exactly_the_missing_units_and_those_looked_back_at_are_planned(one, now, done, command):
    start = one.grain.floor(instant(one.start))
    covered = aligned(one.grain, done)
    asked = asked_range(one, start, Flags(), now, respects_cron=command == "run")
    found = with_lookback(one, missing_intervals(one, asked, covered), start, one.kind.lookback)

    limit = schedule_of(one).previous_tick(now) if command == "run" else now
    units = list(one.grain.units(Interval(start, max(limit, start.plus(1)))))
    missing = [number for number, unit in enumerate(units) if not covered.covers(unit)]
    again = {number - back for number in missing for back in range(one.kind.lookback + 1) if number - back >= 0}
    assert found == Intervals.of(units[number] for number in again)


@given(one=incremental("shop.m", []), time=holes())
@settings(max_examples=35)
def test_batches_cut_their_intervals_without_gap_overlap_or_excess(one, time):
    intervals = aligned(one.grain, time)
    batches = batches_of(one, intervals)
    pieces = [batch.interval for batch in batches]
    assert [batch.index for batch in batches] == list(range(len(batches)))
    assert Intervals.of(pieces) == intervals
    assert pieces == sorted(pieces, key=lambda piece: piece.start)
    assert sum(one.grain.count(piece) for piece in pieces) == sum(one.grain.count(each) for each in intervals)
    size = one.kind.batch_size
    assert all(size is None or one.grain.count(piece) <= size for piece in pieces)


@given(time=holes(), now=moments)
@settings(max_examples=20)
def test_partial_units_are_done_again_until_they_are_over(time, now):
    one = model("shop.m", ["raw.x"], kind=daily(), start="2024-01-01", allow_partials=True)
    asked = asked_range(one, FIRST, Flags(), now, respects_cron=False)
    covered = Intervals.of([Interval(FIRST, now)])
    found = missing_intervals(one, asked, covered)
    begun = one.grain.floor(now)
    assert found == (Intervals.of([Interval(begun, now)]) if begun < now else EMPTY)
    assert whole_units(one, time).minus(time).is_empty


# --- readiness --------------------------------------------------------------------------------------------------------
@given(
    parents=st.lists(holes(), min_size=1, max_size=3),
    child=incremental("shop.child", ["shop.p0"]),
    missing=holes(),
    now=moments,
)
@settings(max_examples=35)
def test_what_is_ready_and_what_waits_is_what_is_missing(parents, child, missing, now):
    names = [f"shop.p{number}" for number in range(len(parents))]
    child = replace(child, reads=tuple(NodeName(name) for name in names))
    made = graph(*(model(name, ["raw.x"], kind=daily(), start="2024-01-01") for name in names), child)
    available = {NodeName(name): (FIRST, covered) for name, covered in zip(names, parents, strict=True)}
    missing = aligned(child.grain, missing)
    found = split_by_readiness(made, child, missing, available, now)

    assert found.ready.union(found.waiting) == missing
    assert found.ready.intersect(found.waiting).is_empty
    for interval in missing:
        for unit in child.grain.units(interval):
            behind = [c for c in parents if not c.covers(Interval(FIRST, unit.end))]
            assert found.ready.covers(unit) == (not behind)
    assert bool(found.waiting_for) == (not found.waiting.is_empty)


# --- whole projects ---------------------------------------------------------------------------------------------------
@given(models=projects(lookback=2), now=moments, command=commands)
@settings(max_examples=35)
def test_planning_after_applying_gives_nothing_to_do(models, now, command):
    world = Ledger(*models)
    world.apply(now)
    assert not world.plan(now, command).has_work
    assert not any(step.has_work for step in world.plan(now, command).steps)


@given(models=projects(lookback=2), clocks=st.lists(moments, min_size=1, max_size=4), data=st.data())
@settings(max_examples=35)
def test_after_any_history_two_builds_are_as_good_as_one(models, clocks, data):
    world = Ledger(*models)
    world.apply(FIRST.plus(MICROS_PER_DAY))
    for now in sorted(clocks):
        if data.draw(st.booleans()):
            world.forget(data.draw(st.sampled_from([str(one.name) for one in models])), data.draw(holes()))
        failing = data.draw(st.lists(st.sampled_from([str(one.name) for one in models]), max_size=2, unique=True))
        plan = world.plan(now, data.draw(commands))
        lost = set(failing) | {str(name) for name in world.graph.descendants(NodeName(name) for name in failing)}
        world.carry_out(replace(plan, pointers=plan.before), lost)
    last = max(clocks)
    world.apply(last)
    assert not any(step.has_work for step in world.plan(last).steps)


@given(models=projects(lookback=2), clocks=st.lists(moments, min_size=1, max_size=4), command=commands)
@settings(max_examples=35)
def test_what_is_planned_is_asked_for_and_not_done_except_for_what_is_redone(models, clocks, command):
    world = Ledger(*models)
    world.apply(FIRST.plus(MICROS_PER_DAY))
    for now in sorted(clocks):
        plan = world.plan(now, command)
        starts = starts_of(world.graph, now, None)
        for name, step in steps_of(plan).items():
            one = world.graph.models[name]
            if not has_intervals(one.kind):
                continue
            facts = facts_of(world, step)
            covered = facts.covered if facts else EMPTY
            until = schedule_of(one).previous_tick(now) if command == "run" else now
            assert all(starts[name] <= each.start and each.end <= max(until, now) for each in step.intervals)
            again, new = step.intervals.intersect(covered), step.intervals.minus(covered)
            assert isinstance(one.kind, IncrementalByTimeRange)
            assert with_lookback(one, new, starts[name], one.kind.lookback).intersect(covered) == again
            assert step.redone.is_empty
            assert step.may_follow.minus(covered).is_empty
            assert step.may_follow.is_empty or _looks_back(world, name)
            assert Intervals.of(batch.interval for batch in step.batches) == step.intervals
        world.carry_out(plan)


def _looks_back(world: Ledger, name: NodeName) -> bool:
    """Whether a model above reprocesses recorded units."""
    kinds = (world.graph.models[other].kind for other in world.graph.ancestors([name]))
    return any(isinstance(kind, IncrementalByTimeRange) and kind.lookback for kind in kinds)


@given(models=projects(), clocks=st.lists(moments, min_size=1, max_size=8))
@settings(max_examples=35)
def test_run_at_growing_clocks_processes_every_released_unit_exactly_once(models, clocks):
    world = Ledger(*models)
    processed: Counter[tuple[NodeName, Instant]] = Counter()

    def count(plan: Plan) -> None:
        for step in plan.steps:
            one = world.graph.models[step.node]
            for interval in step.intervals:
                processed.update((step.node, unit.start) for unit in one.grain.units(interval))

    count(world.apply(FIRST.plus(MICROS_PER_DAY)))
    for now in sorted(clocks):
        count(world.apply(now, "run"))
    assert not processed or set(processed.values()) == {1}
    last = max(clocks)
    pointers = world.revisions["prod"].pointers
    for name, one in world.graph.models.items():
        alone = has_intervals(one.kind) and not stored_parents(world.graph, name)
        if alone and name in pointers:
            start = starts_of(world.graph, last, None)[name]
            until = one.grain.floor(schedule_of(one).previous_tick(last))
            expected = {unit.start for unit in one.grain.units(Interval(start, until))} if start < until else set()
            first = {unit for node, unit in processed if node == name and unit >= until}
            assert {unit for node, unit in processed if node == name} == expected | first


@given(models=projects(lookback=1), now=moments, restated=st.integers(0, 4), day=st.integers(0, 60))
@settings(max_examples=35)
def test_a_restatement_reaches_every_later_unit_below_it_and_nothing_else(models, now, restated, day):
    world = Ledger(*models)
    world.apply(now)
    target = models[restated % len(models)]
    if not has_intervals(target.kind) or target.name not in world.revisions["prod"].pointers:
        return
    flags = Flags(restate=(str(target.name),), start=after(24 * day).isoformat())
    found = steps_of(world.plan(now, flags=flags))
    again = found[target.name].redone
    reached = world.graph.descendants([target.name])
    for name, step in found.items():
        one = world.graph.models[name]
        covered = world.covered(str(name))
        if name == target.name or not has_intervals(one.kind):
            continue
        span = again.span()
        if name not in reached or span is None:
            assert step.redone.is_empty
            assert step.may_follow.is_empty
            continue
        direct_parents = stored_parents(world.graph, name)
        direct = target.name in direct_parents
        # A table between them that is computed whole may have other rows of any time.
        is_open = any(p in reached and not has_intervals(world.graph.models[p].kind) for p in direct_parents)
        late = [u for each in covered for u in one.grain.units(each) if is_open or u.end > span.start]
        assert step.redone.is_empty
        assert not direct or step.may_follow == step.intervals == Intervals.of(late)
    world.apply(now, flags=flags)
    assert not any(step.has_work for step in world.plan(now).steps)


@given(models=projects(lookback=1), now=moments, chosen=st.integers(0, 4), data=st.data())
@settings(max_examples=25)
def test_what_is_not_selected_is_not_touched(models, now, chosen, data):
    world = Ledger(*models)
    if data.draw(st.booleans()):
        world.apply(FIRST.plus(MICROS_PER_DAY))
    name = models[chosen % len(models)].name
    plan = world.plan(now, flags=Flags(select=(str(name),)))
    assert {step.node for step in plan.steps if step.action != "skip"} <= {name}
    assert all(plan.pointers.get(other.name) == plan.before.get(other.name) for other in models if other.name != name)


@given(models=projects(), now=moments, later=moments)
@settings(max_examples=25)
def test_a_new_environment_of_an_unchanged_project_has_no_work(models, now, later):
    world = Ledger(*models)
    world.apply(now)
    plan = world.plan(now, environment="dev")
    assert not any(step.has_work for step in plan.steps if step.node in world.revisions["prod"].pointers)
    world.carry_out(plan)
    shared = {name for name in plan.pointers if name in world.revisions["prod"].pointers}
    run = world.plan(max(now, later), "run", environment="dev")
    assert not any(step.has_work for step in run.steps if step.node in shared)


@given(models=projects(lookback=2), now=moments, command=commands)
@settings(max_examples=20)
def test_every_step_has_a_sentence_and_a_plan_is_a_value(models, now, command):
    world = Ledger(*models)
    world.apply(FIRST.plus(MICROS_PER_DAY))
    plan = world.plan(now, command)
    assert plan == world.plan(now, command)
    assert all(step.explanation for step in plan.steps)
    assert all((step.action == "build") == bool(step.batches) for step in plan.steps)
