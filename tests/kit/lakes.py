"""Tables that keep a history, in memory: numbered transactions as Delta has them, branches as Iceberg has them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lamina.app.ports.engine import Landing
from lamina.app.ports.published import CommitRows, FastForward, WriteThrough
from lamina.errors import FilesRewritten, PublishRefused
from lamina.timeline.interval import Instant, Interval

if TYPE_CHECKING:
    from lamina.app.ports.published import InPlace, RowAction

Row = tuple[str, str]


@dataclass
class LakeTable:
    """Snapshots by number; `line` are those that the table went through, the last is what readers see."""

    snapshots: dict[int, tuple[Row, ...]]
    line: list[int]
    numbers: dict[str, int] = field(default_factory=dict)
    """The highest transaction of every writer."""
    landed: dict[int, int] = field(default_factory=dict)
    """The snapshot that each attempt made."""
    added: dict[int, int] = field(default_factory=dict)
    """How many rows each attempt wrote."""
    branches: dict[str, int] = field(default_factory=dict)
    begun_at: dict[str, int] = field(default_factory=dict)
    rewritten: set[int] = field(default_factory=set)
    """Snapshots that hold what the one before them holds."""

    @classmethod
    def of(cls, rows: tuple[Row, ...]) -> LakeTable:
        return cls(snapshots={0: rows}, line=[0])

    def twin(self) -> LakeTable:
        return LakeTable(
            snapshots=dict(self.snapshots),
            line=list(self.line),
            numbers=dict(self.numbers),
            landed=dict(self.landed),
            added=dict(self.added),
            branches=dict(self.branches),
            begun_at=dict(self.begun_at),
            rewritten=set(self.rewritten),
        )

    def rows(self, snapshot: int | None = None) -> tuple[Row, ...]:
        return self.snapshots[self.line[-1] if snapshot is None else snapshot]

    # --- transactions ---
    def commit(self, publish: CommitRows | WriteThrough, rows: tuple[Row, ...], action: RowAction) -> int:
        """Answers the snapshot that holds the change; a number that was used is skipped in silence."""
        if publish.transaction <= self.numbers.get(publish.writer, 0):
            return self.landed.get(publish.attempt, self.line[-1])
        self.numbers[publish.writer] = publish.transaction
        self.landed[publish.attempt] = self._add(after(self.rows(), rows, action))
        self.added[publish.attempt] = len(rows)
        self.line.append(self.landed[publish.attempt])
        return self.line[-1]

    # --- branches ---
    def branch(self, name: str, begin: int, rows: tuple[Row, ...], action: RowAction) -> int:
        assert name not in self.branches, f"branch `{name}` is made twice"
        self.begun_at[name] = begin
        self.branches[name] = self._add(after(self.rows(begin), rows, action))
        return self.branches[name]

    def move_forward(self, publish: FastForward) -> int:
        snapshot = publish.head.snapshot
        if snapshot in self.line:
            return self.line[-1]
        begun = self.begun_at.get(publish.branch)
        if publish.branch in self.branches and begun != self.line[-1] and self._is_only_rewritten(begun):
            raise FilesRewritten(f"files of `{publish.generation}` were rewritten")
        if publish.branch not in self.branches or begun != self.line[-1]:
            raise PublishRefused(f"`{publish.generation}` is not what branch `{publish.branch}` was made from")
        self.line.append(self.branches.pop(publish.branch))
        return self.line[-1]

    def rewrite_files(self) -> None:
        """What compaction does: the same rows in other files."""
        self.line.append(self._add(self.rows()))
        self.rewritten.add(self.line[-1])

    def where_it_is_now(self, snapshot: int) -> int:
        """The newest snapshot that holds what this one holds."""
        return self.line[-1] if self._is_only_rewritten(snapshot) else snapshot

    def _is_only_rewritten(self, begun: int | None) -> bool:
        return begun in self.line and self.rewritten.issuperset(self.line[self.line.index(begun) + 1 :])

    # --- both ---
    def retract(self, publish: InPlace) -> Landing | None:
        if isinstance(publish, FastForward):
            self.branches.pop(publish.branch, None)
            return Landing(snapshot=publish.head.snapshot) if publish.head.snapshot in self.line else None
        assert isinstance(publish, CommitRows | WriteThrough)
        if publish.transaction > self.numbers.get(publish.writer, 0):
            self.numbers[publish.writer] = publish.transaction
            self.line.append(self._add(self.rows()))
        found = self.landed.get(publish.attempt)
        return None if found is None else Landing(snapshot=found, rows=self.added.get(publish.attempt))

    def _add(self, rows: tuple[Row, ...]) -> int:
        number = max(self.snapshots) + 1
        self.snapshots[number] = rows
        return number


def after(before: tuple[Row, ...], rows: tuple[Row, ...], action: RowAction) -> tuple[Row, ...]:
    """The table once rows were put into it; the unit of a row is its key, and a condition is an interval."""
    match action.name:
        case "append":
            return (*before, *rows)
        case "merge":
            return tuple({**dict(before), **dict(rows)}.items())
        case "replace_where":
            interval = Interval.from_pair(action.text.split("|"))
            return (*(row for row in before if not interval.contains(Instant.parse_iso(row[0]))), *rows)
        case "replace_partitions":
            units = {unit for unit, _ in rows}
            return (*(row for row in before if row[0] not in units), *rows)
