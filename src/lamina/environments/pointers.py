"""Environments as values: named sets of pointers from nodes to versions, kept as revisions."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamina.graph.names import NodeName
    from lamina.identity.naming import PhysicalName, VersionId
    from lamina.timeline.interval import Instant

Status: TypeAlias = Literal["finalized", "active", "detached", "new"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointer:
    """Which version of a node an environment shows, and the definition it runs by.

    `physical` is `None` for nodes without an object of their own (EMBEDDED).
    """

    version: VersionId
    definition_id: str
    physical: PhysicalName | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """An environment at one moment; number 0 means it does not exist yet."""

    environment: str
    number: int = 0
    status: Status = "new"
    pointers: Mapping[NodeName, Pointer] = field(default_factory=lambda: MappingProxyType({}))
    created_at: Instant | None = None
    is_followed: bool = True
    """Whether every view has been set to this revision's pointers."""

    @property
    def places(self) -> dict[NodeName, PhysicalName]:
        """Where what the environment shows lies."""
        return {name: pointer.physical for name, pointer in self.pointers.items() if pointer.physical is not None}
