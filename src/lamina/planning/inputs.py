"""Everything a plan is made from, as one value."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from lamina.timeline.interval import EMPTY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamina.environments.pointers import Revision
    from lamina.graph.catalogs import CatalogAbilities
    from lamina.graph.dag import Graph
    from lamina.graph.model import Model
    from lamina.graph.names import NodeName
    from lamina.identity.naming import PhysicalName, VersionId
    from lamina.identity.version import Fingerprint, NodeVersion
    from lamina.timeline.interval import Instant, Interval, Intervals


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What an attempt read of one parent: the head of its version at that moment."""

    physical: PhysicalName
    sequence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """Recorded time of a version that was computed again and came out with other rows, as of one of its heads.

    `is_asked` says that a person asked for it, here or further up: then it also travels through models that are
    computed whole, which otherwise change every time anything above them grows.
    """

    sequence: int
    intervals: Intervals
    is_asked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOutcomes:
    """For which time of a version an audit passed, failed, or was left out on request; no two of them overlap.

    Where rows do not belong to times, all of time stands for the whole table.
    """

    passed: Intervals = EMPTY
    failed: Intervals = EMPTY
    skipped: Intervals = EMPTY

    def settled(self, *, is_blocking: bool) -> Intervals:
        """Time about which the audit need not be asked again."""
        settled = self.passed.union(self.skipped)
        return settled if is_blocking else settled.union(self.failed)


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionFacts:
    """What state knows of one version.

    `mark` changes with every recorded change of the version's work; a plan is applied only while it is the same.
    `covered` holds recorded intervals for kinds that have them, `reopened` those that were recorded before and do not
    count now; `built_at` is the execution time of the last finished whole build of the others. `reads` is what that
    build read; for kinds with intervals, the heads of its parents up to which their rewrites were followed.
    `rewritten_at` is the number of the newest head that brought a rewrite. `outcomes` is how audits came out over the
    rows that are shown, by their keys.
    """

    physical: PhysicalName
    node: NodeName
    version: VersionId
    definition_id: str
    fingerprint: Fingerprint
    mark: int = 0
    head_sequence: int = 0
    covered: Intervals = EMPTY
    reopened: Intervals = EMPTY
    built_at: Instant | None = None
    restated_at: Instant | None = None
    """When recorded time was last opened again by `auto_restatement_cron`, or the first batch was computed."""
    reads: tuple[Read, ...] = ()
    rewritten_at: int = 0
    outcomes: Mapping[str, AuditOutcomes] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def recorded(self) -> Intervals:
        """All time that was ever recorded: readers have its rows also where they are to be computed again."""
        return self.covered.union(self.reopened)


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """A version that does not exist yet and begins with the rows of another one: `target` with what `source` holds."""

    node: NodeName
    source: PhysicalName
    target: PhysicalName


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """What the user asked for beyond the environment; names as in the contract."""

    select: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    start: str | None = None
    end: str | None = None
    restate: tuple[str, ...] = ()
    reset: tuple[str, ...] = ()
    allow_gaps: bool = False
    forward_only: bool = False
    breaking: tuple[str, ...] = ()
    non_breaking: tuple[str, ...] = ()
    effective_from: str | None = None
    force: bool = False
    changes_only: bool = False
    include_stale_upstreams: bool = False
    ignore_cron: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Time that a signal does not release yet."""

    signal: str
    intervals: Intervals


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInputs:
    """The project, the environment, its baseline, the facts of the versions involved, and the clock.

    For `run`, `graph` and `versions` come from recorded definitions. `facts` is keyed by physical name and holds every
    version that the environment, its baseline or the project's versions name. `previous` holds the recorded
    definitions behind the environment's pointers (or the baseline's, for a new environment), for diffs.
    """

    command: str
    graph: Graph
    versions: Mapping[NodeName, NodeVersion]
    environment: Revision
    baseline: Revision
    baseline_name: str
    facts: Mapping[PhysicalName, VersionFacts]
    physical: Mapping[NodeName, PhysicalName]
    """For every node that has an object: the physical name its version lives under (incarnation included)."""
    now: Instant
    default_start: str | None = None
    default_replay: str = "full"
    """What `replay_on_change` is for a model's own change where the model does not say."""
    concurrency: int | None = None
    """How many batches the command runs at once; None where nobody says."""
    catalogs: Mapping[str, CatalogAbilities] = field(default_factory=lambda: MappingProxyType({}))
    """Catalogs beside Spark's own, as far as the project's settings describe them."""
    flags: Flags = field(default_factory=Flags)
    shown_elsewhere: frozenset[PhysicalName] = frozenset()
    """Versions that other environments point to; known when something is restated or forced."""
    rewrites: Mapping[PhysicalName, tuple[Rewrite, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """Rewrites of versions that some reader among the facts has not followed yet, oldest first."""
    held: Mapping[NodeName, tuple[Held, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """What signals hold back of each model, as far as they have been asked."""
    previous: Mapping[NodeName, Model] = field(default_factory=lambda: MappingProxyType({}))
    previous_fingerprints: Mapping[NodeName, Fingerprint] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """What a node waits for before an interval can be processed."""

    name: NodeName
    interval: Interval
