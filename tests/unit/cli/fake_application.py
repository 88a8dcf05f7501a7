"""An application whose answers a test decides, and the plans of a small shop to answer with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lamina.app.auditing.environment import AuditsReport
from lamina.app.looking.looking import ModelIntervals
from lamina.app.looking.register_source import RegisteredSource
from lamina.app.looking.source_columns import SourceColumnsReport
from lamina.app.ports.engine import QueryResult
from lamina.app.ports.events import Event
from lamina.app.ports.loaded import HistoryEntry
from lamina.app.ports.project import ProjectSettings
from lamina.app.report import NodeResult, Report, planned
from lamina.app.requests import AuditsRequest, PlanRequest, RegisterRequest, SourceColumnsRequest
from lamina.bootstrap import Diagnosis, OpenOptions
from lamina.cli.services import Services
from lamina.environments.pointers import Revision
from lamina.graph.kinds import View
from lamina.planning.inputs import Flags
from lamina.planning.plan import make_plan
from lamina.timeline.interval import Instant
from tests.kit.models import World, daily, instant, model

NOW = "2024-01-08"
SETTINGS = ProjectSettings(
    name="shop",
    mode="virtual",
    target="prod",
    schema="shop",
    unsuffixed_environment="prod",
    default_start=None,
    concurrency=4,
)


class Shop:
    """A world with three models whose plans can be asked for, before and after a build."""

    def __init__(self) -> None:
        self.models = [
            model("shop.orders", ["raw.orders"], kind=daily(), start="2024-01-01"),
            model("shop.revenue", ["shop.orders"], query="SELECT ds, x AS revenue FROM shop.orders"),
            model("shop.page", ["shop.revenue"], kind=View()),
        ]
        self.world = World(*self.models)

    def plan(
        self, environment: str = "prod", *, command: str = "plan", now: str = NOW, flags: Flags | None = None
    ) -> Report:
        inputs = self.world.inputs(now, command=command, environment=environment, flags=flags)
        return planned(make_plan(inputs), SETTINGS)

    def build(self, environment: str = "prod", now: str = NOW) -> None:
        self.world.carry_out(make_plan(self.world.inputs(now, environment=environment)))

    def change(self, name: str, query: str) -> None:
        reads = next(entry.reads for entry in self.models if entry.name == name)
        changed = model(name, reads, query=query)
        self.models = [changed if entry.name == name else entry for entry in self.models]
        self.world.change(*self.models)

    def remove(self, name: str) -> None:
        self.models = [entry for entry in self.models if entry.name != name]
        self.world.change(*self.models)


def succeeded(report: Report) -> Report:
    """The report of a plan whose every step went well."""
    results = {
        step.node: NodeResult(status="succeeded", rows=1200, seconds=1.25, batches=len(step.batches), statements=3)
        for step in report.plan.steps
        if step.has_work
    }
    return replace(
        report, status="succeeded", environment_status="finalized", run_id="run1", results=results, views=3, seconds=4.2
    )


@dataclass
class FakeApplication:
    """Remembers what it was asked and gives the answers it was told; an answer that is an error is raised."""

    report: Any = None
    planned: Report | None = None
    events: Sequence[Event] = ()
    result: QueryResult | None = None
    sql: Any = "SELECT 1"
    revisions: tuple[Revision, ...] = ()
    checkpoints: tuple[Revision, ...] = ()
    found: ModelIntervals | None = None
    entries: tuple[HistoryEntry, ...] = ()
    columns: SourceColumnsReport | None = None
    registered: RegisteredSource | None = None
    requests: list[Any] = field(default_factory=list)
    is_closed: bool = False
    emit: Callable[[Event], None] = lambda event: None

    def plan(self, request: PlanRequest) -> Report:
        self.requests.append(request)
        return self._answer(self.report)

    def build(self, request: PlanRequest, confirm: Callable[[Report], bool] | None = None) -> Report:
        self.requests.append(request)
        if self.planned is not None and confirm is not None and not confirm(self.planned):
            return self.planned
        return self._answer(self.report)

    def run(self, request: PlanRequest) -> Report:
        self.requests.append(request)
        return self._answer(self.report)

    def audit(self, request: AuditsRequest) -> AuditsReport:
        self.requests.append(request)
        return self._answer(self.report)

    def query(self, sql: str, *, environment: str | None, now: Instant, limit: int | None) -> QueryResult:
        self.requests.append({"sql": sql, "environment": environment, "now": now, "limit": limit})
        return self._answer(self.result)

    def render(
        self, model_name: str, *, start: str | None, end: str | None, now: Instant, environment: str | None = None
    ) -> str:
        asked = {"model": model_name, "start": start, "end": end, "now": now, "environment": environment}
        self.requests.append(asked)
        return self._answer(self.sql)

    def settings(self) -> ProjectSettings:
        return SETTINGS

    def environments(self) -> tuple[Revision, ...]:
        return self.revisions

    def environment(self, name: str | None) -> tuple[Revision, tuple[Revision, ...]]:
        self.requests.append(name)
        return self.revisions[0], self.checkpoints

    def intervals(self, model_name: str, request: PlanRequest) -> ModelIntervals:
        self.requests.append((model_name, request))
        return self._answer(self.found)

    def history(self, run_id: str | None, limit: int) -> tuple[HistoryEntry, ...]:
        self.requests.append((run_id, limit))
        return self.entries

    def source_columns(self, request: SourceColumnsRequest) -> SourceColumnsReport:
        self.requests.append(request)
        return self._answer(self.columns)

    def register_source(self, request: RegisterRequest) -> RegisteredSource:
        self.requests.append(request)
        return self._answer(self.registered)

    def close(self) -> None:
        self.is_closed = True

    def _answer(self, answer: Any) -> Any:
        for event in self.events:
            self.emit(event)
        if isinstance(answer, BaseException):
            raise answer
        return answer


@dataclass
class FakeServices:
    """The ways into a fake application."""

    application: FakeApplication = field(default_factory=FakeApplication)
    opened: list[OpenOptions] = field(default_factory=list)
    created: list[tuple[Path, str, str]] = field(default_factory=list)
    checks: tuple[Diagnosis, ...] = ()
    logs: Path | None = None

    def as_services(self) -> Services:
        return Services(
            open_application=self._open,
            parse_execution_time=lambda text: instant(text or NOW),
            init_project=self._init,
            diagnose=self._diagnose,
            log_folder=lambda options: self.logs,
        )

    def _open(self, options: OpenOptions, emit: Callable[[Event], None]) -> Any:
        self.opened.append(options)
        self.application.emit = emit
        return self.application

    def _diagnose(self, options: OpenOptions, emit: Callable[[Event], None]) -> tuple[Diagnosis, ...]:
        for event in self.application.events:
            emit(event)
        return self.checks

    def _init(self, folder: Path, template: str, table_format: str) -> tuple[str, ...]:
        self.created.append((folder, template, table_format))
        return ("lamina.yaml", "models/orders.sql")
