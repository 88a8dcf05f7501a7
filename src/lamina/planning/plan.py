"""Making the plan: what would be done with every node, and why. A pure function of `PlanInputs`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lamina.environments.pointers import Pointer
from lamina.errors import EnvironmentDetached, NotYetSupported, raise_all
from lamina.graph.kinds import Embedded, IncrementalByTimeRange, Seed, View, has_intervals, stores_rows
from lamina.graph.model import PythonBody, SqlBody
from lamina.planning.batches import batches_of, concurrency_of
from lamina.planning.explain import explain
from lamina.planning.missing import (
    asked_range,
    missing_intervals,
    restated_intervals,
    schedule_of,
    starts_of,
    with_lookback,
)
from lamina.planning.readiness import Readiness, reads_unknown, split_by_readiness, stored_parents
from lamina.planning.reasons import UNCHANGED, Difference, differences
from lamina.planning.selection import select
from lamina.planning.steps import Batch, Plan, Step
from lamina.planning.support import limitations, unsupported
from lamina.sql.compare import changed_columns, unified_diff
from lamina.timeline.interval import EMPTY, Interval, Intervals

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamina.environments.pointers import Status
    from lamina.graph.model import Model
    from lamina.graph.names import NodeName
    from lamina.planning.inputs import PlanInputs, VersionFacts
    from lamina.planning.steps import Action, Change, Reason
    from lamina.timeline.interval import Instant


@dataclass(slots=True, kw_only=True)
class _Work:
    """What a node needs, while the plan is being made."""

    intervals: Intervals = EMPTY
    redone: Intervals = EMPTY
    """Recorded intervals that are computed again, here or by a later command."""
    is_whole: bool = False
    reason: Reason = "unchanged"
    cause: NodeName | None = None
    readiness: Readiness = field(default_factory=lambda: Readiness(ready=EMPTY, waiting=EMPTY))

    @property
    def is_needed(self) -> bool:
        return self.is_whole or not self.intervals.is_empty


@dataclass(slots=True, kw_only=True)
class _Draft:
    """Everything known so far, keyed by node; filled parents first."""

    inputs: PlanInputs
    before: Mapping[NodeName, Pointer]
    differences: Mapping[NodeName, Difference]
    chosen: frozenset[NodeName]
    restated: frozenset[NodeName]
    starts: Mapping[NodeName, Instant]
    works: dict[NodeName, _Work] = field(default_factory=dict)
    available: dict[NodeName, tuple[Instant, Intervals]] = field(default_factory=dict)
    blocked_by: dict[NodeName, tuple[NodeName, ...]] = field(default_factory=dict)
    unready: dict[NodeName, str] = field(default_factory=dict)
    """Nodes that will have no table after this plan, and why; nothing that reads them can be built."""

    @property
    def respects_cron(self) -> bool:
        return self.inputs.command == "run" and not self.inputs.flags.ignore_cron

    @property
    def is_baseline(self) -> bool:
        return self.inputs.environment.environment == self.inputs.baseline_name

    def facts(self, name: NodeName) -> VersionFacts | None:
        physical = self.inputs.physical.get(name)
        return self.inputs.facts.get(physical) if physical is not None else None

    def is_shared(self, name: NodeName) -> bool:
        """Whether the version belongs to the baseline, which alone may write it."""
        pointer = self.inputs.baseline.pointers.get(name)
        return not self.is_baseline and pointer is not None and pointer.version == self.inputs.versions[name].version


def make_plan(inputs: PlanInputs) -> Plan:
    """Decide what to do with every node; raise what a person has to settle first."""
    if inputs.environment.status == "detached":
        raise EnvironmentDetached(
            f"environment `{inputs.environment.environment}` is detached",
            hint=f"`lamina state attach {inputs.environment.environment}` lets commands change it again",
        )
    raise_all(unsupported(inputs.graph, inputs.flags))
    draft = _draft(inputs)
    for name in inputs.graph.models:
        draft.blocked_by[name] = _stale_unchosen(draft, name)
        draft.works[name] = _work_of(draft, name)
    raise_all((*_unsupported_replays(draft), *_unsupported_forks(draft)))
    steps = tuple(_step(draft, name) for name in inputs.graph.models) + _removals(draft)
    return Plan(
        command=inputs.command,
        environment=inputs.environment.environment,
        status=inputs.environment.status,
        baseline=inputs.baseline_name,
        revision=inputs.environment.number,
        now=inputs.now,
        steps=steps,
        pointers=_pointers_after(draft, steps),
        before=draft.before,
        final_status=_final_status(draft),
        models=inputs.graph.models,
        versions=inputs.versions,
        marks={
            step.physical: facts.mark if (facts := inputs.facts.get(step.physical)) else 0
            for step in steps
            if step.physical is not None and (step.has_work or not step.redone.is_empty)
        },
        warnings=(*inputs.graph.warnings, *limitations(inputs.graph)),
    )


def _draft(inputs: PlanInputs) -> _Draft:
    is_new = inputs.environment.number == 0
    before = inputs.baseline.pointers if is_new else inputs.environment.pointers
    found = differences(inputs.graph, inputs.versions, before, inputs.previous_fingerprints)
    modified = frozenset(name for name, difference in found.items() if difference is not UNCHANGED)
    flags = inputs.flags
    chosen = select(inputs.graph, flags.select, flags.exclude, modified)
    restated = select(inputs.graph, flags.restate, (), modified) if flags.restate else frozenset()
    if flags.include_stale_upstreams:
        stale = frozenset(name for name, difference in found.items() if difference.is_version_new)
        chosen |= inputs.graph.ancestors(chosen) & stale
    if flags.changes_only:
        chosen &= modified
    return _Draft(
        inputs=inputs,
        before=before,
        differences=found,
        chosen=chosen,
        restated=restated,
        starts=starts_of(inputs.graph, inputs.now, inputs.default_start),
    )


def _stale_unchosen(draft: _Draft, name: NodeName) -> tuple[NodeName, ...]:
    if name not in draft.chosen:
        return ()
    if not draft.differences[name].is_version_new and not draft.inputs.flags.force:
        return ()
    ancestors = draft.inputs.graph.ancestors([name])
    return tuple(
        sorted(other for other in ancestors if draft.differences[other].is_version_new and other not in draft.chosen)
    )


def _work_of(draft: _Draft, name: NodeName) -> _Work:
    """What a node needs; also notes nodes that cannot have a table yet."""
    model = draft.inputs.graph.models[name]
    facts = draft.facts(name)
    is_idle = name not in draft.chosen or bool(draft.blocked_by[name])
    waits_for = next((parent for parent in draft.inputs.graph.parents(name) if parent in draft.unready), None)
    if waits_for is not None and not (facts and facts.head_sequence):
        draft.unready[name] = f"`{waits_for}` above it has no data yet"
        is_idle = True
    work = _work(draft, model, facts, is_idle=is_idle)
    has_table = bool(facts and facts.head_sequence) or isinstance(model.kind, Embedded)
    is_built = work.is_whole or not work.readiness.ready.is_empty
    if not has_table and not is_built and not is_idle:
        waits = not work.readiness.waiting.is_empty
        why = "no interval can be processed yet" if waits else f"its first interval begins at {draft.starts[name]}"
        draft.unready[name] = why
    return work


def _work(draft: _Draft, model: Model, facts: VersionFacts | None, *, is_idle: bool) -> _Work:
    if has_intervals(model.kind):
        work = _interval_work(draft, model, facts, is_idle=is_idle)
    elif is_idle or isinstance(model.kind, Embedded):
        work = _Work()
    else:
        work = _whole_work(draft, model, facts)
    return work


def _interval_work(draft: _Draft, model: Model, facts: VersionFacts | None, *, is_idle: bool) -> _Work:
    inputs, name = draft.inputs, model.name
    covered = facts.covered if facts else EMPTY
    start = draft.starts[name]
    asked = asked_range(
        model, start, inputs.flags, inputs.now, respects_cron=draft.respects_cron, limit=_baseline_reach(draft, name)
    )
    begin = asked.start if asked else start
    if draft.is_shared(name):
        draft.available[name] = (begin, covered)
        return _Work()
    if is_idle:
        rewritten, _ = _rewritten(draft, model, covered)
        draft.available[name] = (begin, covered.minus(rewritten))
        return _Work(redone=rewritten)
    missing = missing_intervals(model, asked, covered)
    work = _Work(reason=_version_reason(draft, name, "missing_intervals"), cause=draft.differences[name].cause)
    redone, reason, cause = _redone(draft, model, asked, covered)
    if not redone.is_empty and (reason != "upstream_rewritten" or missing.is_empty):
        work.reason, work.cause = reason, cause
    readiness = split_by_readiness(inputs.graph, model, missing.union(redone), draft.available, inputs.now)
    # Only what is processed now looks back: what waits would have the units before it computed again every time.
    lookback = model.kind.lookback if isinstance(model.kind, IncrementalByTimeRange) else 0
    looked_at = with_lookback(model, missing.intersect(readiness.ready), start, lookback)
    work.readiness = replace(readiness, ready=readiness.ready.union(looked_at))
    work.intervals = work.readiness.ready.union(readiness.waiting)
    work.redone = redone.union(work.readiness.ready).intersect(covered)
    draft.available[name] = (begin, covered.minus(work.redone).union(work.readiness.ready))
    return work


def _baseline_reach(draft: _Draft, name: NodeName) -> Instant | None:
    """A new version in another environment is built as far as the baseline's data reaches."""
    pointer = draft.inputs.baseline.pointers.get(name)
    if draft.is_baseline or pointer is None or pointer.physical is None or draft.inputs.command == "run":
        return None
    facts = draft.inputs.facts.get(pointer.physical)
    span = facts.covered.span() if facts else None
    return span.end if span else None


