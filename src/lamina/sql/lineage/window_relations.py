"""The relations of a query as its input windows see them: which columns hold the time of which table reference."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from lamina.sql.lineage.input_windows import EVERYTHING, InputWindow
from lamina.sql.lineage.window_times import DAY, TimeType, combined_width

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(slots=True, kw_only=True, eq=False)
class Instance:
    """One reference to a table, and what is known of the rows that matter."""

    table: str
    window: InputWindow = EVERYTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """A column that holds the time of an instance as a type, rounded down to a width if that is not zero."""

    instance: Instance
    type: TimeType
    width: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeColumn:
    """A column: the times that a filter on it filters, and the times its value is one of (none: it may be any)."""

    targets: tuple[Origin, ...] = ()
    sources: tuple[Origin, ...] = ()

    def turned(self, type_: TimeType, width: int) -> TimeColumn:
        def turn(origin: Origin) -> Origin:
            return replace(origin, type=type_, width=combined_width(origin.width, width))

        return TimeColumn(targets=tuple(map(turn, self.targets)), sources=tuple(map(turn, self.sources)))


ANYTHING = TimeColumn()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WindowRelation:
    """Columns by name, in order; an open relation may have more of them anywhere."""

    words: tuple[str, ...] = ()
    outputs: tuple[tuple[str | None, TimeColumn], ...] = ()
    is_open: bool = True

    def find(self, name: str) -> list[TimeColumn]:
        return [column for label, column in self.outputs if label == name]

    def instances(self) -> frozenset[Instance]:
        return frozenset(origin.instance for _, column in self.outputs for origin in column.targets)

    def without_origins(self) -> WindowRelation:
        return replace(self, outputs=tuple((name, ANYTHING) for name, _ in self.outputs))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WindowScope:
    """What the columns of a SELECT can name."""

    relations: tuple[WindowRelation, ...] = ()
    merged: Mapping[str, TimeColumn] = field(default_factory=dict)
    """Columns of USING, which stand for both sides."""

    def resolve(self, column: exp.Column) -> TimeColumn:
        """What a column means.

        Spark refuses a name that two relations have, so the only relation that is known to have it is the one.
        """
        *qualifier, name = (part.name.lower() for part in column.parts)
        if not qualifier and name in self.merged:
            return self.merged[name]
        words = tuple(qualifier)
        relations = [relation for relation in self.relations if relation.words[-len(words) :] == words or not words]
        if words and len(relations) != 1:
            return ANYTHING
        found = [column for relation in relations for column in relation.find(name)]
        return found[0] if len(found) == 1 else ANYTHING


def star_columns(star: exp.Expr, scope: WindowScope) -> WindowRelation:
    """The columns that a star stands for; those of USING come first, and once."""
    options = star.this if isinstance(star, exp.Column) else star
    relations, merged = scope.relations, scope.merged
    if isinstance(star, exp.Column):
        words = tuple(part.name.lower() for part in star.parts[:-1])
        relations, merged = tuple(relation for relation in relations if relation.words[-len(words) :] == words), {}
    if not says_only(options, frozenset({"except_"})) or (isinstance(star, exp.Column) and len(relations) != 1):
        return WindowRelation()
    left_out = {column.name.lower() for column in options.args.get("except_") or ()}
    outputs: list[tuple[str | None, TimeColumn]] = [*merged.items()]
    outputs += [output for relation in relations for output in relation.outputs if output[0] not in merged]
    return WindowRelation(
        outputs=tuple(output for output in outputs if output[0] not in left_out),
        is_open=any(relation.is_open for relation in relations),
    )


def renamed(relation: WindowRelation, names: tuple[str, ...]) -> WindowRelation:
    if not names:
        return relation
    is_known = not relation.is_open and len(relation.outputs) == len(names)
    columns = [column for _, column in relation.outputs] if is_known else [ANYTHING] * len(names)
    return WindowRelation(outputs=tuple(zip(names, columns, strict=True)), is_open=False)


def filtered_side(join: exp.Join, scope: WindowScope, right: WindowRelation) -> frozenset[Instance] | None:
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


def merged_column(side: str, left: TimeColumn, right: TimeColumn) -> TimeColumn:
    """A column of USING: the value of the side whose rows are kept, in a full join of either."""
    if side == "FULL":
        return united_column(left, right, is_union=True)
    kept, other = (right, left) if side == "RIGHT" else (left, right)
    return kept if kept.targets else united_column(other, ANYTHING, is_union=True)


def united_column(one: TimeColumn, other: TimeColumn, *, is_union: bool) -> TimeColumn:
    """A column that takes its values from two, which Spark turns into a common type: text may become a date."""
    types = {origin.type for origin in (*one.targets, *other.targets)}
    is_same = len(types) == 1 and "unknown" not in types and bool(one.targets) and bool(other.targets)

    def turn(origin: Origin) -> Origin:
        if is_same:
            return origin
        width = origin.width if origin.type in {"date", "timestamp"} else combined_width(origin.width, DAY)
        return replace(origin, type="unknown", width=width)

    sources = one.sources + other.sources if one.sources and other.sources else ()
    return TimeColumn(
        targets=tuple(map(turn, one.targets + other.targets)),
        sources=tuple(map(turn, sources if is_union else one.sources)),
    )


def says_only(node: exp.Expr, keys: frozenset[str]) -> bool:
    """Whether a node says nothing beyond what is understood here."""
    return not any(value for key, value in node.args.items() if key not in keys)
