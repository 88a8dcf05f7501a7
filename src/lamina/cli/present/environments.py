"""Environments and what they point to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from lamina.app.documents import SCHEMA_VERSION
from lamina.cli.present.tables import plain_table
from lamina.cli.present.words import count_of, date_time_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from lamina.environments.pointers import Revision

_SHOWN_CHECKPOINTS = 5


def environments_document(revisions: Sequence[Revision], baseline: str) -> dict[str, Any]:
    """Every environment on a row."""
    return {
        "schema_version": SCHEMA_VERSION,
        "environments": [
            {
                "name": revision.environment,
                "status": revision.status,
                "baseline": baseline,
                "revision": revision.number,
                "models": len(revision.pointers),
                "created_at": revision.created_at.isoformat() if revision.created_at else None,
            }
            for revision in revisions
        ],
    }


def environments_text(revisions: Sequence[Revision], baseline: str) -> RenderableType:
    """Every environment on a line."""
    if not revisions:
        return Text("There is no environment yet; `lamina build` creates the first one")
    table = plain_table("environment", "status", revision="right", models="right", changed_at="left", note="left")
    for revision in revisions:
        table.add_row(
            revision.environment,
            revision.status,
            str(revision.number),
            str(len(revision.pointers)),
            date_time_words(revision.created_at),
            "baseline" if revision.environment == baseline else "",
        )
    return table


def environment_text(revision: Revision, checkpoints: Sequence[Revision], baseline: str) -> RenderableType:
    """One environment: status, pointers, checkpoints."""
    head = Text.assemble(
        "Environment ",
        (revision.environment, "bold"),
        f": {revision.status}, revision {revision.number}, baseline {baseline}",
    )
    table = plain_table("model", "version", "table")
    for name, pointer in sorted(revision.pointers.items()):
        table.add_row(name, pointer.version, pointer.physical or "none of its own")
    parts: list[RenderableType] = [head, "", table]
    if not revision.is_followed:
        parts.append(Text("its views are not all set yet; the next command sets them", style="yellow"))
    if checkpoints:
        shown = ", ".join(
            f"{point.number} ({date_time_words(point.created_at)})" for point in checkpoints[:_SHOWN_CHECKPOINTS]
        )
        rest = len(checkpoints) - _SHOWN_CHECKPOINTS
        more = f" and {count_of(rest, 'older one')}" if rest > 0 else ""
        parts += ["", Text(f"checkpoints: {shown}{more}")]
    return Group(*parts)
