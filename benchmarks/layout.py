"""What the layout of tables saves: folders that a batch does not look into, files that it does not write."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.intervals import best
from lamina.app.ports.published import AddPartitions
from lamina.app.rendering.key_ranges import key_range
from lamina.app.rendering.models import head_relation
from lamina.app.writing import layers
from lamina.graph.kinds import TimeColumn
from lamina.spark.engine import SparkEngine
from lamina.spark.sessions.embedded import SparkSettings
from lamina.timeline.interval import Interval
from tests.spark.driver import Table


def main() -> dict[str, Any]:
    """All figures."""
    return {"pruning": pruning(), "replacing": replacing(), "files": files()}


@contextmanager
def _engine() -> Iterator[SparkEngine]:
    with tempfile.TemporaryDirectory() as place:
        settings = SparkSettings(home=Path(place) / ".lamina", master="local[2]", config={"spark.driver.memory": "4g"})
        engine = SparkEngine(settings, lambda _: None, lambda _: None)
        try:
            engine.prepare("bench")
            yield engine
        finally:
            engine.close()


def pruning(days: int = 1000, rounds: int = 5) -> dict[str, Any]:
    """A day's batch over an hourly parent, with the keys of its window and by the filter on the timestamp alone.

    One day holds rows; the others are registered partitions over the same files, which cost a reader the same.
    """
    first, day = date(2022, 1, 1), ("2024-01-05", "2024-01-06")
    hours = f"SELECT id, timestampadd(HOUR, CAST(id AS INT), TIMESTAMP'{first}') AS at FROM range(0, {days * 24}, 1, 1)"
    with _engine() as engine:
        table = Table(engine=engine, schema="bench", partitioned_by=("at",), time_column=TimeColumn(name="at"))
        table.write(hours, day)
        head = table.head
        if head is None:
            raise TypeError(table)
        (folder,) = table.manifest.values()
        keys = (str(first + timedelta(days=number)) for number in range(days))
        engine.publish(
            AddPartitions(
                physical=table.physical,
                generation=head.generation,
                shape=head.shape,
                partitions={(key,): folder for key in keys if key != day[0]},
            )
        )
        span = Interval.from_pair(day)
        narrowed = key_range(head.shape, "at", span.start, span.end)

        def count(condition: str | None) -> object:
            inside = f"at >= TIMESTAMP'{day[0]}' AND at < TIMESTAMP'{day[1]}'"
            return engine.query(
                f"SELECT count(*) FROM {head_relation(head, condition)} WHERE {inside}", limit=None
            ).rows

        by_keys, by_time = best(rounds, lambda: count(narrowed), lambda: count(None))
    return {
        "days": days,
        "before_seconds": round(by_time, 2),
        "after_seconds": round(by_keys, 2),
        "ratio": round(by_keys / by_time, 3),
    }


def replacing(partitions: int = 721, batches: int = 60) -> dict[str, Any]:
    """One partition replaced and one added per batch, as an hourly model with a lookback does: how long a batch takes
    on average, and how many partitions it registers, when every generation holds all of them and when it is laid over a
    former one. Partitions are registered over the same few files, which costs the catalog the same.
    """
    found = {}
    with _engine() as engine:
        # Whoever comes first would pay for a cold compiler and catalog.
        _replaced(engine, "warm", layers.FEW, 5)
        for name, few in (("before", partitions * batches), ("after", layers.FEW)):
            with patch.object(layers, "FEW", few):
                found[name] = _replaced(engine, name, partitions, batches if name == "after" else batches // 6)
    return {
        "partitions": partitions,
        **{f"{name}_seconds": seconds for name, (seconds, _) in found.items()},
        **{f"{name}_registered": registered for name, (_, registered) in found.items()},
        "ratio": round(found["after"][0] / found["before"][0], 3),
    }


def _replaced(engine: SparkEngine, name: str, partitions: int, batches: int) -> tuple[float, float]:
    first = date(2020, 1, 1)

    def day(number: int) -> str:
        return str(first + timedelta(days=number))

    table = Table(engine=engine, schema="bench", name=name, partitioned_by=("ds",), time_column=TimeColumn(name="ds"))
    table.write(f"SELECT 0L AS id, DATE'{first}' AS ds", (day(0), day(1)))
    head = table.head
    if head is None:
        raise TypeError(table)
    (folder,) = table.manifest.values()
    more = {(day(number),): folder for number in range(1, partitions)}
    engine.publish(
        AddPartitions(physical=table.physical, generation=head.generation, shape=head.shape, partitions=more)
    )
    table.manifest |= more
    registered = 0
    begun = time.perf_counter()
    for number in range(partitions, partitions + batches):
        rows = f"SELECT id, date_add(DATE'{day(number - 1)}', CAST(id AS INT)) AS ds FROM range(2)"
        table.write(rows, (day(number - 1), day(number + 1)))
        beneath = table.head.beneath if table.head else None
        registered += len(table.manifest if beneath is None or beneath.above is None else beneath.above)
    return round((time.perf_counter() - begun) / batches, 2), round(registered / batches, 1)


def files(rows: int = 50_000_000, rounds: int = 2) -> dict[str, Any]:
    """A backfill in one batch by eight tasks: rows as they come, and those of a day brought together.

    Mixed rows are of any day in every task; ordered ones lie together already, so that nothing is to be gained. What is
    written together is decided by how wide Spark shuffles: with two portions it never is.
    """
    return {
        "mixed": _written("id % 365", rows // 10, 365, rounds),
        "ordered": _written(f"id div {-(-rows // 30)}", rows, 30, rounds),
    }


def _written(day: str, rows: int, days: int, rounds: int) -> dict[str, Any]:
    first = date(2024, 1, 1)
    query = (
        "SELECT id, id % 97 AS customer_id, CAST(id % 1300 AS DOUBLE) AS amount, CONCAT('status', id % 3) AS status, "
        f"date_add(DATE'{first}', CAST({day} AS INT)) AS ds FROM range(0, {rows}, 1, 8)"
    )
    counts: dict[str, int] = {}
    with _engine() as engine:
        numbers = iter(range(100))

        def write(width: str) -> None:
            table = Table(
                engine=engine,
                schema="bench",
                name=f"t{next(numbers)}",
                partitioned_by=("ds",),
                time_column=TimeColumn(name="ds"),
                settings={"spark.sql.shuffle.partitions": width},
            )
            table.write(query, (str(first), str(first + timedelta(days=days))))
            counts[width] = len(engine.frame(f"SELECT * FROM {table.physical}").inputFiles())

        as_they_come, together = best(rounds, lambda: write("2"), lambda: write("200"))
    return {
        "rows": rows,
        "days": days,
        "files_before": counts["2"],
        "files_after": counts["200"],
        "before_seconds": round(as_they_come, 2),
        "after_seconds": round(together, 2),
        "ratio": round(together / as_they_come, 2),
    }
