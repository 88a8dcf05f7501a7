"""A plan while it is being made: what is known of every node so far, parents first."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lamina.graph.kinds import may_be_restated
from lamina.planning.readiness import Readiness
from lamina.planning.replay import keeps_history, restating_begins_anew
from lamina.timeline.interval import EMPTY, FIRST_INSTANT, LAST_INSTANT, Interval, Intervals

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamina.environments.pointers import Pointer
    from lamina.graph.names import NodeName
    from lamina.planning.inputs import Copy, PlanInputs, Read, VersionFacts
    from lamina.planning.reasons import Difference
    from lamina.planning.steps import Reason, Unfollowed
    from lamina.timeline.interval import Instant

ALL_TIME = Intervals.of([Interval(FIRST_INSTANT, LAST_INSTANT)])


def before_end(time: Intervals, recorded: Intervals) -> Intervals:
    """The part of some time that lies before the end of what was recorded.

    Readers may have read over a gap there, so filling it changes what they would read; what is added behind the end
    nobody can have read.
    """
    span = recorded.span()
    return EMPTY if span is None else time.intersect(Intervals.of([Interval(FIRST_INSTANT, span.end)]))


@dataclass(slots=True, kw_only=True)
class Work:
    """What a node needs.

    `redone` is recorded time that stops counting when the plan is applied; `recorded` all that was ever recorded.
    `may_follow` is what is computed again only if a parent comes out with other rows. `followed` says up to which
    heads of the parents `redone` follows their rewrites. `is_asked` marks work that a person asked for, here or above.
    """

    is_whole: bool = False
    begins_anew: bool = False
    """Whether a table that is made run by run is emptied first, and with it whatever only earlier runs knew."""
    reason: Reason = "unchanged"
    cause: NodeName | None = None
    readiness: Readiness = field(default_factory=lambda: Readiness(ready=EMPTY, waiting=EMPTY))
    redone: Intervals = EMPTY
    recorded: Intervals = EMPTY
    may_follow: Intervals = EMPTY
    left_out: Intervals = EMPTY
    """Missing time that the command's own bounds leave out."""
    left_to_baseline: Intervals = EMPTY
    """Missing time that the baseline has to write first, or alone writes because the version is shared with it."""
    followed: tuple[Read, ...] = ()
    again: Intervals = EMPTY
    """Recorded time that runs go over once more, or may have to, because rows that they read were rewritten."""
    unfollowed: Unfollowed | None = None
    is_asked: bool = False
    has_grown: bool = False
    """Whether a whole build that goes back to a request also takes in what was not there before."""
    restated_at: Instant | None = None
    """Set when the model's own schedule asked for it."""
    next_tick: Instant | None = None
    """When the model's cron releases what there is to do, where it has not yet."""

    @property
    def awaits_tick(self) -> bool:
        """Whether rows that are known to be new wait for the model's cron."""
        return self.next_tick is not None and self.reason != "source_changed"

    @property
    def is_certain(self) -> bool:
        """Whether something is computed whatever the parents come out like."""
        return self.is_whole or not self.readiness.ready.is_empty

    @property
    def is_needed(self) -> bool:
        """Whether anything is, or may be, or would be computed if it did not have to wait."""
        waits = self.awaits_tick or not self.readiness.waiting.is_empty
        return self.is_certain or waits or self.is_asked_for_later

    @property
    def is_only_told(self) -> bool:
        """Whether nothing is done but tell somebody that the node does not follow a rewrite."""
        return self.unfollowed is not None and not self.is_needed

    @property
    def is_asked_for_later(self) -> bool:
        """Whether what may follow goes back to somebody's request, and so belongs in the plan."""
        return self.is_asked and not self.may_follow.is_empty

    @property
    def brings_new(self) -> bool:
        """Whether rows are computed that are not merely those of before once more; where nobody can tell, they are."""
        ready, again = self.readiness.ready, self.recorded
        if ready.is_empty:
            return self.is_whole and (self.has_grown or not self.is_asked)
        if self.is_asked:
            again = again.union(self.redone).union(self.again)
        return not ready.minus(again).is_empty

    @property
    def recomputed(self) -> Intervals:
        """Time that readers may have read before and that may come out with other rows."""
        if self.is_whole:
            return ALL_TIME if self.is_asked else EMPTY
        return before_end(self.readiness.ready, self.recorded).union(self.may_follow)


@dataclass(slots=True, kw_only=True)
class Draft:
    """Everything known so far, keyed by node."""

    inputs: PlanInputs
    before: Mapping[NodeName, Pointer]
    differences: Mapping[NodeName, Difference]
    chosen: frozenset[NodeName]
    restated: frozenset[NodeName]
    reset: frozenset[NodeName]
    """Those of `restated` that begin from scratch, whatever protects or keeps what they hold."""
    starts: Mapping[NodeName, Instant]
    forks: Mapping[NodeName, Copy] = field(default_factory=dict)
    continuations: Mapping[NodeName, Copy] = field(default_factory=dict)
    works: dict[NodeName, Work] = field(default_factory=dict)
    available: dict[NodeName, tuple[Instant, Intervals]] = field(default_factory=dict)
    blocked_by: dict[NodeName, tuple[NodeName, ...]] = field(default_factory=dict)
    refused: Mapping[NodeName, str] = field(default_factory=dict)
    """Nodes that cannot be built whatever else is, and why."""
    unready: dict[NodeName, str] = field(default_factory=dict)
    """Nodes that will have no table after this plan, and why; nothing that reads them can be built."""
    without_rows: dict[NodeName, str] = field(default_factory=dict)
    """Nodes whose table is made without rows, and why: nothing can be processed yet, but readers and runs need it."""

    @property
    def requested(self) -> frozenset[NodeName]:
        """Nodes that somebody asked to compute again."""
        return self.chosen if self.inputs.flags.force else self.restated

    def is_requested(self, name: NodeName) -> bool:
        """Whether somebody asked to compute this node again."""
        return self.inputs.flags.force or name in self.restated

    def is_protected(self, name: NodeName) -> bool:
        """Whether the model forbids computing again what it holds, and nobody has overruled it."""
        return name not in self.reset and not may_be_restated(self.inputs.graph.models[name].kind)

    def begins_anew(self, name: NodeName) -> bool:
        """Whether what somebody asked for builds a table anew that is the sum of its runs."""
        model = self.inputs.graph.models[name]
        if name in self.reset:
            return True
        return restating_begins_anew(model) if name in self.restated else not keeps_history(model)

    @property
    def respects_cron(self) -> bool:
        """Whether only what cron has released is processed."""
        return self.inputs.command == "run" and not self.inputs.flags.ignore_cron

    @property
    def is_baseline(self) -> bool:
        """Whether the plan is for the environment that others inherit from."""
        return self.inputs.environment.environment == self.inputs.baseline_name

    def facts(self, name: NodeName) -> VersionFacts | None:
        """What state knows of the node's version."""
        physical = self.inputs.physical.get(name)
        return self.inputs.facts.get(physical) if physical is not None else None

    def is_shared(self, name: NodeName) -> bool:
        """Whether the version belongs to the baseline, which alone may write it."""
        pointer = self.inputs.baseline.pointers.get(name)
        if self.is_baseline or pointer is None or pointer.version != self.inputs.versions[name].version:
            return False
        return pointer.physical == self.inputs.physical.get(name)

    def version_reason(self, name: NodeName, otherwise: Reason) -> Reason:
        """Why the node's version is new, or something else when it is not."""
        difference = self.differences[name]
        return difference.reason if difference.is_version_new else otherwise
