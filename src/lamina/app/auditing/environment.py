"""Asking all audits of an environment about what is built there; nothing is computed and no pointer moves."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from lamina.app.auditing.outcomes import is_refused, merged, skipped_result
from lamina.app.auditing.published_rows import Asked, ask
from lamina.app.auditing.sources_and_standalone import AuditRow, ask_source, row_of
from lamina.app.documents import SCHEMA_VERSION
from lamina.app.leases.retried import PAUSE_GROWTH, TRIES
from lamina.app.leases.uninterrupted import uninterrupted
from lamina.app.planning.gather import environment_name, load_runnable
from lamina.app.planning.recorded_code import check_definitions, run_with
from lamina.app.planning.storage import read_by_audits
from lamina.app.ports.facts import AuditResult
from lamina.app.rendering.audits import call_of
from lamina.errors import Cancelled, LaminaError, PlanOutdated, StateError
from lamina.graph.kinds import has_intervals
from lamina.planning.audit_work import questions, standalone_of
from lamina.planning.draft import ALL_TIME
from lamina.planning.selection import select
from lamina.timeline.interval import EMPTY, FIRST_INSTANT, LAST_INSTANT, Interval, Intervals
from lamina.timeline.parse import as_end, as_start, parse_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from lamina.app.leases.command_ports import CommandPorts
    from lamina.app.ports.project import ProjectSource
    from lamina.app.ports.state import StateStore
    from lamina.app.requests import AuditsRequest
    from lamina.graph.dag import Graph
    from lamina.graph.model import AuditCall, Model
    from lamina.graph.names import NodeName
    from lamina.identity.naming import PhysicalName
    from lamina.planning.audit_work import Alone
    from lamina.planning.inputs import VersionFacts
    from lamina.planning.steps import Question
    from lamina.timeline.interval import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditsReport:
    """How every audit came out."""

    project: str
    environment: str
    now: Instant
    run_id: str | None
    rows: tuple[AuditRow, ...]
    seconds: float = 0.0

    @property
    def status(self) -> str:
        """In the contract's words: an audit that cannot be asked counts as failed, one that does not block does not."""
        if not self.rows:
            return "nothing_to_do"
        return "failed" if any(is_refused(row.result) or row.error for row in self.rows) else "succeeded"

    @property
    def exit_code(self) -> int:
        """What the command should answer."""
        return 1 if self.status == "failed" else 0

    def to_dict(self) -> dict[str, Any]:
        """The document that `--json` prints."""
        return {
            "schema_version": SCHEMA_VERSION,
            "command": "audit",
            "project": self.project,
            "environment": self.environment,
            "execution_time": self.now.isoformat(),
            "run_id": self.run_id,
            "status": self.status,
            "audits": [row.to_dict() for row in self.rows],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentAudits:
    """What there is to ask in an environment."""

    environment: str
    graph: Graph
    chosen: frozenset[NodeName]
    physical_of: Mapping[NodeName, PhysicalName]
    facts: Mapping[NodeName, VersionFacts]
    bounds: Intervals

    @property
    def is_empty(self) -> bool:
        """Whether no model that is asked about has audits."""
        models = (self.graph.models[name] for name in self.chosen)
        return not any(model.audits or model.standalone_audits or model.source_audits for model in models)

    @property
    def read(self) -> frozenset[NodeName]:
        """The models whose rows are read."""
        models = [self.graph.models[name] for name in self.chosen]
        asked = {model.name for model in models if any(not call.is_skipped for call in model.audits)}
        return frozenset(asked.union(*(read_by_audits(model) for model in models)))

    @property
    def places(self) -> Mapping[NodeName, PhysicalName]:
        """Where rows of models are that have any."""
        return {name: place for name, place in self.physical_of.items() if name in self.facts}


def find_audits(store: StateStore, project: ProjectSource, request: AuditsRequest) -> EnvironmentAudits:
    """The audits that the environment runs by, as far as they are selected."""
    name = environment_name(request.environment, project.settings())
    revision, _, loaded, graph = load_runnable(project, store, name)
    places = {node: pointer.physical for node, pointer in revision.pointers.items() if pointer.physical is not None}
    chosen = select(graph, request.select, request.exclude, frozenset())
    running = run_with(graph, chosen)
    check_definitions(store, graph, running, revision.pointers)
    return EnvironmentAudits(
        environment=name,
        graph=graph,
        chosen=chosen,
        physical_of=places,
        facts={node: loaded.facts[place] for node, place in places.items() if place in loaded.facts},
        bounds=_bounds(request),
    )


def _bounds(request: AuditsRequest) -> Intervals:
    if request.start is None and request.end is None:
        return ALL_TIME
    now = request.now
    start = as_start(parse_time(request.start, relative_to=now)) if request.start is not None else FIRST_INSTANT
    end = as_end(parse_time(request.end, relative_to=now)) if request.end is not None else LAST_INSTANT
    return Intervals.of([Interval(start, end)])


def ask_environment(
    ports: CommandPorts, found: EnvironmentAudits, request: AuditsRequest, run_id: str, *, at_once: int, pause: float
) -> tuple[AuditRow, ...]:
    """Ask everything, models in their order; an interrupt cancels Spark's jobs and is raised again."""
    asker = _Asker(ports, found, request.now, run_id, pause)
    return uninterrupted(lambda: asker.rows(at_once), asker.stop)


class _Asker:
    def __init__(self, ports: CommandPorts, found: EnvironmentAudits, now: Instant, run_id: str, pause: float) -> None:
        self._ports, self._found, self._now, self._run_id, self._pause = ports, found, now, run_id, pause

        self._is_stopping = threading.Event()

    def stop(self) -> None:
        """Ask nothing more, wait for nobody, and end what is asked now."""
        self._is_stopping.set()
        self._ports.keeper.give_up_waiting()
        self._ports.engine.cancel()

    def rows(self, at_once: int) -> tuple[AuditRow, ...]:
        found = self._found
        models = [model for name, model in found.graph.models.items() if name in found.chosen]
        sources: dict[NodeName, tuple[Model, tuple[AuditCall, ...]]] = {}
        for model in models:
            for source, calls in model.source_audits.items():
                sources.setdefault(source, (model, calls))
        alone = [each for each in standalone_of(found.graph) if any(name in found.chosen for name in each.models)]
        work: list[Callable[[], tuple[AuditRow, ...]]] = [
            *(partial(self._source, name, *given) for name, given in sources.items()),
            *(partial(self._model, model) for model in models if model.audits),
            *(partial(self._alone, each) for each in alone),
        ]
        with ThreadPoolExecutor(max_workers=max(1, at_once), thread_name_prefix="lamina-audit") as pool:
            return tuple(row for rows in pool.map(self._again, work) for row in rows)

    def _again(self, work: Callable[[], tuple[AuditRow, ...]]) -> tuple[AuditRow, ...]:
        """What was replaced by another command while it was looked at is looked at once more."""
        pause = self._pause
        if self._is_stopping.is_set():
            raise Cancelled("the command was stopped")
        for tries_left in reversed(range(TRIES)):
            try:
                return work()
            except PlanOutdated:
                if not tries_left:
                    raise
            time.sleep(pause)
            pause *= PAUSE_GROWTH
        raise AssertionError("unreachable")

    def _asked(self, model: Model) -> Asked:
        return Asked(
            graph=self._found.graph,
            model=model,
            physical=self._found.physical_of[model.name],
            physical_of=self._found.physical_of,
            execution=self._now,
            run_id=self._run_id,
            remembers_failures=False,
        )

    def _alone(self, alone: Alone) -> tuple[AuditRow, ...]:
        return (row_of(self._ports, self._asked(self._found.graph.models[alone.models[0]]), alone),)

    def _source(self, source: NodeName, model: Model, calls: tuple[AuditCall, ...]) -> tuple[AuditRow, ...]:
        try:
            results = ask_source(self._ports, self._asked(model), source, calls)
        except (Cancelled, StateError, PlanOutdated):
            raise
        except LaminaError as error:
            return tuple(AuditRow(node=source, type="source", result=_unasked(call), error=error) for call in calls)
        return tuple(AuditRow(node=source, type="source", result=result) for result in results)

    def _model(self, model: Model) -> tuple[AuditRow, ...]:
        facts = self._found.facts.get(model.name)
        calls = tuple(call for call in model.audits if not call.is_skipped)
        off = tuple(
            AuditRow(
                node=model.name,
                type="model",
                result=skipped_result(call, is_on_request=False),
                explanation="it is switched off",
            )
            for call in model.audits
            if call.is_skipped
        )
        time = EMPTY
        if facts is not None and facts.head_sequence:
            time = facts.covered.intersect(self._found.bounds) if has_intervals(model.kind) else ALL_TIME
        if time.is_empty or facts is None:
            why = "nothing is built in this time" if facts is not None and facts.head_sequence else "nothing is built"
            return (*(_row(model, skipped_result(call, is_on_request=False), why=why) for call in calls), *off)
        asked = self._asked(model)
        shown = time if has_intervals(model.kind) else EMPTY
        rows = self._together(asked, questions(model, facts, time, calls), shown) if calls else ()
        return (*rows, *off)

    def _together(self, asked: Asked, wanted: Iterable[Question], shown: Intervals) -> tuple[AuditRow, ...]:
        model = asked.model
        results: tuple[AuditResult, ...] = ()
        try:
            for question in wanted:
                results = merged(results, ask(self._ports, asked, question))
        except (Cancelled, StateError, PlanOutdated):
            raise
        except LaminaError as error:
            return tuple(
                AuditRow(node=model.name, type="model", result=_unasked(call), intervals=shown, error=error)
                for call in model.audits
                if not call.is_skipped
            )
        return tuple(_row(model, result, shown) for result in results)


def _row(model: Model, result: AuditResult, shown: Intervals = EMPTY, why: str | None = None) -> AuditRow:
    return AuditRow(node=model.name, type="model", result=result, intervals=shown, explanation=why)


def _unasked(call: AuditCall) -> AuditResult:
    return AuditResult(name=call.name, call=call_of(call), status="failed", is_blocking=call.is_blocking)
