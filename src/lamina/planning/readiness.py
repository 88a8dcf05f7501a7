"""Which missing intervals can be processed now, and what the others wait for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lamina.graph.kinds import Embedded, View, has_intervals
from lamina.graph.names import NodeName
from lamina.planning.inputs import Waiting
from lamina.planning.missing import model_end
from lamina.planning.reach import reads_from, reads_until, units_reading, window_of, with_own_later
from lamina.timeline.interval import EMPTY, Interval, Intervals

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lamina.graph.dag import Graph
    from lamina.graph.model import Model
    from lamina.planning.inputs import Held
    from lamina.timeline.interval import Instant


SIGNAL = "signal:"
"""What stands before the name of a signal where it is waited for like a parent."""


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
    """Hold back the units that read time a parent does not cover yet.

    `available` gives for every parent with intervals where its time begins and what it covers once its own planned
    work is done. Time before a parent begins, and after its own end, counts as covered.
    """
    span = missing.span()
    if span is None or not model.wait_for_parents:
        return Readiness(ready=missing, waiting=EMPTY)
    late, waiting_for = EMPTY, []
    for parent in stored_parents(graph, model.name):
        if parent not in available or not has_intervals(graph.models[parent].kind):
            continue
        window = window_of(model, parent)
        begin, covered = available[parent]
        until = reads_until(window, Interval(model.grain.floor(span.end.minus(1)), span.end))
        own_end = model_end(graph.models[parent], now)
        horizon = until if own_end is None else min(until, own_end)
        if horizon <= begin:
            continue
        for gap in Intervals.of([Interval(begin, horizon)]).minus(covered):
            held = units_reading(model.grain, span, window, gap)
            held_back = missing.intersect(Intervals.of([held])) if held is not None else EMPTY
            first = held_back.span()
            if first is None:
                continue
            late = late.union(held_back)
            since = reads_from(window, Interval(first.start, model.grain.next(first.start)))
            waiting_for.append(Waiting(name=parent, interval=Interval(max(gap.start, since), gap.end)))
    late = with_own_later(model, late, missing)
    return Readiness(ready=missing.minus(late), waiting=late, waiting_for=tuple(waiting_for))


def hold_back(readiness: Readiness, held: Iterable[Held]) -> Readiness:
    """The same without what signals hold back, which waits for them."""
    for each in held:
        stopped = readiness.ready.intersect(each.intervals)
        name = NodeName(f"{SIGNAL}{each.signal}")
        readiness = Readiness(
            ready=readiness.ready.minus(stopped),
            waiting=readiness.waiting.union(stopped),
            waiting_for=(*readiness.waiting_for, *(Waiting(name=name, interval=interval) for interval in stopped)),
        )
    return readiness


def is_signal(waiting: Waiting) -> bool:
    """Whether it is a signal that holds the interval back, not a parent."""
    return waiting.name.startswith(SIGNAL)
