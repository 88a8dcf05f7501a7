"""Asking audits about rows that were written aside: all of them in one statement, on the files that would be shown."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as sf

from lamina.app.ports.engine import Aside, AuditFinding, NewTable, OnBranch, Shown, ShownRows
from lamina.app.rendering.partitions import outside
from lamina.errors import Cancelled, LaminaError
from lamina.graph.kinds import appends, is_keyed
from lamina.spark.formats.lake import rows_at, staged_rows, stored_rows
from lamina.spark.kinds.merge import after_merge
from lamina.spark.rows.output import find_time_column, in_interval
from lamina.spark.statements import table_name
from lamina.sql.names import quote

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame, SparkSession

    from lamina.app.ports.engine import AuditQuery, AuditRequest, Base, Fold, StagedRows
    from lamina.sql.fragment import Fragment

    Failures = Callable[[str, str, Fragment | None], AbstractContextManager[None]]


def ask_audits(session: SparkSession, request: AuditRequest, root: str, failures: Failures) -> tuple[AuditFinding, ...]:
    """What every audit found; `failures` turns what Spark raises into an error that says what was being done."""
    if isinstance(request.staged, ShownRows):
        _shown(session, request.staged).createOrReplaceTempView(request.view)
    elif request.staged is not None:
        _staged(session, request.staged, f"{root}/{request.folder}").createOrReplaceTempView(request.view)
    counts = _counts(session, request, failures)
    return tuple(
        AuditFinding(query=query, rows=rows, kept_at=_keep(session, request, root, index, query) if rows else None)
        for index, (query, rows) in enumerate(zip(request.queries, counts, strict=True))
    )


def _staged(session: SparkSession, staged: StagedRows, path: str) -> DataFrame:
    rows, shape = _rows_of(session, staged, path), staged.shape
    if staged.interval is not None and staged.time_column is not None:
        time = find_time_column(shape.columns, staged.time_column)
        rows = rows.filter(in_interval(time, staged.time_column, staged.interval))
    return rows.select(*[sf.col(quote(column.name)) for column in shape.columns])


def _rows_of(session: SparkSession, staged: StagedRows, path: str) -> DataFrame:
    """The rows where they lie; of a MERGE that is not carried out yet, what it will leave."""
    base, fold, place = staged.base, staged.fold, staged.place
    match place:
        case NewTable():
            return session.table(table_name(staged.generation))
        case Shown() if base is not None:
            return stored_rows(session, replace(base.head, snapshot=place.snapshot))
        case OnBranch() if base is not None:
            return session.table(f"{table_name(base.head.generation)}.{quote(f'branch_{place.branch}')}")
        case Aside(action=action) if base is not None and fold is not None and action.name == "merge":
            return after_merge(rows_at(session, base.head), staged_rows(session, path, staged.shape), fold)
        case _ if base is not None and fold is not None and not is_keyed(fold.kind) and not fold.begins_anew:
            return _beside_others(session, base, staged_rows(session, path, staged.shape), staged, fold)
        case _:
            return staged_rows(session, path, staged.shape)


def _beside_others(session: SparkSession, base: Base, new: DataFrame, staged: StagedRows, fold: Fold) -> DataFrame:
    """New rows and those that stay: all of them, or those of partitions that the new ones do not replace."""
    old = stored_rows(session, base.head)
    columns = staged.shape.partition_columns
    if staged.removed:
        old = old.filter(outside(columns, staged.removed))
    if not appends(fold.kind):
        keys = [quote(column.name) for column in columns]
        replaced = new.select(*keys).distinct().alias("replaced")
        same = [sf.col(f"old.{key}").eqNullSafe(sf.col(f"replaced.{key}")) for key in keys]
        old = old.alias("old").join(replaced, reduce(and_, same), "left_anti")
    return new.unionByName(old, allowMissingColumns=True)


def _shown(session: SparkSession, shown: ShownRows) -> DataFrame:
    time = find_time_column(shown.columns, shown.time_column)
    return session.sql(f"SELECT * FROM {shown.relation}").filter(in_interval(time, shown.time_column, shown.interval))


def _counts(session: SparkSession, request: AuditRequest, failures: Failures) -> list[int]:
    """How many rows each query gives, in one statement; one by one when that fails, to tell which of them does."""
    parts = [
        f"SELECT {index} AS audit, count(*) AS found FROM (\n{query.sql}\n)"
        for index, query in enumerate(request.queries)
    ]
    if len(parts) > 1:
        try:
            with failures(f"the audits of `{request.node}`", "", None):
                found = session.sql("\nUNION ALL\n".join(parts)).collect()
            return [row["found"] for row in sorted(found, key=lambda row: row["audit"])]
        except LaminaError as error:
            if isinstance(error, Cancelled) or error.is_retryable:
                raise
    counts = []
    for query, part in zip(request.queries, parts, strict=True):
        with failures(f"audit `{query.call}` of `{request.node}`", query.sql, query.written):
            counts.append(session.sql(part).collect()[0]["found"])
    return counts


def _keep(session: SparkSession, request: AuditRequest, root: str, index: int, query: AuditQuery) -> str | None:
    """Write the rows that a blocking audit found beside the batch; what cannot be stored is not worth another error.

    Spark reads no folder that begins with an underscore along with those around it.
    """
    if not query.is_blocking:
        return None
    path = f"{root}/{request.folder}/_failed/{index}_{query.name}"
    try:
        session.sql(query.sql).write.mode("overwrite").parquet(path)
    except PySparkException:
        return None
    return f"parquet.{quote(path)}"
