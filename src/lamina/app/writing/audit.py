"""Auditing rows before anyone sees them: what a blocking audit looked at is what gets published, or nothing is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.app.auditing.outcomes import AUDITED, findings_words, is_refused, looking_first, result_of, skipped_result
from lamina.app.ports.engine import AuditRequest, StagedRows
from lamina.app.rendering.audits import audit_queries
from lamina.app.rendering.models import Relations, table_text
from lamina.errors import AuditFailed
from lamina.graph.kinds import IncrementalByTimeRange

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamina.app.ports.engine import AuditFinding, Engine, WriteRequest, Written
    from lamina.app.ports.facts import AuditResult
    from lamina.app.ports.published import Attempt
    from lamina.app.writing.batch_request import WriteTarget
    from lamina.timeline.interval import Interval


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
        removed=written.removed,
    )
    return _audit(engine, target, attempt, time, relations, table_text(AUDITED), staged)


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
        skipped_result(call, is_on_request=target.skips_audits)
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
            view=AUDITED,
            staged=staged,
            physical=attempt.physical,
            folder=attempt.folder,
            settings=model.session_properties,
        )
    )
    results = (*(result_of(finding) for finding in findings), *skipped)
    if any(is_refused(result) for result in results):
        raise _failed(findings, time, target, results)
    return results


def _failed(
    findings: Sequence[AuditFinding], time: Interval | None, target: WriteTarget, results: tuple[AuditResult, ...]
) -> AuditFailed:
    first = next(finding.query for finding in findings if finding.rows and finding.query.is_blocking)
    error = AuditFailed(
        f"{findings_words(results)}; nothing of this was published",
        hint=looking_first(results, "mend the data or the query, and run the command again"),
        location=first.location or target.model.location,
        node=target.model.name,
        interval=time.to_pair() if time else None,
    )
    error.results = results
    return error
