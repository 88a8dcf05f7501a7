"""The use cases that make queries, for Spark to run or for people to read; they parse, unlike most of planning."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lamina.app.looking.looking import Looking, find_model, node_for
from lamina.app.planning.gather import environment_name, load_recorded, physical_names
from lamina.app.planning.identify import identify
from lamina.app.planning.recorded_code import as_far_as_known, check_definitions, put_together, run_with
from lamina.app.planning.storage import rows_gone
from lamina.app.ports.engine import AnalysisRequest, SqlQuery
from lamina.app.ports.loaded import LoadRequest
from lamina.app.rendering.models import Relations, table_text, with_declared
from lamina.environments.pointers import Revision
from lamina.errors import LaminaError, SyntaxProblem, UsageError
from lamina.graph.catalogs import catalogs_used
from lamina.graph.dag import Graph
from lamina.graph.formats import formats_of
from lamina.graph.kinds import Embedded, IncrementalByTimeRange, View, folds, has_intervals
from lamina.graph.model import SqlBody
from lamina.graph.sealing import values_in, without_values
from lamina.graph.time_columns import time_kind
from lamina.sql.names import quote
from lamina.sql.query import analyse_query
from lamina.sql.render import resolve_tables, time_condition, wrap_time_filter
from lamina.timeline.interval import Interval
from lamina.timeline.parse import as_end, as_start, parse_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lamina.app.planning.storage import Storage
    from lamina.app.ports.engine import Engine, QueryResult
    from lamina.app.ports.loaded import Loaded
    from lamina.app.ports.project import ProjectSettings
    from lamina.app.ports.published import Head
    from lamina.graph.model import Model
    from lamina.graph.names import NodeName
    from lamina.identity.naming import PhysicalName
    from lamina.sql.query import QueryShape
    from lamina.sql.render import TimeKind
    from lamina.timeline.interval import Instant


class Querying(Looking):
    """One project with its state and a Spark that reads; nothing of it changes."""

    def _storage_read(self, command: str, models: Iterable[Model]) -> Storage:
        """Storage as it is looked at before rows are read: through Spark where it cannot be seen without."""

        def ready() -> Engine:
            used = tuple(models)
            self._ports.engine.prepare(command, formats_of(used), catalogs_used(used))
            return self._ports.engine

        def opens(model: Model, table: str) -> bool:
            query = SqlQuery(sql=f"SELECT * FROM {table_text(table)}")
            (outcome,) = ready().analyse([AnalysisRequest(node=model.name, location=model.location, rows=query)])
            if outcome.error is not None and outcome.error.is_retryable:
                raise outcome.error
            return outcome.error is None

        return replace(self._storage, ready_engine=ready, opens=opens)

    def start_spark(self, now: Instant) -> tuple[str, frozenset[str]]:
        """Start Spark with the formats of the project's tables, and have it answer; what version it is, and those."""
        models = self.graph(now).models.values()
        formats = formats_of(models)
        self._ports.engine.prepare("doctor", formats, catalogs_used(models))
        (row,) = self._ports.engine.query("SELECT version()", limit=1).rows
        return str(row[0]).split()[0], formats

    def missing_files(self) -> tuple[LaminaError, ...]:
        """What is gone that only Spark can tell, in every environment: files that tables lent others, and folders that
        cannot be seen from here.
        """
        store, settings = self._ports.store, self._ports.project.settings()
        found: dict[PhysicalName, LaminaError] = {}
        for revision in (each for each in self.environments() if each.pointers):
            models = load_recorded(store, settings, revision.environment)[3].models
            far = self._storage_read("doctor", models.values()).missing_far(models, revision.places)
            for name, gone in far.items():
                found.setdefault(revision.places[name], rows_gone(models[name], gone, revision.environment))
            # Of a table that is gone as a whole nobody can say which files it named.
            near = self._storage.missing(models, revision.places, looks_deeper=False)
            there = {name: place for name, place in revision.places.items() if name not in far and name not in near}
            lending = self._storage.lending(models, there)
            files = self._storage.missing_files(self._ports.engine, lending, there) if lending else {}
            for name, gone in files.items():
                found.setdefault(
                    revision.places[name], rows_gone(models[name], gone, revision.environment, are_lent=True)
                )
        return tuple(found.values())

    def query(self, sql: str, *, environment: str | None, now: Instant, limit: int | None) -> QueryResult:
        """Run a query whose table names mean models of the environment."""
        text, formats = self._environment_query(sql, environment, now)
        self._ports.engine.prepare("query", formats)
        return self._ports.engine.query(text, limit=limit)

    def frame(self, sql: str, *, environment: str | None, now: Instant) -> Any:
        """The same as a lazy DataFrame."""
        text, formats = self._environment_query(sql, environment, now)
        self._ports.engine.prepare("query", formats)
        return self._ports.engine.frame(text)

    def _environment_query(self, sql: str, environment: str | None, now: Instant) -> tuple[str, frozenset[str]]:
        """The query with names resolved to published generations, which need no repair before they are read, and the
        formats of the environment's tables.
        """
        settings = self._ports.project.settings()
        name = environment_name(environment, settings)
        loaded = self._ports.store.load(
            LoadRequest(environments=(name,), definitions_of_pointers=True, facts_of_pointers=False)
        )
        revision = loaded.revisions.get(name) or Revision(environment=name)
        if revision.number == 0 and environment is not None:
            raise self._unknown_environment(name)
        return self._resolved_query(sql, revision, loaded, settings, now)

    def _resolved_query(
        self, sql: str, revision: Revision, loaded: Loaded, settings: ProjectSettings, now: Instant
    ) -> tuple[str, frozenset[str]]:
        recorded = {
            name: loaded.definitions[pointer.definition_id]
            for name, pointer in revision.pointers.items()
            if pointer.definition_id in loaded.definitions
        }
        written = [reference.name.to_text() for reference in _read_query(sql).references]
        nodes = {text: node for text in written if (node := node_for(text, recorded, settings.schema)) is not None}
        models = {**recorded, **self._models_run_with(recorded, nodes.values(), revision)}
        physical = {name: pointer.physical for name, pointer in revision.pointers.items() if pointer.physical}
        heads = self._ports.store.load(LoadRequest(heads=tuple(physical.values()), facts_of_pointers=False)).heads
        relations = Relations(
            models=models,
            heads={name: heads[place] for name, place in physical.items() if place in heads},
            load_macros=self._ports.load_macros,
        )
        shown = {name: place for name, place in physical.items() if place in heads}
        storage = self._storage_read("query", models.values())
        storage.check_rows(models, shown, nodes.values(), revision.environment)
        tables = {text: relations.relation(node, None, now) for text, node in nodes.items()}
        return resolve_tables(sql, "spark", tables), formats_of(models.values())

    def _models_run_with(
        self, recorded: Mapping[NodeName, Model], nodes: Iterable[NodeName], revision: Revision
    ) -> Mapping[NodeName, Model]:
        """Those of which the queries run with a query over these nodes, with the environment's values in them."""
        used = run_with(Graph(models=recorded), nodes)
        within = {name: recorded[name] for name in used if isinstance(recorded[name].kind, View | Embedded)}
        found = put_together(self._ports.store, self._ports.project, within)
        check_definitions(self._ports.store, Graph(models=found), used, revision.pointers)
        return found

    def render(
        self, model_name: str, *, start: str | None, end: str | None, now: Instant, environment: str | None = None
    ) -> str:
        """The SQL of a model for an interval as Spark would get it: by the files, or by what an environment runs."""
        settings = self._ports.project.settings()
        if environment is None:
            graph = self._ports.project.graph(now)
            physical = self._physical_names(graph)
        else:
            revision, _, _, recorded = load_recorded(self._ports.store, settings, environment)
            known = as_far_as_known(self._ports.store, self._ports.project, recorded.models)
            graph = replace(recorded, models=known)
            physical = {name: pointer.physical for name, pointer in revision.pointers.items() if pointer.physical}
        model = find_model(graph.models, model_name, settings.schema)
        if not isinstance(model.body, SqlBody):
            raise UsageError(
                f"`{model.name}` is not written in SQL, so there is nothing to render",
                hint="choose a model whose file ends in `.sql`",
                node=model.name,
            )
        if environment is not None:
            # Without the values of then, a definition cannot be compared.
            whole = [each for each in run_with(graph, [model.name]) if _has_its_values(graph.models[each])]
            check_definitions(self._ports.store, graph, whole, revision.pointers)
        heads = self._ports.store.load(LoadRequest(heads=tuple(physical.values()), facts_of_pointers=False)).heads
        relations = Relations(
            models=graph.models,
            heads={name: heads[place] for name, place in physical.items() if place in heads},
            names=physical,
            load_macros=self._ports.load_macros,
        )
        if isinstance(model.kind, View):
            text = with_declared(model, relations.reader_query(model, physical, now))
        else:
            interval = _render_interval(model, start, end, now)
            computed = with_declared(model, relations.query(model, interval, now))
            text = _inside(model, interval, computed, relations.heads.get(model.name))
        return without_values(text, values_in(graph.models.values()))

    def _physical_names(self, graph: Graph) -> Mapping[NodeName, PhysicalName]:
        baseline = self._ports.project.settings().baseline
        identified = identify(self._ports.store, graph, (baseline,))
        return physical_names(graph, identified.versions, identified.loaded)


