"""Applying a plan: analyse, write, publish, point the environment."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lamina.app.auditing.outcomes import rows_words
from lamina.app.auditing.sources_and_standalone import ask_due
from lamina.app.building.analysis import analyse_new_versions
from lamina.app.building.executor import Executor
from lamina.app.building.follow_rewrites import remember_told
from lamina.app.environments.fork import fork_versions
from lamina.app.environments.point import EnvironmentPointer, environments_of, next_revision
from lamina.app.environments.virtual_update import Followed
from lamina.app.leases.command_ports import CommandPorts, command_ports
from lamina.app.leases.keeper import LeaseKeeper
from lamina.app.leases.recover import recover_everything
from lamina.app.ports.events import Analysing, ViewsLeft, WorkPlanned
from lamina.app.ports.facts import CoverageRemoved, DefinitionRecorded, RunFinished, RunStarted, VersionRecorded
from lamina.app.ports.requirements import MarkIs, RevisionIs
from lamina.app.report import NodeResult, Report, planned, unanswered, with_statements
from lamina.app.writing.batch_request import WriteTarget
from lamina.errors import CommitRefused, PlanOutdated
from lamina.graph.catalogs import catalogs_used
from lamina.graph.dag import Graph, Notice
from lamina.graph.formats import formats_of
from lamina.graph.model import SeedBody
from lamina.graph.sealing import sealed
from lamina.identity.naming import incarnation_of
from lamina.sql.on_demand import made_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from lamina.app.auditing.sources_and_standalone import AuditRow
    from lamina.app.ports.bundle import Ports
    from lamina.app.ports.facts import Fact
    from lamina.app.ports.machine import Standing
    from lamina.app.ports.project import ProjectSettings
    from lamina.app.ports.state import StateStore
    from lamina.environments.pointers import Pointer, Revision, Status
    from lamina.errors import LaminaError
    from lamina.graph.model import Model
    from lamina.graph.names import NodeName
    from lamina.identity.naming import PhysicalName
    from lamina.identity.version import NodeVersion
    from lamina.planning.steps import Plan, Step
    from lamina.timeline.interval import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How much at once, and whether the first failure stops everything."""

    concurrency: int
    is_fail_fast: bool = False
    skips_audits: bool = False


def lease_keeper(ports: Ports, standing: Standing | None) -> LeaseKeeper:
    """The leases of one command."""
    return LeaseKeeper(ports.store, ports.clock, ports.owner, ports.emit, ports.processes, standing)


def settle(
    ports: Ports, keeper: LeaseKeeper, settings: ProjectSettings, execution: Instant, environment: str
) -> dict[str, Followed]:
    """The start check: finish what other commands left behind. A healthy store costs one read.

    Views of the command's own environment that have not followed yet are waited for, if another command is at them.
    Answers how environments followed whose statements failed, or whose views are left to another command.
    """
    unsettled = ports.store.unsettled()
    if unsettled.is_empty:
        return {}
    recovery = command_ports(ports, keeper, settings)
    recover_everything(recovery, unsettled)
    pointer = EnvironmentPointer(recovery, execution)
    behind = {revision.environment for revision in unsettled.revisions}
    found = {
        name: pointer.follow_up(name, waits=name == environment and name in behind)
        for name in sorted(behind | environments_of(unsettled.leases))
    }
    for name in behind:
        if (holder := found[name].left_to) is not None:
            ports.emit(ViewsLeft(environment=name, holder=holder.message, seconds=holder.seconds_left))
    return {
        name: followed
        for name, followed in found.items()
        if followed.failures or (followed.left_to is not None and name in behind)
    }


def apply_plan(
    ports: Ports, plan: Plan, before: Revision, settings: ProjectSettings, run_id: str, pace: Pace
) -> tuple[Report, PlanOutdated | None]:
    """Carry a plan out, as far as others leave its ground as it was; the report tells what was done until then.

    Nothing is decided after others changed its ground.
    """
    begun = ports.clock.elapsed()
    formats, catalogs = formats_of(plan.models.values()), catalogs_used(plan.models.values())
    standing = ports.engine.prepare(plan.command, formats, catalogs) if _needs_engine(plan, before) else None
    keeper = lease_keeper(ports, standing)
    try:
        return _apply(ports, plan, before, settings, run_id, pace, keeper, begun)
    finally:
        keeper.close()


