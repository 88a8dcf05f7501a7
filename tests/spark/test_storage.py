"""Folders that are gone, on a real disk: told before Spark reads them as empty, and computed again."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lamina import LaminaError, Project
from lamina.spark.engine import SparkEngine

pytest_plugins = ["tests.ports.conftest_engine"]

FILES = {
    "lamina.yaml": "name: kept\ndefaults: {start: 2024-01-01}\n",
    "models/days.sql": "MODEL (name kept.days, kind INCREMENTAL_BY_TIME_RANGE (time_column ds));\n"
    "SELECT explode(sequence(@start_date, @end_date)) AS ds, 1 AS n",
    "models/total.sql": "MODEL (name kept.total, kind FULL); SELECT SUM(n) AS n FROM kept.days",
    "models/seen.sql": "MODEL (name kept.seen, kind VIEW); SELECT * FROM kept.total",
}
NOW = "2024-01-04"


def codes(error: LaminaError) -> list[tuple[str, str | None]]:
    return sorted((problem["code"], problem["node"]) for problem in error.errors)


def test_folders_that_are_gone_are_told_and_brought_back(engine: SparkEngine, tmp_path: Path) -> None:
    spark: SparkSession = engine.frame("SELECT 1 AS x").sparkSession
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)

    def project() -> Project:
        return Project.open(tmp_path, spark=spark)

    def rows(sql: str) -> list[Any]:
        with project() as opened:
            return [tuple(row) for row in opened.query(sql).collect()]

    with project() as opened:
        assert opened.build(execution_time=NOW).status == "succeeded"
    (schema,) = spark.sql("DESCRIBE SCHEMA kept__lamina").filter("info_name = 'Location'").collect()
    folder = Path(str(schema[1]).replace("file:", "").replace("%20", " ").replace("%25", "%"))
    (batches,) = folder.glob("_lamina_*")
    (day,) = batches.glob("days__v_*/*/ds=2024-01-02")

    # One partition: whoever reads it stops; Spark alone would say that there are two days.
    shutil.move(day, tmp_path / "day")
    for sql in ("SELECT * FROM kept.days", "SELECT * FROM kept.days WHERE n = 5"):
        with pytest.raises(LaminaError) as caught:
            rows(sql)
        assert codes(caught.value) == [("LAM-SPARK-023", "kept.days")]
    with project() as opened, pytest.raises(LaminaError):
        opened.build(execution_time="2024-01-05")
    shutil.move(tmp_path / "day", day)
    assert rows("SELECT COUNT(*) FROM kept.days") == [(3,)]

    # Everything: told by a plan, which needs no Spark for that, and computed again by a repair.
    shutil.move(batches, tmp_path / "away")
    with project() as opened:
        with pytest.raises(LaminaError) as caught:
            opened.plan(execution_time=NOW)
        assert codes(caught.value) == [("LAM-SPARK-023", "kept.days"), ("LAM-SPARK-023", "kept.total")]
        report = opened.state_repair(execution_time=NOW).to_dict()
    assert (report["status"], {row["name"]: row["status"] for row in report["repair"]}) == (
        "succeeded",
        {"kept.days": "repaired", "kept.total": "repaired"},
    )
    assert rows("SELECT COUNT(*) FROM kept.days") == rows("SELECT n FROM kept.seen") == [(3,)]
    assert spark.sql("SELECT n FROM kept.seen").collect()[0].n == 3
    with project() as opened:
        assert opened.build(execution_time=NOW).status == "nothing_to_do"
        assert opened.state_repair(execution_time=NOW).status == "nothing_to_do"

    # A state that is gone beside tables that are not.
    for file in (tmp_path / ".lamina").glob("state.db*"):
        file.unlink()
    with project() as opened, pytest.raises(LaminaError) as caught:
        opened.plan(execution_time=NOW)
    assert codes(caught.value) == [("LAM-STATE-008", None)]
