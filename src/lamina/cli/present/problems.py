"""Errors as text and as a document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from lamina.app.documents import SCHEMA_VERSION
from lamina.cli.present.words import count_of, interval_words

if TYPE_CHECKING:
    from lamina.errors import LaminaError


def problems_document(error: LaminaError) -> dict[str, Any]:
    """The document of a command that could not do its work."""
    return {"schema_version": SCHEMA_VERSION, "status": "failed", "errors": error.errors}


def problems_text(error: LaminaError) -> Text:
    """Every problem with its place and what to do next."""
    problems = error.problems
    text = Text("\n\n").join(problem_text(problem) for problem in problems)
    if len(problems) > 1:
        text.append(f"\n\n{count_of(len(problems), 'problem')} found", style="bold")
    return text


def problem_text(problem: LaminaError) -> Text:
    """One problem: code and message, then place, model, interval, SQL and hint as far as known."""
    text = Text.assemble(("error", "bold red"), " ", (problem.code, "bold"), f": {problem.message}")
    if problem.location is not None:
        text.append(f"\n  at {problem.location}")
    if problem.node is not None and f"`{problem.node}`" not in problem.message:
        text.append(f"\n  model: {problem.node}")
    if problem.interval is not None:
        text.append(f"\n  interval: {interval_words(problem.interval)}")
    sql = getattr(problem, "sql", None)
    if isinstance(sql, str) and sql.strip():
        text.append("\n  the SQL sent:\n")
        text.append("\n".join(f"    {line}" for line in sql.strip().splitlines()), style="dim")
    if problem.hint is not None:
        text.append("\n  hint: ", style="bold")
        text.append(problem.hint)
    return text
