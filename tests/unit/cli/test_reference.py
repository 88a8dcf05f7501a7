"""docs/reference/cli.md says what the command line does."""

from __future__ import annotations

from tools import cli_reference


def test_the_page_is_current():
    assert cli_reference.PAGE.read_text(encoding="utf-8") == cli_reference.page(), "run `make docs`"


def test_every_command_has_a_section():
    names = [path for path, _ in cli_reference.commands("lamina", cli_reference.cli)]

    assert [name for name in names if f"## `{name}`\n" not in cli_reference.page()] == []
