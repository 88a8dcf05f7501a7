"""Macros: everything in a text that starts with `@`.

Macros are found among the tokens of the text and replaced by text, so that what Spark gets is what the user wrote
except where a macro stood. How values are written:

- `@name`: text as a string literal, numbers and booleans plain, NULL for nothing; a list as its items with commas
  between them (`IN (@list)`, `ARRAY(@list)`), in brackets right behind IN (`IN @list`); lists inside a list as
  `(a, b)`; a mapping as a map. Next to a dot, glued to a word (`item_@name`) and behind AS, text becomes a name.
- `@{name}`: as an identifier, also inside a longer or quoted one (`foo_@{name}_bar`); quoted where it must be; `a.b`
  standing alone stays a qualified name.
- In a quoted name `@{name}` and `@name` are filled in too (`` `@schema`.`t` ``). An `@` behind a letter or digit, one
  that no variable is called after, and the second one of `@@` belong to the name.
- A result that binds less tightly than the operators beside it is put in brackets. A macro without a result takes one
  neighbouring comma, AND or OR with it, or the clause keyword that would stand alone.
- Strings (in Spark also those in double quotes), comments and hints are left alone.

Time variables stay in the text as placeholders while it is expanded and are filled in at the end, or later by
`substitute_times`. Where a macro has to know one (`@IF(@start_ds > ...)`), the expansion is time dependent.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from lamina.errors import MacroError, raise_all
from lamina.sql.macros.expander import Expander
from lamina.sql.macros.text import Chunk, cut, text_of
from lamina.sql.macros.times import (
    TIME_NAMES,
    find_placeholders,
    time_value,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamina.errors import LaminaError, Location
    from lamina.sql.fragment import Fragment
    from lamina.sql.macros.scope import MacroScope
    from lamina.sql.macros.text import Rope


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """The text after expansion and what went into it.

    `variables_used` are user variables read, `macros_used` Python macros called, `times_used` time variables that occur
    and `columns_used` relations whose columns a macro looked up. `is_time_dependent` says that a time value or the
    runtime stage went into more than a literal, so that the text has to be expanded anew when the model runs.
    """

    text: str
    variables_used: frozenset[str] = frozenset()
    macros_used: frozenset[str] = frozenset()
    times_used: frozenset[str] = frozenset()
    columns_used: frozenset[str] = frozenset()
    is_time_dependent: bool = False
    chunks: tuple[Chunk, ...] = ()

    def location_at(self, offset: int) -> Location:
        """Where the character at `offset` of the text was written, or the macro that made it."""
        starts = [0, *accumulate(len(chunk.text) for chunk in self.chunks[:-1])]
        index = bisect_right(starts, max(offset, 0)) - 1
        return self.chunks[index].location_at(max(offset, 0) - starts[index])


def expand(fragment: Fragment, scope: MacroScope) -> Expansion:
    """Replace every macro of a fragment.

    Raises `UnknownMacro`, `MacroError` or several of them together, each with its place.
    """
    if "@" not in fragment.text:
        return Expansion(text=fragment.text, chunks=(_whole(fragment),))
    expander = Expander(scope, fragment.dialect)
    try:
        rope = expander.expand(fragment)
    except RecursionError:
        raise MacroError("the text is nested too deeply", location=fragment.location) from None
    raise_all(_distinct(expander.problems))
    if scope.times is not None:
        rope = _filled(rope, fragment.dialect, scope.times)
    return Expansion(
        text=text_of(rope),
        variables_used=frozenset(expander.variables_used),
        macros_used=frozenset(expander.macros_used),
        times_used=frozenset(expander.times_used),
        columns_used=frozenset(expander.columns_used),
        is_time_dependent=expander.is_time_dependent,
        chunks=rope or (_whole(fragment, ""),),
    )


def _whole(fragment: Fragment, text: str | None = None) -> Chunk:
    return Chunk(text=fragment.text if text is None else text, origin=fragment, offset=0, is_exact=True)


def _distinct(problems: list[LaminaError]) -> list[LaminaError]:
    """The problems without repetitions: a lambda or definition may be expanded many times."""
    return list({(problem.code, problem.message, problem.location): problem for problem in problems}.values())


def _filled(rope: Rope, dialect: str, times: Mapping[str, str]) -> Rope:
    """A rope with its time variables replaced by values."""
    text = text_of(rope)
    found: list[Chunk] = []
    position = 0
    for start, end, name in find_placeholders(text, dialect, TIME_NAMES):
        found.extend(cut(rope, position, start))
        stand_in = cut(rope, start, end)[0]
        try:
            value = time_value(name, times)
        except MacroError as error:
            error.location = stand_in.location_at(0)
            raise
        found.append(Chunk(text=value, origin=stand_in.origin, offset=stand_in.offset, is_exact=False))
        position = end
    found.extend(cut(rope, position, len(text)))
    return tuple(found)
