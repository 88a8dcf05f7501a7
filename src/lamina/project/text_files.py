"""Reading project files as text."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

from lamina.errors import Location, UnreadableFile

if TYPE_CHECKING:
    from pathlib import Path


def read_bytes(path: Path, name: str) -> bytes:
    """The content of a file; `name` is what messages call it. Raises `UnreadableFile`."""
    try:
        return path.read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UnreadableFile(
            f"`{name}` cannot be read: {reason}",
            hint="check that the file exists and that you may read it",
            location=Location(file=name),
        ) from error


def decode(
    content: bytes, name: str, encoding: str = "utf-8", *, keep_line_ends: bool = False, is_cut: bool = False
) -> str:
    """The text of a file without a byte order mark, lines ending with a newline unless they are to be kept.

    Content that is cut off may end in the middle of a character. Raises `UnreadableFile`.
    """
    marked = len(codecs.BOM_UTF8) if content.startswith(codecs.BOM_UTF8) else 0
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(content[marked:], final=not is_cut)
    except UnicodeDecodeError as error:
        place = marked + error.start
        line = content.count(b"\n", 0, place) + 1
        raise UnreadableFile(
            f"`{name}` is not {encoding.upper()} text: byte {place} cannot be decoded",
            hint=f"save the file as {encoding.upper()}",
            location=Location(file=name, line=line),
        ) from error
    except LookupError as error:
        raise UnreadableFile(
            f"`{name}` cannot be read: there is no encoding `{encoding}`", location=Location(file=name, line=1)
        ) from error
    return text if keep_line_ends else text.replace("\r\n", "\n").replace("\r", "\n")
