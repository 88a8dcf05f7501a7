"""`lamina audit`: ask audits about what is built."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from lamina.app.requests import AuditsRequest
from lamina.cli.options import audit_options, common_options, environment_options, examples
from lamina.cli.present.audits import show_audits

if TYPE_CHECKING:
    from lamina.cli.invocation import Invocation


@click.command(
    epilog=examples(
        "lamina audit",
        "lamina audit dev --select shop.orders --start 2024-01-01 --end 2024-01-07",
        "lamina audit --json",
    )
)
@environment_options
@audit_options
@common_options
def audit(invocation: Invocation, environment: str | None, **flags: Any) -> int:
    """Ask audits about what is built.

    Every audit that the environment runs by is asked, whether it passed before or not: those of models, of the sources
    they read, and standalone ones. Models that are processed by intervals are asked about all time that is covered, or
    about the part between --start and --end. Nothing is computed and readers see no change.
    """
    request = AuditsRequest(environment=environment, now=invocation.now(), **flags)
    with invocation.application() as (application, _):
        report = application.audit(request)
    show_audits(invocation.output, report)
    return report.exit_code
