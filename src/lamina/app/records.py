"""What is written to state: facts, what a commit requires, and what is read back.

The order of writes that these serve is worded in `docs/concepts/write-protocol.md`.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from lamina.timeline.interval import EMPTY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lamina.environments.pointers import Revision
    from lamina.graph.model import Column, Model
    from lamina.graph.names import NodeName
    from lamina.identity.naming import PhysicalName, VersionId
    from lamina.identity.standing import Equals
    from lamina.identity.version import Fingerprint, Same
    from lamina.planning.inputs import AuditOutcomes, Read, Rewrite, VersionFacts
    from lamina.timeline.interval import Instant, Interval, Intervals

PartitionKey: TypeAlias = "tuple[str | None, ...]"
"""Values of the partition columns as Spark prints them; empty for a table without partitions."""

Contents: TypeAlias = "Mapping[Interval | None, str]"
"""What was measured of the rows of stretches of time, `None` standing for the whole table: same text, same rows."""

AttemptStatus: TypeAlias = Literal["open", "decided", "retracting", "done", "aborted"]
AuditStatus: TypeAlias = Literal["passed", "failed", "skipped"]


# --- tables as state knows them ---
@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionColumn:
    """A column the table is partitioned by; hidden ones exist only for that, `expression` says how they are made."""

    name: str
    type: str
    expression: str | None = None

    @property
    def is_hidden(self) -> bool:
        """Whether readers must not see the column."""
        return self.expression is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableShape:
    """Columns readers see, in order, and how rows are laid out."""

    columns: tuple[Column, ...]
    partition_columns: tuple[PartitionColumn, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Beneath:
    """A former generation that the shown one is laid over: of it, the partitions that are not `hidden` are shown too.

    Nothing is added to it any more, so both together are as fixed as a generation over everything would be.
    """

    generation: str
    hidden: tuple[PartitionKey, ...]
    above: tuple[PartitionKey, ...] | None
    """The partitions of the generation above; None once they are too many to be laid out again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The published state of a version: a generation table and the folders behind its partitions."""

    physical: PhysicalName
    sequence: int
    generation: str
    attempt: int
    shape: TableShape
    view_sql: str | None = None
    """The query shown by a version that stores no rows."""
    contents: Contents = field(default_factory=lambda: MappingProxyType({}))
    """Of the whole table, or of its newest units: what the next batch is compared with, where it is there."""
    snapshot: int | None = None
    """Which version of a table with a history of its own (Delta, Iceberg) holds these rows; None where unknown."""
    beneath: Beneath | None = None
    """What else is shown, where the generation holds only partitions that were replaced or added."""


# --- how a publish is carried out, recorded before it is ---
@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitions:
    """Add partitions to a generation that is already shown."""

    physical: PhysicalName
    generation: str
    shape: TableShape
    partitions: Mapping[PartitionKey, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchGeneration:
    """Point the version's view at another generation."""

    physical: PhysicalName
    generation: str
    shape: TableShape
    description: str | None = None
    beneath: Beneath | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetView:
    """Make the version's view show a query (models of kind VIEW)."""

    physical: PhysicalName
    generation: str
    """The token kept in the view's property so that the view can be told from an older one."""
    sql: str
    shape: TableShape
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowAction:
    """What is done to a table with rows that lie aside: a condition for `replace_…`, a MERGE for `merge`.

    The condition of `replace_where` compares a column with values, that of `replace_matching` may be any.
    """

    name: Literal["append", "replace_where", "replace_matching", "replace_partitions", "merge"]
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class InPlace:
    """A change of a table that is shown and keeps a history: `head` is what it has once this is carried out, and not
    before. `rewritten` is recorded time that comes out with other rows, `is_asked` whether a person asked for that.
    """

    head: Head
    rewritten: Intervals = EMPTY
    is_asked: bool = False

    @property
    def physical(self) -> PhysicalName:
        """The version."""
        return self.head.physical

    @property
    def generation(self) -> str:
        """The table."""
        return self.head.generation

    @property
    def attempt(self) -> int:
        """The attempt, by which the change is found in the table's history."""
        return self.head.attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRows(InPlace):
    """Put rows that lie in a folder into the table, as a transaction that it takes once (Delta).

    `transaction` only ever grows from one publish of a version to the next; `writer` says who numbers them.
    """

    folder: str
    action: RowAction
    transaction: int
    writer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteThrough(InPlace):
    """The batch itself is the transaction (Delta). Nobody but its writer can carry it out; others keep it from landing.

    What the batch measures is known to its writer alone: `head` and `rewritten` are what is recorded without it.
    """

    transaction: int
    writer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FastForward(InPlace):
    """Let the table have what a branch made from it holds (Iceberg); refused when the table is not that any more.

    The branch stays, so that nothing that cleans the table up removes what the head names; `former` is not needed then.
    """

    branch: str
    former: str | None = None


