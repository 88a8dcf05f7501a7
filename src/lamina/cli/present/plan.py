"""A plan as a tree: nodes under the reason for their work, with intervals and differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text
from rich.tree import Tree

from lamina.cli.present.words import count_of, date_time_words, intervals_words, short
from lamina.cli.spelling import clock_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rich.console import RenderableType

    from lamina.app.report import Report
    from lamina.graph.dag import Notice
    from lamina.planning.steps import Plan, Step

_TITLES = {
    "first_run": "first run",
    "query_changed": "query changed",
    "config_changed": "configuration changed",
    "function_changed": "function changed",
    "schema_changed": "columns changed",
    "upstream_changed": "upstream changed",
    "source_changed": "source may have changed",
    "missing_intervals": "missing intervals",
    "restated": "restated",
    "run_despite_unchanged": "runs although nothing changed",
    "upstream_rewritten": "upstream computed again",
    "forced": "forced",
}
_WITH_CAUSE = ("upstream_changed", "source_changed", "upstream_rewritten")
_ACTION_TITLES = {
    "wait": "waiting",
    "remove": "no longer in the project",
    "skip": "left out",
    "blocked": "blocked",
}
_LEFT_TO_BASELINE = "waiting for the baseline"
_MARKS = {
    "build": ("+", "green"),
    "seed_and_build": ("+", "green"),
    "reuse": ("=", "cyan"),
    "metadata": ("~", "yellow"),
    "skip": (".", "dim"),
    "wait": (".", "yellow"),
    "blocked": ("!", "bold red"),
    "remove": ("-", "red"),
}
_COUNTED = {
    "build": "to build",
    "seed_and_build": "to build",
    "reuse": "to reuse",
    "metadata": "with new metadata only",
    "wait": "waiting",
    "blocked": "blocked",
    "remove": "to remove",
    "skip": "unchanged",
}


_SHOWN_NAMES = 5


def changes_anything(report: Report) -> bool:
    """Whether building would change tables, pointers or the environment itself."""
    return report.plan.has_work or report.plan.revision == 0


def plan_text(report: Report, *, is_verbose: bool, has_differences: bool = True) -> RenderableType:
    """The whole plan: the environment, the tree, and how much there is to do."""
    steps = report.plan.steps if is_verbose else [step for step in report.plan.steps if not _is_unchanged(step)]
    parts: list[RenderableType] = [_headline(report)]
    if steps:
        parts.append("")
        parts.append(_tree(steps, is_verbose=is_verbose, has_differences=has_differences))
    if report.plan.standalone:
        names = ", ".join(report.plan.standalone)
        parts += ["", Text(f"standalone audits to ask: {names}", style="yellow")]
    parts += ["", _totals(report.plan)]
    return Group(*parts)


def warnings_text(report: Report) -> tuple[Text, ...]:
    """Every warning on a line of its own."""
    return (*(_warning(notice) for notice in report.plan.warnings), *notices_text(report))


def notices_text(report: Report) -> tuple[Text, ...]:
    """What came up while the plan was carried out, each on a line of its own."""
    return tuple(_warning(notice) for notice in report.notices)


def _warning(notice: Notice) -> Text:
    return Text.assemble(("warning", "bold yellow"), " ", (notice.code, "bold"), f": {notice.message}")


def query_title(name: str) -> Text:
    """What stands above the SQL of a model."""
    return Text.assemble("SQL of ", (name, "bold"), ":")


def indented(sql: str) -> str:
    """SQL below its title, as it is otherwise."""
    return "\n".join(f"  {line}" if line else line for line in sql.split("\n"))


def queries_document(report: Report, queries: Mapping[str, str]) -> dict[str, Any]:
    """The plan's document with the SQL added to its nodes."""
    document = report.to_dict()
    nodes = [{**node, "sql": queries.get(node["name"])} for node in document["nodes"]]
    return {**document, "nodes": nodes}


def next_step(report: Report, command: str) -> Text:
    """What carries the plan out, which is `command`, or how it can be made possible."""
    plan = report.plan
    if plan.is_blocked:
        return Text("This plan cannot be built as it is: see what is blocked above", style="bold")
    if plan.refused and not plan.has_work:
        return Text("Nothing else has to be built: see what is blocked above", style="bold")
    if plan.refused:
        return Text(f"`{command}` carries this out, all but what is blocked above", style="bold")
    if plan.has_work and all(step.action in {"skip", "wait"} for step in plan.steps):
        return Text(f"Nothing can be processed now: see what waits above; `{command}` makes the tables, without rows")
    if plan.has_work:
        return Text(f"`{command}` carries this out")
    if any(step.action == "wait" or step.waiting_for for step in plan.steps):
        return Text("Nothing can be processed now: see what waits above")
    left = left_to_baseline_text(plan, command)
    if plan.revision == 0:
        creates = Text(f"Nothing has to be computed; `{command}` creates the environment")
        return creates if left is None else Text("\n").join([creates, left])
    if left is not None:
        return Text("Nothing to compute here: the environment matches the project\n").append_text(left)
    return Text("Nothing to do: the environment matches the project and no interval is missing")


def _headline(report: Report) -> Text:
    plan = report.plan
    origin = f", begins as {plan.baseline}" if plan.revision == 0 and plan.environment != plan.baseline else ""
    revision = f", revision {plan.revision}" if plan.revision else ""
    return Text.assemble(
        "Environment ",
        (plan.environment, "bold"),
        f" ({report.environment_status}{revision}{origin}) of project {report.settings.name}, "
        f"as of {date_time_words(plan.now)} UTC",
    )


