"""New projects from templates."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING

from lamina.errors import UsageError
from lamina.project.discover import CONFIG_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.abc import Traversable
    from pathlib import Path

TEMPLATES = ("shop", "empty")
FORMATS = ("parquet", "delta", "iceberg")
_ENDING = ".template"


def create_project(folder: Path, *, template: str = "shop", table_format: str = "parquet") -> tuple[str, ...]:
    """Write a new project and return the paths of its files, relative to the folder.

    A folder that already holds a project, or any file the template would write, is refused and left as it is.
    """
    if template not in TEMPLATES:
        raise UsageError(f"there is no template `{template}`", hint=f"the templates are {_listed(TEMPLATES)}")
    if table_format not in FORMATS:
        raise UsageError(f"there is no table format `{table_format}`", hint=f"the formats are {_listed(FORMATS)}")
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"`{folder}` is not a folder", hint="name a new or an empty folder")
    if (folder / CONFIG_FILE).exists():
        raise UsageError(f"`{folder}` already holds a project", hint="name a new or an empty folder")
    name = _project_name(folder)
    texts = {
        path: text.replace("__NAME__", name).replace("__FORMAT__", table_format)
        for path, text in _template_files(files("lamina.project") / "templates" / template, "")
    }
    existing = sorted(path for path in texts if (folder / path).exists())
    if existing:
        raise UsageError(
            f"`{folder}` already has {_listed(existing)}; nothing was written",
            hint="name a new folder, or move these files away",
        )
    _write(folder, texts)
    return tuple(sorted(texts))


def _write(folder: Path, texts: dict[str, str]) -> None:
    try:
        for path, text in sorted(texts.items()):
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("x", encoding="utf-8", newline="\n") as file:
                file.write(text)
    except OSError as error:
        raise UsageError(
            f"the project cannot be written to `{folder}`: {error.strerror}",
            hint="name a folder that you may write to",
        ) from error


def _template_files(folder: Traversable, prefix: str) -> Iterator[tuple[str, str]]:
    for entry in folder.iterdir():
        if entry.name == "__pycache__":
            continue
        if entry.is_dir():
            yield from _template_files(entry, f"{prefix}{entry.name}/")
        else:
            yield f"{prefix}{entry.name.removesuffix(_ENDING)}", entry.read_text(encoding="utf-8")


def _project_name(folder: Path) -> str:
    """A name for the project that can be a schema, made from the folder's."""
    name = re.sub(r"[^a-z0-9_]+", "_", folder.resolve().name.lower()).strip("_")
    return name if re.match(r"[a-z]", name) else f"project_{name}".rstrip("_")


def _listed(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
