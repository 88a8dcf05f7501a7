"""User-defined functions in `functions/`: read and checked, not made yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.errors import BadPythonModel, LaminaError, raise_all
from lamina.project.python.decorators import (
    check_arguments,
    choice,
    find_decorators,
    returned_type,
    text,
    types,
    value_of,
)
from lamina.project.python.modules import parse_python
from lamina.reading.without_effect import FUNCTIONS, no_effect_yet
from lamina.sql.header.functions import read_function_header

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamina.errors import Location
    from lamina.graph.dag import Notice
    from lamina.project.python.decorators import Decorator, Parameter

PARAMETERS: Mapping[str, Parameter] = {
    "name": text(),
    "arguments": types(),
    "returns": returned_type(),
    "kind": choice("scalar", "pandas"),
    "description": text(),
}
"""The arguments of `@udf`."""


def read_functions(content: str, file: str) -> tuple[Notice, ...]:
    """A warning for every function of one file; raises everything wrong with the file at once."""
    if file.endswith(".py"):
        return _in_python(content, file)
    header = read_function_header(content, file)
    stem = file.rpartition("/")[2].rpartition(".")[0]
    return (_notice(header.name or stem, header.location),)


def _in_python(content: str, file: str) -> tuple[Notice, ...]:
    problems: list[LaminaError] = []
    notices: list[Notice] = []
    for found in find_decorators(parse_python(content, file), file, ("udf",)):
        check_arguments(found, PARAMETERS, problems)
        if "returns" not in found.arguments and not found.is_open:
            problems.append(
                BadPythonModel(
                    f"function `{_name(found)}` does not say what it returns",
                    hint='add `returns="string"` to `@udf`',
                    location=found.location,
                )
            )
        notices.append(_notice(_name(found), found.location))
    raise_all(problems)
    return tuple(notices)


def _name(found: Decorator) -> str:
    node = found.by_position[0] if found.by_position else found.arguments.get("name")
    value = value_of(node) if node is not None else None
    return value if isinstance(value, str) else found.function


def _notice(name: str, location: Location) -> Notice:
    why = "functions are not made by this release; queries can call only what Spark knows"
    return no_effect_yet(FUNCTIONS, f"function `{name}`", why, location, name)
