"""The use cases that look and touch nothing: planning, environments, intervals, history."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from lamina.app.planning.gather import environment_name, gather, load_recorded
from lamina.app.planning.signals import plan_with_signals
from lamina.app.planning.storage import Storage
from lamina.app.ports.loaded import LoadRequest
from lamina.app.report import Report, planned, with_notice
from lamina.errors import LaminaError, Location, NotYetSupported, UnknownEnvironment, UsageError
from lamina.graph.dag import Notice
from lamina.graph.formats import formats_of
from lamina.graph.kinds import has_intervals
from lamina.identity.naming import RESERVED_ENVIRONMENT
from lamina.near_names import did_you_mean
from lamina.planning.reach import window_of, window_words
from lamina.planning.readiness import stored_parents
from lamina.planning.selection import unknown_model
from lamina.sql.names import parse_table_name
from lamina.timeline.interval import Interval
from lamina.timeline.parse import as_end, as_start, parse_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from lamina.app.planning.gather import Gathered
    from lamina.app.ports.bundle import Ports
    from lamina.app.ports.loaded import HistoryEntry
    from lamina.app.ports.project import ProjectSettings
    from lamina.app.requests import PlanRequest
    from lamina.environments.pointers import Revision
    from lamina.graph.dag import Graph
    from lamina.graph.model import Model
    from lamina.graph.names import NodeName
    from lamina.planning.inputs import PlanInputs
    from lamina.planning.steps import Plan
    from lamina.timeline.interval import Instant, Intervals

    StorageRead: TypeAlias = Callable[[str, Iterable[Model]], Storage]


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


class Looking:
    """One project with its state; nothing of it changes, and Spark starts only for signals that ask for it."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    def settings(self) -> ProjectSettings:
        """The project's configuration."""
        return self._ports.project.settings()

    def graph(self, now: Instant) -> Graph:
        """The project's nodes as the files define them."""
        return self._ports.project.graph(now)

    def plan(self, request: PlanRequest) -> Report:
        """Say what `build` (or `run`) would do; touches nothing."""
        gathered = self._gathered(request)
        plan = self._make_plan(gathered.inputs)
        report = planned(plan, gathered.settings)
        unsettled = self._ports.store.unsettled()
        # A lost lease that was looked at stays for a while; nothing is unfinished because of it.
        is_left = any(lease.status == "held" for lease in unsettled.leases)
        if unsettled.attempts or unsettled.revisions or is_left:
            notice = Notice(
                code="LAM-WARN-020",
                message="another command is at work or ended early; the next build or run finishes what it left",
            )
            report = with_notice(report, notice)
        return report

    def _gathered(self, request: PlanRequest, storage_read: StorageRead | None = None) -> Gathered:
        """What a plan is made from; `storage_read` looks for rows through Spark, where somebody asks for them anew."""
        settings = self._ports.project.settings()
        name = environment_name(request.environment, settings)
        check_environment_name(name)
        if settings.mode != "virtual":
            raise NotYetSupported(
                f"mode `{settings.mode}` is not carried out by this release",
                hint="set `mode: virtual` in lamina.yaml",
                location=Location(file="lamina.yaml"),
            )
        _check_range(request)
        gathered = gather(self._ports.project, self._ports.store, request)
        models = gathered.inputs.graph.models

        def named(texts: tuple[str, ...]) -> set[NodeName]:
            found = (node_for(text, models, settings.schema) for text in texts)
            return {node for node in found if node is not None}

        storage = self._storage
        if storage_read is not None and (request.flags.force or request.flags.restate or request.flags.reset):
            storage = storage_read(request.command, models.values())
        inputs = storage.looked_for(gathered.inputs, named, request.repairs)
        return replace(gathered, inputs=inputs)

    @property
    def _storage(self) -> Storage:
        return Storage(store=self._ports.store, folders=self._ports.folders)

    def _make_plan(self, inputs: PlanInputs) -> Plan:
        def session() -> Any:
            self._ports.engine.prepare(inputs.command, formats_of(inputs.graph.models.values()))
            return self._ports.engine.frame("SELECT 1").sparkSession

        return plan_with_signals(inputs, self._ports.ask_signal, session)

    def _unknown_environment(self, name: str) -> UnknownEnvironment:
        known = sorted(self._ports.store.load(LoadRequest(all_environments=True, facts_of_pointers=False)).revisions)
        have = ", ".join(f"`{other}`" for other in known) or "none yet"
        near = did_you_mean(name, known)
        others = f"environments: {have}; `lamina build {name}` creates it"
        return UnknownEnvironment(
            f"environment `{name}` does not exist", hint=f"{near} The {others}" if near else others
        )

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

    def missing_rows(self, now: Instant) -> tuple[LaminaError, ...]:
        """Everything that is recorded and gone, in every environment."""
        store, settings = self._ports.store, self._ports.project.settings()
        found: list[LaminaError] = []

        def look(work: Callable[[], None]) -> None:
            try:
                work()
            except LaminaError as error:
                found.extend(error.problems)

        look(lambda: self._storage.check_state(self._ports.project.graph(now).models))
        for revision in (each for each in self.environments() if each.pointers):
            models = load_recorded(store, settings, revision.environment)[3].models
            look(partial(self._storage.check_rows, models, revision.places, models, revision.environment))
        return tuple(found)

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
            missing=step.intervals.minus(covered.minus(step.redone)).union(step.left_to_baseline),
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
    if flags.reset and (flags.start is not None or flags.end is not None):
        raise UsageError(
            "`--reset` begins from scratch, so it goes together with neither `--start` nor `--end`",
            hint="leave the bounds out, or use `--restate` for part of the time",
        )
    start = as_start(parse_time(flags.start, relative_to=request.now)) if flags.start is not None else None
    end = as_end(parse_time(flags.end, relative_to=request.now)) if flags.end is not None else None
    if start is not None and end is not None:
        Interval(start, end)


def node_for(written: str, models: Iterable[NodeName], default_schema: str) -> NodeName | None:
    by_name = {str(name): name for name in models}
    return by_name.get(written) or by_name.get(f"{default_schema}.{written}")


def find_model(models: Mapping[NodeName, Model], text: str, default_schema: str) -> Model:
    """The model a user named, by full name or within the target's schema; unknown names come with the nearest."""
    written = parse_table_name(text, "spark").to_text()
    node = node_for(written, models, default_schema)
    if node is None:
        raise unknown_model(models, text)
    return models[node]
