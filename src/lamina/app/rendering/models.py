"""From a model to the SQL that Spark gets: times filled in, names resolved to what state says is published."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from lamina.app.ports.published import Head
from lamina.app.rendering.key_ranges import key_range
from lamina.app.rendering.partitions import outside
from lamina.errors import DefinitionError
from lamina.graph.kinds import Embedded, IncrementalByTimeRange, View
from lamina.graph.model import SqlBody
from lamina.graph.sealing import values_hidden
from lamina.planning.reach import stretch_read
from lamina.sql.macros.expand import expand
from lamina.sql.macros.scope import MacroScope
from lamina.sql.macros.times import substitute_times, time_literals
from lamina.sql.names import quote
from lamina.sql.render import resolve_statement_tables, resolve_tables
from lamina.sql.syntax import to_spark
from lamina.timeline.macro_times import time_values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lamina.app.ports.project import MacroLoader
    from lamina.app.ports.published import SwitchGeneration
    from lamina.graph.model import Column, Model, PythonModule, SqlText
    from lamina.graph.names import NodeName
    from lamina.identity.naming import PhysicalName
    from lamina.sql.fragment import Fragment
    from lamina.timeline.interval import Instant, Interval


Stretches: TypeAlias = "Mapping[NodeName, tuple[Instant | None, Instant | None]]"
"""Stretches of parents' time outside of which no row matters; None is no bound."""

StatementTexts: TypeAlias = "tuple[tuple[str, Fragment], ...]"
"""Statements with the texts they were made of."""


def no_macros(_modules: tuple[PythonModule, ...]) -> Mapping[str, Callable[..., object]]:
    """A loader for models without Python macros."""
    return {}


@lru_cache(maxsize=256)
def time_texts(interval: Interval | None, execution: Instant, dialect: str) -> Mapping[str, str]:
    """The time variables as SQL text; kept, because all models of a command ask for the same few."""
    return time_literals(time_values(interval, execution), dialect)


def table_text(name: str) -> str:
    """A dotted catalog name as quoted Spark SQL."""
    return quote(*name.split("."))


def head_relation(head: Head, condition: str | None = None) -> str:
    """The published rows of a version, its columns in their own order; with a condition, those for which it holds.

    Spark moves partition columns to the end of a table, and hidden ones must not be seen at all.
    """
    if head.snapshot is None and not head.shape.partition_columns:
        return table_text(head.generation)
    columns = ", ".join(quote(column.name) for column in head.shape.columns)
    return f"({stored_query(head, columns, condition)})"


def stored_query(head: Head | SwitchGeneration, columns: str = "*", condition: str | None = None) -> str:
    """The rows that a head shows, wherever they are stored; all columns are those it is laid out by, too."""
    snapshot = head.snapshot if isinstance(head, Head) else None
    moment = "" if snapshot is None else f" VERSION AS OF {snapshot}"
    where = "" if condition is None else f" WHERE {condition}"
    text = f"SELECT {columns} FROM {table_text(head.generation)}{moment}{where}"
    beneath = head.beneath
    if beneath is None:
        return text
    rest = outside(head.shape.partition_columns, beneath.hidden)
    also = "" if condition is None else f" AND ({condition})"
    return f"SELECT {columns} FROM {table_text(beneath.generation)} WHERE {rest}{also} UNION ALL {text}"


def key_range_of(model: Model, head: Head, begin: Instant | None, end: Instant | None) -> str | None:
    """The condition by which Spark finds the folders of a stretch of a model's time; None where there is none."""
    if not isinstance(model.kind, IncrementalByTimeRange):
        return None
    return key_range(head.shape, model.kind.time_column.name, begin, end)


def _stretches(model: Model, interval: Interval | None) -> Stretches:
    """What of each parent matters to a batch, looked through views and embedded models."""
    return {} if interval is None else {name: stretch_read(model, name, interval) for name in model.windows}


def empty_relation(columns: tuple[Column, ...]) -> str:
    """A relation with the given columns and no rows."""
    values = ", ".join(f"CAST(NULL AS {column.type or 'string'}) AS {quote(column.name)}" for column in columns)
    return f"(SELECT {values} WHERE false)"


def _sql_body(model: Model) -> SqlBody:
    if not isinstance(model.body, SqlBody):
        raise DefinitionError(f"`{model.name}` has no query", location=model.location, node=model.name)
    return model.body


