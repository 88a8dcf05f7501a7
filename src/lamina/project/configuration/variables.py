"""Environment variables that settings come from, and those that somebody takes for one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.near_names import near_names
from lamina.project.configuration.shape import setting_paths
from lamina.project.configuration.values import ENVIRONMENT_PREFIX, TARGET_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterable

_PREFIX = "LAMINA_"
# What is said with an option alone, and which one that is.
_OPTIONS = {
    "env": "--env",
    "environment": "--env",
    "virtual_env": "--env",
    "project": "--project",
    "project_dir": "--project",
    "execution_time": "--execution-time",
}


def mistaken_variables(names: Iterable[str], content: str) -> dict[str, str]:
    """Variables that are set, mean nothing, and look as if somebody meant a setting, each with what to do.

    Names that `lamina.yaml` mentions are somebody's own. Others that begin with `LAMINA_` and resemble no setting are
    nobody's business.
    """
    found: dict[str, str] = {}
    for name in sorted(names):
        is_ours = name.upper().startswith(_PREFIX) and not name.startswith(ENVIRONMENT_PREFIX)
        if not is_ours or name == TARGET_VARIABLE or name in content:
            continue
        hint = _meant_by(name.upper().removeprefix(_PREFIX).lower().strip("_").replace("__", "_"))
        if hint is not None:
            found[name] = hint
    return found


def _meant_by(word: str) -> str | None:
    if word in _OPTIONS:
        return f"say it with `{_OPTIONS[word]}`"
    settings = {"_".join(path): path for path in setting_paths()}
    near = near_names(word, ["target", *settings])
    if not near or not _is_slip(word, near[0]):
        return None
    path = settings.get(near[0])
    meant = TARGET_VARIABLE if path is None else ENVIRONMENT_PREFIX + "__".join(path).upper()
    return f"did you mean `{meant}`?"


def _is_slip(word: str, near: str) -> bool:
    """Whether a word is a setting's name but for a slip, and not merely the beginning of one."""
    return abs(len(word) - len(near)) <= 1
