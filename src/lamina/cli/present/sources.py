"""External tables and their columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from lamina.cli.present.tables import plain_table
from lamina.cli.present.words import count_of

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lamina.app.looking.register_source import RegisteredSource
    from lamina.app.looking.source_columns import SourceColumnsReport


def source_columns_text(report: SourceColumnsReport) -> RenderableType:
    """Every table that was looked at, and what became of it."""
    if not report.tables:
        return Text("Nothing to do: the columns of every external table that models read are declared")
    table = plain_table("table", "columns", "status", "file")
    for each in report.tables:
        columns = str(len(each.columns)) if each.error is None else ""
        table.add_row(str(each.name), columns, each.status, each.file or "")
    counts = {status: sum(each.status == status for each in report.tables) for status in ("written", "outdated")}
    if report.is_check:
        return Group(table, "", Text(f"{count_of(counts['outdated'], 'table')} would be written"))
    return Group(table, "", Text(f"{count_of(counts['written'], 'table')} written"))


def registered_text(found: RegisteredSource) -> RenderableType:
    """The new table with its columns, and how it is read."""
    table = plain_table("column", "type")
    for column in found.columns:
        table.add_row(column.name, column.type or "")
    name = found.table.name
    head = Text.assemble(("registered ", "green"), (name, "bold"), f": {found.table.format} at {found.table.path}")
    end = Text(f"Models and queries read it as `{name}`, such as in `lamina query 'SELECT * FROM {name}'`")
    return Group(head, "", table, "", end)
