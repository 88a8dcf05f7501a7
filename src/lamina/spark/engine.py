"""The engine port on PySpark: small steps, each of which another module knows how to do."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from typing_extensions import assert_never

from lamina.app.ports import AnalysisOutcome, PythonQuery, SeedRows, SqlQuery
from lamina.errors import Cancelled, LaminaError, NotYetSupported
from lamina.spark.audits import ask_audits
from lamina.spark.catalog import Catalog
from lamina.spark.environment_views import show_views
from lamina.spark.errors import at, is_failure_of_spark, one_line, translate
from lamina.spark.fetch import fetch
from lamina.spark.formats.parquet import ParquetFormat
from lamina.spark.output import shape_output
from lamina.spark.python_models import run_model
from lamina.spark.seeds import load_seed, read_seed
from lamina.spark.session import Sessions
from lamina.spark.tables import table_name
from lamina.spark.types import columns_of
from lamina.spark.versions import carry_out, make_generation, published_generations

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from lamina.app.ports import (
        AnalysisRequest,
        AuditFinding,
        AuditRequest,
        Emit,
        GenerationRequest,
        HideView,
        QueryResult,
        Reach,
        ShowView,
        StatementsRequest,
        WriteRequest,
        Written,
    )
    from lamina.app.records import Publish
    from lamina.graph.model import Column
    from lamina.graph.names import NodeName
    from lamina.identity.naming import PhysicalName
    from lamina.spark.session import SparkSettings

_READS = re.compile(r"\s*(?:\(|(?:select|with|values|from|table|show|describe|desc|explain)\b)", re.IGNORECASE)


def run_statement(session: SparkSession, statement: str) -> None:
    """Run a statement; a query, which Spark would only plan, is computed and its rows dropped."""
    frame = session.sql(statement)
    if _READS.match(statement):
        frame.write.format("noop").mode("overwrite").save()


class SparkEngine:
    """Spark, reached as the settings say or through a session that is handed in.

    A session handed in is never stopped and its configuration never changed. `reach` is called at kill points.
    """

    def __init__(
        self, settings: SparkSettings, emit: Emit, reach: Reach, *, session: SparkSession | None = None
    ) -> None:
        self._sessions = Sessions(settings, emit, session)
        self._catalog = Catalog(self._sessions)
        self._reach = reach
        self._formats = {ParquetFormat.name: ParquetFormat()}

    def prepare(self, owner_command: str) -> bool:
        """Start Spark; True when this process provably is the only one that uses the catalog."""
        return self._sessions.prepare(owner_command)

    # --- queries ------------------------------------------------------------------------------------------------------
    def analyse(self, requests: Sequence[AnalysisRequest]) -> tuple[AnalysisOutcome, ...]:
        """Have Spark resolve the queries, one after the other."""
        return tuple(self._analyse_one(request) for request in requests)

    def _analyse_one(self, request: AnalysisRequest) -> AnalysisOutcome:
        try:
            return AnalysisOutcome(node=request.node, columns=self._columns_of(request))
        except Cancelled:
            raise
        except LaminaError as error:
            for problem in error.problems:
                at(problem, request.location, request.node)
            return AnalysisOutcome(node=request.node, error=error)

    def _columns_of(self, request: AnalysisRequest) -> tuple[Column, ...]:
        if isinstance(request.rows, SeedRows):
            return tuple(read_seed(request.rows, request.columns)[0])
        query = request.rows
        with (
            self._sessions.task(
                f"analyse {request.node}", request.settings, may_change=bool(query.pre_statements)
            ) as session,
            self._failures(f"the query of `{request.node}`", query.sql),
        ):
            self._run(session, query.pre_statements, f"a statement before the query of `{request.node}`")
            return columns_of(shape_output(session.sql(query.sql), request.columns).schema, {})

    def query(self, sql: str, *, limit: int | None) -> QueryResult:
        """Run a query and fetch its rows."""
        with (
            self._sessions.task("query", {}, may_change=_READS.match(sql) is None) as session,
            self._failures("the query", sql),
        ):
            return fetch(session.sql(sql), limit)

    def frame(self, sql: str) -> DataFrame:
        """A lazy DataFrame on the root session."""
        with self._failures("the query", sql):
            return self._sessions.root().sql(sql)

    # --- writing ------------------------------------------------------------------------------------------------------
    def write(self, request: WriteRequest) -> Written:
        """Write one batch into its folder."""
        interval = request.interval.to_pair() if request.interval else None
        label = f"{request.node} {'–'.join(interval)}" if interval else str(request.node)
        try:
            return self._write(request, label)
        except LaminaError as error:
            for problem in error.problems:
                at(problem, request.location, request.node, interval)
            raise

    def _write(self, request: WriteRequest, label: str) -> Written:
        table_format = self._format(request.storage_format)
        schema = request.physical.rpartition(".")[0]
        statements = self._catalog.ensure_schema(schema)
        root = self._catalog.location_of(schema)
        rows = request.rows
        is_plain = isinstance(rows, SeedRows) or (
            isinstance(rows, SqlQuery) and not rows.pre_statements and not rows.post_statements
        )
        sql = rows.sql if isinstance(rows, SqlQuery) else None
        with (
            self._sessions.task(label, request.settings, may_change=not is_plain) as session,
            self._failures(f"`{request.node}`", sql),
        ):
            before = rows.pre_statements if isinstance(rows, SqlQuery) else ()
            after = rows.post_statements if isinstance(rows, SqlQuery) else ()
            self._run(session, before, f"a statement before the query of `{request.node}`")
            frame = shape_output(self._frame(session, request), request.columns)
            written = table_format.write(session, frame, request, root, self._reach)
            self._run(session, after, f"a statement after the query of `{request.node}`")
        return replace(written, statements=written.statements + statements + len(before) + len(after))

    def audit(self, request: AuditRequest) -> tuple[AuditFinding, ...]:
        """Ask audits about rows that were written aside."""
        schema = request.physical.rpartition(".")[0]
        self._catalog.ensure_schema(schema)
        root = self._catalog.location_of(schema)
        try:
            with self._sessions.task(f"audits of {request.node}", request.settings, may_change=True) as session:
                return ask_audits(session, request, root, self._failures)
        except LaminaError as error:
            for problem in error.problems:
                at(problem, request.location, request.node)
            raise

    def execute(self, request: StatementsRequest) -> None:
        """Run statements that follow a model's view."""
        label = f"view of {request.node} in {request.environment}"
        with self._sessions.task(label, request.settings, may_change=True) as session:
            for statement in request.statements:
                try:
                    with self._failures(f"`{one_line(statement.sql)}`", statement.sql):
                        run_statement(session, statement.sql)
                except LaminaError as error:
                    for problem in error.problems:
                        at(problem, statement.location, request.node)
                    raise

    def describe(self, tables: Sequence[NodeName]) -> tuple[AnalysisOutcome, ...]:
        """The columns of tables as the catalog has them."""
        return tuple(self._describe_one(table) for table in tables)

    def _describe_one(self, table: NodeName) -> AnalysisOutcome:
        try:
            with (
                self._sessions.task(f"columns of {table}", {}, may_change=False) as session,
                self._failures(f"looking up the columns of `{table}`"),
            ):
                schema = session.table(table_name(table)).schema
        except Cancelled:
            raise
        except LaminaError as error:
            return AnalysisOutcome(node=table, error=error)
        comments = {name: comment for name in schema.names if (comment := schema[name].metadata.get("comment"))}
        return AnalysisOutcome(node=table, columns=columns_of(schema, comments))

    def _frame(self, session: SparkSession, request: WriteRequest) -> DataFrame:
        match request.rows:
            case SqlQuery() as query:
                return session.sql(query.sql)
            case PythonQuery() as query:
                return run_model(session, query, request.columns, request.node)
            case SeedRows() as seed:
                return load_seed(session, seed, request.columns)
            case _:
                assert_never(request.rows)

    def _run(self, session: SparkSession, statements: Sequence[str], doing: str) -> None:
        for statement in statements:
            with self._failures(doing, statement):
                session.sql(statement)

    def _format(self, storage_format: str | None) -> ParquetFormat:
        name = (storage_format or ParquetFormat.name).lower()
        if name not in self._formats:
            raise NotYetSupported(
                f"storage format `{storage_format}` cannot be written yet",
                hint=f"formats are {', '.join(f'`{known}`' for known in self._formats)}",
            )
        return self._formats[name]

    # --- the catalog --------------------------------------------------------------------------------------------------
    def create_generation(self, request: GenerationRequest) -> None:
        """Create the external table over the manifest's folders."""
        make_generation(self._catalog, request, self._format(request.storage_format).name)

    def publish(self, publish: Publish) -> None:
        """Carry out a decided publish."""
        carry_out(self._catalog, publish)

    def published(self, names: Sequence[PhysicalName]) -> Mapping[PhysicalName, str | None]:
        """The generation that each version's view shows."""
        return published_generations(self._catalog, names)

    def show(self, views: Sequence[ShowView | HideView]) -> int:
        """Make environment views as asked."""
        return show_views(self._catalog, views)

    # --- ending -------------------------------------------------------------------------------------------------------
    def cancel(self) -> None:
        """Stop every running job; calls in progress raise `Cancelled`. Catalog statements are left to finish."""
        self._sessions.interrupt()

    def close(self) -> None:
        """End what was started here."""
        self._sessions.close()

    @contextmanager
    def _failures(self, doing: str, sql: str | None = None) -> Iterator[None]:
        """Turn what Spark raises inside into Lamina's errors, and everything after a `cancel` into `Cancelled`."""
        before = self._sessions.cancellations
        try:
            yield
        except LaminaError as error:
            if self._sessions.cancellations != before and not isinstance(error, Cancelled):
                raise Cancelled(f"{doing} was cancelled") from error
            raise
        except Exception as error:
            is_cancelled = self._sessions.cancellations != before
            if not is_cancelled and not is_failure_of_spark(error):
                raise
            raise translate(error, doing, is_cancelled=is_cancelled, query=sql) from error
        if self._sessions.cancellations != before:
            raise Cancelled(f"{doing} was cancelled")
