"""From a model to the SQL that Spark gets: times filled in, names resolved to what state says is published."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from lamina.errors import DefinitionError
from lamina.graph.kinds import Embedded, View
from lamina.graph.model import SqlBody
from lamina.sql.macros import MacroScope, expand, substitute_times, time_literals
from lamina.sql.names import quote
from lamina.sql.render import resolve_statement_tables, resolve_tables, to_spark
from lamina.timeline.macro_times import time_values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lamina.app.records import Head
    from lamina.errors import Location
    from lamina.graph.model import Column, Model, PythonModule, SqlText
    from lamina.graph.names import NodeName
    from lamina.identity.naming import PhysicalName
    from lamina.timeline.interval import Instant, Interval

MacroLoader: TypeAlias = "Callable[[tuple[PythonModule, ...]], Mapping[str, Callable[..., object]]]"
"""Turns captured macro modules into callable macros."""

Written: TypeAlias = "tuple[tuple[str, Location], ...]"
"""Statements with the places they are written at."""


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


def head_relation(head: Head) -> str:
    """The published rows of a version, its columns in their own order.

    Spark moves partition columns to the end of a table, and hidden ones must not be seen at all.
    """
    table = table_text(head.generation)
    if head.snapshot is None and not head.shape.partition_columns:
        return table
    moment = "" if head.snapshot is None else f" VERSION AS OF {head.snapshot}"
    columns = ", ".join(quote(column.name) for column in head.shape.columns)
    return f"(SELECT {columns} FROM {table}{moment})"


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
        """The model's query for an interval, reading published generations."""
        tables = self._tables(model, lambda name: self._read(name, interval, execution))
        return self._with_tables(model, interval, execution, tables)

    def around(self, model: Model, interval: Interval | None, execution: Instant) -> tuple[Written, Written]:
        """The statements before and after the model's query, and where they are written; they read what it reads."""
        body = _sql_body(model)
        if not body.pre_statements and not body.post_statements:
            return (), ()
        tables = self._tables(model, lambda name: self._read(name, interval, execution))

        def statements(written: tuple[SqlText, ...]) -> Written:
            return tuple(
                (resolve_statement_tables(text, tables), statement.source.location)
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
        return self._read(name, interval, execution)

    def _read(self, name: NodeName, interval: Interval | None, execution: Instant) -> str:
        model = self.models.get(name)
        if model is None:
            return table_text(name)
        if isinstance(model.kind, View | Embedded):
            return f"({self.query(model, interval if isinstance(model.kind, Embedded) else None, execution)})"
        if name in self.heads:
            return head_relation(self.heads[name])
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
