"""The use cases, bound to one project: what the command line and the Python API call."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lamina.app.apply_plan import Pace, Ports, apply_plan, settle, with_notice, write_ports
from lamina.app.ask_signals import plan_with_signals
from lamina.app.audit_environment import AuditsReport, ask_environment, find_audits
from lamina.app.audit_shown import AskPorts
from lamina.app.gather import environment_name, gather, load_recorded, physical_names
from lamina.app.leases import LeaseKeeper
from lamina.app.point_environment import EnvironmentPointer, next_revision
from lamina.app.promote import check_tables, decide_promotion
from lamina.app.publisher import PAUSE_GROWTH
from lamina.app.records import LoadRequest, RevisionIs, RunFinished, RunStarted
from lamina.app.recover import formats_left_behind
from lamina.app.rendering import Relations
from lamina.app.report import Report, planned, with_earlier, with_statements
from lamina.app.source_columns import source_columns
from lamina.environments.pointers import Revision
from lamina.errors import NotYetSupported, UnknownEnvironment, UsageError, raise_all
from lamina.graph.catalogs import catalogs_used
from lamina.graph.dag import Notice
from lamina.graph.formats import formats_of
from lamina.graph.kinds import folds, has_intervals
from lamina.graph.model import SqlBody
from lamina.identity.fingerprint import versions_of
from lamina.identity.naming import RESERVED_ENVIRONMENT
from lamina.planning.missing import next_release
from lamina.planning.reach import window_of, window_words
from lamina.planning.readiness import stored_parents
from lamina.planning.selection import unknown_model
from lamina.sql.names import parse_table_name
from lamina.sql.query import analyse_query
from lamina.sql.render import resolve_tables
from lamina.timeline.interval import Interval
from lamina.timeline.parse import as_end, as_start, parse_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from lamina.app.gather import Gathered
    from lamina.app.ports import ProjectSettings, QueryResult
    from lamina.app.promote import PromoteReport
    from lamina.app.records import HistoryEntry, Loaded
    from lamina.app.requests import AuditsRequest, PlanRequest, PromoteRequest, SourceColumnsRequest
    from lamina.app.source_columns import SourceColumnsReport
    from lamina.app.virtual_update import Followed
    from lamina.graph.dag import Graph
    from lamina.graph.model import Model
    from lamina.graph.names import NodeName
    from lamina.identity.naming import PhysicalName
    from lamina.planning.inputs import PlanInputs
    from lamina.planning.steps import Plan
    from lamina.timeline.interval import Instant, Intervals

_PLANNING_ROUNDS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelIntervals:
    """What is covered, missing and waiting for one model in one environment."""

    model: NodeName
    environment: str
    kind: str
    grain: str
    start: Instant
    covered: Intervals
    missing: Intervals
    waiting: Intervals
    waiting_for: tuple[dict[str, Any], ...]
    reads: tuple[dict[str, str], ...]
    """How far a unit reads into each parent that has intervals, in words."""
    explanation: str


class Application:
    """One project with its state and its Spark; every method is one use case."""

    def __init__(self, ports: Ports, new_run_id: Callable[[], str]) -> None:
        self._ports, self._new_run_id = ports, new_run_id

    def settings(self) -> ProjectSettings:
        """The project's configuration."""
        return self._ports.project.settings()

    def graph(self, now: Instant) -> Graph:
        """The project's nodes as the files define them."""
        return self._ports.project.graph(now)

    # --- plan, build, run ---
    def plan(self, request: PlanRequest) -> Report:
        """Say what `build` (or `run`) would do; touches nothing."""
        gathered = self._gathered(request)
        plan = self._make_plan(gathered.inputs)
        report = planned(plan, gathered.settings)
        unsettled = self._ports.store.unsettled(self._ports.clock.now())
        if not unsettled.is_empty:
            notice = Notice(
                code="LAM-WARN-020",
                message="another command is at work or ended early; the next build or run finishes what it left",
            )
            report = with_notice(report, notice)
        return report

    def build(self, request: PlanRequest, confirm: Callable[[Report], bool] | None = None) -> Report:
        """Make the environment match the project. `confirm` sees the plan first and may decline it."""
        return self._plan_and_apply(request, confirm)

    def run(self, request: PlanRequest) -> Report:
        """Process what has become due, with the recorded code."""
        return self._plan_and_apply(request, None)

    def _gathered(self, request: PlanRequest) -> Gathered:
        settings = self._ports.project.settings()
        name = environment_name(request.environment, settings)
        check_environment_name(name)
        if settings.mode != "virtual":
            raise NotYetSupported(
                f"mode `{settings.mode}` is not carried out by this release",
                hint="set `mode: virtual` in lamina.yaml",
            )
        _check_range(request)
        return gather(self._ports.project, self._ports.store, request)

    def _make_plan(self, inputs: PlanInputs) -> Plan:
        def session() -> Any:
            self._ports.engine.prepare(inputs.command, formats_of(inputs.graph.models.values()))
            return self._ports.engine.frame("SELECT 1").sparkSession

        return plan_with_signals(inputs, self._ports.ask_signal, session)

    def _plan_and_apply(self, request: PlanRequest, confirm: Callable[[Report], bool] | None) -> Report:
        ports, pause = self._ports, self._ports.retry_pause
        earlier: list[Report] = []
        for round_number in range(1, _PLANNING_ROUNDS + 1):
            left = self._settle(request.command, request.now)
            gathered = self._gathered(request)
            plan = self._make_plan(gathered.inputs)
            report = _with_notices(planned(plan, gathered.settings), left)
            if plan.is_blocked:
                return with_earlier(report, earlier)
            before = gathered.inputs.environment
            if not self._changes_anything(plan, before):
                return with_earlier(self._nothing_to_do(report, plan, left.get(plan.environment)), earlier)
            if confirm is not None and not confirm(report):
                return with_earlier(report, earlier)
            pace = Pace(
                concurrency=request.concurrency or gathered.settings.concurrency,
                is_fail_fast=request.is_fail_fast,
                skips_audits=request.skips_audits,
            )
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

    @staticmethod
    def _changes_anything(plan: Plan, before: Revision) -> bool:
        return plan.has_work or before.number == 0 or dict(before.pointers) != dict(plan.pointers)

    def _nothing_to_do(self, report: Report, plan: Plan, left: Followed | None) -> Report:
        upcoming = next_release(plan.models, plan.now) if plan.command == "run" else None
        status = "failed" if plan.failures else "nothing_to_do"
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

    def _settle(self, command: str, execution: Instant) -> dict[str, Followed]:
        """Finish what others left behind before planning on top of it; answers where statements failed."""
        ports = self._ports
        unsettled = ports.store.unsettled(ports.clock.now())
        if unsettled.is_empty:
            return {}
        settings = ports.project.settings()
        shown = (self._formats_shown(revision.environment) for revision in unsettled.revisions)
        is_alone = ports.engine.prepare(command, formats_left_behind(unsettled).union(*shown))
        keeper = LeaseKeeper(ports.store, ports.clock, ports.owner, ports.emit, is_alone=is_alone)
        try:
            return settle(ports, keeper, settings, execution)
        finally:
            keeper.close()

    # --- looking ---
    def start_spark(self, now: Instant) -> tuple[str, frozenset[str]]:
        """Start Spark with the formats of the project's tables, and have it answer; what version it is, and those."""
        models = self.graph(now).models.values()
        formats = formats_of(models)
        self._ports.engine.prepare("doctor", formats, catalogs_used(models))
        (row,) = self._ports.engine.query("SELECT version()", limit=1).rows
        return str(row[0]).split()[0], formats

    def query(self, sql: str, *, environment: str | None, now: Instant, limit: int | None) -> QueryResult:
        """Run a query whose table names mean models of the environment."""
        text, formats = self._environment_query(sql, environment, now)
        self._ports.engine.prepare("query", formats)
        return self._ports.engine.query(text, limit=limit)

    def frame(self, sql: str, *, environment: str | None, now: Instant) -> Any:
        """The same as a lazy DataFrame."""
        text, formats = self._environment_query(sql, environment, now)
        self._ports.engine.prepare("query", formats)
        return self._ports.engine.frame(text)

    def _environment_query(self, sql: str, environment: str | None, now: Instant) -> tuple[str, frozenset[str]]:
        """The query with names resolved to published generations, which need no repair before they are read, and the
        formats of the environment's tables.
        """
        settings = self._ports.project.settings()
        name = environment_name(environment, settings)
        loaded = self._ports.store.load(
            LoadRequest(environments=(name,), definitions_of_pointers=True, facts_of_pointers=False)
        )
        revision = loaded.revisions.get(name) or Revision(environment=name)
        if revision.number == 0 and environment is not None:
            raise self._unknown_environment(name)
        return self._resolved_query(sql, revision, loaded, settings, now)

    def _resolved_query(
        self, sql: str, revision: Revision, loaded: Loaded, settings: ProjectSettings, now: Instant
    ) -> tuple[str, frozenset[str]]:
        models = {
            name: loaded.definitions[pointer.definition_id]
            for name, pointer in revision.pointers.items()
            if pointer.definition_id in loaded.definitions
        }
        physical = {name: pointer.physical for name, pointer in revision.pointers.items() if pointer.physical}
        heads = self._ports.store.load(LoadRequest(heads=tuple(physical.values()), facts_of_pointers=False)).heads
        relations = Relations(
            models=models,
            heads={name: heads[place] for name, place in physical.items() if place in heads},
            load_macros=self._ports.load_macros,
        )
        tables: dict[str, str] = {}
        for reference in analyse_query(sql, "spark").references:
            written = reference.name.to_text()
            node = _node_for(written, models, settings.schema)
            if node is not None:
                tables[written] = relations.relation(node, None, now)
        return resolve_tables(sql, "spark", tables), formats_of(models.values())

    def _formats_shown(self, environment: str) -> frozenset[str]:
        """The formats of the tables that an environment shows."""
        loaded = self._ports.store.load(
            LoadRequest(environments=(environment,), definitions_of_pointers=True, facts_of_pointers=False)
        )
        return formats_of(loaded.definitions.values())

    def _unknown_environment(self, name: str) -> UnknownEnvironment:
        known = sorted(self._ports.store.load(LoadRequest(all_environments=True, facts_of_pointers=False)).revisions)
        have = ", ".join(f"`{other}`" for other in known) or "none yet"
        return UnknownEnvironment(
            f"environment `{name}` does not exist", hint=f"environments: {have}; `lamina build {name}` creates it"
        )

    def render(
        self, model_name: str, *, start: str | None, end: str | None, now: Instant, environment: str | None = None
    ) -> str:
        """The SQL of a model for an interval as Spark would get it: by the files, or by what an environment runs."""
        settings = self._ports.project.settings()
        if environment is None:
            graph = self._ports.project.graph(now)
            physical = self._physical_names(graph)
        else:
            revision, _, _, graph = load_recorded(self._ports.store, settings, environment)
            physical = {name: pointer.physical for name, pointer in revision.pointers.items() if pointer.physical}
        model = find_model(graph.models, model_name, settings.schema)
        if not isinstance(model.body, SqlBody):
            raise UsageError(
                f"`{model.name}` is not written in SQL, so there is nothing to render",
                hint="choose a model whose file ends in `.sql`",
                node=model.name,
            )
        heads = self._ports.store.load(LoadRequest(heads=tuple(physical.values()), facts_of_pointers=False)).heads
        relations = Relations(
            models=graph.models,
            heads={name: heads[place] for name, place in physical.items() if place in heads},
            names=physical,
            load_macros=self._ports.load_macros,
        )
        return relations.query(model, _render_interval(model, start, end, now), now)

    def _physical_names(self, graph: Graph) -> Mapping[NodeName, PhysicalName]:
        versions = versions_of(graph)
        loaded = self._ports.store.load(
            LoadRequest(versions=tuple((version.node, version.version) for version in versions.values()))
        )
        return physical_names(graph, versions, loaded)

    def environments(self) -> tuple[Revision, ...]:
        """Every environment's newest revision."""
        loaded = self._ports.store.load(LoadRequest(all_environments=True, facts_of_pointers=False))
        return tuple(loaded.revisions[name] for name in sorted(loaded.revisions))

    def environment(self, name: str | None) -> tuple[Revision, tuple[Revision, ...]]:
        """An environment's newest revision and its checkpoints, newest first."""
        wanted = environment_name(name, self._ports.project.settings())
        loaded = self._ports.store.load(
            LoadRequest(environments=(wanted,), checkpoints_of=(wanted,), facts_of_pointers=False)
        )
        revision = loaded.revisions.get(wanted)
        if revision is None or revision.number == 0:
            raise self._unknown_environment(wanted)
        return revision, loaded.checkpoints.get(wanted, ())

    def promote(self, request: PromoteRequest) -> PromoteReport:
        """Let one environment show what another one shows; refused where that would take something away."""
        ports, settings = self._ports, self._ports.project.settings()
        check_environment_name(request.destination)
        left = self._settle("promote", request.now).get(request.destination)
        report = decide_promotion(ports.store, settings, request)
        found = report.promotion
        if not found.changes_anything:
            raise_all(left.failures.values() if left else ())
            return report
        is_alone = ports.engine.prepare("promote", self._formats_shown(request.source))
        keeper = LeaseKeeper(ports.store, ports.clock, ports.owner, ports.emit, is_alone=is_alone)
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
            recovery = write_ports(ports, keeper, settings)
            after = next_revision(found.destination, found.pointers, found.status, ports.clock)
            unchanged = RevisionIs(environment=found.source.environment, number=found.source.number)
            followed = EnvironmentPointer(recovery, ports.emit, request.now).move(
                found.destination, after, report.order, requires=(unchanged,)
            )
            raise_all(followed.failures.values())
            status = "succeeded"
        finally:
            ports.store.commit([RunFinished(run_id=run_id, status=status, finished_at=ports.clock.now())])
            keeper.close()
        return replace(report, views=followed.views, statements=followed.statements)

    def audit(self, request: AuditsRequest) -> AuditsReport:
        """Ask the audits of an environment about what is built there, whether they were asked before or not."""
        ports, settings = self._ports, self._ports.project.settings()
        begun = ports.clock.elapsed()
        self._settle("audit", request.now)
        found = find_audits(ports.store, settings, request)
        run_id, status = self._new_run_id(), "failed"
        if found.is_empty:
            return AuditsReport(
                project=settings.name, environment=found.environment, now=request.now, run_id=None, rows=()
            )
        ports.engine.prepare("audit", formats_of(found.graph.models.values()))
        started = RunStarted(
            run_id=run_id,
            command="audit",
            environment=found.environment,
            started_at=ports.clock.now(),
            execution_time=request.now,
        )
        ports.store.commit([started])
        try:
            access = AskPorts(
                store=ports.store,
                engine=ports.engine,
                clock=ports.clock,
                reach=ports.reach,
                emit=ports.emit,
                load_macros=ports.load_macros,
            )
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
        return report

    def intervals(self, model_name: str, request: PlanRequest) -> ModelIntervals:
        """What is covered, missing and waiting for one model, by the code the environment runs."""
        settings = self._ports.project.settings()
        environment, _, loaded, graph = load_recorded(
            self._ports.store, settings, environment_name(request.environment, settings)
        )
        model = find_model(graph.models, model_name, settings.schema)
        report = self.plan(replace(request, command="run", flags=replace(request.flags, ignore_cron=True)))
        step = next(step for step in report.plan.steps if step.node == model.name)
        pointer = environment.pointers[model.name]
        facts = loaded.facts.get(pointer.physical) if pointer.physical else None
        covered = facts.covered if facts else step.intervals
        return ModelIntervals(
            model=model.name,
            environment=environment.environment,
            kind=model.kind.name,
            grain=model.grain.value,
            start=covered.ranges[0].start if covered.ranges else report.plan.now,
            covered=covered,
            missing=step.intervals.minus(covered.minus(step.redone)),
            waiting=step.waiting,
            waiting_for=tuple(
                {"name": waiting.name, "interval": list(waiting.interval.to_pair())} for waiting in step.waiting_for
            ),
            reads=tuple(
                {"name": parent, "window": window_words(window_of(model, parent))}
                for parent in stored_parents(graph, model.name)
                if has_intervals(model.kind) and has_intervals(graph.models[parent].kind)
            ),
            explanation=step.explanation
            if has_intervals(model.kind)
            else f"{model.kind.name} models are computed whole; {step.explanation}",
        )

    def source_columns(self, request: SourceColumnsRequest) -> SourceColumnsReport:
        """Write the columns of external tables, as the catalog has them, into the project's files."""
        return source_columns(self._ports.project, self._ports.engine, request)

    def history(self, run_id: str | None, limit: int) -> tuple[HistoryEntry, ...]:
        """Runs and their batches, newest first."""
        found = self._ports.store.history(run_id=run_id, limit=limit)
        if run_id is not None and not found:
            raise UsageError(f"run `{run_id}` is not known", hint="`lamina history` lists the newest runs")
        return found

    def close(self) -> None:
        """Let go of Spark and state."""
        self._ports.engine.close()
        self._ports.store.close()


