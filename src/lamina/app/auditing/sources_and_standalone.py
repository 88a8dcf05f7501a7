"""Asking audits that belong to no model: of external tables before they are read, and standalone ones afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from lamina.app.auditing.outcomes import (
    AUDITED,
    findings_words,
    is_refused,
    looking_first,
    models_read_by_calls,
    result_of,
    skipped_result,
)
from lamina.app.auditing.published_rows import Asked, again, pinned_heads, tell
from lamina.app.leases.recover import once_carried_out
from lamina.app.ports.engine import AuditRequest
from lamina.app.ports.facts import AuditResult, AuditsRecorded
from lamina.app.ports.loaded import LoadRequest
from lamina.app.ports.requirements import HeadIs, NothingPending
from lamina.app.rendering.audits import audit_queries
from lamina.app.rendering.models import Relations, table_text
from lamina.errors import AuditFailed, Cancelled, CommitRefused, LaminaError, PlanOutdated, StateError
from lamina.graph.dag import Graph
from lamina.graph.names import NodeName
from lamina.identity.naming import batch_folder
from lamina.planning.audit_work import is_due, standalone_of
from lamina.timeline.interval import EMPTY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lamina.app.leases.command_ports import CommandPorts
    from lamina.app.ports.published import Head
    from lamina.environments.pointers import Pointer
    from lamina.graph.model import AuditCall
    from lamina.identity.naming import PhysicalName
    from lamina.planning.audit_work import Alone
    from lamina.planning.steps import Plan
    from lamina.timeline.interval import Intervals


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """How one audit came out, for people and programs: of a model, of a source, or on its own."""

    node: str
    type: Literal["model", "source", "audit"]
    result: AuditResult
    intervals: Intervals = EMPTY
    error: LaminaError | None = None
    explanation: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The row as `--json` prints it."""
        result = self.result
        return {
            "node": self.node,
            "type": self.type,
            "name": result.name,
            "call": result.call,
            "status": result.status,
            "blocking": result.is_blocking,
            "failing_rows": result.failing_rows,
            "failing_rows_at": result.kept_at,
            "intervals": [list(pair) for pair in self.intervals.to_pairs()],
            "explanation": self.explanation,
            "error": self.error.to_dict() if self.error else None,
        }


# --- sources ----------------------------------------------------------------------------------------------------------
def ask_source(
    ports: CommandPorts, asked: Asked, source: NodeName, calls: Iterable[AuditCall]
) -> tuple[AuditResult, ...]:
    """Ask the audits of an external table that a model reads; what comes of it is recorded for people."""
    calls = tuple(calls)
    skipped = tuple(
        skipped_result(call, is_on_request=False) for call in calls if asked.skips_audits or call.is_skipped
    )
    wanted = () if asked.skips_audits else tuple(call for call in calls if not call.is_skipped)
    results = skipped
    number = ports.store.allocate(1)
    if wanted:
        look = partial(_ask, ports, asked, wanted, {}, table_text(source), number, source)
        results = (*again(ports, source, look), *skipped)
    recorded = AuditsRecorded(
        run_id=asked.run_id,
        node=source,
        physical=asked.physical,
        number=number,
        interval=None,
        results=results,
        recorded_at=ports.clock.now(),
        is_shown=False,
    )
    ports.store.commit([recorded])
    return results


def refused_source(source: NodeName, results: tuple[AuditResult, ...], asked: Asked) -> AuditFailed | None:
    """Why a model that reads the table must not be built, if that is so."""
    if not any(is_refused(result) for result in results):
        return None
    calls = asked.model.source_audits.get(source, ())
    refused = {result.name for result in results if is_refused(result)}
    return AuditFailed(
        f"{findings_words(results)} in the source `{source}`; `{asked.model.name}`, which reads it, was not built",
        hint=looking_first(results, "mend the source, and run the command again"),
        location=next((call.location for call in calls if call.name in refused), None) or asked.model.location,
        node=asked.model.name,
    )


