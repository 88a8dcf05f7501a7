"""What a version shows, and how a batch is published, in the words of `docs/concepts/write-protocol.md`."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias

from lamina.timeline.interval import EMPTY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamina.graph.model import Column
    from lamina.identity.naming import PhysicalName
    from lamina.planning.inputs import Read
    from lamina.timeline.interval import Instant, Interval, Intervals


PartitionKey: TypeAlias = "tuple[str | None, ...]"
"""Values of the partition columns as Spark prints them; empty for a table without partitions."""

Contents: TypeAlias = "Mapping[Interval | None, str]"
"""What was measured of the rows of stretches of time, `None` standing for the whole table: same text, same rows."""

AttemptStatus: TypeAlias = Literal["open", "decided", "retracting", "done", "aborted"]


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
    """Recorded with names for values of the environment, and given to an engine with these (`graph/sealing.py`)."""
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
