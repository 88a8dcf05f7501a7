"""What the use cases need from a project, and what they are told about it beside its graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lamina.errors import LaminaError
    from lamina.graph.catalogs import CatalogAbilities
    from lamina.graph.dag import Graph
    from lamina.graph.model import Column, FunctionCall, PythonModule, Source, VariableValue
    from lamina.graph.names import NodeName
    from lamina.timeline.interval import Instant, Intervals
    from lamina.timeline.units import Units


class ProjectSource(Protocol):
    """The project's files."""

    def settings(self) -> ProjectSettings:
        """The configuration; raises `InvalidProject` errors, all at once."""
        ...

    def environment(self) -> Mapping[str, str]:
        """The environment's variables, as `${ENV:NAME}` and `${SECRET:NAME}` mean them."""
        ...

    def graph(self, now: Instant) -> Graph:
        """Every model, seed and source; raises `InvalidProject` errors, all at once."""
        ...

    def seed_text(self, path: str) -> str:
        """The content of a seed's file."""
        ...

    def sources(self, now: Instant) -> ProjectSources:
        """External tables, also where the project demands that all are declared and some are not yet."""
        ...

    def write_columns(
        self, columns: Mapping[NodeName, tuple[Column, ...]], *, is_dry: bool
    ) -> Mapping[NodeName, str | LaminaError]:
        """Declare the columns of external tables in the files they belong in, and nothing else; with `is_dry`, only
        find out where. Answers for each table its file, or why it could not be written.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectSettings:
    """What `lamina.yaml` decides for the use cases."""

    name: str
    mode: str
    target: str
    schema: str
    unsuffixed_environment: str
    default_start: str | None
    concurrency: int
    schema_suffix: str = ""
    replay_on_change: str = "full"
    variables: Mapping[str, VariableValue] = field(default_factory=lambda: MappingProxyType({}))
    catalogs: Mapping[str, CatalogAbilities] = field(default_factory=lambda: MappingProxyType({}))
    """Catalogs beside Spark's own, as far as the settings describe them."""

    @property
    def baseline(self) -> str:
        """The target's default environment."""
        return self.target


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectSources:
    """External tables: those that models read, declared or not, and all that are declared.

    `formats` are those in which models are kept: the tables that they read may be kept so too.
    """

    read: tuple[Source, ...]
    declared: tuple[Source, ...]
    formats: frozenset[str] = frozenset()


MacroLoader: TypeAlias = "Callable[[tuple[PythonModule, ...]], Mapping[str, Callable[..., object]]]"
"""Turns captured macro modules into callable macros."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One signal of a model, asked about one contiguous range of units; `session` starts Spark when it is called."""

    node: NodeName
    call: FunctionCall
    units: Units
    now: Instant
    session: Callable[[], Any]


AskSignal: TypeAlias = "Callable[[Question], Intervals]"
"""Calls the recorded function of a signal and answers which of the units may be processed; nothing outside of them.

Raises a `LaminaError` with the place in the user's code when the function fails or its answer makes no sense.
"""
