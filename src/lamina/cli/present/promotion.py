"""What a promotion did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from lamina.cli.present.tables import plain_table
from lamina.cli.present.words import count_of, intervals_words, short

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lamina.app.environments.promote import PromoteReport


def promotion_text(report: PromoteReport) -> RenderableType:
    """Every model that moved, and what the environment is now."""
    found = report.promotion
    names = f"{found.source.environment} to {found.destination.environment}"
    if not found.changes_anything:
        return Text(f"Nothing to do: {found.destination.environment} shows what {found.source.environment} shows")
    table = plain_table("model", "version", "before", "gaps")
    for move in found.moves:
        lacking = report.gaps.get(move.node)
        table.add_row(
            str(move.node),
            short(move.pointer.version),
            short(move.previous.version) if move.previous else "new",
            intervals_words(lacking) if lacking else "",
        )
    for name in found.removed:
        table.add_row(str(name), "removed", "", "")
    changed = count_of(len(found.moves), "model")
    return Group(
        table,
        "",
        Text.assemble(("promoted", "bold green"), f" {names}: {changed}, {count_of(report.views, 'view')} changed"),
        Text(f"environment {found.destination.environment} is {found.status}"),
    )
