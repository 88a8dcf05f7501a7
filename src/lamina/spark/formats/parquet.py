"""Tables of plain parquet files: batches in folders of their own, generations over them.

A batch is one Spark job wherever the partitions' keys tell which rows of the base it replaces: new rows and the rows
that are kept from partly touched partitions are written together. Only where the keys tell nothing does Spark look for
the touched partitions, and a second job adds the rows to keep.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from lamina.app.ports.engine import Written
from lamina.app.rendering.key_ranges import key_range
from lamina.app.rendering.models import stored_query
from lamina.app.rendering.partitions import is_plain
from lamina.errors import WarehouseUnwritable
from lamina.graph.formats import PARQUET
from lamina.graph.kinds import appends, is_keyed
from lamina.spark.errors import translate
from lamina.spark.formats.appends import as_joined, check_joined, find_small, rows_of_exactly
from lamina.spark.formats.batch import (
    Batch,
    Observed,
    check_base,
    count_new,
    kept_rows,
    new_rows,
    plan_batch,
    widened,
    with_kept,
)
from lamina.spark.formats.comparison import Compared, compare
from lamina.spark.formats.distribution import distributed
from lamina.spark.kinds.fold import folded
from lamina.spark.kinds.problems import PROBLEM
from lamina.spark.rows.compare import NO_ROWS
from lamina.spark.rows.output import find_time_column
from lamina.spark.rows.partitions import LONGEST_FOLDER, attempt_column, find_time_key, plan_partitions, too_long, touch
from lamina.spark.rows.shared_storage import may_scatter
from lamina.spark.rows.types import columns_of
from lamina.spark.rows.written_files import partitions_below, read_back
from lamina.sql.names import quote

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

    from lamina.app.ports.engine import Base, Fold, WriteRequest
    from lamina.app.ports.machine import Reach
    from lamina.app.ports.published import PartitionColumn, PartitionKey
    from lamina.spark.formats.batch import Measured

_MOST_CONDITIONS = 200


class ParquetFormat:
    """Parquet, the format that every Spark has."""

    table_format = PARQUET

    def write(self, session: SparkSession, frame: DataFrame, request: WriteRequest, root: str, reach: Reach) -> Written:
        """Write one batch below `root`; see the port for what is promised.

        The kill point `write.half_folder` lies between the two jobs, or before the only one.
        """
        if request.fold is not None:
            return _write_fold(session, frame, request, request.fold, root, reach)
        if request.base is not None and request.interval is not None:
            frame = widened(frame, request.base)
        batch = _plan(frame, request)
        if batch.is_open:
            return _write_and_look(session, frame, batch, root, reach)
        return _write_at_once(session, frame, batch, root, reach)


# --- before the job ---------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class _FolderBatch(Batch):
    """A batch with what is known of the partitions of the base."""

    gone: frozenset[PartitionKey]
    """Those with no row to keep."""
    partly: frozenset[PartitionKey] = frozenset()
    """Those with rows inside and outside the interval."""
    is_open: bool = False
    """Whether only the base's rows tell which partitions are touched."""


def _plan(frame: DataFrame, request: WriteRequest) -> _FolderBatch:
    columns = columns_of(frame.schema, request.comments)
    planned = plan_batch(frame, request, plan_partitions(request.partitioned_by, columns))
    base_keys = frozenset(request.base.manifest) if request.base else frozenset()
    if request.interval is None or request.time_column is None:
        return _beside(planned, gone=base_keys)
    gone: frozenset[PartitionKey] = frozenset()
    partly: frozenset[PartitionKey] = frozenset()
    is_open = False
    if not planned.columns:
        partly = base_keys
    elif base_keys:
        time = find_time_column(columns, request.time_column)
        time_key = find_time_key(planned.columns, time, request.time_column)
        touches = {key: touch(key, time_key, request.interval) if time_key else "unknown" for key in base_keys}
        gone = frozenset(key for key, how in touches.items() if how == "inside")
        partly = frozenset(key for key, how in touches.items() if how == "partly")
        is_open = "unknown" in touches.values()
    if request.base is not None and gone != base_keys:
        check_base(request.base, planned.shape)
    return _beside(planned, gone=gone, partly=partly, is_open=is_open)


def _plan_fold(rows: DataFrame, request: WriteRequest, fold: Fold) -> _FolderBatch:
    """Rows of keyed kinds are the whole table; those of the others replace partitions, or only ever add one."""
    partition_columns = plan_partitions(request.partitioned_by, columns_of(rows.drop(PROBLEM).schema, {}))
    if appends(fold.kind):
        partition_columns += (attempt_column(len(request.partitioned_by)),)
    base_keys = frozenset(request.base.manifest) if request.base else frozenset()
    is_whole = is_keyed(fold.kind)
    planned = plan_batch(rows, request, partition_columns, is_measured=is_whole)
    batch = _beside(planned, gone=base_keys if is_whole or fold.begins_anew else frozenset())
    if request.base is not None and batch.gone != base_keys:
        check_base(request.base, batch.shape)
    return batch


