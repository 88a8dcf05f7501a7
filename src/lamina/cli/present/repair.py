"""What a repair found and did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from lamina.cli.present.tables import plain_table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lamina.app.building.repair import RepairReport


def repair_text(report: RepairReport) -> RenderableType:
    """Every model whose rows were gone, every view that showed something else."""
    if not report.rows:
        return Text(f"Nothing to do: all rows of {report.environment} are there, and its views show them")
    table = plain_table("name", "what", "status", "")
    for row in report.rows:
        table.add_row(row.name, row.type, row.status, row.message)
    missing = [place for row in report.rows for place in row.missing]
    said = [Text(f"not there: {missing[0]}" + (f" and {len(missing) - 1} more" if missing[1:] else ""))]
    return Group(table, "", *(said if missing else ()), Text(f"environment {report.environment}: {report.status}"))
