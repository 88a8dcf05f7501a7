"""Runs and their batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from lamina.app.documents import SCHEMA_VERSION
from lamina.cli.present.tables import plain_table
from lamina.cli.present.words import date_time_words, interval_words, moment_words, seconds_words
from lamina.timeline.interval import MICROS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType
    from rich.table import Table

    from lamina.app.ports.facts import AuditsRecorded, BatchRecorded
    from lamina.app.ports.loaded import HistoryEntry


_SHOWN_MODELS = 3


def history_document(entries: Sequence[HistoryEntry]) -> dict[str, Any]:
    """Every run with its batches."""
    return {"schema_version": SCHEMA_VERSION, "history": [_run(entry) for entry in entries]}


def runs_text(entries: Sequence[HistoryEntry]) -> RenderableType:
    """Every run on a line."""
    if not entries:
        return Text("Nothing has been built yet")
    table = plain_table("run", "command", "environment", "status", "started", "worked at")
    for name in ("took", "batches", "rows"):
        table.add_column(name, justify="right", overflow="fold")
    table.add_column("models", overflow="fold")
    for entry in entries:
        seconds = _seconds(entry)
        table.add_row(
            entry.run_id,
            entry.command,
            entry.environment,
            _status(entry.status),
            date_time_words(entry.started_at),
            moment_words(entry.execution_time),
            "" if seconds is None else seconds_words(seconds),
            str(len(entry.batches)),
            f"{sum(batch.rows or 0 for batch in entry.batches):,}",
            _names(entry.nodes),
        )
    return table


def run_text(entry: HistoryEntry) -> RenderableType:
    """One run with its batches and their failures."""
    seconds = _seconds(entry)
    took = "not finished" if seconds is None else f"took {seconds_words(seconds)}"
    head = Text.assemble(
        "Run ",
        (entry.run_id, "bold"),
        f": {entry.command} of {entry.environment}, {entry.status}, {took}, "
        f"started {date_time_words(entry.started_at)} UTC, worked at {date_time_words(entry.execution_time)} UTC",
    )
    table = plain_table("model", "interval", "status", rows="right", seconds="right", statements="right")
    for batch in entry.batches:
        table.add_row(
            batch.node,
            interval_words(batch.interval) if batch.interval else "",
            _status(batch.status),
            "" if batch.rows is None else f"{batch.rows:,}",
            f"{batch.seconds:.1f}",
            str(batch.statements),
        )
    failures = [_failure(batch) for batch in entry.batches if batch.error]
    parts: list[RenderableType] = [head]
    if entry.batches:
        parts += ["", table]
    if entry.audits:
        parts += ["", _audits_table(entry.audits)]
    return Group(*parts, *failures)


def _names(nodes: Sequence[str]) -> str:
    more = len(nodes) - _SHOWN_MODELS
    return ", ".join(nodes[:_SHOWN_MODELS]) + (f" and {more} more" if more > 0 else "")


def _audits_table(audits: Sequence[AuditsRecorded]) -> Table:
    table = plain_table("audited", "interval", "audit", "status", failing="right")
    for recorded in audits:
        for result in recorded.results:
            table.add_row(
                recorded.node,
                interval_words(recorded.interval) if recorded.interval else "",
                result.call,
                _status(result.status),
                f"{result.failing_rows:,}" if result.failing_rows else "",
            )
    return table


def _failure(batch: BatchRecorded) -> Text:
    error = batch.error or {}
    hint = f"\n  hint: {error['hint']}" if error.get("hint") else ""
    return Text.assemble(
        ("\nerror", "bold red"), f" {error.get('code', '')}: {batch.node}: {error.get('message', '')}{hint}"
    )


def _status(status: str) -> Text:
    return Text(status, style={"succeeded": "green", "passed": "green", "failed": "bold red"}.get(status, "yellow"))


def _seconds(entry: HistoryEntry) -> float | None:
    if entry.finished_at is None:
        return None
    return (entry.finished_at.micros - entry.started_at.micros) / MICROS_PER_SECOND


def _run(entry: HistoryEntry) -> dict[str, Any]:
    seconds = _seconds(entry)
    return {
        "run_id": entry.run_id,
        "command": entry.command,
        "environment": entry.environment,
        "status": entry.status,
        "started_at": entry.started_at.isoformat(),
        "finished_at": entry.finished_at.isoformat() if entry.finished_at else None,
        "execution_time": entry.execution_time.isoformat(),
        "models": list(entry.nodes),
        "seconds": None if seconds is None else round(seconds, 3),
        "batches": [_batch(batch) for batch in entry.batches],
        "audits": [audit for recorded in entry.audits for audit in _audits(recorded)],
    }


def _audits(recorded: AuditsRecorded) -> list[dict[str, Any]]:
    return [
        {
            "node": recorded.node,
            "name": result.name,
            "call": result.call,
            "status": result.status,
            "blocking": result.is_blocking,
            "failing_rows": result.failing_rows,
            "failing_rows_at": result.kept_at,
            "interval": list(recorded.interval.to_pair()) if recorded.interval else None,
            "finished_at": recorded.recorded_at.isoformat(),
        }
        for result in recorded.results
    ]


def _batch(batch: BatchRecorded) -> dict[str, Any]:
    return {
        "name": batch.node,
        "physical_table": batch.physical,
        "interval": list(batch.interval.to_pair()) if batch.interval else None,
        "status": batch.status,
        "rows": batch.rows,
        "seconds": round(batch.seconds, 3),
        "statements": batch.statements,
        "finished_at": batch.finished_at.isoformat(),
        "error": dict(batch.error) if batch.error else None,
    }
