"""A plan: for every node what would be done, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias

from lamina.timeline.interval import EMPTY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamina.environments.pointers import Pointer, Status
    from lamina.graph.dag import Notice
    from lamina.graph.model import Model
    from lamina.graph.names import NodeName
    from lamina.identity.naming import PhysicalName, VersionId
    from lamina.identity.version import NodeVersion
    from lamina.planning.inputs import Waiting
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
    """The intervals one query computes; `interval` is `None` for kinds that are computed whole."""

    index: int
    interval: Interval | None


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
    changed_columns: tuple[str, ...] = ()
    version: VersionId | None = None
    previous_version: VersionId | None = None
    physical: PhysicalName | None = None
    replay: str | None = None
    intervals: Intervals = EMPTY
    redone: Intervals = EMPTY
    """Recorded intervals that stop counting when the plan is applied, because they are computed again."""
    batches: tuple[Batch, ...] = ()
    batch_concurrency: int = 1
    waiting_for: tuple[Waiting, ...] = ()
    diff: str | None = None
    """Unified diff of the query against the version the environment shows."""

    @property
    def has_work(self) -> bool:
        """Whether Spark has something to compute."""
        return self.action in {"build", "seed_and_build"} and bool(self.batches)


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
    warnings: tuple[Notice, ...] = ()

    @property
    def has_work(self) -> bool:
        """Whether applying would change anything: tables, pointers or recorded definitions."""
        return any(step.action not in {"skip", "wait", "blocked"} for step in self.steps)

    @property
    def is_blocked(self) -> bool:
        """Whether something selected cannot be done without a person."""
        return any(step.action == "blocked" for step in self.steps)
