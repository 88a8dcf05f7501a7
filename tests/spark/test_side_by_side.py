"""Batches of models whose partitions are longer than a batch: every row arrives, whatever is asked to run at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from lamina import Project
from lamina.spark.engine import SparkEngine

pytest_plugins = ["tests.ports.conftest_engine"]

PARTITIONS = {
    "by_month": "months(ds)",
    "by_year": "years(ds)",
    "by_week": "date_trunc('week', ds)",
    "by_region": "(region, month(ds))",
    "by_text": "date_format(ds, 'yyyy-MM')",
}
MODEL = """MODEL (
  name beside.{name}, partitioned_by {partitions}, start '2024-01-01',
  kind INCREMENTAL_BY_TIME_RANGE (time_column ds, batch_size 4, batch_concurrency 3)
);
SELECT ds, IF(day(ds) % 2 = 0, 'even', 'odd') AS region, n FROM (
  SELECT explode(sequence(@start_date, @end_date)) AS ds, (SELECT max(n) FROM raw.beside) AS n
)
"""


def test_batches_that_share_a_partition_follow_each_other(engine: SparkEngine, tmp_path: Path) -> None:
    spark: SparkSession = engine.frame("SELECT 1 AS x").sparkSession
    (tmp_path / "models").mkdir()
    (tmp_path / "lamina.yaml").write_text("name: beside\n")
    for name, partitions in PARTITIONS.items():
        text = MODEL.format(name=name, partitions=partitions)
        (tmp_path / "models" / f"{name}.sql").write_text(text)
    spark.sql("CREATE SCHEMA IF NOT EXISTS raw")
    for number, restated in enumerate([(), tuple(f"beside.{name}" for name in PARTITIONS)]):
        spark.sql(f"CREATE OR REPLACE VIEW raw.beside AS SELECT {number} AS n")
        with Project.open(tmp_path, spark=spark) as project:
            report = project.build(execution_time="2024-01-20", concurrency=4, restate=restated).to_dict()
            assert (report["status"], _errors(report)) == ("succeeded", [])
            assert {node["batches"] for node in report["nodes"]} == {5}
            for name in PARTITIONS:
                (found,) = project.query(
                    f"SELECT count(*), count(DISTINCT ds), min(n), max(n) FROM beside.{name}"
                ).collect()
                assert tuple(found) == (19, 19, number, number), name


def _errors(report: dict[str, Any]) -> list[Any]:
    return [node["error"] for node in report["nodes"] if node["error"]]
