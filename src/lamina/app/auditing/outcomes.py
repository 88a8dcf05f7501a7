"""How audits came out: as values, in words, and put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.app.ports.facts import AuditResult
from lamina.app.rendering.audits import call_of
from lamina.graph.kinds import Embedded, View
from lamina.identity.fingerprint import audit_key
from lamina.planning.readiness import stored_parents

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lamina.app.ports.engine import AuditFinding
    from lamina.graph.dag import Graph
    from lamina.graph.model import AuditCall, Model
    from lamina.graph.names import NodeName


AUDITED = "lamina_audited"
"""The name under which queries of audits read rows that have none."""


def rows_words(number: int) -> str:
    """So many rows, for people."""
    return f"{number} {'row' if number == 1 else 'rows'}"


def models_read_by_audits(graph: Graph, model: Model) -> tuple[NodeName, ...]:
    """The models whose tables audits read beside the rows they are about."""
    return tuple(name for name in models_read_by_calls(graph, model.audits) if name != model.name)


def models_read_by_calls(graph: Graph, calls: Iterable[AuditCall]) -> tuple[NodeName, ...]:
    """The models whose tables the queries of audits name."""
    found: set[NodeName] = set()
    for call in calls:
        for name in call.code.references.values() if call.code is not None else ():
            if name not in graph.models:
                continue
            is_shown = isinstance(graph.models[name].kind, View | Embedded)
            found.update(stored_parents(graph, name) if is_shown else (name,))
    return tuple(sorted(found))


def skipped_result(call: AuditCall, *, is_on_request: bool) -> AuditResult:
    """An audit that is not asked; that somebody left it out for once is remembered, that it is switched off is not."""
    key = audit_key(call) if is_on_request and not call.is_skipped else None
    return AuditResult(name=call.name, call=call_of(call), status="skipped", is_blocking=call.is_blocking, key=key)


def result_of(finding: AuditFinding) -> AuditResult:
    """How the audit came out."""
    query = finding.query
    return AuditResult(
        name=query.name,
        call=query.call,
        status="failed" if finding.rows else "passed",
        is_blocking=query.is_blocking,
        failing_rows=finding.rows,
        key=query.key,
        kept_at=finding.kept_at,
    )


def is_refused(result: AuditResult) -> bool:
    """Whether the rows must not be shown."""
    return result.status == "failed" and result.is_blocking


def findings_words(results: Iterable[AuditResult]) -> str:
    """What every audit found that has to be mended."""
    return "; ".join(
        f"audit `{result.call}` found {rows_words(result.failing_rows)}" for result in results if is_refused(result)
    )


def looking_first(results: Iterable[AuditResult], what: str) -> str:
    """A hint: what to do, and below it the commands that show the rows that have to be mended."""
    commands = [result.looking for result in results if is_refused(result) and result.looking is not None]
    return "\n    ".join([f"look at the rows, {what}:", *commands]) if commands else what


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
            key=result.key,
            kept_at=result.kept_at or known.kept_at,
        )
    return tuple(found.values())
