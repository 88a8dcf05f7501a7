"""Which missing intervals can be processed now, and what the others wait for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lamina.graph.kinds import Embedded, View, has_intervals
from lamina.planning.inputs import Waiting
from lamina.planning.missing import contiguous_until, model_end
from lamina.timeline.interval import EMPTY, Interval, Intervals

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamina.graph.dag import Graph
    from lamina.graph.model import Model
    from lamina.graph.names import NodeName
    from lamina.timeline.interval import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """Missing intervals split into what can be done now and what waits."""

    ready: Intervals
    waiting: Intervals
    waiting_for: tuple[Waiting, ...] = ()


def stored_parents(graph: Graph, name: NodeName) -> tuple[NodeName, ...]:
    """The models whose tables `name` really reads: views and embedded models are looked through. Sorted, once each."""
    found: set[NodeName] = set()
    seen: set[NodeName] = set()
    waiting = list(graph.parents(name))
    while waiting:
        parent = waiting.pop()
        if parent in seen:
            continue
        seen.add(parent)
        if isinstance(graph.models[parent].kind, View | Embedded):
            waiting.extend(graph.parents(parent))
        else:
            found.add(parent)
    return tuple(sorted(found))


def reads_unknown(graph: Graph, name: NodeName) -> NodeName | None:
    """A source that the model reads, directly or through views; nobody knows when its rows change."""
    seen: set[NodeName] = set()
    waiting = [name]
    while waiting:
        node = waiting.pop()
        for read in graph.models[node].reads:
            if read not in graph.models:
                return read
            if read not in seen and isinstance(graph.models[read].kind, View | Embedded):
                seen.add(read)
                waiting.append(read)
    return None


def split_by_readiness(
    graph: Graph,
    model: Model,
    missing: Intervals,
    available: Mapping[NodeName, tuple[Instant, Intervals]],
    now: Instant,
) -> Readiness:
    """Hold back what a parent does not cover yet.

    `available` gives for every parent with intervals where its time begins and what it covers once its own planned
    work is done. How far a model reads into the past is unknown, so a parent has to be complete from its beginning up
    to the end of the child's unit.
    """
    if missing.is_empty or not model.wait_for_parents:
        return Readiness(ready=missing, waiting=EMPTY)
    limits: dict[NodeName, Instant] = {}
    for parent in stored_parents(graph, model.name):
        if parent not in available or not has_intervals(graph.models[parent].kind):
            continue
        begin, covered = available[parent]
        reached = contiguous_until(covered, begin)
        own_end = model_end(graph.models[parent], now)
        if own_end is None or reached < own_end:
            limits[parent] = reached
    if not limits:
        return Readiness(ready=missing, waiting=EMPTY)
    limit = min(limits.values())
    if not model.allow_partials:
        limit = model.grain.floor(limit)
    span = missing.span()
    if span is None or span.end <= limit:
        return Readiness(ready=missing, waiting=EMPTY)
    late = Intervals.of([Interval(max(limit, span.start), span.end)])
    waiting = missing.intersect(late)
    waiting_for = tuple(
        Waiting(name=parent, interval=Interval(reached, span.end))
        for parent, reached in sorted(limits.items())
        if reached < span.end
    )
    return Readiness(ready=missing.minus(waiting), waiting=waiting, waiting_for=waiting_for)
