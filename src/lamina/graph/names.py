"""Names of nodes and things that only names can be mixed up with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NewType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamina.sql.names import TableName

_SPARK_CATALOG = "spark_catalog"

NodeName = NewType("NodeName", str)
"""A node's full name in lower case: `schema.table` or `catalog.schema.table`."""


def schema_of(name: NodeName) -> str:
    """Everything in front of the table: `schema` or `catalog.schema`."""
    return name.rpartition(".")[0]


def table_of(name: NodeName) -> str:
    """The last part of the name."""
    return name.rpartition(".")[2]


def shown_names(names: Sequence[str], most: int = 5) -> str:
    """Names for people: in backticks, with commas and `and`, and how many more there are.

    >>> shown_names(["a", "b", "c"])
    '`a`, `b` and `c`'
    >>> shown_names(["a", "b", "c"], most=2)
    '`a`, `b` and 1 more'
    """
    listed = [f"`{name}`" for name in names[:most]]
    last = f"{len(names) - most} more" if len(names) > most else listed.pop()
    return f"{', '.join(listed)} and {last}" if listed else last


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """How names in files become names in the warehouse, for one target."""

    schema: str
    schema_suffix: str = ""

    def full_name(self, written: TableName) -> NodeName:
        """The full name of a model: one part takes the target's schema, a schema that is named gets the suffix."""
        if written.schema is None:
            return NodeName(f"{self.schema}.{written.table}")
        suffixed = f"{written.schema}{self.schema_suffix}.{written.table}"
        has_catalog = written.catalog is not None and written.catalog != _SPARK_CATALOG
        return NodeName(f"{written.catalog}.{suffixed}" if has_catalog else suffixed)
