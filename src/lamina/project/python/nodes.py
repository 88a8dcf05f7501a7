"""Loaders, tasks, assets, checks and hooks in `python/`: read and checked by their syntax, not run yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.errors import BadPythonModel, raise_all
from lamina.project.python.decorators import (
    UNCLEAR,
    check_arguments,
    choice,
    cron,
    find_decorators,
    nodes,
    retry,
    text,
    texts,
    types,
    types_or_names,
    value_of,
)
from lamina.project.python.modules import parse_python
from lamina.reading.without_effect import PYTHON_NODES, no_effect, no_effect_yet

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamina.errors import LaminaError
    from lamina.graph.dag import Notice
    from lamina.project.python.decorators import Decorator, Parameter

_COMMON: Mapping[str, Parameter] = {
    "name": text(),
    "depends_on": nodes(),
    "tags": texts(),
    "description": text(),
    "retry": retry(),
}
PARAMETERS: Mapping[str, Mapping[str, Parameter]] = {
    "loader": {
        **_COMMON,
        "write": choice("append", "replace", "delete_insert", "merge"),
        "columns": types(),
        "cursor": text(),
        "unique_key": texts(),
        "cron": cron(),
    },
    "task": {**_COMMON, "cron": cron()},
    "asset": {**_COMMON, "columns": types_or_names(), "cron": cron()},
    "check": {**_COMMON, "severity": choice("error", "warn"), "cron": cron()},
    "hook": {**_COMMON, "on": choice("before_model", "after_model"), "models": texts()},
}
"""Every decorator of `python/` with its arguments."""

_WHY = {
    "loader": "loaders are not run by this release, so whatever fills the table has to run elsewhere",
    "task": "tasks are not run by this release",
    "asset": "assets are not made by this release",
    "check": "checks are not run by this release, so it stops nothing",
    "model": "models are looked for in `models/`",
}
# What a hook that models name does not need; what it asks for so is not done.
_OF_HOOKS = ("on", "models", "depends_on", "retry")


def read_python_nodes(content: str, file: str) -> tuple[Notice, ...]:
    """A warning for everything that the file declares and nothing runs; raises everything wrong with it at once."""
    problems: list[LaminaError] = []
    notices: list[Notice] = []
    for found in find_decorators(parse_python(content, file), file, (*PARAMETERS, "model")):
        if found.word in PARAMETERS:
            check_arguments(found, PARAMETERS[found.word], problems)
            _check_needs(found, problems)
        if found.word == "hook":
            asked = [key for key in _OF_HOOKS if key in found.arguments]
            if asked:
                listed = ", ".join(f"`{key}`" for key in asked)
                why = "hooks run for the models that name them in `pre_hooks` and `post_hooks`"
                notices.append(_notice(found, f"{listed} of hook `{_name(found)}`", why))
        else:
            notices.append(_notice(found, f"{found.word} `{_name(found)}`", _WHY[found.word]))
    raise_all(problems)
    return tuple(notices)


def read_misplaced(content: str, file: str) -> tuple[Notice, ...]:
    """A warning for every node where nothing looks for nodes, and for macros that ask for what is not done."""
    notices: list[Notice] = []
    for found in find_decorators(parse_python(content, file), file, (*PARAMETERS, "macro")):
        if found.word != "macro":
            notices.append(
                _notice(found, f"{found.word} `{_name(found)}`", "such functions are looked for in `python/`")
            )
        elif "metadata_only" in found.arguments and value_of(found.arguments["metadata_only"]) is not False:
            why = "an edit that changes what the macro gives makes new versions of the models that use it"
            place = found.location
            notices.append(no_effect(f"`metadata_only` of macro `{_name(found)}`", why, place))
    return tuple(notices)


def _notice(found: Decorator, what: str, why: str) -> Notice:
    return no_effect_yet(PYTHON_NODES, what, why, found.location, _name(found))


def _name(found: Decorator) -> str:
    node = found.by_position[0] if found.by_position else found.arguments.get("name")
    value = value_of(node) if node is not None else None
    return value if isinstance(value, str) else found.function


def _check_needs(found: Decorator, problems: list[LaminaError]) -> None:
    """Report what cannot work together, as far as it is written out."""
    if found.word != "loader" or found.is_open:
        return
    write = found.arguments.get("write")
    way = value_of(write) if write is not None else UNCLEAR
    if way in {"delete_insert", "merge"} and "unique_key" not in found.arguments:
        problems.append(
            BadPythonModel(
                f'loader `{_name(found)}` with `write="{way}"` needs `unique_key`',
                hint='name the columns that tell rows apart: `unique_key=["id"]`',
                location=found.location,
            )
        )
