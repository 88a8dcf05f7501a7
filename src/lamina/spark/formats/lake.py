"""Tables that keep a history of their own: what Delta and Iceberg have in common.

A table that holds everything that readers shall see is made aside and shown as a whole: first loads, whole tables, and
tables whose columns no longer fit. Everything else changes the table that is shown. How that is kept from readers until
it is decided is the format's own way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pyspark.sql import functions as sf

from lamina.app.ports.engine import NewTable, Written
from lamina.app.ports.published import RowAction
from lamina.app.rendering.models import head_relation, stored_query
from lamina.errors import BadModelResult, StorageMissing
from lamina.graph.kinds import IncrementalByUniqueKey, appends, is_keyed
from lamina.spark.formats.batch import (
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
from lamina.spark.kinds.merge import changes, merge_text
from lamina.spark.kinds.problems import PROBLEM
from lamina.spark.rows.shared_storage import check_files, may_scatter
from lamina.spark.rows.types import can_read_as, columns_of
from lamina.spark.rows.written_files import read_back
from lamina.spark.statements import ATTEMPT_PROPERTY, create_table, table_name
from lamina.sql.names import quote

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from lamina.app.ports.engine import Base, Fold, GenerationRequest, Place, TableOptions, WriteRequest
    from lamina.app.ports.machine import Reach
    from lamina.app.ports.published import Head, PartitionColumn, TableShape
    from lamina.graph.formats import TableFormat
    from lamina.graph.kinds import Setting
    from lamina.graph.model import Column
    from lamina.spark.formats.batch import Batch, Measured


_TIMES = frozenset({"date", "timestamp", "timestamp_ntz"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How the rows of a table are laid out: the text that creates it so, and columns that exist only for that."""

    columns: tuple[PartitionColumn, ...] = ()
    partitioned_by: tuple[str, ...] = ()
    clustered_by: tuple[str, ...] = ()
    ordered_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One batch to write, with the session to do it in."""

    session: SparkSession
    request: WriteRequest
    frame: DataFrame
    """What the model gave."""
    root: str
    reach: Reach

    @property
    def path(self) -> str:
        """The batch's own folder."""
        return f"{self.root}/{self.request.folder}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What is to be done to the table that is shown, with which rows."""

    batch: Batch
    rows: DataFrame
    action: RowAction
    base: Base


