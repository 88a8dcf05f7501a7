"""Which audits have to be asked about rows that are there already: new ones, edited ones, and those left unasked.

What is computed is audited with its batch. An audit that has an outcome for some time of the version is not asked about
it again, whatever else of the model changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lamina.graph.kinds import folds, has_intervals
from lamina.identity.fingerprint import audit_key
from lamina.planning.draft import ALL_TIME
from lamina.planning.inputs import AuditOutcomes
from lamina.planning.steps import Question

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamina.graph.dag import Graph
    from lamina.graph.model import AuditCall, Model
    from lamina.graph.names import NodeName
    from lamina.planning.draft import Draft
    from lamina.planning.inputs import VersionFacts
    from lamina.timeline.interval import Intervals

_NEVER_ASKED = AuditOutcomes()


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """A standalone audit with the models whose tables it reads."""

    call: AuditCall
    models: tuple[NodeName, ...]


def questions_of(draft: Draft, name: NodeName) -> tuple[Question, ...]:
    """What to ask about the rows that the node's version shows and that this plan does not compute again."""
    model, facts, work = draft.inputs.graph.models[name], draft.facts(name), draft.works[name]
    is_left_alone = name not in draft.chosen or bool(draft.blocked_by[name]) or name in draft.unready
    if draft.inputs.command == "run" or not model.audits or is_left_alone or facts is None or not facts.head_sequence:
        return ()
    if has_intervals(model.kind):
        return questions_about(model, facts, facts.covered.minus(work.redone).minus(work.readiness.ready))
    return () if work.is_certain else questions_about(model, facts, ALL_TIME)


def questions_about(model: Model, facts: VersionFacts, time: Intervals) -> tuple[Question, ...]:
    """What to ask about some time of a version, audits with the same gaps together."""
    gaps: dict[Intervals, list[AuditCall]] = {}
    for call in model.audits:
        if call.is_skipped:
            continue
        gap = time.minus(_settled(facts, call))
        if not gap.is_empty:
            gaps.setdefault(gap, []).append(call)
    return tuple(question for gap, calls in gaps.items() for question in questions(model, facts, gap, tuple(calls)))


def gap_of(model: Model, facts: VersionFacts, call: AuditCall) -> Intervals:
    """Time of what the version shows about which an audit was not asked."""
    return (facts.covered if has_intervals(model.kind) else ALL_TIME).minus(_settled(facts, call))


def _settled(facts: VersionFacts, call: AuditCall) -> Intervals:
    return facts.outcomes.get(audit_key(call), _NEVER_ASKED).settled(is_blocking=call.is_blocking)


def questions(
    model: Model, facts: VersionFacts, time: Intervals, audits: tuple[AuditCall, ...]
) -> tuple[Question, ...]:
    """The audits over each range of some time, or once over the whole table."""
    if has_intervals(model.kind):
        return tuple(Question(audits=audits, interval=interval) for interval in time)
    return (Question(audits=audits, span=facts.covered.span() if folds(model.kind) else None),)


# --- standalone audits ------------------------------------------------------------------------------------------------
def standalone_of(graph: Graph) -> tuple[Alone, ...]:
    """The standalone audits that the models know of, by name."""
    calls: dict[str, AuditCall] = {}
    models: dict[str, list[NodeName]] = {}
    for name, model in graph.models.items():
        for call in model.standalone_audits:
            calls.setdefault(call.name, call)
            models.setdefault(call.name, []).append(name)
    return tuple(Alone(call=calls[name], models=tuple(models[name])) for name in sorted(calls))


def is_due(alone: Alone, graph: Graph, facts: Mapping[NodeName, VersionFacts]) -> bool:
    """Whether something that the audit reads has rows about which it was not asked, and everything is there."""
    if not all(name in facts and facts[name].head_sequence for name in alone.models):
        return False
    return any(not gap_of(graph.models[name], facts[name], alone.call).is_empty for name in alone.models)


def due_alone(draft: Draft) -> tuple[str, ...]:
    """The standalone audits that can be asked about what is there already."""
    graph = draft.inputs.graph
    found = []
    for alone in standalone_of(graph):
        if any(name not in draft.chosen or draft.blocked_by[name] for name in alone.models):
            continue
        facts = {name: known for name in alone.models if (known := draft.facts(name)) is not None}
        if is_due(alone, graph, facts):
            found.append(alone.call.name)
    return tuple(found)