@dataclass(frozen=True, slots=True, kw_only=True)
class Relations:
    """What a name in a query stands for.

    Lamina's own reads go to generations named in state, never through a view; models of kind VIEW and EMBEDDED are put
    in as subqueries. `assumed` gives columns of models that have no rows yet.
    """

    models: Mapping[NodeName, Model]
    heads: Mapping[NodeName, Head] = field(default_factory=lambda: MappingProxyType({}))
    assumed: Mapping[NodeName, tuple[Column, ...]] = field(default_factory=lambda: MappingProxyType({}))
    names: Mapping[NodeName, PhysicalName] = field(default_factory=lambda: MappingProxyType({}))
    """Where versions live: what `@this_model` means, and what to show for models without rows in text for reading."""
    load_macros: MacroLoader = no_macros

    def query(self, model: Model, interval: Interval | None, execution: Instant) -> str:
        """The model's query for an interval, reading published generations: of parents, what its windows reach."""
        return self._query(model, interval, execution, _stretches(model, interval))

    def around(
        self, model: Model, interval: Interval | None, execution: Instant
    ) -> tuple[StatementTexts, StatementTexts]:
        """The statements before and after the model's query, and where they are written; they read what it reads."""
        body = _sql_body(model)
        if not body.pre_statements and not body.post_statements:
            return (), ()
        stretches = _stretches(model, interval)
        tables = self._tables(model, lambda name: self._read(name, interval, execution, stretches))

        def statements(written: tuple[SqlText, ...]) -> StatementTexts:
            with values_hidden(self.models.values):
                return tuple(
                    (resolve_statement_tables(text, tables), statement.source)
                    for statement in written
                    if (text := self._expanded(model, statement, interval, execution).strip())
                )

        return statements(body.pre_statements), statements(body.post_statements)

    def reader_query(self, model: Model, physical: Mapping[NodeName, PhysicalName], execution: Instant) -> str:
        """The query of a model of kind VIEW as stored in the catalog: it reads the views of its parents' versions."""

        def relation(name: NodeName) -> str:
            parent = self.models.get(name)
            if parent is None:
                return table_text(name)
            if isinstance(parent.kind, Embedded):
                return f"({self._with_tables(parent, None, execution, self._tables(parent, relation))})"
            return table_text(physical[name])

        return self._with_tables(model, None, execution, self._tables(model, relation))

    def relation(self, name: NodeName, interval: Interval | None, execution: Instant) -> str:
        """The rows of a node as Spark SQL."""
        return self._read(name, interval, execution, {})

    def _query(self, model: Model, interval: Interval | None, execution: Instant, stretches: Stretches) -> str:
        tables = self._tables(model, lambda name: self._read(name, interval, execution, stretches))
        return self._with_tables(model, interval, execution, tables)

    def _read(self, name: NodeName, interval: Interval | None, execution: Instant, stretches: Stretches) -> str:
        model = self.models.get(name)
        if model is None:
            return table_text(name)
        if isinstance(model.kind, View | Embedded):
            own = interval if isinstance(model.kind, Embedded) else None
            return f"({self._query(model, own, execution, stretches)})"
        if name in self.heads:
            head = self.heads[name]
            return head_relation(head, key_range_of(model, head, *stretches.get(name, (None, None))))
        if self.assumed.get(name):
            return empty_relation(self.assumed[name])
        if name in self.names:
            return table_text(self.names[name])
        raise DefinitionError(
            f"`{name}` has no rows yet and its columns are unknown",
            hint="declare `columns` in the model's header",
            location=model.location,
            node=name,
        )

    @staticmethod
    def _tables(model: Model, relation: Callable[[NodeName], str]) -> Mapping[str, str]:
        return {written: relation(node) for written, node in model.references.items()}

    def _with_tables(
        self, model: Model, interval: Interval | None, execution: Instant, tables: Mapping[str, str]
    ) -> str:
        with values_hidden(self.models.values):
            text = self._expanded(model, _sql_body(model).query, interval, execution)
            if model.dialect != "spark":
                text = to_spark(text, model.dialect)
            return resolve_tables(text, "spark", tables)

    def _expanded(self, model: Model, text: SqlText, interval: Interval | None, execution: Instant) -> str:
        times = time_texts(interval, execution, model.dialect)
        if not text.is_time_dependent:
            return substitute_times(text.expanded, model.dialect, times)
        macros = model.body.macros if isinstance(model.body, SqlBody) else None
        if macros is None:
            return text.expanded
        scope = MacroScope(
            variables=macros.variables,
            blueprint=macros.blueprint,
            functions=self.load_macros(macros.modules),
            times=times,
            this_model=times.get("this_model"),
            definitions=macros.definitions,
            stage="evaluating",
            model_kind=model.kind.name,
        )
        return expand(text.source, scope).text


def with_declared(model: Model, sql: str) -> str:
    """A view's query cast to the declared columns, where there are any."""
    if not model.columns_are_declared or not model.columns:
        return sql
    columns = ", ".join(
        f"CAST({quote(column.name)} AS {column.type}) AS {quote(column.name)}" if column.type else quote(column.name)
        for column in model.columns
    )
    return f"SELECT {columns} FROM (\n{sql}\n)"
