"""Asking audits about rows that were written aside: all of them in one statement, on the files that would be shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as sf

from lamina.app.ports import AuditFinding, ShownRows
from lamina.errors import Cancelled, LaminaError
from lamina.spark.output import find_time_column, in_interval
from lamina.spark.written_files import read_back
from lamina.sql.names import quote

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame, SparkSession

    from lamina.app.audit_queries import AuditQuery
    from lamina.app.ports import AuditRequest, StagedRows

    Failures = Callable[[str, str], AbstractContextManager[None]]


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
    shape = staged.shape
    stored = [(column.name, column.type) for column in shape.columns]
    stored += [(column.name, column.type) for column in shape.partition_columns if column.is_hidden]
    schema = ", ".join(f"{quote(name)} {type_text}" for name, type_text in stored)
    rows = read_back(session, path, schema)
    if staged.interval is not None and staged.time_column is not None:
        time = find_time_column(shape.columns, staged.time_column)
        rows = rows.filter(in_interval(time, staged.time_column, staged.interval))
    return rows.select(*[sf.col(quote(column.name)) for column in shape.columns])


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
            with failures(f"the audits of `{request.node}`", ""):
                found = session.sql("\nUNION ALL\n".join(parts)).collect()
            return [row["found"] for row in sorted(found, key=lambda row: row["audit"])]
        except LaminaError as error:
            if isinstance(error, Cancelled) or error.is_retryable:
                raise
    counts = []
    for query, part in zip(request.queries, parts, strict=True):
        with failures(f"audit `{query.call}` of `{request.node}`", query.sql):
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
    return f"parquet.`{path}`"
