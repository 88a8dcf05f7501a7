"""Columns that queries ask of tables which do not have them, found without Spark."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lamina.errors import Location, UnknownColumn
from lamina.graph.kinds import Embedded, View
from lamina.graph.model import Column, SqlBody
from lamina.graph.validity import shown_columns
from lamina.near_names import near_names
from lamina.sql.lineage.missing_columns import ColumnFindings, find_missing_columns
from lamina.sql.places import place_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import TypeAlias

    from lamina.graph.model import Model, Source
    from lamina.graph.names import NodeName
    from lamina.sql.fragment import Fragment
    from lamina.sql.lineage.missing_columns import MissingColumn

    RememberColumns: TypeAlias = Callable[[object, Callable[[], ColumnFindings]], ColumnFindings]
    """Gives what was found for a key in an earlier load, or computes it."""

_MOST_SHOWN = 8
# A session variable may be called like a column.
_DECLARES = re.compile(r"\s*(?:DECLARE|SET\s+VAR)", re.IGNORECASE)


def missing_columns(
    models: Mapping[NodeName, Model], declared: Mapping[str, Source], remember: RememberColumns
) -> Iterator[UnknownColumn]:
    """An error for every column that a model certainly cannot read; models come parents first."""
    known: dict[NodeName, tuple[str, ...]] = {
        source.name: tuple(column.name for column in source.columns)
        for source in declared.values()
        if source.columns and source.name not in models and not _names_fields(source)
    }
    for name, model in models.items():
        found = ColumnFindings()
        body = model.body
        if isinstance(body, SqlBody) and not body.query.is_time_dependent:
            schemas = {written: known[node] for written, node in model.references.items() if node in known}
            found = remember(
                (body.query.expanded, model.dialect, sorted(schemas.items())), _finder(model, body, schemas)
            )
            if not _may_have_variables(model, body):
                yield from (_error(model, body.query.source, found.text, each, declared) for each in found.missing)
        columns = _columns(model, found)
        if columns is not None:
            known[name] = columns


def _names_fields(source: Source) -> bool:
    """Whether fields of structs are declared as columns, so that the columns themselves may not be."""
    return any("." in column.name for column in source.columns or ())


def _finder(model: Model, body: SqlBody, schemas: Mapping[str, tuple[str, ...]]) -> Callable[[], ColumnFindings]:
    return lambda: find_missing_columns(body.query.expanded, model.dialect, schemas)


def _columns(model: Model, found: ColumnFindings) -> tuple[str, ...] | None:
    """All columns that readers of a model find; None where there may be others."""
    is_looked_through = isinstance(model.kind, View | Embedded) and isinstance(model.body, SqlBody)
    names = found.columns
    if not isinstance(model.body, SqlBody) or (model.columns_are_declared and not is_looked_through):
        names = None if model.columns is None else tuple(column.name for column in model.columns)
    if names is None or _keeps_lost_columns(model):
        return None
    shown = shown_columns(model.kind, tuple(Column(name=name) for name in names))
    return tuple(column.name for column in shown)


def _keeps_lost_columns(model: Model) -> bool:
    """Whether the table may have columns of an earlier query."""
    policy = getattr(model.kind, "policy", None)
    return policy is not None and policy.on_destructive_change == "ignore"


def _may_have_variables(model: Model, body: SqlBody) -> bool:
    return bool(model.pre_hooks) or any(_DECLARES.match(each.expanded) for each in body.pre_statements)


def _error(
    model: Model, written: Fragment, text: str, missing: MissingColumn, declared: Mapping[str, Source]
) -> UnknownColumn:
    table = model.references.get(missing.table) if missing.table is not None else None
    asked = table or missing.relation
    spelled = {name.lower(): name for name in missing.known}
    near = near_names(missing.name.lower(), spelled)
    listed = ", ".join(f"`{name}`" for name in missing.known[:_MOST_SHOWN])
    more = f" and {len(missing.known) - _MOST_SHOWN} more" if len(missing.known) > _MOST_SHOWN else ""
    things = "tables" if missing.is_qualifier else "columns"
    hint = f"did you mean `{spelled[near[0]]}`?" if near else f"the {things} here are {listed}{more}"
    message = f"`{asked}` has no column `{missing.name}`" if asked else f"no table here has a column `{missing.name}`"
    if missing.is_qualifier:
        message = f"no table or column here is called `{missing.name}`"
    if table is not None and table in declared:
        hint += f"; if the table has this column, declare it in `{(declared[table].location or Location()).file}`"
    return UnknownColumn(
        message,
        hint=hint,
        location=place_of(written, text, missing.offset),
        node=model.name,
    )
