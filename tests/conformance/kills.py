"""Clients that are killed at one step after another, and a command after each that finishes: what is there then."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from lamina import Project
from lamina.bootstrap import STOP_VARIABLE
from tests.conformance.project import Event, Product, rows_shown, set_sources, write_project
from tests.kit.told import tell

SOURCES = Path(__file__).parents[2] / "src"
NAMES = ("adds", "appends", "by_time", "daily", "months", "plain")
CUSTOMERS = ("a", "b")
# For each day the kills of one command after the other: a step, and how often it is passed before. Models follow each
# other by name, and those that are done already are not among the next command's.
KILLS: tuple[tuple[str, ...], ...] = (
    ("write.intent:3", "write.half_folder:3", "write.published:1"),
    ("write.half_folder:1", "write.decide:3", "write.done:2"),
    ("write.decided:1", "recover.published", "write.published:1", "write.decided:1", "write.written:1"),
    ("write.decided:2", "recover.retracting"),
    ("write.decided:6", "recover.fenced"),
)


def events(days: int) -> list[Event]:
    return [
        (10 * day + number, customer, f"2024-01-{day:02d}", day)
        for day in range(1, days + 1)
        for number, customer in enumerate(CUSTOMERS)
    ]


def products(days: int) -> list[Product]:
    """One product, whose price and time of change are those of the last day."""
    return [(1, "tea", days, f"2024-01-{days:02d}")]


def main(folder: str, remote: str, table_format: str) -> None:
    place = Path(folder)
    spark = SparkSession.builder.remote(remote).create()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    schema = f"killed_{table_format}"
    write_project(place, remote, schema, (table_format,), NAMES)
    config = place / "lamina.yaml"
    config.write_text(config.read_text().replace("concurrency: 2", "concurrency: 1"))
    set_sources(spark, events(1), products(1))
    tables = [f"{name}_{table_format}" for name in NAMES]
    with Project.open(place) as project:
        project.build(execution_time="2024-01-02")
    seen = []
    for number, points in enumerate(KILLS):
        day = f"2024-01-{number + 3:02d}"
        set_sources(spark, events(number + 2), products(number + 2))
        ends = [kill(place, point, day) for point in points]
        during = rows_shown(spark, schema, tables)
        with Project.open(place) as project:
            last, again = project.run(execution_time=day).status, project.run(execution_time=day).status
        after = rows_shown(spark, schema, tables)
        seen.append({"points": points, "ends": ends, "last": last, "again": again, "during": during, "after": after})
    tell(seen)


def kill(folder: Path, point: str, day: str) -> int:
    """Run a command that kills itself at a step; what it claimed is made to have run out, as after two minutes."""
    name, _, count = point.partition(":")
    answer = subprocess.run(
        [sys.executable, "-m", "lamina", "run", "--execution-time", day],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SOURCES), STOP_VARIABLE: f"kill:{name}:{count or 1}"},
        capture_output=True,
        check=False,
    )
    with sqlite3.connect(folder / ".lamina" / "state.db") as state:
        state.execute("UPDATE lamina_leases SET expires_at = 0 WHERE status = 'held'")
    return answer.returncode


if __name__ == "__main__":
    main(*sys.argv[1:])
