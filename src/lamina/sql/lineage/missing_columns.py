"""Columns that a query asks of tables which certainly do not have them.

Names are resolved as Spark does it, but only to find out what cannot be resolved at all: whatever leaves a doubt (a
table whose columns are not known, a construct that is not understood) makes everything that could be meant by it fine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from sqlglot import exp

from lamina.errors import SyntaxProblem
from lamina.sql.lineage.outputs import is_generator, is_star, spark_name
from lamina.sql.lineage.relations import alias_columns
from lamina.sql.lineage.scopes import is_table_argument
from lamina.sql.names import MOST_PARTS, make_table_name
from lamina.sql.syntax import parse_query, source_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

Columns: TypeAlias = "Mapping[str, str] | None"
"""Columns by name in lower case, each as it is written; None where there may be any."""
_Ctes: TypeAlias = "Mapping[str, Columns]"

_SELECT_KEYS = frozenset(
    {"expressions", "from_", "joins", "laterals", "where", "group", "having", "qualify", "order", "sort", "cluster"}
    | {"distribute", "windows", "limit", "offset", "distinct", "hint", "with_"}
)
_UNION_KEYS = frozenset({"this", "expression", "with_", "distinct", "order", "limit", "offset"})
_TABLE_KEYS = frozenset({"this", "db", "catalog", "alias", "sample", "joins", "laterals"})
_JOIN_KEYS = frozenset({"this", "side", "kind", "on", "using", "method"})
_WITH_ALIASES = ("group", "having", "qualify", "order", "sort", "cluster", "distribute", "windows", "limit", "offset")
# What Spark reads without parentheses as a function, or knows where no column is called so.
_NO_COLUMNS = frozenset(
    {"current_date", "current_timestamp", "current_time", "current_user", "user", "session_user", "localtimestamp"}
    | {"current_catalog", "current_database", "current_schema", "grouping__id", "all", "default"}
    | {"window", "session_window"}
)
# Columns of files and of Iceberg tables that are there without being declared.
_HIDDEN = frozenset({"_metadata", "_file", "_pos", "_partition", "_spec_id", "_deleted", "_rowid", "_rownumber"})
_VARIABLE_SCHEMAS = frozenset({"session", "system", "builtin"})
# In backticks such a name may be a pattern, depending on a setting.
_PATTERN = re.compile(r"[()|*+?\[\]{}^$\\.]")


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingColumn:
    """A column that is nowhere: as it is written, its own name, where it stands and what could have been meant."""

    written: str
    name: str
    offset: int
    relation: str | None
    """What the column is asked of, as the query calls it; None where that is open."""
    table: str | None
    """The table behind it, by the text of its name in lower case."""
    known: tuple[str, ...]
    is_qualifier: bool = False
    """It stands in front of a dot, where it may also name a table; `known` are then the names of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFindings:
    """What is missing for certain, and the columns of the result; these are None where there may be any."""

    missing: tuple[MissingColumn, ...] = ()
    columns: tuple[str, ...] | None = None
    text: str = ""
    """The query in Spark's SQL where anything is missing, for the offsets."""


