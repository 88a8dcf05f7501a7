"""Delta Lake: changes are transactions that carry a number, and the table takes each number once.

Rows that an audit may hold back lie in the batch's folder until they are decided; others are written by the transaction
itself, which is decided right before.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from lamina.app.ports.engine import Aside, Landing, Shown
from lamina.errors import BadModelResult
from lamina.graph.formats import DELTA
from lamina.spark.errors import is_failure_of_spark
from lamina.spark.formats.batch import Observed, count_added
from lamina.spark.formats.delta_files import data_files, mended_rows, missing_files
from lamina.spark.formats.lake import LakeFormat, Layout, fitted, not_mended, stage, staged_rows
from lamina.spark.kinds.merge import CHANGES
from lamina.spark.rows.partitions import plan_partitions
from lamina.spark.rows.shared_storage import may_scatter
from lamina.spark.statements import properties_text, table_name
from lamina.sql.names import quote

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from lamina.app.ports.engine import GenerationRequest, Place, TableOptions, WriteRequest
    from lamina.app.ports.published import CommitRows, Head, RowAction, WriteThrough
    from lamina.graph.kinds import Setting
    from lamina.graph.model import Column
    from lamina.spark.formats.batch import Measured
    from lamina.spark.formats.lake import Change, Task

_LAST_VERSION = "spark.databricks.delta.lastCommitVersionInSession"
_FEW, _MANY = 5, 1000
"""How much of a table's history is looked through."""
_RETENTION = {
    "delta.deletedFileRetentionDuration": "interval 1 week",
    "delta.logRetentionDuration": "interval 30 days",
}
"""How long a table keeps what it no longer needs where nobody says otherwise: Delta's own defaults."""
_LENT = dict.fromkeys(_RETENTION, "interval 36500 days")
_ROWS_WRITTEN = "operationMetrics.numOutputRows"
_NEEDS_MAPPING = re.compile(r"[ ,;{}()\n\t=]")


class DeltaFormat(LakeFormat):
    """Delta Lake."""

    table_format = DELTA
    keeps_empty_text = False

    def layout(self, request: WriteRequest | GenerationRequest, columns: Sequence[Column]) -> Layout:
        """Partition columns as on parquet, or clustering instead."""
        clustered = request.table.clustered_by
        if clustered:
            return Layout(clustered_by=tuple(_column_for(text, columns) for text in clustered))
        planned = plan_partitions(request.partitioned_by, columns)
        return Layout(columns=planned, partitioned_by=tuple(quote(column.name) for column in planned))

    def properties(self, options: TableOptions, names: Sequence[str]) -> Mapping[str, Setting]:
        """Names with blanks or brackets need columns to be told apart by number.

        Rows that are changed by key are marked as gone: a file is not written anew because a few of its rows change.
        """
        found: dict[str, Setting] = {}
        if any(_NEEDS_MAPPING.search(name) for name in names):
            found["delta.columnMapping.mode"] = "name"
        if options.changes_by_key:
            found["delta.enableDeletionVectors"] = True
        return found

    def snapshot_of(self, session: SparkSession, table: str) -> int | None:
        """The table's newest version, which this session has made if it has made any."""
        made = session.conf.get(_LAST_VERSION, None)
        if made is not None:
            return int(made)
        found = session.sql(f"DESCRIBE HISTORY {table_name(table)} LIMIT 1").collect()
        return int(found[0]["version"]) if found else None

    def rows_written(self, session: SparkSession, table: str, snapshot: int | None) -> int | None:
        """See `LakeFormat`."""
        return rows_of_version(session, table, snapshot)

    def data_files(self, session: SparkSession, table: str, snapshot: int | None) -> list[str]:
        """See `LakeFormat`."""
        return data_files(session, table, snapshot)

    def missing_files(self, session: SparkSession, head: Head) -> tuple[str, ...]:
        """See `LakeFormat`; a clone names files that another table may have lost."""
        return missing_files(session, head)

    def mend(self, session: SparkSession, request: GenerationRequest, source: Head) -> None:
        """See `LakeFormat`; where files are gone, those that the lender wrote in their place are taken."""
        found = mended_rows(session, source)
        if found is None:
            raise not_mended(source)
        rows, count = found
        self.write_copy(session, request, source, rows)
        (copied,) = session.sql(f"SELECT count(*) FROM {table_name(request.table.generation)}").collect()
        if copied[0] != count:
            raise not_mended(source)

    def change(self, task: Task, change: Change) -> tuple[Measured, Place, DataFrame]:
        """Write aside what must wait, and everything else by the transaction itself."""
        decide, session = task.request.write_through, task.session
        # What is its own publish cannot be looked at before it is shown.
        may_miss = may_scatter(session, task.root)
        if decide is None or may_miss or change.action.name == "merge" or not task.request.recorded.is_empty:
            measured = stage(task, change, keeps_empty_text=self.keeps_empty_text)
            return measured, Aside(action=change.action), staged_rows(session, task.path, change.batch.shape)
        rows = self.laid_out(session, change.rows, change.batch)
        observed = Observed(rows, change.batch, keeps_empty_text=self.keeps_empty_text)
        publish = decide(change.batch.shape)
        task.reach("write.half_folder")
        number_writes(session, publish)
        table = change.base.head.generation
        with observed.writing(task.frame):
            apply_rows(session, observed.rows, table, change.action)
        snapshot = landed_version(session, publish)
        shown = session.sql(f"SELECT * FROM {table_name(table)} VERSION AS OF {snapshot}")
        written = self.rows_written(session, table, snapshot)
        measured = observed.measured(written, lambda: count_added(shown, change.batch, written))
        return measured, Shown(publish=publish, snapshot=snapshot), shown

    def copy(self, session: SparkSession, request: GenerationRequest, source: Head) -> None:
        """A clone: the same files under another name, which the table that lends them keeps from now on."""
        if request.table.owns_files:
            self.copy_rows(session, request, source)
            return
        _lend(session, source.generation)
        moment = "" if source.snapshot is None else f" VERSION AS OF {source.snapshot}"
        own = {**_RETENTION, **{key: value for key, value in request.table.properties.items() if key in _RETENTION}}
        name, lender = table_name(request.table.generation), table_name(source.generation)
        session.sql(f"CREATE TABLE {name} SHALLOW CLONE {lender}{moment} TBLPROPERTIES ({properties_text(own)})")


