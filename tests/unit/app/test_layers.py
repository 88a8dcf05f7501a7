"""Generations laid over former ones show exactly what one over everything would, and cost what was replaced."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.app.ports.engine import Base, Written
from lamina.app.ports.published import Head, PartitionColumn, PartitionKey, TableShape
from lamina.app.rendering.models import head_relation, stored_query
from lamina.app.rendering.partitions import outside
from lamina.app.writing import layers
from lamina.app.writing.layers import after_adding, lay_over
from lamina.graph.model import Column
from lamina.identity.naming import PhysicalName

DAY = PartitionColumn(name="day", type="date")
HIDDEN = PartitionColumn(name="lamina_p1", type="string", expression="left(name, 1)")
COLUMNS = (Column(name="id", type="int"), Column(name="day", type="date"))
SHAPE = TableShape(columns=COLUMNS, partition_columns=(DAY,))


def key(number: int) -> PartitionKey:
    return (f"{number:04d}",)


@dataclass
class Tables:
    """What the catalog holds, and what the state says; partitions are registered when a generation is made."""

    head: Head
    manifest: dict[PartitionKey, str]
    tables: dict[str, dict[PartitionKey, str]]
    registered: int = 0
    layered: int = 0
    number: int = field(default=1)

    @classmethod
    def of(cls, keys: range) -> Tables:
        manifest = {key(number): "first" for number in keys}
        head = Head(physical=PhysicalName("t"), sequence=1, generation="g1", attempt=1, shape=SHAPE)
        return cls(head=head, manifest=manifest, tables={"g1": dict(manifest)})

    def write(self, replaced: set[int], removed: set[int] = frozenset()) -> None:
        self.number += 1
        folders = {key(number): f"batch {self.number}" for number in replaced - removed}
        gone = tuple(key(number) for number in removed if key(number) in self.manifest)
        written = Written(rows=1, shape=SHAPE, folders=folders, removed=gone)
        base = Base(head=self.head, manifest=dict(self.manifest))
        is_replacing = bool(gone) or any(each in self.manifest for each in folders)
        for each in gone:
            del self.manifest[each]
        self.manifest |= folders
        if not is_replacing:
            table = self.tables[self.head.generation]
            assert not table.keys() & folders.keys()
            table |= folders
            self.registered += len(folders)
            self.head = replace(self.head, beneath=after_adding(base, folders))
            return
        beneath = lay_over(base, written)
        held = self.manifest if beneath is None or beneath.above is None else dict.fromkeys(beneath.above)
        self.layered += beneath is not None
        self.tables[f"g{self.number}"] = {each: self.manifest[each] for each in held}
        self.registered += len(held)
        self.head = replace(self.head, generation=f"g{self.number}", beneath=beneath)

    def shown(self) -> list[tuple[PartitionKey, str]]:
        found = list(self.tables[self.head.generation].items())
        if (beneath := self.head.beneath) is not None:
            lower = self.tables[beneath.generation]
            found += [(each, folder) for each, folder in lower.items() if each not in beneath.hidden]
        return found


@given(
    size=st.integers(0, 90),
    batches=st.lists(
        st.tuples(st.sets(st.integers(0, 99), max_size=6), st.sets(st.integers(0, 99), max_size=3)), max_size=30
    ),
)
def test_every_partition_is_shown_once_from_its_newest_folder(size, batches):
    tables = Tables.of(range(size))
    for replaced, removed in batches:
        tables.write(replaced, removed)
        assert sorted(tables.shown()) == sorted(tables.manifest.items())


def test_a_batch_that_replaces_a_partition_and_adds_one_costs_little_of_the_whole_table():
    tables, batches = Tables.of(range(720)), 240
    for number in range(720, 720 + batches):
        tables.write({number - 1, number})
    # Made anew each time it would be 840 on average.
    assert tables.registered / batches < 60
    assert tables.layered / batches > 0.95


def test_partitions_all_over_a_long_history_cost_little_too():
    tables, batches = Tables.of(range(10_000)), 400
    for number in range(batches):
        tables.write({number * 7919 % 10_000})
    assert tables.registered / batches < 200


def test_a_table_of_few_partitions_or_of_another_shape_is_made_anew():
    few = Tables.of(range(layers.FEW - 1))
    few.write({1})
    assert few.head.beneath is None
    enough = Tables.of(range(layers.FEW))
    base = Base(head=enough.head, manifest=enough.manifest)
    written = Written(rows=1, shape=SHAPE, folders={key(1): "f"})
    assert lay_over(base, written) is not None
    assert lay_over(base, replace(written, shape=replace(SHAPE, columns=COLUMNS[:1]))) is None


def test_values_that_a_condition_could_misread_are_never_hidden_by_one():
    odd = ("a'b",)
    tables = Tables.of(range(50))
    tables.manifest[odd] = "first"
    base = Base(head=tables.head, manifest=tables.manifest)
    assert lay_over(base, Written(rows=1, shape=SHAPE, folders={odd: "f"})) is None


@pytest.mark.parametrize(
    ("columns", "keys", "expected"),
    [
        ((DAY,), [], "true"),
        ((DAY,), [("2024-01-01",)], "coalesce(`day` NOT IN (DATE '2024-01-01'), true)"),
        ((DAY,), [(None,)], "`day` IS NOT NULL"),
        ((DAY,), [("a",), (None,)], "coalesce(`day` NOT IN (DATE 'a'), true) AND `day` IS NOT NULL"),
        (
            (DAY, HIDDEN),
            [("2024-01-01", None), ("2024-01-02", "b")],
            "NOT ((`day` <=> DATE '2024-01-01' AND `lamina_p1` <=> NULL) OR "
            "(`day` <=> DATE '2024-01-02' AND `lamina_p1` <=> 'b'))",
        ),
    ],
)
def test_the_rest_is_told_by_a_condition_that_minds_missing_values(columns, keys, expected):
    assert outside(columns, keys) == expected


def test_reading_goes_through_both_and_takes_a_condition_along():
    tables = Tables.of(range(50))
    tables.write({3})
    assert stored_query(tables.head) == (
        "SELECT * FROM `g1` WHERE coalesce(`day` NOT IN (DATE '0003'), true) UNION ALL SELECT * FROM `g2`"
    )
    assert head_relation(tables.head, "`day` > 1") == (
        "(SELECT `id`, `day` FROM `g1` WHERE coalesce(`day` NOT IN (DATE '0003'), true) AND (`day` > 1) "
        "UNION ALL SELECT `id`, `day` FROM `g2` WHERE `day` > 1)"
    )


def test_what_no_catalog_could_keep_as_the_text_of_a_view_is_laid_out_anew() -> None:
    columns = (*COLUMNS, Column(name="place", type="string"))
    place = PartitionColumn(name="place", type="string")
    shape = TableShape(columns=columns, partition_columns=(DAY, place))
    keys = [(f"{number:04d}", f"{number:04d}" + "x" * 120) for number in range(20_000)]
    head = Head(physical=PhysicalName("t"), sequence=1, generation="g1", attempt=1, shape=shape)
    base = Base(head=head, manifest=dict.fromkeys(keys, "first"))

    def replaced(count: int) -> Written:
        return Written(rows=1, shape=shape, folders=dict.fromkeys(keys[:count], "second"))

    few = lay_over(base, replaced(50))
    assert few is not None
    assert len(outside(shape.partition_columns, few.hidden)) < 16_000
    assert lay_over(base, replaced(120)) is None


def test_values_that_a_metastore_would_misread_are_kept_from_it() -> None:
    place = PartitionColumn(name="place", type="string")
    assert outside((place,), [("Oslo",)]) == "coalesce(`place` NOT IN ('Oslo'), true)"
    assert outside((place,), [("Cote d'Ivoire",)]) == "coalesce(concat(`place`, '') NOT IN ('Cote d\\'Ivoire'), true)"
