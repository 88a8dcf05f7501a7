"""Columns that queries ask of tables which do not have them, found without Spark."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lamina.errors import Location, UnknownColumn
from lamina.graph.kinds import Embedded, View
from lamina.graph.model import Column, SqlBody
from lamina.graph.validity import shown_columns
from lamina.near_names import near_names
from lamina.sql.builtin_audits import THIS_MODEL, find_builtin
from lamina.sql.lineage.missing_columns import ColumnFindings, find_missing_columns
from lamina.sql.places import place_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import TypeAlias

    from lamina.graph.model import AuditCall, AuditCode, Model, Source
    from lamina.graph.names import NodeName
    from lamina.sql.fragment import Fragment
    from lamina.sql.lineage.missing_columns import MissingColumn

    RememberColumns: TypeAlias = Callable[[object, Callable[[], ColumnFindings]], ColumnFindings]
    """Gives what was found for a key in an earlier load, or computes it."""

_MOST_SHOWN = 8
# Arguments of built-in audits that are expressions.
_EXPRESSIONS = frozenset({"condition", "criteria", "partition_clause"})
# How users call the rows that an audit is about.
_AS_WRITTEN = "@this_model"
# A session variable may be called like a column.
_DECLARES = re.compile(r"\s*(?:DECLARE|SET\s+VAR)", re.IGNORECASE)


def missing_columns(
    models: Mapping[NodeName, Model], declared: Mapping[str, Source], remember: RememberColumns
) -> Iterator[UnknownColumn]:
    """An error for every column that a model certainly cannot read; models come parents first."""
    known = _declared_columns(models, declared)
    for model, body, found in _walked(models, known, remember):
        if body is not None and not _may_have_variables(model, body):
            yield from (_error(model, body.query.source, found.text, each, declared) for each in found.missing)


def missing_in_audits(
    models: Mapping[NodeName, Model], declared: Mapping[str, Source], remember: RememberColumns
) -> Iterator[UnknownColumn]:
    """An error for every column that the query of an audit certainly cannot read; models come parents first."""
    if not any(_asked_in_queries(model) for model in models.values()):
        return
    known = _declared_columns(models, declared)
    for _ in _walked(models, known, remember):
        pass
    # A standalone audit follows every model that it reads.
    told: set[tuple[str, Location]] = set()
    for model in models.values():
        for about, call, code in _asked_in_queries(model):
            schemas = {written: known[node] for written, node in code.references.items() if node in known}
            if about in known:
                schemas[THIS_MODEL] = known[about]
            dialect = code.query.source.dialect
            key = (code.query.expanded, dialect, sorted(schemas.items()))
            found = remember(key, _finder(code.query.expanded, dialect, schemas))
            for missing in found.missing:
                error = _error_in_audit(about, call, code, found.text, missing)
                place = (error.message, error.location or Location())
                if place not in told:
                    told.add(place)
                    yield error


def _asked_in_queries(model: Model) -> list[tuple[NodeName, AuditCall, AuditCode]]:
    """The audits whose queries users have a part in, each with the table that it is about."""
    own = [(model.name, call) for call in (*model.audits, *model.standalone_audits)]
    read = [(name, call) for name, calls in model.source_audits.items() for call in calls]
    return [
        (name, call, call.code)
        for name, call in (*own, *read)
        if call.code is not None
        and not call.is_skipped
        and not call.code.query.is_time_dependent
        # Columns that a model names for other built-in audits are checked with its header.
        and (find_builtin(call.name) is None or name != model.name or not _EXPRESSIONS.isdisjoint(call.arguments))
    ]


def _declared_columns(
    models: Mapping[NodeName, Model], declared: Mapping[str, Source]
) -> dict[NodeName, tuple[str, ...]]:
    return {
        source.name: tuple(column.name for column in source.columns)
        for source in declared.values()
        if source.columns and source.name not in models and not _names_fields(source)
    }


def _walked(
    models: Mapping[NodeName, Model], known: dict[NodeName, tuple[str, ...]], remember: RememberColumns
) -> Iterator[tuple[Model, SqlBody | None, ColumnFindings]]:
    """Every model with what its query was found to say, if it was looked at; `known` gets the columns of each."""
    for name, model in models.items():
        found = ColumnFindings()
        body = model.body if isinstance(model.body, SqlBody) and not model.body.query.is_time_dependent else None
        if body is not None:
            schemas = {written: known[node] for written, node in model.references.items() if node in known}
            key = (body.query.expanded, model.dialect, sorted(schemas.items()))
            found = remember(key, _finder(body.query.expanded, model.dialect, schemas))
        yield model, body, found
        columns = _columns(model, found)
        if columns is not None:
            known[name] = columns


def _names_fields(source: Source) -> bool:
    """Whether fields of structs are declared as columns, so that the columns themselves may not be."""
    return any("." in column.name for column in source.columns or ())


def _finder(text: str, dialect: str, schemas: Mapping[str, tuple[str, ...]]) -> Callable[[], ColumnFindings]:
    return lambda: find_missing_columns(text, dialect, schemas)


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
    hint = _hint(missing)
    if table is not None and table in declared:
        hint += f"; if the table has this column, declare it in `{(declared[table].location or Location()).file}`"
    return UnknownColumn(
        _message(missing, asked),
        hint=hint,
        location=place_of(written, text, missing.offset),
        node=model.name,
    )


def _error_in_audit(
    about: NodeName, call: AuditCall, code: AuditCode, text: str, missing: MissingColumn
) -> UnknownColumn:
    table = about if missing.table == THIS_MODEL else code.references.get(missing.table or "")
    written = code.query.source
    is_argument = find_builtin(call.name) is not None or any(
        missing.name.lower() in re.findall(r"\w+", argument.lower()) for argument in call.arguments.values()
    )
    message = f"{_message(missing, table or missing.relation)}, which audit `{call.name}` asks for"
    return UnknownColumn(
        message.replace(THIS_MODEL, _AS_WRITTEN),
        hint=_hint(missing).replace(THIS_MODEL, _AS_WRITTEN),
        location=call.location if is_argument else place_of(written, text, missing.offset),
        node=about,
    )


def _message(missing: MissingColumn, asked: str | None) -> str:
    if missing.is_qualifier:
        return f"no table or column here is called `{missing.name}`"
    return f"`{asked}` has no column `{missing.name}`" if asked else f"no table here has a column `{missing.name}`"


def _hint(missing: MissingColumn) -> str:
    spelled = {name.lower(): name for name in missing.known}
    near = near_names(missing.name.lower(), spelled)
    listed = ", ".join(f"`{name}`" for name in missing.known[:_MOST_SHOWN])
    more = f" and {len(missing.known) - _MOST_SHOWN} more" if len(missing.known) > _MOST_SHOWN else ""
    things = "tables" if missing.is_qualifier else "columns"
    return f"did you mean `{spelled[near[0]]}`?" if near else f"the {things} here are {listed}{more}"
