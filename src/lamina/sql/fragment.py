"""A piece of SQL text that remembers where it was written."""

from __future__ import annotations

from dataclasses import dataclass

from lamina.errors import Location


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """SQL text as the user wrote it, before macros, with the place of its first character."""

    text: str
    location: Location
    dialect: str = "spark"

    def at(self, offset: int) -> Location:
        """The place of the character at `offset` of the text."""
        before = self.text[:offset]
        lines = before.count("\n")
        last_line = before.rsplit("\n", 1)[-1]
        first_line = self.location.line or 1
        column = len(last_line) + 1 if lines else len(last_line) + (self.location.column or 1)
        return Location(file=self.location.file, line=first_line + lines, column=column)
