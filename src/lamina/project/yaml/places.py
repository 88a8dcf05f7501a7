"""What a YAML file says, and where; `text.py` reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from lamina.errors import Location

if TYPE_CHECKING:
    from collections.abc import Mapping

YamlPath: TypeAlias = "tuple[str | int, ...]"


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlText:
    """Plain values of a YAML file; dates and times stay text, as they were written."""

    value: Any
    file: str
    keys: Mapping[YamlPath, Location]
    values: Mapping[YamlPath, Location]

    def key_location(self, path: YamlPath) -> Location:
        """Where the key at the path is written, or the nearest thing around it."""
        return self.keys.get(path) or self.location(path)

    def location(self, path: YamlPath) -> Location:
        """Where the value at the path begins, or the nearest thing around it."""
        for length in range(len(path), -1, -1):
            found = self.values.get(path[:length])
            if found is not None:
                return found
        return Location(file=self.file, line=1, column=1)
