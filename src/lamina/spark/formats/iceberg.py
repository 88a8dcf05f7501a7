"""Apache Iceberg: a batch is written to a branch made from what is shown, and the table is moved forward to it.

Moving forward is refused when the table is no longer what the branch was made from, so a late statement does no harm.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, TypeAlias

from pyspark.sql import functions as sf

from lamina.app.ports.engine import OnBranch
from lamina.errors import EngineError, PublishRefused
from lamina.graph.formats import ICEBERG
from lamina.graph.time_partitions import TIME_TRANSFORM
from lamina.spark.formats.batch import Observed, count_added
from lamina.spark.formats.lake import LakeFormat, Layout, fitted, stage, staged_rows
from lamina.spark.kinds.merge import CHANGES
from lamina.spark.rows.compare import Content, content_measures, with_hash
from lamina.spark.rows.partitions import plan_partitions
from lamina.spark.rows.shared_storage import check_files
from lamina.spark.statements import table_name
from lamina.sql.names import quote, text_literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, Row, SparkSession

    from lamina.app.ports.engine import GenerationRequest, Place, TableOptions, WriteRequest
    from lamina.app.ports.published import FastForward, Head, RowAction
    from lamina.graph.kinds import Setting
    from lamina.graph.model import Column
    from lamina.spark.formats.batch import Batch, Measured
    from lamina.spark.formats.lake import Change, Task

_SIZED = re.compile(r"(bucket|truncate)\s*\(\s*(\d+)\s*,\s*(\w+|`(?:[^`]|``)+`)\s*\)", re.IGNORECASE)
_TIMESTAMPS = frozenset({"timestamp", "timestamp_ntz"})
_PLAIN_NAME = re.compile(r"\w+|`(?:[^`]|``)+`")


class IcebergFormat(LakeFormat):
    """Apache Iceberg."""

    table_format = ICEBERG
    keeps_empty_text = True

    def layout(self, request: WriteRequest | GenerationRequest, columns: Sequence[Column]) -> Layout:
        """Transforms as Iceberg has them; other expressions get a hidden column, as on parquet."""
        specs: list[str] = []
        others: list[str] = []
        for text in request.partitioned_by:
            spec = _transform(text.strip(), columns)
            if spec is None:
                others.append(text)
            elif spec not in specs:
                specs.append(spec)
        hidden = tuple(column for column in plan_partitions(others, columns) if column.is_hidden)
        return Layout(
            columns=hidden,
            partitioned_by=(*specs, *(quote(column.name) for column in hidden)),
            ordered_by=request.table.clustered_by,
        )

    def properties(self, options: TableOptions, _names: Sequence[str]) -> Mapping[str, Setting]:
        """The format of its files is a property of the table.

        Rows that are changed by key are marked as gone: a file is not written anew because a few of its rows change.
        """
        found: dict[str, Setting] = {}
        if options.storage_format:
            found["write.format.default"] = options.storage_format.lower()
        if options.changes_by_key:
            found["write.merge.mode"] = "merge-on-read"
        return found

    def laid_out(self, _session: SparkSession, rows: DataFrame, _batch: Batch) -> DataFrame:
        """Iceberg brings the rows of a partition together by itself (`write.distribution-mode`)."""
        return rows

    def snapshot_of(self, session: SparkSession, table: str) -> int | None:
        """The table's newest snapshot, which stays as long as it is what the head names."""
        snapshot = snapshot_of_reference(session, table, "main")
        if snapshot is not None:
            branch = _branch(int(table.rpartition("_")[2]))
            session.sql(f"ALTER TABLE {table_name(table)} CREATE BRANCH {quote(branch)} AS OF VERSION {snapshot}")
        return snapshot

    def rows_written(self, session: SparkSession, table: str, snapshot: int | None) -> int | None:
        """See `LakeFormat`."""
        if snapshot is None:
            return None
        text = f"SELECT summary['added-records'] FROM {table_name(table)}.snapshots WHERE snapshot_id = {snapshot}"
        told = session.sql(text).collect()
        return int(told[0][0] or 0) if told else None

    def data_files(self, session: SparkSession, table: str, snapshot: int | None) -> list[str]:
        """See `LakeFormat`."""
        if snapshot is None:
            return []
        text = f"SELECT file_path FROM {table_name(table)}.files VERSION AS OF {snapshot}"
        return [str(row[0]) for row in session.sql(text).collect()]

    def change(self, task: Task, change: Change) -> tuple[Measured, Place, DataFrame]:
        """Write to a branch; what a MERGE takes lies in the batch's folder first, where it is checked."""
        session, head = task.session, change.base.head
        is_staged = change.action.name == "merge"
        branch, former = _branch(task.request.attempt), _branch(head.attempt)
        begin = _where_it_is_now(session, head)
        target = f"{table_name(head.generation)}.{quote(f'branch_{branch}')}"
        moment = "" if begin is None else f" AS OF VERSION {begin}"
        measured = stage(task, change, keeps_empty_text=True) if is_staged else None
        session.sql(f"ALTER TABLE {table_name(head.generation)} CREATE BRANCH {quote(branch)}{moment}")
        task.reach("write.half_folder")
        if measured is not None:
            rows = staged_rows(session, task.path, change.batch.shape)
            _apply(session, rows, head, target, change.action)
        else:
            observed = Observed(change.rows, change.batch, keeps_empty_text=True)
            with observed.writing(task.frame):
                _apply(session, observed.rows, head, target, change.action)
        snapshot = snapshot_of_reference(session, head.generation, branch)
        if snapshot is None:
            raise EngineError(f"branch `{branch}` of `{head.generation}` is gone", hint="run the command again")
        check_files(session, lambda: self.data_files(session, head.generation, snapshot))
        shown = session.table(target)
        if measured is None:
            written = self.rows_written(session, head.generation, snapshot) if snapshot != begin else 0
            measured = observed.measured(written, lambda: count_added(shown, change.batch, written))
        return measured, OnBranch(branch=branch, snapshot=snapshot, former=former), shown

    def copy(self, session: SparkSession, request: GenerationRequest, source: Head) -> None:
        """Iceberg shares no files between tables, so rows are copied."""
        self.copy_rows(session, request, source)


