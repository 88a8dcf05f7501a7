"""The projects that guides show can be planned, and say what the guides claim."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from lamina.cli.main import cli

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
_FILE = re.compile(r"```(?:python|sql|yaml)\n(?:#|--) (\S+)\n(.*?)```", re.DOTALL)
_COMMAND = re.compile(r"```console\n\$ lamina (.*?)\n(.*?)```", re.DOTALL)
_CALLS = [
    (guide.stem, line)
    for guide in sorted(GUIDES.glob("*.md"))
    for block in re.findall(r"```sh\n(.*?)```", guide.read_text(encoding="utf-8"), re.DOTALL)
    for line in block.splitlines()
    if line.startswith("lamina ")
]


@pytest.mark.parametrize("guide", sorted(GUIDES.glob("*.md")), ids=lambda guide: guide.stem)
def test_the_project_of_a_guide_answers_what_the_guide_shows(guide: Path, tmp_path: Path) -> None:
    text = guide.read_text(encoding="utf-8")
    for name, content in (("lamina.yaml", "name: shop\n"), *_FILE.findall(text)):
        place = tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content, encoding="utf-8")

    for command, shown in _COMMAND.findall(text):
        answer = CliRunner().invoke(cli, [*shlex.split(command), "-C", str(tmp_path)], env={"COLUMNS": "400"})
        assert answer.exit_code == 0, answer.output
        for line in shown.splitlines():
            assert line in answer.stdout


@pytest.mark.parametrize(("guide", "line"), _CALLS)
def test_a_command_that_a_guide_only_names_can_be_called(guide: str, line: str) -> None:
    _, name, *words = shlex.split(line)
    command = cli.get_command(click.Context(cli), name)
    assert command is not None, f"`{guide}` names the command `{name}`"
    command.make_context(name, words, parent=click.Context(cli))


@pytest.mark.parametrize("guide", sorted(GUIDES.glob("*.md")), ids=lambda guide: guide.stem)
def test_links_of_a_guide_lead_somewhere(guide: Path) -> None:
    for path in re.findall(r"\]\(([^)#:]+)\)", guide.read_text(encoding="utf-8")):
        assert (guide.parent / path).exists(), path
