"""Table formats as values: what each can do by itself. Kinds and commands ask for abilities, never for a name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lamina.graph.kinds import stores_rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lamina.graph.model import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFormat:
    """What a table format can do by itself."""

    name: str
    title: str
    is_built_in: bool = False
    """Whether every Spark has it; others come as packages."""
    keeps_history: bool = False
    """Whether a table has versions of its own that can be named when it is read."""
    can_merge: bool = False
    """Whether rows can be changed by key, so that only what changes is written."""
    can_replace_where: bool = False
    """Whether the rows of a condition can be replaced in one atomic step."""
    has_transactions: bool = False
    """Whether a write can carry a number that the table takes only once."""
    has_branches: bool = False
    """Whether rows can be written to a branch that readers do not see."""
    can_clone: bool = False
    """Whether a copy of a table needs no copy of its files."""
    has_transforms: bool = False
    """Whether `partitioned_by` may hold transforms such as `months(day)` that readers are pruned by."""
    can_cluster: bool = False
    """Whether `clustered_by` lays rows out."""
    storages: tuple[str, ...] = ("parquet",)
    """What its files can be; `storage_format` chooses."""

    @property
    def writes_in_turn(self) -> bool:
        """Whether batches of one table follow each other, because each begins where the last one ended."""
        return self.has_branches


PARQUET = TableFormat(name="parquet", title="Parquet", is_built_in=True, can_clone=True)
DELTA = TableFormat(
    name="delta",
    title="Delta Lake",
    keeps_history=True,
    can_merge=True,
    can_replace_where=True,
    has_transactions=True,
    can_clone=True,
    can_cluster=True,
)
ICEBERG = TableFormat(
    name="iceberg",
    title="Apache Iceberg",
    keeps_history=True,
    can_merge=True,
    can_replace_where=True,
    has_branches=True,
    has_transforms=True,
    can_cluster=True,
    storages=("parquet", "orc", "avro"),
)

TABLE_FORMATS = {one.name: one for one in (PARQUET, DELTA, ICEBERG)}
_OTHER_NAMES = {"hive": "parquet"}


def formats_of(models: Iterable[Model]) -> frozenset[str]:
    """The formats among these models' that Spark does not have by itself."""
    used = {find_format(model.table_format) for model in models if stores_rows(model.kind)}
    return frozenset(one.name for one in used if one is not None and not one.is_built_in)


def find_format(name: str) -> TableFormat | None:
    """The format of a name as models write it; None for one that Lamina knows of and cannot write."""
    lowered = name.lower()
    return TABLE_FORMATS.get(_OTHER_NAMES.get(lowered, lowered))