def _is_unchanged(step: Step) -> bool:
    return step.action == "skip" and step.reason == "unchanged" and step.left_to_baseline.is_empty


def _is_left_to_baseline(step: Step) -> bool:
    """Whether there is nothing to do here with a model, because another environment writes it."""
    return step.action == "skip" and step.reason == "unchanged" and not step.left_to_baseline.is_empty


def left_to_baseline_text(plan: Plan, command: str) -> Text | None:
    """What the environment waits for that shares models with its baseline; `None` where that is nothing.

    `command` carries the plan out, as a person would type it.
    """
    number = sum(1 for step in plan.steps if not step.left_to_baseline.is_empty)
    if not number:
        return None
    run = f"lamina run {plan.baseline}{clock_words(command)}"
    return Text(
        f"New intervals of {count_of(number, 'model')} are for {plan.baseline} to write first, which "
        f"{plan.environment} shares or follows: `{run}` writes those that are released"
    )


def _title(step: Step) -> str:
    if _is_unchanged(step):
        return "unchanged"
    if _is_left_to_baseline(step):
        return _LEFT_TO_BASELINE
    if step.action in _ACTION_TITLES:
        return _ACTION_TITLES[step.action]
    if step.action == "metadata" and step.questions:
        return "audits to ask"
    title = _TITLES.get(step.reason, step.reason.replace("_", " "))
    if step.reason in _WITH_CAUSE and step.cause is not None:
        return f"{title} (because of {step.cause})"
    return title


def _tree(steps: Iterable[Step], *, is_verbose: bool, has_differences: bool) -> Tree:
    groups: dict[str, list[Step]] = {}
    for step in steps:
        groups.setdefault(_title(step), []).append(step)
    last = [*_ACTION_TITLES.values(), _LEFT_TO_BASELINE, "unchanged"]
    root = Tree("", hide_root=True)
    for title in sorted(groups, key=lambda title: last.index(title) + 1 if title in last else 0):
        branch = root.add(Text(title, style="bold"))
        for step in groups[title]:
            _add_step(branch, step, is_verbose=is_verbose, has_differences=has_differences)
    return root


def _add_step(branch: Tree, step: Step, *, is_verbose: bool, has_differences: bool) -> None:
    leaf = branch.add(_step_line(step))
    if _is_unchanged(step):
        return
    if step.batches and not step.intervals.is_empty:
        ranges = intervals_words(step.intervals, is_complete=is_verbose)
        leaf.add(Text(f"{ranges}: {count_of(len(step.batches), 'batch')}", style="cyan"))
    leaf.add(Text(step.explanation, style="dim"))
    if not step.may_follow.is_empty and not step.certain.is_empty:
        ranges = intervals_words(step.may_follow, is_complete=is_verbose)
        leaf.add(Text(f"again where what it reads comes out different: {ranges}", style="cyan"))
    for read in step.reads if is_verbose else ():
        begin = "its beginning" if read.start is None else date_time_words(read.start)
        leaf.add(Text(f"reads {read.name} from {begin} to {date_time_words(read.end)}", style="dim"))
    if step.changed_columns:
        leaf.add(Text(f"columns: {', '.join(step.changed_columns)}"))
    if step.diff and has_differences:
        leaf.add(difference_text(step.diff))


def _step_line(step: Step) -> Text:
    mark, style = _MARKS[step.action]
    word = "wait" if _is_left_to_baseline(step) else step.action.replace("_", " ")
    line = Text.assemble((f"{mark} {word} ", style), (step.node, "bold"), f"  {step.kind}")
    if step.version is not None:
        line.append(f"  {short(step.version)}", style="dim")
    if step.previous_version is not None and step.previous_version != step.version:
        line.append(
            f" (was {short(step.previous_version)})" if step.version else f"  {short(step.previous_version)}", "dim"
        )
    if step.change is not None:
        line.append(f"  {step.change.replace('_', '-')}{_reached_words(step)}", style="yellow")
    return line


def _reached_words(step: Step) -> str:
    """Why a change is called breaking or not."""
    match step.change:
        case "breaking":
            shown = ", ".join(step.reaches[:_SHOWN_NAMES])
            more = f" and {len(step.reaches) - _SHOWN_NAMES} more" if len(step.reaches) > _SHOWN_NAMES else ""
            return f": reaches {shown}{more}"
        case "non_breaking":
            return ": reaches no other table"
        case _:
            return ""


def difference_text(difference: str) -> Text:
    """A unified diff, added lines green and removed lines red."""
    text = Text()
    for line in difference.rstrip("\n").split("\n"):
        if line.startswith(("+++", "---")):
            style = "bold"
        elif line.startswith("@@"):
            style = "cyan"
        else:
            style = {"+": "green", "-": "red"}.get(line[:1], "")
        text.append(f"{line}\n", style=style)
    text.rstrip()
    return text


def _counted(step: Step) -> str:
    if _is_left_to_baseline(step):
        return _LEFT_TO_BASELINE
    return "left out" if step.action == "skip" and not _is_unchanged(step) else _COUNTED[step.action]


def _totals(plan: Plan) -> Text:
    numbers: dict[str, int] = {}
    for step in plan.steps:
        word = _counted(step)
        numbers[word] = numbers.get(word, 0) + 1
    batches = sum(len(step.batches) for step in plan.steps)
    if "to build" in numbers:
        words = [f"{numbers.pop('to build')} to build ({count_of(batches, 'batch')})"]
    else:
        words = ["nothing to build"]
    words += [f"{number} {word}" for word, number in numbers.items()]
    return Text(", ".join(words), style="bold")
