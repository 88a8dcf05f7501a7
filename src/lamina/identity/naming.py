"""Names in the warehouse: versions, generations, folders and what readers see."""

from __future__ import annotations

from typing import TYPE_CHECKING, NewType

from lamina.graph.names import NodeName, schema_of, table_of

if TYPE_CHECKING:
    from collections.abc import Collection

VersionId = NewType("VersionId", str)
"""Sixteen hex digits that say what a node is, its name included."""

PhysicalName = NewType("PhysicalName", str)
"""The table or view that holds one version: `<schema>__lamina.<table>__v_<hash>`; never used twice."""

LogicalName = NewType("LogicalName", str)
"""The view that an environment's readers use."""

RESERVED_ENVIRONMENT = "lamina"


def physical_schema(node: NodeName) -> str:
    """The schema that holds the versions of a node."""
    return f"{schema_of(node)}__lamina"


def physical_name(node: NodeName, version: VersionId, incarnation: int = 1) -> PhysicalName:
    """The name of a version; from its second life on it carries the incarnation."""
    suffix = f"_{incarnation}" if incarnation > 1 else ""
    return PhysicalName(f"{physical_schema(node)}.{table_of(node)}__v_{version}{suffix}")


def incarnation_of(physical: PhysicalName, version: VersionId) -> int:
    """Which life of the version a name stands for."""
    _, _, suffix = physical.rpartition(f"__v_{version}")
    return int(suffix.removeprefix("_")) if suffix else 1


def next_name(node: NodeName, version: VersionId, taken: Collection[PhysicalName]) -> PhysicalName:
    """A name for another life of a version, beside those that are taken."""
    first = physical_name(node, version)
    lives = [incarnation_of(each, version) for each in taken if each == first or each.startswith(f"{first}_")]
    return physical_name(node, version, 1 + max(lives, default=0))


def generation_name(physical: PhysicalName, attempt: int) -> str:
    """The table that holds the rows published by an attempt."""
    return f"{physical}__g_{attempt}"


def batch_folder(physical: PhysicalName, attempt: int, store_id: str) -> str:
    """Where an attempt writes, relative to the location of the physical schema."""
    return f"{version_folder(physical, store_id)}/{attempt}"


def version_folder(physical: PhysicalName, store_id: str) -> str:
    """Where all attempts of a version write, relative to the location of the physical schema."""
    return f"_lamina_{store_id}/{physical.rpartition('.')[2]}"


def logical_schema(schema: str, environment: str, unsuffixed: str) -> str:
    """The schema in which an environment's readers find the models of `schema`."""
    return schema if environment == unsuffixed else f"{schema}__{environment}"


def logical_name(node: NodeName, environment: str, unsuffixed: str) -> LogicalName:
    """The view of a node in an environment."""
    return LogicalName(f"{logical_schema(schema_of(node), environment, unsuffixed)}.{table_of(node)}")
