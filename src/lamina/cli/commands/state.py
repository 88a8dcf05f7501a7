"""`lamina state`: state by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lamina.cli.groups import CommandGroup
from lamina.cli.options import common_options, environment_options, examples
from lamina.cli.present.repair import repair_text

if TYPE_CHECKING:
    from lamina.cli.invocation import Invocation


@click.group(cls=CommandGroup, later=("checkpoints", "locks", "detach", "attach", "export", "import", "adopt", "leave"))
def state() -> None:
    """Look after what is recorded."""


@state.command("repair", epilog=examples("lamina state repair", "lamina state repair dev --json"))
@environment_options
@common_options
def repair(invocation: Invocation, environment: str | None) -> int:
    """Bring an environment back to what is recorded.

    Rows whose folders are gone are computed again, by the recorded code, and views that show something else than what
    is recorded are set right. A model that keeps its history is named instead: its rows cannot be computed again.
    """
    with invocation.application() as (application, _):
        report = application.repair(environment, invocation.now())
    if invocation.output.is_json:
        invocation.output.document(report.to_dict())
    else:
        invocation.output.result(repair_text(report))
    return report.exit_code
