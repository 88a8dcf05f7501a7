"""Maintenance while batches are under way: files are rewritten between a batch's first look and its end."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from lamina import Project
from lamina.spark.formats import delta, iceberg
from tests.conformance.project import Event, rows_shown, set_sources
from tests.kit.connect import reader
from tests.kit.told import tell

FORMATS = ("delta", "iceberg")
MODELS = {
    # What it adds would be added twice if a batch were applied twice.
    "keyed": (
        "kind INCREMENTAL_BY_UNIQUE_KEY (unique_key customer, when_matched ("
        "WHEN MATCHED THEN UPDATE SET target.total = target.total + source.total))",
        "SELECT customer, SUM(amount) AS total FROM raw.events WHERE day BETWEEN @start_date AND @end_date "
        "GROUP BY customer",
    ),
    # Nothing holds it back: on Delta its query is part of the transaction.
    "plain": ("kind INCREMENTAL_BY_TIME_RANGE (time_column day), clustered_by (id)", "SELECT id, day FROM {events}"),
    "audited": (
        "kind INCREMENTAL_BY_TIME_RANGE (time_column day), clustered_by (id), audits (not_null(columns := (id)))",
        "SELECT id, day FROM {events}",
    ),
    "appended": ("kind INCREMENTAL_UNMANAGED", "SELECT id, day FROM {events}"),
}
TABLES = [f"{name}_{table_format}" for name in MODELS for table_format in FORMATS]
# Two customers by turns, so that a table changed by key has two files: one alone is never optimized.
EVENTS: list[Event] = [(day, "ab"[day % 2], f"2024-01-{day:02d}", day) for day in range(1, 10)]
NOT_FOR_EVER = 60


class Maintainer:
    """Rewrites the files of each table once, while a batch is under way on it."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.changes: Counter[str] = Counter()
        self._guard = threading.Lock()

    def is_first(self, table: str) -> bool:
        with self._guard:
            self.changes[table] += 1
            return self.changes[table] == 1

    def delta(self, apply: Callable[..., None]) -> Callable[..., None]:
        """Putting rows into a table that is optimized after the transaction has begun."""

        def applied(session: SparkSession, rows: DataFrame, table: str, action: Any) -> None:
            if not self.is_first(table):
                apply(session, rows, table, action)
                return
            begun, over = (str(self.folder / f"{table}.{word}") for word in ("begun", "over"))
            column = rows.columns[-1]
            held = sf.udf(_holder(begun, over), rows.schema[column].dataType)
            helper = threading.Thread(target=self._optimize, args=(table, begun, over))
            helper.start()
            try:
                apply(session, rows.withColumn(column, held(sf.col(column))), table, action)
            finally:
                helper.join()

        return applied

    def _optimize(self, table: str, begun: str, over: str) -> None:
        _wait_for(begun)
        self.spark.sql(f"OPTIMIZE {table}").collect()
        Path(over).touch()

    def iceberg(self, apply: Callable[..., None]) -> Callable[..., None]:
        """Writing to a branch of a table that is compacted meanwhile."""

        def applied(session: SparkSession, rows: DataFrame, head: Any, target: str, action: Any) -> None:
            apply(session, rows, head, target, action)
            if self.is_first(head.generation):
                catalog, table = iceberg.split_catalog(head.generation)
                options = "options => map('rewrite-all', 'true')"
                self.spark.sql(f"CALL {catalog}.system.rewrite_data_files(table => '{table}', {options})").collect()

        return applied


def _holder(begun: str, over: str) -> Callable[[Any], Any]:
    def held(value: Any) -> Any:
        Path(begun).touch()
        for _ in range(NOT_FOR_EVER * 20):
            if Path(over).exists():
                break
            time.sleep(0.05)
        return value

    return held


def _wait_for(path: str) -> None:
    for _ in range(NOT_FOR_EVER * 20):
        if Path(path).exists():
            return
        time.sleep(0.05)


def write_files(folder: Path, remote: str) -> None:
    (folder / "models").mkdir(parents=True)
    (folder / "lamina.yaml").write_text(
        f"name: kept\nspark: {{remote: '{remote}'}}\ndefaults: {{start: 2024-01-01}}\nconcurrency: 1\n"
    )
    events = "raw.events WHERE day BETWEEN @start_date AND @end_date"
    for name, (header, query) in MODELS.items():
        for table_format in FORMATS:
            text = f"MODEL (name kept.{name}_{table_format}, table_format {table_format}, {header});\n{query}\n"
            (folder / "models" / f"{name}_{table_format}.sql").write_text(text.replace("{events}", events))


def main(place: str, remote: str) -> None:
    folder, spark = Path(place), reader(remote)
    write_files(folder, remote)
    set_sources(spark, EVENTS)
    seen: dict[str, Any] = {}

    def build(step: str, at: str) -> None:
        with Project.open(folder) as project:
            report = project.build(execution_time=at).to_dict()
        seen[step] = {
            "status": report["status"],
            "errors": {node["name"]: node["error"] for node in report["nodes"] if node["error"]},
            "rows": rows_shown(spark, "kept", TABLES),
        }

    build("first", "2024-01-02")
    build("second", "2024-01-03")
    maintainer = Maintainer(spark, folder)
    with (
        patch.object(delta, "apply_rows", maintainer.delta(delta.apply_rows)),
        patch.object(iceberg, "_apply", maintainer.iceberg(iceberg._apply)),
    ):
        build("maintained", "2024-01-04")
    seen["changes"] = {
        name: count
        for table, count in maintainer.changes.items()
        for name in TABLES
        if table.rpartition(".")[2].startswith(f"{name}__v_")
    }
    build("after", "2024-01-05")
    tell(seen)


if __name__ == "__main__":
    main(*sys.argv[1:])