def _with_notices(report: Report, left: Mapping[str, Followed]) -> Report:
    """The report with what other environments still wait for; what the command's own waits for fails it."""
    for environment, followed in left.items():
        for name, error in followed.failures.items():
            if environment != report.plan.environment:
                report = with_notice(report, Notice(code="LAM-WARN-021", message=error.message, node=name))
    return report


def check_environment_name(name: str) -> None:
    """Refuse names that cannot be part of a schema name or are taken."""
    is_word = name.replace("_", "a").isalnum() and name.isascii() and not name[0].isdigit()
    if not name or not is_word or name == RESERVED_ENVIRONMENT:
        raise UsageError(
            f"`{name}` cannot be the name of an environment",
            hint=f"use letters, digits and underscores, beginning with a letter; `{RESERVED_ENVIRONMENT}` is reserved",
        )


def _check_range(request: PlanRequest) -> None:
    flags = request.flags
    start = as_start(parse_time(flags.start, relative_to=request.now)) if flags.start is not None else None
    end = as_end(parse_time(flags.end, relative_to=request.now)) if flags.end is not None else None
    if start is not None and end is not None:
        Interval(start, end)


def _node_for(written: str, models: Iterable[NodeName], default_schema: str) -> NodeName | None:
    by_name = {str(name): name for name in models}
    return by_name.get(written) or by_name.get(f"{default_schema}.{written}")


def find_model(models: Mapping[NodeName, Model], text: str, default_schema: str) -> Model:
    """The model a user named, by full name or within the target's schema; unknown names come with the nearest."""
    written = parse_table_name(text, "spark").to_text()
    node = _node_for(written, models, default_schema)
    if node is None:
        raise unknown_model(models, text)
    return models[node]


def _render_interval(model: Model, start: str | None, end: str | None, now: Instant) -> Interval | None:
    if not has_intervals(model.kind) and not folds(model.kind):
        return None
    last = model.grain.floor(now)
    begin = as_start(parse_time(start, relative_to=now)) if start is not None else None
    finish = as_end(parse_time(end, relative_to=now)) if end is not None else None
    if begin is None:
        begin = model.grain.add(model.grain.floor(last if finish is None else finish), -1)
    return Interval(begin, model.grain.add(begin, 1) if finish is None else finish)
