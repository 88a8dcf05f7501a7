"""What `doctor` found."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from lamina.app.documents import SCHEMA_VERSION
from lamina.cli.present.tables import plain_table
from lamina.cli.present.words import count_of
from lamina.graph.formats import TABLE_FORMATS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from lamina.bootstrap import Diagnosis

ABILITIES = {
    "is_built_in": "comes with Spark",
    "keeps_history": "table versions that can be read by number",
    "can_replace_where": "replaces a time range in place",
    "can_merge": "MERGE: writes only rows that change",
    "has_transactions": "takes a numbered write once",
    "has_branches": "audits rows on a branch",
    "can_clone": "copies a table without its files",
    "has_transforms": "partition transforms that readers are pruned by",
    "can_cluster": "`clustered_by`",
}

_STYLES = {"ok": "green", "warning": "yellow", "fault": "bold red"}


def checkup_document(checks: Sequence[Diagnosis]) -> dict[str, Any]:
    """Every check on a row."""
    return {
        "schema_version": SCHEMA_VERSION,
        "checks": [asdict(check) for check in checks],
        "formats": [
            {"name": one.name, "abilities": {key: getattr(one, key) for key in ABILITIES}}
            for one in TABLE_FORMATS.values()
        ],
    }


def checkup_text(checks: Sequence[Diagnosis]) -> RenderableType:
    """Every check on a line, its fix below the table."""
    table = plain_table("check", "status", "found")
    for check in checks:
        table.add_row(check.name, Text(check.status, style=_STYLES.get(check.status, "")), check.detail)
    fixes = [Text(f"{check.name}: {check.fix}") for check in checks if check.fix and check.status != "ok"]
    faults = sum(1 for check in checks if check.status == "fault")
    verdict = Text(f"{count_of(faults, 'fault')} found" if faults else "no fault found", style="bold")
    advice = [Text("What to do:", style="bold"), *fixes, Text()] if fixes else []
    return Group(table, Text(), _abilities(), Text(), *advice, verdict)


def _abilities() -> RenderableType:
    """What each table format can do."""
    table = plain_table("ability", *TABLE_FORMATS)
    for key, words in ABILITIES.items():
        table.add_row(words, *("yes" if getattr(one, key) else "–" for one in TABLE_FORMATS.values()))
    return table
