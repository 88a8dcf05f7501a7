"""What the use cases are told about a project, beside its graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamina.graph.catalogs import CatalogAbilities
    from lamina.graph.model import Source, VariableValue


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
