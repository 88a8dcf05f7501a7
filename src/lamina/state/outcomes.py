"""How audits came out over the rows that a version shows, and how facts change it."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from lamina.planning.draft import ALL_TIME
from lamina.planning.inputs import AuditOutcomes
from lamina.timeline.interval import EMPTY, Intervals

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lamina.app.ports.facts import AuditResult
    from lamina.timeline.interval import Interval

Outcomes: TypeAlias = "Mapping[str, AuditOutcomes]"
"""By the keys of audits."""
NOTHING_ASKED: Outcomes = MappingProxyType({})


def remembered(outcomes: Outcomes, interval: Interval | None, results: Iterable[AuditResult]) -> Outcomes:
    """The outcomes with those over an interval, or over everything, added; the later one counts."""
    time = _time(interval)
    found = dict(outcomes)
    for result in results:
        if result.key is None:
            continue
        before = _without(found.get(result.key, AuditOutcomes()), time)
        found[result.key] = AuditOutcomes(
            passed=before.passed.union(time if result.status == "passed" else EMPTY),
            failed=before.failed.union(time if result.status == "failed" else EMPTY),
            skipped=before.skipped.union(time if result.status == "skipped" else EMPTY),
        )
    return MappingProxyType(found)


def forgotten(outcomes: Outcomes, interval: Interval | None) -> Outcomes:
    """The outcomes without those over rows of an interval, or over any, that are replaced."""
    left = ((key, _without(outcome, _time(interval))) for key, outcome in outcomes.items())
    return MappingProxyType({key: outcome for key, outcome in left if outcome != _NOTHING})


_NOTHING = AuditOutcomes()


def _without(outcome: AuditOutcomes, time: Intervals) -> AuditOutcomes:
    return AuditOutcomes(
        passed=outcome.passed.minus(time), failed=outcome.failed.minus(time), skipped=outcome.skipped.minus(time)
    )


def _time(interval: Interval | None) -> Intervals:
    return ALL_TIME if interval is None else Intervals.of([interval])
