"""Plain Python values, from a decorator or from YAML, as values of a header."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from enum import Enum
from typing import TYPE_CHECKING

from lamina.errors import BadPropertyValue, LaminaError
from lamina.sql.fragment import Fragment
from lamina.sql.header.read import read_value
from lamina.sql.header.values import (
    Boolean,
    Call,
    ColumnDefinitions,
    Items,
    KindValue,
    Null,
    Number,
    Pair,
    Property,
    Text,
    Word,
    sql_of,
)

if TYPE_CHECKING:
    from lamina.errors import Location
    from lamina.sql.header.values import Value

# Text given for these is SQL, as it would stand in a header; text given for any other property is text.
_CALLS = ("audits", "signals", "pre_hooks", "post_hooks")
_SQL_PROPERTIES = frozenset(
    {
        "name",
        "partitioned_by",
        "clustered_by",
        "unique_key",
        "grain",
        "grains",
        "references",
        "depends_on",
        "time_column",
        "columns",
        "when_matched",
        "merge_filter",
        "time_data_type",
        "valid_from_name",
        "valid_to_name",
        "updated_at_name",
        *_CALLS,
    }
)


def read_plain_properties(
    values: Mapping[str, object],
    location: Location,
    dialect: str,
    problems: list[LaminaError],
    *,
    is_kind: bool = False,
) -> tuple[Property, ...]:
    """The properties that a mapping stands for; what cannot be a property's value is added to the problems."""
    found: list[Property] = []
    for key, value in values.items():
        reader = _Reader(str(key).lower(), location, dialect, is_kind=is_kind)
        try:
            found.append(Property(key=reader.key, value=reader.read(value), location=location))
        except LaminaError as error:
            problems.extend(error.problems)
    return tuple(found)


class _Reader:
    def __init__(self, key: str, location: Location, dialect: str, *, is_kind: bool) -> None:
        self.key = key
        self._location = location
        self._dialect = dialect
        self._is_kind = is_kind

    def read(self, value: object) -> Value:
        """The value of the whole property."""
        if self.key == "kind" and not self._is_kind:
            return self._kind(value)
        if self.key == "columns" and not self._is_kind and isinstance(value, Mapping):
            columns = tuple((str(name), _type_text(written)) for name, written in value.items())
            return ColumnDefinitions(columns=columns, location=self._location)
        if self.key == "time_column" and isinstance(value, Mapping):
            return self._value([value.get("column") or value.get("name"), value.get("format")])
        if self.key == "time_column" and isinstance(value, Sequence) and not isinstance(value, str):
            return self._list([self._sql(str(value[0])), *(self._text(str(item)) for item in value[1:])])
        if self.key in _CALLS:
            items = [value] if isinstance(value, str) or not isinstance(value, Sequence) else value
            return self._list([self._call(item) for item in items])
        return self._value(value)

    def _kind(self, value: object) -> Value:
        value = value.value if isinstance(value, Enum) else value
        if isinstance(value, str):
            return read_value("kind", self._fragment(value))
        if isinstance(value, Mapping) and value.get("name") is not None:
            name = value["name"].value if isinstance(value["name"], Enum) else value["name"]
            rest = {key: item for key, item in value.items() if key != "name"}
            problems: list[LaminaError] = []
            properties = read_plain_properties(rest, self._location, self._dialect, problems, is_kind=True)
            if problems:
                raise problems[0]
            return KindValue(name=str(name).upper(), properties=properties, location=self._location)
        raise BadPropertyValue(
            "`kind` must be the name of a kind or a mapping with `name`",
            hint='write `kind="FULL"` or `kind={"name": "INCREMENTAL_BY_TIME_RANGE", "time_column": "ds"}`',
            location=self._location,
        )

    def _value(self, value: object) -> Value:
        value = value.value if isinstance(value, Enum) else value
        match value:
            case None:
                return Null(location=self._location)
            case bool():
                return Boolean(value=value, location=self._location)
            case int() | float():
                return Number(text=str(value), location=self._location)
            case str():
                return self._sql(value) if self.key in _SQL_PROPERTIES else self._text(value)
            case datetime() | date():
                return self._text(value.isoformat())
            case Mapping():
                return self._list([self._pair(str(key), item) for key, item in value.items()])
            case list() | tuple() | set() | frozenset():
                return self._list([self._value(item) for item in value])
            case _:
                raise BadPropertyValue(
                    f"`{self.key}` cannot be a `{type(value).__name__}`",
                    hint="use text, numbers, true or false, lists and mappings",
                    location=self._location,
                )

    def _call(self, item: object) -> Value:
        """An audit, signal or hook: `"name"`, `"name(a := 1)"`, `("name", {"a": 1})` or `{"name": …, "a": 1}`."""
        if isinstance(item, Mapping) and "name" in item:
            return self._make_call(str(item["name"]), {key: part for key, part in item.items() if key != "name"})
        if isinstance(item, tuple | list) and len(item) == 2 and isinstance(item[1], Mapping):
            return self._make_call(str(item[0]), item[1])
        return self._value(item)

    def _make_call(self, name: str, arguments: Mapping[str, object]) -> Call:
        # Names of columns, not texts, are what audits are called with.
        pairs = tuple(
            self._pair(str(key), value, is_sql=key in {"column", "columns"}) for key, value in arguments.items()
        )
        sql = f"{name}({', '.join(pair.sql for pair in pairs)})"
        return Call(name=name, arguments=pairs, sql=sql, location=self._location)

    def _pair(self, key: str, value: object, *, is_sql: bool = False) -> Pair:
        reader = _Reader("columns" if is_sql else "", self._location, self._dialect, is_kind=True)
        made = reader.read(value)
        return Pair(key=key, value=made, sql=f"{key} := {sql_of(made)}", location=self._location)

    def _list(self, values: list[Value]) -> Items:
        return Items(values=tuple(values), location=self._location)

    def _text(self, value: str) -> Text:
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return Text(value=value, raw=value, sql=f"'{escaped}'", location=self._location)

    def _sql(self, value: str) -> Value:
        if value.strip() == "*":
            return Word(parts=("*",), sql="*", location=self._location)
        return read_value(self.key, self._fragment(value), is_kind=self._is_kind)

    def _fragment(self, text: str) -> Fragment:
        return Fragment(text=text, location=self._location, dialect=self._dialect)


def _type_text(written: object) -> str:
    """The text of a type given as text or as an object of PySpark."""
    if isinstance(written, type) and hasattr(written, "simpleString"):
        written = written()
    simple = getattr(written, "simpleString", None)
    return str(simple()) if callable(simple) else str(written)
