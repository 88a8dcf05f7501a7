"""Files in `models/` that define no model although someone may believe they do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.graph.dag import Notice
from lamina.project.seeds import seed_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from lamina.project.cache.file import Dependencies
    from lamina.reading.drafts import Draft

_CODE = "LAM-WARN-030"
_SQL = "models are written in files that end in `.sql`"
# Other endings, such as those of notes and of an editor's copies, are not taken for models by anyone.
_ADVICE = {
    ".csv": "put it into `seeds/`, or name it in a model of kind SEED",
    ".ddl": _SQL,
    ".hql": _SQL,
    ".j2": f"{_SQL}, with macros instead of Jinja",
    ".jinja": f"{_SQL}, with macros instead of Jinja",
    ".jinja2": f"{_SQL}, with macros instead of Jinja",
    ".json": "properties of a model are written in its own file",
    ".yaml": "properties of a model are written in its own file, external tables in `sources/`",
    ".yml": "properties of a model are written in its own file, external tables in `sources/`",
}


def unimported(helpers: Iterable[str], dependencies: Mapping[str, Dependencies]) -> Iterator[Notice]:
    """Warnings about Python files without a model that nothing imports; what makes a folder a package is none."""
    used = {file for path, known in dependencies.items() for file in known.files if file != path}
    for path in helpers:
        if path not in used and not path.endswith("/__init__.py"):
            yield Notice(
                code=_CODE,
                message=f"`{path}` declares no model and no other file imports it: write `@model(…)` of `lamina` above "
                "the function that makes its rows, or move the file to `python/`",
            )


def unread(paths: Iterable[str], drafts: Iterable[Draft]) -> Iterator[Notice]:
    """Warnings about files that are not read because of their endings."""
    named = {seed_path(draft) for draft in drafts}
    for path in paths:
        advice = _ADVICE.get("." + path.rpartition(".")[2].lower())
        if advice is not None and path not in named:
            yield Notice(code=_CODE, message=f"`{path}` is not read: {advice}")
