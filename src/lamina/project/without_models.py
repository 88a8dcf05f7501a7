"""Files that nothing reads although someone may believe that it does."""

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
_JINJA = f"{_SQL}, with macros instead of Jinja"
_PROPERTIES = "properties of a model are written in its own file"
_SEED = "seeds are files that end in `.csv`"
_OF_SEEDS = "what a seed is like is written in a model of kind SEED"
_SOURCE = "external tables are declared in files that end in `.yml`"
_AUDIT = "audits are written in files that end in `.sql`"
_MACRO = "macros are functions in files that end in `.py`"
_SIGNAL = "signals are functions in files that end in `.py`"
# Other endings, such as those of notes, of data and of an editor's copies, are not taken for a part of the project.
_ADVICE = {
    "models": {
        ".csv": "put it into `seeds/`, or name it in a model of kind SEED",
        ".ddl": _SQL,
        ".hql": _SQL,
        ".j2": _JINJA,
        ".jinja": _JINJA,
        ".jinja2": _JINJA,
        ".json": _PROPERTIES,
        ".yaml": f"{_PROPERTIES}, external tables in `sources/`",
        ".yml": f"{_PROPERTIES}, external tables in `sources/`",
    },
    "seeds": {
        **dict.fromkeys((".gz", ".json", ".jsonl", ".parquet", ".tsv", ".xls", ".xlsx"), _SEED),
        ".yaml": _OF_SEEDS,
        ".yml": _OF_SEEDS,
    },
    "sources": dict.fromkeys((".json", ".sql", ".toml"), _SOURCE),
    "external_models": dict.fromkeys((".json", ".sql", ".toml"), _SOURCE),
    "audits": dict.fromkeys((".py", ".yaml", ".yml"), _AUDIT),
    "macros": dict.fromkeys((".j2", ".jinja", ".jinja2", ".sql"), _MACRO),
    "signals": dict.fromkeys((".sql", ".yaml", ".yml"), _SIGNAL),
    "functions": dict.fromkeys((".yaml", ".yml"), "functions are written in files that end in `.sql` or `.py`"),
    "tests": {".sql": "unit tests are written in files that end in `.yml`"},
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
        advice = _ADVICE.get(path.partition("/")[0], {}).get("." + path.rpartition(".")[2].lower())
        if advice is not None and path not in named:
            yield Notice(code=_CODE, message=f"`{path}` is not read: {advice}")
