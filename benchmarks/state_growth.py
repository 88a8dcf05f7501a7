"""What a batch adds to the state of a table of 10 and of 300 columns, against keeping the table's shape with it."""

from __future__ import annotations

import math
import sqlite3
import tempfile
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from lamina.app.ports.facts import AttemptDecided, AttemptDone, AttemptOpened
from lamina.app.ports.published import Attempt, Beneath, Head, TableShape, switch_to
from lamina.bootstrap import open_store
from lamina.graph.model import Column
from lamina.identity.naming import PhysicalName
from lamina.state.codec import shape_document
from lamina.timeline.interval import Instant, Interval

_HOUR = 3_600_000_000
_PHYSICAL = PhysicalName("shop__lamina.orders__v_0000000000000001")


def main(widths: tuple[int, ...] = (10, 300), batches: int = 200) -> list[dict[str, Any]]:
    """Measure every width.

    What a batch took before is reckoned: it kept the shape twice, with its decided publish and with its head.
    """
    rows = []
    for columns in widths:
        shape = TableShape(columns=tuple(Column(name=f"column_{n}", type="decimal(18,2)") for n in range(columns)))
        after = _bytes_per_batch(shape, batches)
        before = after + 2 * len(shape_document.write(shape))
        rows.append(
            {
                "columns": columns,
                "bytes_per_batch_with_shapes": before,
                "bytes_per_batch": after,
                "ratio": round(after / before, 3),
            }
        )
    return [*rows, layered(batches=batches)]


def layered(partitions: int = 721, batches: int = 200) -> dict[str, Any]:
    """What a batch adds that replaces a day of so many, and is laid over the days that stay."""
    shape = TableShape(columns=(Column(name="id", type="bigint"), Column(name="day", type="date")))
    most = 2 * (math.isqrt(2 * partitions) + 1)

    def beneath(number: int) -> Beneath:
        days = [(str(date(2024, 1, 1) + timedelta(days=7 * day)),) for day in range(number % most)]
        half = len(days) // 2
        return Beneath(generation=f"{_PHYSICAL}__g_1", hidden=tuple(days[:half]), above=tuple(days[half:]))

    plain, laid_over = _bytes_per_batch(shape, batches), _bytes_per_batch(shape, batches, beneath)
    return {
        "partitions": partitions,
        "bytes_per_batch": plain,
        "bytes_per_batch_in_layers": laid_over,
        "ratio": round(laid_over / plain, 3),
    }


def _bytes_per_batch(
    shape: TableShape, batches: int, beneath_of: Callable[[int], Beneath | None] = lambda _number: None
) -> int:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "state.db"
        store = open_store(f"sqlite:///{file}", Path(folder))
        sizes = []
        for number in range(1, batches + 2):
            interval = Interval(Instant(number * _HOUR), Instant((number + 1) * _HOUR))
            store.commit([AttemptOpened(attempt=_attempt(number, interval), run_id="run")])
            head = Head(
                physical=_PHYSICAL,
                sequence=number,
                generation=f"g_{number}",
                attempt=number,
                shape=shape,
                beneath=beneath_of(number),
            )
            decided = AttemptDecided(
                number=number,
                physical=_PHYSICAL,
                publish=switch_to(head),
                head=head,
                folders_set={(): "folder"},
                rows=1,
            )
            store.commit([decided])
            store.commit([AttemptDone(number=number, physical=_PHYSICAL)])
            if number in {1, batches + 1}:
                sizes.append(_size(file))
        store.close()
    return round((sizes[1] - sizes[0]) / batches)


def _attempt(number: int, interval: Interval) -> Attempt:
    return Attempt(
        number=number,
        physical=_PHYSICAL,
        token=1,
        status="open",
        interval=interval,
        folder=f"{_PHYSICAL}/b_{number}",
        generation=f"g_{number}",
        base_sequence=number - 1,
        reads=(),
        execution_time=interval.end,
    )


def _size(file: Path) -> int:
    """Bytes in use, with what is in the file beside the database."""
    connection = sqlite3.connect(file)
    (size,) = connection.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").fetchone()
    connection.close()
    return int(size)
