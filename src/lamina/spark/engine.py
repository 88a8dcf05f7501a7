"""The engine port on PySpark: small steps, each of which another module knows how to do."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from typing_extensions import assert_never

from lamina.app.ports.engine import AnalysisOutcome, NewTable, PythonQuery, SeedRows, SqlQuery
from lamina.app.ports.published import InPlace
from lamina.errors import Cancelled, EngineError, LaminaError, TransientFailure
from lamina.spark.audits import ask_audits
from lamina.spark.catalog.catalog import Catalog
from lamina.spark.catalog.environment_views import show_views
from lamina.spark.catalog.external import PARTITIONS_AS_THEY_LIE, creation, is_taken, read_shape, refuse_taken, taken
from lamina.spark.catalog.versions import carry_out, make_generation, published_generations
from lamina.spark.errors import at, is_failure_of_spark, one_line, translate
from lamina.spark.formats.delta import DeltaFormat
from lamina.spark.formats.delta_files import SKIPPING
from lamina.spark.formats.iceberg import IcebergFormat
from lamina.spark.formats.in_place import InPlaceChanges
from lamina.spark.formats.parquet import ParquetFormat
from lamina.spark.python.hooks import run_hooks
from lamina.spark.python.models import run_model
from lamina.spark.rows.fetch import fetch
from lamina.spark.rows.output import keep_columns, shape_output
from lamina.spark.rows.seeds import load_seed, read_seed
from lamina.spark.rows.shared_storage import find_missing
from lamina.spark.rows.types import columns_of
from lamina.spark.sessions.pins import PINNED, Pins, cannot_be_read
from lamina.spark.sessions.session import Sessions
from lamina.spark.sessions.substitution import frame_as_written, parsed, substituting
from lamina.spark.statements import table_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from lamina.app.ports.engine import (
        AnalysisRequest,
        AuditFinding,
        AuditRequest,
        ExternalTable,
        GenerationRequest,
        HideView,
        Hooks,
        Landing,
        QueryResult,
        RowSource,
        ShowView,
        Statement,
        StatementsRequest,
        TableOptions,
        WriteRequest,
        Written,
    )
    from lamina.app.ports.events import Emit
    from lamina.app.ports.machine import Reach, Standing
    from lamina.app.ports.published import Head, Publish
    from lamina.graph.formats import TableFormat
    from lamina.graph.model import Column
    from lamina.graph.names import NodeName
    from lamina.identity.naming import PhysicalName
    from lamina.spark.formats.lake import LakeFormat
    from lamina.spark.sessions.embedded import SparkSettings
    from lamina.sql.fragment import Fragment

Request = TypeVar("Request")
Answer = TypeVar("Answer")

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
        self._pins = Pins()
        self._reach = reach
        self._in_place = InPlaceChanges(self._sessions, self._catalog)
        self._parquet = ParquetFormat()
        self._lakes: dict[str, LakeFormat] = {one.table_format.name: one for one in (DeltaFormat(), IcebergFormat())}

    def prepare(
        self,
        owner_command: str,
        formats: frozenset[str] = frozenset(),
        catalogs: Mapping[str, frozenset[str]] | None = None,
    ) -> Standing:
        """Start Spark; answer by what others can tell that this process has ended."""
        standing = self._sessions.prepare(owner_command, formats, named=bool(catalogs))
        if catalogs:
            self._catalog.check(catalogs, self._sessions.settings_in_force())
        return standing

    def placed(self, generation: str, table_format: TableFormat) -> str:
        """Iceberg tables may have a catalog of their own; those of a model that names its catalog stay there."""
        if not table_format.has_branches or generation.count(".") > 1:
            return generation
        catalog = self._sessions.iceberg_catalog()
        return generation if catalog == "spark_catalog" else f"{catalog}.{generation}"

    # --- queries ------------------------------------------------------------------------------------------------------
    def analyse(self, requests: Sequence[AnalysisRequest]) -> tuple[AnalysisOutcome, ...]:
        """Have Spark resolve the queries, one after the other."""
        return tuple(self._analyse_one(request) for request in requests)

    def _analyse_one(self, request: AnalysisRequest) -> AnalysisOutcome:
        try:
            return AnalysisOutcome(node=request.node, columns=self._read(request, self._columns_of))
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
        may_change = bool(query.pre_statements or query.post_statements or request.hooks)
        with (
            self._sessions.task(f"analyse {request.node}", request.settings, may_change=may_change) as session,
            self._failures(f"the query of `{request.node}`", query.sql, query.written),
            substituting(session, request.settings),
        ):
            self._begin(session, query, request.hooks, request.node)
            columns = columns_of(shape_output(session.sql(query.sql), request.columns).schema, {})
            self._end(session, query, request.hooks, request.node)
        return columns

    def query(self, sql: str, *, limit: int | None) -> QueryResult:
        """Run a query and fetch its rows."""

        def run(sql: str) -> QueryResult:
            with (
                self._sessions.task("query", {}, may_change=_READS.match(sql) is None) as session,
                self._failures("the query", sql),
            ):
                return fetch(session.sql(sql), limit)

        return self._read(sql, run)

    def frame(self, sql: str) -> DataFrame:
        """A lazy DataFrame on the root session, which may hold tables as they were when it last read them."""
        root = self._sessions.root()
        with self._failures("the query", sql):
            for table in dict.fromkeys(table for table, _ in PINNED.findall(sql)):
                root.sql(f"REFRESH TABLE {table}")
            # Nobody is there to look again when the rows are fetched.
            self._pins.renew(root, sql)
            return frame_as_written(root, self._pins.applied(sql), self._sessions.apart)

    # --- writing ------------------------------------------------------------------------------------------------------
    def write(self, request: WriteRequest) -> Written:
        """Write one batch into its folder."""
        interval = request.interval.to_pair() if request.interval else None
        label = f"{request.node} {'–'.join(interval)}" if interval else str(request.node)
        try:
            return self._read(request, lambda request: self._write(request, label), once=True)
        except LaminaError as error:
            for problem in error.problems:
                at(problem, request.location, request.node, interval)
            raise

    def _write(self, request: WriteRequest, label: str) -> Written:
        table_format = self._format(request.table)
        schema = request.physical.rpartition(".")[0]
        statements = self._catalog.ensure_schema(schema)
        statements += self._catalog.ensure_schema(request.table.generation.rpartition(".")[0])
        root = self._catalog.location_of(schema)
        rows = request.rows
        is_plain = isinstance(rows, SeedRows) or (
            isinstance(rows, SqlQuery) and not rows.pre_statements and not rows.post_statements
        )
        # Writes to these tables carry numbers and names of their own in the session.
        is_plain = is_plain and request.table.table_format.is_built_in and request.hooks is None
        sql, source = (rows.sql, rows.written) if isinstance(rows, SqlQuery) else (None, None)
        with (
            self._sessions.task(label, request.settings, may_change=not is_plain) as session,
            self._failures(f"`{request.node}`", sql, source),
        ):
            with substituting(session, request.settings):
                statements += self._begin(session, rows, request.hooks, request.node)
                frame = parsed(shape_output(self._frame(session, request), request.columns), request.settings)
            if request.former is not None:
                frame = keep_columns(frame, request.former)
            written = table_format.write(session, frame, request, root, self._reach)
            with substituting(session, request.settings):
                statements += self._end(session, rows, request.hooks, request.node)
        if isinstance(written.place, NewTable):
            self._catalog.remember_tables(*request.table.generation.rsplit(".", 1))
        return replace(written, statements=written.statements + statements)

    def audit(self, request: AuditRequest) -> tuple[AuditFinding, ...]:
        """Ask audits about rows that were written aside."""
        schema = request.physical.rpartition(".")[0]
        self._catalog.ensure_schema(schema)
        root = self._catalog.location_of(schema)

        def ask(request: AuditRequest) -> tuple[AuditFinding, ...]:
            with self._sessions.task(f"audits of {request.node}", request.settings, may_change=True) as session:
                return ask_audits(session, request, root, self._failures)

        try:
            return self._read(request, ask)
        except LaminaError as error:
            for problem in error.problems:
                at(problem, request.location, request.node)
            raise

    def execute(self, request: StatementsRequest) -> None:
        """Run statements that follow a model's view."""
        label = f"view of {request.node} in {request.environment}"
        with (
            self._sessions.task(label, request.settings, may_change=True) as session,
            substituting(session, request.settings),
        ):
            self._run(session, request.statements, request.node)

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

    def register(self, table: ExternalTable) -> tuple[Column, ...]:
        """Have the catalog know files as a table; they stay where and as they are."""
        doing = f"registering `{table.name}`"
        with self._sessions.task(doing, PARTITIONS_AS_THEY_LIE) as session:
            with self._failures(doing):
                shape = read_shape(session, table)
                refuse_taken(self._catalog, session, table)
            try:
                with self._failures(doing):
                    session.sql(creation(table))
            except EngineError as error:
                if is_taken(error):
                    raise taken(table) from error
                raise
        return columns_of(shape, {})

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

    def _begin(self, session: SparkSession, rows: RowSource, hooks: Hooks | None, node: NodeName) -> int:
        """What comes before a query; how many statements it was."""
        if hooks is not None:
            run_hooks(session, hooks.before, hooks, node)
        statements = rows.pre_statements if isinstance(rows, SqlQuery) else ()
        return self._run(session, statements, node, f" before the query of `{node}`")

    def _end(self, session: SparkSession, rows: RowSource, hooks: Hooks | None, node: NodeName) -> int:
        """What follows a query; how many statements it was."""
        statements = rows.post_statements if isinstance(rows, SqlQuery) else ()
        count = self._run(session, statements, node, f" after the query of `{node}`")
        if hooks is not None:
            run_hooks(session, hooks.after, hooks, node)
        return count

    def _run(self, session: SparkSession, statements: Sequence[Statement], node: NodeName, where: str = "") -> int:
        for statement in statements:
            try:
                with self._failures(f"`{one_line(statement.sql)}`{where}", statement.sql, statement.written):
                    run_statement(session, statement.sql)
            except LaminaError as error:
                for problem in error.problems:
                    at(problem, statement.location, node)
                raise
        return len(statements)

    def _format(self, options: TableOptions) -> ParquetFormat | LakeFormat:
        return self._lakes.get(options.table_format.name) or self._parquet

    # --- the catalog --------------------------------------------------------------------------------------------------
    def create_generation(self, request: GenerationRequest) -> int | None:
        """Create the table over the manifest's folders, or over the rows of a head."""
        lake = self._lakes.get(request.table.table_format.name)
        if lake is None:
            make_generation(self._catalog, request)
            return None
        if request.source is None:
            raise TypeError(request)
        for name in (request.physical, request.table.generation):
            self._catalog.ensure_schema(name.rpartition(".")[0])
        settings = SKIPPING if request.is_mended else {}

        def copy(request: GenerationRequest) -> int | None:
            with (
                self._sessions.task(f"copy of {request.table.generation}", settings) as session,
                self._failures(f"making `{request.table.generation}`"),
            ):
                return lake.make_copy(session, request)

        return self._read(request, copy, once=True)

    def absent(self, schema: str, folders: Sequence[str]) -> str | None:
        """One of these folders that is not there."""
        root = self._catalog.location_of(schema)
        with (
            self._sessions.task(f"folders of {schema}", {}, may_change=False) as session,
            self._failures(f"looking for folders of `{schema}`"),
        ):
            return find_missing(session, [f"{root}/{folder}" for folder in folders])

    def left_behind(self, names: Sequence[PhysicalName]) -> tuple[PhysicalName, ...]:
        """Those of these versions that the catalog shows already."""
        schemas = {name.rpartition(".")[0] for name in names}
        there = {schema for schema in schemas if self._catalog.has_schema(schema)}
        shown = published_generations(self._catalog, [name for name in names if name.rpartition(".")[0] in there])
        return tuple(name for name, generation in shown.items() if generation is not None)

    def missing_files(self, table_format: TableFormat, heads: Sequence[Head]) -> Mapping[PhysicalName, tuple[str, ...]]:
        """The files that tables of these heads read and that are gone."""
        lake = self._lakes[table_format.name]
        found: dict[PhysicalName, tuple[str, ...]] = {}
        for head in heads:
            with (
                self._sessions.task(f"files of {head.physical}", {}, may_change=False) as session,
                self._failures(f"looking for the files of `{head.generation}`"),
            ):
                # Files that were rewritten since are not missed.
                self._pins.renew(session, head)
                found[head.physical] = lake.missing_files(session, self._pins.applied(head))
        return {physical: files for physical, files in found.items() if files}

    def publish(self, publish: Publish) -> int | None:
        """Carry out a decided publish."""
        if isinstance(publish, InPlace):
            return self._in_place.publish(publish)
        carry_out(self._catalog, publish)
        return None

    def retract(self, publish: Publish) -> Landing | None:
        """Keep a change from landing any more."""
        if not isinstance(publish, InPlace):
            raise TypeError(publish)
        return self._in_place.retract(publish)

    def published(self, names: Sequence[PhysicalName]) -> Mapping[PhysicalName, str | None]:
        """The generation that each version's view shows."""
        return published_generations(self._catalog, names)

    def show(self, views: Sequence[ShowView | HideView]) -> int:
        """Make environment views as asked."""
        return show_views(self._catalog, views)

    # --- ending -------------------------------------------------------------------------------------------------------
    def cancel(self) -> None:
        """Stop every running job, and those that are about to begin. Catalog statements are left to finish."""
        self._sessions.interrupt()

    def close(self) -> None:
        """End what was started here."""
        self._sessions.close()

    def _read(self, request: Request, work: Callable[[Request], Answer], *, once: bool = False) -> Answer:
        """Do work that reads recorded versions of tables; where one can no longer be read, read what stands in for it.

        What must not be done twice in the same way is done `once`, and fails as something that may be tried again.
        """
        try:
            return work(self._pins.applied(request))
        except LaminaError as error:
            if not cannot_be_read(error.__cause__) or not self._pins.renew(self._sessions.catalog(), request):
                raise
            if once:
                raise TransientFailure(error.message, hint="run the command again") from error
        return work(self._pins.applied(request))

    @contextmanager
    def _failures(self, doing: str, sql: str | None = None, written: Fragment | None = None) -> Iterator[None]:
        """Turn what Spark raises inside into Lamina's errors, and everything after a `cancel` into `Cancelled`."""
        try:
            yield
        except LaminaError as error:
            if self._sessions.is_stopped and not isinstance(error, Cancelled):
                raise Cancelled(f"{doing} was cancelled") from error
            raise
        except Exception as error:
            is_cancelled = self._sessions.is_stopped
            if not is_cancelled and not is_failure_of_spark(error):
                raise
            raise translate(error, doing, is_cancelled=is_cancelled, query=sql, written=written) from error
        if self._sessions.is_stopped:
            raise Cancelled(f"{doing} was cancelled")
