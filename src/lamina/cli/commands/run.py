"""`lamina run`: process what has become due."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from lamina.cli.options import common_options, due_options, environment_options, examples, read_request
from lamina.cli.present.summary import show_outcome
from lamina.cli.spelling import same_request

if TYPE_CHECKING:
    from lamina.cli.invocation import Invocation


@click.command(epilog=examples("lamina run", "lamina run prod --select tag:nightly", "lamina run --ignore-cron"))
@environment_options
@due_options
@common_options
def run(invocation: Invocation, environment: str | None, **flags: Any) -> int:
    """Process what has become due, with recorded code.

    Due is what the schedules have released since. The project's model files are not read: an environment goes on with
    what was built into it. Gaps are filled. When nothing is due, the answer says when the next interval is.
    """
    request = read_request("run", invocation, environment, flags)
    with invocation.application() as (application, _):
        report = application.run(request)
    show_outcome(invocation.output, report, same_request(report.plan.now))
    return report.exit_code
