"""Running the batches of a plan: parents first, unrelated branches side by side, failures kept to their descendants."""

from __future__ import annotations

import threading
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from lamina.app.auditing.outcomes import merged
from lamina.app.auditing.published_rows import Asked, ask_all
from lamina.app.auditing.sources_and_standalone import AuditRow, ask_source, refused_source
from lamina.app.building.follow_rewrites import reached_now
from lamina.app.leases.retried import retried
from lamina.app.leases.uninterrupted import uninterrupted
from lamina.app.ports.events import BatchFinished, BatchRetried, BatchStarted, NodeFailed, NodeSkipped, Retried
from lamina.app.report import NodeResult
from lamina.app.writing.write_version import VersionWriter
from lamina.errors import AuditFailed, BatchFailed, Cancelled, LaminaError, PlanOutdated
from lamina.graph.kinds import View, folds, has_intervals
from lamina.graph.sealing import hide_in, values_in
from lamina.planning.batches import USUAL_BATCHES_AT_ONCE, batches_of, concurrency_of, runs_of
from lamina.planning.rewrites import NOTHING_REACHED, follows
from lamina.planning.steps import Batch
from lamina.timeline.interval import EMPTY, Intervals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from lamina.app.leases.command_ports import CommandPorts
    from lamina.app.ports.events import Event
    from lamina.app.ports.facts import AuditResult
    from lamina.app.writing.batch_request import WriteTarget
    from lamina.app.writing.write_version import BatchOutcome
    from lamina.graph.names import NodeName
    from lamina.planning.rewrites import Reached
    from lamina.planning.steps import Plan, Question, Step

T = TypeVar("T")

_STOPPED = "the command was stopped before it was finished"


@dataclass(slots=True)
class _Progress:
    """A node while its batches run."""

    step: Step
    waiting: Iterator[Batch] = field(default_factory=lambda: iter(()))
    left: int = 0
    """How many batches were not begun."""
    total: int = 0
    limit: int = 1
    """How many may run side by side."""
    is_open: bool = False
    """Whether it is known what to compute; the first thing that is done is to find out."""
    running: int = 0
    finished: int = 0
    processed: Intervals = EMPTY
    changed: Intervals = EMPTY
    reached: Reached = NOTHING_REACHED
    """What is followed once all runs are done."""
    follows: bool = False
    """Whether recorded time is computed again because what it reads came out with other rows."""
    rows: int | None = None
    statements: int = 0
    null_times: int = 0
    remarks: tuple[str, ...] = ()
    begun: float | None = None
    writer: VersionWriter | None = None
    audits: tuple[AuditResult, ...] = ()
    error: LaminaError | None = None
    skipped: str | None = None
    is_same: bool = False
    """Nothing had to be done after all: the models it reads came out the same."""

    @property
    def is_over(self) -> bool:
        return self.running == 0 and ((self.is_open and not self.left) or self.is_stopped)

    @property
    def is_stopped(self) -> bool:
        return self.error is not None or self.skipped is not None or self.is_same


