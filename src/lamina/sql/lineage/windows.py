"""How far a query reads into its parents, as its filters on their time columns say.

Every reference to a table is an instance with a window. A condition narrows the window of an instance only where rows
outside cannot matter. A comparison is never true for NULL, so in WHERE it also drops the rows that an outer join filled
up. A column of a subquery remembers its instances for as long as a filter on it may be pushed down to them. A reference
that is not understood keeps the window without bounds.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from sqlglot import exp

from lamina.errors import SyntaxProblem
from lamina.sql.canonical import mixes_commas_and_joins
from lamina.sql.lineage.input_windows import EVERYTHING, InputWindow, Offset
from lamina.sql.lineage.outputs import is_star, spark_name
from lamina.sql.lineage.relations import Doubt, alias_columns
from lamina.sql.lineage.scopes import bind, is_table_argument
from lamina.sql.lineage.window_relations import (
    ANYTHING,
    Instance,
    Origin,
    TimeColumn,
    WindowRelation,
    WindowScope,
    filtered_side,
    merged_column,
    renamed,
    says_only,
    star_columns,
    united_column,
)
from lamina.sql.lineage.window_times import DAY, TimeArithmetic, Value, read_shift, read_transformation, time_type
from lamina.sql.names import MOST_PARTS, make_table_name
from lamina.sql.syntax import parse_query

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["InputWindow", "Offset", "input_windows"]

_MOST_QUERIES = 200
_MOST_ROUNDS = 8
_SELECT_KEYS = frozenset(
    {"with_", "expressions", "from_", "joins", "laterals", "where", "group", "having", "distinct", "limit", "offset"}
    | {"windows", "hint", "qualify", "order", "sort", "cluster", "distribute"}
)
_QUERY_KEYS = frozenset({"with_", "this", "expression", "distinct", "by_name", "order", "limit", "offset", "alias"})
_TABLE_KEYS = frozenset({"this", "db", "catalog", "alias", "version"})
_SOURCE_KEYS = frozenset({"this", "alias", "with_"})
_FLIPPED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.EQ,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
}


def input_windows(
    text: str,
    dialect: str,
    time_columns: Mapping[str, str],
    schemas: Mapping[str, tuple[str, ...]] | None = None,
    *,
    time_types: Mapping[str, str] | None = None,
    is_day_aligned: bool = True,
) -> Mapping[str, InputWindow]:
    """For every table of `time_columns` that the query reads, a window that holds every row that can matter.

    `text` is expanded, with time variables as `@start_ds`; tables are named as references write them, in lower case. A
    row belongs to the moment its time column says: a date is its midnight, text is ISO in UTC. `time_types` gives the
    Spark types of time columns; without one, bounds are those that hold for dates, timestamps and text alike; a type
    that is none of these, also right for text in other formats, leaves the window open. `schemas` gives the columns of
    tables. `is_day_aligned` says that intervals are whole days; when they are not, the day of a moment begins up to a
    day before it, and bounds that go by days, such as `@end_ds`, widen by a day.
    """
    try:
        query = parse_query(text, dialect)
        references = {reference.name.to_text() for reference in bind(query.tree).references}
        reader = _Reader(
            text=query.text,
            time_columns=time_columns,
            schemas=schemas or {},
            time_types=time_types or {},
            arithmetic=TimeArithmetic(is_day_aligned=is_day_aligned),
        )
        found = reader.read(query.tree)
    except (SyntaxProblem, Doubt, RecursionError):
        return MappingProxyType(dict.fromkeys(time_columns, EVERYTHING))
    return MappingProxyType({name: found.get(name, EVERYTHING) for name in time_columns if name in references})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """A condition that holds for the rows that matter of some instances; None is all of them."""

    condition: exp.Expr
    scope: WindowScope
    instances: frozenset[Instance] | None = None


_Ctes = dict[str, tuple[exp.Expr, "_Ctes", tuple[str, ...]]]
_Windows = dict[Instance, InputWindow]


@dataclass(slots=True, kw_only=True)
class _Reader:
    text: str
    time_columns: Mapping[str, str]
    schemas: Mapping[str, tuple[str, ...]]
    time_types: Mapping[str, str]
    arithmetic: TimeArithmetic
    instances: list[Instance] = field(default_factory=list)
    rules: list[_Rule] = field(default_factory=list)
    understood: set[int] = field(default_factory=set)
    queries: int = 0

    def read(self, tree: exp.Expr) -> dict[str, InputWindow]:
        if any(is_table_argument(node) for node in tree.find_all(exp.Anonymous)):
            raise Doubt
        self._query(tree, {})
        self._narrow()
        found: dict[str, InputWindow] = {}
        for instance in self.instances:
            found[instance.table] = self.arithmetic.hull(found.get(instance.table, instance.window), instance.window)
        return found | dict.fromkeys(self._left_out(tree), EVERYTHING)

    def _narrow(self) -> None:
        """Apply all rules until nothing changes, since a column may be compared with one that is narrowed later."""
        for _ in range(_MOST_ROUNDS):
            has_changed = False
            for rule in self.rules:
                for instance, window in self._restrict(rule.condition, rule.scope).items():
                    if rule.instances is None or instance in rule.instances:
                        narrowed = self.arithmetic.intersection(instance.window, window)
                        has_changed = has_changed or narrowed != instance.window
                        instance.window = narrowed
            if not has_changed:
                return

    def _left_out(self, tree: exp.Expr) -> Iterator[str]:
        """The tables of references that were not understood, also through common table expressions."""
        bodies: dict[str, list[exp.Expr]] = {}
        for cte in tree.find_all(exp.CTE):
            bodies.setdefault(_cte_name(cte), []).append(cte.this)
        waiting = [table for table in tree.find_all(exp.Table) if id(table) not in self.understood]
        followed: set[str] = set()
        while waiting:
            name = _table_name(waiting.pop())
            if name in bodies and name not in followed:
                followed.add(name)
                waiting += [table for body in bodies[name] for table in body.find_all(exp.Table)]
            if name is not None and name in self.time_columns:
                yield name

    # --- queries -----------------------------------------------------------------------------------------------------
    def _query(self, node: exp.Expr, ctes: _Ctes) -> WindowRelation:
        """The columns that a query gives, after its conditions became rules."""
        self.queries += 1
        if self.queries > _MOST_QUERIES:
            raise Doubt
        ctes = _with_ctes(node, ctes)
        if isinstance(node, exp.Select) and says_only(node, _SELECT_KEYS):
            return self._select(node, ctes)
        if not isinstance(node, (exp.Subquery, exp.SetOperation)) or not says_only(node, _QUERY_KEYS):
            return WindowRelation()
        self._expressions([node.args.get("order")], ctes)
        relation = self._query(node.this, ctes) if isinstance(node, exp.Subquery) else self._set_operation(node, ctes)
        return relation.without_origins() if _is_limited(node) else relation

    def _set_operation(self, node: exp.SetOperation, ctes: _Ctes) -> WindowRelation:
        left, right = self._query(node.this, ctes), self._query(node.expression, ctes)
        has_order = not left.is_open and not right.is_open and len(left.outputs) == len(right.outputs)
        outputs: list[tuple[str | None, TimeColumn]] = []
        for position, (name, column) in enumerate(left.outputs):
            other = ANYTHING
            if node.args.get("by_name"):
                same = right.find(name) if name is not None else []
                other = same[0] if len(same) == 1 and not right.is_open else ANYTHING
            elif has_order:
                other = right.outputs[position][1]
            outputs.append((name, united_column(column, other, is_union=isinstance(node, exp.Union))))
        return WindowRelation(outputs=tuple(outputs), is_open=left.is_open)

    def _select(self, node: exp.Select, ctes: _Ctes) -> WindowRelation:
        scope = WindowScope()
        from_clause = node.args.get("from_")
        if from_clause is not None:
            scope = WindowScope(relations=(self._source(from_clause.this, ctes),))
        is_certain = not mixes_commas_and_joins(node)
        for join in node.args.get("joins") or ():
            scope = self._join(join, ctes, scope, is_certain=is_certain)
        laterals = tuple(self._source(lateral, ctes) for lateral in node.args.get("laterals") or ())
        scope = replace(scope, relations=scope.relations + laterals)
        where = node.args.get("where")
        if where is not None:
            self.rules.append(_Rule(condition=where.this, scope=scope))
        keys = ("where", "group", "having", "qualify", "order", "sort", "cluster", "distribute", "windows")
        self._expressions([*node.expressions, *(part for key in keys for part in _as_list(node.args.get(key)))], ctes)
        return self._outputs(node, scope)

    def _expressions(self, nodes: Iterable[exp.Expr | None], ctes: _Ctes) -> None:
        """Read the subqueries of expressions."""
        waiting = [node for node in nodes if node is not None]
        while waiting:
            node = waiting.pop()
            if isinstance(node, exp.Query):
                self._query(node, ctes)
            else:
                waiting.extend(node.iter_expressions())

    def _outputs(self, node: exp.Select, scope: WindowScope) -> WindowRelation:
        outputs: list[tuple[str | None, TimeColumn]] = []
        is_open = False
        qualifiers = frozenset(relation.words[-1] for relation in scope.relations if relation.words)
        for position, projection in enumerate(node.expressions):
            if is_star(projection):
                starred = star_columns(projection, scope)
                is_open = is_open or starred.is_open
                outputs.extend(starred.outputs if not node.args.get("group") else starred.without_origins().outputs)
            elif isinstance(projection, exp.Aliases):
                outputs.extend((identifier.name.lower(), ANYTHING) for identifier in projection.expressions)
            else:
                name = spark_name(projection, self.text, qualifiers)
                is_kept = self._is_group_key(node.args.get("group"), projection, position, scope)
                column = self._column(projection.unalias(), scope) if is_kept else ANYTHING
                outputs.append((None if name is None else name.lower(), column))
        relation = WindowRelation(outputs=tuple(outputs), is_open=is_open)
        distinct = node.args.get("distinct")
        parts = [*node.expressions, *_as_list(node.args.get("order"))]
        is_blocked = (
            _is_limited(node)
            or node.args.get("qualify") is not None
            or (distinct is not None and distinct.args.get("on") is not None)
            or any(part.find(exp.Window) for part in parts)
        )
        return relation.without_origins() if is_blocked else relation

    def _is_group_key(self, group: exp.Expr | None, projection: exp.Expr, position: int, scope: WindowScope) -> bool:
        """Whether all rows of a group agree on a projection, so that a filter on it drops whole groups."""
        if group is None:
            return True
        if any(value for key, value in group.args.items() if key not in {"expressions", "all"}):
            return False
        if group.args.get("all"):
            return True
        inner = projection.unalias()
        same = [self._column(inner, scope), self._column(_innermost(inner), scope)]
        for key in group.expressions:
            if isinstance(key, exp.Literal) and key.this == str(position + 1):
                return True
            column = self._column(key, scope)
            is_alias = (
                isinstance(key, exp.Column) and len(key.parts) == 1 and key.name.lower() == projection.alias.lower()
            )
            if column in same if column.targets else is_alias:
                return True
        return False

    # --- sources -----------------------------------------------------------------------------------------------------
    def _source(self, node: exp.Expr, ctes: _Ctes) -> WindowRelation:
        relation = WindowRelation()
        alias = node.alias.lower()
        words: tuple[str, ...] = (alias,) if alias else ()
        if isinstance(node, exp.Table):
            name = _table_name(node)
            words = words or tuple(part.name.lower() for part in node.parts)
            if name is not None and says_only(node, _TABLE_KEYS):
                self.understood.add(id(node))
                relation = self._cte(*ctes[name]) if name in ctes else self._table(name)
        elif isinstance(node, exp.Subquery) and not isinstance(node.this, exp.Table) and says_only(node, _SOURCE_KEYS):
            relation = self._query(node, ctes)
        elif isinstance(node, exp.Lateral):
            if isinstance(node.this, exp.Subquery):
                relation = self._query(node.this, ctes)
            else:
                self._expressions([node.this], ctes)
        return replace(renamed(relation, alias_columns(node)), words=words)

    def _cte(self, body: exp.Expr, visible: _Ctes, names: tuple[str, ...]) -> WindowRelation:
        return renamed(self._query(body, visible), names)

    def _table(self, name: str) -> WindowRelation:
        time_column = self.time_columns.get(name)
        if time_column is None:
            schema = self.schemas.get(name)
            return WindowRelation(
                outputs=tuple((column.lower(), ANYTHING) for column in schema or ()), is_open=not schema
            )
        instance = Instance(table=name)
        self.instances.append(instance)
        type_ = time_type(self.time_types.get(name))
        origins = () if type_ is None else (Origin(instance=instance, type=type_),)
        schema = self.schemas.get(name) or (time_column,)
        return WindowRelation(
            outputs=tuple(
                (column.lower(), TimeColumn(targets=origins, sources=origins) if is_time else ANYTHING)
                for column in schema
                for is_time in [column.lower() == time_column.lower()]
            ),
            is_open=name not in self.schemas,
        )

    def _join(self, join: exp.Join, ctes: _Ctes, scope: WindowScope, *, is_certain: bool) -> WindowScope:
        """What can be named after a join; its condition becomes a rule for the sides that it filters."""
        right = self._source(join.this, ctes)
        if join.args.get("method"):
            # The columns of a natural join stand for both sides, and which ones they are is not known.
            scope = replace(
                scope, relations=tuple(relation.without_origins() for relation in scope.relations), merged={}
            )
            right = right.without_origins()
        self._expressions([join.args.get("on")], ctes)
        both = WindowScope(relations=(*scope.relations, right), merged=scope.merged)
        filtered = filtered_side(join, scope, right) if is_certain else frozenset()
        condition = join.args.get("on")
        if condition is not None:
            self.rules.append(_Rule(condition=condition, scope=both, instances=filtered))
        merged = dict(scope.merged)
        for identifier in join.args.get("using") or ():
            name = identifier.name.lower()
            one, other = scope.resolve(exp.column(name)), WindowScope(relations=(right,)).resolve(exp.column(name))
            sides = tuple(
                WindowRelation(words=(word,), outputs=((name, column),))
                for word, column in (("left", one), ("right", other))
            )
            equality = exp.EQ(this=exp.column(name, "left"), expression=exp.column(name, "right"))
            self.rules.append(_Rule(condition=equality, scope=WindowScope(relations=sides), instances=filtered))
            merged[name] = merged_column(join.side, one, other) if is_certain else ANYTHING
        if join.kind in {"SEMI", "ANTI"}:
            return scope
        return replace(both, merged=merged)

    # --- conditions --------------------------------------------------------------------------------------------------
    def _restrict(self, node: exp.Expr, scope: WindowScope) -> _Windows:
        """Where the rows of instances lie for which a condition is true; it is not true for rows without them."""
        if isinstance(node, exp.Paren):
            return self._restrict(node.this, scope)
        if isinstance(node, exp.And):
            return self._all_of(self._restrict(part, scope) for part in node.flatten())
        if isinstance(node, exp.Or):
            return self._any_of([self._restrict(part, scope) for part in node.flatten()])
        if isinstance(node, exp.In) and node.expressions:
            return self._any_of([self._compare(node.this, exp.EQ, item, scope) for item in node.expressions])
        if isinstance(node, exp.Between) and not node.args.get("symmetric"):
            bounds = ((exp.GTE, node.args["low"]), (exp.LTE, node.args["high"]))
            return self._all_of(self._compare(node.this, operator, bound, scope) for operator, bound in bounds)
        if type(node) in _FLIPPED:
            return self._compare(node.this, type(node), node.expression, scope)
        return {}

    def _all_of(self, windows: Iterable[_Windows]) -> _Windows:
        found: _Windows = {}
        for part in windows:
            for instance, window in part.items():
                found[instance] = self.arithmetic.intersection(found.get(instance, EVERYTHING), window)
        return found

    def _any_of(self, windows: list[_Windows]) -> _Windows:
        found = dict(windows[0])
        for part in windows[1:]:
            shared = found.keys() & part.keys()
            found = {instance: self.arithmetic.hull(found[instance], part[instance]) for instance in shared}
        return found

    def _compare(self, left: exp.Expr, operator: type[exp.Expr], right: exp.Expr, scope: WindowScope) -> _Windows:
        sides = ((left, operator, right), (right, _FLIPPED[operator], left))
        return self._all_of(self._compare_one_way(*side, scope) for side in sides)

    def _compare_one_way(
        self, left: exp.Expr, operator: type[exp.Expr], right: exp.Expr, scope: WindowScope
    ) -> _Windows:
        targets = self._column(left, scope).targets
        value = self._value(right, scope) if targets else None
        if value is None:
            return {}
        return {
            origin.instance: self.arithmetic.window(operator, value, origin.type, origin.width) for origin in targets
        }

    def _column(self, node: exp.Expr, scope: WindowScope) -> TimeColumn:
        """The column that an expression is, possibly rounded down to days or other units."""
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            return scope.resolve(node)
        if isinstance(node, exp.Paren):
            return self._column(node.this, scope)
        found = read_transformation(node)
        return ANYTHING if found is None else self._column(found.argument, scope).turned(found.type, found.width)

    def _value(self, node: exp.Expr, scope: WindowScope) -> Value | None:
        """What is known of the value of an expression; None when nothing is."""
        if isinstance(node, (exp.Parameter, exp.Placeholder)):
            return self.arithmetic.variable(node.name)
        if isinstance(node, exp.Paren):
            return self._value(node.this, scope)
        if isinstance(node, exp.Column):
            return self._value_of_column(scope.resolve(node))
        transformation = read_transformation(node)
        if transformation is not None:
            value = self._value(transformation.argument, scope)
            return value and self.arithmetic.transformed(value, transformation.type, transformation.width)
        shift = read_shift(node)
        if shift is None:
            return None
        value = self._value(shift.argument, scope)
        if value is not None and shift.type is not None:
            value = self.arithmetic.transformed(value, shift.type, DAY if shift.type == "date" else 0)
        return value and self.arithmetic.shifted(value, shift.months, shift.micros)

    def _value_of_column(self, column: TimeColumn) -> Value | None:
        values = [
            self.arithmetic.column(origin.type, origin.width, origin.instance.window) for origin in column.sources
        ]
        if not values:
            return None
        windows = [InputWindow(lower=value.low, upper=value.high) for value in values]
        window = windows[0]
        for other in windows[1:]:
            window = self.arithmetic.hull(window, other)
        kinds = {value.kind for value in values}
        return Value(kind=kinds.pop() if len(kinds) == 1 else "unknown", low=window.lower, high=window.upper)


# --- parts of queries ------------------------------------------------------------------------------------------------
def _with_ctes(node: exp.Expr, ctes: _Ctes) -> _Ctes:
    with_clause = node.args.get("with_")
    if with_clause is None:
        return ctes
    if with_clause.args.get("recursive"):
        raise Doubt
    for cte in with_clause.expressions:
        ctes = {**ctes, _cte_name(cte): (cte.this, ctes, alias_columns(cte))}
    return ctes


def _cte_name(cte: exp.Expr) -> str:
    return make_table_name((cte.alias,)).to_text()


def _table_name(table: exp.Table) -> str | None:
    parts = tuple(part.name for part in table.parts)
    is_named = isinstance(table.this, exp.Identifier) and len(parts) <= MOST_PARTS
    return make_table_name(parts).to_text() if is_named else None


def _is_limited(node: exp.Expr) -> bool:
    return node.args.get("limit") is not None or node.args.get("offset") is not None


def _as_list(value: object) -> list[exp.Expr]:
    items = value if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, exp.Expr)]


def _innermost(node: exp.Expr) -> exp.Expr:
    """The column that is cast or rounded."""
    while True:
        found = read_transformation(node)
        if found is None and not isinstance(node, exp.Paren):
            return node
        node = node.this if found is None else found.argument
