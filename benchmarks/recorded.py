"""Recording a project as built without computing anything, so that planning can be measured by itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lamina.app.ports.engine import AnalysisOutcome, AuditFinding, QueryResult, Written
from lamina.app.ports.machine import Standing
from lamina.app.ports.published import TableShape
from lamina.app.requests import PlanRequest
from lamina.bootstrap import OpenOptions, open_application, parse_execution_time
from lamina.graph.model import Column

if TYPE_CHECKING:
    from collections.abc import Sequence


class NoEngine:
    """Answers everything at once and writes nothing."""

    def prepare(self, _command: str, _formats: Any, _catalogs: Any = None) -> Standing:
        return Standing()

    def placed(self, generation: str, _table_format: Any) -> str:
        return generation

    def analyse(self, requests: Sequence[Any]) -> tuple[AnalysisOutcome, ...]:
        columns = (Column(name="ds", type="date"),)
        return tuple(AnalysisOutcome(node=request.node, columns=columns) for request in requests)

    def write(self, request: Any) -> Written:
        return Written(
            rows=0, shape=TableShape(columns=(Column(name="ds", type="date"),)), folders={(): request.folder}
        )

    def audit(self, request: Any) -> tuple[AuditFinding, ...]:
        return tuple(AuditFinding(query=query, rows=0) for query in request.queries)

    def execute(self, _request: Any) -> None:
        return None

    def create_generation(self, _request: Any) -> None:
        return None

    def left_behind(self, _names: Sequence[Any]) -> tuple[()]:
        return ()

    def absent(self, _schema: str, _folders: Sequence[str]) -> None:
        return None

    def publish(self, _publish: Any) -> None:
        return None

    def published(self, names: Sequence[Any]) -> dict[Any, None]:
        return dict.fromkeys(names)

    def show(self, views: Sequence[Any]) -> int:
        return len(views)

    def query(self, _sql: str, *, limit: int | None) -> QueryResult:  # noqa: ARG002  # the port's shape
        return QueryResult(columns=(), rows=(), is_truncated=False)

    def frame(self, _sql: str) -> None:
        return None

    def cancel(self) -> None:
        return None

    def close(self) -> None:
        return None


def record_as_built(folder: Path, moment: str) -> None:
    """Apply a build whose every batch is empty."""
    application = open_application(OpenOptions(directory=folder), lambda _event: None)
    application._ports = replace(application._ports, engine=NoEngine())  # noqa: SLF001  # there is no other engine
    request = PlanRequest(command="build", now=parse_execution_time(moment))
    report = application.build(request)
    if report.status != "succeeded":
        raise RuntimeError(report.to_dict())
    application.close()
