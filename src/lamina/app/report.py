"""What happened, as a value and as the contract's document."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from lamina.app.documents import SCHEMA_VERSION
from lamina.errors import Location
from lamina.timeline.interval import EMPTY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lamina.app.auditing.sources_and_standalone import AuditRow
    from lamina.app.environments.virtual_update import Followed
    from lamina.app.ports.facts import AuditResult
    from lamina.app.ports.project import ProjectSettings
    from lamina.errors import LaminaError
    from lamina.graph.dag import Notice
    from lamina.graph.names import NodeName
    from lamina.planning.steps import Plan, Step
    from lamina.timeline.interval import Instant, Intervals


NodeStatus: TypeAlias = Literal["succeeded", "failed", "skipped", "reused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeResult:
    """How a node came out."""

    status: NodeStatus
    rows: int | None = None
    seconds: float | None = None
    batches: int = 0
    statements: int = 0
    intervals: Intervals = EMPTY
    """What was processed."""
    changed: Intervals = EMPTY
    """Recorded time that came out with other rows."""
    follows: bool = False
    """Whether recorded time was computed again because what it reads came out with other rows."""
    null_times: int = 0
    remarks: tuple[str, ...] = ()
    """What a person asked to be told of columns."""
    audits: tuple[AuditResult, ...] = ()
    virtual_statements: int = 0
    """Statements that ran after the environment's view was set."""
    error: LaminaError | None = None
    explanation: str | None = None
    is_same: bool = False
    """Skipped because what it reads came out the same: as good as built."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A plan and, once applied, what came of it. Failed models do not raise."""

    plan: Plan
    settings: ProjectSettings
    status: str
    environment_status: str
    run_id: str | None = None
    results: Mapping[NodeName, NodeResult] = field(default_factory=lambda: MappingProxyType({}))
    audits: tuple[AuditRow, ...] = ()
    """Audits of sources and standalone ones; those of models are in their results."""
    notices: tuple[Notice, ...] = ()
    views: int = 0
    seconds: float = 0.0
    next_release: Instant | None = None

    @property
    def exit_code(self) -> int:
        """What a command should answer."""
        if self.status == "interrupted":
            return 130
        return 1 if self.status in {"failed", "blocked"} else 0

    def to_dict(self) -> dict[str, Any]:
        """The document that `--json` prints."""
        plan = self.plan
        nodes = [_node(step, self.results.get(step.node)) for step in plan.steps]
        summary = Counter(node["action"] for node in nodes)
        return {
            "schema_version": SCHEMA_VERSION,
            "command": plan.command,
            "project": self.settings.name,
            "mode": self.settings.mode,
            "target": self.settings.target,
            "environment": {"name": plan.environment, "status": self.environment_status, "baseline": plan.baseline},
            "execution_time": plan.now.isoformat(),
            "run_id": self.run_id,
            "status": "failed" if self.status == "interrupted" else self.status,
            "warnings": [_warning(notice) for notice in (*plan.warnings, *self.notices)],
            "nodes": nodes,
            "audits": [row.to_dict() for row in self.audits],
            "summary": dict(sorted(summary.items())),
            "next_release": self.next_release.isoformat() if self.next_release else None,
        }


def _warning(notice: Notice) -> dict[str, Any]:
    place = notice.location or Location()
    return {
        "code": notice.code,
        "message": notice.message,
        "node": notice.node,
        "file": place.file,
        "line": place.line,
    }


