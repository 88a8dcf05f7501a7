"""Writes the reference pages that are made from the code: errors and commands.

`make docs` writes them; a test compares them with what would be written.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lamina import errors
from lamina.cli.main import cli

if TYPE_CHECKING:
    from collections.abc import Iterator

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference"
NOTICE = "<!-- Made by `make docs` from the code; changes made here are lost. -->"


def main() -> int:
    REFERENCE.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (REFERENCE / name).write_text(text, encoding="utf-8")
    return 0


def pages() -> dict[str, str]:
    """Every generated page by its file's name."""
    return {"errors.md": errors_page(), "commands.md": commands_page()}


def errors_page() -> str:
    lines = [
        "# Errors",
        "",
        NOTICE,
        "",
        "Each error has a code that does not change. The exit code is what `lamina` answers when it ends a command.",
        "",
        "| code | error | exit | meaning |",
        "|---|---|---|---|",
    ]
    classes = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.LaminaError)]
    lines += [
        f"| `{kind.code}` | {kind.__name__} | {kind.exit_code} | {first_paragraph(inspect.getdoc(kind))} |"
        for kind in sorted(classes, key=lambda kind: kind.code)
        if kind not in {errors.LaminaError, errors.Problems}
    ]
    return "\n".join(lines) + "\n"


def commands_page() -> str:
    lines = ["# Commands", "", NOTICE, ""]
    for path, command in commands("lamina", cli):
        context = click.Context(command, info_name=path)
        usage = " ".join([path, *command.collect_usage_pieces(context)])
        lines += [f"## `{path}`", "", first_paragraph(command.help), "", "```", usage, "```", ""]
        options = [
            parameter for parameter in command.params if isinstance(parameter, click.Option) and not parameter.hidden
        ]
        if options:
            lines += ["| option | meaning |", "|---|---|"]
            lines += [f"| `{spelling(option)}` | {cell(option.help)} |" for option in options]
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def commands(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """A command and, below it, its subcommands, each with the words a user types."""
    if command.hidden:
        return
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=path)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None:
                yield from commands(f"{path} {name}", found)


def spelling(option: click.Option) -> str:
    names = ", ".join([*option.opts, *option.secondary_opts])
    if option.is_flag or option.count:
        return names
    return cell(f"{names} {option.make_metavar(click.Context(click.Command('lamina')))}")


def first_paragraph(text: str | None) -> str:
    return cell((text or "").strip().split("\n\n")[0].replace("\b", ""))


def cell(text: str | None) -> str:
    """Text on one line that does not end a table's cell."""
    return " ".join((text or "").split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