def find_missing_columns(text: str, dialect: str, schemas: Mapping[str, Sequence[str]]) -> ColumnFindings:
    """Read a query whose macros are expanded; offsets point into its text in Spark's SQL.

    `schemas` gives all columns of tables, by the text of their names in lower case; other tables may have any.
    """
    known = {name: {column.lower(): column for column in columns} for name, columns in schemas.items()}
    try:
        query = parse_query(text, dialect)
        reader = _Reader(text=query.text, schemas=known)
        columns = reader.query(query.tree, {}, None)
    except (SyntaxProblem, RecursionError):
        return ColumnFindings()
    missing = {each.offset: each for each in reader.missing}
    return ColumnFindings(
        text=query.text if missing else "",
        missing=tuple(missing[offset] for offset in sorted(missing)),
        columns=None if columns is None else tuple(columns.values()),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Relation:
    words: tuple[str, ...]
    columns: Columns
    table: str | None = None
    is_hidden: bool = False
    """Its columns are not among those of a star: the other side of a semi join."""

    def answers_to(self, words: tuple[str, ...]) -> bool:
        return bool(self.words) and self.words[-len(words) :] == words


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Scope:
    """What names may mean; `aliases` are None where the SELECT may give any."""

    parent: _Scope | None
    relations: list[_Relation] = field(default_factory=list)
    aliases: frozenset[str] | None = frozenset()

    def chain(self) -> Iterator[_Scope]:
        scope: _Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def is_open(self) -> bool:
        return self.aliases is None or any(relation.columns is None for relation in self.relations)


@dataclass(slots=True, kw_only=True)
class _Reader:
    text: str
    schemas: Mapping[str, Mapping[str, str]]
    missing: list[MissingColumn] = field(default_factory=list)

    # --- queries -----------------------------------------------------------------------------------------------------
    def query(self, node: exp.Expr, ctes: _Ctes, outer: _Scope | None) -> Columns:
        """The columns of a query; what its expressions miss is collected."""
        ctes = self._with_ctes(node, ctes, outer)
        if isinstance(node, exp.Subquery):
            columns = self.query(node.this, ctes, outer)
            return None if node.args.get("pivots") else columns
        if isinstance(node, exp.SetOperation):
            columns = self.query(node.this, ctes, outer)
            self.query(node.expression, ctes, outer)
            return columns if _says_only(node, _UNION_KEYS) else None
        if isinstance(node, exp.Values):
            self._expressions(node.expressions, _Scope(parent=outer), ctes)
            return _values_columns(node)
        if isinstance(node, exp.Select):
            return self._select(node, ctes, outer)
        return None

    def _with_ctes(self, node: exp.Expr, ctes: _Ctes, outer: _Scope | None) -> _Ctes:
        with_clause = node.args.get("with_")
        if with_clause is None:
            return ctes
        known = dict(ctes)
        for cte in with_clause.expressions:
            name, given = cte.alias.lower(), _given_columns(cte)
            inside = {**known, name: given} if with_clause.args.get("recursive") else known
            columns = self.query(cte.this, inside, outer)
            known[name] = given or columns
        return known

    def _select(self, node: exp.Select, ctes: _Ctes, outer: _Scope | None) -> Columns:
        scope = _Scope(parent=outer)
        if not _says_only(node, _SELECT_KEYS) or node.args.get("kind"):
            scope.relations.append(_Relation(words=(), columns=None))
        conditions = self._sources(node, ctes, scope)
        where = node.args.get("where")
        self._expressions([*conditions, *([where] if where is not None else [])], scope, ctes)
        columns = self._outputs(node, scope)
        aliases: frozenset[str] | None = frozenset()
        for projection in node.expressions:
            # A column may use the names of those before it.
            self._expressions([projection], replace(scope, aliases=aliases), ctes)
            new = self._new_names(projection, scope)
            aliases = None if aliases is None or new is None else aliases | new
        inside = replace(scope, aliases=aliases)
        for key in _WITH_ALIASES:
            clause = node.args.get(key)
            self._expressions(clause if isinstance(clause, list) else [clause], inside, ctes)
        return columns

    def _new_names(self, projection: exp.Expr, scope: _Scope) -> frozenset[str] | None:
        """Names that a projection may give beside those of columns that are there; None when it may give any."""
        if is_star(projection):
            return frozenset() if _expand(projection, scope) is not None else None
        if isinstance(projection, exp.QueryTransform) or is_generator(projection, self.text):
            return None
        if isinstance(projection, exp.Aliases):
            return frozenset(each.name.lower() for each in projection.expressions)
        if isinstance(projection, exp.Alias):
            return frozenset({projection.alias.lower()})
        if isinstance(projection, exp.Column):
            return frozenset({projection.name.lower()} if len(projection.parts) > 1 else ())
        # Spark calls some expressions after what they hold, such as a cast of a field after the field.
        return frozenset(each.name.lower() for each in projection.find_all(exp.Identifier))

    def _outputs(self, node: exp.Select, scope: _Scope) -> Columns:
        found: dict[str, str] = {}
        qualifiers = frozenset(relation.words[-1] for relation in scope.relations if relation.words)
        for projection in node.expressions:
            if is_star(projection):
                columns = _expand(projection, scope)
                if columns is None:
                    return None
                found.update(columns)
            elif isinstance(projection, exp.Aliases):
                found.update((each.name.lower(), each.name) for each in projection.expressions)
            elif isinstance(projection, exp.QueryTransform) or is_generator(projection, self.text):
                return None
            else:
                name = spark_name(projection, self.text, qualifiers)
                if not name or name.lower() in _NO_COLUMNS:
                    return None
                found[name.lower()] = name
        return found

    # --- sources -----------------------------------------------------------------------------------------------------
    def _sources(self, node: exp.Select, ctes: _Ctes, scope: _Scope) -> list[exp.Expr]:
        """Puts everything in FROM into the scope; gives the conditions it is joined by."""
        conditions: list[exp.Expr] = []
        laterals: list[exp.Lateral] = []
        from_clause = node.args.get("from_")
        waiting: list[tuple[exp.Expr, bool]] = [(from_clause.this, False)] if from_clause is not None else []
        waiting += self._joined(node, conditions, scope)
        while waiting:
            source, is_hidden = waiting.pop(0)
            if isinstance(source, exp.Lateral):
                laterals.append(source)
                continue
            if isinstance(source, exp.Subquery) and isinstance(source.this, exp.Table) and not source.alias:
                waiting.append((source.this, is_hidden))
            else:
                scope.relations.append(replace(self._relation(source, ctes, scope.parent), is_hidden=is_hidden))
            waiting += self._joined(source, conditions, scope)
        for lateral in laterals:
            scope.relations.append(self._lateral(lateral, ctes, scope))
        self._shared(node, scope)
        return conditions

    def _joined(self, node: exp.Expr, conditions: list[exp.Expr], scope: _Scope) -> list[tuple[exp.Expr, bool]]:
        found: list[tuple[exp.Expr, bool]] = []
        for join in node.args.get("joins") or ():
            if not _says_only(join, _JOIN_KEYS):
                scope.relations.append(_Relation(words=(), columns=None))
            if join.args.get("on") is not None:
                conditions.append(join.args["on"])
            found.append((join.this, join.kind in {"SEMI", "ANTI"}))
        return found + [(lateral, False) for lateral in node.args.get("laterals") or ()]

    def _shared(self, node: exp.Select, scope: _Scope) -> None:
        """Columns of USING, which both sides must have."""
        if scope.is_open():
            return
        for join in node.args.get("joins") or ():
            for identifier in join.args.get("using") or ():
                name = identifier.name.lower()
                if isinstance(identifier, exp.Identifier) and not any(
                    name in (relation.columns or {}) for relation in scope.relations
                ):
                    self._miss([identifier], scope.relations)

    def _relation(self, node: exp.Expr, ctes: _Ctes, outer: _Scope | None) -> _Relation:
        alias = node.alias.lower()
        words: tuple[str, ...] = (alias,) if alias else ()
        table: str | None = None
        columns: Columns = None
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            parts = tuple(part.name.lower() for part in node.parts)
            words = words or parts
            if len(parts) == 1 and parts[0] in ctes:
                columns = ctes[parts[0]]
            elif len(parts) <= MOST_PARTS:
                table = make_table_name(parts).to_text()
                columns = self.schemas.get(table)
            if not _says_only(node, _TABLE_KEYS):
                columns = None
        elif isinstance(node, exp.Table):
            columns = {"id": "id"} if (source_name(node.this, self.text) or "") == "range" else None
        elif isinstance(node, exp.Values):
            columns = _values_columns(node)
        elif isinstance(node, exp.Subquery) and not isinstance(node.this, exp.Table):
            columns = self.query(node, ctes, outer)
        is_changed = bool(node.args.get("pivots"))
        given = _given_columns(node)
        return _Relation(words=words, columns=None if is_changed else given or columns, table=table)

    def _lateral(self, node: exp.Lateral, ctes: _Ctes, scope: _Scope) -> _Relation:
        alias = node.alias.lower()
        columns: Columns = None
        if isinstance(node.this, exp.Subquery):
            columns = self.query(node.this, ctes, scope)
        else:
            self._expressions([node.this], scope, ctes)
        return _Relation(words=(alias,) if alias else (), columns=_given_columns(node) or columns)

    # --- expressions -------------------------------------------------------------------------------------------------
    def _expressions(self, nodes: Iterable[exp.Expr | None], scope: _Scope, ctes: _Ctes) -> None:
        waiting = list(nodes)
        while waiting:
            node = waiting.pop()
            if isinstance(node, exp.Column):
                if not isinstance(node.this, exp.Star):
                    self._column(node, scope)
            elif isinstance(node, (exp.Query, exp.Values)):
                self.query(node, ctes, scope)
            elif isinstance(node, exp.Expr) and not _holds_no_columns(node):
                for value in node.args.values():
                    waiting += value if isinstance(value, list) else [value]

    def _column(self, column: exp.Column, scope: _Scope) -> None:
        parts = column.parts
        words = tuple(part.name.lower() for part in parts)
        if words[0] in _NO_COLUMNS or words[0] in _VARIABLE_SCHEMAS or _HIDDEN & set(words):
            return
        if any(_PATTERN.search(word) for word in words):
            return
        asked: list[_Relation] = []
        length = 0
        for level in scope.chain():
            if level.is_open() or words[0] in (level.aliases or ()):
                return
            for relation in level.relations:
                if words[0] in (relation.columns or ()):
                    return
            for count in range(1, min(len(words) - 1, MOST_PARTS) + 1):
                found = [relation for relation in level.relations if relation.answers_to(words[:count])]
                if any(words[count] in (relation.columns or ()) for relation in found):
                    return
                if found and not asked:
                    asked, length = found, count
        if asked:
            self._miss(parts[: length + 1], asked)
        elif len(words) <= 2:
            everything = [relation for level in scope.chain() for relation in level.relations]
            self._miss(parts[:1], everything, is_qualifier=len(words) > 1)

    def _miss(self, parts: Sequence[exp.Expr], asked: Sequence[_Relation], *, is_qualifier: bool = False) -> None:
        meta = parts[0].meta
        if not asked or "start" not in meta:
            return
        names = (relation.words[-1:] if is_qualifier else (relation.columns or {}).values() for relation in asked)
        known = dict.fromkeys(name for each in names for name in each)
        self.missing.append(
            MissingColumn(
                written=".".join(part.name for part in parts),
                name=parts[-1].name,
                offset=meta["start"],
                relation=".".join(part.name for part in parts[:-1]) or None,
                table=asked[0].table if len(asked) == 1 and not is_qualifier else None,
                known=tuple(known),
                is_qualifier=is_qualifier,
            )
        )


def _holds_no_columns(node: exp.Expr) -> bool:
    return isinstance(node, (exp.Star, exp.Hint, exp.DataType, exp.Parameter, exp.Table, exp.Pivot)) or (
        is_table_argument(node)
    )


def _says_only(node: exp.Expr, understood: frozenset[str]) -> bool:
    return all(key in understood for key, value in node.args.items() if value)


def _expand(star: exp.Expr, scope: _Scope) -> Columns:
    """The columns of a star; those of USING are among them once, whatever their order."""
    options = star.this if isinstance(star, exp.Column) else star
    if options.args.get("replace") or options.args.get("rename"):
        return None
    relations = [relation for relation in scope.relations if not relation.is_hidden]
    if isinstance(star, exp.Column):
        words = tuple(part.name.lower() for part in star.parts[:-1])
        relations = [relation for relation in relations if relation.answers_to(words)]
    if not relations or any(relation.columns is None for relation in relations):
        return None
    left_out = {column.name.lower() for column in options.args.get("except_") or ()}
    found = {key: name for relation in relations for key, name in (relation.columns or {}).items()}
    return {key: name for key, name in found.items() if key not in left_out}


def _values_columns(values: exp.Values) -> Columns:
    rows = values.expressions
    width = len(rows[0].expressions) if rows and isinstance(rows[0], exp.Tuple) else 1
    return _given_columns(values) or {name: name for name in (f"col{number}" for number in range(1, width + 1))}


def _given_columns(node: exp.Expr) -> Columns:
    """The names of an alias such as `t(a, b)`; None without any."""
    return {name: name for name in alias_columns(node)} or None