def switch_to(head: Head, description: str | None = None) -> SwitchGeneration:
    """The publish that has a version's view show what its head says."""
    return SwitchGeneration(
        physical=head.physical,
        generation=head.generation,
        shape=head.shape,
        description=description,
        beneath=head.beneath,
    )


Publish: TypeAlias = AddPartitions | SwitchGeneration | SetView | CommitRows | WriteThrough | FastForward


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One try at one batch of a version."""

    number: int
    physical: PhysicalName
    token: int
    status: AttemptStatus
    interval: Interval | None
    folder: str
    generation: str
    base_sequence: int
    reads: tuple[Read, ...] = ()
    seeded: Intervals = EMPTY
    """Time that is covered once an attempt without an interval is done: that of the run, or of the version whose rows
    it begins with."""
    publish: Publish | None = None
    execution_time: Instant | None = None
    rows: int | None = None


# --- facts ---
@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionRecorded:
    """The text of a node's definition, stored once under its hash."""

    definition_id: str
    model: Model


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityStands:
    """What a node is called by the form of identity in use stands for what an earlier form called it."""

    same: Same


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRecorded:
    """A version exists; recorded once."""

    physical: PhysicalName
    node: NodeName
    version: VersionId
    incarnation: int
    definition_id: str
    kind: str
    fingerprint: Fingerprint
    recorded_at: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptOpened:
    """Intent: names everything the attempt will make and reads; the interval it replaces is no longer covered."""

    attempt: Attempt
    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptDecided:
    """The publish is decided: head moves to `head`, the manifest changes as said, anyone may carry it out.

    Without a `head` it is a change in place, and the head moves when that is done.
    """

    number: int
    physical: PhysicalName
    publish: Publish
    head: Head | None
    folders_set: Mapping[PartitionKey, str] = field(default_factory=lambda: MappingProxyType({}))
    folders_removed: tuple[PartitionKey, ...] = ()
    rows: int | None = None
    rewritten: Intervals = EMPTY
    """Recorded time that came out with other rows than before."""
    is_asked: bool = False
    """Whether a person asked for that, here or further up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptUnchanged:
    """What the attempt computed is what is shown already: it counts as done, and nothing is published."""

    number: int
    physical: PhysicalName


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptDone:
    """The publish was carried out; its interval (or the whole build) counts as done.

    After a change in place the head moves now, to `landed`.
    """

    number: int
    physical: PhysicalName
    landed: Head | None = None
    rewritten: Intervals = EMPTY
    is_asked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRetracting:
    """A decided publish is refused for good, or nobody can repeat it: it is being kept from landing any more."""

    number: int
    physical: PhysicalName


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptAborted:
    """Nothing of the attempt was or will be published."""

    number: int
    physical: PhysicalName
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageRemoved:
    """Intervals count as not done any more; `followed` says up to which head of its parents that follows rewrites."""

    physical: PhysicalName
    intervals: Intervals
    followed: tuple[Read, ...] = ()
    restated_at: Instant | None = None
    """Set when the model's own schedule opened the time again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseReleased:
    """The holder is finished with the resource."""

    resource: str
    token: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseClosed:
    """A lost lease that can do no more harm."""

    resource: str
    token: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionWritten:
    """An environment's pointers change; `revision.number` is one above the number before."""

    revision: Revision


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionFollowed:
    """Every view shows what the revision points to."""

    environment: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """A command began to change things."""

    run_id: str
    command: str
    environment: str
    started_at: Instant
    execution_time: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished:
    """A command ended."""

    run_id: str
    status: str
    finished_at: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRecorded:
    """How one batch went."""

    run_id: str
    node: NodeName
    physical: PhysicalName
    number: int
    interval: Interval | None
    status: str
    rows: int | None
    seconds: float
    statements: int
    finished_at: Instant
    error: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """How one audit came out; `call` is how the model names it, with its arguments.

    `key` is what the outcome depends on beside the rows; it is None where nothing is to be remembered.
    """

    name: str
    call: str
    status: AuditStatus
    is_blocking: bool
    failing_rows: int = 0
    key: str | None = None
    kept_at: str | None = None
    """The relation in which failing rows can be looked at."""

    @property
    def looking(self) -> str | None:
        """The command that shows the failing rows, to be pasted into a shell."""
        return None if self.kept_at is None else shlex.join(["lamina", "query", f"SELECT * FROM {self.kept_at}"])


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditsRecorded:
    """How audits came out over the rows of an interval, or over all rows.

    `is_shown` says that these are the rows that the head shows: then the outcomes are remembered for the version until
    an attempt is decided that replaces the rows. Others were refused and are kept for people only.
    """

    run_id: str
    node: NodeName
    physical: PhysicalName
    number: int
    """The attempt that wrote the rows, or the number under which rows that were there already were looked at."""
    interval: Interval | None
    results: tuple[AuditResult, ...]
    recorded_at: Instant
    is_shown: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomesTaken:
    """A version that begins with the rows of another one takes over how audits came out over them."""

    physical: PhysicalName
    outcomes: Mapping[str, AuditOutcomes]


