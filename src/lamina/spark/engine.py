"""The engine port on PySpark: small steps, each of which another module knows how to do."""

from __future__ import annotations

import hashlib
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

from typing_extensions import assert_never

from lamina.app.ports import AnalysisOutcome, HideView, PythonQuery, SeedRows, ShowView, SqlQuery, Written
from lamina.app.records import AddPartitions, SetView, SwitchGeneration
from lamina.errors import Cancelled, EngineError, LaminaError, NameTaken, NotYetSupported, raise_all
from lamina.spark.catalog import Catalog
from lamina.spark.errors import at, condition_of, is_failure_of_spark, translate
from lamina.spark.fetch import fetch
from lamina.spark.formats.parquet import ParquetFormat
from lamina.spark.output import shape_output
from lamina.spark.python_models import run_model
from lamina.spark.seeds import load_seed, read_seed
from lamina.spark.session import Sessions
from lamina.spark.tables import (
    ATTEMPT_PROPERTY,
    COLUMNS_PROPERTY,
    DETAILS_PROPERTY,
    GENERATION_PROPERTY,
    PHYSICAL_PROPERTY,
    add_partitions,
    create_generation,
    create_view,
    setting_text,
    table_name,
)
from lamina.spark.types import columns_of
from lamina.sql.names import quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from lamina.app.ports import AnalysisRequest, Emit, GenerationRequest, QueryResult, Reach, WriteRequest
    from lamina.app.records import Publish, TableShape
    from lamina.graph.model import Column
    from lamina.identity.naming import PhysicalName
    from lamina.spark.catalog import CatalogEntry
    from lamina.spark.session import SparkSettings

