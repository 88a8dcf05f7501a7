"""Spark's types and the small expressions that headers hold."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from sqlglot import TokenType, exp

from lamina.errors import BadPropertyValue, SyntaxProblem
from lamina.near_names import near_names
from lamina.sql.names import is_plain_identifier, quote
from lamina.sql.syntax import (
    SPARK,
    check_dialect,
    generate,
    hide_symbols,
    is_spark,
    parse_expression,
    parse_statement,
    tokenise,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from lamina.errors import Location

_DIRECTION = re.compile(r"(?:\s+(?:asc|desc))?(?:\s+nulls\s+(?:first|last))?\s*$", re.IGNORECASE)
_SIMPLE_TYPES = {
    "boolean": "boolean",
    "bool": "boolean",
    "tinyint": "tinyint",
    "byte": "tinyint",
    "smallint": "smallint",
    "short": "smallint",
    "int": "int",
    "integer": "int",
    "bigint": "bigint",
    "long": "bigint",
    "int64": "bigint",
    "float": "float",
    "real": "float",
    "double": "double",
    "float64": "double",
    "string": "string",
    "text": "string",
    "binary": "binary",
    "bytes": "binary",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ltz": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
    "variant": "variant",
    "void": "void",
    "interval": "interval",
    "decimal": "decimal(10,0)",
    "dec": "decimal(10,0)",
    "numeric": "decimal(10,0)",
}
_LONGEST_DECIMAL = 38
_DEEPEST_TYPE = 100
_INTERVAL_UNITS = ("year", "month", "day", "hour", "minute", "second")
_PIECE = re.compile(r"\s*(`(?:[^`]|``)+`|'(?:[^'\\]|\\.)*'|\w+|[<>(),:])")


def normalise_type(text: str, dialect: str = SPARK, location: Location | None = None) -> str:
    """Spark's own spelling of a type, in lower case: `INT64` is `bigint`, `DECIMAL(10, 2)` is `decimal(10,2)`.

    Types of another dialect are translated. Raises BadPropertyValue for a type that Spark does not have.
    """
    written = text.strip()
    if not is_spark(dialect):
        written = _translate(written, dialect, location)
    if _depth_of(written) > _DEEPEST_TYPE:
        raise BadPropertyValue(f"a type is nested more than {_DEEPEST_TYPE} deep", location=location)
    try:
        return _TypeReader(text=written).read()
    except _UnknownType as error:
        nearest = near_names(error.word.lower(), _SIMPLE_TYPES)
        hint = f"did you mean `{nearest[0]}`?" if nearest else "types are Spark's, such as int, string, decimal(10,2)"
        raise BadPropertyValue(f"`{text.strip()}` is not a type that Spark has", hint=hint, location=location) from None


def spark_type(data_type: exp.DataType) -> str | None:
    """Spark's spelling of the type of a cast; None when Spark has no such type."""
    written = data_type.sql(dialect=SPARK)
    if _depth_of(written) > _DEEPEST_TYPE:
        return None
    try:
        return _TypeReader(text=written).read()
    except _UnknownType:
        return None


def columns_in(text: str, dialect: str = SPARK, location: Location | None = None) -> tuple[str, ...]:
    """The columns that a header's expression reads, each once, in order; a field of a struct counts as the struct."""
    tree = parse_expression(header_expression(text, dialect, location), SPARK, location)
    names = (column.parts[0].name for column in tree.find_all(exp.Column, bfs=False))
    return tuple(dict.fromkeys(name for name in names if name))


def split_direction(text: str) -> tuple[str, str]:
    """An expression to order by, and the direction behind it, which may be empty.

    >>> split_direction("lower(a) desc  nulls last")
    ('lower(a)', 'DESC NULLS LAST')
    """
    direction = _DIRECTION.search(text)
    ending = direction[0] if direction else ""
    return text.removesuffix(ending), " ".join(ending.upper().split())


def references_in(text: str) -> tuple[tuple[str, ...], ...]:
    """The columns that an expression in Spark's SQL names, each with all parts of its name; none behind a subquery.

    >>> references_in("source.a > b + target.info.size")
    (('source', 'a'), ('b',), ('target', 'info', 'size'))
    """
    tree = parse_expression(text, SPARK, None)
    if tree.find(exp.Query) is not None:
        return ()
    found = tree.find_all(exp.Column, bfs=False)
    return tuple(dict.fromkeys(tuple(part.name for part in column.parts) for column in found))


def check_expression(text: str, dialect: str = SPARK, location: Location | None = None) -> None:
    """Raise SyntaxProblem unless the text is one expression."""
    parse_expression(header_expression(text, dialect, location), SPARK, location)


