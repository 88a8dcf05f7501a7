"""How audits came out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from lamina.cli.present.problems import problem_text
from lamina.cli.present.tables import plain_table
from lamina.cli.present.words import count_of, intervals_words, seconds_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.table import Table

    from lamina.app.auditing.environment import AuditsReport
    from lamina.app.auditing.sources_and_standalone import AuditRow
    from lamina.cli.present.output import Output

_STYLES = {"passed": "green", "failed": "bold red", "skipped": "yellow"}


def show_audits(output: Output, report: AuditsReport) -> None:
    """Print the report of `audit`: how each came out on stdout, what to look at on stderr."""
    if output.is_json:
        output.document(report.to_dict())
        return
    if not report.rows:
        output.result(Text(f"Nothing to do: no model of {report.environment} that was asked about has audits"))
        return
    output.result(_table(report), _totals(report))
    output.note(*_to_look_at(report))


def _table(report: AuditsReport) -> Table:
    table = plain_table("node", "audit", "status", failing="right")
    table.add_column("note", overflow="fold")
    for row in report.rows:
        result = row.result
        style = _STYLES[result.status] if result.is_blocking or result.status != "failed" else "yellow"
        failing = f"{result.failing_rows:,}" if result.failing_rows else ""
        table.add_row(row.node, result.call, Text(result.status, style=style), failing, _note(row))
    return table


def _note(row: AuditRow) -> str:
    if row.error is not None:
        return row.error.code
    if row.explanation is not None:
        return row.explanation
    parts = [] if row.intervals.is_empty else [intervals_words(row.intervals)]
    if row.result.status == "failed" and not row.result.is_blocking:
        parts.append("does not block")
    return ", ".join(parts)


def _totals(report: AuditsReport) -> Text:
    numbers = {status: sum(row.result.status == status for row in report.rows) for status in _STYLES}
    lenient = sum(row.result.status == "failed" and not row.result.is_blocking for row in report.rows)
    words = [f"{number} {status}" for status, number in numbers.items() if number]
    if lenient:
        words.append(f"{lenient} of the failures {'does' if lenient == 1 else 'do'} not block")
    style = "bold green" if report.status == "succeeded" else "bold red"
    return Text.assemble(
        (report.status, style),
        f": {count_of(len(report.rows), 'audit')} of {report.environment}, {', '.join(words)}, "
        f"in {seconds_words(report.seconds)}",
    )


def _to_look_at(report: AuditsReport) -> Iterator[Text]:
    told = set()
    for row in report.rows:
        if row.error is not None and id(row.error) not in told:
            told.add(id(row.error))
            yield Text("\n").join([Text(), problem_text(row.error)])
        if row.result.looking is not None:
            yield Text(f"rows that {row.result.call} of {row.node} found:\n    {row.result.looking}")
