"""Commands as a person would type them, whole enough to be pasted into a shell."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from rich.text import Text

from lamina.timeline.interval import Instant
from lamina.timeline.parse import parse_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

# What a command looks like is not what it does.
_LOOKS = frozenset({"is_json", "is_plain", "is_verbose", "is_debug"})
_TIME = "execution_time"
# Between backticks, or alone on an indented line.
_COMMAND = re.compile(r"`(lamina (?!init\b)[a-z][^`\n]*)`|^ {4,}(lamina (?!init\b)[a-z].*)$", re.MULTILINE)
_PLACED = re.compile(r" (?:-C|--project|--target|--help)\b")


def same_request(now: Instant, command: click.Command | None = None) -> str:
    """The command line that asks another command (or this one again) for what the current one was asked at `now`.

    Options that the other command does not have are left out, and so are those that only say how results look. Times
    that count from now are written out, because the next command comes later.
    """
    context = click.get_current_context()
    wanted = command or context.command
    path = f"lamina {command.name}" if command is not None else context.command_path
    words: list[str] = []
    for parameter in wanted.params:
        name = parameter.name or ""
        is_given = context.get_parameter_source(name) in {ParameterSource.COMMANDLINE, ParameterSource.PROMPT}
        if not is_given or name in _LOOKS:
            continue
        value = context.params[name]
        if name == _TIME:
            value = _fixed(value, now)
        words += _spelled(parameter, value)
    return shlex.join([*path.split(), *words])


def clock_words(command: str) -> str:
    """The option of a command that says at what time it is asked, with a blank in front; nothing where it is now."""
    words = shlex.split(command)
    for number, word in enumerate(words):
        if word == "--execution-time" and number + 1 < len(words):
            return f" {shlex.join(words[number : number + 2])}"
        if word.startswith("--execution-time="):
            return f" {shlex.quote(word)}"
    return ""


def place_words(directory: Path | None, target: str | None) -> str:
    """The options that say which project and target a command is about, as far as they were given."""
    words = ([] if directory is None else ["-C", str(directory)]) + ([] if target is None else ["--target", target])
    return shlex.join(words)


def with_place(text: Text, place: str) -> Text:
    """A text whose commands say which project and target they are about, as the command that shows it was told."""
    if not place:
        return text
    for found in reversed(list(_COMMAND.finditer(text.plain))):
        group = 1 if found[1] is not None else 2
        if _PLACED.search(found[group]) is None:
            end = found.end(group)
            text = Text.assemble(text[:end], f" {place}", text[end:])
    return text


def _spelled(parameter: click.Parameter, value: Any) -> Iterator[str]:
    if isinstance(parameter, click.Argument):
        yield from (str(each) for each in _each(value))
        return
    if isinstance(parameter, click.Option) and parameter.is_flag:
        if value:
            yield parameter.opts[0]
        return
    for each in _each(value):
        # A value that begins with a dash looks like an option of its own.
        joined = f"{parameter.opts[-1]}={each}"
        yield from (joined,) if str(each).startswith("-") else (parameter.opts[0], str(each))


def _each(value: Any) -> Iterable[Any]:
    return value if isinstance(value, tuple) else (value,)


def _fixed(text: str, now: Instant) -> str:
    """The moment as it was written, or as it was understood where it counts from now."""
    first, second = (parse_time(text, relative_to=Instant(micros)) for micros in (0, 10**15))
    return text if first == second else now.isoformat()
