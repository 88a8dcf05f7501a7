"""Progress on a terminal and elsewhere."""

from __future__ import annotations

import io
import threading

import pytest
from rich.console import Console

from lamina.app.ports.events import (
    Analysing,
    AuditsAsked,
    BatchFinished,
    BatchRetried,
    BatchStarted,
    Event,
    NodeFailed,
    NodeSkipped,
    Recovering,
    Retried,
    SparkStarted,
    SparkStarting,
    ViewsChanged,
    ViewsLeft,
    Waiting,
    WorkPlanned,
)
from lamina.cli.present.progress import Progress
from lamina.errors import QueryFailed, TransientFailure
from lamina.graph.names import NodeName
from lamina.timeline.interval import Interval
from tests.kit.models import instant
from tests.unit.cli.conftest import Lamina
from tests.unit.cli.fake_application import FakeApplication, Shop, succeeded

ORDERS = NodeName("shop.orders")
DAY = Interval(instant("2024-01-02"), instant("2024-01-03"))


def started(index: int = 0, node: NodeName = ORDERS) -> BatchStarted:
    return BatchStarted(node=node, index=index, total=7, interval=DAY)


def finished(index: int = 0, node: NodeName = ORDERS) -> BatchFinished:
    return BatchFinished(node=node, index=index, total=7, interval=DAY, rows=1, seconds=0.42, statements=3)


EVENTS: tuple[Event, ...] = (
    Waiting(what="the embedded catalog", holder="`lamina build` (process 4711 on host)"),
    SparkStarting(detail="Spark on local[*]"),
    SparkStarted(version="4.1.4", seconds=5.04),
    Recovering(resource="shop__lamina.orders__v_1", detail="a decided batch is published"),
    ViewsLeft(environment="dev", holder="`lamina build` (process 4711 on host)", seconds=80.5),
    Analysing(models=2),
    WorkPlanned(batches=8),
    started(),
    BatchRetried(node=ORDERS, index=0, attempt=1, error=TransientFailure("executor lost")),
    finished(),
    Retried(what="audits of shop.orders", attempt=2, error=TransientFailure("slow down")),
    started(1),
    NodeFailed(node=ORDERS, error=QueryFailed("division by zero")),
    NodeSkipped(node=NodeName("shop.page"), why="`shop.orders` above it failed"),
    AuditsAsked(about=ORDERS, audits=2, failed=1, interval=DAY),
    AuditsAsked(about="sums_agree", audits=1, failed=0),
    ViewsChanged(environment="prod", views=3),
)


def test_without_a_terminal_each_step_is_one_plain_line(lamina: Lamina, application: FakeApplication, shop: Shop):
    application.events, application.report = EVENTS, succeeded(shop.plan())

    lines = lamina("run").stderr.splitlines()

    assert lines == [
        "waiting for the embedded catalog: `lamina build` (process 4711 on host)",
        "starting Spark on local[*]",
        "Spark 4.1.4 started in 5.0 s",
        "recovering shop__lamina.orders__v_1: a decided batch is published",
        "left views of dev to another command: `lamina build` (process 4711 on host); if that command no longer runs, "
        "this takes at most 81 s",
        "Spark checks 2 queries",
        "8 batches to process",
        "retrying shop.orders batch 1 after try 1: executor lost",
        "done shop.orders 1/7 2024-01-02: 1 row, 0.4 s",
        "retrying audits of shop.orders after try 2: slow down",
        "failed shop.orders: division by zero",
        "skipped shop.page: `shop.orders` above it failed",
        "asked 2 audits of shop.orders 2024-01-02: 1 failed",
        "asked 1 audit of sums_agree: passed",
        "3 views of prod changed",
    ]


def test_progress_never_reaches_stdout(lamina: Lamina, application: FakeApplication, shop: Shop):
    application.events, application.report = EVENTS, succeeded(shop.plan())

    assert "Spark" not in lamina("run", "--json").stdout


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def terminal(width: int = 100) -> tuple[Console, Terminal]:
    stream = Terminal()
    return Console(file=stream, force_terminal=True, width=width, markup=False, emoji=False, highlight=False), stream


def test_on_a_terminal_running_batches_and_the_whole_are_live_lines():
    console, stream = terminal()
    with Progress(console) as progress:
        for event in (WorkPlanned(batches=8), started(), started(1), finished()):
            progress.show(event)
        progress._drawn._lines._lines.refresh()
        drawn = stream.getvalue()

    assert "shop.orders 2/7 2024-01-02" in drawn
    assert "all batches" in drawn
    assert "1/8" in drawn


def test_a_spinner_turns_while_spark_starts():
    console, stream = terminal()
    with Progress(console) as progress:
        progress.show(SparkStarting(detail="Spark on local[*]"))
        progress._drawn._lines._lines.refresh()
        assert "starting Spark on local[*]" in stream.getvalue()
        progress.show(SparkStarted(version="4.1.4", seconds=5.0))
        assert progress._drawn._lines._lines.task_ids == []


def test_live_lines_are_gone_at_the_end_and_what_matters_stays():
    console, stream = terminal()
    with Progress(console) as progress:
        for event in EVENTS:
            progress.show(event)

    assert progress._drawn._lines._lines.task_ids == []
    text = stream.getvalue()
    assert "failed shop.orders: division by zero" in text
    assert "skipped shop.page" in text
    assert "done shop.orders" not in text


@pytest.mark.parametrize("width", [1, 10, 20])
def test_a_narrow_terminal_does_not_break_progress(width: int):
    console, _ = terminal(width)
    with Progress(console) as progress:
        for event in EVENTS:
            progress.show(event)
            if progress._drawn._lines._is_moving:
                progress._drawn._lines._lines.refresh()


def test_a_question_can_be_asked_in_between():
    console, _ = terminal()
    with Progress(console) as progress:
        progress.show(SparkStarting(detail="Spark"))
        with progress.paused():
            assert not progress._drawn._lines._is_moving
        progress.show(SparkStarting(detail="Spark"))
        assert progress._drawn._lines._is_moving


def test_events_may_come_from_many_threads():
    console, _ = terminal()
    with Progress(console) as progress:
        progress.show(WorkPlanned(batches=80))

        def work(number: int) -> None:
            node = NodeName(f"shop.m{number}")
            for index in range(10):
                progress.show(started(index, node))
                progress.show(finished(index, node))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (whole,) = progress._drawn._lines._lines.tasks

    assert whole.completed == 80
