"""Table names in statements of any kind, found by where they stand: many statements are none that a parser knows."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_PART = r"(?:`(?:[^`]|``)+`|[^\W\d]\w*)"
_PIECE = re.compile(
    rf"""(?P<skipped>--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\s+|\d[\w.]*)
      | (?P<name>{_PART}(?:\s*\.\s*{_PART})*)
      | (?P<other>.)""",
    re.DOTALL | re.VERBOSE,
)
_PARTS = re.compile(_PART)
_MOST_PARTS = 3
# Words that a table's name follows; behind ON it does so only in what grants and revokes.
_BEFORE_TABLE = frozenset({"from", "join", "into", "table", "view", "update", "exists", "overwrite"})
_GRANTS = frozenset({"grant", "revoke", "deny"})
_BEFORE_QUERY = frozenset({"with", "recursive"})
_ENDS_OF_LIST = frozenset({"where", "group", "having", "order", "limit", "union", "select", "on", "using", "set"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Name:
    """A name with its parts; `before` and `after` are the nearest words or signs, in lower case."""

    parts: tuple[str, ...]
    ends: tuple[int, ...]
    start: int
    before: str
    after: str
    is_listed: bool
    """Whether it follows a comma in a FROM clause."""
    is_query: bool
    """Whether it names a query of a WITH clause."""


@dataclass(slots=True)
class _Place:
    """Where in a statement the reading is; a bracket opens a place of its own."""

    before: str = ""
    is_in_from: bool = False
    outer: list[bool] = field(default_factory=list)

    def pass_over(self, piece: str) -> None:
        """Take notice of a word or a sign."""
        self.before = piece
        if piece == "(":
            self.outer.append(self.is_in_from)
            self.is_in_from = False
        elif piece == ")":
            self.is_in_from = self.outer.pop() if self.outer else False
        elif piece == "from":
            self.is_in_from = True
        elif piece in _ENDS_OF_LIST:
            self.is_in_from = False


def resolve_statement(
    text: str, resolve: Callable[[tuple[str, ...]], str | None], everywhere: Mapping[str, str]
) -> str:
    """A statement of Spark's SQL with its table names replaced; all other text stays as it was written.

    `resolve` answers, for the parts of a name in lower case, what stands for it, or None. Qualified names are looked
    up wherever they stand, so that `shop.orders.id` keeps meaning a column, unless an alias of the statement takes the
    first word; a name of one part only where a table's name belongs. `everywhere` names words that are always replaced.
    """
    names = list(_names(text))
    first = names[0].parts[0] if names else ""
    aliases = {name.parts[0] for name in names if len(name.parts) == 1 and name.before == "as"}
    queries = {name.parts[0] for name in names if len(name.parts) == 1 and name.is_query}
    pieces: list[str] = []
    copied = 0
    for name in names:
        is_table = name.before in _BEFORE_TABLE or name.is_listed or (name.before == "on" and first in _GRANTS)
        found = _found(name, resolve, everywhere, is_table=is_table, taken=aliases, queries=queries)
        if found is not None:
            length, replacement = found
            pieces += [text[copied : name.start], replacement]
            copied = name.ends[length - 1]
    return "".join([*pieces, text[copied:]])


def _found(
    name: _Name,
    resolve: Callable[[tuple[str, ...]], str | None],
    everywhere: Mapping[str, str],
    *,
    is_table: bool,
    taken: set[str],
    queries: set[str],
) -> tuple[int, str] | None:
    """How many parts are replaced, and by what."""
    if name.parts[0] in everywhere:
        return 1, everywhere[name.parts[0]]
    if not is_table and name.parts[0] in taken:
        return None
    for length in range(min(len(name.parts), _MOST_PARTS), 0, -1):
        is_call = name.after == "(" and length == len(name.parts) and not is_table
        is_bare = length == 1 and (not is_table or len(name.parts) > 1 or name.parts[0] in queries)
        found = None if is_call or is_bare else resolve(name.parts[:length])
        if found is not None:
            return length, found
    return None


def _names(text: str) -> Iterator[_Name]:
    place = _Place()
    pieces = [match for match in _PIECE.finditer(text) if not match["skipped"]]
    for number, match in enumerate(pieces):
        if match["name"]:
            following = [piece[0].lower() for piece in pieces[number + 1 : number + 3]]
            found = [(part[0], part.end()) for part in _PARTS.finditer(text, match.start(), match.end())]
            yield _Name(
                parts=tuple(_plain(part) for part, _ in found),
                ends=tuple(end for _, end in found),
                start=match.start(),
                before=place.before,
                after=following[0] if following else "",
                is_listed=place.before == "," and place.is_in_from,
                is_query=place.before in _BEFORE_QUERY or following == ["as", "("],
            )
        place.pass_over(match[0].lower())


def _plain(part: str) -> str:
    return (part[1:-1].replace("``", "`") if part.startswith("`") else part).lower()
