"""Which intervals a model lacks: asked for, minus recorded, in ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.errors import BadTime
from lamina.graph.kinds import is_scheduled
from lamina.timeline.cron import Schedule
from lamina.timeline.interval import EMPTY, Instant, Interval, Intervals
from lamina.timeline.parse import as_end, as_start, parse_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamina.graph.dag import Graph
    from lamina.graph.model import Model
    from lamina.graph.names import NodeName
    from lamina.planning.inputs import Flags


def schedule_of(model: Model) -> Schedule:
    """When the model's cron ticks."""
    return Schedule.parse(model.cron, model.cron_tz)


def starts_of(graph: Graph, now: Instant, default_start: str | None) -> dict[NodeName, Instant]:
    """Where each model's time begins: its own start, its parents' earliest, the project's default, or one tick ago."""
    starts: dict[NodeName, Instant] = {}
    for name, model in graph.models.items():
        if model.start is not None:
            start = as_start(parse_time(model.start, relative_to=now))
        else:
            inherited = [starts[parent] for parent in graph.parents(name)]
            if inherited:
                start = min(inherited)
            elif default_start is not None:
                start = as_start(parse_time(default_start, relative_to=now))
            else:
                start = model.grain.add(model.grain.floor(schedule_of(model).previous_tick(now)), -1)
        starts[name] = model.grain.floor(start)
    return starts


def released_until(model: Model, now: Instant, *, respects_cron: bool) -> Instant:
    """The end of the last unit that may be processed now."""
    instant = schedule_of(model).previous_tick(now) if respects_cron else now
    return instant if model.allow_partials else model.grain.floor(instant)


def model_end(model: Model, now: Instant) -> Instant | None:
    """The model's own exclusive end, if it has one."""
    return as_end(parse_time(model.end, relative_to=now)) if model.end is not None else None


def asked_range(
    model: Model, start: Instant, flags: Flags, now: Instant, *, respects_cron: bool, limit: Instant | None = None
) -> Interval | None:
    """The stretch of time a command is about for this model; `None` when it is empty.

    `limit` is a further exclusive end, such as how far the baseline's data reaches.
    """
    begin = start
    if flags.start is not None:
        begin = max(begin, model.grain.floor(as_start(parse_time(flags.start, relative_to=now))))
    ends = [released_until(model, now, respects_cron=respects_cron)]
    own_end = model_end(model, now)
    if own_end is not None:
        ends.append(own_end)
    if flags.end is not None:
        ends.append(as_end(parse_time(flags.end, relative_to=now)))
    if limit is not None:
        ends.append(limit)
    end = min(ends)
    if not model.allow_partials:
        end = model.grain.floor(end)
    return Interval(begin, end) if begin < end else None


def whole_units(model: Model, covered: Intervals) -> Intervals:
    """Recorded time without units that were processed before they were over."""
    if not model.allow_partials:
        return covered
    ends = ((interval.start, model.grain.floor(interval.end)) for interval in covered)
    return Intervals.of(Interval(start, end) for start, end in ends if start < end)


def missing_intervals(model: Model, asked: Interval | None, covered: Intervals) -> Intervals:
    """What is asked for and not recorded."""
    return Intervals.of([asked]).minus(whole_units(model, covered)) if asked is not None else EMPTY


def with_lookback(model: Model, missing: Intervals, start: Instant, lookback: int) -> Intervals:
    """Missing intervals with `lookback` units before each of their ranges, never before `start`."""

    def before(moment: Instant) -> Instant:
        try:
            return max(start, model.grain.add(model.grain.floor(moment), -lookback))
        except BadTime:
            # So far back that there is no such time.
            return start

    earlier = ((before(interval.start), interval.start) for interval in missing)
    return missing.union(Intervals.of(Interval(begin, end) for begin, end in earlier if begin < end))


def restated_intervals(model: Model, flags: Flags, start: Instant, until: Instant, now: Instant) -> Intervals:
    """The asked-for range widened to whole units, inside what the model may hold at all."""
    begin = start
    if flags.start is not None:
        begin = max(start, model.grain.floor(as_start(parse_time(flags.start, relative_to=now))))
    end = until
    if flags.end is not None:
        end = min(until, model.grain.ceil(as_end(parse_time(flags.end, relative_to=now))))
    return Intervals.of([Interval(begin, end)]) if begin < end else EMPTY


def next_release(models: Mapping[NodeName, Model], now: Instant) -> Instant | None:
    """When the next unit of any model is released, or the next build of one without units; nothing else has a time."""
    ticks = [schedule_of(model).next_tick(now) for model in models.values() if is_scheduled(model.kind)]
    return min(ticks) if ticks else None
