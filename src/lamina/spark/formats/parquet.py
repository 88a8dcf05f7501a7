"""Tables of plain parquet files: batches in folders of their own, generations over them.

A batch is one Spark job wherever the partitions' keys tell which rows of the base it replaces: new rows and the rows
that are kept from partly touched partitions are written together. Only where the keys tell nothing does Spark look for
the touched partitions, and a second job adds the rows to keep.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import Observation
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from lamina.app.ports import Written
from lamina.app.records import TableShape
from lamina.errors import BadModelResult, QueryFailed, WarehouseUnwritable
from lamina.graph.kinds import IncrementalUnmanaged
from lamina.spark.compare_rows import (
    HASH,
    NO_ROWS,
    Content,
    content_measures,
    contents_by_time,
    cut,
    differing_units,
    with_hash,
)
from lamina.spark.errors import translate
from lamina.spark.kinds.fold import folded, is_keyed, refuse_folded
from lamina.spark.kinds.problems import PROBLEM, problem_measures
from lamina.spark.output import find_time_column, in_interval
from lamina.spark.partitions import (
    LONGEST_FOLDER,
    NULL_FOLDER,
    attempt_column,
    find_time_key,
    is_attempt,
    plan_partitions,
    too_long,
    touch,
)
from lamina.spark.tables import table_name
from lamina.spark.types import can_read_as, columns_of
from lamina.spark.written_files import partitions_below, read_back
from lamina.sql.names import quote
from lamina.timeline.interval import EMPTY, Intervals

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

    from lamina.app.ports import Base, Fold, Reach, WriteRequest
    from lamina.app.records import Contents, PartitionColumn, PartitionKey
    from lamina.graph.model import Column
    from lamina.timeline.interval import Interval

_KEPT = "_lamina_kept"
_MOST_CONDITIONS = 200
_FILTERABLE = re.compile(r"[\w .:+-]+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a table format can do by itself; kinds ask for these and never for a format's name."""

    has_generations: bool
    """Publishing is a change of the catalog over folders that are already written."""
    can_replace_where: bool
    """Rows that satisfy a condition can be replaced in one atomic statement."""
    can_merge: bool
    """MERGE works."""


class ParquetFormat:
    """Parquet, the format that every Spark has."""

    name = "parquet"
    capabilities = Capabilities(has_generations=True, can_replace_where=False, can_merge=False)

    def write(self, session: SparkSession, frame: DataFrame, request: WriteRequest, root: str, reach: Reach) -> Written:
        """Write one batch below `root`; see the port for what is promised.

        The kill point `write.half_folder` lies between the two jobs, or before the only one.
        """
        if request.fold is not None:
            return _write_fold(session, frame, request, request.fold, root, reach)
        if request.base is not None and request.interval is not None:
            frame = _widened(frame, request.base)
        batch = _plan(frame, request)
        if batch.is_open:
            return _write_and_look(session, frame, batch, root, reach)
        return _write_at_once(session, frame, batch, root, reach)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """What is known before anything runs."""

    request: WriteRequest
    shape: TableShape
    condition: str | None
    """Holds for rows inside the interval."""
    time: str | None
    gone: frozenset[PartitionKey]
    """Partitions of the base with no row to keep."""
    partly: frozenset[PartitionKey]
    """Partitions of the base with rows inside and outside the interval."""
    is_open: bool
    """Whether only the base's rows tell which partitions are touched."""
    remembered: _Remembered | None = None
    """Set when the new rows can be compared while they are written."""
    is_measured: bool = True
    """Whether the rows, if they are the whole table, are measured."""

    @property
    def columns(self) -> tuple[PartitionColumn, ...]:
        return self.shape.partition_columns