def _beside(
    batch: Batch,
    *,
    gone: frozenset[PartitionKey],
    partly: frozenset[PartitionKey] = frozenset(),
    is_open: bool = False,
) -> _FolderBatch:
    return _FolderBatch(
        request=batch.request,
        shape=batch.shape,
        condition=batch.condition,
        time=batch.time,
        remembered=batch.remembered,
        is_measured=batch.is_measured,
        gone=gone,
        partly=partly,
        is_open=is_open,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """What a job wrote: figures of the new rows, all rows that lie in the batch's folder, and its partitions."""

    measured: Measured
    written: int
    folders: Mapping[PartitionKey, str]


# --- the jobs ---------------------------------------------------------------------------------------------------------
def _write_at_once(session: SparkSession, frame: DataFrame, batch: _FolderBatch, root: str, reach: Reach) -> Written:
    rows = new_rows(frame, batch)
    if batch.partly and batch.request.base is not None:
        kept = _kept_rows(session, batch.request.base, batch, batch.partly)
        rows = with_kept(rows, kept)
    reach("write.half_folder")
    job = _write(session, rows, frame, batch, root)
    compared = _compare(session, frame, batch, job.measured, root)
    return _written(batch, job, batch.gone | batch.partly, compared, statements=2)


def _write_fold(
    session: SparkSession, frame: DataFrame, request: WriteRequest, fold: Fold, root: str, reach: Reach
) -> Written:
    """New rows and what the table holds, by the rules of the kind; what these forbid is found in the same job."""
    base = None if fold.begins_anew else request.base
    if is_keyed(fold.kind):
        rows = folded(None if base is None else _rows_of(session, base), frame, fold)
    else:
        rows = frame if base is None else widened(frame, base)
    batch = _plan_fold(rows, request, fold)
    rows = new_rows(rows, batch)
    joined: frozenset[PartitionKey] = frozenset()
    if appends(fold.kind) and base is not None:
        joined = find_small(session, root, base)
        if joined:
            former = rows_of_exactly(session, batch.columns, joined, _kept_rows(session, base, batch, joined))
            rows = with_kept(rows, as_joined(former, batch.columns, request.attempt))
    reach("write.half_folder")
    job = _write(session, rows, frame, batch, root)
    if joined and base is not None:
        check_joined(session, root, base, joined, job.written - job.measured.rows)
    return _written(batch, job, batch.gone | joined, Compared(), statements=2)


def _rows_of(session: SparkSession, base: Base) -> DataFrame | None:
    """The rows of the base as readers see them; None where there are none, so that the next ones are the first."""
    columns = [quote(column.name) for column in base.head.shape.columns]
    rows = session.sql(stored_query(base.head)).select(*columns)
    known = base.head.contents.get(None)
    is_empty = not base.manifest or (rows.isEmpty() if known is None else known == NO_ROWS.to_text())
    return None if is_empty else rows


def _write_and_look(session: SparkSession, frame: DataFrame, batch: _FolderBatch, root: str, reach: Reach) -> Written:
    base = batch.request.base
    job = _write(session, new_rows(frame, batch), frame, batch, root)
    reach("write.half_folder")
    compared = _compare(session, frame, batch, job.measured, root)
    if base is None or batch.condition is None:
        return _written(batch, job, batch.gone, compared, statements=2)
    inside = _keys_in(_rows_around(session, base, batch).filter(batch.condition), batch.columns)
    touched = inside | (frozenset(job.folders) & frozenset(base.manifest))
    if not touched:
        return _written(batch, job, frozenset(), compared, statements=3)
    job = _write(session, _kept_rows(session, base, batch, touched), frame, batch, root, after=job)
    return _written(batch, job, touched, compared, statements=5)


def _compare(session: SparkSession, frame: DataFrame, batch: _FolderBatch, measured: Measured, root: str) -> Compared:
    base = batch.request.base

    def old_rows() -> DataFrame:
        if base is None:
            raise TypeError(base)
        rows = _rows_around(session, base, batch)
        touched = batch.gone | batch.partly
        return rows.filter(_one_of(batch.columns, touched)) if batch.columns and touched and not batch.is_open else rows

    return compare(
        frame,
        batch,
        measured,
        lambda stored: read_back(session, f"{root}/{batch.request.folder}", stored),
        old_rows,
        has_old=batch.is_open or bool(batch.gone or batch.partly),
    )


def _rows_around(session: SparkSession, base: Base, batch: Batch) -> DataFrame:
    """The base's rows of the batch's time, and maybe of more, found without the folders of another time."""
    interval, declared = batch.request.interval, batch.request.time_column
    condition = None
    if interval is not None and declared is not None:
        condition = key_range(base.head.shape, declared.name, interval.start, interval.end)
    return session.sql(stored_query(base.head, condition=condition))


def _kept_rows(session: SparkSession, base: Base, batch: _FolderBatch, keys: Collection[PartitionKey]) -> DataFrame:
    """Rows of the base outside the interval in these partitions, in the columns of the new rows.

    They are read from the generation that state names, never through a view.
    """
    source = session.sql(stored_query(base.head))
    if batch.columns:
        source = source.filter(_one_of(batch.columns, keys))
    return kept_rows(source, base, batch)


def _one_of(columns: tuple[PartitionColumn, ...], keys: Collection[PartitionKey]) -> SparkColumn:
    """Rows of these partitions, in a form that Spark prunes by; of very many keys, perhaps rows of a few others.

    More rows than asked for do no harm where partitions are replaced: one without a row inside the interval is written
    again as it is. Whoever moves rows from one partition to another has to leave these out.
    """
    if len(keys) * len(columns) <= _MOST_CONDITIONS:
        return _any(_all(_equals(column, {value}) for column, value in zip(columns, key, strict=True)) for key in keys)
    return _all(_equals(column, {key[index] for key in keys}) for index, column in enumerate(columns))


def _equals(column: PartitionColumn, values: set[str | None]) -> SparkColumn:
    """A condition on one partition column; none at all where Hive would misread a value in a filter."""
    if not all(map(is_plain, values)):
        return sf.lit(True)
    name = sf.col(quote(column.name))
    typed = [sf.lit(value).cast(column.type) for value in sorted(value for value in values if value is not None)]
    conditions = [name.isin(*typed)] if typed else []
    if None in values:
        conditions.append(name.isNull())
    return _any(conditions)


def _any(conditions: Iterable[SparkColumn]) -> SparkColumn:
    first, *rest = conditions
    for condition in rest:
        first = first | condition
    return first


def _all(conditions: Iterable[SparkColumn]) -> SparkColumn:
    first, *rest = conditions
    for condition in rest:
        first = first & condition
    return first


def _write(
    session: SparkSession,
    rows: DataFrame,
    frame: DataFrame,
    batch: _FolderBatch,
    root: str,
    *,
    after: _Job | None = None,
) -> _Job:
    """Run one job that writes rows and measures them on the way; `frame` is what the model gave.

    What lies in the folder afterwards is counted there: Spark itself does not look whether it holds what was written.
    """
    observed = Observed(distributed(session, rows, batch), batch, is_append=after is not None)
    writer = observed.rows.write.mode("append" if after else "error")
    if batch.columns:
        writer = writer.partitionBy(*[column.name for column in batch.columns])
    path = f"{root}/{batch.request.folder}"
    try:
        with observed.writing(frame):
            writer.parquet(path)
    except Exception as error:
        _explain_long_values(rows, batch, error)
        raise
    there = read_back(session, path, observed.rows.schema)
    written = there.count()
    observed.check(written - (after.written if after else 0), may_miss=lambda: may_scatter(session, root))
    folder = batch.request.folder
    return _Job(
        measured=after.measured if after else observed.measured(written, lambda: count_new(there, batch)),
        written=written,
        folders=partitions_below(there, folder) if batch.columns else {(): folder},
    )


def _keys_in(rows: DataFrame, columns: tuple[PartitionColumn, ...]) -> frozenset[PartitionKey]:
    found = rows.select(*[sf.col(quote(column.name)).cast("string") for column in columns]).distinct().collect()
    return frozenset(tuple(row) for row in found)


def _written(
    batch: _FolderBatch,
    job: _Job,
    touched: frozenset[PartitionKey],
    compared: Compared,
    statements: int,
) -> Written:
    measured, folders = job.measured, job.folders
    return Written(
        rows=measured.rows,
        shape=batch.shape,
        folders={key: folders[key] for key in sorted(folders, key=_sortable)},
        removed=tuple(sorted(touched - folders.keys(), key=_sortable)),
        statements=statements + compared.jobs,
        null_times=measured.null_times,
        changed=compared.changed,
        contents=compared.contents if batch.condition is not None else measured.of_whole(),
    )


def _sortable(key: PartitionKey) -> tuple[tuple[bool, str], ...]:
    return tuple((value is not None, value or "") for value in key)


def _explain_long_values(rows: DataFrame, batch: _FolderBatch, error: Exception) -> None:
    """A value too long for a folder's name fails the job with an error of the file system; say what it was."""
    texts = [column for column in batch.columns if column.type == "string"]
    if not texts or not isinstance(translate(error, ""), WarehouseUnwritable):
        return
    longest = rows.select(*[sf.max(sf.octet_length(sf.col(quote(column.name)))) for column in texts]).collect()[0]
    for column, length in zip(texts, longest, strict=True):
        if length is not None and length + len(column.name) + 1 > LONGEST_FOLDER:
            raise too_long(column) from error
