"""Reading the pieces of SQL that macros work on: expressions and queries, never statements."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import Dialect, parse_one
from sqlglot.errors import ParseError, SqlglotError

from lamina.sql.depth import DEEPEST, check_depth
from lamina.sql.macros.times import TIME_NAMES, find_placeholders

if TYPE_CHECKING:
    from sqlglot import exp

_SYMBOLS = TIME_NAMES | {"this_model"}
_STAND_IN = re.compile(r"[`\"]?__lamina_symbol_(\w+?)__[`\"]?", re.IGNORECASE)
_QUERY = re.compile(r"\s*(\(|(SELECT|WITH|FROM|VALUES)\b)", re.IGNORECASE)


def parse(text: str, dialect: str) -> exp.Expr:
    """The tree of one expression or query; raises sqlglot's errors and no others.

    Symbols such as `@start_ds` are read as columns that `restore_symbols` turns back, because dialects differ in what
    the sign means.
    """
    try:
        readable = hide_symbols(text, dialect)
        if len(readable) > DEEPEST:
            check_depth(Dialect.get_or_raise(dialect).tokenize(readable))
        if _QUERY.match(readable):
            return parse_one(readable, dialect=dialect)
        # Inside a call everything that may be an argument is read, lambdas included, and no word starts a statement.
        function = parse_one(f"LAMINA_ARGUMENTS({readable}\n)", dialect=dialect)
        found: list[exp.Expr] = list(function.expressions)
    except SqlglotError:
        raise
    except (TypeError, AttributeError, ValueError, IndexError, RecursionError) as error:
        # The compiled parser meets some broken texts with these.
        raise ParseError(f"`{text}` cannot be read") from error
    if len(found) != 1:
        raise ParseError(f"`{text}` is not one expression")
    found[0].pop()
    return found[0]


def hide_symbols(text: str, dialect: str) -> str:
    """The text with symbols written as names that every dialect reads."""
    pieces: list[str] = []
    position = 0
    for start, end, name in find_placeholders(text, dialect, _SYMBOLS):
        pieces += text[position:start], f"__lamina_symbol_{name}__"
        position = end
    return "".join([*pieces, text[position:]])


def restore_symbols(text: str) -> str:
    """The text with the names of `hide_symbols` turned back."""
    return _STAND_IN.sub(r"@\1", text)