class Executor:
    """Performs a plan's steps through the ports; every finished batch is recorded at once."""

    def __init__(
        self,
        plan: Plan,
        ports: CommandPorts,
        target_of: Callable[[Step], WriteTarget],
        *,
        concurrency: int,
        is_fail_fast: bool,
    ) -> None:
        self._plan, self._ports, self._target_of, self._emit = plan, ports, target_of, ports.emit
        self._concurrency, self._is_fail_fast = max(1, concurrency), is_fail_fast
        self._results: dict[NodeName, NodeResult] = {}
        self._progress = {step.node: _Progress(step) for step in plan.steps if step.has_work}
        self._physical = {step.node: step.physical for step in plan.steps if step.physical is not None}
        self._is_stopping = threading.Event()
        self._outdated: dict[NodeName, NodeFailed | NodeSkipped] = {}
        self._sources: dict[NodeName, tuple[AuditResult, ...]] = {}
        self._sources_lock = threading.Lock()

    def run(self) -> dict[NodeName, NodeResult]:
        """Run everything that can run; results of nodes with work only.

        An interrupt cancels Spark's jobs, lets decided publishes finish and is raised again.
        """
        uninterrupted(self._run_all, self._stop)
        self._tell_outdated()
        return {name: result for name, result in self._results.items() if not self._is_silent(name, result)}

    def _tell_outdated(self) -> None:
        """Say what others kept from being built, unless that is all there is: then it is planned anew."""
        errors = [progress.error for progress in self._progress.values() if progress.error is not None]
        if not all(isinstance(error, PlanOutdated) for error in errors):
            for event in self._outdated.values():
                self._emit(event)

    def _is_silent(self, name: NodeName, result: NodeResult) -> bool:
        """Whether the plan did not promise anything for the node, and nothing came of it."""
        step = self._progress[name].step
        return not step.batches and (result.is_same or (step.makes_table and result.status == "succeeded"))

    def _run_all(self) -> None:
        running: dict[Future[BatchOutcome | None], tuple[_Progress, Batch | None]] = {}
        with ThreadPoolExecutor(max_workers=self._concurrency, thread_name_prefix="lamina-batch") as pool:
            while True:
                self._start_ready(pool, running)
                if not running:
                    break
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    self._collect(future, *running.pop(future))

    def _stop(self) -> None:
        """Begin nothing more, and end what can be ended."""
        self._is_stopping.set()
        self._ports.keeper.give_up_waiting()
        self._ports.engine.cancel()

    def _start_ready(
        self, pool: ThreadPoolExecutor, running: dict[Future[BatchOutcome | None], tuple[_Progress, Batch | None]]
    ) -> None:
        for progress in self._progress.values():
            if progress.step.node in self._results:
                continue
            if progress.begun is None and not self._settle_parents(progress):
                continue
            if self._is_stopping.is_set() and progress.left and not progress.is_stopped:
                progress.skipped = _STOPPED
            if progress.begun is None and len(running) < self._concurrency:
                progress.begun = self._ports.clock.elapsed()
                progress.running += 1
                running[pool.submit(self._open, progress)] = (progress, None)
            while (
                len(running) < self._concurrency
                and progress.left
                and progress.running < progress.limit
                and not progress.is_stopped
            ):
                batch = next(progress.waiting)
                progress.left -= 1
                progress.running += 1
                running[pool.submit(self._batch, progress, batch)] = (progress, batch)
            if progress.is_over:
                self._finish(progress)

    def _settle_parents(self, progress: _Progress) -> bool:
        """Whether the node may start; a failed parent or a stop settles it as skipped."""
        parents = [self._progress[name] for name in self._relevant_parents(progress.step.node)]
        failed = next((parent for parent in parents if parent.error or parent.skipped), None)
        if failed is not None and failed.step.node in self._results:
            why = (
                f"`{failed.step.node}` above it failed"
                if failed.error
                else f"`{failed.step.node}` above it was skipped"
            )
            progress.skipped = why
            event = NodeSkipped(node=progress.step.node, why=why)
            if failed.step.node in self._outdated:
                self._outdated[progress.step.node] = event
            else:
                self._emit(event)
            self._finish(progress)
            return False
        if self._is_stopping.is_set():
            progress.skipped = "the command was stopped before it was begun"
            self._finish(progress)
            return False
        return all(parent.step.node in self._results for parent in parents)

    def _relevant_parents(self, name: NodeName) -> list[NodeName]:
        """Nodes with work that `name` reads, looked through nodes without work."""
        found: list[NodeName] = []
        seen: set[NodeName] = set()
        waiting = [read for read in self._plan.models[name].reads if read != name]
        while waiting:
            read = waiting.pop()
            if read in seen or read not in self._plan.models:
                continue
            seen.add(read)
            if read in self._progress:
                found.append(read)
            else:
                waiting.extend(self._plan.models[read].reads)
        return found

    def _open(self, progress: _Progress) -> BatchOutcome | None:
        """Find out what there is to compute, in a worker thread: nodes above may have come out with other rows."""
        step = progress.step
        model = self._plan.models[step.node]
        if step.computes and not step.makes_table and model.source_audits:
            self._ask_sources(progress)
        if step.makes_table:
            progress.writer = VersionWriter(self._ports, self._target_of(step))
            self._begin(progress, (Batch(index=0, interval=None, is_empty=True),))
            return None
        if not has_intervals(model.kind) and step.again.is_empty:
            self._open_whole(progress)
            return None
        reached = NOTHING_REACHED
        if follows(self._plan.models, model):
            reached = reached_now(self._ports.store, self._plan, self._physical, step.node)
        following = reached.intervals.intersect(step.may_follow)
        self._ask(progress, following)
        if progress.is_stopped:
            return None
        if step.certain.is_empty and following.is_empty:
            self._leave(progress)
            return None
        progress.writer = VersionWriter(self._ports, self._target_of(step))
        progress.follows = not following.is_empty
        wanted = step.certain.union(following)
        if folds(model.kind):
            # Runs are never taken back: what they follow is remembered once the last of them is done.
            progress.reached = reached if reached.intervals.minus(wanted).is_empty else NOTHING_REACHED
            self._begin(progress, runs_of(model, wanted, begins_anew=False))
            return None
        if reached.followed:
            progress.writer.follow(reached)
        progress.limit = concurrency_of(model, wanted, USUAL_BATCHES_AT_ONCE)
        self._begin(progress, batches_of(model, wanted))
        return None

    def _ask(self, progress: _Progress, following: Intervals = EMPTY) -> None:
        """Ask what the plan found unasked about rows that are there, but for those that are computed again."""
        step = progress.step
        questions = [piece for question in step.questions for piece in _without(question, following)]
        if not questions:
            return
        if self._is_stopping.is_set():
            progress.skipped = _STOPPED
            return
        try:
            progress.audits = ask_all(self._ports, self._asked(step), questions)
        except AuditFailed as error:
            progress.audits = error.results
            raise

    def _asked(self, step: Step) -> Asked:
        target = self._target_of(step)
        return Asked(
            graph=target.graph,
            model=target.model,
            physical=target.physical,
            physical_of=target.physical_of,
            execution=target.execution,
            run_id=target.run_id,
            skips_audits=target.skips_audits,
        )

    def _ask_sources(self, progress: _Progress) -> None:
        """Have external tables audited before the first model reads them, once in a command."""
        asked = self._asked(progress.step)
        for source, calls in asked.model.source_audits.items():
            with self._sources_lock:
                if source not in self._sources:
                    self._sources[source] = ask_source(self._ports, asked, source, calls)
            error = refused_source(source, self._sources[source], asked)
            if error is not None:
                raise error

    def source_audits(self) -> tuple[AuditRow, ...]:
        """How the audits of external tables came out."""
        return tuple(
            AuditRow(node=name, type="source", result=result)
            for name, results in self._sources.items()
            for result in results
        )

    def _leave(self, progress: _Progress) -> None:
        """End a node of which nothing is computed: audits may have been asked."""
        if progress.audits:
            self._begin(progress, ())
        elif not progress.is_stopped:
            progress.is_same = True

    @staticmethod
    def _begin(progress: _Progress, batches: Sequence[Batch]) -> None:
        progress.waiting = iter(batches)
        progress.left = progress.total = len(batches)
        progress.is_open = True

    def _open_whole(self, progress: _Progress) -> None:
        step = progress.step
        if not step.computes:
            self._ask(progress)
            self._leave(progress)
            return
        is_view = isinstance(self._plan.models[step.node].kind, View)
        progress.writer = VersionWriter(self._ports, self._target_of(step))
        if step.continues is not None:
            seed = partial(progress.writer.seed, step.continues)
            self._retried(seed, partial(Retried, what=f"the copy of {step.node}"))
            self._begin(progress, step.batches)
            return
        may_be_same = step.reason in {"upstream_changed", "upstream_rewritten"} or not step.batches
        may_be_same &= step.certain.is_empty
        if may_be_same and not is_view and progress.writer.is_up_to_date():
            self._ask(progress)
            self._leave(progress)
            return
        progress.follows = not step.batches
        # One at a time, which is the limit unless said otherwise: a run that folds builds on the one before it.
        self._begin(progress, step.batches or (Batch(index=0, interval=None),))

    def _batch(self, progress: _Progress, batch: Batch) -> BatchOutcome | None:
        """One batch with its retries, in a worker thread; `None` when it was not done after all."""
        step, writer = progress.step, progress.writer
        if writer is None:
            raise RuntimeError(f"`{step.node}` was not opened")
        if self._is_stopping.is_set():
            progress.skipped = _STOPPED
            return None
        total = progress.total
        self._emit(BatchStarted(node=step.node, index=batch.index, total=total, interval=batch.time))
        begun = self._ports.clock.elapsed()
        outcome = self._retried(partial(writer.write, batch), partial(BatchRetried, node=step.node, index=batch.index))
        self._emit(
            BatchFinished(
                node=step.node,
                index=batch.index,
                total=total,
                interval=batch.time,
                rows=outcome.rows,
                seconds=self._ports.clock.elapsed() - begun,
                statements=outcome.statements,
            )
        )
        return outcome

    def _retried(self, work: Callable[[], T], event: Callable[..., Event]) -> T:
        pause = self._ports.retry_pause
        return retried(work, self._emit, event, pause=pause, is_stopped_within=self._is_stopping.wait)

    def _collect(self, future: Future[BatchOutcome | None], progress: _Progress, batch: Batch | None) -> None:
        progress.running -= 1
        error = future.exception()
        if isinstance(error, LaminaError):
            self._fail(progress, batch, error)
        elif error is not None:
            # A defect of ours must still leave the other nodes recorded.
            self._fail(progress, batch, BatchFailed(f"unexpected {type(error).__name__}: {error}"))
        else:
            outcome = future.result()
            if outcome is not None:
                progress.finished += 1
                progress.statements += outcome.statements
                progress.null_times += outcome.null_times
                progress.remarks += outcome.remarks
                progress.changed = progress.changed.union(outcome.changed)
                if batch is not None and batch.time is not None:
                    progress.processed = progress.processed.union(Intervals.of([batch.time]))
                if outcome.rows is not None:
                    progress.rows = (progress.rows or 0) + outcome.rows
        if progress.is_over:
            self._finish(progress)

    def _fail(self, progress: _Progress, batch: Batch | None, error: LaminaError) -> None:
        model = self._plan.models[progress.step.node]
        hide_in(error, values_in(self._plan.models.values()))
        error.node = error.node or str(progress.step.node)
        error.location = error.location or model.location
        if error.interval is None and batch is not None and batch.time is not None:
            error.interval = batch.time.to_pair()
        if progress.error is None:
            progress.error = error
            event = NodeFailed(node=progress.step.node, error=error)
            if isinstance(error, PlanOutdated):
                self._outdated[progress.step.node] = event
            elif not isinstance(error, Cancelled):
                self._emit(event)
        if self._is_fail_fast:
            self._is_stopping.set()

    def _finish(self, progress: _Progress) -> None:
        name = progress.step.node
        if name in self._results:
            return
        if progress.writer is not None:
            progress.audits = merged(progress.audits, progress.writer.audits)
            try:
                if progress.reached.followed and not progress.is_stopped:
                    progress.writer.remember(progress.reached)
                progress.writer.release()
            except LaminaError as error:
                progress.error = progress.error or error
            progress.writer = None
        seconds = self._ports.clock.elapsed() - progress.begun if progress.begun is not None else None
        status = "failed" if progress.error else "skipped" if progress.skipped or progress.is_same else "succeeded"
        why = "the models it reads came out the same" if progress.is_same else progress.skipped
        self._results[name] = NodeResult(
            status=status,  # type: ignore[arg-type]  # one of the three literals above
            rows=progress.rows,
            seconds=round(seconds, 3) if seconds is not None else None,
            batches=progress.finished,
            intervals=progress.processed,
            changed=progress.changed,
            follows=progress.follows,
            null_times=progress.null_times,
            remarks=progress.remarks,
            audits=progress.audits,
            statements=progress.statements,
            error=progress.error,
            explanation=f"skipped: {why}" if why else None,
            is_same=progress.is_same,
        )


def _without(question: Question, time: Intervals) -> Iterator[Question]:
    """The question about rows that do not belong to some time."""
    if question.interval is None or time.is_empty:
        yield question
        return
    for interval in Intervals.of([question.interval]).minus(time):
        yield replace(question, interval=interval)
