"""Reads the query of a model and the statements around it: macros expanded, tables and columns found."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from lamina.errors import DefinitionError, LaminaError, Location, MacroError, UnknownMacro
from lamina.graph.kinds import Embedded, Full, View
from lamina.graph.model import MacroEnvironment, SqlBody, SqlText
from lamina.reading.drafts import WrittenReference
from lamina.reading.texts import kept_text
from lamina.sql.lexed import lex
from lamina.sql.macros.expand import expand
from lamina.sql.macros.names import macro_names, place_of_variable
from lamina.sql.macros.scope import MacroScope
from lamina.sql.macros.times import SPARK_DIALECTS, stray_signs
from lamina.sql.query import analyse_query
from lamina.sql.session_statements import session_view, statement_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from lamina.graph.model import PythonModule, VariableValue
    from lamina.reading.drafts import Surroundings
    from lamina.sql.fragment import Fragment
    from lamina.sql.header.document import Document
    from lamina.sql.lineage.scopes import TableReference
    from lamina.sql.macros.expand import Expansion
    from lamina.sql.query import QueryShape

_WORD = re.compile(r"[A-Za-z_]\w*")
_VARIABLE = re.compile(r"@\{?[^\W\d]")
# The value of a setting is any text.
_SETTING = re.compile(r"\s*(?:SET|ADD)\b", re.IGNORECASE)
_COMPUTED_WHOLE = frozenset({Full.name, View.name})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadBody:
    """A body and what its query says."""

    body: SqlBody
    shape: QueryShape
    references: tuple[WrittenReference, ...]
    needs_columns: frozenset[str]


@dataclass(slots=True, kw_only=True)
class Uses:
    """What the expansions of one model or audit have used so far."""

    variables: set[str] = field(default_factory=set)
    macros: set[str] = field(default_factory=set)
    columns: set[str] = field(default_factory=set)
    is_time_dependent: bool = False

    def add(self, expansion: Expansion) -> None:
        """Count an expansion in."""
        self.variables |= set(expansion.variables_used)
        self.macros |= set(expansion.macros_used)
        self.columns |= set(expansion.columns_used)
        self.is_time_dependent = self.is_time_dependent or expansion.is_time_dependent


@dataclass(slots=True, kw_only=True)
class _Reads:
    """The tables that a query and the statements around it read, each once, where it is named first.

    A name that an earlier statement gave to a temporary view means that view.
    """

    found: dict[str, WrittenReference] = field(default_factory=dict)
    views: dict[str, Location] = field(default_factory=dict)

    def add(self, references: Iterable[TableReference], written: Fragment, expansion: Expansion | None) -> None:
        """Count in what a text reads; without expansion, offsets say nothing about places."""
        for reference in references:
            name = reference.name.to_text()
            if reference.is_path or name in self.found or name in self.views:
                continue
            place = expansion.location_at(reference.start) if expansion is not None else written.location
            self.found[name] = WrittenReference(name=reference.name, location=place)

    def add_statement(self, written: Fragment, expansion: Expansion) -> None:
        """Count in what a statement reads, and the view it makes."""
        parts = statement_parts(expansion.text)
        if parts is not None:
            is_own_text = expansion.text == parts.before + parts.reading.text
            shifted = [replace(one, start=one.start + len(parts.before)) for one in parts.references]
            self.add(shifted, written, expansion if is_own_text else None)
        view = session_view(expansion.text)
        if view is not None:
            self.views.setdefault(view.name, written.location)

    def problems(self) -> list[LaminaError]:
        """Names that would mean a table first and a view of the session later."""
        return [
            DefinitionError(
                f"`{name}` is read as a table before a statement makes a temporary view of that name",
                hint="give the view another name, or write the table's schema in front of its name",
                location=self.views[name],
            )
            for name in self.found
            if name in self.views
        ]


def macro_scope(
    surroundings: Surroundings,
    blueprint: Mapping[str, VariableValue],
    *,
    kind: str | None = None,
    definitions: tuple[Fragment, ...] = (),
) -> MacroScope:
    """What the macros of a file see while the project is loaded: no times, the rest as it is."""
    return MacroScope(
        variables=surroundings.variables,
        functions=surroundings.functions,
        blueprint=blueprint,
        model_kind=kind,
        columns_of=surroundings.columns_of,
        definitions=definitions,
    )


def read_sql_body(
    document: Document,
    query: Fragment,
    surroundings: Surroundings,
    blueprint: Mapping[str, VariableValue],
    kind: str | None,
    extra: Mapping[str, tuple[Fragment, ...]],
    problems: list[LaminaError],
) -> ReadBody | None:
    """The body of a SQL model; None when something is wrong, which is then among the problems.

    `extra` are the project's default statements by property.
    """
    scope = macro_scope(surroundings, blueprint, kind=kind, definitions=document.definitions)
    uses = Uses()
    found: list[LaminaError] = []
    reads = _Reads()
    # Those of an embedded model never run.
    around = _Reads() if kind == Embedded.name else reads
    pre = _statements((*extra.get("pre_statements", ()), *document.pre_statements), scope, uses, found, around)
    expansion = _expand(query, scope, uses, found)
    shape = analyse_expansion(query, expansion, found) if expansion is not None else None
    if expansion is not None and shape is not None:
        reads.add(shape.references, query, expansion if shape.text == expansion.text else None)
        found.extend(_unknown_tables(shape, query, expansion))
    post = _statements((*extra.get("post_statements", ()), *document.post_statements), scope, uses, found, around)
    behind_view = (*extra.get("on_virtual_update", ()), *document.on_virtual_update)
    virtual = _statements(behind_view, scope, uses, found)
    found += reads.problems()
    problems.extend(found)
    if found or expansion is None or shape is None:
        return None
    texts = [fragment.text for fragment in (query, *document.definitions)]
    texts += [statement.source.text for statement in (*pre, *post, *virtual)]
    body = SqlBody(
        query=SqlText(source=query, expanded=expansion.text, is_time_dependent=expansion.is_time_dependent),
        canonical=shape.canonical,
        pre_statements=pre,
        post_statements=post,
        on_virtual_update=virtual,
        macros=macro_environment(uses, texts, document.definitions, surroundings, blueprint),
        has_star=shape.select_star,
    )
    # A second reading has looked everything up: what is still unknown then stays so.
    missing = frozenset(uses.columns) if surroundings.columns_of is None else frozenset()
    return ReadBody(body=body, shape=shape, references=tuple(reads.found.values()), needs_columns=missing)


def _expand(
    fragment: Fragment, scope: MacroScope, uses: Uses, problems: list[LaminaError], *, follows_view: bool = False
) -> Expansion | None:
    try:
        expansion = expand(fragment, scope)
    except LaminaError as error:
        problems.extend(error.problems)
        return None
    uses.add(expansion)
    problems.extend(_times_without_value(fragment, expansion, scope.model_kind, follows_view=follows_view))
    if not follows_view and "this_model" in macro_names(fragment).variables:
        problems.append(
            DefinitionError(
                "`@this_model` has no value here: rows are in no table of the model until all of its batch went well",
                hint="name the model itself to read the rows it has so far; what is for its view belongs between"
                " `ON_VIRTUAL_UPDATE_BEGIN;` and `ON_VIRTUAL_UPDATE_END;`",
                location=place_of_variable(fragment, "this_model"),
            )
        )
    return expansion


def _times_without_value(
    fragment: Fragment, expansion: Expansion, kind: str | None, *, follows_view: bool
) -> list[LaminaError]:
    """The times of an interval, where there is none."""
    if kind in _COMPUTED_WHOLE:
        place = f"a model of kind `{kind}`, which is computed whole"
        instead = "a kind that is computed by intervals"
    elif follows_view:
        place = "a statement that follows the view, because no interval goes with it"
        instead = "move the statement behind the query"
    else:
        return []
    return [
        DefinitionError(
            f"`@{name}` has no value in {place}",
            hint=f"use `@execution_ds` and its like, or {instead}",
            location=place_of_variable(fragment, name),
        )
        for name in sorted(expansion.times_used)
        if name.startswith(("start_", "end_"))
    ]


def _statements(
    fragments: Iterable[Fragment],
    scope: MacroScope,
    uses: Uses,
    problems: list[LaminaError],
    reads: _Reads | None = None,
) -> tuple[SqlText, ...]:
    """The statements with their macros expanded; one that a macro leaves empty is none.

    What those around a query read is counted in; without `reads` they are those that follow a view.
    """
    found: list[SqlText] = []
    for fragment in fragments:
        expansion = _expand(fragment, scope, uses, problems, follows_view=reads is None)
        if expansion is None or not _is_readable(fragment, expansion, problems):
            continue
        if reads is not None:
            reads.add_statement(fragment, expansion)
        if expansion.text.strip() or expansion.is_time_dependent:
            found.append(kept_text(fragment, expansion.text, is_time_dependent=expansion.is_time_dependent))
    return tuple(found)


def _is_readable(fragment: Fragment, expansion: Expansion, problems: list[LaminaError]) -> bool:
    """Whether macros have left quotes and brackets that match; the problem is where the statement is written."""
    stray = _stray_signs(fragment, expansion) if _SETTING.match(expansion.text) is None else []
    problems.extend(stray)
    if stray or expansion.text == fragment.text:
        return not stray
    try:
        lex(replace(fragment, text=expansion.text))
    except LaminaError as error:
        for problem in error.problems:
            problem.location = fragment.location
            problem.hint = f"{problem.hint or 'Look at what its macros give'}; after macros it is `{expansion.text}`"
        problems.extend(error.problems)
        return False
    return True


def _stray_signs(fragment: Fragment, expansion: Expansion) -> list[LaminaError]:
    """An error for every `@` that Spark would get, where none of its SQL holds one."""
    if "@" not in expansion.text or fragment.dialect not in SPARK_DIALECTS:
        return []
    return [
        MacroError(
            "`@` stands here without the name of a variable or macro",
            hint="write the name right behind it, as in `@start_ds`; in a string or a quoted name it stays as it is",
            location=expansion.location_at(offset),
        )
        for offset in stray_signs(expansion.text, fragment.dialect)
    ]


def _unknown_tables(shape: QueryShape, query: Fragment, expansion: Expansion) -> Iterator[LaminaError]:
    """An error for every table that macros have given a name with a variable in it that nothing defines."""
    for reference in shape.references:
        left = next((part for part in reference.name.parts if _VARIABLE.match(part)), None)
        # Whoever writes two signs means the name.
        if left is not None and not reference.is_path and f"@{left}" not in query.text.lower():
            yield UnknownMacro(
                f"`{left}` stands in the name of a table and is not a known variable",
                hint="look at what the macro gives; `@@` stands for a sign that belongs to the name",
                location=expansion.location_at(reference.start) if shape.text == expansion.text else query.location,
            )


def read_virtual_update(
    fragments: tuple[Fragment, ...],
    definitions: tuple[Fragment, ...],
    surroundings: Surroundings,
    blueprint: Mapping[str, VariableValue],
    kind: str,
    problems: list[LaminaError],
) -> tuple[tuple[SqlText, ...], MacroEnvironment]:
    """The statements that follow the view of a model without a query, and what their macros need later."""
    scope = macro_scope(surroundings, blueprint, kind=kind, definitions=definitions)
    uses = Uses()
    statements = _statements(fragments, scope, uses, problems)
    texts = [fragment.text for fragment in (*fragments, *definitions)]
    if not statements:
        return (), MacroEnvironment()
    return statements, macro_environment(uses, texts, definitions, surroundings, blueprint)


def analyse_expansion(query: Fragment, expansion: Expansion, problems: list[LaminaError]) -> QueryShape | None:
    """What an expanded query reads and gives; None when it cannot be read, problems being where the user wrote."""
    if not expansion.text.strip():
        problems.append(
            DefinitionError(
                "the query is empty after its macros are expanded",
                hint="let the macro return a SELECT",
                location=query.location,
            )
        )
        return None
    stray = _stray_signs(query, expansion)
    if stray:
        problems.extend(stray)
        return None
    start = Location(file=query.location.file, line=1, column=1)
    try:
        return analyse_query(expansion.text, query.dialect, start)
    except LaminaError as error:
        for problem in error.problems:
            if problem.location is not None and problem.location.line is not None:
                problem.location = expansion.location_at(_offset(expansion.text, problem.location))
            problems.append(problem)
        return None


def _offset(text: str, location: Location) -> int:
    lines = text.split("\n")
    line = min(location.line or 1, len(lines))
    return sum(len(each) + 1 for each in lines[: line - 1]) + (location.column or 1) - 1


def macro_environment(
    uses: Uses,
    texts: list[str],
    definitions: tuple[Fragment, ...],
    surroundings: Surroundings,
    blueprint: Mapping[str, VariableValue],
) -> MacroEnvironment:
    """What the macros need to be expanded again; nothing else, so that unrelated changes do not reach the model."""
    variables, macros = set(uses.variables), set(uses.macros)
    if uses.is_time_dependent:
        # At another time another branch may be taken: whatever the text names could be needed.
        words = {word.lower() for text in texts for word in _WORD.findall(text)}
        macros |= words & set(surroundings.functions)
        modules = _modules(macros, surroundings)
        words |= {word.lower() for module in modules for word in _WORD.findall(module.source)}
        variables |= words & set(surroundings.variables)
    return MacroEnvironment(
        variables=MappingProxyType(
            {name: value for name, value in sorted(surroundings.variables.items()) if name in variables}
        ),
        blueprint=MappingProxyType(dict(sorted(blueprint.items()))),
        definitions=definitions,
        modules=_modules(macros, surroundings),
    )


def _modules(macros: Iterable[str], surroundings: Surroundings) -> tuple[PythonModule, ...]:
    found = {
        module.name: module for name in sorted(macros) for module in surroundings.macro_modules.get(name.lower(), ())
    }
    return tuple(found[name] for name in sorted(found))
