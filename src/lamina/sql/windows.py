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
from lamina.sql.names import MOST_PARTS, make_table_name
from lamina.sql.outputs import is_star, spark_name
from lamina.sql.relations import Doubt, alias_columns
from lamina.sql.scopes import bind, is_table_argument
from lamina.sql.syntax import parse_query
from lamina.sql.window_times import (
    DAY,
    EVERYTHING,
    InputWindow,
    Offset,
    TimeArithmetic,
    TimeType,
    Value,
    combined_width,
    hull,
    intersection,
    read_shift,
    read_transformation,
    time_type,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["InputWindow", "Offset", "input_windows"]

_MOST_QUERIES = 300
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


@dataclass(slots=True, kw_only=True, eq=False)
class _Instance:
    """One reference to a table, and what is known of the rows that matter."""

    table: str
    window: InputWindow = EVERYTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class _Origin:
    """A column that holds the time of an instance as a type, rounded down to a width if that is not zero."""

    instance: _Instance
    type: TimeType
    width: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """A column: the times that a filter on it filters, and the times its value is one of (none: it may be any)."""

    targets: tuple[_Origin, ...] = ()
    sources: tuple[_Origin, ...] = ()

    def turned(self, type_: TimeType, width: int) -> _Column:
        def turn(origin: _Origin) -> _Origin:
            return replace(origin, type=type_, width=combined_width(origin.width, width))

        return _Column(targets=tuple(map(turn, self.targets)), sources=tuple(map(turn, self.sources)))


_ANYTHING = _Column()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Relation:
    """Columns by name, in order; an open relation may have more of them anywhere."""

    words: tuple[str, ...] = ()
    outputs: tuple[tuple[str | None, _Column], ...] = ()
    is_open: bool = True

    def find(self, name: str) -> list[_Column]:
        return [column for label, column in self.outputs if label == name]

    def instances(self) -> frozenset[_Instance]:
        return frozenset(origin.instance for _, column in self.outputs for origin in column.targets)

    def without_origins(self) -> _Relation:
        return replace(self, outputs=tuple((name, _ANYTHING) for name, _ in self.outputs))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Scope:
    relations: tuple[_Relation, ...] = ()
    merged: Mapping[str, _Column] = field(default_factory=dict)
    """Columns of USING, which stand for both sides."""

    def resolve(self, column: exp.Column) -> _Column:
        """What a column means. Where two relations could have it, Spark refuses the query: one that has it is the one."""
        *qualifier, name = (part.name.lower() for part in column.parts)
        if not qualifier and name in self.merged:
            return self.merged[name]
        words = tuple(qualifier)
        relations = [relation for relation in self.relations if relation.words[-len(words) :] == words or not words]
        if words and len(relations) != 1:
            return _ANYTHING
        found = [column for relation in relations for column in relation.find(name)]
        return found[0] if len(found) == 1 else _ANYTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """A condition that holds for the rows that matter of some instances; None is all of them."""

    condition: exp.Expr
    scope: _Scope
    instances: frozenset[_Instance] | None = None


_Ctes = dict[str, tuple[exp.Expr, "_Ctes", tuple[str, ...]]]
_Windows = dict[_Instance, InputWindow]


@dataclass(slots=True, kw_only=True)
class _Reader:
    text: str
    time_columns: Mapping[str, str]
    schemas: Mapping[str, tuple[str, ...]]
    time_types: Mapping[str, str]
    arithmetic: TimeArithmetic
    instances: list[_Instance] = field(default_factory=list)
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
            found[instance.table] = hull(found.get(instance.table, instance.window), instance.window)
        return found | dict.fromkeys(self._left_out(tree), EVERYTHING)

    def _narrow(self) -> None:
        """Apply all rules until nothing changes, since a column may be compared with one that is narrowed later."""
        for _ in range(_MOST_ROUNDS):
            has_changed = False
            for rule in self.rules:
                for instance, window in self._restrict(rule.condition, rule.scope).items():
                    if rule.instances is None or instance in rule.instances:
                        narrowed = intersection(instance.window, window)
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
            if name in self.time_columns:
                yield name

    # --- queries -----------------------------------------------------------------------------------------------------
    def _query(self, node: exp.Expr, ctes: _Ctes) -> _Relation:
        """The columns that a query gives, after its conditions became rules."""
        self.queries += 1
        if self.queries > _MOST_QUERIES:
            raise Doubt
        ctes = _with_ctes(node, ctes)
        if isinstance(node, exp.Select) and _says_only(node, _SELECT_KEYS):
            return self._select(node, ctes)
        if not isinstance(node, (exp.Subquery, exp.SetOperation)) or not _says_only(node, _QUERY_KEYS):
            return _Relation()
        self._expressions([node.args.get("order")], ctes)
        relation = self._query(node.this, ctes) if isinstance(node, exp.Subquery) else self._set_operation(node, ctes)
        return relation.without_origins() if _is_limited(node) else relation

    def _set_operation(self, node: exp.SetOperation, ctes: _Ctes) -> _Relation:
        left, right = self._query(node.this, ctes), self._query(node.expression, ctes)
        has_order = not left.is_open and not right.is_open and len(left.outputs) == len(right.outputs)
        outputs: list[tuple[str | None, _Column]] = []
        for position, (name, column) in enumerate(left.outputs):
            other = _ANYTHING
            if node.args.get("by_name"):
                same = right.find(name) if name is not None else []
                other = same[0] if len(same) == 1 and not right.is_open else _ANYTHING
            elif has_order:
                other = right.outputs[position][1]
            outputs.append((name, _united(column, other, is_union=isinstance(node, exp.Union))))
        return _Relation(outputs=tuple(outputs), is_open=left.is_open)

    def _select(self, node: exp.Select, ctes: _Ctes) -> _Relation:
        scope = _Scope()
        from_clause = node.args.get("from_")
        if from_clause is not None:
            scope = _Scope(relations=(self._source(from_clause.this, ctes),))
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

    def _outputs(self, node: exp.Select, scope: _Scope) -> _Relation:
        outputs: list[tuple[str | None, _Column]] = []
        is_open = False
        qualifiers = frozenset(relation.words[-1] for relation in scope.relations if relation.words)
        for position, projection in enumerate(node.expressions):
            if is_star(projection):
                starred = _star(projection, scope)
                is_open = is_open or starred.is_open
                outputs.extend(starred.outputs if not node.args.get("group") else starred.without_origins().outputs)
            elif isinstance(projection, exp.Aliases):
                outputs.extend((identifier.name.lower(), _ANYTHING) for identifier in projection.expressions)
            else:
                name = spark_name(projection, self.text, qualifiers)
                is_kept = self._is_group_key(node.args.get("group"), projection, position, scope)
                column = self._column(projection.unalias(), scope) if is_kept else _ANYTHING
                outputs.append((None if name is None else name.lower(), column))
        relation = _Relation(outputs=tuple(outputs), is_open=is_open)
        distinct = node.args.get("distinct")
        parts = [*node.expressions, *_as_list(node.args.get("order"))]
        is_blocked = (
            _is_limited(node)
            or node.args.get("qualify") is not None
            or (distinct is not None and distinct.args.get("on") is not None)
            or any(part.find(exp.Window) for part in parts)
        )
        return relation.without_origins() if is_blocked else relation

    def _is_group_key(self, group: exp.Expr | None, projection: exp.Expr, position: int, scope: _Scope) -> bool:
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
    def _source(self, node: exp.Expr, ctes: _Ctes) -> _Relation:
        relation = _Relation()
        alias = node.alias.lower()
        words = (alias,) if alias else ()
        if isinstance(node, exp.Table):
            name = _table_name(node)
            words = words or tuple(part.name.lower() for part in node.parts)
            if name is not None and _says_only(node, _TABLE_KEYS):
                self.understood.add(id(node))
                relation = self._cte(*ctes[name]) if name in ctes else self._table(name)
        elif isinstance(node, exp.Subquery) and not isinstance(node.this, exp.Table) and _says_only(node, _SOURCE_KEYS):
            relation = self._query(node, ctes)
        elif isinstance(node, exp.Lateral):
            if isinstance(node.this, exp.Subquery):
                relation = self._query(node.this, ctes)
            else:
                self._expressions([node.this], ctes)
        return replace(_renamed(relation, alias_columns(node)), words=words)

    def _cte(self, body: exp.Expr, visible: _Ctes, names: tuple[str, ...]) -> _Relation:
        return _renamed(self._query(body, visible), names)

    def _table(self, name: str) -> _Relation:
        time_column = self.time_columns.get(name)
        if time_column is None:
            schema = self.schemas.get(name)
            return _Relation(outputs=tuple((column.lower(), _ANYTHING) for column in schema or ()), is_open=not schema)
        instance = _Instance(table=name)
        self.instances.append(instance)
        type_ = time_type(self.time_types.get(name))
        origins = () if type_ is None else (_Origin(instance=instance, type=type_),)
        schema = self.schemas.get(name) or (time_column,)
        return _Relation(
            outputs=tuple(
                (column.lower(), _Column(targets=origins, sources=origins) if is_time else _ANYTHING)
                for column in schema
                for is_time in [column.lower() == time_column.lower()]
            ),
            is_open=name not in self.schemas,
        )

    def _join(self, join: exp.Join, ctes: _Ctes, scope: _Scope, *, is_certain: bool) -> _Scope:
        """What can be named after a join; its condition becomes a rule for the sides that it filters."""
        right = self._source(join.this, ctes)
        if join.args.get("method"):
            # The columns of a natural join stand for both sides, and which ones they are is not known.
            scope = replace(
                scope, relations=tuple(relation.without_origins() for relation in scope.relations), merged={}
            )
            right = right.without_origins()
        self._expressions([join.args.get("on")], ctes)
        both = _Scope(relations=(*scope.relations, right), merged=scope.merged)
        filtered = _filtered_side(join, scope, right) if is_certain else frozenset()
        condition = join.args.get("on")
        if condition is not None:
            self.rules.append(_Rule(condition=condition, scope=both, instances=filtered))
        merged = dict(scope.merged)
        for identifier in join.args.get("using") or ():
            name = identifier.name.lower()
            one, other = scope.resolve(exp.column(name)), _Scope(relations=(right,)).resolve(exp.column(name))
            sides = tuple(
                _Relation(words=(word,), outputs=((name, column),))
                for word, column in (("left", one), ("right", other))
            )
            equality = exp.EQ(this=exp.column(name, "left"), expression=exp.column(name, "right"))
            self.rules.append(_Rule(condition=equality, scope=_Scope(relations=sides), instances=filtered))
            merged[name] = _merged(join.side, one, other)
        if join.kind in {"SEMI", "ANTI"}:
            return scope
        return replace(both, merged=merged)

    # --- conditions --------------------------------------------------------------------------------------------------
    def _restrict(self, node: exp.Expr, scope: _Scope) -> _Windows:
        """Where the rows of instances lie for which a condition is true; it is not true for rows without them."""
        if isinstance(node, exp.Paren):
            return self._restrict(node.this, scope)
        if isinstance(node, exp.And):
            return _all_of(self._restrict(part, scope) for part in node.flatten())
        if isinstance(node, exp.Or):
            return _any_of([self._restrict(part, scope) for part in node.flatten()])
        if isinstance(node, exp.In) and node.expressions:
            return _any_of([self._compare(node.this, exp.EQ, item, scope) for item in node.expressions])
        if isinstance(node, exp.Between) and not node.args.get("symmetric"):
            bounds = ((exp.GTE, node.args["low"]), (exp.LTE, node.args["high"]))
            return _all_of(self._compare(node.this, operator, bound, scope) for operator, bound in bounds)
        if type(node) in _FLIPPED:
            return self._compare(node.this, type(node), node.expression, scope)
        return {}

    def _compare(self, left: exp.Expr, operator: type[exp.Expr], right: exp.Expr, scope: _Scope) -> _Windows:
        sides = ((left, operator, right), (right, _FLIPPED[operator], left))
        return _all_of(self._compare_one_way(*side, scope) for side in sides)

    def _compare_one_way(self, left: exp.Expr, operator: type[exp.Expr], right: exp.Expr, scope: _Scope) -> _Windows:
        targets = self._column(left, scope).targets
        value = self._value(right, scope) if targets else None
        if value is None:
            return {}
        return {
            origin.instance: self.arithmetic.window(operator, value, origin.type, origin.width) for origin in targets
        }

    def _column(self, node: exp.Expr, scope: _Scope) -> _Column:
        """The column that an expression is, possibly rounded down to days or other units."""
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            return scope.resolve(node)
        if isinstance(node, exp.Paren):
            return self._column(node.this, scope)
        found = read_transformation(node)
        return _ANYTHING if found is None else self._column(found.argument, scope).turned(found.type, found.width)

    def _value(self, node: exp.Expr, scope: _Scope) -> Value | None:
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

    def _value_of_column(self, column: _Column) -> Value | None:
        values = [
            self.arithmetic.column(origin.type, origin.width, origin.instance.window) for origin in column.sources
        ]
        if not values:
            return None
        windows = [InputWindow(lower=value.low, upper=value.high) for value in values]
        window = windows[0]
        for other in windows[1:]:
            window = hull(window, other)
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


def _says_only(node: exp.Expr, keys: frozenset[str]) -> bool:
    """Whether a node says nothing beyond what is understood here."""
    return not any(value for key, value in node.args.items() if key not in keys)


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


def _star(star: exp.Expr, scope: _Scope) -> _Relation:
    """The columns that a star stands for; those of USING come first, and once."""
    options = star.this if isinstance(star, exp.Column) else star
    relations, merged = scope.relations, scope.merged
    if isinstance(star, exp.Column):
        words = tuple(part.name.lower() for part in star.parts[:-1])
        relations, merged = tuple(relation for relation in relations if relation.words[-len(words) :] == words), {}
    if not _says_only(options, frozenset({"except_"})) or (isinstance(star, exp.Column) and len(relations) != 1):
        return _Relation()
    left_out = {column.name.lower() for column in options.args.get("except_") or ()}
    outputs = [*merged.items()]
    outputs += [output for relation in relations for output in relation.outputs if output[0] not in merged]
    return _Relation(
        outputs=tuple(output for output in outputs if output[0] not in left_out),
        is_open=any(relation.is_open for relation in relations),
    )


def _renamed(relation: _Relation, names: tuple[str, ...]) -> _Relation:
    if not names:
        return relation
    is_known = not relation.is_open and len(relation.outputs) == len(names)
    columns = [column for _, column in relation.outputs] if is_known else [_ANYTHING] * len(names)
    return _Relation(outputs=tuple(zip(names, columns, strict=True)), is_open=False)


def _filtered_side(join: exp.Join, scope: _Scope, right: _Relation) -> frozenset[_Instance] | None:
    """The instances of which a row that fails the condition of a join cannot matter; None is all of both sides."""
    side, kind = join.side, join.kind
    if join.args.get("method") or kind not in {"", "INNER", "OUTER", "CROSS", "SEMI", "ANTI"}:
        return frozenset()
    if kind in {"SEMI", "ANTI"}:
        if side == "RIGHT":
            return frozenset()
        return None if kind == "SEMI" else right.instances()
    match side:
        case "":
            return None
        case "LEFT":
            return right.instances()
        case "RIGHT":
            return frozenset().union(*(relation.instances() for relation in scope.relations))
        case _:
            return frozenset()


def _merged(side: str, left: _Column, right: _Column) -> _Column:
    """A column of USING: the value of the side whose rows are kept, in a full join of either."""
    if side == "FULL":
        return _united(left, right, is_union=True)
    kept, other = (right, left) if side == "RIGHT" else (left, right)
    return kept if kept.targets else _united(other, _ANYTHING, is_union=True)


def _united(one: _Column, other: _Column, *, is_union: bool) -> _Column:
    """A column that takes its values from two, which Spark turns into a common type: text may become a date."""
    types = {origin.type for origin in (*one.targets, *other.targets)}
    is_same = len(types) == 1 and "unknown" not in types and bool(one.targets) and bool(other.targets)

    def turn(origin: _Origin) -> _Origin:
        if is_same:
            return origin
        width = origin.width if origin.type in {"date", "timestamp"} else combined_width(origin.width, DAY)
        return replace(origin, type="unknown", width=width)

    sources = one.sources + other.sources if one.sources and other.sources else ()
    return _Column(
        targets=tuple(map(turn, one.targets + other.targets)),
        sources=tuple(map(turn, sources if is_union else one.sources)),
    )


def _all_of(windows: Iterable[_Windows]) -> _Windows:
    found: _Windows = {}
    for part in windows:
        for instance, window in part.items():
            found[instance] = intersection(found.get(instance, EVERYTHING), window)
    return found


def _any_of(windows: list[_Windows]) -> _Windows:
    found = dict(windows[0])
    for part in windows[1:]:
        found = {instance: hull(window, part[instance]) for instance, window in found.items() if instance in part}
    return found
