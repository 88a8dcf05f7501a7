"""What one command works with: the world, its leases, and the names of its target."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from lamina.app.ports.bundle import Ports
from lamina.graph.names import Naming

if TYPE_CHECKING:
    from lamina.app.leases.keeper import LeaseKeeper
    from lamina.app.ports.project import ProjectSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandPorts(Ports):
    """Every port, with what belongs to one command."""

    keeper: LeaseKeeper
    naming: Naming
    unsuffixed: str
    """The environment whose views carry no suffix."""


def command_ports(ports: Ports, keeper: LeaseKeeper, settings: ProjectSettings) -> CommandPorts:
    """The ports with the leases of this command."""
    return CommandPorts(
        **{field.name: getattr(ports, field.name) for field in fields(ports)},
        keeper=keeper,
        naming=Naming(schema=settings.schema, schema_suffix=settings.schema_suffix),
        unsuffixed=settings.unsuffixed_environment,
    )
