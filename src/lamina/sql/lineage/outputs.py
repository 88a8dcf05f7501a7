"""Which columns a query gives, under the names that Spark would give them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from lamina.sql.canonical import mixes_commas_and_joins
from lamina.sql.lineage.scopes import joined_sources
from lamina.sql.names import MOST_PARTS, make_table_name
from lamina.sql.syntax import show, source_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_BINARY_SIGNS: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.And: "AND",
    exp.Or: "OR",
    exp.EQ: "=",
    exp.NullSafeEQ: "<=>",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
}
_NAMED_AS_WRITTEN = frozenset(
    {"sum", "avg", "mean", "min", "max", "count", "coalesce", "nvl", "ifnull", "upper", "lower", "concat", "abs"}
    | {"length", "len", "char_length", "greatest", "least", "collect_list", "collect_set", "max_by", "min_by"}
    | {"year", "month", "any_value", "stddev", "count_if", "md5"}
)
_CASTS = frozenset(
    {None, "cast", "try_cast", "int", "bigint", "string", "double", "float", "boolean", "date", "timestamp"}
)
_GENERATORS = (exp.Explode, exp.Posexplode, exp.Inline, exp.Stack)
_GENERATOR_NAMES = frozenset({"inline", "inline_outer", "json_tuple", "stack", "explode_outer", "posexplode_outer"})

Columns = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One column of a query's result and the projection that gives it; a star gives several."""

    name: str
    expression: exp.Expr
    position: int
    """Which of the projections of the SELECT it comes from."""
    is_name_certain: bool = True


def outputs_of(tree: exp.Expr, text: str, schemas: Mapping[str, Columns] | None = None) -> tuple[Output, ...] | None:
    """The columns in order; None where a star, a generator or a pivot keeps them unknown.

    `schemas` gives the columns of tables, by the text of their names in lower case.
    """
    try:
        return _Reader(text=text, schemas=schemas or {}).read(tree, {})
    except RecursionError:
        return None


def leftmost_select(tree: exp.Expr) -> exp.Select | None:
    """The SELECT that names the columns of a query, through parentheses and set operations."""
    node: exp.Expr | None = tree
    while node is not None and not isinstance(node, exp.Select):
        node = node.this if isinstance(node, (exp.Subquery, exp.SetOperation)) else None
    return node


def is_star(projection: exp.Expr) -> bool:
    """Whether a projection is `*`, `t.*`, or one of these with EXCEPT."""
    return isinstance(projection, exp.Star) or (
        isinstance(projection, exp.Column) and isinstance(projection.this, exp.Star)
    )


