"""Cutting missing intervals into the portions one query computes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.graph.kinds import IncrementalByTimeRange
from lamina.planning.steps import Batch
from lamina.timeline.grain import Grain

if TYPE_CHECKING:
    from lamina.graph.model import Model
    from lamina.timeline.interval import Interval, Intervals


def batches_of(model: Model, intervals: Intervals) -> tuple[Batch, ...]:
    """One batch per contiguous range, or per `batch_size` units of it, oldest first."""
    size = model.kind.batch_size if isinstance(model.kind, IncrementalByTimeRange) else None
    pieces: list[Interval] = []
    for interval in intervals:
        if size is None:
            pieces.append(interval)
        else:
            pieces.extend(model.grain.split(interval, size))
    return tuple(Batch(index=index, interval=piece) for index, piece in enumerate(pieces))


def concurrency_of(model: Model, batches: tuple[Batch, ...], limit: int) -> int:
    """How many batches of the model may run side by side: never two that could share a partition."""
    if not isinstance(model.kind, IncrementalByTimeRange) or model.name in model.reads:
        return 1
    asked = model.kind.batch_concurrency or limit
    is_partitioned_by_time = model.kind.partition_by_time_column or any(
        model.kind.time_column.name.lower() == expression.strip("`").lower() for expression in model.partitioned_by
    )
    is_day_aligned = all(
        batch.interval is not None
        and Grain.DAY.is_aligned(batch.interval.start)
        and Grain.DAY.is_aligned(batch.interval.end)
        for batch in batches
    )
    return max(1, min(asked, limit)) if is_partitioned_by_time and is_day_aligned else 1
