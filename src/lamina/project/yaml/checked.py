"""Checking the keys and values of a YAML file that say something of a known form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lamina.errors import BadConfigValue, LaminaError, UnknownConfigKey
from lamina.near_names import near_names
from lamina.timeline.parse import parse_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamina.project.yaml.places import YamlPath, YamlText


class Checked:
    """One file being checked; what is wrong is collected."""

    def __init__(self, text: YamlText, problems: list[LaminaError]) -> None:
        self._text = text
        self.problems = problems

    def keys(self, entry: Mapping[str, Any], path: YamlPath, known: Sequence[str], what: str) -> None:
        """Report every key that is not known, with the nearest one that is."""
        for key in entry:
            if key in known:
                continue
            begins = [name for name in known if name.startswith(str(key))]
            near = near_names(str(key), known) or begins
            choices = ", ".join(f"`{name}`" for name in known)
            self.problems.append(
                UnknownConfigKey(
                    f"{what} has no key `{key}`",
                    hint=f"did you mean `{near[0]}`?" if near else f"the keys are {choices}",
                    location=self._text.key_location((*path, key)),
                )
            )

    def mapping(self, value: Any, path: YamlPath) -> Mapping[str, Any] | None:
        """Keys and values; None when it is something else, which is then reported."""
        if isinstance(value, Mapping):
            return value
        self.refuse(path, "a mapping of keys to values", value)
        return None

    def text(self, value: Any, path: YamlPath) -> str | None:
        """Text, not empty; numbers stand for the text they were written as."""
        if isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip():
            return str(value)
        self.refuse(path, "text", value)
        return None

    def boolean(self, value: Any, path: YamlPath) -> None:
        """`true` or `false`."""
        if not isinstance(value, bool):
            self.refuse(path, "`true` or `false`", value)

    def choice(self, value: Any, path: YamlPath, choices: Sequence[str]) -> str | None:
        """One of a few words."""
        if value in choices:
            return str(value)
        near = near_names(str(value), choices)
        hint = f"did you mean `{near[0]}`?" if near else None
        self.refuse(path, f"one of {', '.join(f'`{choice}`' for choice in choices)}", value, hint=hint)
        return None

    def duration(self, value: Any, path: YamlPath) -> int | None:
        """A length of time in microseconds."""
        try:
            return parse_duration(str(value))
        except LaminaError:
            self.refuse(path, "a duration such as `10m`, `24h` or `2d`", value)
            return None

    def refuse(self, path: YamlPath, expected: str, value: Any, *, hint: str | None = None) -> None:
        """Report that a value has the wrong form."""
        shown = "" if isinstance(value, dict | list) else f", not `{_shorten(value)}`"
        if value is None:
            shown = ", and nothing is given"
        self.contradict(path, f"`{_key_of(path)}` must be {expected}{shown}", hint)

    def contradict(self, path: YamlPath, message: str, hint: str | None) -> None:
        """Report something that cannot be, at the place of a key."""
        self.problems.append(BadConfigValue(message, hint=hint, location=self._text.key_location(path)))


def _key_of(path: YamlPath) -> str:
    return next((part for part in reversed(path) if isinstance(part, str)), "the file")


def _shorten(value: object) -> str:
    text = str(value).replace("`", "'")
    return text if len(text) <= 60 else f"{text[:57]}…"
