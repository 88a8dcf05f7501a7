"""`lamina source`: external tables as the project declares them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lamina.app.requests import FILE_FORMATS, RegisterRequest, SourceColumnsRequest
from lamina.cli.groups import CommandGroup
from lamina.cli.options import common_options, examples
from lamina.cli.present.problems import problems_text
from lamina.cli.present.sources import registered_text, source_columns_text
from lamina.errors import Problems, UsageError

if TYPE_CHECKING:
    from lamina.cli.invocation import Invocation


@click.group(cls=CommandGroup)
def source() -> None:
    """Register and declare the external tables that models read."""


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


@source.command(
    "register",
    epilog=examples(
        "lamina source register raw.orders --path data/orders --format parquet",
        "lamina source register raw.prices --path prices.csv --format csv --option header=true",
    ),
)
@click.argument("name", metavar="TABLE")
@click.option("--path", metavar="PATH", required=True, help="The file or folder, or an address such as s3a://bucket/x.")
@click.option(
    "--format",
    "file_format",
    metavar="FORMAT",
    required=True,
    type=click.Choice(FILE_FORMATS),
    help=f"How the files are written: {', '.join(FILE_FORMATS)}.",
)
@click.option(
    "--option", "options", metavar="KEY=VALUE", multiple=True, help="What Spark needs to read them; repeatable."
)
@common_options
def source_register(invocation: Invocation, name: str, path: str, file_format: str, options: tuple[str, ...]) -> int:
    """Make files known to Spark's catalog as a table that models can read.

    The files stay where and as they are: Lamina neither writes nor removes them, and what is added to the folder later
    is read too. TABLE is a schema of your own and a table; a name that exists is refused. The columns are those that
    Spark finds in the files now.
    """
    pairs = tuple(option.partition("=") for option in options)
    wrong = [key for key, equals, _ in pairs if not key or not equals]
    if wrong:
        raise UsageError(f"`--option {wrong[0]}` has no value", hint="write `--option header=true`")
    request = RegisterRequest(
        now=invocation.now(),
        name=name,
        path=path,
        format=file_format,
        options=tuple((key, value) for key, _, value in pairs),
    )
    with invocation.application() as (application, _):
        found = application.register_source(request)
    if invocation.output.is_json:
        invocation.output.document(found.to_dict())
    else:
        invocation.output.result(registered_text(found))
    return 0
