"""Asking audits about rows that are shown already: nothing is computed, only what is found is recorded.

Rows are read by what state names, never through views, and an outcome counts only if the head is still the one that was
looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from lamina.app.auditing.outcomes import (
    AUDITED,
    findings_words,
    is_refused,
    looking_first,
    merged,
    models_read_by_audits,
    result_of,
    skipped_result,
)
from lamina.app.leases.command_ports import CommandPorts
from lamina.app.leases.recover import once_carried_out
from lamina.app.leases.retried import retried
from lamina.app.ports.engine import AuditRequest, ShownRows
from lamina.app.ports.events import AuditsAsked, Retried
from lamina.app.ports.facts import AuditsRecorded
from lamina.app.ports.loaded import LoadRequest
from lamina.app.ports.requirements import HeadIs, NothingPending, read_whole
from lamina.app.rendering.audits import audit_queries, call_of
from lamina.app.rendering.models import Relations, head_relation, key_range_of, table_text, with_declared
from lamina.errors import AuditFailed, CommitRefused, PlanOutdated
from lamina.graph.kinds import IncrementalByTimeRange, View
from lamina.identity.naming import batch_folder
from lamina.planning.readiness import stored_parents

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from lamina.app.leases.command_ports import CommandPorts
    from lamina.app.ports.bundle import Ports
    from lamina.app.ports.facts import AuditResult
    from lamina.app.ports.published import Head
    from lamina.graph.dag import Graph
    from lamina.graph.model import Model
    from lamina.graph.names import NodeName
    from lamina.identity.naming import PhysicalName
    from lamina.planning.steps import Question
    from lamina.timeline.interval import Instant, Interval


T = TypeVar("T")


def tell(ports: Ports, about: str, results: tuple[AuditResult, ...], interval: Interval | None = None) -> None:
    """Say how audits came out."""
    failed = sum(result.status == "failed" for result in results)
    ports.emit(AuditsAsked(about=about, audits=len(results), failed=failed, interval=interval))


def again(ports: CommandPorts, about: str, work: Callable[[], T]) -> T:
    """Ask, again where that fails in a way that may pass."""
    event = partial(Retried, what=f"audits of {about}")
    return retried(work, ports.emit, event, pause=ports.retry_pause, is_stopped_within=ports.keeper.is_stopped_within)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The version that is asked about, and on whose behalf."""

    graph: Graph
    model: Model
    physical: PhysicalName
    physical_of: Mapping[NodeName, PhysicalName]
    execution: Instant
    run_id: str
    skips_audits: bool = False
    remembers_failures: bool = True
    """Whether a failure takes back that the audit passed over the same rows before."""


def ask_all(ports: CommandPorts, asked: Asked, questions: Iterable[Question]) -> tuple[AuditResult, ...]:
    """Ask and record; raises `AuditFailed` with all results once everything was asked, if a blocking audit failed."""
    results: tuple[AuditResult, ...] = ()
    refused: list[Question] = []
    for question in questions:
        found = ask(ports, asked, question)
        results = merged(results, found)
        if any(is_refused(result) for result in found):
            refused.append(question)
    if refused:
        raise _failed(asked.model, refused[0], results)
    return results


def ask(ports: CommandPorts, asked: Asked, question: Question) -> tuple[AuditResult, ...]:
    """Ask one question and record what comes of it; `PlanOutdated` when the rows were replaced meanwhile.

    A change of the version that is under way is waited for, because what is recorded would be about other rows then.
    """
    physical = {name: asked.physical_of[name] for name in _read_names(asked) if name in asked.physical_of}
    work = partial(again, ports, asked.model.name, partial(_ask, ports, asked, question, physical))
    return once_carried_out(ports, work, read=tuple(physical.values()), kept=(asked.physical,))