@dataclass(frozen=True, slots=True, kw_only=True)
class _Remembered:
    """What is known of all recorded time of a batch, which has but one unit besides, or none."""

    contents: Contents
    recorded: str
    """Holds for rows of recorded time."""
    fresh: Interval | None
    """The unit that is measured for the first time."""

    @property
    def total(self) -> Content:
        return Content.total(self.contents.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    """What a write job saw of its own rows."""

    rows: int
    content: Content | None
    """Of a whole table, or of recorded time where that is remembered."""
    fresh: Content | None
    null_times: int = 0
    problems: Mapping[str, Any] = field(default_factory=dict)
    """What forbids to put the rows into a table."""


# --- before the job ---------------------------------------------------------------------------------------------------
def _plan(frame: DataFrame, request: WriteRequest) -> _Batch:
    columns = columns_of(frame.schema, request.comments)
    shape = TableShape(columns=columns, partition_columns=plan_partitions(request.partitioned_by, columns))
    base_keys = frozenset(request.base.manifest) if request.base else frozenset()
    if request.interval is None or request.time_column is None:
        return _Batch(
            request=request, shape=shape, condition=None, time=None, gone=base_keys, partly=frozenset(), is_open=False
        )
    time = find_time_column(columns, request.time_column, request.grain)
    condition = in_interval(time, request.time_column, request.interval)
    gone: frozenset[PartitionKey] = frozenset()
    partly: frozenset[PartitionKey] = frozenset()
    is_open = False
    if not shape.partition_columns:
        partly = base_keys
    elif base_keys:
        time_key = find_time_key(shape.partition_columns, time, request.time_column)
        touches = {key: touch(key, time_key, request.interval) if time_key else "unknown" for key in base_keys}
        gone = frozenset(key for key, how in touches.items() if how == "inside")
        partly = frozenset(key for key, how in touches.items() if how == "partly")
        is_open = "unknown" in touches.values()
    if request.base is not None and gone != base_keys:
        _check_base(request.base, shape)
    return _Batch(
        request=request,
        shape=shape,
        condition=condition,
        time=time.name,
        gone=gone,
        partly=partly,
        is_open=is_open,
        remembered=_remembered(request, shape, time),
    )


def _remembered(request: WriteRequest, shape: TableShape, time: Column) -> _Remembered | None:
    base, declared, interval, recorded = request.base, request.time_column, request.interval, request.recorded
    if base is None or declared is None or interval is None or recorded.is_empty or not _has_same_columns(base, shape):
        return None
    again = [unit for unit in request.measured if recorded.covers(unit) and unit in base.head.contents]
    fresh = [unit for unit in request.measured if not recorded.covers(unit)]
    if Intervals.of(again) != recorded or len(fresh) > 1 or Intervals.of([*again, *fresh]) != Intervals.of([interval]):
        return None
    return _Remembered(
        contents={unit: base.head.contents[unit] for unit in again},
        recorded=" OR ".join(f"({in_interval(time, declared, interval)})" for interval in recorded),
        fresh=fresh[0] if fresh else None,
    )


def _plan_fold(rows: DataFrame, request: WriteRequest, fold: Fold) -> _Batch:
    """Rows of keyed kinds are the whole table; those of the others replace partitions, or only ever add one."""
    columns = columns_of(rows.drop(PROBLEM).schema, request.comments)
    partition_columns = plan_partitions(request.partitioned_by, columns)
    if isinstance(fold.kind, IncrementalUnmanaged) and not fold.kind.insert_overwrite:
        partition_columns += (attempt_column(len(request.partitioned_by)),)
    base_keys = frozenset(request.base.manifest) if request.base else frozenset()
    is_whole = is_keyed(fold.kind)
    batch = _Batch(
        request=request,
        shape=TableShape(columns=columns, partition_columns=partition_columns),
        condition=None,
        time=None,
        gone=base_keys if is_whole or fold.begins_anew else frozenset(),
        partly=frozenset(),
        is_open=False,
        is_measured=is_whole,
    )
    if request.base is not None and batch.gone != base_keys:
        _check_base(request.base, batch.shape)
    return batch


def _has_same_columns(base: Base, shape: TableShape) -> bool:
    """Whether rows can be compared at all: columns of other names or types make every row another one."""
    before = [(column.name, column.type) for column in base.head.shape.columns]
    return before == [(column.name, column.type) for column in shape.columns]


def _widened(frame: DataFrame, base: Base) -> DataFrame:
    """The new rows, with a column that came out narrower than before, as a literal may, in its former type."""
    before = {column.name.casefold(): column.type or "" for column in base.head.shape.columns}
    casts = {
        column.name: sf.col(quote(column.name)).cast(before[column.name.casefold()])
        for column in columns_of(frame.schema, {})
        if column.type != before.get(column.name.casefold(), column.type)
        and can_read_as(column.type or "", before[column.name.casefold()])
    }
    return frame.withColumns(casts) if casts else frame


def _check_base(base: Base, shape: TableShape) -> None:
    """Rows of other intervals stay as they were written, so new rows must fit beside them."""
    before = {column.name.casefold(): column for column in base.head.shape.columns}
    for column in shape.columns:
        old = before.get(column.name.casefold())
        if old is not None and not can_read_as(old.type or "", column.type or ""):
            raise BadModelResult(
                f"column `{column.name}` was written as `{old.type}` and would now be `{column.type}`; "
                "the rows of other intervals cannot be read that way",
                hint=f"cast it to `{old.type}` in the query, or change the model so that a new version is built",
            )
    if base.head.shape.partition_columns != shape.partition_columns:
        raise BadModelResult(
            "the type of a partition column has changed, and rows of other intervals are laid out by the old one",
            hint="cast it to its former type in the query, or change the model so that a new version is built",
        )


# --- the jobs ---------------------------------------------------------------------------------------------------------
def _write_at_once(session: SparkSession, frame: DataFrame, batch: _Batch, root: str, reach: Reach) -> Written:
    rows = _new_rows(frame, batch)
    if batch.partly and batch.request.base is not None:
        kept = _kept_rows(session, batch.request.base, batch, batch.partly)
        rows = rows.withColumn(_KEPT, sf.lit(False)).unionByName(kept.withColumn(_KEPT, sf.lit(True)))
    reach("write.half_folder")
    measured = _write(rows, batch, root, is_append=False)
    folders = _folders(session, rows, batch, root)
    compared = _compare(session, frame, batch, measured, root)
    return _written(batch, measured, folders, batch.gone | batch.partly, compared, statements=1)


def _write_fold(
    session: SparkSession, frame: DataFrame, request: WriteRequest, fold: Fold, root: str, reach: Reach
) -> Written:
    """New rows and what the table holds, by the rules of the kind; what these forbid is found in the same job."""
    base = None if fold.begins_anew else request.base
    if is_keyed(fold.kind):
        rows = folded(None if base is None else _rows_of(session, base), frame, fold)
    else:
        rows = frame if base is None else _widened(frame, base)
    batch = _plan_fold(rows, request, fold)
    rows = _new_rows(rows, batch)
    reach("write.half_folder")
    measured = _write(rows, batch, root, is_append=False)
    refuse_folded(measured.problems, frame, fold)
    folders = _folders(session, rows.drop(PROBLEM), batch, root)
    return _written(batch, measured, folders, batch.gone, _Compared(), statements=1)


def _rows_of(session: SparkSession, base: Base) -> DataFrame | None:
    """The rows of the base as readers see them; None where there are none, so that the next ones are the first."""
    columns = [quote(column.name) for column in base.head.shape.columns]
    rows = session.table(table_name(base.head.generation)).select(*columns)
    known = base.head.contents.get(None)
    is_empty = not base.manifest or (rows.isEmpty() if known is None else known == NO_ROWS.to_text())
    return None if is_empty else rows


def _write_and_look(session: SparkSession, frame: DataFrame, batch: _Batch, root: str, reach: Reach) -> Written:
    base = batch.request.base
    rows = _new_rows(frame, batch)
    measured = _write(rows, batch, root, is_append=False)
    reach("write.half_folder")
    folders = _folders(session, rows, batch, root)
    compared = _compare(session, frame, batch, measured, root)
    if base is None or batch.condition is None:
        return _written(batch, measured, folders, batch.gone, compared, statements=1)
    inside = _keys_in(session.table(table_name(base.head.generation)).filter(batch.condition), batch.columns)
    touched = inside | (frozenset(folders) & frozenset(base.manifest))
    if not touched:
        return _written(batch, measured, folders, frozenset(), compared, statements=2)
    _write(_kept_rows(session, base, batch, touched), batch, root, is_append=True)
    folders = _folders(session, rows, batch, root)
    return _written(batch, measured, folders, touched, compared, statements=3)


def _folders(session: SparkSession, rows: DataFrame, batch: _Batch, root: str) -> dict[PartitionKey, str]:
    """The partitions that lie in the batch's folder."""
    folder = batch.request.folder
    if not batch.columns:
        return {(): folder}
    schema = StructType([field for field in rows.schema.fields if field.name != _KEPT])
    return partitions_below(read_back(session, f"{root}/{folder}", schema), folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    """What the new rows are, next to the old ones of the same time."""

    changed: Intervals = EMPTY
    contents: Contents = field(default_factory=dict)
    jobs: int = 0


def _compare(session: SparkSession, frame: DataFrame, batch: _Batch, measured: _Measured, root: str) -> _Compared:
    """Find out which recorded time has other rows than the base, and what is to be remembered of the new ones.

    Where the rows are as they are remembered, the write has told so already. Else the new ones are read once more, and
    the old ones of time that nothing is remembered of.
    """
    request = batch.request
    base, declared, grain = request.base, request.time_column, request.grain
    if declared is None or batch.condition is None:
        return _Compared()
    remembered, has_rows = batch.remembered, bool(measured.rows)
    if remembered is not None and measured.content is not None and measured.content.is_same(remembered.total):
        known = dict(remembered.contents)
        text = measured.fresh.to_text() if measured.fresh is not None else None
        return _Compared(contents={**known, remembered.fresh: text} if text is not None else known)
    recorded = request.recorded if base is not None else EMPTY
    is_comparable = base is None or _has_same_columns(base, batch.shape)
    open_time = recorded.minus(Intervals.of(request.measured)) if is_comparable else EMPTY
    stretches = [*request.measured, *(cut(open_time, grain) if grain else ())]
    if not stretches:
        return _Compared(changed=recorded)
    time = find_time_column(batch.shape.columns, declared)
    hashed = _Hashed(batch, frame, lambda interval: in_interval(time, declared, interval))
    new = hashed.rows(read_back(session, f"{root}/{request.folder}", hashed.stored))
    now = contents_by_time(new, stretches, hashed.condition) if has_rows else {}
    jobs = 1 if has_rows else 0
    known = {stretch: text for stretch in stretches if (text := now.get(stretch, NO_ROWS).to_text()) is not None}
    contents: dict[Interval | None, str] = {unit: known[unit] for unit in request.measured if unit in known}
    if base is None or grain is None or not is_comparable:
        return _Compared(changed=recorded, contents=contents, jobs=jobs)
    compared = [stretch for stretch in stretches if recorded.covers(stretch)]
    unknown = [stretch for stretch in compared if stretch not in base.head.contents]
    found: dict[Interval, Content] = {}
    if unknown and (batch.is_open or batch.gone or batch.partly):
        old = hashed.rows(_old_rows(session, base, batch))
        found, jobs = contents_by_time(old, unknown, hashed.condition), jobs + 1
    before = {stretch: found.get(stretch, NO_ROWS).to_text() for stretch in unknown} | dict(base.head.contents)
    different = [stretch for stretch in compared if stretch not in known or known[stretch] != before[stretch]]
    units = Intervals.of(stretch for stretch in different if grain.next(stretch.start) >= stretch.end)
    larger = Intervals.of(different).minus(units)
    if not larger.is_empty:
        old = hashed.rows(_old_rows(session, base, batch))
        smaller, further = differing_units(old, new, larger, grain, hashed.condition)
        units, jobs = units.union(smaller), jobs + further
    return _Compared(changed=units.intersect(recorded), contents=contents, jobs=jobs)


class _Hashed:
    """Rows of a batch and of its base in the form in which they are compared."""

    def __init__(self, batch: _Batch, frame: DataFrame, condition: Callable[[Interval], str]) -> None:
        self.condition = condition
        self.stored = _new_rows(frame, batch).schema
        self._names = [quote(column.name) for column in batch.shape.columns]
        self._visible = StructType([self.stored[column.name] for column in batch.shape.columns])

    def rows(self, rows: DataFrame) -> DataFrame:
        return with_hash(rows.select(*self._names), self._visible)


def _old_rows(session: SparkSession, base: Base, batch: _Batch) -> DataFrame:
    rows = session.table(table_name(base.head.generation))
    touched = batch.gone | batch.partly
    return rows.filter(_one_of(batch.columns, touched)) if batch.columns and touched and not batch.is_open else rows


def _new_rows(frame: DataFrame, batch: _Batch) -> DataFrame:
    """Rows inside the interval, and those without a time so that they can be counted, with their hidden keys."""
    if batch.condition is not None and batch.time is not None:
        # One filter, not two: Spark may still push it down to the files.
        frame = frame.filter(sf.expr(f"({batch.condition}) OR {quote(batch.time)} IS NULL"))
    hidden = {
        column.name: sf.lit(str(batch.request.attempt)) if is_attempt(column) else sf.expr(column.expression)
        for column in batch.columns
        if column.expression is not None
    }
    return frame.withColumns(hidden) if hidden else frame


def _kept_rows(session: SparkSession, base: Base, batch: _Batch, keys: Collection[PartitionKey]) -> DataFrame:
    """Rows of the base outside the interval in these partitions, in the columns of the new rows.

    They are read from the generation that state names, never through a view.
    """
    source = session.table(table_name(base.head.generation))
    if batch.columns:
        source = source.filter(_one_of(batch.columns, keys))
    known = {column.name.casefold(): column.name for column in base.head.shape.columns}
    selected = [_aligned(column, known.get(column.name.casefold())) for column in batch.shape.columns]
    selected += [sf.col(quote(column.name)) for column in batch.columns if column.is_hidden]
    return source.select(*selected).filter(sf.expr(f"NOT coalesce(({batch.condition}), false)"))


def _aligned(column: Column, old_name: str | None) -> SparkColumn:
    value = sf.lit(None) if old_name is None else sf.col(quote(old_name))
    return value.cast(column.type or "string").alias(column.name)


def _one_of(columns: tuple[PartitionColumn, ...], keys: Collection[PartitionKey]) -> SparkColumn:
    """Rows of these partitions, in a form that Spark prunes by; of very many keys, perhaps rows of a few others.

    More rows than asked for do no harm: a partition without a row inside the interval is written again as it is.
    """
    if len(keys) * len(columns) <= _MOST_CONDITIONS:
        return _any(_all(_equals(column, {value}) for column, value in zip(columns, key, strict=True)) for key in keys)
    return _all(_equals(column, {key[index] for key in keys}) for index, column in enumerate(columns))


def _equals(column: PartitionColumn, values: set[str | None]) -> SparkColumn:
    """A condition on one partition column; none at all where Hive would misread a value in a filter."""
    if not all(value is None or _FILTERABLE.fullmatch(value) for value in values):
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


def _write(rows: DataFrame, batch: _Batch, root: str, *, is_append: bool) -> _Measured:
    """Run one job that writes rows and measures them on the way."""
    has_flag = _KEPT in rows.columns
    is_kept = sf.col(_KEPT) if has_flag else sf.lit(is_append)
    has_time = sf.col(quote(batch.time)).isNotNull() if batch.time and not is_append else sf.lit(True)
    is_valid = is_kept | has_time
    measures: dict[str, SparkColumn] = {
        "rows": sf.count_if(~is_kept & has_time),
        "null_times": sf.count_if(~is_valid),
    }
    texts = [column for column in batch.columns if not column.is_hidden and column.type == "string"]
    for index, column in enumerate(texts):
        measures[f"empty_{index}"] = sf.count_if(is_valid & sf.col(quote(column.name)).isin("", NULL_FOLDER))
    if PROBLEM in rows.columns:
        measures |= problem_measures()
    remembered = None if is_append else batch.remembered
    if (batch.condition is None and batch.is_measured) or remembered is not None:
        rows = with_hash(rows, StructType([rows.schema[column.name] for column in batch.shape.columns]))
        is_again = sf.coalesce(sf.expr(remembered.recorded), sf.lit(False)) if remembered else sf.lit(True)
        measures |= content_measures(~is_kept & is_again)
        if remembered is not None and remembered.fresh is not None:
            measures |= content_measures(~is_kept & ~is_again & has_time, "fresh")
    observation = Observation()
    observed = rows.observe(observation, *[measure.alias(name) for name, measure in measures.items()])
    if batch.time and not is_append:
        observed = observed.filter(is_valid)
    observed = observed.drop(_KEPT, HASH, PROBLEM)
    writer = observed.write.mode("append" if is_append else "error")
    if batch.columns:
        writer = writer.partitionBy(*[column.name for column in batch.columns])
    try:
        writer.parquet(f"{root}/{batch.request.folder}")
    except Exception as error:
        _explain_long_values(rows, batch, error)
        raise
    return _measured(observation.get, texts)


def _measured(found: Mapping[str, Any], texts: list[PartitionColumn]) -> _Measured:
    if "rows" not in found:
        raise QueryFailed("Spark wrote the rows but did not report how many", hint="run the command again")
    for index, column in enumerate(texts):
        if found[f"empty_{index}"]:
            raise BadModelResult(
                f"partition column `{column.name}` holds an empty text or `{NULL_FOLDER}` in "
                f"{found[f'empty_{index}']} rows, which Spark would read back as NULL",
                hint=f"use another value, such as `coalesce(nullif({column.name}, ''), 'none')`",
            )
    return _Measured(
        rows=int(found["rows"]),
        content=Content.of(found) if "content_rows" in found else None,
        fresh=Content.of(found, "fresh") if "fresh_rows" in found else None,
        null_times=int(found["null_times"]),
        problems={name: count for name, count in found.items() if name.startswith("problem_")},
    )


def _keys_in(rows: DataFrame, columns: tuple[PartitionColumn, ...]) -> frozenset[PartitionKey]:
    found = rows.select(*[sf.col(quote(column.name)).cast("string") for column in columns]).distinct().collect()
    return frozenset(tuple(row) for row in found)


def _written(
    batch: _Batch,
    measured: _Measured,
    folders: Mapping[PartitionKey, str],
    touched: frozenset[PartitionKey],
    compared: _Compared,
    statements: int,
) -> Written:
    return Written(
        rows=measured.rows,
        shape=batch.shape,
        folders={key: folders[key] for key in sorted(folders, key=_sortable)},
        removed=tuple(sorted(touched - folders.keys(), key=_sortable)),
        statements=statements + compared.jobs,
        null_times=measured.null_times,
        changed=compared.changed,
        contents=compared.contents if batch.condition is not None else _of_whole(measured),
    )


def _of_whole(measured: _Measured) -> Contents:
    text = measured.content.to_text() if measured.content is not None else None
    return {} if text is None else {None: text}


def _sortable(key: PartitionKey) -> tuple[tuple[bool, str], ...]:
    return tuple((value is not None, value or "") for value in key)


def _explain_long_values(rows: DataFrame, batch: _Batch, error: Exception) -> None:
    """A value too long for a folder's name fails the job with an error of the file system; say what it was."""
    texts = [column for column in batch.columns if column.type == "string"]
    if not texts or not isinstance(translate(error, ""), WarehouseUnwritable):
        return
    longest = rows.select(*[sf.max(sf.octet_length(sf.col(quote(column.name)))) for column in texts]).collect()[0]
    for column, length in zip(texts, longest, strict=True):
        if length is not None and length + len(column.name) + 1 > LONGEST_FOLDER:
            raise too_long(column) from error
