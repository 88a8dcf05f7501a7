"""What pages of reference are made of: keys that the code knows, each with words that a person wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

NOTICE = "<!-- Made by `make docs` from the code; changes made here are lost. -->"


def documented(keys: Iterable[str], words: Mapping[str, str], where: str) -> list[tuple[str, str]]:
    """Every key with its words; a key without words, and words without a key, are errors."""
    known = list(dict.fromkeys(keys))
    missing = [key for key in known if key not in words]
    gone = [key for key in words if key not in known]
    if missing or gone:
        raise LookupError(f"{where}: without words {missing}, without a key {gone}")
    return [(key, words[key]) for key in known]


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """The lines of a table, with an empty one behind."""
    names = list(head)
    lines = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    return [*lines, *(f"| {' | '.join(cell(text) for text in row)} |" for row in rows), ""]


def cell(text: str) -> str:
    """Text on one line that does not end a table's cell."""
    return " ".join(text.split()).replace("|", "\\|")


def value(given: object) -> str:
    """A default as it would be written; nothing for none."""
    match given:
        case None | () | "":
            return ""
        case bool():
            return f"`{str(given).lower()}`"
        case str() | int() | float():
            return f"`{given}`"
        case _:
            return "" if not given else f"`{given}`"
