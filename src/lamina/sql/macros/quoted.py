"""Variables inside of quoted names: `` `@schema`.`orders` ``, `` `orders_@{region}` ``.

`@{name}` stands for a variable wherever it is written, `@name` where there is a variable of that name and no letter or
digit in front of it: `` `user@host` `` is an address. `@@name` is an `@` that belongs to the name. What no variable is
called stays as it was written, because columns may begin with the sign (`` `@timestamp` ``), but tables do not: there
it is a variable that nothing defines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import Dialect, TokenType

if TYPE_CHECKING:
    from collections.abc import Callable

    from lamina.sql.macros.text import Source

_VARIABLE = re.compile(r"@\{([^\W\d]\w*)\}|(?<![^\W_])(?:@(@)(?=[^\W\d])|@([^\W\d]\w*))")
_BEFORE_TABLE = frozenset({"JOIN", "INTO", "TABLE", "UPDATE", "USING", "VIEW", "OVERWRITE", "DATABASE", "SCHEMA"})
_CLAUSES = frozenset(
    {"SELECT", "FROM", "USING", "WHERE", "ON", "BY", "HAVING", "QUALIFY", "SET", "VALUES", "WINDOW", "VIEW", "PIVOT"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotedVariable:
    """A variable that a quoted name may hold: its name in lower case and as `shown`, and the text that names it."""

    name: str
    shown: str
    text: str
    is_braced: bool
    """Braces mean nothing else, so that the variable must be known."""
    may_begin_folder: bool
    """Some other sign than `_` stands in front of it, as in a path."""


def fill_quoted(written: str, fill: Callable[[QuotedVariable], str]) -> str:
    """A quoted name with each variable that it may hold replaced by what `fill` gives for it."""

    def replaced(match: re.Match[str]) -> str:
        if match[2]:
            return match[2]
        shown = match[1] or match[3]
        before = written[1 : match.start()][-1:]
        return fill(
            QuotedVariable(
                name=shown.lower(),
                shown=shown,
                text=match[0],
                is_braced=match[1] is not None,
                may_begin_folder=before not in {"", "_"},
            )
        )

    return _VARIABLE.sub(replaced, written)


def quoted_part(value: str, dialect: str) -> str:
    """A value written inside of the quotes of a name."""
    end = Dialect.get_or_raise(dialect).IDENTIFIER_END
    return value.replace(end, end * 2)


def is_table_as_text(source: Source, index: int) -> bool:
    """Whether text stands where only the name of a table can: `FROM "@schema"."orders"`, which the parser takes so."""
    if source.tokens[index].type is not TokenType.STRING or not names_table(source, index):
        return False
    first = index
    while source.raw(first - 1) == ".":
        first -= 2
    # What stands behind USING may be the script of a TRANSFORM.
    return source.raw(first - 1).upper() in {"FROM", "JOIN", ","}


def names_table(source: Source, index: int) -> bool:
    """Whether the quoted name at `index` is a table's, or the catalog or schema in front of one."""
    first = index
    while source.raw(first - 1) == ".":
        first -= 2
    if first == index and source.raw(index + 1) != "." and _is_named_in_with(source, index):
        return False
    before = source.raw(first - 1).upper()
    if before == "FROM":
        return _begins_sources(source, first - 1)
    return before in _BEFORE_TABLE or (before == "," and _clause_of(source, first) in {"FROM", "USING"})


def _is_named_in_with(source: Source, index: int) -> bool:
    """Whether the text gives the name to rows of its own: `` WITH `@a` AS (…) ``."""
    name = source.raw(index).lower()
    for other, token in enumerate(source.tokens):
        if token.raw.lower() == name:
            # The names of its columns may stand in between.
            behind = source.closes.get(other + 1, other) + 1
            if source.raw(behind).upper() == "AS" and source.raw(behind + 1) == "(":
                return True
    return False


def _begins_sources(source: Source, index: int) -> bool:
    """Whether a FROM is that of a query, and not of `EXTRACT(year FROM x)` or `IS DISTINCT FROM x`."""
    if source.raw(index - 1).upper() == "DISTINCT":
        return False
    opening = next((start for start in range(index, -1, -1) if source.closes.get(start, -1) > index), None)
    if opening is None or not (opening and source.tokens[opening - 1].is_word and source.touches(opening)):
        return True
    return _clause_of(source, index) == "SELECT"


def _clause_of(source: Source, index: int) -> str:
    """The keyword of the clause that the token at `index` stands in, looked for in the same brackets only."""
    opened = {close: start for start, close in source.closes.items()}
    index -= 1
    while index >= 0:
        if index in opened:
            index = opened[index]
        elif index in source.closes:
            return ""
        else:
            word = source.tokens[index].upper.rpartition(" ")[2]
            if word in _CLAUSES:
                return word
        index -= 1
    return ""
