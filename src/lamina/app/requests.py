"""What a caller asks of a use case."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lamina.planning.inputs import Flags

if TYPE_CHECKING:
    from lamina.graph.names import NodeName
    from lamina.timeline.interval import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """Plan, build or run one environment at one moment."""

    command: str
    now: Instant
    environment: str | None = None
    """`None` stands for the target's default environment."""
    flags: Flags = field(default_factory=Flags)
    concurrency: int | None = None
    is_fail_fast: bool = False
    skips_audits: bool = False
    repairs: frozenset[NodeName] = frozenset()
    """Models whose rows are gone and are computed again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromoteRequest:
    """What to promote, and what to allow."""

    source: str
    destination: str
    now: Instant
    select: tuple[str, ...] = ()
    include_stale_upstreams: bool = False
    allow_partial: bool = False
    allow_gaps: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditsRequest:
    """Which audits of an environment to ask; the bounds are for models whose rows belong to times."""

    now: Instant
    environment: str | None = None
    select: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    start: str | None = None
    end: str | None = None
    concurrency: int | None = None


FILE_FORMATS = ("parquet", "orc", "csv", "json", "text", "delta")
"""Formats of which Spark finds the columns in the files. Iceberg tables belong to the catalog that lists them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterRequest:
    """Files to be known to the catalog as a table; `format` is one of `FILE_FORMATS`."""

    now: Instant
    name: str
    path: str
    format: str
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceColumnsRequest:
    """External tables whose columns are wanted; no names stand for those that models read and nobody has declared."""

    now: Instant
    names: tuple[str, ...] = ()
    is_all: bool = False
    is_check: bool = False
