"""Putting the results of macros back into the text.

Brackets go where precedence needs them; no comma, connector or clause keyword is left dangling.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.errors import SqlglotError

from lamina.errors import MacroError
from lamina.sql.macros.parse import parse
from lamina.sql.macros.shapes import is_in_cast
from lamina.sql.macros.text import as_name, is_blank, join, text_of, wrap

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lamina.sql.macros.text import Chunk, Rope, Source

_ATOM = re.compile(r"@?\w+(\.\w+)*|'[^'\\]*'")
_LOGICAL = frozenset({"AND", "OR", "NOT"})
_OPERATORS = _LOGICAL | frozenset(
    {"+", "-", "*", "/", "%", "||", "=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>", "::", "&", "|", "^", "~"}
    | {"LIKE", "ILIKE", "RLIKE", "IN", "BETWEEN", "IS", "DIV", "COLLATE"}
)
_BEFORE_RELATION = frozenset({"FROM", "JOIN"})

CLAUSE_WORDS = frozenset(
    {
        "FROM",
        "WHERE",
        "GROUP BY",
        "HAVING",
        "ORDER BY",
        "LIMIT",
        "QUALIFY",
        "WINDOW",
        "CLUSTER BY",
        "DISTRIBUTE BY",
        "SORT BY",
    }
    | {"OFFSET", "FETCH", "UNION", "EXCEPT", "INTERSECT", "MINUS", "ON"}
)
_ENDERS = CLAUSE_WORDS | {")", "]", "}", ";", ",", "", "SELECT", "THEN", "ELSE", "END"}
_LIST_STARTERS = frozenset(
    {"(", "[", "", ";", "SELECT", "DISTINCT", "ALL", "WITH", "SET", "VALUES", "GROUP BY", "ORDER BY", "FROM"}
)
_CONDITION_STARTERS = frozenset({"(", "", "WHERE", "ON", "HAVING", "QUALIFY", "WHEN", ","})
_LONELY_CLAUSES = frozenset({"WHERE", "HAVING", "QUALIFY", "GROUP BY", "ORDER BY", "LIMIT"})


@dataclass(slots=True, kw_only=True)
class Piece:
    """A stretch of tokens on its way into the result: as written, replaced by a rope, or dropped."""

    start: int
    end: int
    rope: Rope | None = None
    is_dropped: bool = False

    @property
    def is_empty(self) -> bool:
        """True when a macro left nothing here."""
        return self.rope is not None and is_blank(self.rope)


def place(result: Rope, source: Source, start: int, end: int, bare: Callable[[str], str]) -> Rope:
    """A result written the way its neighbours need it: as a name, in brackets, or as it is."""
    text = text_of(result).strip()
    if not text:
        return ()
    before, after = _neighbours(source, start, end)
    if source.touches(start) and source.tokens[start - 1].is_word:
        return source.make(bare(text), start)
    is_dotted = (before == "." and source.touches(start)) or (after == "." and source.touches(end))
    if (is_dotted or before == "AS") and text[0] in "'\"":
        name = bare(text)
        is_type = before == "AS" and is_in_cast(source, start)
        return source.make(name if is_type else as_name(name, source.dialect, is_path=is_dotted), start)
    return wrap(result, "(", ")") if needs_brackets(text, source.dialect, before, after) else result


def place_items(items: Sequence[Rope], source: Source, start: int, end: int) -> Rope:
    """Items with commas between them; in brackets right behind IN."""
    before, after = _neighbours(source, start, end)
    ropes = [rope for rope in items if not is_blank(rope)]
    is_inside_in = before == "(" and after == ")" and start > 1 and source.tokens[start - 2].upper == "IN"
    if not ropes and (before == "IN" or is_inside_in):
        raise MacroError(
            f"`@{source.raw(start + 1)}` is an empty list, and IN needs at least one item",
            hint="leave the condition out with `@IF` when the list is empty",
            location=source.location(start),
        )
    rope = join(ropes, ", ")
    return wrap(rope, "(", ")") if before == "IN" else rope


def _neighbours(source: Source, start: int, end: int) -> tuple[str, str]:
    before = source.tokens[start - 1].upper if start else ""
    return before, source.tokens[end].upper if end < len(source.tokens) else ""


def needs_brackets(text: str, dialect: str, before: str, after: str) -> bool:
    """Whether a text must be put in brackets to keep its meaning between two neighbouring tokens."""
    near = {before, after} & _OPERATORS
    if (not near and before not in _BEFORE_RELATION) or _ATOM.fullmatch(text):
        return False
    try:
        found = parse(text, dialect)
    except SqlglotError:
        return False
    if isinstance(found, exp.Query) and not isinstance(found, exp.Subquery):
        return True
    if not near:
        return False
    if near <= _LOGICAL:
        return isinstance(found, exp.Connector)
    return _is_compound(found)


def _is_compound(found: exp.Expr) -> bool:
    if isinstance(found, (exp.Dot, exp.PropertyEQ, exp.Bracket)):
        return False
    return isinstance(found, (exp.Binary, exp.Not, exp.Neg, exp.Between, exp.In, exp.Is))


def tidy(source: Source, pieces: Sequence[Piece]) -> None:
    """Drop the comma, connector or clause keyword that a macro without a result leaves dangling."""
    standing: list[Piece] = []
    ahead = 0
    for position, piece in enumerate(pieces):
        if not piece.is_empty:
            standing.append(piece)
            continue
        while standing and not _stands(standing[-1]):
            standing.pop()
        ahead = max(ahead, position + 1)
        while ahead < len(pieces) and not _stands(pieces[ahead]):
            ahead += 1
        before = standing[-1] if standing else None
        after = pieces[ahead] if ahead < len(pieces) else None
        left, right = _word(source, before), _word(source, after)
        if before is not None and right in _ENDERS | {"AND", "OR"} and _dangles_before(left, right):
            before.is_dropped = True
        elif after is not None and _dangles_after(left, right):
            after.is_dropped = True


def _stands(piece: Piece) -> bool:
    return not piece.is_dropped and not piece.is_empty


def _word(source: Source, piece: Piece | None) -> str:
    """The keyword or sign a piece consists of; something else for longer pieces and macros, nothing at the border."""
    if piece is None:
        return ""
    is_single = piece.rope is None and piece.end == piece.start + 1
    return source.tokens[piece.start].upper if is_single else "?"


def _dangles_before(left: str, right: str) -> bool:
    if left == ",":
        return right not in {"AND", "OR"}
    if left in {"AND", "OR"}:
        return True
    return left in _LONELY_CLAUSES and right not in {",", "AND", "OR"}


def _dangles_after(left: str, right: str) -> bool:
    if right == ",":
        return left in _LIST_STARTERS
    return right in {"AND", "OR"} and left in _CONDITION_STARTERS


def assemble(source: Source, pieces: Sequence[Piece], start: int, end: int) -> Rope:
    """The text between two offsets with the pieces in place; what stands between the pieces is kept."""
    found: list[Chunk] = []
    position = start
    for piece in pieces:
        if piece.rope is None and not piece.is_dropped:
            continue
        found.extend(source.copy(position, source.tokens[piece.start].start))
        if piece.rope and not piece.is_dropped:
            found.extend(piece.rope)
        position = source.tokens[piece.end - 1].end
    found.extend(source.copy(position, end))
    return tuple(found)
