"""Reads `FUNCTION (name …, arguments (…), returns …);` and finds the expression or query after it."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from lamina.errors import (
    BadPropertyValue,
    DefinitionError,
    LaminaError,
    Location,
    SyntaxProblem,
    UnknownProperty,
    raise_all,
)
from lamina.near_names import near_names
from lamina.sql.fragment import Fragment
from lamina.sql.header.read import read_value
from lamina.sql.header.values import Text, Word
from lamina.sql.lexed import TEXTS, lex
from lamina.sql.names import make_table_name
from lamina.sql.types import normalise_type

if TYPE_CHECKING:
    from lamina.sql.lexed import Lexed, Span

KEYS = ("name", "arguments", "returns", "description")
"""Every property of a FUNCTION header."""

_EXAMPLE = "write `FUNCTION (name shop.cents, arguments (amount DECIMAL(10,2)), returns BIGINT);`, then the expression"


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionHeader:
    """What the header says; types in Spark's spelling. `returns` has several columns for a table function."""

    name: str | None
    arguments: tuple[tuple[str, str], ...]
    returns: tuple[tuple[str, str], ...]
    description: str | None
    body: Fragment
    location: Location = field(compare=False)


def read_function_header(text: str, file: str) -> FunctionHeader:
    """The function of one file; raises everything that is wrong with its header at once."""
    lexed = lex(Fragment(text=text, location=Location(file=file, line=1, column=1)))
    bounds = [-1, *lexed.separators, len(lexed.tokens)]
    spans = [(start + 1, end) for start, end in pairwise(bounds) if start + 1 < end]
    is_header = bool(spans) and lexed.lexeme(spans[0][0]).upper() == "FUNCTION"
    if not is_header or spans[0][1] - spans[0][0] < 3 or lexed.lexeme(spans[0][0] + 1) != "(":
        place = lexed.place(spans[0][0]) if spans else Location(file=file, line=1, column=1)
        raise SyntaxProblem("the file has no FUNCTION header", hint=_EXAMPLE, location=place)
    start, end = spans[0]
    closing = lexed.closings[start + 1]
    reader = _Reader(lexed, lexed.place(start))
    if closing + 1 < end:
        reader.refuse("expected `;` after the FUNCTION header", "end the header with `);`", closing + 1)
    reader.read((start + 2, closing))
    if len(spans) < 2 and closing + 1 >= end:
        reader.problems.append(DefinitionError("the function has no body", hint=_EXAMPLE, location=lexed.place(start)))
    if len(spans) > 2:
        reader.refuse(
            "a function is one expression or one query", "put each function into a file of its own", spans[2][0]
        )
    raise_all(reader.problems)
    return reader.header(Fragment(text=lexed.raw(spans[1]), location=lexed.place(spans[1][0])))


