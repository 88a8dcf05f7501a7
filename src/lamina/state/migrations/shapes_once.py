"""Version 2: the shape of a table is kept once, and heads and decided publishes name it."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Connection, Row, TextClause

# So much is in memory at once: a store can be larger than that.
_PAGE = 500
_HEADS = text(
    "SELECT physical, sequence, shape FROM lamina_heads WHERE physical > :physical "
    "OR (physical = :physical AND sequence > :sequence) ORDER BY physical, sequence LIMIT :page"
)
_EVENTS = text(
    "SELECT number, position, detail FROM lamina_attempt_events WHERE status = 'decided' AND (number > :number "
    "OR (number = :number AND position > :position)) ORDER BY number, position LIMIT :page"
)
_SET_HEAD = text("UPDATE lamina_heads SET shape = :shape_id WHERE physical = :physical AND sequence = :sequence")
_SET_EVENT = text(
    "UPDATE lamina_attempt_events SET shape_id = :shape_id, detail = :detail "
    "WHERE number = :number AND position = :position"
)
_ADD = text("INSERT INTO lamina_shapes (shape_id, shape) VALUES (:shape_id, :shape)")


def keep_shapes_once(connection: Connection) -> None:
    """Move every shape into a table of its own."""
    connection.execute(
        text("CREATE TABLE lamina_shapes (shape_id TEXT NOT NULL, shape TEXT NOT NULL, PRIMARY KEY (shape_id))")
    )
    connection.execute(text("ALTER TABLE lamina_attempt_events ADD COLUMN shape_id TEXT"))
    shapes = _Shapes(connection)
    for heads in _pages(connection, _HEADS, {"physical": "", "sequence": 0}):
        named = [
            {"physical": row.physical, "sequence": row.sequence, "shape_id": shapes.kept(row.shape)} for row in heads
        ]
        connection.execute(_SET_HEAD, named)
    connection.execute(text("ALTER TABLE lamina_heads RENAME COLUMN shape TO shape_id"))
    for events in _pages(connection, _EVENTS, {"number": 0, "position": 0}):
        changed = [_without_shape(row, shapes) for row in events]
        connection.execute(_SET_EVENT, changed)


class _Shapes:
    """The new table."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known: set[str] = set()

    def kept(self, shape: str) -> str:
        """The name of a shape, which is in the table from now on."""
        shape_id = hashlib.sha256(shape.encode("ascii")).hexdigest()[:32]
        if shape_id not in self._known:
            self._connection.execute(_ADD, {"shape_id": shape_id, "shape": shape})
            self._known.add(shape_id)
        return shape_id


def _without_shape(event: Row[Any], shapes: _Shapes) -> dict[str, Any]:
    detail = json.loads(event.detail)
    publish = detail["d"]["publish"]
    holder = publish.get("head", publish)
    shape = json.dumps({"v": 1, "is": "shape", "d": holder["shape"]}, separators=(",", ":"))
    holder["shape"] = None
    return {
        "number": event.number,
        "position": event.position,
        "shape_id": shapes.kept(shape),
        "detail": json.dumps(detail, separators=(",", ":")),
    }


def _pages(connection: Connection, statement: TextClause, first: dict[str, Any]) -> Iterator[Sequence[Row[Any]]]:
    """Rows in the order of their keys, some at a time; `first` comes before every key."""
    after = first
    while rows := connection.execute(statement, {**after, "page": _PAGE}).all():
        yield rows
        after = {name: getattr(rows[-1], name) for name in first}
