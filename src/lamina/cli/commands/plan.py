"""`lamina plan`: what would be done, and why."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from lamina.cli.commands.build import build
from lamina.cli.options import change_options, common_options, environment_options, examples, read_request
from lamina.cli.present.plan import (
    changes_anything,
    indented,
    next_step,
    plan_text,
    queries_document,
    query_title,
    warnings_text,
)
from lamina.cli.present.summary import failures_text, show_outcome
from lamina.cli.spelling import same_request
from lamina.errors import UsageError
from lamina.graph.model import SqlBody

if TYPE_CHECKING:
    from lamina.app.late_application import LateApplication
    from lamina.app.report import Report
    from lamina.cli.invocation import Invocation

CHANGES_FOUND = 3


@click.command(
    epilog=examples(
        "lamina plan",
        "lamina plan dev --select +shop.daily_revenue",
        "lamina plan --explain --execution-time 2024-01-08",
        "lamina plan dev --apply --yes",
    )
)
@environment_options
@change_options
@click.option("--explain", "is_explained", is_flag=True, help="Add the SQL of every step that computes something.")
@click.option("--apply", "is_applied", is_flag=True, help="Go on to build; asks first on a terminal.")
@click.option("--yes", "is_agreed", is_flag=True, help="With --apply: do not ask.")
@click.option(
    "--detailed-exit-code", "is_detailed", is_flag=True, help=f"Answer {CHANGES_FOUND} when there are changes."
)
@common_options
def plan(
    invocation: Invocation,
    environment: str | None,
    is_explained: bool,
    is_applied: bool,
    is_agreed: bool,
    is_detailed: bool,
    **flags: Any,
) -> int:
    """Say what `build` would do, and why.

    Nothing is touched and Spark is not started. Nodes stand under the reason for their work, with differences and
    intervals; what stays the same is only counted. With --apply the plan is built after it was shown.
    """
    _check(is_applied=is_applied, is_agreed=is_agreed, is_detailed=is_detailed)
    if is_applied:
        return _apply(invocation, environment, flags, is_agreed=is_agreed, is_explained=is_explained)
    request = read_request("plan", invocation, environment, flags)
    with invocation.application() as (application, _):
        report = application.plan(request)
        queries = _queries(application, report) if is_explained else {}
    if invocation.output.is_json:
        invocation.output.document(queries_document(report, queries) if is_explained else report.to_dict())
    else:
        _show(invocation, report, queries)
        invocation.output.note(next_step(report, same_request(report.plan.now, build)))
    if is_detailed and not report.exit_code and changes_anything(report):
        return CHANGES_FOUND
    return report.exit_code


def _check(*, is_applied: bool, is_agreed: bool, is_detailed: bool) -> None:
    if is_agreed and not is_applied:
        raise UsageError("`--yes` says nothing without `--apply`", hint="add `--apply`, or leave `--yes` out")
    if is_detailed and is_applied:
        raise UsageError(
            "`--detailed-exit-code` and `--apply` exclude each other",
            hint="plan first with `--detailed-exit-code`, then build",
        )
    if is_applied and not is_agreed and not sys.stdin.isatty():
        raise UsageError(
            "`--apply` asks before it builds, and nobody can answer here",
            hint="add `--yes` to build without being asked",
        )


def _apply(
    invocation: Invocation, environment: str | None, flags: dict[str, Any], *, is_agreed: bool, is_explained: bool
) -> int:
    request = read_request("build", invocation, environment, flags)
    is_declined = False
    with invocation.application() as (application, progress):

        def confirm(report: Report) -> bool:
            nonlocal is_declined
            if not invocation.output.is_json:
                _show(invocation, report, _queries(application, report) if is_explained else {})
            if not is_agreed:
                with progress.paused():
                    is_declined = not click.confirm(f"Build `{report.plan.environment}`?", err=True)
            return not is_declined

        report = application.build(request, confirm)
    show_outcome(invocation.output, report, same_request(report.plan.now, build))
    return 1 if is_declined else report.exit_code


def _show(invocation: Invocation, report: Report, queries: dict[str, str]) -> None:
    output = invocation.output
    output.note(*warnings_text(report))
    output.result(plan_text(report, is_verbose=output.is_verbose))
    for name, sql in queries.items():
        output.result("", query_title(name))
        output.text(indented(sql))
    output.note(*failures_text(report))


def _queries(application: LateApplication, report: Report) -> dict[str, str]:
    """The SQL of every step with work, for its first batch."""
    plan = report.plan
    found: dict[str, str] = {}
    for step in plan.steps:
        if step.computes and step.batches and isinstance(plan.models[step.node].body, SqlBody):
            interval = step.batches[0].time
            start, end = interval.to_pair() if interval else (None, None)
            found[step.node] = application.render(step.node, start=start, end=end, now=plan.now)
    return found
