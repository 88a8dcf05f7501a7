"""Following columns and rows of a query back to the tables; what `lineage` is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from lamina.sql.canonical import canonical_tree, mixes_commas_and_joins
from lamina.sql.lineage.outputs import is_generator, is_star, spark_name
from lamina.sql.lineage.relations import (
    ColumnSource,
    Doubt,
    TracedRelation,
    alias_columns,
    combine,
    field_of,
    relabel,
    renamed,
    seen_from_outside,
    shorten,
    the_only,
)
from lamina.sql.names import MOST_PARTS, make_table_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_MOST_QUERIES = 2000
_ORDER_KEYS = ("order", "sort", "cluster", "distribute")
_HANDLED_KEYS = frozenset(
    {"with_", "expressions", "from_", "joins", "laterals", "where", "group", "having", "distinct", "limit", "offset"}
    | {"windows", "hint", "kind", *_ORDER_KEYS}
)
_HANDLED_TABLE_KEYS = frozenset({"this", "db", "catalog", "alias", "sample", "version"})


@dataclass(slots=True, kw_only=True)
class _Scope:
    parent: _Scope | None
    relations: list[TracedRelation] = field(default_factory=list)
    merged: dict[str, ColumnSource] = field(default_factory=dict)
    """Columns of USING, which stand for both sides."""
    aliases: dict[str, ColumnSource] = field(default_factory=dict)
    """Projections so far, which later ones and GROUP BY, HAVING and ORDER BY may name."""
    windows: dict[str, exp.Expr] = field(default_factory=dict)
    prefers_aliases: bool = False
    doubts_aliases: bool = False
    """An alias that hides a column of a source is a doubt: HAVING, and aggregates in ORDER BY."""


_Ctes = dict[str, tuple[exp.Expr, "_Ctes", tuple[str, ...]]]


@dataclass(slots=True, kw_only=True)
class Tracer:
    """Traces one query; `text` is where it was parsed from. Every method raises Doubt rather than guess."""

    text: str
    schemas: Mapping[str, tuple[str, ...]]
    counts: dict[str, int] = field(default_factory=dict)
    queries: int = 0

    # --- queries -----------------------------------------------------------------------------------------------------
    def query(self, node: exp.Expr, ctes: _Ctes, outer: _Scope | None, *, needs_names: bool = True) -> TracedRelation:
        """The relation that a query gives; `needs_names` is False where only its values count."""
        self.queries += 1
        if self.queries > _MOST_QUERIES:
            raise Doubt
        ctes = _with_ctes(node, ctes)
        if isinstance(node, exp.Subquery):
            _refuse(node, {"this", "alias", "with_"})
            return self.query(node.this, ctes, outer, needs_names=needs_names)
        if isinstance(node, exp.SetOperation):
            return self._set_operation(node, ctes, outer)
        if isinstance(node, exp.Values):
            return self._values(node)
        if isinstance(node, exp.Select):
            return self._select(node, ctes, outer, needs_names=needs_names)
        raise Doubt

    def _set_operation(self, node: exp.SetOperation, ctes: _Ctes, outer: _Scope | None) -> TracedRelation:
        _refuse(node, {"this", "expression", "with_", "distinct", "order", "limit", "offset"})
        left = self.query(node.this, ctes, outer)
        right = self.query(node.expression, ctes, outer)
        if left.columns is None or right.columns is None or len(left.columns) != len(right.columns):
            raise Doubt
        kind = f"{type(node).__name__.lower()}{' distinct' if node.args.get('distinct') else ' all'}"
        columns = {
            name: combine(kind, [first, second])
            for (name, first), second in zip(left.columns.items(), right.columns.values(), strict=True)
        }
        deciding = [left.rows, right.rows]
        if kind != "union all":
            deciding += [*left.columns.values(), *right.columns.values()]
        scope = _Scope(parent=outer, aliases=dict(columns), prefers_aliases=True)
        deciding += self._clauses(node, ("order", "limit", "offset"), scope, ctes)
        return TracedRelation(columns=columns, rows=combine(kind, deciding))

    def _values(self, node: exp.Values) -> TracedRelation:
        if any(node.find_all(exp.Column, exp.Subquery)):
            raise Doubt
        rows = " ".join(canonical_tree(row, self.text) for row in node.expressions)
        whole = ColumnSource(expression=shorten(f"(values {rows})"))
        names = alias_columns(node)
        if not names:
            first = node.expressions[0]
            width = len(first.expressions) if isinstance(first, exp.Tuple) else 1
            names = tuple(f"col{number}" for number in range(1, width + 1))
        columns = {name: combine(f"column {index}", [whole]) for index, name in enumerate(names)}
        return TracedRelation(columns=columns, rows=whole)

    def _select(self, node: exp.Select, ctes: _Ctes, outer: _Scope | None, *, needs_names: bool) -> TracedRelation:
        _refuse(node, _HANDLED_KEYS)
        if mixes_commas_and_joins(node) or node.args.get("kind"):
            raise Doubt
        scope = _Scope(parent=outer)
        scope.windows = {window.name.lower(): window for window in node.args.get("windows") or ()}
        deciding = self._from(node, ctes, scope)
        deciding += self._clauses(node, ("where",), scope, ctes)
        columns, generating = self._projections(node, scope, ctes, needs_names=needs_names)
        deciding += generating
        deciding += self._grouping(node, scope, ctes, columns)
        scope.doubts_aliases = True
        deciding += self._clauses(node, ("having",), scope, ctes)
        if node.args.get("distinct"):
            _refuse(node.args["distinct"], set())
            deciding.append(combine("distinct", columns.values()))
        orders = [node.args[key] for key in _ORDER_KEYS if node.args.get(key) is not None]
        scope.prefers_aliases = not any(order.find(exp.AggFunc) for order in orders)
        deciding += self._clauses(node, (*_ORDER_KEYS, "limit", "offset"), scope, ctes)
        return TracedRelation(columns=columns, rows=combine("select", deciding))

    def _projections(
        self, node: exp.Select, scope: _Scope, ctes: _Ctes, *, needs_names: bool
    ) -> tuple[dict[str, ColumnSource], list[ColumnSource]]:
        """The columns by name, and what in the projections decides how many rows there are."""
        columns: dict[str, ColumnSource] = {}
        deciding: list[ColumnSource] = []
        qualifiers = frozenset(relation.words[-1] for relation in scope.relations if relation.words)
        for position, projection in enumerate(node.expressions):
            if is_star(projection):
                found = self._expand(projection, scope)
            else:
                inner = projection.this if isinstance(projection, exp.Aliases) else projection.unalias()
                source = self.expression(inner, scope, ctes)
                if is_generator(inner, self.text):
                    deciding.append(combine("generate", [source]))
                nameless = None if needs_names else f" {position}"
                found = self._named(projection, source, qualifiers, nameless)
            for name, source in found.items():
                if name in columns:
                    raise Doubt
                columns[name] = source
                scope.aliases[name] = source
        if not node.args.get("group"):
            deciding += _implied_grouping(node)
        return columns, deciding

    def _named(
        self, projection: exp.Expr, source: ColumnSource, qualifiers: frozenset[str], nameless: str | None
    ) -> dict[str, ColumnSource]:
        if isinstance(projection, exp.Aliases):
            names = [identifier.name.lower() for identifier in projection.expressions]
            return {name: combine(f"column {index}", [source]) for index, name in enumerate(names)}
        if is_generator(projection, self.text):
            raise Doubt
        name = spark_name(projection, self.text, qualifiers) or nameless
        if name is None:
            raise Doubt
        return {name.lower(): source}

    def _expand(self, star: exp.Expr, scope: _Scope) -> dict[str, ColumnSource]:
        options = star.this if isinstance(star, exp.Column) else star
        _refuse(options, {"except_"})
        relations = scope.relations
        if isinstance(star, exp.Column):
            words = tuple(part.name.lower() for part in star.parts[:-1])
            relations = [relation for relation in relations if relation.answers_to(words)]
            if len(relations) != 1:
                raise Doubt
        left_out = {column.name.lower() for column in options.args.get("except_") or ()}
        found: dict[str, ColumnSource] = {}
        if isinstance(star, exp.Star):
            found.update(scope.merged)
        for relation in relations:
            if relation.columns is None:
                raise Doubt
            for name, source in relation.columns.items():
                if isinstance(star, exp.Star) and name in scope.merged:
                    continue
                if name in found:
                    raise Doubt
                found[name] = source
        if not relations:
            raise Doubt
        return {name: source for name, source in found.items() if name not in left_out}

    def _grouping(
        self, node: exp.Select, scope: _Scope, ctes: _Ctes, columns: Mapping[str, ColumnSource]
    ) -> list[ColumnSource]:
        group = node.args.get("group")
        if group is None:
            return []
        if group.args.get("all"):
            return [combine("group by all", columns.values())]
        ordered = list(columns.values())
        if any(is_star(projection) for projection in node.expressions) and _has_ordinals(group):
            raise Doubt
        parts: list[ColumnSource] = []
        for expression in group.expressions:
            position = _ordinal(expression)
            if position is None:
                parts.append(self.expression(expression, scope, ctes))
            elif position <= len(ordered):
                parts.append(ordered[position - 1])
            else:
                raise Doubt
        for key, value in sorted(group.args.items()):
            if key not in {"expressions", "all"} and value:
                items = value if isinstance(value, list) else [value]
                sources = [self.expression(item, scope, ctes) for item in items if isinstance(item, exp.Expr)]
                parts.append(combine(key, sources))
        return [combine("group by", parts)]

    def _clauses(self, node: exp.Expr, keys: Iterable[str], scope: _Scope, ctes: _Ctes) -> list[ColumnSource]:
        return [
            combine(key, [self.expression(node.args[key], scope, ctes)])
            for key in keys
            if node.args.get(key) is not None
        ]

    # --- sources -----------------------------------------------------------------------------------------------------
    def _from(self, node: exp.Select, ctes: _Ctes, scope: _Scope) -> list[ColumnSource]:
        deciding: list[ColumnSource] = []
        from_clause = node.args.get("from_")
        if from_clause is not None:
            deciding.append(self._add(from_clause.this, ctes, scope))
        deciding.extend(self._join(join, ctes, scope) for join in node.args.get("joins") or ())
        deciding.extend(self._add(lateral, ctes, scope) for lateral in node.args.get("laterals") or ())
        return deciding

    def _join(self, join: exp.Join, ctes: _Ctes, scope: _Scope) -> ColumnSource:
        _refuse(join, {"this", "side", "kind", "on", "using"})
        before = len(scope.relations)
        kind = f"{join.side} {'' if join.kind in {'INNER', 'OUTER'} else join.kind} join".lower()
        deciding = [self._add(join.this, ctes, scope)]
        shared = [identifier.name.lower() for identifier in join.args.get("using") or ()]
        deciding.extend(self._merge(name, kind, before, scope) for name in shared)
        condition = join.args.get("on")
        if condition is not None:
            deciding.append(self.expression(condition, scope, ctes))
        if join.kind in {"SEMI", "ANTI"}:
            del scope.relations[before:]
        return combine(kind, deciding)

    def _merge(self, name: str, kind: str, before: int, scope: _Scope) -> ColumnSource:
        left = scope.merged.get(name) or the_only(relation.column(name) for relation in scope.relations[:before])
        right = the_only(relation.column(name) for relation in scope.relations[before:])
        merged = combine(f"using {kind}", [left, right])
        if "semi" not in kind and "anti" not in kind:
            scope.merged[name] = merged
        return merged

    def _add(self, node: exp.Expr, ctes: _Ctes, scope: _Scope) -> ColumnSource:
        relation = self._source(node, ctes, scope)
        scope.relations.append(relation)
        return relation.rows

    def _source(self, node: exp.Expr, ctes: _Ctes, scope: _Scope) -> TracedRelation:
        alias = node.alias.lower()
        words = (alias,) if alias else ()
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            return self._table(node, words, ctes)
        if isinstance(node, exp.Values):
            return renamed(node, self._values(node), words)
        if isinstance(node, exp.Subquery):
            _refuse(node, {"this", "alias", "with_"})
            return renamed(node, seen_from_outside(self.query(node, ctes, None)), words)
        if isinstance(node, exp.Lateral):
            return self._lateral(node, words, ctes, scope)
        raise Doubt

    def _table(self, node: exp.Table, words: tuple[str, ...], ctes: _Ctes) -> TracedRelation:
        _refuse(node, _HANDLED_TABLE_KEYS)
        parts = tuple(part.name.lower() for part in node.parts)
        if len(parts) > MOST_PARTS:
            raise Doubt
        if len(parts) == 1 and parts[0] in ctes:
            body, visible, names = ctes[parts[0]]
            relation = seen_from_outside(self.query(body, visible, None))
            relation = relabel(relation, names) if names else relation
        else:
            relation = self._catalog_table(make_table_name(parts).to_text())
        modifiers = [
            ColumnSource(expression=canonical_tree(node.args[key], self.text))
            for key in ("sample", "version")
            if node.args.get(key) is not None
        ]
        if any(node.args[key].find(exp.Column) for key in ("sample", "version") if node.args.get(key) is not None):
            raise Doubt
        rows = combine("of", [relation.rows, *modifiers]) if modifiers else relation.rows
        found = TracedRelation(
            words=words or parts,
            columns=relation.columns,
            rows=rows,
            table=relation.table,
            instance=relation.instance,
        )
        return renamed(node, found, found.words)

    def _catalog_table(self, name: str) -> TracedRelation:
        """A table of the catalog; the same table read twice in a query is two instances."""
        number = self.counts.get(name, 0) + 1
        self.counts[name] = number
        instance = f"{name}#{number}"
        known = self.schemas.get(name)
        columns = None
        if known is not None:
            columns = {
                column.lower(): ColumnSource(
                    expression=f"{instance}.`{column.lower()}`", reads=frozenset({(name, column.lower())})
                )
                for column in known
            }
        return TracedRelation(columns=columns, rows=ColumnSource(expression=instance), table=name, instance=instance)

    def _lateral(self, node: exp.Lateral, words: tuple[str, ...], ctes: _Ctes, scope: _Scope) -> TracedRelation:
        _refuse(node, {"this", "view", "outer", "alias"})
        if isinstance(node.this, exp.Subquery):
            return renamed(node, seen_from_outside(self.query(node.this, ctes, scope)), words)
        names = alias_columns(node)
        if not names:
            raise Doubt
        kind = f"lateral {'outer' if node.args.get('outer') else ''}"
        rows = combine(kind, [self.expression(node.this, scope, ctes)])
        columns = {name: combine(f"column {index}", [rows]) for index, name in enumerate(names)}
        return TracedRelation(words=words, columns=columns, rows=rows)

    # --- expressions -------------------------------------------------------------------------------------------------
    def expression(self, node: exp.Expr, scope: _Scope, ctes: _Ctes) -> ColumnSource:
        """The canonical text of an expression with its columns written out, and what it reads."""
        found: list[ColumnSource] = []
        is_row_wise = True

        def substitute(inner: exp.Expr) -> str | None:
            nonlocal is_row_wise
            if isinstance(inner, (exp.AggFunc, exp.Window, exp.Anonymous)) or is_generator(inner, self.text):
                is_row_wise = False
            source = self._substitute(inner, scope, ctes)
            if source is None:
                return None
            found.append(source)
            return source.expression

        text = canonical_tree(node, self.text, substitute)
        return ColumnSource(
            expression=shorten(text),
            reads=frozenset().union(*(source.reads for source in found)),
            is_row_wise=is_row_wise and all(source.is_row_wise for source in found),
        )

    def _substitute(self, node: exp.Expr, scope: _Scope, ctes: _Ctes) -> ColumnSource | None:
        if isinstance(node, exp.Column):
            if isinstance(node.this, exp.Star):
                raise Doubt
            return self._column(tuple(part.name.lower() for part in node.parts), scope)
        if isinstance(node, (exp.Subquery, exp.SetOperation, exp.Select)):
            relation = self.query(node, ctes, scope, needs_names=False)
            return combine("subquery", [relation.rows, *(relation.columns or {}).values()])
        if isinstance(node, exp.Window) and node.args.get("alias") is not None:
            named = scope.windows.get(node.args["alias"].name.lower())
            if named is None:
                raise Doubt
            parts = [node.this, *_window_parts(node), named]
            return combine("over", [self.expression(part, scope, ctes) for part in parts])
        return None

    def _column(self, words: tuple[str, ...], scope: _Scope) -> ColumnSource:
        if len(words) == 1:
            return self._bare(words[0], scope)
        level: _Scope | None = scope
        while level is not None:
            for length in range(min(len(words) - 1, MOST_PARTS), 0, -1):
                found = [relation for relation in level.relations if relation.answers_to(words[:length])]
                if len(found) > 1:
                    raise Doubt
                source = found[0].column(words[length]) if found else None
                if source is not None:
                    return field_of(source, words[length + 1 :])
            level = level.parent
        return field_of(self._bare(words[0], scope), words[1:])

    def _bare(self, name: str, scope: _Scope) -> ColumnSource:
        alias = scope.aliases.get(name)
        if alias is not None and scope.prefers_aliases:
            return alias
        if name in scope.merged:
            return scope.merged[name]
        certain: list[ColumnSource] = []
        possible = 0
        for relation in scope.relations:
            source = relation.column(name)
            if source is not None and relation.columns is not None:
                certain.append(source)
            elif source is not None:
                possible += 1
        if len(certain) == 1 and possible == 0:
            if scope.doubts_aliases and alias is not None and alias != certain[0]:
                raise Doubt
            return certain[0]
        if certain or possible > 1:
            raise Doubt
        if possible == 1:
            # The only open table has the column, unless an alias or an outer query gives the name another meaning.
            source = the_only(relation.column(name) for relation in scope.relations)
            if (alias is not None and alias != source) or scope.parent is not None:
                raise Doubt
            return source
        if alias is not None:
            return alias
        if scope.parent is None:
            raise Doubt
        return self._bare(name, scope.parent)


def _with_ctes(node: exp.Expr, ctes: _Ctes) -> _Ctes:
    with_clause = node.args.get("with_")
    if with_clause is None:
        return ctes
    if with_clause.args.get("recursive"):
        raise Doubt
    for cte in with_clause.expressions:
        ctes = {**ctes, cte.alias.lower(): (cte.this, ctes, alias_columns(cte))}
    return ctes


def _refuse(node: exp.Expr, handled: frozenset[str] | set[str]) -> None:
    """Doubt a node that says anything beyond what is understood here."""
    if any(value for key, value in node.args.items() if key not in handled):
        raise Doubt


def _implied_grouping(select: exp.Select) -> list[ColumnSource]:
    """An aggregate without GROUP BY makes one row of all; a function that is not known may be an aggregate."""
    projections = select.expressions
    if any(is_star(projection) or isinstance(projection.unalias(), exp.Column) for projection in projections):
        return []
    aggregates = False
    unknown: set[str] = set()
    for projection in projections:
        for function in projection.find_all(exp.AggFunc, exp.Anonymous):
            if _is_windowed(function) or function.find_ancestor(exp.Select) is not select:
                continue
            if isinstance(function, exp.Anonymous):
                unknown.add(function.name.lower())
            else:
                aggregates = True
    if aggregates:
        return [ColumnSource(expression="(one row)")]
    return [ColumnSource(expression=f"(perhaps one row {' '.join(sorted(unknown))})")] if unknown else []


def _is_windowed(function: exp.Expr) -> bool:
    node: exp.Expr | None = function.parent
    while isinstance(node, (exp.IgnoreNulls, exp.RespectNulls, exp.Filter)):
        node = node.parent
    return isinstance(node, exp.Window)


def _ordinal(expression: exp.Expr) -> int | None:
    is_number = isinstance(expression, exp.Literal) and not expression.is_string and expression.this.isdecimal()
    return int(expression.this) if is_number and len(expression.this) < 10 else None


def _has_ordinals(group: exp.Expr) -> bool:
    return any(_ordinal(expression) is not None for expression in group.expressions)


def _window_parts(window: exp.Expr) -> list[exp.Expr]:
    parts: list[exp.Expr] = []
    for key in ("partition_by", "order", "spec"):
        value = window.args.get(key)
        parts += value if isinstance(value, list) else [value] if value is not None else []
    return parts
