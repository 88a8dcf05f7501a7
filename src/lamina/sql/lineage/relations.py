"""Relations as lineage sees them: rows and columns, each with a text that defines it and the columns it reads."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_LONGEST_TEXT = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSource:
    """What something is computed from: its defining text, and the (table, column) pairs that the text reads."""

    expression: str
    reads: frozenset[tuple[str, str]] = frozenset()
    is_row_wise: bool = True
    """False when the value also depends on other rows: aggregates, window functions, and functions not known."""


class Doubt(Exception):
    """A name or construct that cannot be resolved for sure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedRelation:
    """Rows with columns; `columns` is None for a table that may have any."""

    words: tuple[str, ...] = ()
    columns: Mapping[str, ColumnSource] | None
    rows: ColumnSource
    table: str | None = None
    instance: str = ""

    def column(self, name: str) -> ColumnSource | None:
        """The source of a column; None when the relation certainly has no such column."""
        if self.columns is not None:
            return self.columns.get(name)
        return ColumnSource(expression=f"{self.instance}.`{name}`", reads=frozenset({(self.table or "", name)}))

    def answers_to(self, words: tuple[str, ...]) -> bool:
        """Whether columns may be qualified with these words."""
        return bool(self.words) and self.words[-len(words) :] == words


def combine(label: str, sources: Iterable[ColumnSource]) -> ColumnSource:
    parts = list(sources)
    text = f"({label} {' '.join(part.expression for part in parts)})"
    return ColumnSource(
        expression=shorten(text),
        reads=frozenset().union(*(part.reads for part in parts)),
        is_row_wise=all(part.is_row_wise for part in parts),
    )


def shorten(text: str) -> str:
    """Long texts become a digest: written out again and again they would grow without bound."""
    if len(text) <= _LONGEST_TEXT:
        return text
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def field_of(source: ColumnSource, path: tuple[str, ...]) -> ColumnSource:
    return combine(f"field {'.'.join(path)}", [source]) if path else source


def the_only(sources: Iterable[ColumnSource | None]) -> ColumnSource:
    found = [source for source in sources if source is not None]
    if len(found) != 1:
        raise Doubt
    return found[0]


def seen_from_outside(relation: TracedRelation) -> TracedRelation:
    """The relation of a subquery as the query around it sees it.

    A sum inside of a subquery is another value than the same sum around it, so its text says where it was made.
    """
    columns = {
        name: source if source.is_row_wise else combine("inside", [source])
        for name, source in (relation.columns or {}).items()
    }
    return TracedRelation(columns=columns, rows=relation.rows)


def relabel(relation: TracedRelation, names: Sequence[str]) -> TracedRelation:
    if relation.columns is None or len(relation.columns) != len(names):
        raise Doubt
    return TracedRelation(columns=dict(zip(names, relation.columns.values(), strict=True)), rows=relation.rows)


def renamed(node: exp.Expr, relation: TracedRelation, words: tuple[str, ...]) -> TracedRelation:
    names = alias_columns(node)
    labelled = relabel(relation, names) if names else relation
    return TracedRelation(
        words=words, columns=labelled.columns, rows=labelled.rows, table=labelled.table, instance=labelled.instance
    )


def alias_columns(node: exp.Expr) -> tuple[str, ...]:
    alias = node.args.get("alias")
    if not isinstance(alias, exp.TableAlias):
        return ()
    return tuple(column.name.lower() for column in alias.args.get("columns") or ())
