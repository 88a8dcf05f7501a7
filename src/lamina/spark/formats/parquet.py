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
from lamina.spark.compare_rows import (
    HASH,
    NO_ROWS,
    Content,
    content_measures,
    differing_units,
    measure,
    with_hash,
)
from lamina.spark.errors import translate
from lamina.spark.output import find_time_column, in_interval
from lamina.spark.partitions import (
    LONGEST_FOLDER,
    NULL_FOLDER,
    find_time_key,
    partition_path,
    plan_partitions,
    too_long,
    touch,
)
from lamina.spark.tables import table_name
from lamina.spark.types import can_read_as, columns_of
from lamina.sql.names import quote
from lamina.timeline.interval import EMPTY

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

    from lamina.app.ports import Base, Reach, WriteRequest
    from lamina.app.records import PartitionColumn, PartitionKey
    from lamina.graph.model import Column
    from lamina.timeline.interval import Intervals

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
    recorded: str | None = None
    """Holds for rows of the part of the interval that is compared with the base."""

    @property
    def columns(self) -> tuple[PartitionColumn, ...]:
        return self.shape.partition_columns

    @property
    def is_measured(self) -> bool:
        """Whether anybody asks what the rows are: for a whole table, and for time that was computed before."""
        return self.condition is None or self.recorded is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    """What a write job saw of its own rows."""

    rows: int
    content: Content
    """Of the rows that are compared."""
    null_times: int = 0
    keys: frozenset[PartitionKey] = field(default_factory=frozenset)


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
        recorded=_recorded(request, time),
    )


def _recorded(request: WriteRequest, time: Column) -> str | None:
    """The part of the interval that was computed before; nothing where there is no base to compare with."""
    if request.base is None or request.time_column is None or request.recorded.is_empty:
        return None
    declared = request.time_column
    return " OR ".join(f"({in_interval(time, declared, interval)})" for interval in request.recorded)


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
    changed, compared = _changed(session, frame, batch, measured, root)
    touched = batch.gone | batch.partly
    return _written(batch, measured, measured.keys, touched, changed, statements=1 + compared)


def _write_and_look(session: SparkSession, frame: DataFrame, batch: _Batch, root: str, reach: Reach) -> Written:
    base = batch.request.base
    measured = _write(_new_rows(frame, batch), batch, root, is_append=False)
    reach("write.half_folder")
    if base is None or batch.condition is None:
        return _written(batch, measured, measured.keys, batch.gone, EMPTY, statements=1)
    inside = _keys_in(session.table(table_name(base.head.generation)).filter(batch.condition), batch.columns)
    touched = inside | (measured.keys & frozenset(base.manifest))
    changed, compared = _changed(session, frame, batch, measured, root)
    if not touched:
        return _written(batch, measured, measured.keys, frozenset(), changed, statements=2 + compared)
    kept = _write(_kept_rows(session, base, batch, touched), batch, root, is_append=True)
    return _written(batch, measured, measured.keys | kept.keys, touched, changed, statements=3 + compared)


def _changed(
    session: SparkSession, frame: DataFrame, batch: _Batch, measured: _Measured, root: str
) -> tuple[Intervals, int]:
    """Units of recorded time with other rows than the base has, and how many further jobs it took to know."""
    request = batch.request
    base, declared, grain = request.base, request.time_column, request.grain
    if base is None or declared is None or grain is None or batch.recorded is None:
        return EMPTY, 0
    names = [(column.name, column.type) for column in batch.shape.columns]
    if names != [(column.name, column.type) for column in base.head.shape.columns]:
        return request.recorded, 0
    touched = batch.gone | batch.partly
    if not batch.is_open and not touched and measured.content.rows == 0:
        return EMPTY, 0
    old = session.table(table_name(base.head.generation))
    if batch.columns and touched and not batch.is_open:
        old = old.filter(_one_of(batch.columns, touched))
    visible = StructType([frame.schema[column.name] for column in batch.shape.columns])
    wanted = [sf.col(quote(column.name)) for column in batch.shape.columns]
    old = with_hash(old.select(*wanted).filter(batch.recorded), visible)
    if measure(old).is_same(measured.content):
        return EMPTY, 1
    stored = _new_rows(frame, batch).schema
    written = session.read.schema(stored).parquet(f"{root}/{request.folder}")
    new = with_hash(written.select(*wanted).filter(batch.recorded), visible)
    time = find_time_column(batch.shape.columns, declared)
    units, jobs = differing_units(
        old, new, request.recorded, grain, lambda interval: in_interval(time, declared, interval)
    )
    return units, 1 + jobs


