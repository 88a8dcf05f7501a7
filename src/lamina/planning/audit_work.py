"""Which audits have to be asked about rows that are there already: new ones, edited ones, and those left unasked.

What is computed is audited with its batch. An audit that has an outcome for some time of the version is not asked about
it again, whatever else of the model changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.graph.kinds import folds, has_intervals
from lamina.identity.fingerprint import audit_key
from lamina.planning.draft import ALL_TIME
from lamina.planning.inputs import AuditOutcomes
from lamina.planning.steps import Question

if TYPE_CHECKING:
    from lamina.graph.model import AuditCall, Model
    from lamina.graph.names import NodeName
    from lamina.planning.draft import Draft
    from lamina.planning.inputs import VersionFacts
    from lamina.timeline.interval import Intervals

_NEVER_ASKED = AuditOutcomes()


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
        outcomes = facts.outcomes.get(audit_key(call), _NEVER_ASKED)
        gap = time.minus(outcomes.settled(is_blocking=call.is_blocking))
        if not gap.is_empty:
            gaps.setdefault(gap, []).append(call)
    return tuple(question for gap, calls in gaps.items() for question in questions(model, facts, gap, tuple(calls)))


def questions(
    model: Model, facts: VersionFacts, time: Intervals, audits: tuple[AuditCall, ...]
) -> tuple[Question, ...]:
    """The audits over each range of some time, or once over the whole table."""
    if has_intervals(model.kind):
        return tuple(Question(audits=audits, interval=interval) for interval in time)
    return (Question(audits=audits, span=facts.covered.span() if folds(model.kind) else None),)
