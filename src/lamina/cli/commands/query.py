"""`lamina query`: rows of an environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lamina.cli.options import common_options, environment_option, examples
from lamina.cli.present.rows import rows_csv, rows_document, rows_note, rows_text
from lamina.errors import UsageError

if TYPE_CHECKING:
    from lamina.cli.invocation import Invocation


@click.command(
    epilog=examples(
        'lamina query "SELECT * FROM shop.daily_revenue ORDER BY 1"',
        'lamina query "SELECT count(*) FROM shop.orders" --env dev --json',
        'lamina query "SELECT * FROM shop.orders" --csv --limit 0 > orders.csv',
    )
)
@click.argument("sql", metavar="SQL")
@environment_option
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=0),
    default=1000,
    show_default=True,
    help="Fetch at most this many rows; 0 fetches all.",
)
@click.option("--csv", "is_csv", is_flag=True, help="Print CSV with a header line.")
@common_options
def query(invocation: Invocation, sql: str, environment: str | None, limit: int, is_csv: bool) -> int:
    """Run a query on Spark and print its rows.

    Names of models mean what the environment shows of them. Other tables are read at their own names.
    """
    output = invocation.output
    if is_csv and output.is_json:
        raise UsageError("`--csv` and `--json` exclude each other", hint="choose one of them")
    with invocation.application() as (application, _):
        result = application.query(sql, environment=environment, now=invocation.now(), limit=limit or None)
    if output.is_json:
        output.document(rows_document(result))
    elif is_csv:
        output.text(rows_csv(result))
    else:
        output.result(rows_text(result))
    if not output.is_json:
        output.note(rows_note(result))
    return 0
