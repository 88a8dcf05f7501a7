"""New rows next to the old ones of the same time: which recorded units came out different."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

from lamina.spark.formats.batch import has_same_columns, new_rows
from lamina.spark.rows.compare import NO_ROWS, Content, contents_by_time, cut, differing_units, with_hash
from lamina.spark.rows.output import find_time_column, in_interval
from lamina.sql.names import quote
from lamina.timeline.interval import EMPTY, Intervals

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from lamina.app.ports.published import Contents
    from lamina.spark.formats.batch import Batch, Measured
    from lamina.timeline.interval import Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What the new rows are, next to the old ones of the same time."""

    changed: Intervals = EMPTY
    contents: Contents = field(default_factory=dict)
    jobs: int = 0


def compare(
    frame: DataFrame,
    batch: Batch,
    measured: Measured,
    read_new: Callable[[StructType], DataFrame],
    read_old: Callable[[], DataFrame],
    *,
    has_old: bool,
) -> Compared:
    """Find out which recorded time has other rows than the base, and what is to be remembered of the new ones.

    Where the rows are as they are remembered, the write has told so already. Else the new ones are read once more, and
    the old ones of time that nothing is remembered of. `has_old` says whether there may be any of this time.
    """
    request = batch.request
    base, declared, grain = request.base, request.time_column, request.grain
    if declared is None or batch.condition is None:
        return Compared(contents=measured.of_whole())
    remembered, has_rows = batch.remembered, bool(measured.rows)
    if remembered is not None and measured.content is not None and measured.content.is_same(remembered.total):
        known = dict(remembered.contents)
        text = measured.fresh.to_text() if measured.fresh is not None else None
        return Compared(contents={**known, remembered.fresh: text} if text is not None else known)
    recorded = request.recorded if base is not None else EMPTY
    is_comparable = base is None or has_same_columns(base, batch.shape)
    open_time = recorded.minus(Intervals.of(request.measured)) if is_comparable else EMPTY
    stretches = [*request.measured, *(cut(open_time, grain) if grain else ())]
    if not stretches:
        return Compared(changed=recorded)
    time = find_time_column(batch.shape.columns, declared)
    hashed = _Hashed(batch, frame, lambda interval: in_interval(time, declared, interval))
    new = hashed.rows(read_new(hashed.stored))
    now = contents_by_time(new, stretches, hashed.condition) if has_rows else {}
    jobs = 1 if has_rows else 0
    known = {stretch: text for stretch in stretches if (text := now.get(stretch, NO_ROWS).to_text()) is not None}
    contents: dict[Interval | None, str] = {unit: known[unit] for unit in request.measured if unit in known}
    if base is None or grain is None or not is_comparable:
        return Compared(changed=recorded, contents=contents, jobs=jobs)
    compared = [stretch for stretch in stretches if recorded.covers(stretch)]
    unknown = [stretch for stretch in compared if stretch not in base.head.contents]
    found: dict[Interval, Content] = {}
    if unknown and has_old:
        found, jobs = contents_by_time(hashed.rows(read_old()), unknown, hashed.condition), jobs + 1
    before = {stretch: found.get(stretch, NO_ROWS).to_text() for stretch in unknown} | dict(base.head.contents)
    different = [stretch for stretch in compared if stretch not in known or known[stretch] != before[stretch]]
    units = Intervals.of(stretch for stretch in different if grain.next(stretch.start) >= stretch.end)
    larger = Intervals.of(different).minus(units)
    if not larger.is_empty:
        smaller, further = differing_units(hashed.rows(read_old()), new, larger, grain, hashed.condition)
        units, jobs = units.union(smaller), jobs + further
    return Compared(changed=units.intersect(recorded), contents=contents, jobs=jobs)


class _Hashed:
    """Rows of a batch and of its base in the form in which they are compared."""

    def __init__(self, batch: Batch, frame: DataFrame, condition: Callable[[Interval], str]) -> None:
        self.condition = condition
        self.stored = new_rows(frame, batch).schema
        self._names = [quote(column.name) for column in batch.shape.columns]
        self._visible = StructType([self.stored[column.name] for column in batch.shape.columns])

    def rows(self, rows: DataFrame) -> DataFrame:
        return with_hash(rows.select(*self._names), self._visible)