def _needs_engine(plan: Plan, before: Revision) -> bool:
    moved = any(
        before.pointers.get(name) is None or before.pointers[name].physical != pointer.physical
        for name, pointer in plan.pointers.items()
        if pointer.physical is not None
    )
    gone = any(name not in plan.pointers for name in before.pointers)
    has_statements = any(
        plan.models[name].body.on_virtual_update and before.pointers.get(name) != pointer
        for name, pointer in plan.pointers.items()
        if name in plan.models
    )
    has_work = bool(plan.standalone) or any(step.has_work for step in plan.steps)
    return moved or gone or has_statements or has_work


def _apply(
    ports: Ports,
    plan: Plan,
    before: Revision,
    settings: ProjectSettings,
    run_id: str,
    pace: Pace,
    keeper: LeaseKeeper,
    begun: float,
) -> tuple[Report, PlanOutdated | None]:
    store, clock = ports.store, ports.clock
    outdated = _begin(ports, plan, before, run_id)
    if outdated is not None:
        return planned(plan, settings), outdated
    results: dict[NodeName, NodeResult] = {}
    audits: tuple[AuditRow, ...] = ()
    status, environment_status, followed = "failed", before.status, Followed()
    try:
        refused = _analyse(ports, plan)
        if refused:
            results = _refused_results(plan, refused)
        else:
            recovery = command_ports(ports, keeper, settings)
            marks = dict(plan.marks)
            target_of = _targets(ports, plan, marks, run_id, pace)
            shown: Mapping[NodeName, Pointer] = plan.before
            if any(step.seed for step in plan.steps):
                definitions = _definitions(store, plan, before.pointers)
                before, seeded, followed = fork_versions(recovery, plan, before, target_of, definitions)
                marks |= seeded
                shown = before.pointers
            marks |= _reopen(ports, plan, marks)
            results, audits = _execute(ports, plan, target_of, pace, recovery)
            _raise_outdated(results)
            pointers = pointers_to_move(plan, shown, results)
            after_status = _status_after(plan, pointers)
            is_changed = pointers != dict(before.pointers) or after_status != before.status
            if is_changed and (pointers or before.number):
                followed = EnvironmentPointer(recovery, plan.now).move(
                    before,
                    next_revision(before, pointers, after_status, clock),
                    plan.models,
                    _definitions(store, plan, before.pointers),
                )
            environment_status = after_status
            remember_told(store, plan)
            audits += ask_due(recovery, plan, pointers, run_id, skips_audits=pace.skips_audits)
            results = with_statements(plan, results | unanswered(plan), followed)
            has_failed = any(result.status == "failed" for result in results.values())
            status = "failed" if has_failed else "blocked" if plan.refused else "succeeded"
    except PlanOutdated as error:
        status, outdated = "outdated", error
    except KeyboardInterrupt:
        status = "interrupted"
        raise
    finally:
        store.commit([RunFinished(run_id=run_id, status=status, finished_at=clock.now())])
    report = Report(
        plan=plan,
        settings=settings,
        status=status,
        environment_status=environment_status,
        run_id=run_id,
        results=_with_reused(plan, results),
        audits=audits,
        notices=(
            *(notice for name, result in results.items() for notice in _notices(name, result)),
            *(notice for row in audits for notice in _notices_apart(row)),
        ),
        views=followed.views,
        seconds=round(clock.elapsed() - begun, 3),
    )
    return report, outdated


def _begin(ports: Ports, plan: Plan, before: Revision, run_id: str) -> PlanOutdated | None:
    """Record that work begins, unless others changed what the plan stands on: starting Spark may have taken long."""
    started = RunStarted(
        run_id=run_id,
        command=plan.command,
        environment=plan.environment,
        started_at=ports.clock.now(),
        execution_time=plan.now,
    )
    stands_on = [MarkIs(physical=physical, mark=mark) for physical, mark in plan.marks.items()]
    try:
        ports.store.commit([started], [RevisionIs(environment=before.environment, number=before.number), *stands_on])
    except CommitRefused as error:
        return _outdated(plan, error)
    return None


def _outdated(plan: Plan, error: CommitRefused) -> PlanOutdated:
    return PlanOutdated(
        f"models of `{plan.environment}` were changed by another command after this plan was made: {error.message}",
        hint="run the command again; it plans anew from what is recorded now",
    )


