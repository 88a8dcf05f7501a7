"""Files become a table that models read: `lamina source register` on a real catalog."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

STORY = """
import json, pathlib, sys
from lamina import LaminaError, Project

home, files = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
seen = {}
with Project.open(home) as project:
    spark = project.query("SELECT 1 AS x").sparkSession
    spark.sql("SELECT 1 AS id, 'it''s' AS note, DATE'2024-01-01' AS ds").write.partitionBy("ds").parquet(f"{files}/o's")
    (files / "prices.csv").write_text("id;price\\n1;2.50\\n")

    def register(key, name, **given):
        try:
            seen[key] = project.source_register(name, **given).to_dict()
        except LaminaError as error:
            seen[key] = error.errors[0]["code"]

    register("partitioned", "raw.orders", path=f"{files}/o's", format="parquet")
    csv = {"header": "true", "sep": ";", "inferSchema": "true"}
    register("csv", "raw.prices", path=f"{files}/prices.csv", format="csv", option=csv)
    register("again", "raw.prices", path=f"{files}/prices.csv", format="csv")
    register("gone", "raw.gone", path=f"{files}/gone", format="parquet")
    register("own", "shop.x", path=f"{files}/prices.csv", format="csv")
    spark.sql("SELECT 2 AS id, 'new' AS note, DATE'2024-01-02' AS ds").write.partitionBy("ds").mode("append").parquet(
        f"{files}/o's"
    )
    seen["build"] = project.build(execution_time="2024-01-05").to_dict()["status"]
    seen["rows"] = [list(map(str, row)) for row in project.query("SELECT * FROM shop.orders ORDER BY id").collect()]
    seen["tables"] = sorted(row.tableName for row in spark.sql("SHOW TABLES IN raw").collect())
    spark.sql("DROP TABLE raw.orders")
    seen["files stay"] = (files / "o's" / "ds=2024-01-01").is_dir()
print("SEEN" + json.dumps(seen))
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    home, files = tmp_path_factory.mktemp("shop"), tmp_path_factory.mktemp("files")
    (home / "lamina.yaml").write_text("name: shop\n")
    (home / "models").mkdir()
    (home / "models" / "orders.sql").write_text(
        "MODEL (name shop.orders, kind FULL);\n"
        "SELECT o.id, o.note, o.ds, p.price FROM raw.orders o LEFT JOIN raw.prices p ON p.id = o.id\n"
    )
    words = [sys.executable, "-c", STORY, str(home), str(files)]
    answer = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    assert answer.returncode == 0, answer.stderr
    found: dict[str, Any] = json.loads(answer.stdout.partition("SEEN")[2])
    return found


def test_a_folder_of_partitions_is_a_table_with_all_its_columns(seen: dict[str, Any]) -> None:
    columns = seen["partitioned"]["source"]["columns"]
    assert columns == [
        {"name": "id", "type": "int"},
        {"name": "note", "type": "string"},
        {"name": "ds", "type": "date"},
    ]


def test_options_reach_the_reader(seen: dict[str, Any]) -> None:
    assert [column["name"] for column in seen["csv"]["source"]["columns"]] == ["id", "price"]


def test_models_read_what_was_there_and_what_came_later(seen: dict[str, Any]) -> None:
    assert seen["build"] == "succeeded"
    assert seen["rows"] == [["1", "it's", "2024-01-01", "2.5"], ["2", "new", "2024-01-02", "None"]]


def test_what_cannot_be_registered_leaves_nothing_behind(seen: dict[str, Any]) -> None:
    assert seen["again"] == "LAM-SPARK-012"
    assert seen["gone"].startswith("LAM-SPARK-")
    assert seen["own"] == "LAM-USE-001"
    assert seen["tables"] == ["orders", "prices"]


def test_files_outlive_their_table(seen: dict[str, Any]) -> None:
    assert seen["files stay"]
