"""How deep SQL is nested, asked of its tokens before it is parsed and of its tree afterwards.

The compiled parser goes down with every level. Text that is nested deep enough would exhaust the stack of the process
and end it, past every exception.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import TokenType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot import exp
    from sqlglot.tokenizer_core import Token

DEEPEST = 200
DEEPEST_TREE = 5000

_OPENING = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE})
_CLOSING = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END})
_BEFORE_TYPES = frozenset({"ARRAY", "MAP", "STRUCT", "LIST", "NULLABLE", "OBJECT", "VECTOR"})
_ENDS_OF_LAMBDAS = frozenset({TokenType.COMMA, TokenType.SEMICOLON, TokenType.AND, TokenType.OR})
# What a value ends with: after it an operator begins no new level.
_VALUES = frozenset(
    {
        *(TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER, TokenType.STAR, TokenType.NULL),
        *(TokenType.TRUE, TokenType.FALSE, TokenType.RAW_STRING, TokenType.NATIONAL_STRING, TokenType.BIT_STRING),
        *(TokenType.HEX_STRING, TokenType.BYTE_STRING, TokenType.HEREDOC_STRING, TokenType.UNICODE_STRING),
        *(TokenType.COMMA, TokenType.SEMICOLON),
    }
)


def too_deep(tokens: Sequence[Token]) -> int | None:
    """The number of the token at which SQL is nested deeper than `DEEPEST`, if it is.

    Levels are brackets, CASE, types inside types, operators in front of operators, lambdas of lambdas, and joins that
    wait for their condition.
    """
    if len(tokens) <= DEEPEST:
        return None
    # For every open bracket, of how many lambdas it is in the body.
    opened: list[int] = []
    angles = run = arrows = joins = 0
    for index, token in enumerate(tokens):
        kind = token.token_type
        if kind in _OPENING:
            opened.append(arrows)
        elif kind in _CLOSING and opened:
            arrows = opened.pop()
        elif kind in _ENDS_OF_LAMBDAS:
            arrows = opened[-1] if opened else 0
        elif kind is TokenType.ARROW:
            arrows += 1
        if kind is TokenType.LT and index and tokens[index - 1].text.upper() in _BEFORE_TYPES:
            angles += 1
        elif kind is TokenType.GT or token.text == ">>":
            angles = max(angles - len(token.text), 0)
        if kind is TokenType.JOIN:
            joins += 1
        elif kind in {TokenType.ON, TokenType.USING}:
            joins = max(joins - 1, 0)
        elif kind in {TokenType.SELECT, TokenType.SEMICOLON}:
            joins = 0
        run = 0 if kind in _VALUES or kind in _CLOSING else run + 1
        if len(opened) + angles + run + arrows + joins > DEEPEST:
            return index
    return None


def check_depth(tokens: Sequence[Token]) -> None:
    """Refuse what may not be parsed. Raises `ParseError`."""
    if too_deep(tokens) is not None:
        raise ParseError(f"it is nested more than {DEEPEST} deep")


def depth_of(tree: exp.Expr) -> int:
    """The longest way from the top of a tree down to a leaf."""
    deepest = 0
    waiting = [(tree, 1)]
    while waiting:
        node, depth = waiting.pop()
        deepest = max(deepest, depth)
        waiting.extend((child, depth + 1) for child in node.iter_expressions())
    return deepest
