"""What the command line says about itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from lamina import __version__
from lamina.cli.main import cli
from tests.unit.cli.conftest import Lamina


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(commands(cli))
COMMON = {"-C", "--project", "--target", "--execution-time", "--json", "--no-color", "-v", "--debug"}


def test_the_commands_of_this_release_are_there():
    assert set(COMMANDS) == {
        ("init",),
        ("plan",),
        ("build",),
        ("run",),
        ("audit",),
        ("query",),
        ("render",),
        ("env", "list"),
        ("env", "show"),
        ("promote",),
        ("source", "columns"),
        ("source", "register"),
        ("state", "repair"),
        ("intervals",),
        ("history",),
        ("doctor",),
    }


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_has_the_common_options(path: tuple[str, ...]):
    names = {name for parameter in COMMANDS[path].params for name in parameter.opts}

    assert names >= COMMON


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_help_has_a_sentence_and_examples_that_can_be_called(lamina: Lamina, path: tuple[str, ...]):
    answer = lamina(*path, "--help")

    examples = answer.stdout.partition("Examples:\n")[2].split("\n")
    assert answer.exit_code == 0
    assert answer.stdout.startswith(f"Usage: lamina {' '.join(path)}")
    assert examples[0].strip().startswith(f"lamina {' '.join(path)}")
    assert COMMANDS[path].help


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_option_says_what_it_does(path: tuple[str, ...]):
    options = [parameter for parameter in COMMANDS[path].params if isinstance(parameter, click.Option)]

    assert [option.name for option in options if not option.help] == []


def test_no_command_is_cut_short_in_the_overview(lamina: Lamina):
    assert "..." not in lamina("--help").stdout.split("Commands:")[1]


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_answers_zero(lamina: Lamina, flag: str):
    assert lamina(flag).exit_code == 0


def test_the_version_is_the_package_version(lamina: Lamina):
    assert lamina("--version").stdout == f"lamina {__version__}\n"


def test_help_loads_no_heavy_library():
    script = (
        "import sys, contextlib, io\n"
        "from lamina.cli.main import main\n"
        "sys.argv = ['lamina', 'plan', '--help']\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
        "    main()\n"
        "print(' '.join(sorted({name.split('.')[0] for name in sys.modules})))\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)

    heavy = {"pyspark", "py4j", "pandas", "sqlalchemy", "sqlglot", "yaml", "pydantic"}
    assert heavy & set(answer.stdout.split()) == set()