def is_generator(expression: exp.Expr, text: str) -> bool:
    """Whether an expression makes several rows of one."""
    return isinstance(expression, _GENERATORS) or (
        isinstance(expression, exp.Func) and (source_name(expression, text) or "") in _GENERATOR_NAMES
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    words: Columns
    columns: Columns | None

    def answers_to(self, words: Columns) -> bool:
        return self.words[-len(words) :] == words


@dataclass(slots=True, kw_only=True)
class _Reader:
    text: str
    schemas: Mapping[str, Columns]

    def read(self, query: exp.Expr, ctes: Mapping[str, Columns | None]) -> tuple[Output, ...] | None:
        ctes = self._with_ctes(query, ctes)
        if isinstance(query, exp.SetOperation):
            return self.read(query.this, ctes)
        if isinstance(query, exp.Subquery):
            return None if query.args.get("pivots") else self.read(query.this, ctes)
        if isinstance(query, exp.Values):
            return tuple(
                Output(name=name, expression=query, position=position)
                for position, name in enumerate(_values_columns(query))
            )
        if isinstance(query, exp.Select) and not query.args.get("operation_modifiers"):
            return self._read_select(query, ctes)
        return None

    def _with_ctes(self, query: exp.Expr, ctes: Mapping[str, Columns | None]) -> Mapping[str, Columns | None]:
        with_clause = query.args.get("with_")
        if with_clause is None:
            return ctes
        known = dict(ctes)
        for cte in with_clause.expressions:
            name = cte.alias.lower()
            columns = _renamed(cte, self._names(cte.this, known))
            known[name] = columns
        return known

    def _names(self, query: exp.Expr, ctes: Mapping[str, Columns | None]) -> Columns | None:
        outputs = self.read(query, ctes)
        return None if outputs is None else tuple(output.name for output in outputs)

    def _read_select(self, select: exp.Select, ctes: Mapping[str, Columns | None]) -> tuple[Output, ...] | None:
        sources = self._sources(select, ctes)
        qualifiers = frozenset(source.words[-1] for source in sources if source.words)
        outputs: list[Output] = []
        for position, projection in enumerate(select.expressions):
            if is_star(projection):
                expanded = self._expand(projection, select, sources)
                if expanded is None:
                    return None
                outputs.extend(Output(name=name, expression=projection, position=position) for name in expanded)
                continue
            if isinstance(projection, exp.Aliases):
                names: Sequence[str] = [identifier.name for identifier in projection.expressions]
                certain = True
            elif is_generator(projection.unalias(), self.text) and not isinstance(projection, exp.Alias):
                return None
            else:
                name = spark_name(projection, self.text, qualifiers)
                certain = name is not None
                names = [name if name is not None else show(projection)]
            outputs.extend(
                Output(name=name, expression=projection, position=position, is_name_certain=certain) for name in names
            )
        return tuple(outputs)

    def _expand(self, star: exp.Expr, select: exp.Select, sources: Sequence[_Source]) -> Columns | None:
        if isinstance(star, exp.Column):
            words = tuple(part.name.lower() for part in star.parts[:-1])
            named = [source for source in sources if source.words and source.answers_to(words)]
            columns = named[0].columns if len(named) == 1 else None
            options: exp.Expr = star.this
        else:
            columns = self._all_columns(select, sources)
            options = star
        if columns is None or options.args.get("replace") or options.args.get("rename"):
            return None
        left_out = {column.name.lower() for column in options.args.get("except_") or ()}
        return tuple(column for column in columns if column.lower() not in left_out)

    def _all_columns(self, select: exp.Select, sources: Sequence[_Source]) -> Columns | None:
        """The columns of a bare star; columns of USING come first and once, semi joins give no columns."""
        if not sources or mixes_commas_and_joins(select) or any(source.columns is None for source in sources):
            return None
        joins = select.args.get("joins") or []
        if len(sources) != 1 + len(joins) + len(select.args.get("laterals") or []):
            return None
        columns = list(sources[0].columns or ())
        for index, source in enumerate(sources[1:]):
            join = joins[index] if index < len(joins) else None
            if join is not None and join.kind in {"SEMI", "ANTI"}:
                continue
            if join is not None and join.args.get("method"):
                return None
            shared = [column.name.lower() for column in (join.args.get("using") or ())] if join is not None else []
            own = {name.lower(): name for name in columns}
            if any(name not in own for name in shared):
                return None
            first = [own[name] for name in shared]
            columns = first + [name for name in columns if name.lower() not in shared]
            columns += [name for name in source.columns or () if name.lower() not in shared]
        return tuple(columns)

    def _sources(self, select: exp.Select, ctes: Mapping[str, Columns | None]) -> list[_Source]:
        from_clause = select.args.get("from_")
        starts = [from_clause.this] if from_clause is not None else []
        return [self._source(node, ctes) for node in [*starts, *joined_sources(select)]]

    def _source(self, node: exp.Expr, ctes: Mapping[str, Columns | None]) -> _Source:
        alias = node.alias.lower()
        words: Columns = (alias,) if alias else ()
        if any(node.args.get(key) for key in ("pivots", "joins", "laterals")):
            return _Source(words=words, columns=None)
        columns: Columns | None = None
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            parts = tuple(part.name.lower() for part in node.parts)
            if len(parts) == 1 and parts[0] in ctes:
                columns = ctes[parts[0]]
            elif len(parts) <= MOST_PARTS:
                columns = self.schemas.get(make_table_name(parts).to_text())
            words = words or parts
        elif isinstance(node, exp.Table):
            columns = ("id",) if (source_name(node.this, self.text) or "") == "range" else None
        elif isinstance(node, exp.Values):
            columns = _values_columns(node)
        elif isinstance(node, exp.Subquery) and not isinstance(node.this, exp.Table):
            columns = self._names(node, ctes)
        elif isinstance(node, exp.Lateral) and isinstance(node.this, exp.Subquery):
            columns = self._names(node.this, ctes)
        return _Source(words=words, columns=_renamed(node, columns))


def spark_name(projection: exp.Expr, text: str, qualifiers: frozenset[str]) -> str | None:
    """The name that Spark gives a projection; None where that depends on more than its text."""
    while isinstance(projection, exp.Paren):
        projection = projection.this
    if isinstance(projection, (exp.Alias, exp.Column)):
        return projection.alias_or_name
    if isinstance(projection, exp.Dot) and isinstance(projection.expression, exp.Identifier):
        inner = projection.this
        return projection.expression.name if isinstance(inner, (exp.Column, exp.Dot)) and _is_path_only(inner) else None
    if isinstance(projection, exp.Cast) and source_name(projection, text) in _CASTS:
        inner = projection.this
        return inner.name if isinstance(inner, exp.Column) and len(inner.parts) == 1 else None
    return _pretty(projection, text, qualifiers)


def _pretty(node: exp.Expr, text: str, qualifiers: frozenset[str]) -> str | None:
    """How Spark prints an expression in a column name."""
    if isinstance(node, exp.Paren):
        return _pretty(node.this, text, qualifiers)
    if isinstance(node, exp.Column):
        is_qualified = len(node.parts) > 1
        return None if is_qualified and (len(node.parts) > 2 or node.table.lower() not in qualifiers) else node.name
    if isinstance(node, exp.Literal):
        return str(node.this) if node.is_string or "e" not in node.this.lower() else None
    if isinstance(node, exp.Null):
        return "NULL"
    if isinstance(node, exp.Boolean):
        return "true" if node.this else "false"
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
        return f"-{node.this.this}"
    if isinstance(node, exp.Not):
        inner = _pretty(node.this, text, qualifiers) if not isinstance(node.this, exp.Is) else None
        return None if inner is None else f"(NOT {inner})"
    if isinstance(node, exp.Binary):
        return _pretty_binary(node, text, qualifiers)
    if isinstance(node, exp.Func):
        return _pretty_function(node, text, qualifiers)
    return None


def _pretty_binary(node: exp.Binary, text: str, qualifiers: frozenset[str]) -> str | None:
    left = _pretty(node.left, text, qualifiers)
    right = _pretty(node.right, text, qualifiers)
    if left is None or right is None:
        return None
    if isinstance(node, exp.NEQ):
        return f"(NOT ({left} = {right}))"
    if isinstance(node, exp.DPipe):
        return f"concat({left}, {right})"
    sign = _BINARY_SIGNS.get(type(node))
    return None if sign is None else f"({left} {sign} {right})"


def _pretty_function(node: exp.Func, text: str, qualifiers: frozenset[str]) -> str | None:
    name = source_name(node, text)
    if name not in _NAMED_AS_WRITTEN:
        return None
    first = node.args.get("this")
    prefix = ""
    if isinstance(first, exp.Distinct):
        prefix, arguments = "DISTINCT ", list(first.expressions)
    elif isinstance(first, exp.Star):
        return "count(1)"
    else:
        second = node.args.get("expression")
        arguments = [item for item in (first, second, *(node.args.get("expressions") or ())) if item is not None]
    printed = [_pretty(argument, text, qualifiers) for argument in arguments]
    known = [item for item in printed if item is not None]
    return f"{name}({prefix}{', '.join(known)})" if len(known) == len(printed) else None


def _is_path_only(node: exp.Expr) -> bool:
    while isinstance(node, exp.Dot):
        node = node.this
    return isinstance(node, exp.Column)


def _values_columns(values: exp.Values) -> Columns:
    named = _alias_columns(values)
    if named:
        return named
    rows = values.expressions
    width = len(rows[0].expressions) if rows and isinstance(rows[0], exp.Tuple) else 1
    return tuple(f"col{number}" for number in range(1, width + 1))


def _alias_columns(node: exp.Expr) -> Columns:
    alias = node.args.get("alias")
    if not isinstance(alias, exp.TableAlias):
        return ()
    return tuple(column.name for column in alias.args.get("columns") or ())


def _renamed(node: exp.Expr, columns: Columns | None) -> Columns | None:
    """The columns under the names of an alias such as `t(a, b)`."""
    return _alias_columns(node) or columns
