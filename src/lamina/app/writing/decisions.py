"""What is published of a batch that was written aside: decided as a value, before anything is committed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from typing_extensions import assert_never

from lamina.app.ports.engine import Aside, NewTable, OnBranch, Shown
from lamina.app.ports.published import AddPartitions, CommitRows, FastForward, Head, WriteThrough, switch_to
from lamina.app.writing.batch_request import description_of, within
from lamina.app.writing.contents import contents_after
from lamina.app.writing.layers import after_adding, lay_over
from lamina.errors import PlanOutdated
from lamina.planning.draft import ALL_TIME, before_end
from lamina.timeline.interval import EMPTY, Intervals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lamina.app.ports.engine import Base, Written
    from lamina.app.ports.published import Attempt, PartitionKey, Publish, TableShape
    from lamina.app.writing.batch_request import WriteTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A publish with what state is told about it; without a `head` it is a change in place, which moves it when done.

    With `folders` the generation must be made over exactly these first.
    """

    publish: Publish
    head: Head | None
    rewritten: Intervals
    statements: int
    folders: Mapping[PartitionKey, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What a decision depends on beside the batch: the base as it is now, and who asked for what."""

    target: WriteTarget
    attempt: Attempt
    base: Base | None
    is_asked: bool
    writer: str
    number: Callable[[], int]
    """Gives a transaction its number, higher than any before."""


def decide(now: Circumstances, written: Written) -> Decision:
    """What to publish so that readers see what was written, whatever the place in which it lies."""
    rewritten = rewritten_by(now, written)
    match written.place:
        case None:
            return _decide_folders(now, written, rewritten)
        case NewTable(snapshot=snapshot):
            head = _head(now, written, now.attempt.generation, snapshot)
            return Decision(
                publish=switch_to(head, description_of(now.target.model)), head=head, rewritten=rewritten, statements=1
            )
        case Aside(action=action):
            change = CommitRows(
                head=_head_in_place(now, written, None),
                rewritten=rewritten,
                is_asked=now.is_asked and not rewritten.is_empty,
                folder=now.attempt.folder,
                action=action,
                transaction=now.number(),
                writer=now.writer,
            )
            return Decision(publish=change, head=None, rewritten=rewritten, statements=1)
        case OnBranch(branch=branch, snapshot=snapshot, former=former):
            forward = FastForward(
                head=_head_in_place(now, written, snapshot),
                rewritten=rewritten,
                is_asked=now.is_asked and not rewritten.is_empty,
                branch=branch,
                former=former,
            )
            return Decision(publish=forward, head=None, rewritten=rewritten, statements=2)
        case Shown(publish=publish):
            return Decision(publish=publish, head=None, rewritten=rewritten, statements=0)
        case _:
            assert_never(written.place)


def decide_through(now: Circumstances, shape: TableShape) -> WriteThrough:
    """A batch that will be its own publish; what it measures comes later, so the most that it may rewrite counts."""
    if now.base is None:
        raise PlanOutdated(f"`{now.target.model.name}` has no table yet that could be written to")
    attempt = now.attempt
    rewritten = EMPTY if attempt.interval is None else _filled(now, Intervals.of([attempt.interval]))
    head = Head(
        physical=attempt.physical,
        sequence=now.base.head.sequence + 1,
        generation=now.base.head.generation,
        attempt=attempt.number,
        shape=shape,
    )
    return WriteThrough(
        head=head,
        rewritten=rewritten,
        is_asked=now.is_asked and not rewritten.is_empty,
        transaction=now.number(),
        writer=now.writer,
    )


def landed_head(now: Circumstances, written: Written, publish: WriteThrough, snapshot: int | None) -> Head:
    """The head of a batch that was its own publish, with all that was measured."""
    return _head(now, written, publish.generation, snapshot)


def is_unchanged(now: Circumstances, written: Written) -> bool:
    """Whether what is shown is what came out, so that there is nothing to publish."""
    base, interval = now.base, now.attempt.interval
    if isinstance(written.place, Shown) or base is None or written.shape != base.head.shape:
        return False
    if interval is None:
        is_same = None in written.contents and written.contents[None] == base.head.contents.get(None)
        return _has_no_effect(written) or is_same
    recorded = within(interval, now.target.recorded_time)
    return written.changed.is_empty and recorded.covers(interval)


def _has_no_effect(written: Written) -> bool:
    if written.place is None:
        return bool(written.shape.partition_columns) and not written.folders and not written.removed
    return not isinstance(written.place, NewTable) and not written.rows


def rewritten_by(now: Circumstances, written: Written) -> Intervals:
    """Time that came out different from what its readers may have read.

    A whole table counts only where somebody asked for it: it changes whenever something above it grows, and nobody
    wants all of its readers' history computed again each time.
    """
    interval = now.attempt.interval
    if interval is not None:
        filled = _filled(now, Intervals.of([interval])) if written.rows else EMPTY
        return written.changed.union(filled)
    return ALL_TIME if now.is_asked and now.base is not None else EMPTY


def _filled(now: Circumstances, time: Intervals) -> Intervals:
    """Gaps before the end of recorded time: whoever read over them has not seen these rows."""
    recorded = now.target.recorded_time
    return before_end(time.minus(recorded), recorded)


def _decide_folders(now: Circumstances, written: Written, rewritten: Intervals) -> Decision:
    """Partitions that only join what is shown are added; else a new generation takes its place.

    That is one over all folders, or one of what was replaced, laid over the one that holds the rest.
    """
    base, attempt = now.base, now.attempt
    if base is not None and _only_adds(base, written):
        head = replace(_head(now, written, base.head.generation, None), beneath=after_adding(base, written.folders))
        addition = AddPartitions(
            physical=attempt.physical,
            generation=head.generation,
            shape=written.shape,
            partitions=written.folders,
        )
        statements = 1 if written.folders else 0
        return Decision(publish=addition, head=head, rewritten=rewritten, statements=statements)
    folders = dict(base.manifest) if base else {}
    for key in written.removed:
        folders.pop(key, None)
    folders.update(written.folders)
    beneath = lay_over(base, written) if base is not None else None
    if beneath is not None and beneath.above is not None:
        folders = {key: folders[key] for key in beneath.above}
    head = replace(_head(now, written, attempt.generation, None), beneath=beneath)
    statements = 2 + (1 if folders and written.shape.partition_columns else 0)
    return Decision(
        publish=switch_to(head, description_of(now.target.model)),
        head=head,
        rewritten=rewritten,
        statements=statements,
        folders=folders,
    )


def _only_adds(base: Base, written: Written) -> bool:
    is_replacing = bool(written.removed) or any(key in base.manifest for key in written.folders)
    return written.shape == base.head.shape and bool(written.shape.partition_columns) and not is_replacing


def _head_in_place(now: Circumstances, written: Written, snapshot: int | None) -> Head:
    if now.base is None:
        raise PlanOutdated(f"`{now.target.model.name}` has no table that could be changed")
    return _head(now, written, now.base.head.generation, snapshot)


def _head(now: Circumstances, written: Written, generation: str, snapshot: int | None) -> Head:
    return Head(
        physical=now.attempt.physical,
        sequence=(now.base.head.sequence if now.base else 0) + 1,
        generation=generation,
        attempt=now.attempt.number,
        shape=written.shape,
        contents=contents_after(now.attempt.interval, now.base, written),
        snapshot=snapshot,
    )