def _branch(attempt: int) -> str:
    return f"lamina_{attempt}"


def _where_it_is_now(session: SparkSession, head: Head) -> int | None:
    """The snapshot to go on from: what the head names, or what was made from that by rewriting files alone.

    Whoever keeps tables small and fast does that. Rows that somebody else wrote are not taken for the model's. Where
    snapshots in between have expired, the rows themselves are compared.
    """
    main = snapshot_of_reference(session, head.generation, "main")
    if main == head.snapshot or main is None:
        return main
    made_from = ancestry(session.sql(snapshots_text(head.generation)).collect())
    how = way_from(made_from, main, frozenset({head.snapshot}))
    if how == "changed" or (how == "forgotten" and not _has_rows_of(session, head, main)):
        raise _changed_by_others(head)
    return main


def _has_rows_of(session: SparkSession, head: Head, snapshot: int) -> bool:
    """Whether another snapshot of the table holds the rows of a head; reads both."""
    if head.snapshot is None:
        return False
    found = []
    for each in (head.snapshot, snapshot):
        rows = session.sql(f"SELECT * FROM {table_name(head.generation)} VERSION AS OF {each}")
        measures = [measure.alias(name) for name, measure in content_measures(sf.lit(True)).items()]
        (row,) = with_hash(rows, rows.schema).agg(*measures).collect()
        found.append(Content.of(row.asDict()))
    return found[0].is_same(found[1])


Ancestry: TypeAlias = dict[int, tuple[int | None, str]]
"""From which snapshot each one was made, and how."""

Way: TypeAlias = Literal["rewritten", "changed", "forgotten"]
"""Files alone were rewritten; rows may have changed; files were rewritten last, and what came before is forgotten."""


def snapshots_text(table: str) -> str:
    """A query for what `ancestry` takes."""
    return f"SELECT snapshot_id, parent_id, operation FROM {table_name(table)}.snapshots"


def ancestry(rows: Sequence[Row]) -> Ancestry:
    """How the snapshots of a table came about."""
    return {row.snapshot_id: (row.parent_id, row.operation) for row in rows}


