"""The columns that the clauses of an upsert name, which are those of the new row and of the row in the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.errors import LaminaError
from lamina.sql.header.merge_clauses import read_merge_clauses
from lamina.sql.types import references_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lamina.graph.kinds import IncrementalByUniqueKey
    from lamina.sql.header.merge_clauses import MergeClause

_SIDES = frozenset({"source", "target"})


def unclear_names(kind: IncrementalByUniqueKey) -> Iterator[tuple[str, str]]:
    """The properties that name a column without saying whose it is, each with the name as it is written."""
    for key, parts in _references(kind):
        if len(parts) == 1 or parts[0].lower() not in _SIDES:
            yield key, ".".join(parts)


def columns_named(kind: IncrementalByUniqueKey) -> Iterator[tuple[str, str]]:
    """The properties that name a column of either side, each with the column."""
    for clause in _clauses(kind):
        for name in clause.assigned:
            yield "when_matched", name
    for key, parts in _references(kind):
        if len(parts) > 1 and parts[0].lower() in _SIDES:
            yield key, parts[1]


def _references(kind: IncrementalByUniqueKey) -> Iterator[tuple[str, tuple[str, ...]]]:
    texts = [("when_matched", text) for clause in _clauses(kind) for text in clause.expressions]
    texts += [("merge_filter", kind.merge_filter)] if kind.merge_filter is not None else []
    for key, text in texts:
        try:
            found = references_in(text)
        except LaminaError:
            # What cannot be parsed is told by whoever reads it for its own sake.
            continue
        for parts in found:
            yield key, parts


def _clauses(kind: IncrementalByUniqueKey) -> tuple[MergeClause, ...]:
    try:
        return read_merge_clauses(kind.when_matched)
    except LaminaError:
        return ()
