"""Macros in the values of a header."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from lamina.sql.fragment import Fragment
from lamina.sql.header.read import LATE_PROPERTIES, read_properties, read_value
from lamina.sql.header.values import KindValue, MacroValue, Property, Text
from lamina.sql.macros.expand import expand
from lamina.sql.macros.text import Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lamina.sql.macros.scope import MacroScope

# Expanded when the model is evaluated, because they may name what is known only then.
_LATE = LATE_PROPERTIES | {"merge_filter"}
_CRON_ALIAS = re.compile(r"@[a-z]+", re.IGNORECASE)


def expand_properties(
    properties: Iterable[Property], scope: MacroScope, dialect: str, *, is_kind: bool = False
) -> Iterator[Property]:
    """The properties with the macros in their values expanded, as far as they are expanded at load."""
    for each in properties:
        value = each.value
        if isinstance(value, KindValue):
            inner = tuple(expand_properties(value.properties, scope, dialect, is_kind=True))
            kind = KindValue(name=value.name, properties=inner, location=value.location)
            yield Property(key=each.key, value=kind, location=each.location)
        elif not isinstance(value, MacroValue) or each.key in _LATE:
            yield each
        elif each.key == "cron" and _CRON_ALIAS.fullmatch(value.text):
            text = Text(value=value.text, raw=value.text, sql=f"'{value.text}'", location=value.location)
            yield Property(key=each.key, value=text, location=each.location)
        else:
            fragment = Fragment(text=value.text, location=value.location, dialect=dialect)
            made = Fragment(text=expand(fragment, scope).text, location=value.location, dialect=dialect)
            if not made.text.strip():
                continue
            if each.key:
                read = read_value(each.key, _bracketed(made), is_kind=is_kind, is_expanded=True)
                yield Property(key=each.key, value=read, location=each.location)
            else:
                yield from read_properties(made, is_kind=is_kind)


def _bracketed(made: Fragment) -> Fragment:
    """A list that a macro gave, with the brackets that a list has as a value."""
    source = Source(made)
    is_list = len(source.split(0, len(source.tokens))) > 1
    return replace(made, text=f"({made.text})") if is_list else made
