"""`lamina source`: external tables as the project declares them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lamina.app.requests import SourceColumnsRequest
from lamina.cli.groups import CommandGroup
from lamina.cli.options import common_options, examples
from lamina.cli.present.problems import problems_text
from lamina.cli.present.sources import source_columns_text
from lamina.errors import Problems, UsageError

if TYPE_CHECKING:
    from lamina.cli.invocation import Invocation


@click.group(cls=CommandGroup)
def source() -> None:
    """Declare the external tables that models read."""


@source.command(
    "columns",
    epilog=examples(
        "lamina source columns", "lamina source columns raw.orders", "lamina source columns --all --check --json"
    ),
)
@click.argument("names", metavar="[TABLE]...", nargs=-1)
@click.option("--all", "is_all", is_flag=True, help="Also tables whose columns are declared already.")
@click.option("--check", "is_check", is_flag=True, help="Write nothing; fail if something would be written.")
@common_options
def source_columns(invocation: Invocation, names: tuple[str, ...], is_all: bool, is_check: bool) -> int:
    """Write the columns of external tables, as Spark's catalog has them, into the project.

    Without a name these are the tables that models read and whose columns are not declared. A table is changed where it
    is declared; others are added to external_models.yaml if there is one, and to a file in sources/ if not.
    Descriptions that are there stay.
    """
    if names and is_all:
        raise UsageError("`--all` and names of tables exclude each other", hint="give one of them")
    request = SourceColumnsRequest(now=invocation.now(), names=names, is_all=is_all, is_check=is_check)
    with invocation.application() as (application, _):
        report = application.source_columns(request)
    if invocation.output.is_json:
        invocation.output.document(report.to_dict())
        return report.exit_code
    invocation.output.result(source_columns_text(report))
    if report.errors:
        invocation.output.note(problems_text(Problems(report.errors)))
    return report.exit_code