def _lend(session: SparkSession, table: str) -> None:
    """Have a table keep files that it no longer needs, because a clone reads them; before that is made.

    VACUUM goes by these properties unless it is told how long to RETAIN. A clone of a clone reads files of both, and
    the first of them lends already.
    """
    found = {row.key: row.value for row in session.sql(f"SHOW TBLPROPERTIES {table_name(table)}").collect()}
    if any(found.get(key) != value for key, value in _LENT.items()):
        session.sql(f"ALTER TABLE {table_name(table)} SET TBLPROPERTIES ({properties_text(_LENT)})")


def commit(session: SparkSession, publish: CommitRows, root: str) -> int | None:
    """Carry out a change whose rows lie in a folder; done twice, the table skips it. Answers the version it made."""
    rows = staged_rows(session, f"{root}/{publish.folder}", publish.head.shape)
    number_writes(session, publish)
    try:
        apply_rows(session, rows, publish.generation, publish.action)
    except Exception as error:
        if not is_failure_of_spark(error):
            raise
        landed = find_landing(session, publish)
        if landed is None:
            raise
        return landed.snapshot
    return landed_version(session, publish)


def apply_rows(session: SparkSession, rows: DataFrame, table: str, action: RowAction) -> None:
    """Put rows into a table in one transaction of this session."""
    target = table_name(table)
    match action.name:
        case "merge":
            rows.createOrReplaceTempView(CHANGES)
            session.sql(f"MERGE INTO {target} AS target {action.text}")
        case "append":
            fitted(session, rows, table).writeTo(target).append()
        case "replace_where":
            fitted(session, rows, table).writeTo(target).overwrite(sf.expr(action.text))
        case "replace_matching":
            # Filters know columns and values, but not the functions that read times in text. Conditions of every sort
            # are taken as text, and only where the table is named by its folder: by name they are left out in silence.
            (detail,) = session.sql(f"DESCRIBE DETAIL {target}").select("location").collect()
            writer = fitted(session, rows, table).write.format("delta").mode("overwrite")
            writer.option("replaceWhere", action.text).save(detail.location)
        case "replace_partitions":
            fitted(session, rows, table).writeTo(target).overwritePartitions()


def number_writes(session: SparkSession, publish: CommitRows | WriteThrough, mark: str | None = None) -> None:
    """Have every write of a session carry the publish's number; the session is used for nothing else."""
    session.conf.set("spark.databricks.delta.write.txnAppId", publish.writer)
    session.conf.set("spark.databricks.delta.write.txnVersion", str(publish.transaction))
    session.conf.set("spark.databricks.delta.commitInfo.userMetadata", mark or _mark(publish))


def landed_version(session: SparkSession, publish: CommitRows | WriteThrough) -> int | None:
    """The version that a write of this session made; where it made none, the one that holds it already."""
    made = session.conf.get(_LAST_VERSION, None)
    if made is not None:
        return int(made)
    found = find_landing(session, publish)
    if found is not None:
        return found.snapshot
    newest = session.sql(f"DESCRIBE HISTORY {table_name(publish.generation)} LIMIT 1").collect()
    return int(newest[0]["version"]) if newest else None


def find_landing(session: SparkSession, publish: CommitRows | WriteThrough) -> Landing | None:
    """The version that carries the publish, found in the table's history."""
    history = session.sql(f"DESCRIBE HISTORY {table_name(publish.generation)} LIMIT {_MANY}")
    found = history.filter(sf.col("userMetadata") == _mark(publish)).select("version", _ROWS_WRITTEN).collect()
    return Landing(snapshot=int(found[0][0]), rows=_number(found[0][1])) if found else None


def rows_of_version(session: SparkSession, table: str, version: int | None) -> int | None:
    """How many rows the transaction of a version wrote, as the table itself has recorded it."""
    for limit in (_FEW, _MANY):
        history = session.sql(f"DESCRIBE HISTORY {table_name(table)} LIMIT {limit}")
        told = history.filter(f"version = {version}").select(_ROWS_WRITTEN).collect()
        if told:
            return _number(told[0][0])
    return None


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


def fence(session: SparkSession, publish: CommitRows | WriteThrough) -> Landing | None:
    """Use the publish's number up, so that it can never land any more; answers where it is if it had landed."""
    number_writes(session, publish, f"lamina fence {publish.attempt}")
    target = table_name(publish.generation)
    session.sql(f"INSERT INTO {target} SELECT * FROM {target} WHERE false")
    return find_landing(session, publish)


def _mark(publish: CommitRows | WriteThrough) -> str:
    return f"lamina {publish.writer} {publish.attempt}"


def _column_for(text: str, columns: Sequence[Column]) -> str:
    name = text.strip().strip("`")
    found = next((column.name for column in columns if column.name.casefold() == name.casefold()), None)
    if found is None:
        raise BadModelResult(
            f"`clustered_by`: `{text}` is not one of the output's columns",
            hint="Delta tables are clustered by columns, not by expressions",
        )
    return quote(found)