def _has_its_values(model: Model) -> bool:
    return all(each.value is not None for each in model.environment)


def _inside(model: Model, interval: Interval | None, sql: str, head: Head | None) -> str:
    """The query with the filter that keeps rows of other times from being written.

    Its words depend on the column's type, which is known from the table, or from the query where that casts it.
    """
    if not isinstance(model.kind, IncrementalByTimeRange) or interval is None:
        return sql
    declared = model.kind.time_column
    shaped = head.shape.columns if head is not None else ()
    named = [each for each in (*(model.columns or ()), *shaped) if each.name.casefold() == declared.name.casefold()]
    name = named[0].name if named else declared.name
    known = next((kind for each in named if (kind := time_kind(each.type)) is not None), None)
    guessed: TimeKind = "string" if declared.format is not None else "timestamp"
    begin, end = (
        moment.to_datetime().replace(tzinfo=None).isoformat(sep=" ") for moment in (interval.start, interval.end)
    )
    filtered = wrap_time_filter(sql, time_condition(name, known or guessed, begin, end, declared.format))
    if known is not None:
        return filtered
    return f"{filtered} /* if {quote(name)} is a {guessed}: the filter follows the type that Spark finds */"


def _read_query(sql: str) -> QueryShape:
    """What a query reads; a statement that makes a table is refused with what makes one."""
    try:
        return analyse_query(sql, "spark")
    except SyntaxProblem as error:
        if sql.lstrip()[:6].lower() == "create":
            error.hint = "a query only reads; `lamina source register` makes files a table that queries can read"
        raise


def _render_interval(model: Model, start: str | None, end: str | None, now: Instant) -> Interval | None:
    if not has_intervals(model.kind) and not folds(model.kind):
        return None
    last = model.grain.floor(now)
    begin = as_start(parse_time(start, relative_to=now)) if start is not None else None
    finish = as_end(parse_time(end, relative_to=now)) if end is not None else None
    if begin is None:
        begin = model.grain.add(model.grain.floor(last if finish is None else finish), -1)
    return Interval(begin, model.grain.add(begin, 1) if finish is None else finish)
