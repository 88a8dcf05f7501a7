"""Asking signals: what of the time that could be processed they hold back, and the plan that follows from it.

Planning stays a pure function: it is done once without answers, and again with them. A signal is asked once about every
contiguous range. Where models with signals stand above each other, those below are asked after those above have
answered, so that nobody is asked about time that has to wait anyway.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lamina.app.ports.project import AskSignal, Question
from lamina.errors import LaminaError
from lamina.planning.inputs import Held
from lamina.planning.plan import make_plan
from lamina.timeline.interval import EMPTY, LAST_INSTANT, Interval, Intervals
from lamina.timeline.units import Units

if TYPE_CHECKING:
    from collections.abc import Callable

    from lamina.graph.model import Model
    from lamina.graph.names import NodeName
    from lamina.planning.inputs import PlanInputs
    from lamina.planning.steps import Plan
    from lamina.timeline.interval import Instant


def plan_with_signals(inputs: PlanInputs, ask: AskSignal, session: Callable[[], Any]) -> Plan:
    """The plan that keeps to what signals answer.

    All of a model's time is held back when one of its signals fails; the plan then names the failure, and models that
    do not depend on it go on.
    """
    plan = make_plan(inputs)
    held: dict[NodeName, tuple[Held, ...]] = {}
    failures: dict[NodeName, LaminaError] = {}
    asked: set[NodeName] = set()
    while turn := _next_to_ask(inputs, plan, asked):
        asked |= set(turn)
        for name, ready in turn.items():
            held[name], failure = _held(inputs.graph.models[name], ready, inputs.now, ask, session)
            if failure is not None:
                failures[name] = failure
        plan = make_plan(replace(inputs, held=held))
    return replace(plan, failures=failures)


def _next_to_ask(inputs: PlanInputs, plan: Plan, asked: set[NodeName]) -> dict[NodeName, Intervals]:
    """Models with signals that could process something now and were not asked yet, none below another of them."""
    waiting = {
        step.node: step.certain
        for step in plan.steps
        if step.node in inputs.graph.models
        and inputs.graph.models[step.node].signals
        and step.node not in asked
        and not step.certain.is_empty
    }
    return {
        name: ready
        for name, ready in waiting.items()
        if len(waiting) == 1 or inputs.graph.ancestors([name]).isdisjoint(waiting)
    }


def _held(
    model: Model, ready: Intervals, now: Instant, ask: AskSignal, session: Callable[[], Any]
) -> tuple[tuple[Held, ...], LaminaError | None]:
    """What each signal holds back of what the one before it left; everything by the first that fails."""
    found: list[Held] = []
    left = ready
    for call in model.signals:
        released = EMPTY
        for interval in left:
            units = Units(model.grain, interval)
            question = Question(node=model.name, call=call, units=units, now=now, session=session)
            try:
                released = released.union(ask(question))
            except LaminaError as error:
                error.node = error.node or model.name
                error.interval = error.interval or interval.to_pair()
                return (Held(signal=call.name, intervals=ready),), error
        stopped = left.minus(released)
        if model.name in model.reads:
            stopped = _with_later(stopped).intersect(left)
        if not stopped.is_empty:
            found.append(Held(signal=call.name, intervals=stopped))
        left = left.minus(stopped)
    return tuple(found), None


def _with_later(intervals: Intervals) -> Intervals:
    """All time from where the set begins: a model that reads its own past cannot leave a unit out."""
    span = intervals.span()
    return EMPTY if span is None else Intervals.of([Interval(span.start, LAST_INSTANT)])