Fact: TypeAlias = (
    DefinitionRecorded
    | IdentityStands
    | VersionRecorded
    | AttemptOpened
    | AttemptDecided
    | AttemptDone
    | AttemptUnchanged
    | AttemptRetracting
    | AttemptAborted
    | CoverageRemoved
    | LeaseReleased
    | LeaseClosed
    | RevisionWritten
    | RevisionFollowed
    | RunStarted
    | RunFinished
    | BatchRecorded
    | AuditsRecorded
    | OutcomesTaken
)


# --- requirements ---
@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseIsCurrent:
    """The lease is still held under this token; checked by token, never by time. Refused with `LeaseLost`."""

    resource: str
    token: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptIs:
    """The attempt has this status."""

    number: int
    status: AttemptStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadIs:
    """The version's head has this sequence number (0: none)."""

    physical: PhysicalName
    sequence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingPending:
    """No attempt of the version is decided or retracting."""

    physical: PhysicalName


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkIs:
    """The version's recorded work is what the plan was made from (0: nothing recorded)."""

    physical: PhysicalName
    mark: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionIs:
    """The environment's newest revision has this number (0: none)."""

    environment: str
    number: int


def read_whole(versions: Iterable[PhysicalName], heads: Mapping[PhysicalName, Head]) -> list[NothingPending]:
    """What must be true for these versions to be read as their heads say.

    A decided publish may show its rows in part while it is carried out. A head that names a snapshot of its table is
    read at that snapshot, whatever goes on.
    """
    return [
        NothingPending(physical=physical)
        for physical in versions
        if physical not in heads or heads[physical].snapshot is None
    ]


Requirement: TypeAlias = LeaseIsCurrent | AttemptIs | HeadIs | NothingPending | MarkIs | RevisionIs


# --- reading ---
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
