"""Which task writes which rows: every task that holds rows of a partition writes a file of its own there.

A batch of many partitions by many tasks writes the product of both. Bringing the rows of a partition together costs a
shuffle, which is worth it where it saves many files. How large files get is Spark's own setting for shuffles,
`spark.sql.adaptive.advisoryPartitionSizeInBytes`: a partition that is larger is split, small ones share a task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from lamina.spark.rows.output import find_time_column
from lamina.spark.rows.partitions import find_time_key, is_attempt
from lamina.spark.sessions.session import physical_plan
from lamina.sql.names import quote
from lamina.timeline.grain import Grain
from lamina.timeline.interval import Interval

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from lamina.spark.formats.batch import Batch

_MANY_FILES = 1000
"""A shuffle of fifty million rows takes about as long as so many small files do."""
_SOME_PARTITIONS = 100
"""What a partitioned table is taken to have where nothing tells."""
_MOST_PORTIONS = 2000
_SAMPLED = 0.01
"""The share of the rows that is looked at beforehand."""
_OFTEN = 20
"""How often a file must be met in a sample, on average, for those that were not met to be few."""
_FEW = 2
"""Files in a partition that are as good as one."""
_COSTLY = ("Exchange", "Python", "Pandas", "Arrow")
"""What a plan says where rows are shuffled or computed outside of Spark."""


def distributed(session: SparkSession, rows: DataFrame, batch: Batch) -> DataFrame:
    """The rows as they are to be written: those of a partition together where that may save many files.

    How many tasks there will be is not known before; it is taken to be what Spark would shuffle into. With fewer there
    is little to shuffle, and rows that lie in the order of their partitions already stay where they are. Rows are
    measured only after they were brought together: what the last stage of a job sees is counted once, however often it
    runs. Spark splits and joins portions only where it may adapt plans, so else rows stay where they are: one task for
    a partition that holds most of the rows would cost more than files do.
    """
    keys = [sf.col(quote(column.name)) for column in batch.columns if not is_attempt(column)]
    partitions = _partitions_written(batch) if keys else 0
    width = int(session.conf.get("spark.sql.shuffle.partitions", "200") or 200)
    if partitions <= 1 or (width - 1) * partitions < _MANY_FILES or _lie_together(rows, keys):
        return rows
    return rows.hint("rebalance", max(width, min(2 * partitions, _MOST_PORTIONS)), *keys)


def _lie_together(rows: DataFrame, keys: list[Column]) -> bool:
    """Whether the rows of a partition are in few tasks as they come, so that a shuffle would save few files.

    A sample tells, once each file that there would be is met often enough in it. It is only taken of rows that come as
    they are read: where Spark shuffles them or Python computes them, looking would take as long as writing.
    """
    if any(word in physical_plan(rows) for word in _COSTLY):
        return False
    task = sf.spark_partition_id().alias("task")
    files = rows.sample(_SAMPLED).select(task, sf.struct(*keys).alias("partition")).groupBy("task", "partition").count()
    counted = files.agg(
        sf.coalesce(sf.sum("count"), sf.lit(0)),
        sf.count("*"),
        sf.count_distinct("partition"),
        sf.count_if(sf.col("count") == 1),
    )
    ((seen, written, partitions, met_once),) = counted.collect()
    is_telling = 0 < _OFTEN * written <= seen and _OFTEN * met_once <= written
    return bool(is_telling and written <= _FEW * partitions)


def _partitions_written(batch: Batch) -> int:
    """How many partitions a batch may write to: as many as its interval has keys of time, if nothing divides these."""
    request = batch.request
    if request.interval is None or request.time_column is None:
        return _SOME_PARTITIONS
    time = find_time_column(batch.shape.columns, request.time_column)
    key = find_time_key(batch.columns, time, request.time_column)
    if key is None:
        return _SOME_PARTITIONS
    if time.type == "date":
        unit = key.unit if key.unit is not None and key.unit.is_coarser_than(Grain.DAY) else Grain.DAY
    else:
        unit = key.unit or request.grain or Grain.DAY
    end = request.interval.end
    count = unit.count(Interval(unit.floor(request.interval.start), end)) + (0 if unit.is_aligned(end) else 1)
    # A date beside the key of the time is most likely its day, for readers to filter by.
    others = [column for index, column in enumerate(batch.columns) if index != key.index and column.type != "date"]
    return max(count, _SOME_PARTITIONS) if others else count
