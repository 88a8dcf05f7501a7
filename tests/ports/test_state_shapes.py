"""The shape of a table is kept once, however many batches it has; stores that kept it with each are brought over."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import event

from lamina.app.ports.loaded import LoadRequest
from lamina.app.ports.published import TableShape
from lamina.graph.model import Column
from lamina.state.memory import MemoryStateStore
from lamina.state.shapes import shape_of, with_shape
from lamina.state.sqlite import SqliteBackend
from lamina.state.store import SqlStateStore
from tests.kit.old_stores import EVERYTHING, NAMES, live, publishes
from tests.kit.state import PHYSICAL, days, decided, done, finish, opened, version

STORES = Path(__file__).parent / "stores"


def shape_with(columns: int) -> TableShape:
    return TableShape(columns=tuple(Column(name=f"column_{n}", type="string", comment="long") for n in range(columns)))


# --- what a batch adds ------------------------------------------------------------------------------------------------
def stored(file: Path) -> int:
    """The characters in all rows."""
    with sqlite3.connect(file) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        sizes = []
        for table in tables:
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            each = " + ".join(f'coalesce(length("{column}"), 0)' for column in columns)
            sizes.append(connection.execute(f"SELECT coalesce(sum({each}), 0) FROM {table}").fetchone()[0])
    connection.close()
    return sum(sizes)


def added_by_the_second_batch(place, file: Path, columns: int, publish) -> int:
    """What the second of two batches adds to a store that knows its shape."""
    shape = shape_with(columns)
    store = place.open()
    store.commit([version()])
    sizes = []
    for number in (1, 2):
        before = decided(number, number)
        fact = replace(before, publish=with_shape(publish, shape), head=replace(before.head, shape=shape))
        store.commit([opened(number, interval=days(number))])
        store.commit([fact])
        store.commit([done(number)])
        sizes.append(stored(file))
    store.close()
    file.unlink()
    return sizes[1] - sizes[0]


@pytest.mark.parametrize("publish", publishes(), ids=lambda publish: type(publish).__name__)
def test_what_a_batch_adds_does_not_grow_with_the_columns(sqlite_place, publish):
    file = sqlite_place.base / ".lamina" / "state.db"
    narrow, wide = (added_by_the_second_batch(sqlite_place, file, columns, publish) for columns in (2, 300))
    assert wide == narrow


def test_a_shape_that_changes_is_kept_beside_the_former(store):
    store.commit([version()])
    for number, shape in enumerate((shape_with(3), shape_with(4), shape_with(3)), start=1):
        before = decided(number, number)
        fact = replace(
            before, publish=with_shape(before.publish, shape_with(9)), head=replace(before.head, shape=shape)
        )
        store.commit([opened(number)])
        store.commit([fact])
        (attempt,) = store.unsettled().attempts
        assert shape_of(attempt.publish) == shape_with(9)
        assert store.load(LoadRequest(heads=(PHYSICAL,))).heads[PHYSICAL].shape == shape
        store.commit([done(number)])


def test_shapes_are_read_in_the_same_statements(sqlite_place):
    place = sqlite_place
    store = place.open()
    live(store)
    store.close()
    backend = SqliteBackend(place.base / ".lamina" / "state.db")
    statements: list[str] = []
    event.listen(backend._engine, "before_cursor_execute", lambda *call: statements.append(call[2]))
    store = SqlStateStore(backend)
    assert len(store.load(LoadRequest(heads=(PHYSICAL, *NAMES))).heads) == 4
    assert len([text for text in statements if "lamina_heads" in text or "lamina_shapes" in text]) == 1
    statements.clear()
    assert len(store.unsettled().attempts) > 4
    assert len([text for text in statements if "lamina_shapes" in text]) == 1
    store.close()


# --- stores of before -------------------------------------------------------------------------------------------------
def put_back(place, name: str) -> None:
    """The store as a Lamina of that schema version wrote it."""
    rows = (STORES / f"{name}_rows.sql").read_text()
    if place.url.startswith("sqlite"):
        file = place.base / ".lamina" / "state.db"
        file.parent.mkdir()
        with sqlite3.connect(file) as connection:
            connection.executescript((STORES / f"{name}_sqlite.sql").read_text() + rows)
        connection.close()
    else:
        with psycopg.connect(place.url, autocommit=True) as connection:
            connection.execute((STORES / f"{name}_postgresql.sql").read_text() + rows)


def test_a_store_with_a_shape_in_every_batch_is_brought_over(place):
    put_back(place, "version_1")
    plain = MemoryStateStore()
    live(plain)
    store = place.open()
    try:
        assert store.unsettled() == plain.unsettled()
        assert store.load(EVERYTHING) == plain.load(EVERYTHING)
        for one in (store, plain):
            one.commit([done(12, NAMES[2])])
            finish(one, 30, 2, NAMES[2])
        store.close()
        store = place.open()
        assert store.unsettled() == plain.unsettled()
        assert store.load(EVERYTHING) == plain.load(EVERYTHING)
    finally:
        store.close()


def test_a_store_that_is_brought_over_keeps_each_shape_once(sqlite_place):
    put_back(sqlite_place, "version_1")
    store = sqlite_place.open()
    store.unsettled()
    finish(store, 30, 5)
    store.close()
    with sqlite3.connect(sqlite_place.base / ".lamina" / "state.db") as connection:
        shapes = connection.execute("SELECT shape_id, shape FROM lamina_shapes").fetchall()
        texts = [text for (text,) in connection.execute("SELECT detail FROM lamina_attempt_events")]
        named = connection.execute(
            "SELECT shape_id FROM lamina_heads UNION SELECT shape_id FROM lamina_attempt_events "
            "WHERE shape_id IS NOT NULL"
        ).fetchall()
    connection.close()
    assert len(shapes) == 2
    assert {id_ for (id_,) in named} == {id_ for id_, _ in shapes}
    assert not [text for text in texts if '"columns"' in text]