def _redone(
    draft: _Draft, model: Model, asked: Interval | None, covered: Intervals
) -> tuple[Intervals, Reason, NodeName | None]:
    """Recorded intervals that are computed again: forced, restated, or below a restated parent."""
    inputs = draft.inputs
    if inputs.flags.force and asked is not None:
        return Intervals.of([asked]).intersect(covered), "forced", model.name
    if model.name in draft.restated:
        start, span = draft.starts[model.name], covered.span()
        until = max((end for end in (span and span.end, asked and asked.end) if end), default=start)
        return restated_intervals(model, inputs.flags, start, until, inputs.now), "restated", model.name
    rewritten, cause = _rewritten(draft, model, covered)
    return rewritten, "upstream_rewritten", cause


def _rewritten(draft: _Draft, model: Model, covered: Intervals) -> tuple[Intervals, NodeName | None]:
    """Recorded intervals that may read what a parent computes again, and where that began.

    How far a model reads back is unknown, so a rewritten unit may reach every later one.
    """
    span = covered.span()
    if span is None or not model.follow_rewrites:
        return EMPTY, None
    begins: list[tuple[Instant, NodeName]] = []
    for parent in stored_parents(draft.inputs.graph, model.name):
        above = draft.works[parent]
        again = above.redone.span()
        if again is not None:
            begins.append((again.start, above.cause or parent))
        elif above.is_whole and above.reason in {"restated", "forced"}:
            begins.append((span.start, above.cause or parent))
    if not begins:
        return EMPTY, None
    first, cause = min(begins, key=lambda pair: pair[0])
    begin = model.grain.floor(first)
    if begin >= span.end:
        return EMPTY, None
    return Intervals.of([Interval(begin, span.end)]).intersect(covered), cause


