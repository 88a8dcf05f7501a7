"""What is written to state: facts, which nothing ever changes."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from lamina.timeline.interval import EMPTY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamina.app.ports.published import Attempt, Head, PartitionKey, Publish
    from lamina.environments.pointers import Revision
    from lamina.graph.model import Model
    from lamina.graph.names import NodeName
    from lamina.identity.naming import PhysicalName, VersionId
    from lamina.identity.version import Fingerprint, Same
    from lamina.planning.inputs import AuditOutcomes, Read
    from lamina.timeline.interval import Instant, Interval, Intervals


AuditStatus: TypeAlias = Literal["passed", "failed", "skipped"]


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
