"""Groups of commands that know what is not a command."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from lamina.errors import UnknownName, UsageError
from lamina.near_names import near_names


class CommandGroup(click.Group):
    """Commands in the order they were named or added; an unknown one is refused with the nearest name.

    `modules` names commands that have a module of their own name in `lamina.cli.commands`, which is imported when the
    command is first asked for; `later` names those that are part of the contract and not of this release.
    """

    def __init__(self, *values: Any, modules: tuple[str, ...] = (), later: tuple[str, ...] = (), **others: Any) -> None:
        super().__init__(*values, **others)
        self.modules, self.later = modules, later

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # the signature is Click's
        """Every command, as a tour would show them."""
        return list(dict.fromkeys((*self.modules, *self.commands)))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, with its module imported by now."""
        if cmd_name in self.modules and cmd_name not in self.commands:
            self.add_command(getattr(import_module(f"lamina.cli.commands.{cmd_name}"), cmd_name))
        return super().get_command(ctx, cmd_name)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Without a word to go by, show the help and answer that this was wrong usage."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(UsageError.exit_code)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command a user named."""
        name = args[0]
        if self.get_command(ctx, name) is None and not ctx.resilient_parsing:
            raise self._unknown(ctx, name)
        return super().resolve_command(ctx, args)

    def _unknown(self, ctx: click.Context, name: str) -> UsageError:
        path = ctx.command_path
        if name in self.later:
            return UsageError(
                f"`{path} {name}` is not part of this release yet", hint=f"`{path} --help` lists the commands there are"
            )
        if name.startswith("-"):
            return UsageError(f"`{path}` has no option `{name}`", hint=f"`{path} --help` shows how it is called")
        near = near_names(name, self.list_commands(ctx))
        return UnknownName(
            f"`{path}` has no command `{name}`",
            hint=f"did you mean `{path} {near[0]}`?" if near else f"`{path} --help` lists the commands there are",
        )
