"""A plan: for every node what would be done, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias

from lamina.timeline.interval import EMPTY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lamina.environments.pointers import Pointer, Status
    from lamina.errors import LaminaError
    from lamina.graph.dag import Notice
    from lamina.graph.model import AuditCall, Model
    from lamina.graph.names import NodeName
    from lamina.identity.naming import PhysicalName, VersionId
    from lamina.identity.version import NodeVersion
    from lamina.planning.inputs import Read, VersionFacts, Waiting
    from lamina.timeline.interval import Instant, Interval, Intervals

Action: TypeAlias = Literal["build", "seed_and_build", "reuse", "metadata", "skip", "wait", "blocked", "remove"]
Reason: TypeAlias = Literal[
    "first_run",
    "query_changed",
    "config_changed",
    "function_changed",
    "schema_changed",
    "upstream_changed",
    "source_changed",
    "missing_intervals",
    "restated",
    "run_despite_unchanged",
    "upstream_rewritten",
    "forced",
    "unchanged",
]
Change: TypeAlias = Literal["breaking", "non_breaking", "forward_only", "metadata"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The intervals one query computes; `interval` is `None` for kinds without intervals."""

    index: int
    interval: Interval | None
    span: Interval | None = None
    """What the time variables stand for in a run that is put into what the table holds."""
    begins_anew: bool = False
    """Whether such a run begins with an empty table, whatever it holds."""
    is_empty: bool = False
    """Whether only the table is made, without rows, because nothing can be processed yet."""

    @property
    def time(self) -> Interval | None:
        """The time it is about, if any."""
        return self.interval or self.span


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Audits to ask about rows that are there already; without an `interval`, about the whole table."""

    audits: tuple[AuditCall, ...]
    interval: Interval | None = None
    span: Interval | None = None
    """What the time variables stand for where rows do not belong to times."""

    @property
    def time(self) -> Interval | None:
        """The time it is about, if any."""
        return self.interval or self.span


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadWindow:
    """The stretch of a parent's time that a step reads; no `start` means all of its past."""

    name: NodeName
    start: Instant | None
    end: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeding:
    """A version that begins with the rows of another one, and what is known of it then.

    The source must still be as the plan saw it: forks of one plan that saw different moments would not fit together.
    """

    source: PhysicalName
    source_mark: int
    facts: VersionFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfollowed:
    """Recorded time of a node that reads what was, or may be by the plan, rewritten, and is not computed again.

    Where the node reads everything, it is the rewritten time itself.
    """

    intervals: Intervals
    cause: NodeName | None
    why: str
    is_recorded: bool
    """Whether it is known that other rows came out."""
    followed: tuple[Read, ...] = ()
    """Up to which heads of the parents that is all there is to tell, where it is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What is done with one node, and why."""

    node: NodeName
    type: str
    kind: str
    action: Action
    reason: Reason
    explanation: str
    cause: NodeName | None = None
    change: Change | None = None
    reaches: tuple[NodeName, ...] = ()
    """Below a change: the nodes with rows of their own that are computed anew because of it, in dependency order."""
    changed_columns: tuple[str, ...] = ()
    version: VersionId | None = None
    previous_version: VersionId | None = None
    physical: PhysicalName | None = None
    seed: Seeding | None = None
    """What the version begins with, where it is a copy of one that others show."""
    continues: Seeding | None = None
    """What a new version begins with that goes on where the former one ends."""
    replay: str | None = None
    intervals: Intervals = EMPTY
    """What is computed, with what somebody's request may reach."""
    certain: Intervals = EMPTY
    """What is computed whatever the parents come out like."""
    may_follow: Intervals = EMPTY
    """Recorded time that is computed again only where what it reads came out with other rows."""
    redone: Intervals = EMPTY
    """Recorded intervals that stop counting when the plan is applied, because they are computed again."""
    followed: tuple[Read, ...] = ()
    """Heads of the parents up to which `redone` follows their rewrites."""
    again: Intervals = EMPTY
    """Recorded time that runs go over once more, or may have to, because rows that they read were rewritten."""
    unfollowed: Unfollowed | None = None
    """What a person is told once, because nothing is done about it."""
    restated_at: Instant | None = None
    """Set when `redone` follows from the model's own `auto_restatement_cron`."""
    recorded: Intervals = EMPTY
    """Everything that was ever recorded for the version, counting now or not."""
    is_asked: bool = False
    """Whether a person asked for recorded time to be computed again, here or further up."""
    batches: Sequence[Batch] = ()
    questions: tuple[Question, ...] = ()
    """Audits to ask about rows that are there already and are not computed again."""
    makes_table: bool = False
    """Whether a table without rows is made, because nothing can be processed yet."""
    left_out: Intervals = EMPTY
    """Missing time that the command's `--start` and `--end` leave out."""
    left_to_baseline: Intervals = EMPTY
    """Missing time that the baseline has to write first, or alone writes because the version is shared with it."""
    waiting: Intervals = EMPTY
    """Missing time that has to wait."""
    waiting_for: tuple[Waiting, ...] = ()
    next_tick: Instant | None = None
    """When the model's own cron releases what there is to do, where it has not yet."""
    reads: tuple[ReadWindow, ...] = ()
    """How far what is computed reads into parents whose rows belong to times."""
    diff: str | None = None
    """Unified diff of the query against the version the environment shows."""

    @property
    def has_work(self) -> bool:
        """Whether Spark has, or may turn out to have, something to do."""
        return self.computes or bool(self.questions)

    @property
    def computes(self) -> bool:
        """Whether rows are, or may turn out to be, computed."""
        is_idle = self.action not in {"build", "seed_and_build"}
        is_made = self.makes_table or self.continues is not None
        return is_made or not self.may_follow.is_empty or (bool(self.batches) and not is_idle)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Every node's step in dependency order, and what must still be true when it is applied.

    `pointers` is what the environment shows once everything has succeeded; `marks` the facts the plan was made from.
    """

    command: str
    environment: str
    status: Status
    baseline: str
    revision: int
    now: Instant
    steps: tuple[Step, ...]
    pointers: Mapping[NodeName, Pointer]
    before: Mapping[NodeName, Pointer]
    """What the environment shows now; a new one shows what its baseline shows."""
    final_status: Status
    models: Mapping[NodeName, Model]
    versions: Mapping[NodeName, NodeVersion]
    marks: Mapping[PhysicalName, int] = field(default_factory=lambda: MappingProxyType({}))
    failures: Mapping[NodeName, LaminaError] = field(default_factory=lambda: MappingProxyType({}))
    """Models whose signals gave no answer; what they were asked about waits."""
    refused: frozenset[NodeName] = frozenset()
    """Selected models that cannot be built, which keeps nothing else from it."""
    standalone: tuple[str, ...] = ()
    """Standalone audits to ask about what is there already; those that read what is computed are asked as well."""
    warnings: tuple[Notice, ...] = ()

    @property
    def has_work(self) -> bool:
        """Whether applying would change anything: tables, pointers, recorded definitions or outcomes of audits."""
        return bool(self.standalone) or any(
            step.makes_table or step.questions or step.action not in {"skip", "wait", "blocked"} for step in self.steps
        )

    @property
    def is_blocked(self) -> bool:
        """Whether something selected cannot be done without a person who settles first what else is done."""
        return any(step.action == "blocked" and step.node not in self.refused for step in self.steps)
