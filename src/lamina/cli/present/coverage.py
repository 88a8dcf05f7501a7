"""What of a model's time is covered, missing or waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from lamina.app.documents import SCHEMA_VERSION
from lamina.cli.present.tables import plain_table
from lamina.cli.present.words import interval_words

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lamina.app.looking.looking import ModelIntervals

_STYLES = {"covered": "green", "missing": "red", "waiting": "yellow"}


def coverage_document(found: ModelIntervals) -> dict[str, Any]:
    """The ranges as rows in the order of time, and by status."""
    rows = _rows(found)
    return {
        "schema_version": SCHEMA_VERSION,
        "model": found.model,
        "environment": found.environment,
        "kind": found.kind,
        "grain": found.grain,
        "explanation": found.explanation,
        "intervals": [{"interval": pair, "status": status, "waiting_for": names} for pair, status, names in rows],
        "covered": [list(pair) for pair in found.covered.to_pairs()],
        "missing": [list(pair) for pair in found.missing.to_pairs()],
        "waiting": [list(pair) for pair in found.waiting.to_pairs()],
        "waiting_for": list(found.waiting_for),
        "reads": list(found.reads),
    }


def coverage_text(found: ModelIntervals) -> RenderableType:
    """The ranges on lines of their own, oldest first."""
    head = Text.assemble(
        (found.model, "bold"), f" in {found.environment}: {found.kind}, unit {found.grain}\n{found.explanation}"
    )
    for read in found.reads:
        head.append(f"\nreads {read['name']} {read['window']}", style="dim")
    rows = _rows(found)
    if not rows:
        return head
    table = plain_table("interval", "status", "waits for")
    for pair, status, names in rows:
        table.add_row(interval_words(pair), Text(status, style=_STYLES[status]), ", ".join(names))
    return Group(head, "", table)


def _rows(found: ModelIntervals) -> list[tuple[list[str], str, list[str]]]:
    rows: list[tuple[list[str], str, list[str]]] = []
    names = list(dict.fromkeys(str(waiting["name"]) for waiting in found.waiting_for))
    rows += [(list(pair), "covered", []) for pair in found.covered.to_pairs()]
    rows += [(list(pair), "missing", []) for pair in found.missing.to_pairs()]
    rows += [(list(pair), "waiting", names) for pair in found.waiting.to_pairs()]
    return sorted(rows, key=lambda row: row[0])
