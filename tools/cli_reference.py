"""Writes docs/reference/cli.md from the command line itself.

`make docs` writes it; a test compares it with what would be written.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lamina.cli.main import cli
from lamina.cli.options import COMMON_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "cli.md"

HEAD = """\
# The command line

<!-- Made by `make docs` from the code; changes made here are lost. -->

Results go to stdout, everything else (progress, warnings, failures) to stderr. With `--json` stdout holds exactly one
JSON document.

| exit code | meaning |
|---|---|
| 0 | done, also when there was nothing to do or something waits |
| 1 | something failed, was blocked, or needs a person |
| 2 | wrong usage or an invalid project |
| 3 | `plan --detailed-exit-code` found changes |
| 130 | interrupted |

`ENV` is an argument or `--env NAME`; without it a command is about the target's own environment.
"""


def main() -> int:
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
    return 0


def page() -> str:
    """The whole page."""
    found = list(commands("lamina", cli))
    common = [option for option in options_of(found[0][1]) if option.name in COMMON_NAMES]
    sections = [HEAD, "## Options of every command\n", table(common)]
    for path, command in found:
        sections += [f"## `{path}`\n", *section(path, command)]
    return "\n".join(sections).rstrip() + "\n"


def section(path: str, command: click.Command) -> Iterator[str]:
    context = click.Context(command, info_name=path)
    yield f"{inspect.cleandoc(command.help or '')}\n"
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    examples = inspect.cleandoc((command.epilog or "").partition("Examples:")[2])
    yield f"```sh\n{usage}\n```\n"
    own = [option for option in options_of(command) if option.name not in COMMON_NAMES]
    if own:
        yield table(own)
    yield f"```sh\n{examples}\n```\n"


def commands(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, with the words a user types."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command, info_name=path)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        if found is not None:
            yield from commands(f"{path} {name}", found)


def options_of(command: click.Command) -> list[click.Option]:
    return [parameter for parameter in command.params if isinstance(parameter, click.Option)]


def table(options: Iterable[click.Option]) -> str:
    rows = [f"| `{spelling(option)}` | {cell(option.help)}{default(option)} |" for option in options]
    return "\n".join(["| option | meaning |", "|---|---|", *rows, ""])


def spelling(option: click.Option) -> str:
    names = ", ".join(option.opts)
    return names if option.is_flag else cell(f"{names} {option.make_metavar(click.Context(cli))}")


def default(option: click.Option) -> str:
    return f" Default: {option.default}." if option.show_default else ""


def cell(text: str | None) -> str:
    """Text on one line that does not end a table's cell."""
    return " ".join((text or "").split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
