"""Arguments of audits: SQL text of the model's dialect, read as what an audit asks for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot.tokenizer_core import TokenType

from lamina.errors import BadAudit, LaminaError, Location
from lamina.sql.fragment import Fragment
from lamina.sql.lexed import TEXTS, lex
from lamina.sql.names import quote
from lamina.sql.syntax import generate, hide_symbols, is_spark, parse_expression
from lamina.sql.types import check_expression, header_expression

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamina.sql.lexed import Lexed, Span

_NAME = re.compile(r"[^\W\d]\w*")
_QUOTED = re.compile(r"`(?:[^`]|``)+`")
_CONSTANTS = frozenset({"null", "true", "false"})
# Plain names and numbers, which most arguments are, need not be cut into tokens.
_SIMPLE = re.compile(r"\w+")
_PARTITION = re.compile(r"\s*PARTITION\s+BY\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditArguments:
    """The arguments that a built-in audit is called with, given out as Spark SQL.

    What names columns or states conditions may also be given as text: that is how decorators and YAML write SQL.
    Whatever cannot be read is raised as a `BadAudit` that names the argument.
    """

    audit: str
    texts: Mapping[str, str]
    dialect: str
    location: Location | None

    def has(self, name: str) -> bool:
        """Whether the argument is given, and not as NULL."""
        return self.texts.get(name, "null").strip().lower() != "null"

    def column(self, name: str) -> str:
        """A column in backticks, or an expression over columns in brackets."""
        return self._column(name, self._single(name))

    def columns(self, name: str) -> tuple[str, ...]:
        """One or more columns."""
        return tuple(self._column(name, item) for item in self._items(name))

    def value(self, name: str) -> str:
        """Any expression, text staying text."""
        return self._read(name, self._single(name))

    def values(self, name: str) -> tuple[str, ...]:
        """One or more expressions, text staying text."""
        return tuple(self._read(name, item) for item in self._items(name))

    def condition(self, name: str) -> str:
        """Something that holds or does not, in brackets."""
        return f"({self._read(name, self._unquoted(self._single(name)))})"

    def conditions(self, name: str) -> tuple[str, ...]:
        """One or more conditions, each in brackets."""
        return tuple(f"({self._read(name, self._unquoted(item))})" for item in self._items(name))

    def flag(self, name: str, default: bool) -> bool:
        """`true` or `false`."""
        if not self.has(name):
            return default
        written = self.texts[name].strip().strip("'").lower()
        if written not in {"true", "false"}:
            raise self._fail(name, f"must be `true` or `false`, not `{self.texts[name]}`")
        return written == "true"

    def partition(self, name: str) -> str:
        """The beginning of a window: `PARTITION BY …` and a space, or nothing."""
        if not self.has(name):
            return ""
        written = self._unquoted(self._strip(self.texts[name]))
        items = self._cut(name, _PARTITION.sub("", written, count=1))
        return f"PARTITION BY {', '.join(self._column(name, item) for item in items)} "

    def _single(self, name: str) -> str:
        items = self._items(name)
        if len(items) != 1:
            raise self._fail(name, f"must be one expression, not {len(items)}")
        return items[0]

    def _items(self, name: str) -> tuple[str, ...]:
        return self._cut(name, self.texts[name])

    def _cut(self, name: str, text: str) -> tuple[str, ...]:
        try:
            items = split_argument(text, self.dialect, self.location)
        except LaminaError as error:
            raise self._fail(name, f"cannot be read: {error.message}") from error
        if not items or not all(items):
            raise self._fail(name, "is empty")
        return items

    def _column(self, name: str, text: str) -> str:
        written = self._unquoted(text)
        if _NAME.fullmatch(written) and written.lower() not in _CONSTANTS:
            # A column may be called like a keyword, which is no expression by itself.
            return quote(written)
        found = self._read(name, written)
        return found if _QUOTED.fullmatch(found) else f"({found})"

    def _read(self, name: str, text: str) -> str:
        try:
            written = header_expression(text, self.dialect, self.location)
            check_expression(written, location=self.location)
        except LaminaError as error:
            raise self._fail(name, f"is no expression: {error.message}") from error
        return written

    def _unquoted(self, text: str) -> str:
        """The SQL inside of a string literal; other text as it is."""
        if _SIMPLE.fullmatch(text):
            return text
        lexed = lex(self._fragment(text))
        is_text = len(lexed.tokens) == 1 and lexed.tokens[0].token_type in TEXTS
        return self._strip(lexed.tokens[0].text) if is_text else text

    def _strip(self, text: str) -> str:
        """The text on one line, without comments."""
        lexed = lex(self._fragment(text))
        return lexed.sql((0, len(lexed.tokens))) if lexed.tokens else ""

    def _fragment(self, text: str) -> Fragment:
        return _fragment(text, self.dialect, self.location)

    def _fail(self, name: str, what: str) -> BadAudit:
        return BadAudit(f"`{name}` of audit `{self.audit}` {what}", location=self.location)


def column_name(text: str) -> str | None:
    """The name that a column of `AuditArguments` consists of; None for other expressions."""
    return text[1:-1].replace("``", "`") if _QUOTED.fullmatch(text) else None


def split_argument(text: str, dialect: str, location: Location | None = None) -> tuple[str, ...]:
    """The items of `(a, b)`, `[a, b]`, `ARRAY(a, b)` or `a, b`, each on one line and without comments."""
    if _SIMPLE.fullmatch(text):
        return (text,)
    lexed = lex(_fragment(text, dialect, location))
    span = _inside(lexed, (0, len(lexed.tokens)))
    return tuple(lexed.sql(part) if part[0] < part[1] else "" for part in lexed.split(span))


def translate_argument(text: str, dialect: str, to: str, location: Location | None = None) -> str:
    """An argument or list of arguments in another dialect; macros in it are expanded, time variables may remain."""
    if _SIMPLE.fullmatch(text):
        return text
    if dialect == to or (is_spark(dialect) and is_spark(to)):
        lexed = lex(_fragment(text, dialect, location))
        return lexed.sql((0, len(lexed.tokens))) if lexed.tokens else ""
    lexed = lex(_fragment(text, dialect, location))
    whole = (0, len(lexed.tokens))
    items = [_translate(item, dialect, to, location) for item in split_argument(text, dialect, location)]
    return f"({', '.join(items)})" if _inside(lexed, whole) != whole else ", ".join(items)


def _translate(text: str, dialect: str, to: str, location: Location | None) -> str:
    if is_spark(to):
        return header_expression(text, dialect, location)
    return generate(parse_expression(hide_symbols(text, dialect), dialect, location), location, to)


def _inside(lexed: Lexed, span: Span) -> Span:
    """What stands between the brackets of a list; a query in brackets is no list."""
    start, end = span
    if start == end:
        return span
    first = start + 1 if lexed.lexeme(start).upper() == "ARRAY" and end > start + 1 else start
    if not lexed.encloses((first, end)):
        return span
    holds_query = first + 1 < end and lexed.tokens[first + 1].token_type in (TokenType.SELECT, TokenType.WITH)
    return span if holds_query else (first + 1, end - 1)


def _fragment(text: str, dialect: str, location: Location | None) -> Fragment:
    return Fragment(text=text, location=location or Location(line=1, column=1), dialect=dialect)
