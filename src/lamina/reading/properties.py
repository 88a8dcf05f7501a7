"""From values of a header to the types that properties have.

A `Block` reads the properties of one header or kind. What is wrong is collected rather than raised, so that a user sees
everything at once; a property that could not be read counts as not given.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from lamina.errors import BadPropertyValue, DefinitionError, LaminaError, UnknownProperty
from lamina.near_names import near_names
from lamina.sql.fragment import Fragment
from lamina.sql.header.read import read_when_matched
from lamina.sql.header.values import (
    Boolean,
    Call,
    ColumnDefinitions,
    Expression,
    Items,
    MacroValue,
    MergeClauses,
    Null,
    Number,
    Pair,
    Text,
    Word,
    as_items,
    name_of,
    sql_of,
    text_of,
)
from lamina.sql.types import check_expression, columns_in, header_expression, normalise_type, split_direction

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lamina.errors import Location
    from lamina.graph.kinds import Setting
    from lamina.graph.model import VariableValue
    from lamina.sql.header.values import Property, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class CallValue:
    """An audit or signal with its arguments as SQL text, and the values that these were read from."""

    name: str
    arguments: Mapping[str, str]
    values: Mapping[str, Value]
    location: Location


@dataclass(slots=True, kw_only=True)
class Block:
    """The properties of a header or kind while they are being read."""

    title: str
    properties: Mapping[str, Property]
    location: Location
    dialect: str
    problems: list[LaminaError] = field(default_factory=list)

    @classmethod
    def of(
        cls, title: str, properties: Iterable[Property], location: Location, dialect: str, problems: list[LaminaError]
    ) -> Block:
        """A block over these properties that adds its problems to the list."""
        by_key = {each.key: each for each in properties}
        return cls(title=title, properties=by_key, location=location, dialect=dialect, problems=problems)

    def check_keys(self, known: Sequence[str], hints: Mapping[str, str] | None = None) -> None:
        """Report every property that this block does not have, with the nearest one it has."""
        for key, found in self.properties.items():
            if key in known:
                continue
            near = near_names(key, known)
            listed = ", ".join(f"`{name}`" for name in sorted(known))
            default_hint = f"it has {listed}" if known else f"{self.title} has no properties"
            hint = (hints or {}).get(key) or (f"did you mean `{near[0]}`?" if near else default_hint)
            self.problems.append(
                UnknownProperty(f"{self.title} has no property `{key}`", hint=hint, location=found.location)
            )

    def has(self, key: str) -> bool:
        """Whether the property is given, and not as NULL."""
        return self.value(key) is not None

    def value(self, key: str) -> Value | None:
        """The value as it was read; None when it is not given or NULL."""
        found = self.properties.get(key)
        return None if found is None or isinstance(found.value, Null) else found.value

    def place(self, key: str) -> Location:
        """Where the property is written, or the block when it is not."""
        found = self.properties.get(key)
        return found.location if found else self.location

    def refuse(self, key: str, expected: str, *, value: Value | None = None, hint: str | None = None) -> None:
        """Record that a value has the wrong form."""
        wrong = value or self.value(key)
        shown = f", not `{_shorten(sql_of(wrong))}`" if wrong is not None else ""
        self.problems.append(
            BadPropertyValue(
                f"`{key}` must be {expected}{shown}", hint=hint, location=wrong.location if wrong else self.place(key)
            )
        )

    def contradict(self, message: str, hint: str, key: str) -> None:
        """Record that what a property says cannot be."""
        self.problems.append(DefinitionError(message, hint=hint, location=self.place(key)))

    def text(self, key: str) -> str | None:
        """Text, quoted or not."""
        value = self.value(key)
        if value is None:
            return None
        found = text_of(value)
        if found is None and isinstance(value, Items) and len(value.values) == 1:
            found = text_of(value.values[0])
        if found is None or (isinstance(value, Expression) and not found):
            self.refuse(key, "text")
            return None
        return found

    def name(self, key: str) -> str | None:
        """The name of a column."""
        value = self.value(key)
        if value is None:
            return None
        found = self._column_name(value)
        if found is None:
            self.refuse(key, "the name of a column")
        return found

    def boolean(self, key: str) -> bool | None:
        """`true` or `false`."""
        value = self.value(key)
        if value is None:
            return None
        if isinstance(value, Boolean):
            return value.value
        if isinstance(value, Text | Word) and (text_of(value) or "").lower() in {"true", "false"}:
            return (text_of(value) or "").lower() == "true"
        self.refuse(key, "`true` or `false`")
        return None

    def integer(self, key: str, *, least: int = 1) -> int | None:
        """A whole number that is not below `least`."""
        value = self.value(key)
        if value is None:
            return None
        try:
            number = int(value.text) if isinstance(value, Number) else None
        except ValueError:
            number = None
        if number is None or number < least:
            self.refuse(key, f"a whole number from {least} on")
            return None
        return number

    def choice(self, key: str, choices: Sequence[str]) -> str | None:
        """One of a few words, in any case."""
        found = self.text(key)
        if found is None:
            return None
        if found.lower() in choices:
            return found.lower()
        near = near_names(found.lower(), choices)
        listed = ", ".join(f"`{choice}`" for choice in choices)
        self.refuse(key, f"one of {listed}", hint=f"did you mean `{near[0]}`?" if near else None)
        return None

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts, or one text."""
        value = self.value(key)
        if value is None:
            return ()
        found: list[str] = []
        for item in as_items(value):
            text = text_of(item)
            if text is None:
                self.refuse(key, "a text or a list of texts", value=item)
            else:
                found.append(text)
        return tuple(found)

    def names(self, key: str) -> tuple[str, ...]:
        """A list of column names, or one."""
        value = self.value(key)
        if value is None:
            return ()
        found: list[str] = []
        for item in as_items(value):
            name = self._column_name(item)
            if name is None:
                self.refuse(key, "the name of a column or a list of them", value=item)
            else:
                found.append(name)
        return tuple(found)

    def expressions(self, key: str) -> tuple[str, ...]:
        """Columns or SQL expressions, as Spark SQL."""
        value = self.value(key)
        if value is None:
            return ()
        found = (self._expression(key, item) for item in as_items(value))
        return tuple(text for text in found if text is not None)

    def column_expressions(self, key: str) -> tuple[str, ...]:
        """Columns or expressions over exactly one column each, none twice, as Spark SQL."""
        value = self.value(key)
        if value is None:
            return ()
        found: dict[str, str] = {}
        for item in as_items(value):
            text = self._expression(key, item)
            if text is None:
                continue
            columns = {column.lower() for column in columns_in(text)}
            if len(columns) != 1:
                self.refuse(key, "a list of columns or of expressions over one column each", value=item)
            elif text.lower() in found:
                self.problems.append(
                    BadPropertyValue(f"`{key}` has `{sql_of(item)}` twice", hint="remove one", location=item.location)
                )
            else:
                found[text.lower()] = text
        return tuple(found.values())

    def orderings(self, key: str) -> tuple[str, ...]:
        """Columns or expressions with a direction, as Spark SQL."""
        value = self.value(key)
        found: list[str] = []
        for item in as_items(value) if value is not None else ():
            written = item.value if isinstance(item, Text) and item.quote == "'" else sql_of(item)
            plain, ending = split_direction(written)
            try:
                text = header_expression(plain, self.dialect, item.location)
                check_expression(text, location=item.location)
            except LaminaError as error:
                self.problems.extend(error.problems)
            else:
                found.append(f"{text} {ending}".strip())
        return tuple(found)

    def settings(self, key: str) -> Mapping[str, Setting]:
        """A list of `key = value`."""
        value = self.value(key)
        if value is None:
            return MappingProxyType({})
        found: dict[str, Setting] = {}
        for item in as_items(value):
            if not isinstance(item, Pair):
                self.refuse(key, "a list of `key = value`", value=item)
            elif item.key in found:
                message = f"`{key}` has the key `{item.key}` twice"
                self.problems.append(BadPropertyValue(message, hint="remove one", location=item.location))
            else:
                found[item.key] = setting_of(item.value)
        return MappingProxyType(found)

    def descriptions(self, key: str) -> Mapping[str, tuple[str, Location]]:
        """A list of `column = 'text'`, by column in lower case."""
        value = self.value(key)
        found: dict[str, tuple[str, Location]] = {}
        for item in as_items(value) if value is not None else ():
            text = text_of(item.value) if isinstance(item, Pair) else None
            if not isinstance(item, Pair) or text is None:
                self.refuse(key, "a list of `column = 'text'`", value=item)
            else:
                found[item.key.lower()] = (text, item.location)
        return found

    def calls(self, key: str) -> tuple[CallValue, ...]:
        """A list of names or calls with named arguments, such as `not_null(columns := (a, b))`."""
        value = self.value(key)
        if value is None:
            return ()
        found = (self._call(key, item) for item in as_items(value))
        return tuple(call for call in found if call is not None)

    def columns(self, key: str) -> tuple[tuple[str, str], ...] | None:
        """Names and types of columns, the types in Spark's spelling."""
        value = self.value(key)
        if value is None:
            return None
        if not isinstance(value, ColumnDefinitions):
            self.refuse(key, "a list of names with types", hint="write `columns (id INT, name STRING)`")
            return None
        found: list[tuple[str, str]] = []
        for name, written in value.columns:
            try:
                found.append((name, normalise_type(written, self.dialect)))
            except LaminaError as error:
                self.problems.append(BadPropertyValue(error.message, hint=error.hint, location=value.location))
        return tuple(found)

    def type(self, key: str) -> str | None:
        """A SQL type in Spark's spelling."""
        value = self.value(key)
        if value is None:
            return None
        try:
            return normalise_type(text_of(value) or sql_of(value), self.dialect)
        except LaminaError as error:
            self.problems.append(BadPropertyValue(error.message, hint=error.hint, location=value.location))
            return None

    def merge_clauses(self, key: str) -> tuple[str, ...]:
        """The WHEN clauses of a MERGE."""
        value = self.value(key)
        if value is None:
            return ()
        if isinstance(value, MacroValue):
            # Macros are expanded by now; what is left are time variables.
            fragment = Fragment(text=value.text, location=value.location, dialect=self.dialect)
            try:
                value = read_when_matched(fragment)
            except LaminaError as error:
                self.problems.extend(error.problems)
                return ()
        if isinstance(value, MergeClauses):
            return value.clauses
        self.refuse(key, "one or more `WHEN MATCHED …` clauses")
        return ()

    def late_sql(self, key: str) -> str | None:
        """SQL whose macros are expanded when it is used."""
        value = self.value(key)
        return None if value is None else sql_of(value)

    def variables(self, item: Value, key: str) -> dict[str, VariableValue]:
        """Variables of one blueprint: `(name := value, …)`."""
        found: dict[str, VariableValue] = {}
        for pair in as_items(item):
            if isinstance(pair, Pair):
                found[pair.key.lower()] = variable_of(pair.value)
            else:
                self.refuse(key, "a list of `(name := value, …)`", value=pair)
        return found

    def _expression(self, key: str, item: Value) -> str | None:
        if isinstance(item, Items | Pair | MacroValue):
            self.refuse(key, "a column, an expression, or a list of them", value=item)
            return None
        written = item.value if isinstance(item, Text) and item.quote == "'" else sql_of(item)
        try:
            return header_expression(written, self.dialect, item.location)
        except LaminaError as error:
            self.problems.extend(error.problems)
            return None

    def _column_name(self, value: Value) -> str | None:
        if isinstance(value, Items) and len(value.values) == 1:
            value = value.values[0]
        name = name_of(value)
        is_single = not isinstance(value, Word) or len(value.parts) == 1
        return name if name and is_single else None

    def _call(self, key: str, item: Value) -> CallValue | None:
        if isinstance(item, Word | Text):
            nothing: Mapping[str, Value] = MappingProxyType({})
            name = (text_of(item) or "").lower()
            return CallValue(name=name, arguments=MappingProxyType({}), values=nothing, location=item.location)
        if not isinstance(item, Call):
            self.refuse(key, "a list of names or calls such as `not_null(columns := (id))`", value=item)
            return None
        values: dict[str, Value] = {}
        for argument in item.arguments:
            if isinstance(argument, Pair):
                values[argument.key.lower()] = argument.value
            else:
                self.problems.append(
                    BadPropertyValue(
                        f"an argument of `{item.name}` has no name: `{_shorten(sql_of(argument))}`",
                        hint=f"write `{item.name}(name := value)`",
                        location=argument.location,
                    )
                )
        return CallValue(
            name=item.name.lower(),
            arguments=MappingProxyType({key: sql_of(value) for key, value in values.items()}),
            values=MappingProxyType(values),
            location=item.location,
        )


def setting_of(value: Value) -> Setting:
    """A plain value; what is more than that stays SQL text."""
    match value:
        case Text():
            return value.value
        case Word():
            return value.text
        case Number():
            return _number(value.text)
        case Boolean():
            return value.value
        case Null():
            return None
        case _:
            return sql_of(value)


def variable_of(value: Value) -> VariableValue:
    """The value of a variable; lists stay lists."""
    if isinstance(value, Items):
        if value.values and all(isinstance(item, Pair) for item in value.values):
            return {item.key: variable_of(item.value) for item in value.values if isinstance(item, Pair)}
        return [variable_of(item) for item in value.values]
    return setting_of(value)


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _shorten(text: str) -> str:
    flat = " ".join(text.replace("`", "'").split())
    return flat if len(flat) <= 60 else f"{flat[:57]}…"
