"""The projects that guides show can be planned, and say what the guides claim."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from lamina.cli.main import cli

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
_FILE = re.compile(r"```(?:python|sql|yaml)\n(?:#|--) (\S+)\n(.*?)```", re.DOTALL)
_COMMAND = re.compile(r"```console\n\$ lamina (.*?)\n(.*?)```", re.DOTALL)


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
