"""The two columns that kinds of SCD type 2 add to what their query gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.graph.kinds import ScdType2ByColumn, ScdType2ByTime
from lamina.graph.model import Column

if TYPE_CHECKING:
    from lamina.graph.kinds import Kind


def shown_columns(kind: Kind, columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """The columns that a reader of the table sees, the query or the model's header giving these."""
    if not isinstance(kind, ScdType2ByTime | ScdType2ByColumn):
        return columns
    present = {column.name.lower() for column in columns}
    validity = (kind.valid_from_name, kind.valid_to_name)
    added = (Column(name=name, type=kind.time_data_type) for name in validity if name.lower() not in present)
    return (*columns, *added)


def given_columns(kind: Kind, columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """The declared columns that the query has to give."""
    if not isinstance(kind, ScdType2ByTime | ScdType2ByColumn):
        return columns
    validity = {kind.valid_from_name.lower(), kind.valid_to_name.lower()}
    return tuple(column for column in columns if column.name.lower() not in validity)
