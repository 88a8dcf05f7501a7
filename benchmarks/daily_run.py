"""One more day over many small incremental models: Lamina against the same INSERTs issued by hand."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.generate import daily_query, generate_daily

_ROWS_PER_DAY = 2000
_FIRST, _SECOND = "2024-01-01", "2024-01-02"

_SOURCE = """
from benchmarks.daily_run import by_hand_session, make_source
spark = by_hand_session({folder!r})
make_source(spark)
spark.stop()
"""
_BY_HAND = """
from benchmarks.daily_run import by_hand_session, insert_by_hand
spark = by_hand_session({folder!r})
insert_by_hand(spark, {models}, {day!r}, {concurrency}, create={create})
spark.stop()
"""


def by_hand_session(folder: str) -> Any:
    """The session a careful engineer would start for this job: the same settings as the embedded one."""
    from pyspark.sql import SparkSession

    home = Path(folder) / ".lamina"
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.warehouse.dir", str(home / "warehouse"))
        .config("spark.hadoop.javax.jdo.option.ConnectionURL", f"jdbc:derby:;databaseName={home}/metastore;create=true")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.sources.partitionOverwriteMode", "dynamic")
        .enableHiveSupport()
        .getOrCreate()
    )


def make_source(spark: Any) -> None:
    """Two days of events."""
    spark.sql("CREATE SCHEMA IF NOT EXISTS raw")
    spark.sql(
        "CREATE TABLE raw.events USING parquet AS "
        "SELECT id, id % 97 AS customer_id, CAST(id % 13 AS DOUBLE) AS amount, CONCAT('s', id % 3) AS status, "
        f"date_add(DATE '{_FIRST}', CAST(id / {_ROWS_PER_DAY} AS INT)) AS ds "
        f"FROM range({2 * _ROWS_PER_DAY})"
    )


def insert_by_hand(spark: Any, models: int, day: str, concurrency: int, *, create: bool) -> None:
    """One INSERT OVERWRITE per model for one day, so many at a time."""
    from concurrent.futures import ThreadPoolExecutor

    if create:
        spark.sql("CREATE SCHEMA IF NOT EXISTS hand")

    def insert(number: int) -> None:
        session = spark.newSession()
        session.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
        if create:
            session.sql(
                f"CREATE TABLE hand.daily_{number} (customer_id BIGINT, total DOUBLE, events BIGINT, status STRING, "
                "ds DATE) USING parquet PARTITIONED BY (ds)"
            )
        session.sql(
            f"INSERT OVERWRITE hand.daily_{number} {daily_query(number, 'raw.events')} "
            f"WHERE ds = DATE '{day}' GROUP BY customer_id, ds"
        )

    with ThreadPoolExecutor(max_workers=concurrency) as pool:
        list(pool.map(insert, range(models)))


def main(models: int = 50, concurrency: int = 4, rounds: int = 1) -> dict[str, Any]:
    """Seconds of both for the second day, each in a fresh process, and their ratio."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "project"
        generate_daily(folder, models, concurrency=concurrency)
        _python(_SOURCE.format(folder=str(folder)))
        _lamina(folder, "build", _SECOND)
        values = {"folder": str(folder), "models": models, "concurrency": concurrency}
        _python(_BY_HAND.format(**values, day=_FIRST, create=True))
        hand, ours, statements = [], [], 0
        for number in range(rounds):
            hand.append(_python(_BY_HAND.format(**values, day=_SECOND, create=False)))
            seconds, document = _lamina(folder, "run", f"2024-01-{3 + number:02d}")
            ours.append(seconds)
            statements = _statements(folder, document["run_id"])
        return {
            "models": models,
            "concurrency": concurrency,
            "by_hand_seconds": round(min(hand), 2),
            "lamina_seconds": round(min(ours), 2),
            "ratio": round(min(ours) / min(hand), 2),
            "spark_statements_per_batch": round(statements / models, 2),
        }


def _statements(folder: Path, run_id: str) -> int:
    _, document = _lamina(folder, "history", None, run_id)
    return sum(batch["statements"] for run in document["history"] for batch in run["batches"])


def _python(code: str) -> float:
    begun = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    return time.perf_counter() - begun


def _lamina(folder: Path, command: str, moment: str | None, *words: str) -> tuple[float, dict[str, Any]]:
    clock = ["--execution-time", moment] if moment else []
    call = [sys.executable, "-m", "lamina", command, *words, "--json", "-C", str(folder), *clock]
    begun = time.perf_counter()
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stdout[-2000:] + done.stderr[-2000:])
    document: dict[str, Any] = json.loads(done.stdout)
    return time.perf_counter() - begun, document