# --- standalone audits ------------------------------------------------------------------------------------------------
def ask_due(
    ports: CommandPorts, plan: Plan, pointers: Mapping[NodeName, Pointer], run_id: str, *, skips_audits: bool
) -> tuple[AuditRow, ...]:
    """Ask the standalone audits that read something new, as far as what they read is shown by the environment.

    They never block: one that cannot be carried out is a row with its error.
    """
    graph = Graph(models=plan.models)
    alone = [
        each
        for each in standalone_of(graph)
        if all(name in pointers and pointers[name] == plan.pointers.get(name) for name in each.models)
    ]
    if not alone:
        return ()
    versions = {name: plan.versions[name].version for each in alone for name in each.models}
    loaded = ports.store.load(LoadRequest(versions=tuple(versions.items())))
    places = {name: pointer.physical for name, pointer in pointers.items() if pointer.physical is not None}
    facts = {name: loaded.facts[places[name]] for name in versions if places.get(name) in loaded.facts}
    rows = []
    for each in alone:
        if not is_due(each, graph, facts):
            continue
        first = each.models[0]
        asked = Asked(
            graph=graph,
            model=graph.models[first],
            physical=places[first],
            physical_of=places,
            execution=plan.now,
            run_id=run_id,
            skips_audits=skips_audits,
        )
        rows.append(row_of(ports, asked, each))
    return tuple(rows)


def row_of(ports: CommandPorts, asked: Asked, alone: Alone) -> AuditRow:
    """A standalone audit, asked."""
    call = alone.call
    try:
        result = ask_alone(ports, asked, alone)
    except (PlanOutdated, Cancelled, StateError):
        raise
    except LaminaError as error:
        failed = AuditResult(name=call.name, call=call.name, status="failed", is_blocking=False)
        return AuditRow(node=call.name, type="audit", result=failed, error=error)
    return AuditRow(node=call.name, type="audit", result=result)


def ask_alone(ports: CommandPorts, asked: Asked, alone: Alone) -> AuditResult:
    """Ask a standalone audit and record the outcome with every version it reads."""
    names = dict.fromkeys((*alone.models, *models_read_by_calls(asked.graph, (alone.call,))))
    places = {name: asked.physical_of[name] for name in names if name in asked.physical_of}
    kept = tuple(places[name] for name in alone.models)
    work = partial(again, ports, alone.call.name, partial(_ask_kept, ports, asked, alone, places))
    return once_carried_out(ports, work, read=tuple(places.values()), kept=kept)


def _ask_kept(ports: CommandPorts, asked: Asked, alone: Alone, places: Mapping[NodeName, PhysicalName]) -> AuditResult:
    number = ports.store.allocate(1)
    try:
        loaded = pinned_heads(ports, tuple(places.values()), tuple(places[name] for name in alone.models))
        heads = {name: loaded[place] for name, place in places.items() if place in loaded}
        if asked.skips_audits:
            result = skipped_result(alone.call, is_on_request=True)
        else:
            relation = Relations(models=asked.graph.models, heads=heads, load_macros=ports.load_macros).relation(
                asked.model.name, None, asked.execution
            )
            (result,) = _ask(ports, asked, (alone.call,), heads, relation, number, alone.call.name)
        ports.reach("audit.asked")
        ports.store.commit(
            [_recorded(asked, name, places[name], number, result, ports) for name in alone.models],
            [
                *(HeadIs(physical=places[name], sequence=heads[name].sequence) for name in alone.models),
                *(NothingPending(physical=places[name]) for name in alone.models),
            ],
        )
    except CommitRefused as error:
        raise PlanOutdated(
            f"what audit `{alone.call.name}` reads was replaced by another command meanwhile: {error.message}",
            hint="run the command again; it asks about what is shown now",
        ) from error
    ports.reach("audit.recorded")
    return result


def _recorded(
    asked: Asked, name: NodeName, physical: PhysicalName, number: int, result: AuditResult, ports: CommandPorts
) -> AuditsRecorded:
    return AuditsRecorded(
        run_id=asked.run_id,
        node=name,
        physical=physical,
        number=number,
        interval=None,
        results=(result,),
        recorded_at=ports.clock.now(),
    )


def _ask(
    ports: CommandPorts,
    asked: Asked,
    calls: tuple[AuditCall, ...],
    heads: Mapping[NodeName, Head],
    relation: str,
    number: int,
    about: str,
) -> tuple[AuditResult, ...]:
    model = asked.model
    relations = Relations(models=asked.graph.models, heads=heads, load_macros=ports.load_macros)
    findings = ports.engine.audit(
        AuditRequest(
            node=NodeName(about),
            location=calls[0].location or model.location,
            queries=audit_queries(model, calls, relation, relations, None, asked.execution),
            view=AUDITED,
            staged=None,
            physical=asked.physical,
            folder=batch_folder(asked.physical, number, ports.store.store_id),
        )
    )
    results = tuple(result_of(finding) for finding in findings)
    tell(ports, about, results)
    return results
