"""A history whose rules change keeps the rows that it holds: closed ones stay, later runs follow the new rules."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from lamina import Project
from lamina.spark.engine import SparkEngine

pytest_plugins = ["tests.ports.conftest_engine"]

MODEL = """MODEL (
  name rules.menu, kind SCD_TYPE_2_BY_COLUMN (unique_key id, {rules}), columns (id INT, name STRING, price INT)
);
SELECT id, name, price FROM raw.rules_menu
"""


def test_a_history_goes_on_by_other_rules(engine: SparkEngine, tmp_path: Path) -> None:
    spark: SparkSession = engine.frame("SELECT 1 AS x").sparkSession
    (tmp_path / "models").mkdir()
    (tmp_path / "lamina.yaml").write_text("name: rules\n")
    spark.sql("CREATE SCHEMA IF NOT EXISTS raw")

    def build(rules: str, rows: str, day: int) -> list[tuple[object, ...]]:
        (tmp_path / "models" / "menu.sql").write_text(MODEL.format(rules=rules))
        spark.sql(f"CREATE OR REPLACE VIEW raw.rules_menu AS SELECT * FROM VALUES {rows} AS t(id, name, price)")
        with Project.open(tmp_path, spark=spark) as project:
            report = project.build(execution_time=f"2024-01-0{day}").to_dict()
            assert report["status"] == "succeeded", report
            found = project.query(
                "SELECT id, name, price, date_format(valid_from, 'yyyy-MM-dd'), date_format(valid_to, 'yyyy-MM-dd') "
                "FROM rules.menu ORDER BY id, valid_from"
            )
            return [tuple(row) for row in found.collect()]

    first = "(1, 'tea', 1), (2, 'rum', 2), (3, 'ale', 3)"
    assert build("columns [name]", first, 1) == [
        (1, "tea", 1, "1970-01-01", None),
        (2, "rum", 2, "1970-01-01", None),
        (3, "ale", 3, "1970-01-01", None),
    ]
    second = "(1, 'tea', 9), (2, 'gin', 2), (4, 'new', 4)"
    by_price = "columns [price], invalidate_hard_deletes true, execution_time_as_valid_from true"
    assert build(by_price, second, 2) == [
        (1, "tea", 1, "1970-01-01", "2024-01-02"),
        (1, "tea", 9, "2024-01-02", None),
        (2, "rum", 2, "1970-01-01", None),
        (3, "ale", 3, "1970-01-01", "2024-01-02"),
        (4, "new", 4, "2024-01-02", None),
    ]
