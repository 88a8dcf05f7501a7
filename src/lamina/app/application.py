"""The use cases that write, beside those that look: what the command line and the Python API call.

Reading and planning are in `looking.py` and `querying.py`, so that a command that changes nothing loads neither the
executor nor anything of the write protocol.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from lamina.app.auditing.environment import AuditsReport, ask_environment, find_audits
from lamina.app.building.apply_plan import Pace, apply_plan, lease_keeper, settle
from lamina.app.building.follow_rewrites import remember_told
from lamina.app.building.repair import Repair, RepairReport
from lamina.app.environments.point import EnvironmentPointer, next_revision
from lamina.app.environments.promote import check_tables, decide_promotion, look_again
from lamina.app.leases.command_ports import command_ports
from lamina.app.leases.recover import formats_left_behind, is_quiet
from lamina.app.leases.retried import PAUSE_GROWTH
from lamina.app.looking.looking import check_environment_name
from lamina.app.looking.querying import Querying
from lamina.app.looking.register_source import register_source
from lamina.app.looking.source_columns import source_columns
from lamina.app.planning.gather import environment_name, load_recorded
from lamina.app.planning.identify import record_found
from lamina.app.planning.recorded_code import check_definitions, run_with
from lamina.app.ports.facts import RunFinished, RunStarted
from lamina.app.ports.loaded import LoadRequest
from lamina.app.report import Report, planned, with_earlier, with_notice, with_statements
from lamina.errors import PlanOutdated, raise_all
from lamina.graph.catalogs import catalogs_used
from lamina.graph.dag import Notice
from lamina.graph.formats import formats_of
from lamina.planning.missing import next_release

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lamina.app.environments.promote import PromoteReport
    from lamina.app.environments.virtual_update import Followed
    from lamina.app.looking.register_source import RegisteredSource
    from lamina.app.looking.source_columns import SourceColumnsReport
    from lamina.app.ports.bundle import Ports
    from lamina.app.ports.state import StateStore
    from lamina.app.requests import AuditsRequest, PlanRequest, PromoteRequest, RegisterRequest, SourceColumnsRequest
    from lamina.environments.pointers import Revision
    from lamina.planning.inputs import PlanInputs
    from lamina.planning.steps import Plan
    from lamina.timeline.interval import Instant

_PLANNING_ROUNDS = 6


class Application(Querying):
    """One project with its state and its Spark; every method is one use case."""

    def __init__(self, ports: Ports, new_run_id: Callable[[], str]) -> None:
        super().__init__(ports)
        self._new_run_id = new_run_id

    # --- build, run ---
    def build(self, request: PlanRequest, confirm: Callable[[Report], bool] | None = None) -> Report:
        """Make the environment match the project. `confirm` sees the plan first and may decline it."""
        return self._plan_and_apply(request, confirm)

    def run(self, request: PlanRequest) -> Report:
        """Process what has become due, with the recorded code."""
        return self._plan_and_apply(request, None)

    def _plan_and_apply(self, request: PlanRequest, confirm: Callable[[Report], bool] | None) -> Report:
        ports, pause = self._ports, self._ports.retry_pause
        earlier: list[Report] = []
        for round_number in range(1, _PLANNING_ROUNDS + 1):
            unsettled = ports.store.unsettled()
            may_wait = is_quiet(unsettled, ports.processes, ports.clock.now())
            left = {} if may_wait else self._settle(request.command, request.now, request.environment)
            gathered = self._gathered(request, self._storage_read)
            plan = self._make_plan(gathered.inputs)
            report = _with_notices(planned(plan, gathered.settings), left)
            if plan.is_blocked:
                return with_earlier(report, earlier)
            before = gathered.inputs.environment
            if not self._changes_anything(plan, before):
                record_found(ports.store, gathered.found)
                remember_told(ports.store, plan)
                return with_earlier(self._nothing_to_do(report, plan, left.get(plan.environment)), earlier)
            if confirm is not None and not confirm(report):
                return with_earlier(report, earlier)
            if not before.number and not gathered.inputs.baseline.number:
                self._check_catalog(plan)
            self._storage_read(plan.command, plan.models.values()).check_read(gathered.inputs, plan)
            if plan.command == "run":
                _check_code(ports.store, gathered.inputs, plan)
            record_found(ports.store, gathered.found)
            pace = Pace(
                concurrency=request.concurrency or gathered.settings.concurrency,
                is_fail_fast=request.is_fail_fast,
                skips_audits=request.skips_audits,
            )
            if may_wait and not unsettled.is_empty:
                left = self._settle(request.command, request.now, request.environment)
            applied, outdated = apply_plan(ports, plan, before, gathered.settings, self._new_run_id(), pace)
            if outdated is None:
                done = with_earlier(_with_notices(applied, left), earlier)
                return self._with_left(done, left.get(plan.environment))
            if round_number == _PLANNING_ROUNDS:
                raise outdated
            earlier.append(applied)
            # Another command is at work on the same models: what it has decided may need a moment to be carried out.
            time.sleep(pause)
            pause *= PAUSE_GROWTH
        raise AssertionError("unreachable")

    def _check_catalog(self, plan: Plan) -> None:
        """Refuse to begin anew where a catalog that lives elsewhere than the state shows what was built before."""
        names = [pointer.physical for pointer in plan.pointers.values() if pointer.physical is not None]
        if not names:
            return
        models, engine = plan.models.values(), self._ports.engine
        standing = engine.prepare(plan.command, formats_of(models), catalogs_used(models))
        if standing.catalog is None:
            self._storage.check_catalog(engine, names)

    @staticmethod
    def _changes_anything(plan: Plan, before: Revision) -> bool:
        # What kept an environment from matching the project may have left the project.
        is_complete = plan.final_status == "finalized" and before.status == "active"
        is_moved = before.number == 0 or dict(before.pointers) != dict(plan.pointers)
        return plan.has_work or is_complete or is_moved

    def _nothing_to_do(self, report: Report, plan: Plan, left: Followed | None) -> Report:
        upcoming = next_release(plan.models, plan.now) if plan.command == "run" else None
        status = "failed" if plan.failures else "blocked" if plan.refused else "nothing_to_do"
        return self._with_left(replace(report, status=status, next_release=upcoming), left)

    def _with_left(self, report: Report, left: Followed | None) -> Report:
        """The report, failed when statements that failed at the start were not run since."""
        if left is None:
            return report
        name = report.plan.environment
        loaded = self._ports.store.load(LoadRequest(environments=(name,), facts_of_pointers=False))
        if loaded.revisions[name].is_followed:
            return report
        failed = replace(left, statements={})
        return replace(report, status="failed", results=with_statements(report.plan, report.results, failed))

    def _settle(self, command: str, execution: Instant, environment: str | None) -> dict[str, Followed]:
        """Finish what others left behind before planning on top of it; answers where statements failed."""
        ports = self._ports
        unsettled = ports.store.unsettled()
        if unsettled.is_empty:
            return {}
        settings = ports.project.settings()
        shown = (self._formats_shown(revision.environment) for revision in unsettled.revisions)
        keeper = lease_keeper(ports, ports.engine.prepare(command, formats_left_behind(unsettled).union(*shown)))
        try:
            return settle(ports, keeper, settings, execution, environment_name(environment, settings))
        finally:
            keeper.close()

    def _formats_shown(self, environment: str) -> frozenset[str]:
        """The formats of the tables that an environment shows."""
        loaded = self._ports.store.load(
            LoadRequest(environments=(environment,), definitions_of_pointers=True, facts_of_pointers=False)
        )
        return formats_of(loaded.definitions.values())

    def promote(self, request: PromoteRequest) -> PromoteReport:
        """Let one environment show what another one shows; refused where that would take something away."""
        check_environment_name(request.destination)
        pause = self._ports.retry_pause
        for _ in range(1, _PLANNING_ROUNDS):
            try:
                return self._promote(request)
            except PlanOutdated:
                # Another command was quicker: what it has done may be promoted too, or leave nothing to promote.
                time.sleep(pause)
                pause *= PAUSE_GROWTH
        return self._promote(request)

    def _promote(self, request: PromoteRequest) -> PromoteReport:
        ports, settings = self._ports, self._ports.project.settings()
        left = self._settle("promote", request.now, request.destination).get(request.destination)
        report = decide_promotion(ports.store, settings, request)
        found = report.promotion
        if not found.changes_anything:
            raise_all(left.failures.values() if left else ())
            return report
        source, _, _, graph = load_recorded(ports.store, settings, request.source)
        self._storage_read("promote", graph.models.values()).check_rows(
            graph.models, source.places, [move.node for move in found.moves], request.source
        )
        keeper = lease_keeper(ports, ports.engine.prepare("promote", self._formats_shown(request.source)))
        run_id, status = self._new_run_id(), "failed"
        begun = RunStarted(
            run_id=run_id,
            command="promote",
            environment=request.destination,
            started_at=ports.clock.now(),
            execution_time=request.now,
        )
        ports.store.commit([begun])
        try:
            check_tables(ports.engine, found)
            recovery = command_ports(ports, keeper, settings)
            after = next_revision(found.destination, found.pointers, found.status, ports.clock)
            followed = EnvironmentPointer(recovery, request.now).move(
                found.destination, after, report.order, look=lambda: look_again(ports.store, settings, request, report)
            )
            raise_all(followed.failures.values())
            status = "succeeded"
        except PlanOutdated:
            status = "outdated"
            raise
        finally:
            ports.store.commit([RunFinished(run_id=run_id, status=status, finished_at=ports.clock.now())])
            keeper.close()
        return replace(report, views=followed.views, statements=followed.statements)

    def repair(self, environment: str | None, now: Instant) -> RepairReport:
        """Bring rows back that are gone, and have every view show what is recorded."""
        settings = self._ports.project.settings()
        self._settle("repair", now, environment)
        return Repair(
            ports=self._ports,
            settings=settings,
            storage=self._storage_read("repair", ()),
            environment=environment_name(environment, settings),
            now=now,
            compute=lambda request: self._plan_and_apply(request, None),
            run_id=self._new_run_id(),
        ).carry_out()

    def audit(self, request: AuditsRequest) -> AuditsReport:
        """Ask the audits of an environment about what is built there, whether they were asked before or not."""
        ports, settings = self._ports, self._ports.project.settings()
        begun = ports.clock.elapsed()
        self._settle("audit", request.now, request.environment)
        found = find_audits(ports.store, ports.project, request)
        run_id, status = self._new_run_id(), "failed"
        if found.is_empty:
            return AuditsReport(
                project=settings.name, environment=found.environment, now=request.now, run_id=None, rows=()
            )
        models = found.graph.models
        storage = self._storage_read("audit", models.values())
        storage.check_rows(models, found.places, found.read, found.environment)
        keeper = lease_keeper(ports, ports.engine.prepare("audit", formats_of(models.values())))
        started = RunStarted(
            run_id=run_id,
            command="audit",
            environment=found.environment,
            started_at=ports.clock.now(),
            execution_time=request.now,
        )
        ports.store.commit([started])
        try:
            access = command_ports(ports, keeper, settings)
            at_once = request.concurrency or settings.concurrency
            rows = ask_environment(access, found, request, run_id, at_once=at_once, pause=ports.retry_pause)
            report = AuditsReport(
                project=settings.name,
                environment=found.environment,
                now=request.now,
                run_id=run_id,
                rows=rows,
                seconds=round(ports.clock.elapsed() - begun, 3),
            )
            status = report.status
        except KeyboardInterrupt:
            status = "interrupted"
            raise
        finally:
            ports.store.commit([RunFinished(run_id=run_id, status=status, finished_at=ports.clock.now())])
            keeper.close()
        return report

    def source_columns(self, request: SourceColumnsRequest) -> SourceColumnsReport:
        """Write the columns of external tables, as the catalog has them, into the project's files."""
        return source_columns(self._ports.project, self._ports.engine, request)

    def register_source(self, request: RegisterRequest) -> RegisteredSource:
        """Have the catalog know files as a table that models can read."""
        return register_source(self._ports, request)


def _check_code(store: StateStore, inputs: PlanInputs, plan: Plan) -> None:
    """Refuse recorded code that is not what was recorded, of everything that is about to run."""
    working = run_with(inputs.graph, [step.node for step in plan.steps if step.has_work])
    check_definitions(store, inputs.graph, working, inputs.environment.pointers)


def _with_notices(report: Report, left: Mapping[str, Followed]) -> Report:
    """The report with what other environments still wait for; what the command's own waits for fails it."""
    for environment, followed in left.items():
        for name, error in followed.failures.items():
            if environment != report.plan.environment:
                report = with_notice(report, Notice(code="LAM-WARN-021", message=error.message, node=name))
        if followed.left_to is not None:
            message = f"views of environment `{environment}` are not all set yet: {followed.left_to.message}"
            at_most = followed.left_to.seconds_left
            if at_most is not None:
                message += f"; if it no longer runs, a build or run after {math.ceil(at_most)} s sets them"
            report = with_notice(report, Notice(code="LAM-WARN-020", message=message))
    return report
