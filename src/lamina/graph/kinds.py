"""How a model is stored and refreshed: one class per kind."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Mapping

SchemaChange: TypeAlias = Literal["error", "warn", "allow", "ignore"]
Setting: TypeAlias = "str | int | float | bool | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeColumn:
    """The output column that says to which interval a row belongs; `format` (strftime) for text and integers."""

    name: str
    format: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IncrementalPolicy:
    """What every incremental kind lets a user decide."""

    forward_only: bool = False
    disable_restatement: bool = False
    on_destructive_change: SchemaChange = "error"
    on_additive_change: SchemaChange = "allow"
    auto_restatement_cron: str | None = None
    auto_restatement_intervals: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Full:
    """The whole table is computed anew each time."""

    name: ClassVar[str] = "FULL"


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """No data: a view over the query."""

    name: ClassVar[str] = "VIEW"
    materialized: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """No object at all: the query is put into each child."""

    name: ClassVar[str] = "EMBEDDED"


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvSettings:
    """How a seed's file is read; the defaults are those of a plain comma separated file."""

    delimiter: str = ","
    quotechar: str = '"'
    doublequote: bool = True
    escapechar: str | None = None
    skipinitialspace: bool = False
    lineterminator: str | None = None
    encoding: str = "utf-8"
    na_values: tuple[str, ...] = ()
    na_values_by_column: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    keep_default_na: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    """A CSV file loaded as a table."""

    name: ClassVar[str] = "SEED"
    path: str
    batch_size: int = 1000
    csv_settings: CsvSettings = field(default_factory=CsvSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class External:
    """A table that others write; only its columns are known."""

    name: ClassVar[str] = "EXTERNAL"


@dataclass(frozen=True, slots=True, kw_only=True)
class IncrementalByTimeRange:
    """Rows belong to intervals by a time column; an interval is replaced whole."""

    name: ClassVar[str] = "INCREMENTAL_BY_TIME_RANGE"
    time_column: TimeColumn
    batch_size: int | None = None
    batch_concurrency: int | None = None
    lookback: int = 0
    partition_by_time_column: bool = True
    policy: IncrementalPolicy = field(default_factory=IncrementalPolicy)


@dataclass(frozen=True, slots=True, kw_only=True)
class IncrementalByUniqueKey:
    """New rows replace rows with the same key."""

    name: ClassVar[str] = "INCREMENTAL_BY_UNIQUE_KEY"
    unique_key: tuple[str, ...]
    when_matched: tuple[str, ...] = ()
    merge_filter: str | None = None
    order_by: tuple[str, ...] = ()
    batch_size: int | None = None
    lookback: int = 0
    policy: IncrementalPolicy = field(default_factory=IncrementalPolicy)


@dataclass(frozen=True, slots=True, kw_only=True)
class IncrementalByPartition:
    """Partitions that occur in the new rows replace those of the table."""

    name: ClassVar[str] = "INCREMENTAL_BY_PARTITION"
    policy: IncrementalPolicy = field(default_factory=lambda: IncrementalPolicy(forward_only=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class IncrementalUnmanaged:
    """Every run appends what its query gives."""

    name: ClassVar[str] = "INCREMENTAL_UNMANAGED"
    insert_overwrite: bool = False
    policy: IncrementalPolicy = field(
        default_factory=lambda: IncrementalPolicy(forward_only=True, disable_restatement=True)
    )


TIMES_OF_VALIDITY = ("timestamp", "timestamp_ntz", "date")
"""The types that the two columns of validity can have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScdType2ByTime:
    """History of a dimension; a newer `updated_at` closes the former row."""

    name: ClassVar[str] = "SCD_TYPE_2_BY_TIME"
    unique_key: tuple[str, ...]
    valid_from_name: str = "valid_from"
    valid_to_name: str = "valid_to"
    time_data_type: str = "timestamp"
    invalidate_hard_deletes: bool = False
    updated_at_name: str = "updated_at"
    updated_at_as_valid_from: bool = False
    batch_size: int | None = None
    policy: IncrementalPolicy = field(
        default_factory=lambda: IncrementalPolicy(forward_only=True, disable_restatement=True)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScdType2ByColumn:
    """History of a dimension; a changed column closes the former row. `columns` empty means every column."""

    name: ClassVar[str] = "SCD_TYPE_2_BY_COLUMN"
    unique_key: tuple[str, ...]
    columns: tuple[str, ...]
    valid_from_name: str = "valid_from"
    valid_to_name: str = "valid_to"
    time_data_type: str = "timestamp"
    invalidate_hard_deletes: bool = False
    execution_time_as_valid_from: bool = False
    updated_at_name: str | None = None
    batch_size: int | None = None
    policy: IncrementalPolicy = field(
        default_factory=lambda: IncrementalPolicy(forward_only=True, disable_restatement=True)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Custom:
    """A materialization written by the user."""

    name: ClassVar[str] = "CUSTOM"
    materialization: str
    materialization_properties: Mapping[str, Setting] = field(default_factory=lambda: MappingProxyType({}))
    batch_size: int | None = None
    batch_concurrency: int | None = None
    lookback: int = 0
    policy: IncrementalPolicy = field(default_factory=IncrementalPolicy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Managed:
    """A table kept current by a stream."""

    name: ClassVar[str] = "MANAGED"


Kind: TypeAlias = (
    Full
    | View
    | Embedded
    | Seed
    | External
    | IncrementalByTimeRange
    | IncrementalByUniqueKey
    | IncrementalByPartition
    | IncrementalUnmanaged
    | ScdType2ByTime
    | ScdType2ByColumn
    | Custom
    | Managed
)

FoldKind: TypeAlias = (
    IncrementalByUniqueKey | IncrementalByPartition | IncrementalUnmanaged | ScdType2ByTime | ScdType2ByColumn
)
"""Kinds whose table is made by one run after the other: what a run gives is put into what is there."""

KeyedKind: TypeAlias = IncrementalByUniqueKey | ScdType2ByTime | ScdType2ByColumn
"""Those of them that look for the row of the same key."""

KINDS: tuple[type, ...] = (
    Full,
    View,
    Embedded,
    Seed,
    External,
    IncrementalByTimeRange,
    IncrementalByUniqueKey,
    IncrementalByPartition,
    IncrementalUnmanaged,
    ScdType2ByTime,
    ScdType2ByColumn,
    Custom,
    Managed,
)


def stores_rows(kind: Kind) -> bool:
    """Whether the kind has a table of its own."""
    return not isinstance(kind, View | Embedded | External)


def folds(kind: Kind) -> TypeGuard[FoldKind]:
    """Whether what a run gives is put into what the table holds, so that runs are done once each and in order."""
    return isinstance(
        kind, IncrementalByUniqueKey | IncrementalByPartition | IncrementalUnmanaged | ScdType2ByTime | ScdType2ByColumn
    )


_ABOUT_LATER_RUNS = (
    *("when_matched", "merge_filter", "order_by"),
    *("invalidate_hard_deletes", "columns", "updated_at_name"),
    *("updated_at_as_valid_from", "execution_time_as_valid_from"),
)
"""What says how a run is put into the table, whatever rules the runs before it were put in by."""


def with_rules_of(former: Kind, kind: Kind) -> Kind:
    """A kind with the settings of another one of its sort that only later runs are put in by."""
    if not folds(kind) or type(former) is not type(kind):
        return former
    return replace(former, **{name: getattr(kind, name) for name in _ABOUT_LATER_RUNS if hasattr(kind, name)})


def is_keyed(kind: Kind) -> TypeGuard[KeyedKind]:
    """Whether what becomes of a row depends on the row of the same key that the table holds."""
    return isinstance(kind, IncrementalByUniqueKey | ScdType2ByTime | ScdType2ByColumn)


def appends(kind: Kind) -> bool:
    """Whether a run adds its rows to those that are there, and replaces none."""
    return isinstance(kind, IncrementalUnmanaged) and not kind.insert_overwrite


def needs_partitions(kind: Kind) -> bool:
    """Whether a run replaces whole partitions, so that there must be some."""
    return isinstance(kind, IncrementalByPartition) or (
        isinstance(kind, IncrementalUnmanaged) and kind.insert_overwrite
    )


def may_be_restated(kind: Kind) -> bool:
    """Whether recorded rows may be computed again; a model can forbid it, because its inputs do not keep history."""
    policy = getattr(kind, "policy", None)
    return policy is None or not policy.disable_restatement


def is_scheduled(kind: Kind) -> bool:
    """Whether the model's own cron says when it is computed: not for views, nor for seeds, which follow their files."""
    return has_intervals(kind) or folds(kind) or isinstance(kind, Full)


def has_intervals(kind: Kind) -> bool:
    """Whether work is counted in intervals of time rather than in whole builds."""
    return isinstance(kind, IncrementalByTimeRange)