def _version_reason(draft: _Draft, name: NodeName, otherwise: Reason) -> Reason:
    difference = draft.differences[name]
    return difference.reason if difference.is_version_new else otherwise


def _whole_work(draft: _Draft, model: Model, facts: VersionFacts | None) -> _Work:
    """Work of kinds that are computed whole: new versions, parents whose rows changed, due ticks, requests."""
    inputs, name = draft.inputs, model.name
    difference = draft.differences[name]
    is_forced = inputs.flags.force or name in draft.restated
    if facts is None or facts.built_at is None:
        reason = _version_reason(draft, name, "first_run")
        return _Work(is_whole=True, reason=reason, cause=difference.cause or name)
    if is_forced and not isinstance(model.kind, View):
        return _Work(is_whole=True, reason="restated" if name in draft.restated else "forced", cause=name)
    if draft.is_shared(name) or isinstance(model.kind, View | Seed):
        return _Work()
    for parent in stored_parents(inputs.graph, name):
        above = draft.works[parent]
        if above.is_whole or not above.readiness.ready.is_empty:
            return _Work(is_whole=True, reason="upstream_changed", cause=above.cause or parent)
    for read in facts.reads:
        now = inputs.facts.get(read.physical) if read.physical != facts.physical else None
        if now is not None and now.head_sequence != read.sequence:
            return _Work(is_whole=True, reason="upstream_changed", cause=now.node)
    if inputs.command == "run" and _is_tick_due(draft, model, facts.built_at):
        unknown = reads_unknown(inputs.graph, name)
        if unknown is not None or isinstance(model.body, PythonBody):
            return _Work(is_whole=True, reason="source_changed", cause=unknown)
    return _Work()


