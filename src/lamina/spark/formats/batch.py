"""A batch before and while it is written, whatever the format: its rows, its columns, and what is measured of them."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Observation
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from lamina.app.ports.published import TableShape
from lamina.errors import BadModelResult
from lamina.graph.kinds import is_keyed
from lamina.spark.errors import condition_of
from lamina.spark.kinds.problems import PROBLEM, check_fold
from lamina.spark.rows.compare import HASH, Content, content_measures, with_hash
from lamina.spark.rows.output import find_time_column, in_interval
from lamina.spark.rows.partitions import NULL_FOLDER, is_attempt
from lamina.spark.rows.shared_storage import check_rows
from lamina.spark.rows.types import can_read_as, columns_of
from lamina.sql.names import quote
from lamina.timeline.interval import Intervals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from lamina.app.ports.engine import Base, WriteRequest
    from lamina.app.ports.published import Contents, PartitionColumn
    from lamina.graph.model import Column
    from lamina.timeline.interval import Interval

KEPT = "_lamina_kept"
"""Tells rows of the base that are written along from new ones."""
_REFUSED = "Lamina refuses to store a row"
_RAISED = "USER_RAISED_EXCEPTION"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
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
class Batch:
    """What is known before anything runs."""

    request: WriteRequest
    shape: TableShape
    condition: str | None = None
    """Holds for rows inside the interval."""
    time: str | None = None
    remembered: Remembered | None = None
    """Set when the new rows can be compared while they are written."""
    is_measured: bool = True
    """Whether the rows, if they are the whole table, are measured."""

    @property
    def columns(self) -> tuple[PartitionColumn, ...]:
        return self.shape.partition_columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a write job saw of its own rows."""

    rows: int
    content: Content | None = None
    """Of a whole table, or of recorded time where that is remembered."""
    fresh: Content | None = None
    null_times: int = 0

    def of_whole(self) -> Contents:
        """What is to be remembered of a table that was written whole."""
        text = self.content.to_text() if self.content is not None else None
        return {} if text is None else {None: text}


# --- before the job ---------------------------------------------------------------------------------------------------
def plan_batch(
    rows: DataFrame, request: WriteRequest, partition_columns: tuple[PartitionColumn, ...], *, is_measured: bool = True
) -> Batch:
    """The batch of these rows, with the condition that tells its interval from the rest of the table."""
    columns = columns_of(rows.drop(PROBLEM).schema, request.comments)
    shape = TableShape(columns=columns, partition_columns=partition_columns)
    if request.interval is None or request.time_column is None:
        return Batch(request=request, shape=shape, is_measured=is_measured)
    time = find_time_column(columns, request.time_column, request.grain)
    return Batch(
        request=request,
        shape=shape,
        condition=in_interval(time, request.time_column, request.interval),
        time=time.name,
        remembered=_remembered(request, shape, time),
    )


def _remembered(request: WriteRequest, shape: TableShape, time: Column) -> Remembered | None:
    base, declared, interval, recorded = request.base, request.time_column, request.interval, request.recorded
    if base is None or declared is None or interval is None or recorded.is_empty or not has_same_columns(base, shape):
        return None
    again = [unit for unit in request.measured if recorded.covers(unit) and unit in base.head.contents]
    fresh = [unit for unit in request.measured if not recorded.covers(unit)]
    if Intervals.of(again) != recorded or len(fresh) > 1 or Intervals.of([*again, *fresh]) != Intervals.of([interval]):
        return None
    return Remembered(
        contents={unit: base.head.contents[unit] for unit in again},
        recorded=" OR ".join(f"({in_interval(time, declared, interval)})" for interval in recorded),
        fresh=fresh[0] if fresh else None,
    )


def has_same_columns(base: Base, shape: TableShape) -> bool:
    """Whether rows can be compared at all: columns of other names or types make every row another one."""
    before = [(column.name, column.type) for column in base.head.shape.columns]
    return before == [(column.name, column.type) for column in shape.columns]


def widened(frame: DataFrame, base: Base) -> DataFrame:
    """The new rows, with a column that came out narrower than before, as a literal may, in its former type."""
    before = {column.name.casefold(): column.type or "" for column in base.head.shape.columns}
    casts = {
        column.name: sf.col(quote(column.name)).cast(before[column.name.casefold()])
        for column in columns_of(frame.schema, {})
        if column.type != before.get(column.name.casefold(), column.type)
        and can_read_as(column.type or "", before[column.name.casefold()])
    }
    return frame.withColumns(casts) if casts else frame


def check_base(base: Base, shape: TableShape) -> None:
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


# --- rows -------------------------------------------------------------------------------------------------------------
def new_rows(frame: DataFrame, batch: Batch) -> DataFrame:
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


def kept_rows(source: DataFrame, base: Base, batch: Batch) -> DataFrame:
    """Rows of the base outside the interval, in the columns of the new rows; `source` gives rows of the base."""
    known = {column.name.casefold(): column.name for column in base.head.shape.columns}
    selected = [_aligned(column, known.get(column.name.casefold())) for column in batch.shape.columns]
    selected += [sf.col(quote(column.name)) for column in batch.columns if column.is_hidden]
    condition = batch.condition or "false"
    return source.select(*selected).filter(sf.expr(f"NOT coalesce(({condition}), false)"))


def with_kept(rows: DataFrame, kept: DataFrame) -> DataFrame:
    """New rows and rows of the base, told apart."""
    return rows.withColumn(KEPT, sf.lit(False)).unionByName(kept.withColumn(KEPT, sf.lit(True)))


def _aligned(column: Column, old_name: str | None) -> SparkColumn:
    value = sf.lit(None) if old_name is None else sf.col(quote(old_name))
    return value.cast(column.type or "string").alias(column.name)


