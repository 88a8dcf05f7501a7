"""The signals and hooks in a header: which ones, and the values they are called with."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING

from lamina.errors import BadPropertyValue, LaminaError
from lamina.graph.model import FunctionCall
from lamina.reading.properties import variable_of
from lamina.sql.fragment import Fragment
from lamina.sql.header.read import read_value
from lamina.sql.header.values import Boolean, Items, MacroValue, Null, Number, Pair, Text, Word
from lamina.sql.macros.expand import expand

if TYPE_CHECKING:
    from lamina.graph.model import VariableValue
    from lamina.reading.properties import Block, CallValue
    from lamina.sql.header.values import Value
    from lamina.sql.macros.scope import MacroScope

_VARIABLE = re.compile(r"@(\w+)")
_PLAIN = (Text, Word, Number, Boolean, Null)


def read_calls(block: Block, key: str, scope: MacroScope) -> tuple[FunctionCall, ...]:
    """The signals or hooks of a model with their arguments as values; what is wrong goes to the block's problems.

    The functions are told the times of their intervals, so that arguments can be known when the project is loaded:
    macros in them are expanded, and time variables have no value.
    """
    return tuple(_read(call, block, scope) for call in block.calls(key))


def _read(call: CallValue, block: Block, scope: MacroScope) -> FunctionCall:
    values: dict[str, VariableValue] = {}
    for key, written in call.values.items():
        try:
            values[key] = _value(call.name, key, written, block, scope)
        except LaminaError as error:
            block.problems.extend(error.problems)
    return FunctionCall(
        name=call.name, arguments=call.arguments, values=MappingProxyType(values), location=call.location
    )


def _value(function: str, key: str, written: Value, block: Block, scope: MacroScope) -> VariableValue:
    value = written
    if isinstance(written, MacroValue):
        whole = _VARIABLE.fullmatch(written.text)
        name = whole[1].lower() if whole else ""
        known = scope.blueprint.get(name, scope.variables.get(name))
        if isinstance(known, list | dict):
            # In SQL a list is written as its items; here it stays one value.
            return known
        fragment = Fragment(text=written.text, location=written.location, dialect=block.dialect)
        expansion = expand(fragment, scope)
        if expansion.times_used:
            times = ", ".join(f"`@{time}`" for time in sorted(expansion.times_used))
            raise BadPropertyValue(
                f"`{function}({key})` depends on {times}, which has no value when the project is loaded",
                hint="the function is told the times by its first parameter",
                location=written.location,
            )
        made = Fragment(text=expansion.text, location=written.location, dialect=block.dialect)
        value = read_value("", made, is_expanded=True)
    if _is_literal(value):
        return variable_of(value)
    block.refuse(
        f"{function}({key})",
        "text, a number, true, false, NULL, or a list of these",
        value=value,
        hint="write a time as text: `'2024-01-31'`",
    )
    return None


def _is_literal(value: Value) -> bool:
    if isinstance(value, Items):
        pairs = [item.value for item in value.values if isinstance(item, Pair)]
        items = pairs if pairs and len(pairs) == len(value.values) else value.values
        return all(_is_literal(item) for item in items)
    return isinstance(value, _PLAIN)
