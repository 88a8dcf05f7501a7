"""The README shows commands that exist, with flags that they take, and links that lead somewhere."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from lamina.cli.main import cli

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [line[2:] for block in re.findall(r"```console\n(.*?)```", README, re.DOTALL) for line in block.splitlines()]


@pytest.mark.parametrize("line", [line for line in COMMANDS if line.startswith("lamina ")])
def test_a_command_of_the_readme_can_be_called(line: str) -> None:
    command: click.Command = cli
    words = shlex.split(line)[1:]
    context = click.Context(cli)
    while isinstance(command, click.Group):
        found = command.get_command(context, words[0])
        assert found is not None, f"no command `{words[0]}`"
        command, words = found, words[1:]
    command.make_context(command.name, words, parent=context)


@pytest.mark.parametrize("target", [line.split()[1] for line in COMMANDS if line.startswith("make ")])
def test_a_make_target_of_the_readme_exists(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


def test_the_readme_shows_both_commands() -> None:
    assert {"make demo", "make test"} <= set(COMMANDS)


@pytest.mark.parametrize("path", re.findall(r"\]\(([^)#]+)\)", README))
def test_a_link_of_the_readme_leads_somewhere(path: str) -> None:
    assert (ROOT / path).exists()


def test_the_example_model_of_the_readme_is_the_one_of_the_template() -> None:
    template = ROOT / "src/lamina/project/templates/shop/models/daily_revenue.sql"
    header = re.search(r"MODEL \(.*?\);", README, re.DOTALL)
    assert header is not None
    assert header[0] in template.read_text(encoding="utf-8")
