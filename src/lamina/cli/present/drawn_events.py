"""Events as people see them: live lines on a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, TimeElapsedColumn
from rich.progress import Progress as LiveLines
from rich.text import Text
from typing_extensions import assert_never

from lamina.app.ports.events import (
    Analysing,
    AuditsAsked,
    BatchFinished,
    BatchRetried,
    BatchStarted,
    NodeFailed,
    NodeSkipped,
    Recovering,
    Retried,
    SparkStarted,
    SparkStarting,
    StatementsNotRun,
    StatementsRun,
    VariableIgnored,
    ViewsChanged,
    ViewsLeft,
    Waiting,
    WorkPlanned,
)
from lamina.cli.present.words import count_of, interval_words, seconds_words

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Task, TaskID

    from lamina.app.ports.events import Event


class DrawnEvents:
    """Draws events on stderr, one after the other."""

    def __init__(self, console: Console) -> None:
        is_live = console.is_terminal and not console.is_dumb_terminal
        self._console = console
        self._lines = _Lines(console) if is_live else None

    def draw(self, event: Event) -> None:
        """Draw one event."""
        if self._lines is not None:
            self._lines.follow(event)
        text = _lasting(event) if self._lines is not None else _lasting(event) or _passing(event)
        if text is not None:
            self._console.print(text)

    def clear(self) -> None:
        """Leave nothing behind that moves."""
        if self._lines is not None:
            self._lines.clear()


class _Lines:
    """The lines that move: what is going on now, one per running batch, and a bar for the whole."""

    def __init__(self, console: Console) -> None:
        spinner = "dots" if console.encoding.startswith("utf") else "line"
        self._lines = LiveLines(
            SpinnerColumn(spinner),
            _What(),
            _Bar(bar_width=24),
            _Done(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._is_moving = False
        self._current: TaskID | None = None
        self._whole: TaskID | None = None
        self._batches: dict[tuple[str, int], TaskID] = {}

    def follow(self, event: Event) -> None:
        """Move the lines on by one event."""
        match event:
            case SparkStarting() | Analysing():
                self._replace_current(_passing(event))
            case Waiting():
                self._replace_current(Text("waiting"))
            case Recovering():
                self._replace_current(Text("recovering"))
            case SparkStarted() | ViewsChanged():
                self._replace_current(None)
            case WorkPlanned():
                self._replace_current(None)
                self._whole = self._add("all batches", total=event.batches)
            case BatchStarted():
                self._batches[event.node, event.index] = self._add(_batch_name(event), total=None)
            case BatchFinished():
                self._end_batch(event.node, event.index)
                if self._whole is not None:
                    self._lines.advance(self._whole)
            case NodeFailed():
                for node, index in [key for key in self._batches if key[0] == event.node]:
                    self._end_batch(node, index)
            case (
                BatchRetried()
                | Retried()
                | ViewsLeft()
                | NodeSkipped()
                | AuditsAsked()
                | StatementsRun()
                | StatementsNotRun()
                | VariableIgnored()
            ):
                pass
            case _:
                assert_never(event)

    def clear(self) -> None:
        """Stop moving and leave nothing behind."""
        for task in list(self._lines.task_ids):
            self._lines.remove_task(task)
        self._current = self._whole = None
        self._batches.clear()
        if self._is_moving:
            self._lines.stop()
            self._is_moving = False

    def _add(self, what: str, total: int | None) -> TaskID:
        if not self._is_moving:
            self._lines.start()
            self._is_moving = True
        return self._lines.add_task(what, total=total)

    def _replace_current(self, text: Text | None) -> None:
        if self._current is not None:
            self._lines.remove_task(self._current)
            self._current = None
        if text is not None:
            self._current = self._add(text.plain, total=None)

    def _end_batch(self, node: str, index: int) -> None:
        task = self._batches.pop((node, index), None)
        if task is not None:
            self._lines.remove_task(task)


class _What(ProgressColumn):
    """The name of a line, taken literally."""

    def render(self, task: Task) -> Text:
        return Text(task.description)


class _Bar(BarColumn):
    """A bar for lines whose end is known."""

    def render(self, task: Task) -> RenderableType:  # type: ignore[override]  # an empty cell instead of a pulsing bar
        return super().render(task) if task.total is not None else Text()


class _Done(ProgressColumn):
    """How many of how many."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.completed:.0f}/{task.total:.0f}" if task.total is not None else "")


def _batch_name(event: BatchStarted | BatchFinished) -> str:
    number = f" {event.index + 1}/{event.total}" if event.total > 1 else ""
    interval = f" {interval_words(event.interval)}" if event.interval is not None else ""
    return f"{event.node}{number}{interval}"


def _at_most(event: Waiting | ViewsLeft) -> str:
    if event.seconds is None:
        return ""
    return f"; if that command no longer runs, this takes at most {max(1, math.ceil(event.seconds))} s"


def _lasting(event: Event) -> Text | None:
    """The line of an event that stays on the screen; `None` for events that only move the live lines."""
    match event:
        case Waiting():
            return Text(f"waiting for {event.what}: {event.holder}{_at_most(event)}", style="yellow")
        case ViewsLeft():
            what = f"left views of {event.environment} to another command: {event.holder}"
            return Text(f"{what}{_at_most(event)}", style="yellow")
        case Recovering():
            return Text(f"recovering {event.resource}: {event.detail}", style="yellow")
        case BatchRetried():
            return Text(
                f"retrying {event.node} batch {event.index + 1} after try {event.attempt}: {event.error.message}",
                style="yellow",
            )
        case Retried():
            return Text(f"retrying {event.what} after try {event.attempt}: {event.error.message}", style="yellow")
        case NodeFailed():
            return Text(f"failed {event.node}: {event.error.message}", style="red")
        case StatementsNotRun():
            return Text(f"failed {event.node}: a statement behind its view in {event.environment}", style="red")
        case VariableIgnored():
            return Text(f"environment variable `{event.name}` sets nothing: {event.hint}", style="yellow")
        case NodeSkipped():
            return Text(f"skipped {event.node}: {event.why}", style="yellow")
        case _:
            return None


def _passing(event: Event) -> Text | None:
    """The line of an event that is worth a line only where nothing moves."""
    match event:
        case SparkStarting():
            return Text(f"starting {event.detail}")
        case SparkStarted():
            return Text(f"Spark {event.version} started in {seconds_words(event.seconds)}")
        case Analysing():
            return Text(f"Spark checks {count_of(event.models, 'query')}")
        case WorkPlanned():
            return Text(f"{count_of(event.batches, 'batch')} to process")
        case BatchFinished():
            rows = f"{count_of(event.rows, 'row')}, " if event.rows is not None else ""
            return Text(f"done {_batch_name(event)}: {rows}{seconds_words(event.seconds)}")
        case AuditsAsked():
            interval = f" {interval_words(event.interval)}" if event.interval is not None else ""
            outcome = f"{event.failed} failed" if event.failed else "passed"
            return Text(f"asked {count_of(event.audits, 'audit')} of {event.about}{interval}: {outcome}")
        case ViewsChanged():
            return Text(f"{count_of(event.views, 'view')} of {event.environment} changed")
        case StatementsRun():
            return Text(f"statements behind views of {event.environment} run for {count_of(event.models, 'model')}")
        case _:
            return None
