"""Everything that a store can know about publishes, as facts: what the recorded stores in `tests/ports/stores` hold."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from lamina.app.ports.facts import AttemptDecided, AttemptRetracting
from lamina.app.ports.loaded import LoadRequest
from lamina.app.ports.published import (
    AddPartitions,
    CommitRows,
    FastForward,
    Head,
    PartitionColumn,
    RowAction,
    SetView,
    SwitchGeneration,
    TableShape,
    WriteThrough,
)
from lamina.graph.model import Column
from lamina.graph.names import NodeName
from tests.kit.state import PHYSICAL, SHAPE, covering, days, decided, done, finish, opened, version

if TYPE_CHECKING:
    from lamina.app.ports.published import Publish
    from lamina.app.ports.state import StateStore

NODES = tuple(NodeName(f"shop.node_{number}") for number in range(6))
NAMES = tuple(version(node).physical for node in NODES)
OTHER_SHAPE = TableShape(
    columns=(Column(name="id", type="string"), Column(name="größe", type="struct<a:int>", comment="it's\n\\n odd")),
    partition_columns=(PartitionColumn(name="id", type="string", expression="left(id, 1)"),),
)
EVERYTHING = LoadRequest(heads=(PHYSICAL, *NAMES), manifests=(PHYSICAL, *NAMES))


def live(store: StateStore) -> None:
    """Three batches that ended, one that is taken back, and every sort of publish, decided."""
    store.commit([version(), *(version(node) for node in NODES)])
    for number in range(1, 4):
        finish(store, number, number, interval=days(number))
    store.commit([opened(4)])
    store.commit([decided(4, 4)])
    store.commit([AttemptRetracting(number=4, physical=PHYSICAL)])
    for number, publish in enumerate(publishes(), start=10):
        physical = publish.physical
        store.commit([opened(number, physical, days(number))])
        head = None if hasattr(publish, "head") else _head(physical, number, publish.shape)
        fact = AttemptDecided(number=number, physical=physical, publish=publish, head=head, folders_set={}, rows=7)
        store.commit([fact])
    store.commit([opened(20, NAMES[0])])
    store.commit([done(10, NAMES[0])])


def _head(physical: str, number: int, shape: TableShape) -> Head:
    return Head(physical=physical, sequence=1, generation="g", attempt=number, shape=shape, view_sql="SELECT 1")


def publishes() -> tuple[Publish, ...]:
    """One of each sort."""
    heads = [_head(physical, 10 + number, OTHER_SHAPE) for number, physical in enumerate(NAMES)]
    rewritten = covering(days(3))
    partitions = MappingProxyType({("2024-01-01",): "folder"})
    return (
        AddPartitions(physical=NAMES[0], generation="g", shape=SHAPE, partitions=partitions),
        SwitchGeneration(physical=NAMES[1], generation="g", shape=OTHER_SHAPE, description="orders"),
        SetView(physical=NAMES[2], generation="g", sql="SELECT 1 AS id", shape=SHAPE),
        CommitRows(
            head=heads[3],
            rewritten=rewritten,
            folder="folder",
            action=RowAction(name="append"),
            transaction=3,
            writer="w",
        ),
        WriteThrough(head=heads[4], is_asked=True, transaction=4, writer="w"),
        FastForward(head=heads[5], rewritten=rewritten, branch="b", former=None),
    )
