"""The use cases of one project, of which those that a command does not need are not loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lamina.app.looking.looking import Looking

if TYPE_CHECKING:
    from collections.abc import Callable

    from lamina.app.application import Application
    from lamina.app.auditing.environment import AuditsReport
    from lamina.app.building.repair import RepairReport
    from lamina.app.environments.promote import PromoteReport
    from lamina.app.looking.querying import Querying
    from lamina.app.looking.register_source import RegisteredSource
    from lamina.app.looking.source_columns import SourceColumnsReport
    from lamina.app.ports.bundle import Ports
    from lamina.app.ports.engine import QueryResult
    from lamina.app.report import Report
    from lamina.app.requests import AuditsRequest, PlanRequest, PromoteRequest, RegisterRequest, SourceColumnsRequest
    from lamina.errors import LaminaError
    from lamina.timeline.interval import Instant


class LateApplication(Looking):
    """Looks by itself, and hands on what makes queries or writes; what those need is loaded by the given functions.

    They are called with each use, and answer the same.
    """

    def __init__(
        self, ports: Ports, querying: Callable[[Ports], Querying], application: Callable[[Ports], Application]
    ) -> None:
        super().__init__(ports)
        self._querying, self._application = querying, application

    # --- queries ---
    def start_spark(self, now: Instant) -> tuple[str, frozenset[str]]:
        """See `Querying.start_spark`."""
        return self._querying(self._ports).start_spark(now)

    def missing_files(self) -> tuple[LaminaError, ...]:
        """See `Querying.missing_files`."""
        return self._querying(self._ports).missing_files()

    def query(self, sql: str, *, environment: str | None, now: Instant, limit: int | None) -> QueryResult:
        """See `Querying.query`."""
        return self._querying(self._ports).query(sql, environment=environment, now=now, limit=limit)

    def frame(self, sql: str, *, environment: str | None, now: Instant) -> Any:
        """See `Querying.frame`."""
        return self._querying(self._ports).frame(sql, environment=environment, now=now)

    def render(
        self, model_name: str, *, start: str | None, end: str | None, now: Instant, environment: str | None = None
    ) -> str:
        """See `Querying.render`."""
        return self._querying(self._ports).render(model_name, start=start, end=end, now=now, environment=environment)

    # --- writing ---
    def build(self, request: PlanRequest, confirm: Callable[[Report], bool] | None = None) -> Report:
        """See `Application.build`."""
        return self._application(self._ports).build(request, confirm)

    def run(self, request: PlanRequest) -> Report:
        """See `Application.run`."""
        return self._application(self._ports).run(request)

    def promote(self, request: PromoteRequest) -> PromoteReport:
        """See `Application.promote`."""
        return self._application(self._ports).promote(request)

    def repair(self, environment: str | None, now: Instant) -> RepairReport:
        """See `Application.repair`."""
        return self._application(self._ports).repair(environment, now)

    def audit(self, request: AuditsRequest) -> AuditsReport:
        """See `Application.audit`."""
        return self._application(self._ports).audit(request)

    def source_columns(self, request: SourceColumnsRequest) -> SourceColumnsReport:
        """See `Application.source_columns`."""
        return self._application(self._ports).source_columns(request)

    def register_source(self, request: RegisterRequest) -> RegisteredSource:
        """See `Application.register_source`."""
        return self._application(self._ports).register_source(request)
