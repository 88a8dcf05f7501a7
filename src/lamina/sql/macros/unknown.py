"""Names that nothing defines, reported with the nearest name that exists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lamina.errors import UnknownMacro
from lamina.sql.macros.call import nearest
from lamina.sql.macros.shapes import is_sign, lambda_parameters

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lamina.errors import Location
    from lamina.sql.macros.call import Argument


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownNames:
    """Every name a text may use; `functions` maps lower case to the usual spelling."""

    variables: frozenset[str]
    functions: dict[str, str]

    def unknown_variable(self, shown: str, location: Location) -> UnknownMacro:
        """The error for `@shown`."""
        if shown.lower() in self.functions:
            return UnknownMacro(f"`@{shown}` is a macro function", hint=f"call it: `@{shown}(...)`", location=location)
        return UnknownMacro(
            f"`@{shown}` is not a known variable",
            hint=nearest(shown, self.variables, "@")
            or "define it under `variables` in `lamina.yaml` or with `@DEF(name, value)`",
            location=location,
        )

    def unknown_function(self, shown: str, location: Location) -> UnknownMacro:
        """The error for `@shown(...)`."""
        if shown.lower() in self.variables:
            return UnknownMacro(
                f"`@{shown}` is a variable, not a macro function",
                hint=f"write `@{shown}` without brackets",
                location=location,
            )
        return UnknownMacro(
            f"`@{shown}` is not a known macro",
            hint=nearest(shown, self.functions.values(), "@")
            or "define it with `@macro` in a file under `macros/` or with `@DEF(name, x -> expression)`",
            location=location,
        )

    def problems_in(self, argument: Argument, optional: set[str]) -> Iterator[UnknownMacro]:
        """The unknown names of a text that is not expanded this time; `optional` variables may be missing."""
        source = argument.source
        bound = {token.raw.lower() for token in lambda_parameters(source, argument.start, argument.end)}
        for index in range(argument.start, argument.end):
            if not is_sign(source, index) or source.tokens[index + 1].is_string:
                continue
            is_braced = source.raw(index + 1) == "{"
            shown = source.raw(index + 2 if is_braced else index + 1)
            name = shown.lower()
            if name in bound:
                continue
            if not is_braced and source.raw(index + 2) == "(" and source.touches(index + 2):
                if name not in self.functions:
                    yield self.unknown_function(shown, source.location(index))
            elif name not in self.variables and name not in optional:
                yield self.unknown_variable(shown, source.location(index))
