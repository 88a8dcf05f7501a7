"""What is read back from state: what to ask for, what comes of it, and who holds what."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamina.app.ports.facts import AuditsRecorded, BatchRecorded
    from lamina.app.ports.published import Attempt, Head, PartitionKey
    from lamina.environments.pointers import Revision
    from lamina.graph.model import Model
    from lamina.graph.names import NodeName
    from lamina.identity.naming import PhysicalName, VersionId
    from lamina.identity.standing import Equals
    from lamina.planning.inputs import Read, Rewrite, VersionFacts
    from lamina.timeline.interval import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Who holds a lease, so that others can tell whether it still lives."""

    host: str
    boot: str
    process: int
    command: str
    started_at: Instant
    processes: tuple[str, ...] = ()
    """What tells its processes from all others: its own first, then those that carry out statements for it."""
    catalog: str | None = None
    """The lock on a catalog that admits one process, held for as long as any of its processes lives."""
    is_carried: bool = False
    """Whether a server carries out its statements: they may land when all its processes are gone."""

    def describe(self) -> str:
        """For messages: `build` (process 4711 on host)."""
        return f"`lamina {self.command}` (process {self.process} on {self.host})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to change a version or an environment."""

    resource: str
    token: int
    owner: Owner
    status: Literal["held", "released", "lost", "closed"]
    expires_at: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseGrant:
    """A lease just taken, with what was found unfinished on the resource."""

    lease: Lease
    taken_at: Instant
    """By the store's clock."""
    unfinished: tuple[Attempt, ...] = ()
    lost: tuple[Lease, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsettled:
    """What the start check found; empty in a healthy store."""

    leases: tuple[Lease, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    revisions: tuple[Revision, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether catalog and state agree."""
        return not (self.leases or self.attempts or self.revisions)


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionsSince:
    """The last followed revision of an environment and all after it; with `moment`, from what was newest then on."""

    environment: str
    moment: Instant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRequest:
    """Which facts to read in one consistent snapshot.

    `environments` names environments whose newest revision (and facts and definitions of every pointer, as asked) are
    wanted; an empty tuple of names with `all_environments` reads them all. `versions` names further versions by
    (node, version id); they are returned under every physical name they ever had.
    """

    environments: tuple[str, ...] = ()
    all_environments: bool = False
    versions: tuple[tuple[NodeName, VersionId], ...] = ()
    identities: tuple[tuple[NodeName, str], ...] = ()
    """Nodes and what they are called: versions or ids of definitions that may stand for earlier ones."""
    definitions_of_pointers: bool = False
    definitions: tuple[str, ...] = ()
    facts_of_pointers: bool = True
    heads: tuple[PhysicalName, ...] = ()
    manifests: tuple[PhysicalName, ...] = ()
    rewrites: tuple[Read, ...] = ()
    """Versions whose rewrites after a head are wanted; one version may be asked for once."""
    checkpoints_of: tuple[str, ...] = ()
    revisions_since: tuple[RevisionsSince, ...] = ()
    """Each environment may be asked for once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The answer to a `LoadRequest`; what does not exist is absent (environments: revision number 0)."""

    revisions: Mapping[str, Revision] = field(default_factory=lambda: MappingProxyType({}))
    facts: Mapping[PhysicalName, VersionFacts] = field(default_factory=lambda: MappingProxyType({}))
    equals: Equals = field(default_factory=lambda: MappingProxyType({}))
    """Of the identities asked about, those that stand for earlier ones, and these in the order of their texts."""
    definitions: Mapping[str, Model] = field(default_factory=lambda: MappingProxyType({}))
    heads: Mapping[PhysicalName, Head] = field(default_factory=lambda: MappingProxyType({}))
    manifests: Mapping[PhysicalName, Mapping[PartitionKey, str]] = field(default_factory=lambda: MappingProxyType({}))
    rewrites: Mapping[PhysicalName, tuple[Rewrite, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """Oldest first; absent where there is none."""
    checkpoints: Mapping[str, tuple[Revision, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """Finalized revisions of the environments asked for, newest first."""
    series: Mapping[str, tuple[Revision, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """The answers to `revisions_since`, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One run with its batches and how audits came out, in the order they finished.

    `execution_time` is the moment it worked at, which need not be when it ran.
    """

    run_id: str
    command: str
    environment: str
    status: str
    started_at: Instant
    finished_at: Instant | None
    execution_time: Instant
    batches: tuple[BatchRecorded, ...] = ()
    audits: tuple[AuditsRecorded, ...] = ()

    @property
    def nodes(self) -> tuple[NodeName, ...]:
        """What was computed or asked about, in that order."""
        names = (*(batch.node for batch in self.batches), *(asked.node for asked in self.audits))
        return tuple(dict.fromkeys(names))


def version_resource(physical: PhysicalName) -> str:
    """The lease that protects a version."""
    return f"version:{physical}"


def environment_resource(environment: str) -> str:
    """The lease that protects an environment."""
    return f"environment:{environment}"
