"""The README shows commands that exist, with flags that they take, and links that lead somewhere."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from lamina import Project
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


def _commands(group: click.Group, path: str = "") -> set[str]:
    context = click.Context(group)
    found = {name: group.get_command(context, name) for name in group.list_commands(context)}
    groups = {name: each for name, each in found.items() if isinstance(each, click.Group)}
    return {f"{path}{name}" for name in found.keys() - groups.keys()}.union(
        *(_commands(each, f"{path}{name} ") for name, each in groups.items())
    )


def test_the_commands_of_this_release_are_listed() -> None:
    (listed,) = re.findall(r"^- (`init`.*?)\.$", README, re.MULTILINE | re.DOTALL)
    assert set(re.findall(r"`([^`]+)`", listed)) == _commands(cli)


def test_the_model_that_is_shown_is_the_one_that_init_writes() -> None:
    (model,) = re.findall(r"```sql\n(.*?)```", README, re.DOTALL)
    template = ROOT / "src" / "lamina" / "project" / "templates" / "shop" / "models"
    assert any(model in path.read_text(encoding="utf-8") for path in template.rglob("*.sql"))


def test_the_python_that_is_shown_calls_what_there_is() -> None:
    (python,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    compile(python, "README.md", "exec")
    called = re.findall(r"(?:Project|project)\.(\w+)\(", python)
    assert called
    assert [name for name in called if not callable(getattr(Project, name, None))] == []


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
