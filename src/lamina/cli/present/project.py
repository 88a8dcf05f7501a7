"""A project that was just created."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from rich.text import Text

from lamina.app.documents import SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def created_document(folder: Path, files: Sequence[str]) -> dict[str, Any]:
    """The folder and what was written into it."""
    return {"schema_version": SCHEMA_VERSION, "directory": str(folder), "files": list(files)}


def created_text(folder: Path, files: Sequence[str]) -> Text:
    """The folder and what was written into it."""
    return Text("\n".join([f"Created a project in {folder}:", *(f"  {file}" for file in files)]))


def next_steps(folder: Path) -> Text:
    """What a new user does next."""
    return Text(f"Next: `cd {shlex.quote(str(folder))}`, then `lamina plan` and `lamina build`")