def _analyse(ports: Ports, plan: Plan) -> Mapping[NodeName, LaminaError]:
    working = [step for step in plan.steps if step.computes]
    if not working or plan.command == "run":
        return {}
    ports.emit(Analysing(models=len(working)))
    return analyse_new_versions(plan, ports.project, ports.store, ports.engine, ports.load_macros)


def _refused_results(plan: Plan, refused: Mapping[NodeName, LaminaError]) -> dict[NodeName, NodeResult]:
    results: dict[NodeName, NodeResult] = {}
    for step in plan.steps:
        error = refused.get(step.node)
        if error is not None:
            results[step.node] = NodeResult(status="failed", error=error)
        elif step.has_work:
            why = "skipped: queries of other models were refused before anything was written"
            results[step.node] = NodeResult(status="skipped", explanation=why)
    return results


def _reopen(ports: Ports, plan: Plan, marks: Mapping[PhysicalName, int]) -> dict[PhysicalName, int]:
    """Record that intervals which are computed again no longer count; answers the marks that moved.

    All of them in one commit before the first is touched: whoever comes after a command that ended early then sees that
    what lies below a rewritten interval is still to be done.
    """
    again = {
        step.physical: CoverageRemoved(
            physical=step.physical, intervals=step.redone, followed=step.followed, restated_at=step.restated_at
        )
        for step in plan.steps
        if step.physical is not None and not step.redone.is_empty
    }
    if not again:
        return {}
    try:
        ports.store.commit(
            list(again.values()), [MarkIs(physical=physical, mark=marks[physical]) for physical in again]
        )
    except CommitRefused as error:
        raise _outdated(plan, error) from error
    return {physical: marks[physical] + 1 for physical in again}


def _targets(
    ports: Ports, plan: Plan, marks: Mapping[PhysicalName, int], run_id: str, pace: Pace
) -> Callable[[Step], WriteTarget]:
    """What every step writes; `marks` are read when a step begins."""
    graph = Graph(models=plan.models)
    physical_of = {step.node: step.physical for step in plan.steps if step.physical is not None}

    def target_of(step: Step) -> WriteTarget:
        model = plan.models[step.node]
        physical = physical_of[step.node]
        return WriteTarget(
            graph=graph,
            model=model,
            version=plan.versions[step.node].version,
            physical=physical,
            physical_of=physical_of,
            execution=plan.now,
            run_id=run_id,
            mark=marks.get(physical, 0),
            recorded=_recorded(ports, plan, step),
            recorded_time=step.recorded,
            is_asked=step.is_asked,
            seed_text=ports.project.seed_text(model.body.path) if isinstance(model.body, SeedBody) else None,
            skips_audits=pace.skips_audits,
        )

    return target_of


def _execute(
    ports: Ports, plan: Plan, target_of: Callable[[Step], WriteTarget], pace: Pace, write_ports: CommandPorts
) -> tuple[dict[NodeName, NodeResult], tuple[AuditRow, ...]]:
    working = [step for step in plan.steps if step.has_work]
    if not working:
        return {}, ()
    batches = sum(len(step.batches) for step in working)
    if batches:
        ports.emit(WorkPlanned(batches=batches))
    executor = Executor(
        plan,
        write_ports,
        target_of,
        concurrency=pace.concurrency,
        is_fail_fast=pace.is_fail_fast,
    )
    return executor.run(), executor.source_audits()


def _raise_outdated(results: Mapping[NodeName, NodeResult]) -> None:
    """Raise when nothing but the work of others kept models from being built."""
    failed = [result.error for result in results.values() if result.error is not None]
    outdated = [error for error in failed if isinstance(error, PlanOutdated)]
    if outdated and len(outdated) == len(failed):
        raise outdated[0]


def _recorded(ports: Ports, plan: Plan, step: Step) -> tuple[Fact, ...]:
    version, model = plan.versions[step.node], plan.models[step.node]
    if step.physical is None:
        return ()
    return (
        _definition(ports.store, version, model),
        VersionRecorded(
            physical=step.physical,
            node=step.node,
            version=version.version,
            incarnation=incarnation_of(step.physical, version.version),
            definition_id=version.definition_id,
            kind=model.kind.name,
            fingerprint=version.fingerprint,
            recorded_at=ports.clock.now(),
        ),
    )


