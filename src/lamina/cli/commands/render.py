"""`lamina render`: a model's SQL as Spark would get it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lamina.app.documents import SCHEMA_VERSION
from lamina.cli.options import common_options, examples, range_options

if TYPE_CHECKING:
    from lamina.cli.invocation import Invocation


@click.command(
    epilog=examples(
        "lamina render shop.daily_revenue",
        "lamina render shop.orders --start 2024-01-03 --end 2024-01-03",
        "lamina render shop.orders --env dev",
    )
)
@click.argument("model", metavar="MODEL")
@range_options
@click.option(
    "--env",
    "--virtual-env",
    "environment",
    metavar="NAME",
    help="An environment, for the code that it runs; the project's files if not given.",
)
@common_options
def render(invocation: Invocation, model: str, start: str | None, end: str | None, environment: str | None) -> int:
    """Print a model's SQL as Spark would get it.

    Macros and time variables are filled in, and tables are named by their versions: those of the project's files, or
    with `--env` those that the environment shows. Without a range it is the last complete interval. Spark is not
    started.
    """
    with invocation.application() as (application, _):
        sql = application.render(model, start=start, end=end, now=invocation.now(), environment=environment)
    if invocation.output.is_json:
        invocation.output.document(
            {"schema_version": SCHEMA_VERSION, "model": model, "environment": environment, "sql": sql}
        )
    else:
        invocation.output.text(sql)
    return 0