def header_expression(text: str, dialect: str = SPARK, location: Location | None = None) -> str:
    """Spark SQL text of an expression in a header, where double-quoted words are names and not strings."""
    pieces: list[str] = []
    copied = 0
    tokens = tokenise(text, dialect, location)
    for token in tokens:
        if token.token_type is TokenType.STRING and text[token.start] == '"':
            pieces += [text[copied : token.start], quote(token.text)]
            copied = token.end + 1
    named = "".join([*pieces, text[copied:]]).strip()
    if is_spark(dialect):
        return named
    hidden = hide_symbols(named, dialect)
    return generate(parse_expression(hidden, check_dialect(dialect, location), location), location)


def _translate(text: str, dialect: str, location: Location | None) -> str:
    cast = f"SELECT CAST(NULL AS {text})"
    known = check_dialect(dialect, location)
    try:
        tree = parse_statement(cast, tokenise(cast, known), known)
    except SyntaxProblem:
        raise BadPropertyValue(f"`{text}` is not a type that `{dialect}` has", location=location) from None
    found = tree.find(exp.DataType) if tree is not None else None
    if found is None:
        raise BadPropertyValue(f"`{text}` is not a type that `{dialect}` has", location=location)
    return found.sql(dialect=SPARK)


def _depth_of(text: str) -> int:
    """How many `<` are open at once; names in quotes may hold some, which makes no difference here."""
    return max(accumulate((sign == "<") - (sign == ">") for sign in text if sign in "<>"), default=0)


class _UnknownType(Exception):
    def __init__(self, word: str) -> None:
        super().__init__(word)
        self.word = word


@dataclass(slots=True)
class _TypeReader:
    """Reads the text of a type, word by word, and writes it as Spark does."""

    text: str
    position: int = 0

    def read(self) -> str:
        result = self._type()
        if self._peek() is not None:
            raise _UnknownType(self.text)
        return result

    def _type(self) -> str:
        word = (self._next() or "").lower()
        if word == "array":
            return f"array<{self._enclosed(self._type)}>"
        if word == "map":
            return f"map<{self._enclosed(self._map)}>"
        if word == "struct":
            return f"struct<{self._enclosed(self._fields)}>"
        if word == "interval":
            return self._interval()
        if word in {"decimal", "dec", "numeric"} and self._peek() == "(":
            return self._decimal()
        if word in {"varchar", "char", "character"}:
            length = self._numbers()
            if len(length) != 1:
                raise _UnknownType(word)
            return f"{'varchar' if word == 'varchar' else 'char'}({length[0]})"
        if word not in _SIMPLE_TYPES:
            raise _UnknownType(word or self.text)
        return _SIMPLE_TYPES[word]

    def _decimal(self) -> str:
        numbers = self._numbers()
        precision, scale = [*numbers, 0][:2]
        if len(numbers) > 2 or not 0 < precision <= _LONGEST_DECIMAL or scale > precision:
            raise _UnknownType("")
        return f"decimal({precision},{scale})"

    def _interval(self) -> str:
        unit = (self._peek() or "").lower()
        if unit not in _INTERVAL_UNITS:
            return "interval"
        self._next()
        if (self._peek() or "").lower() != "to":
            return f"interval {unit}"
        self._next()
        last = (self._next() or "").lower()
        if last not in _INTERVAL_UNITS:
            raise _UnknownType("")
        return f"interval {unit} to {last}"

    def _map(self) -> str:
        key = self._type()
        self._expect(",")
        return f"{key},{self._type()}"

    def _fields(self) -> str:
        fields: list[str] = []
        while self._peek() not in {">", None}:
            if fields:
                self._expect(",")
            name = self._next() or ""
            if self._peek() == ":":
                self._next()
            fields.append(f"{_field_name(name)}:{self._type()}{self._field_options()}")
        return ",".join(fields)

    def _field_options(self) -> str:
        options = ""
        if (self._peek() or "").lower() == "not":
            self._next()
            if (self._next() or "").lower() != "null":
                raise _UnknownType("")
            options = " not null"
        if (self._peek() or "").lower() == "comment":
            self._next()
            options += f" comment {self._next() or ''}"
        return options

    def _enclosed(self, inside: Callable[[], str]) -> str:
        self._expect("<")
        result = inside()
        self._expect(">")
        return result

    def _numbers(self) -> list[int]:
        self._expect("(")
        numbers: list[int] = []
        while True:
            word = self._next() or ""
            if not word.isdecimal() or len(word) > 9:
                raise _UnknownType("")
            numbers.append(int(word))
            mark = self._next()
            if mark == ")":
                return numbers
            if mark != ",":
                raise _UnknownType("")

    def _expect(self, mark: str) -> None:
        if self._next() != mark:
            raise _UnknownType("")

    def _peek(self) -> str | None:
        match = _PIECE.match(self.text, self.position)
        if match is None:
            return None if not self.text[self.position :].strip() else self.text[self.position :].strip()
        return match.group(1)

    def _next(self) -> str | None:
        match = _PIECE.match(self.text, self.position)
        if match is None:
            return self._peek()
        self.position = match.end()
        return match.group(1)


def _field_name(written: str) -> str:
    name = written[1:-1].replace("``", "`") if written.startswith("`") else written
    return name if is_plain_identifier(name) else quote(name)