def _is_tick_due(draft: _Draft, model: Model, built_at: Instant) -> bool:
    return not draft.respects_cron or schedule_of(model).previous_tick(draft.inputs.now) > built_at


def _unsupported_replays(draft: _Draft) -> list[NotYetSupported]:
    problems = []
    for name, difference in draft.differences.items():
        model = draft.inputs.graph.models[name]
        policy = getattr(model.kind, "policy", None)
        keeps_history = (model.replay_on_change or "full") != "full" or (policy is not None and policy.forward_only)
        if difference.is_version_new and difference.reason != "first_run" and keeps_history and stores_rows(model.kind):
            problems.append(
                NotYetSupported(
                    f"`{name}` changed and asks to keep its history (`replay_on_change` or `forward_only`), which this "
                    "release cannot do",
                    hint="set `replay_on_change full` to rebuild it over its whole history",
                    location=model.location,
                    node=name,
                )
            )
    return problems


def _unsupported_forks(draft: _Draft) -> list[NotYetSupported]:
    """Only the baseline writes a version it points to; another environment would need a copy of its own first."""
    flags, graph = draft.inputs.flags, draft.inputs.graph
    asked = (draft.restated | (draft.chosen if flags.force else frozenset())) & draft.chosen
    how = "--restate" if flags.restate else "--force"
    return [
        NotYetSupported(
            f"`{name}` is shared with `{draft.inputs.baseline_name}`, so `{how}` in "
            f"`{draft.inputs.environment.environment}` needs a copy of its own, which this release cannot make",
            hint=f"use `{how}` in `{draft.inputs.baseline_name}`, or `--select` models that are changed here",
            location=graph.models[name].location,
            node=name,
        )
        for name in graph.models
        if name in asked and stores_rows(graph.models[name].kind) and draft.is_shared(name)
    ]


def _step(draft: _Draft, name: NodeName) -> Step:
    inputs = draft.inputs
    model, work, difference = inputs.graph.models[name], draft.works[name], draft.differences[name]
    pointer = draft.before.get(name)
    ready = work.readiness.ready
    batches: tuple[Batch, ...] = ()
    if work.is_whole:
        batches = (Batch(index=0, interval=None),)
    elif not ready.is_empty:
        batches = batches_of(model, ready)
    action = _action(draft, name, bool(batches))
    reason = work.reason if work.is_needed else difference.reason
    cause = work.cause if work.is_needed else difference.cause
    is_idle = action in {"skip", "blocked"} and not difference.is_version_new
    step = Step(
        node=name,
        type=model.type,
        kind=model.kind.name,
        action=action,
        reason="unchanged" if is_idle and action == "skip" else reason,
        explanation="",
        cause=None if is_idle else cause,
        change=_change(draft, name),
        changed_columns=_changed_columns(draft, name),
        version=inputs.versions[name].version,
        previous_version=pointer.version if pointer else None,
        physical=inputs.physical.get(name),
        replay="full" if difference.is_version_new and difference.reason != "first_run" and batches else None,
        intervals=ready,
        redone=work.redone,
        batches=batches,
        batch_concurrency=concurrency_of(model, batches, 4),
        waiting_for=work.readiness.waiting_for,
        diff=_diff(draft, name),
    )
    return explain(
        step,
        blocked_by=draft.blocked_by[name],
        is_chosen=name in draft.chosen,
        is_shared=draft.is_shared(name),
        why_unready=draft.unready.get(name),
    )


