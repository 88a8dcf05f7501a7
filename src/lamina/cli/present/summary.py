"""What a build or run did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from lamina.cli.present.plan import left_to_baseline_text, notices_text, plan_text, warnings_text
from lamina.cli.present.problems import problem_text
from lamina.cli.present.tables import plain_table
from lamina.cli.present.words import count_of, date_time_words, seconds_words
from lamina.errors import AnalysisFailed
from lamina.graph.names import shown_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType
    from rich.table import Table

    from lamina.app.report import NodeResult, Report
    from lamina.cli.present.output import Output
    from lamina.errors import LaminaError
    from lamina.graph.names import NodeName
    from lamina.planning.steps import Step

_STYLES = {"succeeded": "green", "failed": "bold red", "skipped": "yellow", "reused": "cyan"}
_COUNTED = {"succeeded": "built", "failed": "failed", "skipped": "skipped", "reused": "reused"}
_AUDITED = "audited"


def show_outcome(output: Output, report: Report, command: str) -> None:
    """Print the report of `build` or `run`: results on stdout, failures and what to do next on stderr.

    `command` is what was asked, as a person would type it.
    """
    if output.is_json:
        output.document(report.to_dict())
        return
    match report.status:
        case "nothing_to_do":
            output.note(*warnings_text(report))
            output.result(*_nothing_to_do(report, command))
        case "blocked" if report.plan.is_blocked:
            output.note(*warnings_text(report))
            output.result(plan_text(report, is_verbose=output.is_verbose, has_differences=False))
            output.note(Text("Blocked: nothing was changed", style="bold red"))
        case "planned":
            output.note(Text("Not built: nothing was changed", style="bold"))
        case _:
            if report.results:
                output.result(_results_table(report))
            output.result(_totals(report))
            output.note(*notices_text(report))
            output.note(*_waiting(report), *_blocked(report), *_failures(report, command))


def _results_table(report: Report) -> Table:
    rows = [(step, report.results[step.node]) for step in report.plan.steps if step.node in report.results]
    notes = [_note(result) for _, result in rows]
    table = plain_table("model", "status", rows="right", batches="right", seconds="right")
    if any(notes):
        table.add_column("note", overflow="fold")
    for (step, result), note in zip(rows, notes, strict=True):
        cells: list[RenderableType] = [
            step.node,
            Text(result.status, style=_STYLES[result.status]),
            "" if result.rows is None else f"{result.rows:,}",
            _batches(step, result),
            "" if result.seconds is None else f"{result.seconds:.1f}",
        ]
        table.add_row(*cells, *([note] if any(notes) else []))
    return table


def _batches(step: Step, result: NodeResult) -> str:
    """What was done of what was planned; models above decide how much that is in the end."""
    if result.status == "succeeded" or not step.batches:
        return str(result.batches) if result.batches else ""
    return f"{result.batches} of {len(step.batches)}"


def _note(result: NodeResult) -> str:
    if result.error is not None:
        return result.error.code
    if _word(result) == _AUDITED:
        return f"{count_of(len(result.audits), 'audit')} asked, nothing computed"
    return (result.explanation or "").removeprefix("skipped: ")


def _word(result: NodeResult) -> str:
    """What became of a node; one of which only audits were asked was not built."""
    is_audited = result.status == "succeeded" and not result.batches and bool(result.audits)
    return _AUDITED if is_audited else _COUNTED[result.status]


def _totals(report: Report) -> Text:
    results = report.results.values()
    numbers = {word: sum(1 for result in results if _word(result) == word) for word in (*_COUNTED.values(), _AUDITED)}
    words = [f"{number} {word}" for word, number in numbers.items() if number]
    rows = sum(result.rows or 0 for result in results)
    batches = sum(result.batches for result in results)
    figures = [count_of(batches, "batch"), count_of(rows, "row")] if batches else []
    figures += [f"{count_of(report.views, 'view')} changed", f"in {seconds_words(report.seconds)}"]
    style = "bold green" if report.status == "succeeded" else "bold red"
    run = f", run {report.run_id}" if report.run_id else ""
    return Text.assemble(
        (report.status, style),
        f": {', '.join([*words, *figures])}\n",
        f"environment {report.plan.environment} is {report.environment_status}{run}",
    )


def _nothing_to_do(report: Report, command: str) -> Iterator[Text]:
    waiting, left = list(_waiting(report)), left_to_baseline_text(report.plan, command)
    name = report.plan.environment
    if left is not None:
        waiting.append(left)
    if waiting:
        yield Text(f"Nothing to do in {name} right now")
        yield from waiting
    elif report.plan.command == "run":
        yield Text(f"Nothing to do: no interval of {name} is due")
    else:
        yield Text(f"Nothing to do: {name} matches the project and no interval is missing")
    if report.next_release is not None:
        yield Text(f"The next interval is due at {date_time_words(report.next_release)} UTC")


def _waiting(report: Report) -> Iterator[Text]:
    for step in report.plan.steps:
        if step.action == "wait" or step.waiting_for:
            yield Text.assemble(("waiting", "yellow"), f" {step.node}: {step.explanation}")


def _blocked(report: Report) -> Iterator[Text]:
    for step in report.plan.steps:
        if step.node in report.plan.refused:
            yield Text.assemble((step.node, "bold"), f" is {step.explanation}", style="red")


def failures_text(report: Report) -> Iterator[Text]:
    """What went wrong with each model, in the order of the plan; a table that is not there is told once."""
    failed: dict[NodeName, LaminaError] = {}
    readers: dict[str, list[NodeName]] = {}
    for step in report.plan.steps:
        result = report.results.get(step.node)
        if result is None or result.error is None:
            continue
        table = _missing_table(result.error)
        if table is None or table not in readers:
            failed[step.node] = result.error
        if table is not None:
            readers.setdefault(table, []).append(step.node)
    for error in failed.values():
        table = _missing_table(error)
        others = readers[table][1:] if table is not None else []
        also = [Text(f"  {shown_names(others)} failed for the same reason")] if others else []
        yield Text("\n").join([Text(), problem_text(error), *also])


def _missing_table(error: LaminaError) -> str | None:
    return error.missing_table if isinstance(error, AnalysisFailed) else None


def _failures(report: Report, command: str) -> Iterator[Text]:
    failed = list(failures_text(report))
    yield from failed
    if failed:
        plan = report.plan
        mend = "Fix what is named above" if plan.command == "build" else "Remove the cause named above"
        repeats = any(step.reason in {"restated", "forced"} for step in plan.steps)
        goes_on = "computes it again" if repeats else "goes on: what succeeded is not computed again"
        yield Text(f"\n{mend}, then `{command}` {goes_on}", style="bold")
        if report.run_id:
            yield Text(f"`lamina history {report.run_id}` lists every batch of this run")
