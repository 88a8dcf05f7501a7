"""`lamina intervals`: what of a model's time is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lamina.cli.options import common_options, environment_option, examples, read_request
from lamina.cli.present.coverage import coverage_document, coverage_text

if TYPE_CHECKING:
    from lamina.cli.invocation import Invocation


@click.command(epilog=examples("lamina intervals shop.orders", "lamina intervals shop.orders --env dev --json"))
@click.argument("model", metavar="MODEL")
@environment_option
@common_options
def intervals(invocation: Invocation, model: str, environment: str | None) -> int:
    """Show what of a model's time is done.

    Every range is covered, missing or waiting, with the reason. The answer is about the code that the environment
    runs, not about the files.
    """
    request = read_request("run", invocation, environment, {})
    with invocation.application() as (application, _):
        found = application.intervals(model, request)
    if invocation.output.is_json:
        invocation.output.document(coverage_document(found))
    else:
        invocation.output.result(coverage_text(found))
    return 0