def _action(draft: _Draft, name: NodeName, has_batches: bool) -> Action:
    difference, work = draft.differences[name], draft.works[name]
    if draft.blocked_by[name]:
        return "blocked"
    if name not in draft.chosen:
        return "skip"
    if has_batches:
        return "build"
    if name in draft.unready:
        return "wait"
    if not work.readiness.waiting.is_empty and not difference.is_version_new:
        return "wait"
    if difference.is_metadata_only or (
        difference is not UNCHANGED and isinstance(draft.inputs.graph.models[name].kind, Embedded)
    ):
        return "metadata"
    if difference.is_version_new:
        return "reuse"
    return "skip"


def _change(draft: _Draft, name: NodeName) -> Change | None:
    difference = draft.differences[name]
    if difference.is_metadata_only:
        return "metadata"
    if not difference.is_version_new or difference.reason == "first_run":
        return None
    graph = draft.inputs.graph
    reached = (
        other
        for other in graph.descendants([name])
        if draft.differences[other].is_version_new and stores_rows(graph.models[other].kind)
    )
    return "breaking" if any(reached) else "non_breaking"


def _sql_texts(draft: _Draft, name: NodeName) -> tuple[SqlBody, SqlBody] | None:
    difference, former = draft.differences[name], draft.inputs.previous.get(name)
    model = draft.inputs.graph.models[name]
    if difference.reason != "query_changed" or former is None or difference.cause != name:
        return None
    if isinstance(former.body, SqlBody) and isinstance(model.body, SqlBody):
        return former.body, model.body
    return None


def _changed_columns(draft: _Draft, name: NodeName) -> tuple[str, ...]:
    texts = _sql_texts(draft, name)
    if texts is None:
        return ()
    former, now = texts
    return changed_columns(former.query.expanded, now.query.expanded, draft.inputs.graph.models[name].dialect)


def _diff(draft: _Draft, name: NodeName) -> str | None:
    difference, former = draft.differences[name], draft.inputs.previous.get(name)
    if former is None or difference.cause != name or difference is UNCHANGED:
        return None
    old, new = _text_of(former), _text_of(draft.inputs.graph.models[name])
    return unified_diff(old, new, str(name)) if old != new else None


def _text_of(model: Model) -> str:
    match model.body:
        case SqlBody() as body:
            return body.query.source.text
        case PythonBody() as body:
            return "\n".join(module.source for module in body.modules if module.name == body.module)
        case _:
            return ""


def _removals(draft: _Draft) -> tuple[Step, ...]:
    flags = draft.inputs.flags
    if flags.select or flags.exclude or flags.changes_only or draft.inputs.command == "run":
        return ()
    removed = sorted(set(draft.before) - set(draft.inputs.graph.models))
    return tuple(
        Step(
            node=name,
            type="model",
            kind=draft.inputs.previous[name].kind.name if name in draft.inputs.previous else "UNKNOWN",
            action="remove",
            reason="config_changed",
            explanation=f"`{name}` is no longer in the project; its view goes away, its data stays",
            previous_version=draft.before[name].version,
        )
        for name in removed
    )


def _pointers_after(draft: _Draft, steps: tuple[Step, ...]) -> dict[NodeName, Pointer]:
    removed = {step.node for step in steps if step.action == "remove"}
    after = {name: pointer for name, pointer in draft.before.items() if name not in removed}
    for step in steps:
        if step.action in {"remove", "blocked"} or step.node not in draft.chosen or step.version is None:
            continue
        version = draft.inputs.versions[step.node]
        is_empty = step.action == "wait" and step.previous_version != step.version
        if is_empty:
            continue
        after[step.node] = Pointer(version=version.version, definition_id=version.definition_id, physical=step.physical)
    return after


def _final_status(draft: _Draft) -> Status:
    if draft.inputs.command == "run":
        # Only a build knows the project, so only a build can say that everything matches it.
        return draft.inputs.environment.status
    stale = {name for name, difference in draft.differences.items() if difference.is_version_new}
    left = {name for name in stale if name not in draft.chosen or draft.blocked_by[name]}
    left |= set(draft.unready)
    gone = set(draft.before) - set(draft.inputs.graph.models)
    keeps_removed = gone and (
        draft.inputs.flags.select or draft.inputs.flags.exclude or draft.inputs.flags.changes_only
    )
    return "active" if left or keeps_removed else "finalized"
