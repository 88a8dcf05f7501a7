"""What was found out about one file, or about all of them, as it is remembered."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from lamina.project.cache.shapes import GRAPH
from lamina.reading.audits import AuditDefinition
from lamina.reading.drafts import Draft, WrittenReference
from lamina.sql.lineage.missing_columns import ColumnFindings, MissingColumn
from lamina.sql.names import TableName

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamina.graph.dag import Notice
    from lamina.graph.model import AuditCode, Source
    from lamina.reading.windows import Windows


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What was read; `key` says from which content and in which surroundings. Each sort of file has its own fields."""

    key: str
    drafts: tuple[Draft, ...] = ()
    is_helper: bool = False
    """Whether a Python file has code and declares no model."""
    sources: tuple[Source, ...] = ()
    audits: tuple[AuditDefinition, ...] = ()
    windows: Mapping[str, Windows] = field(default_factory=lambda: MappingProxyType({}))
    codes: Mapping[str, AuditCode] = field(default_factory=lambda: MappingProxyType({}))
    notices: tuple[Notice, ...] = ()
    """What a file says that nothing acts on."""
    columns: Mapping[str, ColumnFindings] = field(default_factory=lambda: MappingProxyType({}))
    sound: Mapping[str, bool] = field(default_factory=lambda: MappingProxyType({}))
    """Seeds with rows that nothing is wrong with."""


ENTRIES = GRAPH.extended(
    (AuditDefinition, ColumnFindings, Draft, Entry, MissingColumn, TableName, WrittenReference),
    {"Windows": "tuple[Mapping[NodeName, InputWindow], bool]"},
)
