"""Tables in the one look that all commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

if TYPE_CHECKING:
    from typing import Literal


def plain_table(*columns: str, **aligned: Literal["left", "right"]) -> Table:
    """An empty table; columns named by position are left-aligned, those by keyword as said."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for name in columns:
        table.add_column(name.replace("_", " "), overflow="fold")
    for name, side in aligned.items():
        table.add_column(name.replace("_", " "), justify=side, overflow="fold")
    return table