def _new_rows(frame: DataFrame, batch: _Batch) -> DataFrame:
    """Rows inside the interval, and those without a time so that they can be counted, with their hidden keys."""
    if batch.condition is not None and batch.time is not None:
        # One filter, not two: Spark may still push it down to the files.
        frame = frame.filter(sf.expr(f"({batch.condition}) OR {quote(batch.time)} IS NULL"))
    hidden = {column.name: sf.expr(column.expression) for column in batch.columns if column.expression is not None}
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
    if batch.columns:
        key = sf.struct(*[sf.col(quote(column.name)).cast("string") for column in batch.columns])
        measures["keys"] = sf.collect_set(sf.when(is_valid, key))
    texts = [column for column in batch.columns if not column.is_hidden and column.type == "string"]
    for index, column in enumerate(texts):
        measures[f"empty_{index}"] = sf.count_if(is_valid & sf.col(quote(column.name)).isin("", NULL_FOLDER))
    if batch.is_measured and not is_append:
        visible = StructType([rows.schema[column.name] for column in batch.shape.columns])
        rows = with_hash(rows, visible)
        in_scope = sf.coalesce(sf.expr(batch.recorded), sf.lit(False)) if batch.recorded else sf.lit(True)
        measures |= content_measures(~is_kept & has_time & in_scope)
    observation = Observation()
    observed = rows.observe(observation, *[measure.alias(name) for name, measure in measures.items()])
    if batch.time and not is_append:
        observed = observed.filter(is_valid)
    observed = observed.drop(_KEPT, HASH)
    writer = observed.write.mode("append" if is_append else "error")
    if batch.columns:
        writer = writer.partitionBy(*[column.name for column in batch.columns])
    try:
        writer.parquet(f"{root}/{batch.request.folder}")
    except Exception as error:
        _explain_long_values(rows, batch, error)
        raise
    return _measured(observation.get, batch, texts)


def _measured(found: Mapping[str, Any], batch: _Batch, texts: list[PartitionColumn]) -> _Measured:
    if "rows" not in found:
        raise QueryFailed("Spark wrote the rows but did not report how many", hint="run the command again")
    for index, column in enumerate(texts):
        if found[f"empty_{index}"]:
            raise BadModelResult(
                f"partition column `{column.name}` holds an empty text or `{NULL_FOLDER}` in "
                f"{found[f'empty_{index}']} rows, which Spark would read back as NULL",
                hint=f"use another value, such as `coalesce(nullif({column.name}, ''), 'none')`",
            )
    keys = frozenset(_key(tuple(row), batch.columns) for row in found.get("keys", ()))
    return _Measured(
        rows=int(found["rows"]),
        content=Content.of(found) if "content_rows" in found else NO_ROWS,
        null_times=int(found["null_times"]),
        keys=keys or _no_keys(batch),
    )


def _key(values: tuple[str | None, ...], columns: tuple[PartitionColumn, ...]) -> PartitionKey:
    """The key as the catalog knows it: of a hidden column, empty text is in the folder for NULL."""
    return tuple(
        None if column.is_hidden and value in {"", NULL_FOLDER} else value
        for column, value in zip(columns, values, strict=True)
    )


def _no_keys(batch: _Batch) -> frozenset[PartitionKey]:
    return frozenset() if batch.columns else frozenset({()})


def _keys_in(rows: DataFrame, columns: tuple[PartitionColumn, ...]) -> frozenset[PartitionKey]:
    found = rows.select(*[sf.col(quote(column.name)).cast("string") for column in columns]).distinct().collect()
    return frozenset(_key(tuple(row), columns) for row in found)


def _written(
    batch: _Batch,
    measured: _Measured,
    keys: frozenset[PartitionKey],
    touched: frozenset[PartitionKey],
    changed: Intervals,
    statements: int,
) -> Written:
    folder = batch.request.folder
    place: Callable[[PartitionKey], str] = (
        (lambda key: f"{folder}/{partition_path(batch.columns, key)}") if batch.columns else (lambda _: folder)
    )
    return Written(
        rows=measured.rows,
        shape=batch.shape,
        folders={key: place(key) for key in sorted(keys, key=_sortable)},
        removed=tuple(sorted(touched - keys, key=_sortable)),
        statements=statements,
        null_times=measured.null_times,
        changed=changed,
        content=measured.content.to_text() if batch.condition is None else None,
    )


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