_PARTITIONS_PER_STATEMENT = 500
_ALREADY_THERE = frozenset({"TABLE_OR_VIEW_ALREADY_EXISTS"})
_PARTITIONS_THERE = frozenset({"PARTITIONS_ALREADY_EXIST"})


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
            self._sessions.task("query", {}, may_change=False) as session,
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
        return Written(
            rows=written.rows,
            shape=written.shape,
            folders=written.folders,
            removed=written.removed,
            statements=written.statements + statements + len(before) + len(after),
            null_times=written.null_times,
        )

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

    # --- publishing ---------------------------------------------------------------------------------------------------
    def create_generation(self, request: GenerationRequest) -> None:
        """Create the external table over the manifest's folders; one made before under this name is made anew.

        It is not decided yet and nothing reads it, and its files are not the catalog's to delete.
        """
        schema = request.physical.rpartition(".")[0]
        self._catalog.ensure_schema(schema)
        root = self._catalog.location_of(schema)
        columns = request.shape.partition_columns
        folder = request.folder if columns else request.manifest.get((), request.folder)
        attempt = request.generation.rpartition("_")[2]
        statement = create_generation(
            request.generation,
            request.shape,
            f"{root}/{folder}",
            {**request.properties, ATTEMPT_PROPERTY: attempt},
            self._format(request.storage_format).name,
        )
        doing = f"making table `{request.generation}`"
        try:
            self._catalog.execute(statement, doing)
        except EngineError as error:
            if _condition(error) not in _ALREADY_THERE:
                raise
            self._drop_generation(request.generation)
            self._catalog.execute(statement, doing)
        places = [(key, f"{root}/{path}") for key, path in request.manifest.items()] if columns else []
        for first in range(0, len(places), _PARTITIONS_PER_STATEMENT):
            portion = places[first : first + _PARTITIONS_PER_STATEMENT]
            self._catalog.execute(add_partitions(request.generation, columns, portion), doing)

    def _drop_generation(self, generation: str) -> None:
        entry = self._catalog.entries([generation]).get(generation)
        if entry is not None and ATTEMPT_PROPERTY not in entry.properties:
            raise _taken(generation)
        self._catalog.execute(f"DROP TABLE IF EXISTS {table_name(generation)}", f"replacing table `{generation}`")

    def publish(self, publish: Publish) -> None:
        """Carry out a decided publish; done twice it is the same."""
        match publish:
            case AddPartitions():
                self._add_partitions(publish)
            case SwitchGeneration():
                listed = ", ".join(quote(column.name) for column in publish.shape.columns)
                query = f"SELECT {listed} FROM {table_name(publish.generation)}"
                self._set_version_view(publish, query, publish.shape)
            case SetView():
                self._catalog.ensure_schema(publish.physical.rpartition(".")[0])
                self._set_version_view(publish, publish.sql, publish.shape)
            case _:
                assert_never(publish)

    def _set_version_view(self, publish: SwitchGeneration | SetView, query: str, shape: TableShape) -> None:
        properties = {GENERATION_PROPERTY: publish.generation, COLUMNS_PROPERTY: _digest_of_columns(shape.columns)}
        statement = create_view(publish.physical, query, shape.columns, publish.description, properties)
        self._catalog.execute(statement, f"showing `{publish.generation}` as `{publish.physical}`")

    def _add_partitions(self, publish: AddPartitions) -> None:
        if not publish.partitions:
            return
        columns = publish.shape.partition_columns
        root = self._catalog.location_of(publish.physical.rpartition(".")[0])
        places = {key: f"{root}/{folder}" for key, folder in publish.partitions.items()}
        doing = f"adding partitions to `{publish.generation}`"
        try:
            self._catalog.execute(add_partitions(publish.generation, columns, places.items()), doing)
        except EngineError as error:
            if _condition(error) not in _PARTITIONS_THERE:
                raise
            there = {key: self._catalog.partition_location(publish.generation, columns, key) for key in places}
            for key, place in there.items():
                if place is not None and not _is_same_place(place, places[key]):
                    raise EngineError(
                        f"partition {key} of `{publish.generation}` lies at `{place}`, "
                        f"and at `{places[key]}` by what is recorded",
                        hint="something other than Lamina changed the table; restate the interval to mend it",
                    ) from error
            missing = [(key, place) for key, place in places.items() if there[key] is None]
            if missing:
                self._catalog.execute(add_partitions(publish.generation, columns, missing), doing)

    def published(self, names: Sequence[PhysicalName]) -> Mapping[PhysicalName, str | None]:
        """The generation that each version's view shows."""
        entries = self._catalog.entries(names)
        return {
            name: entries[name].properties.get(GENERATION_PROPERTY)
            if name in entries and entries[name].is_view
            else None
            for name in names
        }

    # --- environments -------------------------------------------------------------------------------------------------
    def show(self, views: Sequence[ShowView | HideView]) -> int:
        """Make environment views as asked, in order; nothing is changed when a name is taken by something else.

        Their columns are fixed when they are made, so a view is made again when its version's columns have changed.
        A view that follows by itself (`WITH SCHEMA EVOLUTION`) would be rewritten in the catalog by whoever reads it
        first, which can put an older pointer back.
        """
        wanted = [view for view in views if isinstance(view, ShowView)]
        for schema in dict.fromkeys(view.logical.rpartition(".")[0] for view in wanted):
            self._catalog.ensure_schema(schema)
        entries = self._catalog.entries([*(view.logical for view in views), *(view.physical for view in wanted)])
        raise_all(
            _taken(view.logical)
            for view in wanted
            if view.logical in entries and not _is_environment_view(entries[view.logical])
        )
        changed = 0
        for view in views:
            entry = entries.get(view.logical)
            match view:
                case ShowView():
                    properties = _environment_properties(view, entries.get(view.physical))
                    if entry is not None and all(entry.properties.get(key) == properties[key] for key in _COMPARED):
                        continue
                    query = f"SELECT * FROM {table_name(view.physical)}"
                    statement = create_view(view.logical, query, (), view.comment, {**view.properties, **properties})
                    self._catalog.execute(statement, f"showing `{view.physical}` as `{view.logical}`")
                    changed += 1
                case HideView():
                    if entry is None or not _is_environment_view(entry):
                        continue
                    self._catalog.execute(
                        f"DROP VIEW IF EXISTS {table_name(view.logical)}", f"removing view `{view.logical}`"
                    )
                    changed += 1
                case _:
                    assert_never(view)
        return changed

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


_COMPARED = (PHYSICAL_PROPERTY, COLUMNS_PROPERTY, DETAILS_PROPERTY)


def _environment_properties(view: ShowView, version: CatalogEntry | None) -> dict[str, str]:
    details = [view.comment or "", sorted((key, setting_text(value)) for key, value in view.properties.items())]
    return {
        PHYSICAL_PROPERTY: view.physical,
        COLUMNS_PROPERTY: version.properties.get(COLUMNS_PROPERTY, "") if version else "",
        DETAILS_PROPERTY: _digest(details),
    }


def _is_environment_view(entry: CatalogEntry) -> bool:
    return entry.is_view and PHYSICAL_PROPERTY in entry.properties


def _digest_of_columns(columns: Sequence[Column]) -> str:
    return _digest([[column.name, column.type, column.comment] for column in columns])


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


def _condition(error: EngineError) -> str | None:
    return condition_of(error.__cause__) if error.__cause__ is not None else None


def _is_same_place(found: str, recorded: str) -> bool:
    """Whether two locations are the same folder; the catalog writes the scheme where it was left out."""
    return found.rstrip("/").partition(":")[2].lstrip("/") == recorded.rstrip("/").partition(":")[2].lstrip("/")


def _taken(name: str) -> NameTaken:
    return NameTaken(
        f"`{name}` is a table or view that Lamina did not make",
        hint="rename or drop it yourself, or give the model another name",
    )
