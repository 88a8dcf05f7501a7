"""Progress as values: what happened, for whoever wants to draw it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from lamina.errors import LaminaError
    from lamina.graph.names import NodeName
    from lamina.timeline.interval import Interval


Emit: TypeAlias = "Callable[[Event], None]"
"""Receives progress; must be quick and never raise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkStarting:
    """Spark is being started; `detail` says how."""

    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkStarted:
    """Spark answers."""

    version: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """The command waits for another one."""

    what: str
    holder: str
    seconds: float | None = None
    """After which it goes on at the latest if the other one no longer runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysing:
    """Spark analyses the queries of stale models before anything is written."""

    models: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovering:
    """Work that another command left unfinished is brought to an end."""

    resource: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewsLeft:
    """Views of another environment do not show its pointers yet; that is left to the command which has its lease."""

    environment: str
    holder: str
    seconds: float | None = None
    """After which any command sets them if that one no longer runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkPlanned:
    """How many batches are about to run."""

    batches: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStarted:
    """A batch began."""

    node: NodeName
    index: int
    total: int
    interval: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFinished:
    """A batch is published and recorded."""

    node: NodeName
    index: int
    total: int
    interval: Interval | None
    rows: int | None
    seconds: float
    statements: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRetried:
    """A batch failed in a way that may pass and is tried again."""

    node: NodeName
    index: int
    attempt: int
    error: LaminaError


@dataclass(frozen=True, slots=True, kw_only=True)
class Retried:
    """Something beside batches failed in a way that may pass and is tried again."""

    what: str
    attempt: int
    error: LaminaError


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditsAsked:
    """Audits were asked about rows that are there: of a model, of a source, or a standalone one."""

    about: str
    audits: int
    failed: int
    interval: Interval | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFailed:
    """A node failed; its descendants are skipped."""

    node: NodeName
    error: LaminaError


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSkipped:
    """A node was not touched, and why."""

    node: NodeName
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewsChanged:
    """The environment's views show the new versions."""

    environment: str
    views: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementsRun:
    """Statements that follow an environment's views went through."""

    environment: str
    models: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementsNotRun:
    """A statement that follows a model's view failed."""

    environment: str
    node: NodeName
    error: LaminaError


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableIgnored:
    """An environment variable is set that means nothing and looks as if it should; `hint` says what to do."""

    name: str
    hint: str


Event: TypeAlias = (
    SparkStarting
    | SparkStarted
    | Waiting
    | Analysing
    | Recovering
    | ViewsLeft
    | WorkPlanned
    | BatchStarted
    | BatchFinished
    | BatchRetried
    | Retried
    | AuditsAsked
    | NodeFailed
    | NodeSkipped
    | ViewsChanged
    | StatementsRun
    | StatementsNotRun
    | VariableIgnored
)
