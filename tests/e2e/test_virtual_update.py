"""Statements behind views and columns of external tables, on the command line and on real Spark."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from lamina.bootstrap import STOP_VARIABLE
from tests.e2e.conftest import PATIENCE, Project, surroundings
from tests.kit.told import told

LOG = """
MODEL (name shop.orders, kind FULL);
SELECT id FROM range(3);
ON_VIRTUAL_UPDATE_BEGIN;
CREATE SCHEMA IF NOT EXISTS notes;
CREATE TABLE IF NOT EXISTS notes.log (view STRING, rows BIGINT, label STRING) USING parquet;
INSERT INTO notes.log SELECT 'orders', count(*), @shout(@label) FROM @this_model;
ON_VIRTUAL_UPDATE_END;
"""
TOTALS = """
MODEL (name shop.totals, kind VIEW);
SELECT count(*) AS n FROM shop.orders;
ON_VIRTUAL_UPDATE_BEGIN;
INSERT INTO notes.log SELECT 'totals', t.n + count(o.id), 'x' FROM totals AS t, shop.orders AS o GROUP BY t.n;
ON_VIRTUAL_UPDATE_END;
"""
MACRO = """
from lamina import macro


@macro()
def shout(evaluator, text):
    return f"concat({text}, '!')"
"""
SCRIPT = """
import json, sys
from pathlib import Path
from lamina import LaminaError, Project

root, seen = Path(sys.argv[1]), {}
when = {"execution_time": "2024-01-05"}


def log():
    rows = project.query("SELECT * FROM notes.log").collect()
    return sorted([row.view, row.rows, row.label] for row in rows)


def nodes(report):
    found = {}
    for node in report.to_dict()["nodes"]:
        error = [(node["error"] or {}).get(key) for key in ("code", "file", "line")]
        found[node["name"]] = [node["status"], node["virtual_statements"], *error]
    return [report.status, found]


with Project.open(root) as project:
    seen["finished"] = nodes(project.build(**when))
    seen["log"] = log()
    seen["again"] = project.build(**when).status
orders = root / "models" / "orders.sql"
orders.write_text(orders.read_text().replace("range(3)", "range(4)").replace("ON_VIRTUAL_UPDATE_END",
                  "INSERT INTO notes.nowhere SELECT 1;\\nON_VIRTUAL_UPDATE_END"))
with Project.open(root) as project:
    seen["failed"] = nodes(project.build("dev", **when))
    seen["dev"] = project.query("SELECT count(*) AS n FROM shop__dev.orders").first().n
    try:
        project.promote("dev", "prod", **when)
    except LaminaError as error:
        seen["promoted"] = [error.code, str(error.location)]
    seen["prod"] = project.query("SELECT count(*) AS n FROM shop.orders").first().n
    spark = project.query("SELECT 1").sparkSession
    spark.sql("CREATE TABLE notes.nowhere (x INT COMMENT 'why') USING parquet")
    seen["healed"] = project.promote("dev", "prod", **when).status
    seen["nowhere"] = project.query("SELECT count(*) AS n FROM notes.nowhere").first().n
    seen["dev again"] = project.run("dev", **when).status
    query = "SELECT n.*, g.y FROM notes.nowhere n JOIN gone.by g"
    (root / "models" / "raw.sql").write_text(f"MODEL (name shop.raw); {query}")
with Project.open(root) as project:
    seen["columns"] = project.source_columns().to_dict()
print("SEEN" + json.dumps(seen))
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    project = Project(tmp_path_factory.mktemp("update"))
    project.write(
        lamina_yaml="name: shop\nvariables: {label: eu}\nspark: {config: {spark.sql.shuffle.partitions: 1}}\n",
        models__orders_sql=LOG,
        models__totals_sql=TOTALS,
        macros__texts_py=MACRO,
    )
    killed = project.lamina("build", "--execution-time", "2024-01-05", **{STOP_VARIABLE: "kill:promote.views"})
    assert killed.returncode == -signal.SIGKILL
    return {**told("-c", SCRIPT, str(project.folder), env=surroundings(), timeout=PATIENCE), "folder": project.folder}


def test_what_a_killed_command_did_not_run_the_next_one_runs(seen: dict[str, Any]) -> None:
    assert seen["finished"][0] == "nothing_to_do"
    assert seen["log"] == [["orders", 3, "eu!"], ["totals", 6, "x"]]
    assert seen["again"] == "nothing_to_do"


def test_a_statement_that_spark_refuses_fails_its_model_and_the_views_are_set(seen: dict[str, Any]) -> None:
    status, nodes = seen["failed"]
    assert status == "failed"
    assert nodes["shop.orders"] == ["failed", 0, "LAM-SPARK-015", "models/orders.sql", 8]
    assert nodes["shop.totals"][:2] == ["succeeded", 1]
    assert seen["dev"] == 4


def test_a_promotion_moves_the_views_says_what_failed_and_the_next_one_runs_it(seen: dict[str, Any]) -> None:
    assert seen["promoted"] == ["LAM-SPARK-015", "models/orders.sql:8:13"]
    assert seen["prod"] == 4
    assert seen["healed"] == "nothing_to_do"
    assert seen["nowhere"] == 2
    assert seen["dev again"] == "nothing_to_do"


def test_columns_of_external_tables_are_written_and_a_missing_table_is_named(seen: dict[str, Any]) -> None:
    document = seen["columns"]
    assert document["status"] == "failed"
    assert [(row["name"], row["status"], row["file"]) for row in document["sources"]] == [
        ("gone.by", "failed", None),
        ("notes.nowhere", "written", "sources/notes.yml"),
    ]
    assert document["sources"][0]["error"]["code"] == "LAM-SPARK-005"
    text = Path(seen["folder"], "sources", "notes.yml").read_text()
    assert text == "- name: notes.nowhere\n  columns:\n    x:\n      type: int\n      description: why\n"
