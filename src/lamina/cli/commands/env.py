"""`lamina env`: environments as they are recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lamina.api import Environment
from lamina.cli.groups import CommandGroup
from lamina.cli.options import common_options, environment_options, examples
from lamina.cli.present.environments import environment_text, environments_document, environments_text

if TYPE_CHECKING:
    from lamina.cli.invocation import Invocation


@click.group(cls=CommandGroup, later=("diff", "delete"))
def env() -> None:
    """Show environments and what they point to."""


@env.command("list", epilog=examples("lamina env list", "lamina env list --json"))
@common_options
def list_environments(invocation: Invocation) -> int:
    """List every environment with its status and the number of its models."""
    with invocation.application() as (application, _):
        revisions, baseline = application.environments(), application.settings().baseline
    if invocation.output.is_json:
        invocation.output.document(environments_document(revisions, baseline))
    else:
        invocation.output.result(environments_text(revisions, baseline))
    return 0


@env.command("show", epilog=examples("lamina env show", "lamina env show dev", "lamina env show dev --json"))
@environment_options
@common_options
def show_environment(invocation: Invocation, environment: str | None) -> int:
    """Show one environment: its status, every model's version and table, and its checkpoints."""
    with invocation.application() as (application, _):
        revision, checkpoints = application.environment(environment)
        baseline = application.settings().baseline
    if invocation.output.is_json:
        invocation.output.document(Environment(revision, checkpoints, baseline).to_dict())
    else:
        invocation.output.result(environment_text(revision, checkpoints, baseline))
    return 0
