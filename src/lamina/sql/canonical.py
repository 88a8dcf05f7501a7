"""The canonical text of SQL: equal for two texts that differ only in how they are written."""

from __future__ import annotations

import json
import sys
from enum import Enum
from typing import TYPE_CHECKING

from sqlglot import TokenType, exp
from sqlglot._version import __version__ as parser_version

from lamina.errors import SyntaxProblem
from lamina.sql.syntax import SPARK, parse_query, source_name, tokenise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sqlglot import Token

    from lamina.sql.syntax import ParsedQuery

MADE_WITH = f"Python {sys.version_info[0]}.{sys.version_info[1]}, sqlglot {parser_version}"
"""What canonical texts, of SQL and of Python, depend on besides what they are made from."""

_TEXT_NODES = (
    exp.Literal,
    exp.RawString,
    exp.National,
    exp.UnicodeString,
    exp.HexString,
    exp.BitString,
    exp.ByteString,
    exp.JSONPathPart,
)
_STRING_TOKENS = frozenset({TokenType.STRING, TokenType.RAW_STRING, TokenType.NATIONAL_STRING})
_COMMAND_TOKENS = frozenset({TokenType.COMMAND, TokenType.EXECUTE, TokenType.FETCH, TokenType.SHOW, TokenType.RENAME})


def canonical_text(text: str, dialect: str = SPARK) -> str:
    """Text that stays the same under reformatting and changes with the meaning.

    White space, comments, case of keywords and identifiers, quotes around identifiers and superfluous parentheses do
    not matter. `@start_ds` and its like stay symbolic. Statements other than queries, and queries that sqlglot cannot
    parse, are compared token by token.
    """
    try:
        return canonical_query(parse_query(text, dialect))
    except SyntaxProblem:
        return canonical_tokens(tokenise(text, dialect))


def canonical_query(query: ParsedQuery) -> str:
    """The canonical text of a query that is parsed already."""
    tree_text = canonical_tree(query.tree, query.text)
    if any(mixes_commas_and_joins(select) for select in query.tree.find_all(exp.Select)):
        return f"{tree_text} {canonical_tokens(query.tokens)}"
    return tree_text


def canonical_tree(root: exp.Expr, text: str, substitute: Callable[[exp.Expr], str | None] | None = None) -> str:
    """The syntax tree as text; `text` is where it was parsed from.

    `substitute` may give the text of a whole subtree itself.
    """
    written: list[str] = []
    waiting: list[object] = [root]
    while waiting:
        item = waiting.pop()
        if isinstance(item, _Written):
            written.append(item)
        elif isinstance(item, exp.Expr):
            replaced = substitute(item) if substitute is not None else None
            if replaced is not None:
                written.append(replaced)
            else:
                waiting.extend(reversed(_open(item, text)))
        elif isinstance(item, (list, tuple)):
            waiting.append(_CLOSE_LIST)
            waiting.extend(reversed(_spaced(item)))
            written.append("[")
        else:
            written.append(_scalar(item))
    return "".join(written)


def canonical_tokens(tokens: Iterable[Token]) -> str:
    """The tokens with one space between them, words in lower case, without a closing semicolon."""
    words: list[str] = []
    before: Token | None = None
    for token in tokens:
        is_command, before = before is not None and before.token_type in _COMMAND_TOKENS, token
        if is_command and token.token_type is TokenType.STRING:
            # All that follows such a word comes as one token, comments and white space included.
            words.append(canonical_tokens(tokenise(token.text)))
        elif token.token_type in _STRING_TOKENS:
            words.append(json.dumps(token.text, ensure_ascii=False))
        elif token.token_type is TokenType.HINT:
            words.append(" ".join("".join(token.comments).lower().split()))
        else:
            words.append(token.text.lower())
    while words and words[-1] == ";":
        words.pop()
    return " ".join(words)


def mixes_commas_and_joins(select: exp.Expr) -> bool:
    """Whether the tree may hide what joins with what.

    sqlglot reads `a, b` and `a CROSS JOIN b` alike, yet a comma binds weaker than JOIN. That makes a difference as soon
    as a join other than a plain inner one follows.
    """
    crossed = False
    for join in select.args.get("joins") or ():
        side, kind = join.side, join.kind
        if crossed and (side or kind in {"SEMI", "ANTI"} or join.args.get("using") or join.args.get("method")):
            return True
        crossed = crossed or kind == "CROSS"
    return False


class _Written(str):
    """Text that is ready to be written out, unlike a string in the tree."""

    __slots__ = ()


_CLOSE = _Written(")")
_CLOSE_LIST = _Written("]")
_SPACE = _Written(" ")


def _open(node: exp.Expr, text: str) -> list[object]:
    while isinstance(node, exp.Paren) or (isinstance(node, exp.Subquery) and _is_bare(node)):
        node = node.this
    if isinstance(node, exp.Identifier):
        return [_Written("`" + node.this.lower().replace("`", "``") + "`")]
    if isinstance(node, exp.Literal):
        return [_Written(json.dumps(node.this, ensure_ascii=False) if node.is_string else node.this.lower())]
    if isinstance(node, exp.Hint):
        # A hint is parsed apart, so the offsets inside it do not point into the text.
        return [_Written(f"(hint {node.sql(dialect=SPARK).lower()})")]
    keeps_case = isinstance(node, _TEXT_NODES)
    parts: list[object] = [_Written("(" + _label(node, text))]
    for key, value in sorted(node.args.items()):
        if value is None or value is False or value == [] or _is_default(node, key, value):
            continue
        parts.append(_Written(f" {key}="))
        if isinstance(value, str):
            parts.append(_Written(json.dumps(value if keeps_case else value.lower(), ensure_ascii=False)))
        else:
            parts.append(value)
    parts.append(_CLOSE)
    return parts


def _label(node: exp.Expr, text: str) -> str:
    label = type(node).__name__.lower()
    if isinstance(node, exp.Func) and not isinstance(node, exp.Anonymous):
        name = source_name(node, text)
        if name is not None and name != label:
            return f"{label}:{name}"
    return label


def _is_bare(node: exp.Subquery) -> bool:
    return not any(value for key, value in node.args.items() if key != "this")


def _is_default(node: exp.Expr, key: str, value: object) -> bool:
    """`INNER` and `OUTER` may be left out; a condition that is always true stands for none."""
    if isinstance(node, exp.Join):
        if key == "kind":
            return value == "INNER" or (value == "OUTER" and bool(node.side))
        return key == "on" and isinstance(value, exp.Boolean) and value.this is True
    return False


def _spaced(items: list[object] | tuple[object, ...]) -> list[object]:
    spaced: list[object] = []
    for item in items:
        if spaced:
            spaced.append(_SPACE)
        spaced.append(_Written(json.dumps(item, ensure_ascii=False)) if type(item) is str else item)
    return spaced


def _scalar(value: object) -> str:
    if isinstance(value, Enum):
        return str(value.value).lower()
    return str(value).lower()
