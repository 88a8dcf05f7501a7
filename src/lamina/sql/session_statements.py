"""Statements around a query: what they read, and what they leave behind in the session."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import TokenType, exp

from lamina.errors import SyntaxProblem
from lamina.sql.lineage.scopes import bind
from lamina.sql.syntax import SPARK, ParsedQuery, parse_query, parse_statement, tokenise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot import Token

    from lamina.sql.lineage.scopes import TableReference

_SPACE = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*"
_PREPARES = re.compile(
    rf"{_SPACE}(?:CREATE\s+(?:OR\s+REPLACE\s+)?TEMP(?:ORARY)?\s+(?:VIEW|FUNCTION)|DECLARE|SET|USE)\b",
    re.IGNORECASE | re.DOTALL,
)
_VIEW = re.compile(
    rf"{_SPACE}(?:CREATE\s+(?:OR\s+REPLACE\s+)?TEMP(?:ORARY)?\s+VIEW\s+(?:IF\s+NOT\s+EXISTS\s+)?"
    r"|(?P<cached>CACHE\s+(?:LAZY\s+)?TABLE\s+))"
    rf"(?P<name>`(?:[^`]|``)+`|\w+){_SPACE}(?P<columns>\()?",
    re.IGNORECASE | re.DOTALL,
)
_QUERY_WORDS = frozenset({TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.VALUES, TokenType.TABLE})
_MAKES = frozenset({"CREATE", "CACHE"})
_FILLS = "INSERT"
_BEFORE_TARGET = frozenset({"INSERT", "INTO", "OVERWRITE"})
_OPENING = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET})
_CLOSING = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET})


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementParts:
    """A statement that can be read, from the point on where it reads tables; what stands in front of that is kept."""

    before: str
    reading: ParsedQuery

    @property
    def references(self) -> tuple[TableReference, ...]:
        """The tables it reads; their offsets count from the start of `reading`."""
        return tuple(bind(self.reading.tree).references)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionView:
    """A temporary view that a statement makes, by its name in lower case."""

    name: str
    query: str | None
    """What it stands for; None for a view over files or another system."""
    has_columns: bool
    """Whether it gives its columns other names."""

    @property
    def can_be_put_in(self) -> bool:
        """Whether its query may stand where the view is named."""
        return self.query is not None and not self.has_columns


def prepares_session(statement: str) -> bool:
    """Whether a statement of Spark SQL leaves nothing behind that outlives its session."""
    return _PREPARES.match(statement) is not None


def statement_parts(text: str) -> StatementParts | None:
    """What a statement reads; None when it is of a kind that cannot be read, such as `CALL` and `OPTIMIZE`."""
    try:
        tokens = tokenise(text)
    except SyntaxProblem:
        return None
    start = _start_of_query(tokens)
    if start is not None:
        # What makes or fills something from a query is read as that query, whatever stands in front of it.
        try:
            return StatementParts(before=text[:start], reading=parse_query(text[start:]))
        except SyntaxProblem:
            pass
    if not any(token.token_type in {TokenType.SELECT, TokenType.MERGE} for token in tokens):
        return None
    try:
        tree = parse_statement(text, tokens, SPARK)
        if tree is None or isinstance(tree, exp.Command):
            return None
        bind(tree)
    except SyntaxProblem:
        return None
    return StatementParts(before="", reading=ParsedQuery(text=text, tokens=tokens, tree=tree))


def tables_read(text: str) -> tuple[str, ...]:
    """The names of the tables that a statement reads, as the text of a name is written in lower case."""
    parts = statement_parts(text)
    return () if parts is None else tuple(reference.name.to_text() for reference in parts.references)


def reads_unseen(text: str) -> bool:
    """Whether a statement brings rows into its session that no name of a table stands for."""
    view = session_view(text)
    return view is not None and view.query is None


def _start_of_query(tokens: Sequence[Token]) -> int | None:
    """Where a query begins that is the statement, or what `CREATE … AS`, `CACHE … AS` or `INSERT …` is given."""
    first = tokens[0].text.upper() if tokens else ""
    depth = 0
    before: Token | None = None
    for token in tokens:
        if depth == 0 and first in _MAKES and before is not None and before.token_type is TokenType.ALIAS:
            return token.start
        if token.token_type in _OPENING:
            depth += 1
        elif token.token_type in _CLOSING:
            depth -= 1
        elif depth == 0 and token.token_type in _QUERY_WORDS and _may_precede(before, first):
            return token.start
        before = token
    return None


def _may_precede(before: Token | None, first: str) -> bool:
    """Whether a query can begin behind a word of a statement."""
    return before is None or (first == _FILLS and before.text.upper() not in _BEFORE_TARGET)


def session_view(text: str) -> SessionView | None:
    """The temporary view that a statement makes, if it makes one."""
    match = _VIEW.match(text)
    if match is None:
        return None
    parts = statement_parts(text)
    query = parts.reading.text if parts is not None and parts.before else None
    if match["cached"] and query is None:
        return None
    written = match["name"]
    name = written[1:-1].replace("``", "`") if written.startswith("`") else written
    return SessionView(name=name.lower(), query=query, has_columns=match["columns"] is not None)
