"""Which units of a model read a stretch of a parent's time, through the window its filters give.

How far a unit reads only ever moves forward with the unit, so the units that read a stretch lie next to each other and
their ends are found by halving: cost never depends on how many units there are.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from lamina.errors import BadTime
from lamina.sql.lineage.input_windows import EVERYTHING
from lamina.timeline.grain import Grain
from lamina.timeline.interval import (
    EMPTY,
    FIRST_INSTANT,
    LAST_INSTANT,
    MICROS_PER_DAY,
    MICROS_PER_HOUR,
    Interval,
    Intervals,
)

if TYPE_CHECKING:
    from lamina.graph.model import Model
    from lamina.graph.names import NodeName
    from lamina.sql.lineage.input_windows import InputWindow, Offset
    from lamina.timeline.interval import Instant


def window_of(model: Model, parent: NodeName) -> InputWindow:
    """How far the model reads into a parent; one without bounds is open to the past and ends with the unit."""
    return model.windows.get(parent, EVERYTHING)


def reads_from(window: InputWindow, unit: Interval) -> Instant:
    """Where the stretch that a unit reads begins."""
    return FIRST_INSTANT if window.lower is None else _moment(window.lower, unit)


def reads_until(window: InputWindow, unit: Interval) -> Instant:
    """Where the stretch that a unit reads ends. Nobody can wait for all time to come: an open end is the unit's own."""
    return unit.end if window.upper is None else _moment(window.upper, unit)


def stretch_read(model: Model, parent: NodeName, interval: Interval) -> tuple[Instant | None, Instant | None]:
    """The stretch outside of which no row of a parent matters to a batch of the model; None is no bound.

    Windows of models with whole days hold for whole days only.
    """
    window = window_of(model, parent)
    is_in_days = not Grain.DAY.is_coarser_than(model.grain) and not model.allow_partials
    if is_in_days and not (Grain.DAY.is_aligned(interval.start) and Grain.DAY.is_aligned(interval.end)):
        return None, None
    return (
        None if window.lower is None else reads_from(window, interval),
        None if window.upper is None else reads_until(window, interval),
    )


def window_words(window: InputWindow) -> str:
    """The window for people: `from start - 30 days to end`."""
    begin = "its beginning" if window.lower is None else _offset_words(window.lower)
    return f"from {begin} to {'end' if window.upper is None else _offset_words(window.upper)}"


def _offset_words(offset: Offset) -> str:
    words = [str(offset.base)]
    years, months = divmod(abs(offset.months), 12)
    days, rest = divmod(abs(offset.micros), MICROS_PER_DAY)
    hours, rest = divmod(rest, MICROS_PER_HOUR)
    for amount, unit, is_back in (
        (years, "year", offset.months < 0),
        (months, "month", offset.months < 0),
        (days, "day", offset.micros < 0),
        (hours, "hour", offset.micros < 0),
        (rest / 60_000_000, "minute", offset.micros < 0),
    ):
        if amount:
            words.append(f"{'-' if is_back else '+'} {amount:g} {unit}{'' if amount == 1 else 's'}")
    return f"the beginning of the day of {' '.join(words)}" if offset.is_day else " ".join(words)


def units_reading(grain: Grain, within: Interval, window: InputWindow, stretch: Interval) -> Interval | None:
    """The part of `within`, in whole units of it, whose window meets the stretch."""
    if _is_never_open(window):
        return None
    first = grain.floor(within.start)
    total = grain.count(Interval(first, grain.ceil(within.end)))

    def unit(number: int) -> Interval:
        begin = grain.add(first, number)
        return Interval(begin, min(grain.next(begin), within.end))

    begin = bisect_left(range(total), True, key=lambda number: reads_until(window, unit(number)) > stretch.start)
    end = bisect_left(range(total), True, key=lambda number: reads_from(window, unit(number)) >= stretch.end)
    if begin >= end:
        return None
    return Interval(max(within.start, unit(begin).start), unit(end - 1).end)


def with_own_later(model: Model, intervals: Intervals, recorded: Intervals) -> Intervals:
    """Some time of a model and, when it reads its own past, everything recorded after it."""
    span = intervals.span()
    if span is None or model.name not in model.reads:
        return intervals
    return intervals.union(recorded.intersect(Intervals.of([Interval(span.start, LAST_INSTANT)])))


def _is_never_open(window: InputWindow) -> bool:
    """Whether the bounds leave nothing between them, whatever the unit."""
    lower, upper = window.lower, window.upper
    if lower is None or upper is None or lower.is_day:
        return False
    if (lower.base, lower.months) != (upper.base, upper.months):
        return False
    return upper.micros <= lower.micros


def intervals_reading(model: Model, parent: NodeName, among: Intervals, stretches: Intervals) -> Intervals:
    """The units among some intervals of the model that read any of the stretches of a parent's time."""
    span = among.span()
    if span is None:
        return EMPTY
    window = window_of(model, parent)
    found = (units_reading(model.grain, span, window, stretch) for stretch in stretches)
    return Intervals.of([interval for interval in found if interval is not None]).intersect(among)


def _moment(offset: Offset, unit: Interval) -> Instant:
    base = unit.start if offset.base == "start" else unit.end
    try:
        moved = (Grain.MONTH.add(base, offset.months) if offset.months else base).plus(offset.micros)
        return Grain.DAY.floor(moved) if offset.is_day else moved
    except (BadTime, OverflowError):
        # Beyond the years that times can have; nothing lies there.
        return FIRST_INSTANT if offset.months * 31 * MICROS_PER_DAY + offset.micros < 0 else LAST_INSTANT