# --- measuring --------------------------------------------------------------------------------------------------------
class Observed:
    """Rows that are measured by the job that writes them; rows without a time are left out.

    What must not be stored fails the job, so that nothing has to be taken back afterwards: a job may show what it
    writes, and what it measured may get lost.
    """

    def __init__(
        self, rows: DataFrame, batch: Batch, *, is_append: bool = False, keeps_empty_text: bool = False
    ) -> None:
        self._given, self._batch = rows, batch
        is_kept = sf.col(KEPT) if KEPT in rows.columns else sf.lit(is_append)
        has_time = sf.col(quote(batch.time)).isNotNull() if batch.time and not is_append else sf.lit(True)
        self._is_valid = is_kept | has_time
        is_text = [
            not column.is_hidden and column.type == "string" and not keeps_empty_text for column in batch.columns
        ]
        self._texts = [column for column, is_one in zip(batch.columns, is_text, strict=True) if is_one]
        measures = {
            "rows": sf.count_if(~is_kept & has_time),
            "written": sf.count_if(self._is_valid),
            "null_times": sf.count_if(~self._is_valid),
        }
        remembered = None if is_append else batch.remembered
        if (batch.condition is None and batch.is_measured) or remembered is not None:
            rows = with_hash(rows, StructType([rows.schema[column.name] for column in batch.shape.columns]))
            is_again = sf.coalesce(sf.expr(remembered.recorded), sf.lit(False)) if remembered else sf.lit(True)
            measures |= content_measures(~is_kept & is_again)
            if remembered is not None and remembered.fresh is not None:
                measures |= content_measures(~is_kept & ~is_again & has_time, "fresh")
        self._observation = Observation()
        observed = rows.observe(self._observation, *[measure.alias(name) for name, measure in measures.items()])
        if batch.time and not is_append:
            observed = observed.filter(self._is_valid)
        for refused in self._refused():
            observed = observed.filter(sf.when(refused, sf.raise_error(sf.lit(_REFUSED))).otherwise(sf.lit(True)))
        self.rows = observed.drop(KEPT, HASH, PROBLEM)

    def _refused(self) -> list[SparkColumn]:
        """Conditions that hold for rows which must not be stored."""
        has_problem = [sf.col(PROBLEM).isNotNull()] if PROBLEM in self._given.columns else []
        return [*has_problem, *(_is_empty(column) for column in self._texts)]

    @contextmanager
    def writing(self, frame: DataFrame) -> Iterator[None]:
        """Around the job: what it refuses to write is said in words of the model, which gave `frame`.

        Which rows these are is looked up only then.
        """
        try:
            yield
        except Exception as error:
            if self._refused() and condition_of(error) == _RAISED:
                self._explain(frame)
            raise

    def _explain(self, frame: DataFrame) -> None:
        fold = self._batch.request.fold
        if fold is not None and is_keyed(fold.kind):
            check_fold(self._given, frame, fold.kind)
        for column in self._texts:
            if count := self._given.filter(self._is_valid & _is_empty(column)).count():
                raise BadModelResult(
                    f"partition column `{column.name}` holds an empty text or `{NULL_FOLDER}` in "
                    f"{count} {'row' if count == 1 else 'rows'}, which Spark would read back as NULL",
                    hint=f"use another value, such as `coalesce(nullif({column.name}, ''), 'none')`",
                )

    def measured(self, written: int | None, count: Callable[[], int]) -> Measured:
        """What the job saw, once it has run, as far as it agrees with how many rows are `written`.

        A stage that runs twice, as for a sample before rows are sorted or because an executor was lost, sees its rows
        twice; and Spark Connect before 4.2 waits a tenth of a second for what was seen and then does without. New rows
        are counted by `count` then. Of rows seen several times, those without a time were seen as often as the others;
        what else was measured is not known.
        """
        found = self._observation.get
        if "rows" not in found:
            return Measured(rows=count())
        if written is not None and int(found["written"]) != written:
            times = max(1, round(int(found["written"]) / written)) if written else 1
            return Measured(rows=count(), null_times=-(-int(found["null_times"]) // times))
        return Measured(
            rows=int(found["rows"]),
            content=Content.of(found) if "content_rows" in found else None,
            fresh=Content.of(found, "fresh") if "fresh_rows" in found else None,
            null_times=int(found["null_times"]),
        )

    def check(self, written: int, *, may_miss: Callable[[], bool]) -> None:
        """Raise `RowsMissing` when fewer rows are written than the job was given.

        For jobs whose last stage sees the rows: Spark counts what that saw once, however often it runs. Where what was
        seen got lost, rows are counted by computing them again if none is there, or some may have gone elsewhere.
        """
        found = self._observation.get
        if "written" in found:
            check_rows(written, int(found["written"]))
        elif not written or may_miss():
            check_rows(written, self._given.filter(self._is_valid).count())


def count_new(written: DataFrame, batch: Batch) -> int:
    """How many rows of a batch were written, where others may lie beside them that belong to another time or batch."""
    if batch.condition is not None:
        written = written.filter(batch.condition)
    for column in filter(is_attempt, batch.columns):
        written = written.filter(sf.col(quote(column.name)) == str(batch.request.attempt))
    return written.count()


def count_added(table: DataFrame, batch: Batch, written: int | None) -> int:
    """How many rows of a batch are in a table that it changed; `written` is what the table says of that change."""
    return written if batch.condition is None and written is not None else count_new(table, batch)


def _is_empty(column: PartitionColumn) -> SparkColumn:
    """Holds for texts that would come back as NULL from the name of a folder."""
    return sf.coalesce(sf.col(quote(column.name)).isin("", NULL_FOLDER), sf.lit(False))
