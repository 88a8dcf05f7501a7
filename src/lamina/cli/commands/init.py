"""`lamina init`: a new project."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lamina.cli.options import common_options, examples
from lamina.cli.present.project import created_document, created_text, next_steps

if TYPE_CHECKING:
    from lamina.cli.invocation import Invocation


@click.command(epilog=examples("lamina init shop", "lamina init pipelines --template empty --format parquet"))
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--template",
    type=click.Choice(["shop", "empty"]),
    default="shop",
    show_default=True,
    help="What the project holds at first.",
)
@click.option(
    "--format",
    "table_format",
    type=click.Choice(["parquet", "delta", "iceberg"]),
    default="parquet",
    show_default=True,
    help="The format of its tables.",
)
@common_options
def init(invocation: Invocation, folder: Path, template: str, table_format: str) -> int:
    """Create a project that builds at once.

    DIR is a new or empty folder. Files that are already there are never overwritten.
    """
    place = (invocation.open_options.directory or Path()) / folder
    files = invocation.services.init_project(place, template, table_format)
    output = invocation.output
    if output.is_json:
        output.document(created_document(place, files))
    else:
        output.result(created_text(place, files))
        output.note(next_steps(place))
    return 0
