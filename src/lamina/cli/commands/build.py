"""`lamina build`: make an environment match the project."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from lamina.cli.options import change_options, common_options, environment_options, examples, read_request
from lamina.cli.present.plan import plan_text, warnings_text
from lamina.cli.present.summary import show_outcome
from lamina.cli.spelling import same_request
from lamina.errors import UsageError

if TYPE_CHECKING:
    from lamina.app.report import Report
    from lamina.cli.invocation import Invocation


@click.command(
    epilog=examples(
        "lamina build",
        "lamina build dev --select state:modified+",
        "lamina build --restate shop.orders --start 2024-01-01 --end 2024-01-03",
    )
)
@environment_options
@change_options
@click.option("--yes", "is_agreed", is_flag=True, help="With --reset: do not ask.")
@common_options
def build(invocation: Invocation, environment: str | None, is_agreed: bool, **flags: Any) -> int:
    """Make an environment match the project.

    Stale models are built, missing intervals are processed, and the environment's views are pointed at the result.
    What is already there is not built again; a second build has nothing to do.
    """
    output = invocation.output
    request = read_request("build", invocation, environment, flags)
    resets = bool(request.flags.reset) and not is_agreed
    if resets and not sys.stdin.isatty():
        raise UsageError(
            "`--reset` asks before it begins from scratch, and nobody can answer here",
            hint="add `--yes` to lose the history of these models without being asked",
        )
    is_declined = False

    def announce(report: Report) -> bool:
        nonlocal is_declined
        output.note(*warnings_text(report))
        if not output.is_json:
            output.note(plan_text(report, is_verbose=output.is_verbose, has_differences=output.is_verbose), "")
        if resets:
            names = ", ".join(f"`{name}`" for name in request.flags.reset)
            with progress.paused():
                is_declined = not click.confirm(f"Lose the history of {names}?", err=True)
        return not is_declined

    with invocation.application() as (application, progress):
        report = application.build(request, announce)
    show_outcome(output, report, same_request(report.plan.now))
    return 1 if is_declined else report.exit_code
