"""`lamina history`: what was done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lamina.cli.options import common_options, examples
from lamina.cli.present.history import history_document, run_text, runs_text

if TYPE_CHECKING:
    from lamina.cli.invocation import Invocation


@click.command(epilog=examples("lamina history", "lamina history --limit 5", "lamina history 3f9c1e0a77b2"))
@click.argument("run", metavar="[RUN]", required=False)
@click.option(
    "--limit", metavar="N", type=click.IntRange(min=1), default=20, show_default=True, help="Show at most so many runs."
)
@common_options
def history(invocation: Invocation, run: str | None, limit: int) -> int:
    """List runs, or the batches of one run.

    Runs come newest first. With RUN every batch of it is shown with rows, time and failure.
    """
    with invocation.application() as (application, _):
        entries = application.history(run, limit)
    if invocation.output.is_json:
        invocation.output.document(history_document(entries))
    else:
        invocation.output.result(runs_text(entries) if run is None else run_text(entries[0]))
    return 0
