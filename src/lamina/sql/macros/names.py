"""The names that the macros of a text use, found without expanding it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lamina.sql.macros.shapes import is_sign, lambda_parameters
from lamina.sql.macros.text import Source

if TYPE_CHECKING:
    from lamina.errors import Location
    from lamina.sql.fragment import Fragment

_MENTIONED = re.compile(r"@\{?([^\W\d]\w*)")
_QUOTED = re.compile(r"'([^\W\d]\w*)'")


@dataclass(frozen=True, slots=True, kw_only=True)
class MacroNames:
    """All names in lower case.

    `variables` must have a value for the text to be expanded; `functions` are called; `mentioned` are all of these and
    those inside of strings, where a macro may find them.
    """

    variables: frozenset[str]
    functions: frozenset[str]
    mentioned: frozenset[str]


def macro_names(fragment: Fragment) -> MacroNames:
    """What the macros of a fragment are called."""
    if "@" not in fragment.text:
        return MacroNames(variables=frozenset(), functions=frozenset(), mentioned=frozenset())
    source = Source(fragment)
    bound = {token.raw.lower() for token in lambda_parameters(source, 0, len(source.tokens))}
    variables: set[str] = set()
    functions: set[str] = set()
    for index in range(len(source.tokens)):
        if not is_sign(source, index) or source.tokens[index + 1].is_string:
            continue
        is_braced = source.raw(index + 1) == "{"
        name = source.raw(index + 2 if is_braced else index + 1).lower()
        is_call = not is_braced and source.raw(index + 2) == "(" and source.touches(index + 2)
        (functions if is_call else variables).add(name)
    mentioned = {name.lower() for name in _MENTIONED.findall(fragment.text)}
    if functions & {"var", "blueprint_var"}:
        mentioned |= {name.lower() for name in _QUOTED.findall(fragment.text)}
    return MacroNames(
        variables=frozenset(variables - bound), functions=frozenset(functions), mentioned=frozenset(mentioned - bound)
    )


def place_of_variable(fragment: Fragment, name: str) -> Location:
    """Where a variable is first named; the place of the text when only a macro names it."""
    source = Source(fragment)
    for index in range(len(source.tokens)):
        token = source.tokens[index]
        if is_sign(source, index):
            is_named = source.raw(index + (2 if source.raw(index + 1) == "{" else 1)).lower() == name
        else:
            is_named = token.is_quoted_name and name in _MENTIONED.findall(token.raw.lower())
        if is_named:
            return source.location(index)
    return fragment.location
