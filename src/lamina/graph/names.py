"""Names of nodes and things that only names can be mixed up with."""

from __future__ import annotations

from typing import NewType

NodeName = NewType("NodeName", str)
"""A node's full name in lower case: `schema.table` or `catalog.schema.table`."""


def schema_of(name: NodeName) -> str:
    """Everything in front of the table: `schema` or `catalog.schema`."""
    return name.rpartition(".")[0]


def table_of(name: NodeName) -> str:
    """The last part of the name."""
    return name.rpartition(".")[2]