def pinned_heads(
    ports: CommandPorts, read: Collection[PhysicalName], kept: Collection[PhysicalName]
) -> Mapping[PhysicalName, Head]:
    """The heads by which versions are read; `CommitRefused` while one of them is not to be read, or kept, as it is."""
    heads = ports.store.load(LoadRequest(heads=tuple(read), facts_of_pointers=False)).heads
    ports.store.commit([], [*(NothingPending(physical=physical) for physical in kept), *read_whole(read, heads)])
    return heads


def _ask(
    ports: CommandPorts, asked: Asked, question: Question, physical: Mapping[NodeName, PhysicalName]
) -> tuple[AuditResult, ...]:
    model = asked.model
    number = ports.store.allocate(1)
    try:
        heads = pinned_heads(ports, tuple(physical.values()), (asked.physical,))
        if asked.skips_audits:
            results = tuple(skipped_result(call, is_on_request=True) for call in question.audits)
        else:
            shown = {name: heads[place] for name, place in physical.items() if place in heads}
            results = _results(ports, asked, question, shown, number)
            tell(ports, model.name, results, question.interval)
        ports.reach("audit.asked")
        recorded = AuditsRecorded(
            run_id=asked.run_id,
            node=model.name,
            physical=asked.physical,
            number=number,
            interval=question.interval,
            results=tuple(
                result if result.status != "failed" or asked.remembers_failures else replace(result, key=None)
                for result in results
            ),
            recorded_at=ports.clock.now(),
        )
        sequence = heads[asked.physical].sequence if asked.physical in heads else 0
        # A change in place moves the head only once it is done, and forgets outcomes when it is decided.
        ports.store.commit(
            [recorded], [HeadIs(physical=asked.physical, sequence=sequence), NothingPending(physical=asked.physical)]
        )
    except CommitRefused as error:
        raise PlanOutdated(
            f"rows of `{model.name}` were replaced by another command while audits were asked: {error.message}",
            hint="run the command again; it asks about what is shown now",
            node=model.name,
        ) from error
    ports.reach("audit.recorded")
    return results


def _read_names(asked: Asked) -> tuple[NodeName, ...]:
    model = asked.model
    above = stored_parents(asked.graph, model.name) if isinstance(model.kind, View) else ()
    return tuple(dict.fromkeys((model.name, *above, *models_read_by_audits(asked.graph, model))))


def _results(
    ports: CommandPorts, asked: Asked, question: Question, heads: Mapping[NodeName, Head], number: int
) -> tuple[AuditResult, ...]:
    model, execution, time = asked.model, asked.execution, question.time
    relations = Relations(models=asked.graph.models, heads=heads, load_macros=ports.load_macros)
    shown, relation = None, table_text(AUDITED)
    if question.interval is not None and isinstance(model.kind, IncrementalByTimeRange):
        head = heads[model.name]
        shown = ShownRows(
            relation=head_relation(head, key_range_of(model, head, question.interval.start, question.interval.end)),
            columns=head.shape.columns,
            interval=question.interval,
            time_column=model.kind.time_column,
        )
    elif isinstance(model.kind, View):
        relation = f"(\n{with_declared(model, relations.query(model, None, execution))}\n)"
    else:
        relation = relations.relation(model.name, None, execution)
    findings = ports.engine.audit(
        AuditRequest(
            node=model.name,
            location=model.location,
            queries=audit_queries(model, question.audits, relation, relations, time, execution),
            view=AUDITED,
            staged=shown,
            physical=asked.physical,
            folder=batch_folder(asked.physical, number, ports.store.store_id),
            settings=model.session_properties,
        )
    )
    return tuple(result_of(finding) for finding in findings)


def _failed(model: Model, question: Question, results: tuple[AuditResult, ...]) -> AuditFailed:
    refused = {result.call for result in results if is_refused(result)}
    places = (call.location for call in question.audits if call_of(call) in refused)
    error = AuditFailed(
        f"{findings_words(results)} in what is built; readers keep it, and the changed definition does not take effect",
        hint=looking_first(results, "mend the audit, or restate the model with mended data, and build again"),
        location=next(places, None) or model.location,
        node=model.name,
        interval=question.time.to_pair() if question.time else None,
    )
    error.results = results
    return error