class LakeFormat(ABC):
    """What Delta and Iceberg do in the same way."""

    table_format: ClassVar[TableFormat]
    keeps_empty_text: ClassVar[bool]
    """Whether an empty text in a partition column comes back as it is."""

    def write(self, session: SparkSession, frame: DataFrame, request: WriteRequest, root: str, reach: Reach) -> Written:
        """Write one batch; see the port for what is promised."""
        task = Task(session=session, request=request, frame=frame, root=root, reach=reach)
        fold, base = request.fold, request.base
        if base is None or (fold is None and request.interval is None) or (fold is not None and fold.begins_anew):
            rows = folded(None, frame, fold) if fold is not None and is_keyed(fold.kind) else frame
            return self._write_table(task, rows)
        if fold is not None and is_keyed(fold.kind):
            return self._write_keyed(task, base, fold)
        return self._write_rows(task, base, widened(frame, base))

    # --- what formats do in their own way -----------------------------------------------------------------------------
    @abstractmethod
    def layout(self, request: WriteRequest | GenerationRequest, columns: Sequence[Column]) -> Layout:
        """How the table's rows are laid out."""

    @abstractmethod
    def properties(self, options: TableOptions, names: Sequence[str]) -> Mapping[str, Setting]:
        """The properties that a table with columns of these names is made with."""

    @abstractmethod
    def snapshot_of(self, session: SparkSession, table: str) -> int | None:
        """The table's newest version."""

    @abstractmethod
    def rows_written(self, session: SparkSession, table: str, snapshot: int | None) -> int | None:
        """How many rows the write that made a version of the table has put there, as the table has recorded it."""

    @abstractmethod
    def data_files(self, session: SparkSession, table: str, snapshot: int | None) -> list[str]:
        """The files that hold the rows of a version of the table, by the table's own list."""

    @abstractmethod
    def change(self, task: Task, change: Change) -> tuple[Measured, Place, DataFrame]:
        """Write a change in the format's own way; answers what it measured, where it lies, and its rows to read again.

        The last may hold rows of other times too.
        """

    @abstractmethod
    def copy(self, session: SparkSession, request: GenerationRequest, source: Head) -> None:
        """Make a table with the rows of a head of another one."""

    def copy_rows(self, session: SparkSession, request: GenerationRequest, source: Head) -> None:
        """Make a table with the rows of a head of another one, in files of its own."""
        self.write_copy(session, request, source, stored_rows(session, source))

    def write_copy(self, session: SparkSession, request: GenerationRequest, source: Head, rows: DataFrame) -> None:
        """Make a table that is laid out like a head, with these rows."""
        name = request.table.generation
        self.create(session, name, source.shape, self.layout(request, source.shape.columns), request.table)
        fitted(session, rows, name).writeTo(table_name(name)).append()

    def missing_files(self, _session: SparkSession, _head: Head) -> tuple[str, ...]:
        """The files of a head's table that are gone; only where tables read files of others is it worth a look."""
        return ()

    def mend(self, _session: SparkSession, _request: GenerationRequest, source: Head) -> None:
        """Make a table with the rows of a head of which files are gone; `StorageMissing` where these are lost."""
        raise not_mended(source)

    def make_copy(self, session: SparkSession, request: GenerationRequest) -> int | None:
        """A new table with the rows of another one's head; answers its version."""
        if request.source is None:
            raise TypeError(request)
        if request.is_mended:
            self.mend(session, request, request.source)
        else:
            self.copy(session, request, request.source)
        return self.snapshot_of(session, request.table.generation)

    def laid_out(self, session: SparkSession, rows: DataFrame, batch: Batch) -> DataFrame:
        """The rows as they are to be written, with those of a partition together where that saves files."""
        return distributed(session, rows, batch)

    # --- new tables ---------------------------------------------------------------------------------------------------
    def _write_table(self, task: Task, rows: DataFrame, kept: DataFrame | None = None) -> Written:
        request = task.request
        columns = columns_of(rows.drop(PROBLEM).schema, request.comments)
        layout = self.layout(request, columns)
        is_whole = request.fold is None or is_keyed(request.fold.kind)
        batch = plan_batch(rows, request, layout.columns, is_measured=is_whole)
        new = new_rows(rows, batch)
        if kept is not None and request.base is not None:
            new = with_kept(new, kept_rows(kept, request.base, batch))
        name = request.table.generation
        self.create(task.session, name, batch.shape, layout, request.table)
        task.reach("write.half_folder")

        def read_table(_stored: StructType | None = None) -> DataFrame:
            return task.session.table(table_name(name))

        new = self.laid_out(task.session, new, batch)
        observed = Observed(new, batch, keeps_empty_text=self.keeps_empty_text)
        with observed.writing(task.frame):
            observed.rows.writeTo(table_name(name)).append()
        snapshot = self.snapshot_of(task.session, name)
        check_files(task.session, lambda: self.data_files(task.session, name, snapshot))
        written = self.rows_written(task.session, name, snapshot)
        measured = observed.measured(written, lambda: count_new(read_table(), batch))
        if kept is None:
            compared = compare(task.frame, batch, measured, read_table, read_table, has_old=False)
        else:
            compared = Compared(changed=request.recorded)
        return _written(batch, measured, NewTable(snapshot=snapshot), compared, statements=3)

    def create(
        self, session: SparkSession, name: str, shape: TableShape, layout: Layout, options: TableOptions
    ) -> None:
        """Make an empty table with all its comments and properties."""
        properties = {
            **self.properties(options, [column.name for column in shape.columns]),
            **options.properties,
            ATTEMPT_PROPERTY: name.rpartition("_")[2],
        }
        hidden = [column for column in layout.columns if column.is_hidden]
        columns: list[Column | PartitionColumn] = [*shape.columns, *hidden]
        session.sql(
            create_table(
                name,
                columns,
                table_format=self.table_format.name,
                partitioned_by=layout.partitioned_by,
                clustered_by=layout.clustered_by,
                comment=options.description,
                properties=properties,
            )
        )
        if layout.ordered_by:
            session.sql(f"ALTER TABLE {table_name(name)} WRITE ORDERED BY {', '.join(layout.ordered_by)}")

    # --- changes of the table that is shown ---------------------------------------------------------------------------
    def _write_rows(self, task: Task, base: Base, frame: DataFrame) -> Written:
        request = task.request
        layout = self.layout(request, columns_of(frame.schema, request.comments))
        batch = plan_batch(frame, request, layout.columns, is_measured=False)
        check_base(base, batch.shape)
        if not self._make_room(task.session, base, batch.shape):
            return self._rewrite(task, base, frame)
        rows = new_rows(frame, batch)
        change = Change(batch=batch, rows=rows, action=_action(request, batch), base=base)
        measured, place, written = self.change(task, change)
        compared = compare(
            frame,
            batch,
            measured,
            lambda _stored: written,
            lambda: rows_at(task.session, base.head),
            has_old=True,
        )
        if request.interval is None:
            compared = Compared()
        return _written(batch, measured, place, compared, statements=2)

    def _rewrite(self, task: Task, base: Base, frame: DataFrame) -> Written:
        """A table in which a column has another type: everything that stays is written along, in that type."""
        fold = task.request.fold
        if fold is not None and not appends(fold.kind):
            raise BadModelResult(
                "the type of a column has changed, and the partitions that stay hold the former one",
                hint="cast the column to its former type in the query, or change the model so that a new version is "
                "built",
            )
        return self._write_table(task, frame, kept=stored_rows(task.session, base.head))

    def _write_keyed(self, task: Task, base: Base, fold: Fold) -> Written:
        session, request = task.session, task.request
        old = rows_at(session, base.head)
        # The first rows of a history are valid from the beginning of time. Looking costs as much as a small MERGE, so
        # others do not.
        if not isinstance(fold.kind, IncrementalByUniqueKey) and old.isEmpty():
            return self._write_table(task, folded(None, task.frame, fold))
        changed = changes(old, task.frame, fold)
        columns = columns_of(changed.drop(PROBLEM).schema, request.comments)
        layout = self.layout(request, columns)
        batch = plan_batch(changed, request, layout.columns, is_measured=False)
        if not is_keyed(fold.kind) or not self._make_room(session, base, batch.shape):
            return self._write_table(task, folded(old, task.frame, fold))
        stored = session.table(table_name(base.head.generation)).columns
        hidden = [column for column in layout.columns if column.is_hidden]
        action = RowAction(name="merge", text=merge_text(fold.kind, columns, hidden, stored))
        change = Change(batch=batch, rows=new_rows(changed, batch), action=action, base=base)
        measured, place, _ = self.change(task, change)
        return _written(batch, measured, place, Compared(), statements=2)

    def _make_room(self, session: SparkSession, base: Base, shape: TableShape) -> bool:
        """Add columns that the shown table lacks, which no reader sees; False when one would need another type."""
        name = table_name(base.head.generation)
        stored = {column.name.casefold(): column.type or "" for column in columns_of(session.table(name).schema, {})}
        hidden = [column for column in shape.partition_columns if column.is_hidden]
        if any(column.name.casefold() not in stored for column in hidden):
            return False
        for column in shape.columns:
            found = stored.get(column.name.casefold())
            if found is not None and not can_read_as(column.type or "", found):
                return False
        added = [column for column in shape.columns if column.name.casefold() not in stored]
        if added:
            listed = ", ".join(f"{quote(column.name)} {column.type}" for column in added)
            session.sql(f"ALTER TABLE {name} ADD COLUMNS ({listed})")
        return True


