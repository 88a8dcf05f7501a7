"""Shapes of tables, kept once: whatever else is stored names a shape by its content."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

from typing_extensions import assert_never

from lamina.app.ports.published import (
    AddPartitions,
    CommitRows,
    FastForward,
    SetView,
    SwitchGeneration,
    TableShape,
    WriteThrough,
)

if TYPE_CHECKING:
    from lamina.app.ports.published import Publish

NO_SHAPE = TableShape(columns=())
"""Stands in a publish that was read, until its shape is put in."""


def shape_id(text: str) -> str:
    """What a shape is named by, from the text it is stored as: equal shapes have equal names, in every store."""
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:32]


def shape_of(publish: Publish) -> TableShape:
    """The shape that a table has once the publish is carried out."""
    match publish:
        case AddPartitions() | SwitchGeneration() | SetView():
            return publish.shape
        case CommitRows() | WriteThrough() | FastForward():
            return publish.head.shape
        case _:
            assert_never(publish)


def with_shape(publish: Publish, shape: TableShape) -> Publish:
    """The publish with this shape."""
    match publish:
        case AddPartitions() | SwitchGeneration() | SetView():
            return replace(publish, shape=shape)
        case CommitRows() | WriteThrough() | FastForward():
            return replace(publish, head=replace(publish.head, shape=shape))
        case _:
            assert_never(publish)
