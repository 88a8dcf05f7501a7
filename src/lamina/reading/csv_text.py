"""The text of a CSV file as rows of fields."""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING

from lamina.errors import BadSeed, Location

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lamina.graph.kinds import CsvSettings


_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")


class CsvFault(ValueError):
    """A line that cannot be read, with its number, or settings that do not go together."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def csv_rows(text: str, settings: CsvSettings) -> Iterator[tuple[int, list[str]]]:
    """Every line that is not blank, with its number; a quoted value may go over several.

    Lines that end in a character of their own are read with that character and the line feed in each other's place, so
    that line feeds are values like any other and quotes protect the character.

    >>> from lamina.graph.kinds import CsvSettings
    >>> list(csv_rows("a|'b|c'|d", CsvSettings(lineterminator="|", quotechar="'")))
    [(1, ['a']), (2, ['b|c']), (4, ['d'])]
    """
    text, end = text.removeprefix("\ufeff"), settings.lineterminator
    swapped = str.maketrans({end: "\n", "\n": end}) if end is not None else None
    try:
        reader = csv.reader(
            (line[0] for line in _LINE.finditer(text.translate(swapped) if swapped else text)),
            delimiter=settings.delimiter,
            quotechar=settings.quotechar,
            doublequote=settings.doublequote,
            escapechar=settings.escapechar,
            skipinitialspace=settings.skipinitialspace,
            strict=True,
        )
    except (TypeError, ValueError) as error:
        raise CsvFault(f"`csv_settings` cannot be used: {error}", 1) from error
    while True:
        first = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise CsvFault(str(error), first) from error
        if fields:
            yield first, [field.translate(swapped) for field in fields] if swapped else fields


def ragged_row(file: str, line: int, count: int, wanted: int) -> BadSeed:
    """The error for a row that has not as many fields as the header."""
    return BadSeed(
        f"line {line} of seed `{file}` has {count} {'field' if count == 1 else 'fields'}, the header has {wanted}",
        hint="put a value that holds the delimiter in quotes, and write an empty one as two delimiters",
        location=Location(file=file, line=line),
    )


def unreadable_line(file: str, fault: CsvFault) -> BadSeed:
    """The error for a line that is no CSV."""
    return BadSeed(
        f"line {fault.line} of seed `{file}` cannot be read: {fault}",
        hint="check the quotes, and `csv_settings` of the seed",
        location=Location(file=file, line=fault.line),
    )
