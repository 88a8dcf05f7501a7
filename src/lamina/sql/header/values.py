"""What can stand behind a property of a header, before anyone decides what the property means.

Two values are equal when they say the same thing: where they were written and how they were spaced does not count.
Double-quoted words are text or identifiers depending on who asks, so both readings are kept: `Text.value` and `sql_of`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from typing_extensions import assert_never

if TYPE_CHECKING:
    from lamina.errors import Location


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A name, dotted or dashed, or another run of characters without spaces such as `bounded-14d` or `*`."""

    parts: tuple[str, ...]
    is_quoted: bool = False
    sql: str = field(compare=False)
    location: Location = field(compare=False)

    @property
    def text(self) -> str:
        """The parts joined with dots, without quotes; only `parts` tells a dot inside quotes from one between parts."""
        return ".".join(self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A quoted value; `raw` is what stands between the quotes before escapes are resolved."""

    value: str
    quote: str = "'"
    raw: str = field(compare=False)
    sql: str = field(compare=False)
    location: Location = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A number as written, with its sign."""

    text: str
    location: Location = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Boolean:
    """`true` or `false`."""

    value: bool
    location: Location = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Null:
    """`null`."""

    location: Location = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """A list, written in parentheses or brackets."""

    values: tuple[Value, ...]
    location: Location = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """`key = value` or `key := value` inside a list or a call."""

    key: str
    value: Value
    sql: str = field(compare=False)
    location: Location = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """`name(arguments)`: an audit, a signal, or a function of SQL."""

    name: str
    arguments: tuple[Value, ...]
    sql: str = field(compare=False)
    location: Location = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """Any other SQL expression; comments are gone and double-quoted words are quoted as identifiers of the dialect."""

    sql: str
    location: Location = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """One `key value` of a header or kind; the key is empty when a macro stands in place of the whole pair."""

    key: str
    value: Value
    location: Location = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class KindValue:
    """`kind NAME (properties)`; the name is in upper case."""

    name: str
    properties: tuple[Property, ...]
    location: Location = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDefinitions:
    """Pairs of column name and type, the type as written."""

    columns: tuple[tuple[str, str], ...]
    location: Location = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeClauses:
    """The `WHEN …` clauses of a MERGE, each as SQL."""

    clauses: tuple[str, ...]
    location: Location = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MacroValue:
    """Text exactly as written that must be expanded before it can be read."""

    text: str
    location: Location = field(compare=False)


Value: TypeAlias = (
    Word
    | Text
    | Number
    | Boolean
    | Null
    | Items
    | Pair
    | Call
    | Expression
    | KindValue
    | ColumnDefinitions
    | MergeClauses
    | MacroValue
)


def as_items(value: Value) -> tuple[Value, ...]:
    """The values of a list; a value that is not a list is a list of itself."""
    return value.values if isinstance(value, Items) else (value,)


def text_of(value: Value) -> str | None:
    """What a property that holds text says, quoted or not; None when the value has another form."""
    match value:
        case Word() | Number():
            return value.text
        case Text():
            return value.value
        case Boolean() | Expression():
            return sql_of(value)
        case _:
            return None


def name_of(value: Value) -> str | None:
    """What a property that holds a name says; single-quoted text is no name."""
    match value:
        case Word():
            return value.text
        case Text(quote='"'):
            return value.value
        case _:
            return None


def sql_of(value: Value) -> str:
    """The value as SQL of the document's dialect, double-quoted words being identifiers."""
    match value:
        case Word() | Text() | Pair() | Call() | Expression():
            return value.sql
        case Number() | MacroValue():
            return value.text
        case Boolean():
            return "true" if value.value else "false"
        case Null():
            return "NULL"
        case Items():
            return f"({', '.join(sql_of(item) for item in value.values)})"
        case KindValue():
            return f"{value.name} ({', '.join(f'{item.key} {sql_of(item.value)}' for item in value.properties)})"
        case ColumnDefinitions():
            return f"({', '.join(f'{name} {type_text}' for name, type_text in value.columns)})"
        case MergeClauses():
            return " ".join(value.clauses)
        case _:
            assert_never(value)
