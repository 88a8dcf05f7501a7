"""What is remembered of the rows of a version, so that the next batch is compared without reading them again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.graph.kinds import IncrementalByTimeRange
from lamina.timeline.interval import Interval, Intervals

if TYPE_CHECKING:
    from lamina.app.ports.engine import Base, Written
    from lamina.app.ports.published import Contents
    from lamina.graph.model import Model

MOST_UNITS = 64
"""Measured in one batch, and remembered. Where a model looks further back, its rows are read."""


def units_to_measure(model: Model, interval: Interval | None, recorded: Intervals) -> tuple[Interval, ...]:
    """The units of a batch to measure: those that were computed before, and those the next batch will look back at.

    Nothing where they are too many, and nothing for a model that never looks back: rows are measured at a cost, and
    what is restated now and then can be read.
    """
    lookback = model.kind.lookback if isinstance(model.kind, IncrementalByTimeRange) else 0
    if interval is None or not 0 < lookback < MOST_UNITS:
        return ()
    recorded = recorded.intersect(Intervals.of([interval]))
    begin = max(interval.start, model.grain.add(model.grain.floor(interval.end.minus(1)), 1 - lookback))
    newest = Intervals.of([Interval(begin, interval.end)])
    # Apart, so that each is compared as a whole or not at all: the unit that is still open was computed in part.
    wanted = [*recorded, *newest.minus(recorded)]
    if sum(model.grain.count(stretch) for stretch in wanted) > MOST_UNITS:
        wanted = [*newest.intersect(recorded), *newest.minus(recorded)]
    return tuple(unit for stretch in wanted for unit in model.grain.split(stretch, 1))


def contents_after(interval: Interval | None, base: Base | None, written: Written) -> Contents:
    """What is known of a version's rows once a batch is shown: the newest of what was measured and still holds."""
    if interval is None or base is None or base.head.shape != written.shape:
        return written.contents
    known: dict[Interval | None, str] = {
        time: text for time, text in base.head.contents.items() if time is not None and not time.overlaps(interval)
    }
    known.update(written.contents)
    newest = sorted(known.items(), key=_end, reverse=True)[:MOST_UNITS]
    return dict(sorted(newest, key=_end))


def _end(item: tuple[Interval | None, str]) -> int:
    return item[0].end.micros if item[0] else 0