def _node(step: Step, result: NodeResult | None) -> dict[str, Any]:
    error = result.error.to_dict() if result and result.error else None
    is_reached = result is not None and result.follows and step.action in {"skip", "wait"}
    is_over = result is not None and result.status in {"succeeded", "skipped"}
    intervals = result.intervals if result is not None and is_over else step.intervals
    return {
        "name": step.node,
        "type": step.type,
        "kind": step.kind,
        "action": "build" if is_reached else step.action,
        "reason": "upstream_rewritten" if is_reached else step.reason,
        "cause": step.cause,
        "change": step.change,
        "reaches": list(step.reaches),
        "changed_columns": list(step.changed_columns),
        "version": step.version,
        "previous_version": step.previous_version,
        "physical_table": step.physical,
        "replay": step.replay,
        "intervals": [list(pair) for pair in intervals.to_pairs()],
        "batches": result.batches if result is not None and is_over else len(step.batches),
        "may_follow": [list(pair) for pair in step.may_follow.to_pairs()] if not step.certain.is_empty else [],
        "left_out": [list(pair) for pair in step.left_out.to_pairs()],
        "left_to_baseline": [list(pair) for pair in step.left_to_baseline.to_pairs()],
        "changed": [list(pair) for pair in result.changed.to_pairs()] if result else [],
        "reads": [
            {"name": read.name, "start": read.start.isoformat() if read.start else None, "end": read.end.isoformat()}
            for read in step.reads
        ],
        "waiting_for": [
            {"name": waiting.name, "interval": list(waiting.interval.to_pair())} for waiting in step.waiting_for
        ],
        "audits": [
            {
                "name": audit.name,
                "call": audit.call,
                "status": audit.status,
                "blocking": audit.is_blocking,
                "failing_rows": audit.failing_rows,
            }
            for audit in (result.audits if result else ())
        ],
        "virtual_statements": result.virtual_statements if result else 0,
        "explanation": (result.explanation if result and result.explanation else step.explanation),
        "diff": step.diff,
        "status": result.status if result else None,
        "rows": result.rows if result else None,
        "seconds": result.seconds if result else None,
        "error": error,
    }


def with_earlier(report: Report, earlier: Sequence[Report]) -> Report:
    """The report of a command that planned anew because of others, with what it had done until then."""
    for part in reversed(earlier):
        report = _joined(part, report)
    return report


def _joined(first: Report, then: Report) -> Report:
    done = {name: result for name, result in first.results.items() if result.batches}
    if not done:
        return then
    steps = {step.node: step for step in first.plan.steps if step.node in done}
    plan = replace(
        then.plan,
        steps=tuple(step if step.has_work else steps.get(step.node, step) for step in then.plan.steps),
    )
    results = dict(then.results)
    for name, result in done.items():
        results[name] = _added(result, then.results.get(name))
    return replace(
        then,
        plan=plan,
        status="succeeded" if then.status == "nothing_to_do" else then.status,
        run_id=then.run_id or first.run_id,
        results=results,
        notices=tuple(dict.fromkeys((*first.notices, *then.notices))),
        views=first.views + then.views,
        seconds=round(first.seconds + then.seconds, 3),
    )


def _added(first: NodeResult, then: NodeResult | None) -> NodeResult:
    """What came of a node that was begun twice; what was finished the first time has succeeded."""
    if then is None or then.status == "reused":
        return replace(first, status="succeeded", error=None, explanation=None)
    return replace(
        then,
        status="succeeded" if then.is_same else then.status,
        rows=(first.rows or 0) + (then.rows or 0),
        seconds=round((first.seconds or 0) + (then.seconds or 0), 3),
        batches=first.batches + then.batches,
        statements=first.statements + then.statements,
        intervals=first.intervals.union(then.intervals),
        changed=first.changed.union(then.changed),
        follows=first.follows or then.follows,
        null_times=first.null_times + then.null_times,
        remarks=(*first.remarks, *then.remarks),
        audits=(*first.audits, *then.audits),
    )


def unanswered(plan: Plan) -> dict[NodeName, NodeResult]:
    """The results of models whose signals gave no answer."""
    return {name: NodeResult(status="failed", error=error) for name, error in plan.failures.items()}


def with_statements(
    plan: Plan, results: Mapping[NodeName, NodeResult], followed: Followed
) -> dict[NodeName, NodeResult]:
    """The results with what came of the statements that follow the views; one that failed fails its node.

    A model that was only pointed to has no result of its own until its statements have one.
    """
    found = dict(results)
    for step in plan.steps:
        before = found.get(step.node) or NodeResult(status="reused" if step.action == "reuse" else "succeeded")
        if step.node in followed.failures:
            found[step.node] = replace(before, status="failed", error=before.error or followed.failures[step.node])
        elif followed.statements.get(step.node):
            found[step.node] = replace(before, virtual_statements=followed.statements[step.node])
    return found


def planned(plan: Plan, settings: ProjectSettings) -> Report:
    """The report of a plan that was not applied."""
    status = "planned" if plan.has_work or plan.status == "new" else "nothing_to_do"
    if plan.failures:
        status = "failed"
    return Report(
        plan=plan,
        settings=settings,
        status="blocked" if plan.is_blocked or (plan.refused and not plan.failures) else status,
        environment_status=plan.status,
        results=unanswered(plan),
    )


def with_notice(report: Report, notice: Notice) -> Report:
    """The report with one more warning."""
    return replace(report, notices=(*report.notices, notice))