def _definition(store: StateStore, version: NodeVersion, model: Model) -> DefinitionRecorded:
    """The definition as it is recorded: without values of the environment."""
    to_record = sealed(model, store.seal_key or b"") if model.environment else model
    return DefinitionRecorded(definition_id=version.definition_id, model=replace(to_record, read_with=made_with()))


def _definitions(store: StateStore, plan: Plan, before: Mapping[NodeName, Pointer]) -> tuple[Fact, ...]:
    """The definitions that the new revision's pointers run by and that the one before did not."""
    known = {pointer.definition_id for pointer in before.values()}
    return tuple(
        _definition(store, version, plan.models[name])
        for name, version in plan.versions.items()
        if name in plan.pointers
        and plan.pointers[name].definition_id == version.definition_id
        and version.definition_id not in known
    )


def pointers_to_move(
    plan: Plan, before: Mapping[NodeName, Pointer], results: Mapping[NodeName, NodeResult]
) -> dict[NodeName, Pointer]:
    """The pointers an environment shows after a run, failures considered.

    A node moves to its new version only together with every changed node above it, and not while a changed node below
    it that readers already had failed to follow: readers never see half of a change.
    """
    wanted = {name for name, pointer in plan.pointers.items() if before.get(name) != pointer}
    gone = {name for name in before if name not in plan.pointers}
    ok = {
        name
        for name in wanted
        if name not in results or results[name].is_same or results[name].status in {"succeeded", "reused"}
    }
    graph = Graph(models=plan.models)
    children = graph.children()
    new_versions = {
        name for name in wanted if before.get(name) is None or before[name].version != plan.pointers[name].version
    }
    moving = set(ok)
    while True:
        held = {
            name
            for name in moving
            if any(parent in new_versions and parent not in moving for parent in graph.parents(name))
            or any(
                child in new_versions and child in before and child not in moving
                for child in children.get(name, ())
                if name in before
            )
        }
        if not held:
            break
        moving -= held
    after = {name: pointer for name, pointer in before.items() if name not in gone or moving != wanted}
    for name in moving:
        after[name] = plan.pointers[name]
    return after


def _status_after(plan: Plan, pointers: Mapping[NodeName, Pointer]) -> Status:
    is_complete = dict(pointers) == dict(plan.pointers)
    return plan.final_status if is_complete else "active"


def _notices(name: NodeName, result: NodeResult) -> Iterator[Notice]:
    """What went through and should still be looked at."""
    if result.null_times:
        yield _null_times(name, result.null_times)
    for remark in result.remarks:
        yield Notice(code="LAM-WARN-023", message=f"`{name}`: {remark}", node=name)
    for audit in result.audits:
        if audit.status == "failed" and not audit.is_blocking:
            found = f"audit `{audit.call}` of `{name}` found {rows_words(audit.failing_rows)}; it does not block"
            is_shown = result.status == "succeeded"
            message = f"{found}, so the rows are published" if is_shown else found
            yield Notice(code="LAM-WARN-010", message=message, node=name)


def _notices_apart(row: AuditRow) -> Iterator[Notice]:
    """What a source or a standalone audit brought to light without blocking anything."""
    if row.result.is_blocking or row.result.status != "failed":
        return
    what = "standalone audit" if row.type == "audit" else f"source `{row.node}`: audit"
    found = f"could not be asked: {row.error.message}" if row.error else f"found {rows_words(row.result.failing_rows)}"
    message = f"{what} `{row.result.call}` {found}; it does not block"
    yield Notice(code="LAM-WARN-010", message=message, node=row.node)


def _null_times(name: NodeName, count: int) -> Notice:
    rows = "1 row without a time was" if count == 1 else f"{count} rows without a time were"
    return Notice(
        code="LAM-WARN-014",
        message=f"{rows} left out of `{name}`: a row belongs to an interval by its time column",
        node=name,
    )


def _with_reused(plan: Plan, results: dict[NodeName, NodeResult]) -> dict[NodeName, NodeResult]:
    for step in plan.steps:
        if step.action == "reuse" and step.node not in results:
            results[step.node] = NodeResult(status="reused")
    return results
