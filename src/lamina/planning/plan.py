"""Making the plan: what would be done with every node, and why. A pure function of `PlanInputs`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.environments.pointers import Pointer
from lamina.errors import EnvironmentDetached, raise_all
from lamina.graph.dag import Notice
from lamina.graph.kinds import Embedded, appends, folds, has_intervals, stores_rows
from lamina.graph.model import PythonBody, SqlBody
from lamina.planning.audit_work import due_alone, questions_of
from lamina.planning.batches import batches_of, runs_of
from lamina.planning.draft import ALL_TIME, Draft, Work
from lamina.planning.explain import explain
from lamina.planning.fold_work import fold_work
from lamina.planning.forks import forks_of, with_forks
from lamina.planning.histories import losses, not_kept_yet
from lamina.planning.interval_work import interval_work
from lamina.planning.missing import starts_of
from lamina.planning.reach import reads_from, reads_until, window_of
from lamina.planning.readiness import stored_parents
from lamina.planning.reasons import UNCHANGED, differences
from lamina.planning.replay import continuations_of, has_runs, restating_begins_anew, with_continuations
from lamina.planning.selection import select
from lamina.planning.steps import Plan, ReadWindow, Seeding, Step
from lamina.planning.support import blocked_by_kind, limitations, unsupported
from lamina.planning.whole_work import whole_work
from lamina.sql.on_demand import changed_columns, unified_diff
from lamina.timeline.interval import Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamina.environments.pointers import Status
    from lamina.graph.model import Model
    from lamina.graph.names import NodeName
    from lamina.planning.inputs import Copy, PlanInputs, VersionFacts
    from lamina.planning.reasons import Difference
    from lamina.planning.steps import Action, Batch, Change, Reason
    from lamina.timeline.interval import Intervals


def make_plan(inputs: PlanInputs) -> Plan:
    """Decide what to do with every node; raise what a person has to settle first."""
    if inputs.environment.status == "detached":
        raise EnvironmentDetached(
            f"environment `{inputs.environment.environment}` is detached",
            hint=f"`lamina state attach {inputs.environment.environment}` lets commands change it again",
        )
    raise_all(unsupported(inputs.graph, inputs.flags, inputs.catalogs))
    draft = _draft(inputs)
    inputs = draft.inputs
    for name in inputs.graph.models:
        draft.blocked_by[name] = _stale_unchosen(draft, name)
        draft.works[name] = _work_of(draft, name)
    raise_all(losses(draft))
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
        refused=frozenset(draft.refused) & draft.chosen,
        standalone=due_alone(draft),
        warnings=(
            *inputs.graph.warnings,
            *limitations(inputs.graph, inputs.concurrency),
            *not_kept_yet(draft),
            *_protected(draft),
            *_kept(draft),
            *_built_anew(draft),
            *_beginning_late(draft),
            *_not_followed(draft),
        ),
    )


def _protected(draft: Draft) -> list[Notice]:
    """Models that a restatement names and that forbid it."""
    return [
        Notice(
            code="LAM-WARN-015",
            message=f"`{name}` is not restated: its `disable_restatement` protects what it holds",
            node=name,
        )
        for name in sorted(draft.restated)
        if draft.is_protected(name)
    ]


def _kept(draft: Draft) -> list[Notice]:
    """Models of which `--force` does not do the recorded runs again, because their history is kept."""
    found = []
    for name in sorted(draft.chosen if draft.inputs.flags.force else ()):
        model, work = draft.inputs.graph.models[name], draft.works[name]
        is_asked = folds(model.kind) and not draft.begins_anew(name) and not draft.is_protected(name)
        is_settled = work.begins_anew or draft.differences[name].is_version_new
        if not is_asked or is_settled or not has_runs(draft.facts(name)):
            continue
        message = f"`{name}` keeps its history: `--force` does not do its recorded runs again"
        if work.is_whole and work.reason == "forced":
            repeated = "rows may be there twice" if appends(model.kind) else "what earlier runs made stays"
            message = f"`{name}` keeps its history: `--force` puts one more run on top of what it holds, and {repeated}"
        found.append(Notice(code="LAM-WARN-025", message=f"{message}; {_anew(draft, name)}", node=name))
    return found


def _anew(draft: Draft, name: NodeName) -> str:
    """The command that builds a model anew whose table is the sum of its runs."""
    command = "lamina build" if draft.is_baseline else f"lamina build {draft.inputs.environment.environment}"
    flag = "--restate" if restating_begins_anew(draft.inputs.graph.models[name]) else "--reset"
    return f"`{command} {flag} {name}` builds it anew"


def _built_anew(draft: Draft) -> list[Notice]:
    """Models whose table is the sum of its runs and begins with an empty one again."""
    found = []
    for name, work in draft.works.items():
        difference, model = draft.differences[name], draft.inputs.graph.models[name]
        is_replaced = difference.is_version_new and name in draft.before and work.is_certain
        is_replaced = is_replaced and name not in draft.continuations
        if not folds(model.kind) or not ((work.begins_anew and work.is_asked) or is_replaced):
            continue
        message = (
            f"`{name}` of kind {model.kind.name} is built anew from the beginning: what earlier runs put into it and "
            "its inputs no longer hold is not in the new rows"
        )
        found.append(Notice(code="LAM-WARN-016", message=message, node=name))
    return found


def _beginning_late(draft: Draft) -> list[Notice]:
    """Models whose first run begins after their start: later runs go on from its end, never before it."""
    found = []
    for name, work in draft.works.items():
        planned, left_out = work.readiness.ready.span(), work.left_out.span()
        is_first = folds(draft.inputs.graph.models[name].kind) and work.begins_anew
        if is_first and planned and left_out and left_out.start < planned.start:
            message = (
                f"`{name}` begins at {planned.start}: time from {left_out.start} until there is not filled in later, "
                "because each run builds on the one before it"
            )
            found.append(Notice(code="LAM-WARN-018", message=message, node=name))
    return found


def _not_followed(draft: Draft) -> list[Notice]:
    """Models whose table is the sum of its runs, and which keep what they read of rows that were rewritten since."""
    found = []
    for name, work in draft.works.items():
        model = draft.inputs.graph.models[name]
        anew = _anew(draft, name)
        if work.unfollowed is not None:
            told = work.unfollowed
            first, *others = told.intervals
            time = f" for {first} and {len(others)} more" if others else f" for {first}"
            what = "came out different after" if told.is_recorded else "is computed again by this plan after"
            which = f"{what} it was read{'' if told.intervals == ALL_TIME else time}"
            message = f"`{name}` does not follow `{told.cause}`, which {which}: {told.why}; {anew}"
        elif folds(model.kind) and work.is_whole and work.reason == "upstream_rewritten" and work.again.is_empty:
            message = f"`{name}` runs once more over all that it reads, and what earlier runs made stays; {anew}"
        else:
            continue
        found.append(Notice(code="LAM-WARN-024", message=message, node=name))
    return found


def _draft(inputs: PlanInputs) -> Draft:
    is_new = inputs.environment.number == 0
    before = inputs.baseline.pointers if is_new else inputs.environment.pointers
    found = differences(inputs.graph, inputs.versions, before, inputs.previous_fingerprints)
    modified = frozenset(name for name, difference in found.items() if difference is not UNCHANGED)
    flags = inputs.flags
    chosen = select(inputs.graph, flags.select, flags.exclude, modified)
    reset = select(inputs.graph, flags.reset, (), modified) if flags.reset else frozenset()
    restated = select(inputs.graph, flags.restate, (), modified) | reset if flags.restate else reset
    if flags.include_stale_upstreams:
        stale = frozenset(name for name, difference in found.items() if difference.is_version_new)
        chosen |= inputs.graph.ancestors(chosen) & stale
    if flags.changes_only:
        chosen &= modified
    refused = blocked_by_kind(inputs.graph)
    continuations = continuations_of(inputs, before, found, reset)
    inputs = with_continuations(inputs, {name: each for name, each in continuations.items() if name in chosen})
    forks = forks_of(inputs, chosen, restated, reset)
    return Draft(
        inputs=with_forks(inputs, forks),
        forks=forks,
        continuations=continuations,
        before=before,
        differences=found,
        chosen=chosen,
        restated=restated,
        reset=reset,
        refused=refused,
        starts=starts_of(inputs.graph, inputs.now, inputs.default_start),
    )


def _stale_unchosen(draft: Draft, name: NodeName) -> tuple[NodeName, ...]:
    if name not in draft.chosen or name in draft.refused:
        return ()
    if not draft.differences[name].is_version_new and not draft.inputs.flags.force:
        return ()
    ancestors = draft.inputs.graph.ancestors([name])
    return tuple(
        sorted(other for other in ancestors if draft.differences[other].is_version_new and other not in draft.chosen)
    )


def _work_of(draft: Draft, name: NodeName) -> Work:
    """What a node needs; also notes nodes that cannot have a table yet."""
    model = draft.inputs.graph.models[name]
    facts = draft.facts(name)
    is_idle = name not in draft.chosen or bool(draft.blocked_by[name]) or name in draft.refused
    waits_for = next((parent for parent in draft.inputs.graph.parents(name) if parent in draft.unready), None)
    if waits_for is not None and not (facts and facts.head_sequence):
        draft.unready[name] = f"`{waits_for}` above it has no data yet"
        is_idle = True
    work = _work(draft, model, facts, is_idle=is_idle)
    has_table = bool(facts and facts.head_sequence) or isinstance(model.kind, Embedded)
    if not has_table and not work.is_certain and not is_idle:
        waits = not work.readiness.waiting.is_empty
        why = "no interval can be processed yet" if waits else f"its first interval begins at {draft.starts[name]}"
        if name not in draft.before and _has_known_columns(model):
            draft.without_rows[name] = why
        else:
            # What readers have stays until there is something to show instead.
            draft.unready[name] = why
    return work


def _has_known_columns(model: Model) -> bool:
    return isinstance(model.body, SqlBody) or (model.columns_are_declared and bool(model.columns))


def _work(draft: Draft, model: Model, facts: VersionFacts | None, *, is_idle: bool) -> Work:
    if has_intervals(model.kind):
        return interval_work(draft, model, facts, is_idle=is_idle)
    if is_idle or isinstance(model.kind, Embedded):
        return Work()
    return fold_work(draft, model, facts) if folds(model.kind) else whole_work(draft, model, facts)


def _step(draft: Draft, name: NodeName) -> Step:
    inputs = draft.inputs
    model, work, difference = inputs.graph.models[name], draft.works[name], draft.differences[name]
    pointer = draft.before.get(name)
    shown = work.readiness.ready.union(work.may_follow) if work.is_asked_for_later else work.readiness.ready
    batches: Sequence[Batch] = ()
    if work.is_whole or (folds(model.kind) and not shown.is_empty):
        batches = runs_of(model, shown, begins_anew=work.begins_anew)
    elif not shown.is_empty:
        batches = batches_of(model, shown)
    seed, continues = _seeding(draft, draft.forks.get(name)), _continuing(draft, name)
    questions = questions_of(draft, name)
    action = "seed_and_build" if seed or continues else _action(draft, name, bool(batches))
    if action == "skip" and questions:
        action = "metadata"
    is_idle = action in {"skip", "blocked"} and not difference.is_version_new
    step = Step(
        node=name,
        type=model.type,
        kind=model.kind.name,
        action=action,
        reason=_reason(work, difference, is_skipped=is_idle and action == "skip"),
        explanation="",
        cause=_cause(work, difference, is_idle=is_idle),
        change=_change(draft, name),
        reaches=_reached(draft, name),
        changed_columns=_changed_columns(draft, name),
        version=inputs.versions[name].version,
        previous_version=pointer.version if pointer else None,
        physical=inputs.physical.get(name),
        seed=seed,
        continues=continues,
        replay=_replay(difference, bool(batches), continues=continues is not None),
        intervals=shown,
        certain=work.readiness.ready,
        may_follow=work.may_follow,
        redone=work.redone,
        followed=work.followed,
        again=work.again,
        unfollowed=work.unfollowed,
        restated_at=work.restated_at,
        recorded=work.recorded,
        is_asked=work.is_asked,
        batches=batches,
        questions=questions,
        makes_table=name in draft.without_rows,
        left_out=work.left_out,
        left_to_baseline=work.left_to_baseline,
        waiting=work.readiness.waiting,
        waiting_for=work.readiness.waiting_for,
        next_tick=work.next_tick,
        reads=_reads(draft, model, shown.union(work.readiness.waiting)),
        diff=_diff(draft, name),
    )
    return explain(
        step,
        blocked_by=draft.blocked_by[name],
        is_chosen=name in draft.chosen,
        baseline=inputs.baseline_name,
        is_shared=draft.is_shared(name),
        why_unready=draft.refused.get(name) or draft.unready.get(name) or draft.without_rows.get(name),
    )


def _reason(work: Work, difference: Difference, *, is_skipped: bool) -> Reason:
    if work.is_only_told and not difference.is_version_new:
        return "upstream_rewritten"
    if is_skipped:
        return "unchanged"
    return work.reason if work.is_needed else difference.reason


def _cause(work: Work, difference: Difference, *, is_idle: bool) -> NodeName | None:
    if work.unfollowed and work.is_only_told and not difference.is_version_new:
        return work.unfollowed.cause
    if is_idle:
        return None
    return work.cause if work.is_needed else difference.cause


def _replay(difference: Difference, has_batches: bool, *, continues: bool) -> str | None:
    if continues:
        return "forward"
    return "full" if difference.is_version_new and difference.reason != "first_run" and has_batches else None


def _continuing(draft: Draft, name: NodeName) -> Seeding | None:
    if name not in draft.chosen or draft.blocked_by[name] or name in draft.unready:
        return None
    return _seeding(draft, draft.continuations.get(name))


def _seeding(draft: Draft, copy: Copy | None) -> Seeding | None:
    facts = draft.inputs.facts
    if copy is None or copy.target not in facts:
        return None
    return Seeding(source=copy.source, source_mark=facts[copy.source].mark, facts=facts[copy.target])


def _reads(draft: Draft, model: Model, intervals: Intervals) -> tuple[ReadWindow, ...]:
    span = intervals.span()
    if span is None:
        return ()
    found = []
    for parent in stored_parents(draft.inputs.graph, model.name):
        if has_intervals(draft.inputs.graph.models[parent].kind):
            window = window_of(model, parent)
            first = Interval(span.start, min(model.grain.next(span.start), span.end))
            last = Interval(model.grain.floor(span.end.minus(1)), span.end)
            start = None if window.lower is None else reads_from(window, first)
            found.append(ReadWindow(name=parent, start=start, end=reads_until(window, last)))
    return tuple(found)


def _action(draft: Draft, name: NodeName, has_batches: bool) -> Action:
    difference, work = draft.differences[name], draft.works[name]
    if draft.blocked_by[name]:
        return "blocked"
    if name not in draft.chosen:
        return "skip"
    if name in draft.refused:
        return "blocked"
    if has_batches:
        return "build"
    if name in draft.unready or name in draft.without_rows:
        return "wait"
    waits = work.awaits_tick or not work.readiness.waiting.is_empty
    if waits and not difference.is_version_new:
        return "wait"
    if difference.is_metadata_only or (
        difference is not UNCHANGED and isinstance(draft.inputs.graph.models[name].kind, Embedded)
    ):
        return "metadata"
    if difference.is_version_new:
        return "reuse"
    return "skip"


def _change(draft: Draft, name: NodeName) -> Change | None:
    difference = draft.differences[name]
    if difference.is_metadata_only:
        return "metadata"
    if not difference.is_version_new or difference.reason == "first_run":
        return None
    if name in draft.continuations:
        return "forward_only"
    return "breaking" if _reached(draft, name) else "non_breaking"


def _reached(draft: Draft, name: NodeName) -> tuple[NodeName, ...]:
    """The nodes below a changed one that store rows and get a new version because of it."""
    difference, graph = draft.differences[name], draft.inputs.graph
    if not difference.is_version_new or difference.reason == "first_run":
        return ()
    below = graph.descendants([name])
    return tuple(
        other
        for other, model in graph.models.items()
        if other in below and draft.differences[other].is_version_new and stores_rows(model.kind)
    )


def _sql_texts(draft: Draft, name: NodeName) -> tuple[SqlBody, SqlBody] | None:
    difference, former = draft.differences[name], draft.inputs.previous.get(name)
    model = draft.inputs.graph.models[name]
    if difference.reason != "query_changed" or former is None or difference.cause != name:
        return None
    if isinstance(former.body, SqlBody) and isinstance(model.body, SqlBody):
        return former.body, model.body
    return None


def _changed_columns(draft: Draft, name: NodeName) -> tuple[str, ...]:
    texts = _sql_texts(draft, name)
    if texts is None:
        return ()
    former, now = texts
    return changed_columns(former.query.expanded, now.query.expanded, draft.inputs.graph.models[name].dialect)


def _diff(draft: Draft, name: NodeName) -> str | None:
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


def _removals(draft: Draft) -> tuple[Step, ...]:
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


def _pointers_after(draft: Draft, steps: tuple[Step, ...]) -> dict[NodeName, Pointer]:
    removed = {step.node for step in steps if step.action == "remove"}
    after = {name: pointer for name, pointer in draft.before.items() if name not in removed}
    for step in steps:
        if step.action in {"remove", "blocked"} or step.node not in draft.chosen or step.version is None:
            continue
        version = draft.inputs.versions[step.node]
        is_empty = step.action == "wait" and step.previous_version != step.version and not step.makes_table
        if is_empty:
            continue
        after[step.node] = Pointer(version=version.version, definition_id=version.definition_id, physical=step.physical)
    return after


def _final_status(draft: Draft) -> Status:
    if draft.inputs.command == "run":
        # Only a build knows the project, so only a build can say that everything matches it.
        return draft.inputs.environment.status
    stale = {name for name, difference in draft.differences.items() if difference.is_version_new}
    left = {name for name in stale if name not in draft.chosen or draft.blocked_by[name] or name in draft.refused}
    left |= set(draft.unready)
    gone = set(draft.before) - set(draft.inputs.graph.models)
    keeps_removed = gone and (
        draft.inputs.flags.select or draft.inputs.flags.exclude or draft.inputs.flags.changes_only
    )
    return "active" if left or keeps_removed else "finalized"
