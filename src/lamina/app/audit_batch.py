"""Auditing rows before anyone sees them: what a blocking audit looked at is what gets published, or nothing is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from lamina.app.audit_queries import audit_queries, call_of
from lamina.app.ports import AuditRequest, StagedRows
from lamina.app.rendering import table_text
from lamina.errors import AuditFailed
from lamina.graph.kinds import Embedded, IncrementalByTimeRange, View
from lamina.planning.readiness import stored_parents

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lamina.app.batch_request import WriteTarget
    from lamina.app.ports import AuditFinding, Engine, WriteRequest, Written
    from lamina.app.records import Attempt
    from lamina.app.rendering import Relations
    from lamina.graph.dag import Graph
    from lamina.graph.model import Model
    from lamina.graph.names import NodeName
    from lamina.timeline.interval import Interval

AuditStatus: TypeAlias = Literal["passed", "failed", "skipped"]

_VIEW = "lamina_audited"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """How one audit of a model came out; `call` is how the model names it, with its arguments."""

    name: str
    call: str
    status: AuditStatus
    is_blocking: bool
    failing_rows: int = 0


def models_read_by_audits(graph: Graph, model: Model) -> tuple[NodeName, ...]:
    """The models whose tables audits read beside the rows they are about."""
    found: set[NodeName] = set()
    for call in model.audits:
        for name in call.code.references.values() if call.code is not None else ():
            if name == model.name or name not in graph.models:
                continue
            is_shown = isinstance(graph.models[name].kind, View | Embedded)
            found.update(stored_parents(graph, name) if is_shown else (name,))
    return tuple(sorted(found))


def audit_rows(
    engine: Engine,
    target: WriteTarget,
    attempt: Attempt,
    time: Interval | None,
    relations: Relations,
    request: WriteRequest,
    written: Written,
) -> tuple[AuditResult, ...]:
    """Audit the rows that an attempt has written aside; raises `AuditFailed` when they must not be published.

    `time` is what the time variables of the batch stand for.
    """
    kind = target.model.kind
    staged = StagedRows(
        shape=written.shape,
        interval=attempt.interval,
        time_column=kind.time_column if isinstance(kind, IncrementalByTimeRange) else None,
        generation=attempt.generation,
        place=written.place,
        base=request.base,
        fold=request.fold,
    )
    return _audit(engine, target, attempt, time, relations, table_text(_VIEW), staged)


def audit_view(
    engine: Engine, target: WriteTarget, attempt: Attempt, relations: Relations, sql: str
) -> tuple[AuditResult, ...]:
    """Audit the rows that a view would show."""
    return _audit(engine, target, attempt, None, relations, f"(\n{sql}\n)", None)


def _audit(
    engine: Engine,
    target: WriteTarget,
    attempt: Attempt,
    time: Interval | None,
    relations: Relations,
    relation: str,
    staged: StagedRows | None,
) -> tuple[AuditResult, ...]:
    model = target.model
    skipped = tuple(
        AuditResult(name=call.name, call=call_of(call), status="skipped", is_blocking=call.is_blocking)
        for call in model.audits
        if target.skips_audits or call.is_skipped
    )
    if len(skipped) == len(model.audits):
        return skipped
    queries = audit_queries(model, model.audits, relation, relations, time, target.execution)
    findings = engine.audit(
        AuditRequest(
            node=model.name,
            location=model.location,
            queries=queries,
            view=_VIEW,
            staged=staged,
            physical=attempt.physical,
            folder=attempt.folder,
            settings=model.session_properties,
        )
    )
    refused = [finding for finding in findings if finding.rows and finding.query.is_blocking]
    results = (*(_result(finding) for finding in findings), *skipped)
    if refused:
        raise _failed(refused, time, target, results)
    return results


def _result(finding: AuditFinding) -> AuditResult:
    query = finding.query
    return AuditResult(
        name=query.name,
        call=query.call,
        status="failed" if finding.rows else "passed",
        is_blocking=query.is_blocking,
        failing_rows=finding.rows,
    )


def _failed(
    refused: Sequence[AuditFinding], time: Interval | None, target: WriteTarget, results: tuple[AuditResult, ...]
) -> AuditFailed:
    found = "; ".join(
        f"audit `{finding.query.call}` found {finding.rows} {'row' if finding.rows == 1 else 'rows'}"
        for finding in refused
    )
    kept = [finding.kept_at for finding in refused if finding.kept_at is not None]
    look = f"look at the rows with {' and '.join(f'`SELECT * FROM {place}`' for place in kept)}, " if kept else ""
    error = AuditFailed(
        f"{found}; nothing of this was published",
        hint=f"{look}mend the data or the query and run the command again",
        location=refused[0].query.location or target.model.location,
        node=target.model.name,
        interval=time.to_pair() if time else None,
    )
    error.results = results
    return error


def merged(before: Iterable[AuditResult], now: Iterable[AuditResult]) -> tuple[AuditResult, ...]:
    """The results of several batches as one: an audit has failed when it did so in any of them."""
    found: dict[tuple[str, bool], AuditResult] = {}
    for result in (*before, *now):
        key = (result.call, result.is_blocking)
        known = found.get(key)
        if known is None:
            found[key] = result
            continue
        found[key] = AuditResult(
            name=result.name,
            call=result.call,
            status="failed" if "failed" in {known.status, result.status} else result.status,
            is_blocking=result.is_blocking,
            failing_rows=known.failing_rows + result.failing_rows,
        )
    return tuple(found.values())