# --- reading ----------------------------------------------------------------------------------------------------------
def not_mended(head: Head) -> StorageMissing:
    """The error for rows that are nowhere to be found."""
    return StorageMissing(
        f"files of `{head.generation}` are gone, and no other table is known to hold their rows",
        hint="put the files back from a backup",
    )


def rows_at(session: SparkSession, head: Head) -> DataFrame:
    """The rows of a head, with the columns that readers see."""
    columns = ", ".join(quote(column.name) for column in head.shape.columns)
    return session.sql(f"SELECT {columns} FROM {head_relation(head)}")


def stored_rows(session: SparkSession, head: Head) -> DataFrame:
    """The rows of a head with every column of the table."""
    return session.sql(stored_query(head))


def staged_rows(session: SparkSession, path: str, shape: TableShape) -> DataFrame:
    """The rows that lie in a folder, with hidden columns."""
    stored = [(column.name, column.type) for column in shape.columns]
    stored += [(column.name, column.type) for column in shape.partition_columns if column.is_hidden]
    return read_back(session, path, ", ".join(f"{quote(name)} {type_text}" for name, type_text in stored))


def fitted(session: SparkSession, rows: DataFrame, table: str) -> DataFrame:
    """The rows with exactly the columns of a table, in its types; NULL where they have none."""
    known = {name.casefold(): name for name in rows.columns}
    return rows.select(
        *[
            (sf.col(quote(known[field.name.casefold()])) if field.name.casefold() in known else sf.lit(None))
            .cast(field.dataType)
            .alias(field.name)
            for field in session.table(table_name(table)).schema.fields
        ]
    )


def stage(task: Task, change: Change, *, keeps_empty_text: bool) -> Measured:
    """Write the rows of a change into the batch's folder and see to it that they may be used."""
    rows = change.rows
    if change.action.name != "merge":
        # What a table reads back from files of few partitions each, it writes to few files again.
        rows = distributed(task.session, rows, change.batch)
    observed = Observed(rows, change.batch, keeps_empty_text=keeps_empty_text)
    task.reach("write.half_folder")
    with observed.writing(task.frame):
        observed.rows.write.mode("error").parquet(task.path)
    there = staged_rows(task.session, task.path, change.batch.shape)
    written = there.count()
    observed.check(written, may_miss=lambda: may_scatter(task.session, task.root))
    return observed.measured(written, lambda: count_new(there, change.batch))


def _action(request: WriteRequest, batch: Batch) -> RowAction:
    if batch.condition is not None:
        types = {column.name: column.type for column in batch.shape.columns}
        is_plain = types.get(batch.time or "") in _TIMES
        return RowAction(name="replace_where" if is_plain else "replace_matching", text=batch.condition)
    fold = request.fold
    if fold is not None and appends(fold.kind):
        return RowAction(name="append")
    return RowAction(name="replace_partitions")


def _written(batch: Batch, measured: Measured, place: Place, compared: Compared, statements: int) -> Written:
    return Written(
        rows=measured.rows,
        shape=batch.shape,
        statements=statements + compared.jobs,
        null_times=measured.null_times,
        changed=compared.changed,
        contents=compared.contents,
        place=place,
    )