class _Reader:
    def __init__(self, lexed: Lexed, location: Location) -> None:
        self._lexed = lexed
        self._location = location
        self._spans: dict[str, Span] = {}
        self._name: str | None = None
        self._arguments: tuple[tuple[str, str], ...] = ()
        self._returns: tuple[tuple[str, str], ...] = ()
        self._description: str | None = None
        self.problems: list[LaminaError] = []

    def header(self, body: Fragment) -> FunctionHeader:
        return FunctionHeader(
            name=self._name,
            arguments=self._arguments,
            returns=self._returns,
            description=self._description,
            body=body,
            location=self._location,
        )

    def refuse(self, message: str, hint: str | None, index: int) -> None:
        self.problems.append(SyntaxProblem(message, hint=hint, location=self._lexed.place(index)))

    def read(self, span: Span) -> None:
        for part in self._lexed.split(span):
            if part[0] < part[1]:
                self._read_property(part)
        # A misspelled property may be the one that is missing.
        if "returns" not in self._spans and not self.problems:
            self.problems.append(
                DefinitionError(
                    "the function does not say what it returns",
                    hint="add `returns BIGINT`, or `returns TABLE (a INT)` for a query",
                    location=self._location,
                )
            )

    def _read_property(self, span: Span) -> None:
        start, end = span
        written = self._lexed.lexeme(start)
        key = written.lower()
        if key not in KEYS:
            near = near_names(key, KEYS)
            listed = ", ".join(f"`{name}`" for name in KEYS)
            self.problems.append(
                UnknownProperty(
                    f"FUNCTION has no property `{written}`",
                    hint=f"did you mean `{near[0]}`?" if near else f"it has {listed}",
                    location=self._lexed.place(start),
                )
            )
            return
        if key in self._spans:
            self.refuse(f"`{key}` is given twice", "remove one of them", start)
            return
        self._spans[key] = span
        if end == start + 1:
            self.refuse(f"`{key}` has no value", None, start)
            return
        try:
            self._read_value(key, (start + 1, end))
        except LaminaError as error:
            self.problems.extend(error.problems)

    def _read_value(self, key: str, span: Span) -> None:
        match key:
            case "arguments":
                self._arguments = self._columns(key, span)
            case "returns":
                is_table = self._lexed.lexeme(span[0]).upper() == "TABLE"
                # What a scalar function gives has no name.
                self._returns = (
                    self._columns(key, (span[0] + 1, span[1])) if is_table else (("", self._type(span, key)),)
                )
            case "name":
                value = read_value("name", self._fragment(span))
                parts = value.parts if isinstance(value, Word) else ()
                self._name = make_table_name(parts).to_text()
            case _:
                text = read_value(key, self._fragment(span))
                if not isinstance(text, Text):
                    raise BadPropertyValue(f"`{key}` must be text in quotes", location=self._lexed.place(span[0]))
                self._description = text.value

    def _columns(self, key: str, span: Span) -> tuple[tuple[str, str], ...]:
        """Names with types, the default of an argument left out."""
        lexed = self._lexed
        if span[0] >= span[1] or not lexed.encloses(span) or lexed.lexeme(span[0]) != "(":
            raise BadPropertyValue(
                f"`{key}` must be a list of names with types",
                hint="write `(amount DECIMAL(10,2), rate INT DEFAULT 100)`",
                location=lexed.place(span[0] if span[0] < span[1] else span[0] - 1),
            )
        found: dict[str, tuple[str, str]] = {}
        for start, end in self._parts((span[0] + 1, span[1] - 1)):
            if start == end:
                continue
            token = lexed.tokens[start]
            name = token.text if token.token_type in TEXTS or token.text != lexed.lexeme(start) else lexed.lexeme(start)
            if name.lower() in found:
                self.refuse(f"`{name}` is there twice in `{key}`", "rename one of them", start)
                continue
            stop = next(
                (index for index in lexed.walk((start + 1, end)) if lexed.lexeme(index).upper() == "DEFAULT"), end
            )
            if key == "returns" and stop < end:
                self.refuse("a column that a function returns has no default", "remove the default", stop)
            if stop == start + 1:
                self.refuse(f"`{name}` in `{key}` has no type", f"write `{name} INT`", start)
                continue
            if stop + 1 == end:
                self.refuse(f"`{name}` in `{key}` has no default after DEFAULT", None, stop)
            try:
                found[name.lower()] = (name, self._type((start + 1, stop), name))
            except LaminaError as error:
                self.problems.extend(error.problems)
        return tuple(found.values())

    def _parts(self, span: Span) -> list[Span]:
        """The pieces between commas; those between `<` and `>` belong to a type."""
        parts: list[Span] = []
        depth, begin = 0, span[0]
        for start, end in self._lexed.split(span):
            lexemes = [self._lexed.lexeme(index) for index in self._lexed.walk((start, end))]
            depth += sum(each.count("<") - each.count(">") for each in lexemes if not each.strip("<>"))
            if depth <= 0:
                parts.append((begin, end))
                begin = end + 1
        return parts

    def _type(self, span: Span, owner: str) -> str:
        place = self._lexed.place(span[0])
        try:
            return normalise_type(self._lexed.raw(span))
        except LaminaError as error:
            raise BadPropertyValue(f"{error.message}, for `{owner}`", hint=error.hint, location=place) from None

    def _fragment(self, span: Span) -> Fragment:
        return Fragment(text=self._lexed.raw(span), location=self._lexed.place(span[0]))