def lineage(made_from: Ancestry, snapshot: int | None) -> frozenset[int | None]:
    """A snapshot and all that it came from; the last is None, the table without rows."""
    found = {snapshot}
    while snapshot is not None:
        snapshot = made_from.get(snapshot, (None, ""))[0]
        found.add(snapshot)
    return frozenset(found)


def way_from(made_from: Ancestry, snapshot: int, origins: frozenset[int | None]) -> Way:
    """How a snapshot came from one of others."""
    found: int | None = snapshot
    while found not in origins:
        if found is not None and found not in made_from:
            return "forgotten"
        found, operation = made_from.get(found, (None, "")) if found is not None else (None, "")
        if operation != "replace":
            return "changed"
    return "rewritten"


def _changed_by_others(head: Head) -> PublishRefused:
    catalog, table = split_catalog(head.generation)
    back = f"CALL {catalog}.system.set_current_snapshot('{table}', {head.snapshot})"
    return PublishRefused(
        f"rows of `{head.generation}` were changed by something other than Lamina",
        hint=f"put it back to what is recorded: `{back}`",
    )


def _apply(session: SparkSession, rows: DataFrame, head: Head, target: str, action: RowAction) -> None:
    match action.name:
        case "merge":
            rows.createOrReplaceTempView(CHANGES)
            session.sql(f"MERGE INTO {target} AS target {action.text}")
        case "append":
            fitted(session, rows, head.generation).writeTo(target).append()
        case "replace_where" | "replace_matching":
            # Overwriting by a filter can only drop whole files; deleting rewrites those that hold other rows too.
            session.sql(f"DELETE FROM {target} WHERE {action.text}")
            fitted(session, rows, head.generation).writeTo(target).append()
        case "replace_partitions":
            fitted(session, rows, head.generation).writeTo(target).overwritePartitions()


def snapshot_of_reference(session: SparkSession, table: str, name: str) -> int | None:
    """The snapshot that a branch of a table stands for."""
    rows = session.sql(reference_text(table, name)).collect()
    return int(rows[0][0]) if rows else None


def reference_text(table: str, name: str) -> str:
    """A query for the snapshot that a branch of a table stands for."""
    return f"SELECT snapshot_id FROM {table_name(table)}.refs WHERE name = {text_literal(name)}"


def fast_forward_text(publish: FastForward) -> str:
    """The statement that lets a table have what its branch holds."""
    catalog, table = split_catalog(publish.generation)
    return (
        f"CALL {quote(catalog)}.system.fast_forward("
        f"table => {text_literal(table_name(table))}, branch => 'main', to => {text_literal(publish.branch)})"
    )


def drop_branch_text(table: str, branch: str) -> str:
    """The statement that forgets a branch."""
    return f"ALTER TABLE {table_name(table)} DROP BRANCH IF EXISTS {quote(branch)}"


def is_landed_text(publish: FastForward) -> str:
    """A query that has a row when the table is at the branch's snapshot, or came from there."""
    return (
        f"SELECT 1 FROM {table_name(publish.generation)}.history "
        f"WHERE snapshot_id = {publish.head.snapshot} AND is_current_ancestor LIMIT 1"
    )


def split_catalog(name: str) -> tuple[str, str]:
    """A table's catalog and its name in there."""
    first, _, rest = name.partition(".")
    return (first, rest) if "." in rest else ("spark_catalog", name)


def _transform(text: str, columns: Sequence[Column]) -> str | None:
    """What Iceberg partitions by for an expression of `partitioned_by`, where it has a word for it."""
    by_name = {column.name.casefold(): column for column in columns}

    def find(name: str) -> Column | None:
        return by_name.get(name.strip("`").replace("``", "`").casefold())

    if _PLAIN_NAME.fullmatch(text) and (column := find(text)) is not None:
        return f"days({quote(column.name)})" if column.type in _TIMESTAMPS else quote(column.name)
    found = TIME_TRANSFORM.fullmatch(text)
    if found is not None and (column := find(found[2])) is not None and column.type in _TIMESTAMPS | {"date"}:
        unit = found[1].lower().rstrip("s") + "s"
        return None if unit == "hours" and column.type == "date" else f"{unit}({quote(column.name)})"
    sized = _SIZED.fullmatch(text)
    if sized is not None and (column := find(sized[3])) is not None:
        return f"{sized[1].lower()}({sized[2]}, {quote(column.name)})"
    return None
