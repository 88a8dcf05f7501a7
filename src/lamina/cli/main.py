"""`lamina`: the command line."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import click

from lamina import __version__
from lamina.cli.failures import exit_code_of
from lamina.cli.groups import CommandGroup
from lamina.cli.invocation import Invocation
from lamina.cli.options import examples
from lamina.cli.services import Services

if TYPE_CHECKING:
    from collections.abc import Sequence

# Each has a module of its own in `commands`, which is imported when the command is named.
_COMMANDS = (
    "init",
    "plan",
    "build",
    "run",
    "audit",
    "query",
    "render",
    "env",
    "promote",
    "source",
    "intervals",
    "history",
    "state",
    "doctor",
)
_LATER = (
    "rollback",
    "test",
    "freshness",
    "lineage",
    "dag",
    "diff",
    "janitor",
)


class _Root(CommandGroup):
    """The group above all commands: every way into the command line ends in a reported exit code."""

    def main(self, args: Sequence[str] | None = None, *_: Any, obj: Services | None = None, **others: Any) -> NoReturn:
        """Run a command and leave with its exit code; `obj` replaces the ways into the application."""
        words = list(sys.argv[1:] if args is None else args)
        invocation = Invocation(obj or Services(), words)
        others |= {"prog_name": "lamina", "standalone_mode": False, "obj": invocation}
        call = super().main
        sys.exit(exit_code_of(lambda: call(words, **others), invocation))


@click.group(
    cls=_Root,
    modules=_COMMANDS,
    later=_LATER,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=examples(
        "lamina init shop",
        "lamina build -C shop --execution-time 2024-01-08",
        "lamina plan dev -C shop",
        'lamina query -C shop "SELECT * FROM shop.daily_revenue"',
    ),
)
@click.version_option(__version__, message="lamina %(version)s")
def cli() -> None:
    """Lamina plans, builds and versions SQL and Python data pipelines on Apache Spark.

    A project is a folder with a lamina.yaml. `plan` says what would happen, `build` makes an environment match the
    project, `run` processes what has become due since.
    """


def main() -> NoReturn:
    """The entry point of the `lamina` program."""
    # Imports make many objects and hardly any garbage: looking for it after every 700 is a tenth of a short command.
    gc.set_threshold(100_000)
    try:
        cli.main()
    finally:
        # The interpreter looks through all there is before it ends, more than once: a sixth of a short command. Objects
        # that nothing names any more are let go of all the same, with what they hold.
        gc.freeze()
