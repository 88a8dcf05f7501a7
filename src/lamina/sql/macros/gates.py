"""Clause gates: `@WHERE(condition) ...` keeps the clause behind it only when the condition holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.sql.macros.splice import CLAUSE_WORDS

if TYPE_CHECKING:
    from lamina.sql.macros.text import Source

GATES = {
    "with": "WITH",
    "join": "JOIN",
    "where": "WHERE",
    "group_by": "GROUP BY",
    "having": "HAVING",
    "order_by": "ORDER BY",
    "limit": "LIMIT",
}
_GATE_WORDS = frozenset(GATES) - {"with"}
_JOIN_KINDS = frozenset(
    {"LEFT", "RIGHT", "FULL", "INNER", "OUTER", "CROSS", "SEMI", "ANTI", "NATURAL", "ASOF", "LATERAL", "POSITIONAL"}
)
_STATEMENT_STARTS = frozenset({"SELECT", "INSERT", "MERGE", "UPDATE", "DELETE", "VALUES", "FROM", "TABLE", "("})
# ON belongs to the clause of a join; everything else of the list ends any clause.
_CLAUSE_ENDS = (CLAUSE_WORDS - {"ON"}) | {"JOIN"}


def clause_end(source: Source, gate: str, start: int, end: int) -> int:
    """The token behind the clause whose body starts at `start`."""
    index = start
    while index < end:
        if _ends_clause(source, gate, index):
            return index
        index = source.closes.get(index, index) + 1
    return end


def _ends_clause(source: Source, gate: str, index: int) -> bool:
    token = source.tokens[index]
    if token.raw in {")", ";"}:
        return True
    if gate == "with":
        # The bracket of `x AS (...)` and of `x (a, b) AS (...)` belongs to the clause.
        return token.upper in _STATEMENT_STARTS and not (token.raw == "(" and _is_inside_with(source, index))
    if token.raw == "@":
        return source.raw(index + 1).lower() in _GATE_WORDS and source.raw(index + 2) == "("
    if token.raw == "," and gate == "join":
        return True
    if token.upper in _JOIN_KINDS:
        return source.raw(index + 1) != "("
    return token.upper in _CLAUSE_ENDS


def _is_inside_with(source: Source, index: int) -> bool:
    before = source.tokens[index - 1]
    return before.upper != ")" and (before.upper in {"AS", "MATERIALIZED"} or before.is_word or before.raw[0] in '`"[')


def join_kinds_before(source: Source, index: int, start: int) -> int:
    """The first of the words such as LEFT OUTER that stand right in front of a join gate."""
    first = index
    while first > start and source.tokens[first - 1].upper in _JOIN_KINDS:
        first -= 1
    return first
