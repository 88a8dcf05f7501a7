"""Audits on real Spark: what they refuse is never seen and can be looked at."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.e2e.conftest import PATIENCE, Project, surroundings

MODELS = {
    "orders": """
MODEL (
  name shop.orders,
  kind INCREMENTAL_BY_TIME_RANGE (time_column ds),
  depends_on (shop.customers),
  partitioned_by month(ds),
  audits (
    not_null(columns := (id)),
    unique_values(columns := id),
    accepted_range(column := amount, min_v := 0, blocking := false)
  )
);
SELECT id, amount, ds FROM raw.orders WHERE ds BETWEEN @start_date AND @end_date;

AUDIT (name has_customer);
SELECT o.* FROM @this_model AS o LEFT ANTI JOIN shop.customers AS c ON c.id = o.id
""",
    "customers": """
MODEL (name shop.customers, kind VIEW, audits (number_of_rows(threshold := 1)));
SELECT id FROM range(3)
""",
    "totals": """
MODEL (name shop.totals, kind FULL, audits (forall(criteria := (orders > 0))));
SELECT count(*) AS orders FROM shop.orders
""",
    "odd": """
MODEL (name shop.odd, kind FULL, audits (not_null(columns := id), forall(criteria := (1 / (id - 5) < 1))));
SELECT count(*) AS id FROM shop.orders
""",
}
SCRIPT = """
import json, re, sys
from lamina import Project

seen = {}
with Project.open(sys.argv[1]) as project:
    spark = project.query("SELECT 1 AS x").sparkSession
    spark.sql("CREATE SCHEMA raw")
    spark.sql(
        "CREATE TABLE raw.orders USING parquet AS "
        "SELECT * FROM VALUES (0, 5, DATE'2024-01-01'), (1, -1, DATE'2024-01-02') AS v(id, amount, ds)"
    )
    seen["build"] = project.build(execution_time="2024-01-03").to_dict()
    spark.sql(
        "INSERT INTO raw.orders VALUES (9, 1, DATE'2024-01-03'), (9, 1, DATE'2024-01-03'), (NULL, 1, DATE'2024-01-03')"
    )
    seen["refused"] = project.run(execution_time="2024-01-04").to_dict()
    seen["shown"] = [row.id for row in project.query("SELECT id FROM shop.orders ORDER BY id").collect()]
    error = next(node["error"] for node in seen["refused"]["nodes"] if node["name"] == "shop.orders")
    places = re.findall(r"SELECT \\* FROM (parquet\\.`[^`]*`)", error["hint"])
    kept = [project.query(f"SELECT id FROM {place}").collect() for place in places]
    seen["kept"] = [sorted(str(row.id) for row in rows) for rows in kept]
    seen["skipped"] = project.build(execution_time="2024-01-04", skip_audits=True).to_dict()
    seen["named"] = project.build(execution_time="2024-01-04", select="shop.odd", force=True).to_dict()
print("SEEN" + json.dumps(seen))
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    project = Project(tmp_path_factory.mktemp("audits"))
    config = (
        "name: shop\ndefaults: {start: 2024-01-01}\n"
        "spark: {master: 'local[2]', config: {spark.sql.shuffle.partitions: 1}}\n"
    )
    project.write(lamina_yaml=config, **{f"models__{name}_sql": text for name, text in MODELS.items()})
    answer = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(project.folder)],
        env=surroundings(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert answer.returncode == 0, answer.stderr[-3000:]
    document: dict[str, Any] = json.loads(answer.stdout.rpartition("SEEN")[2])
    return document


def node(document: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in document["nodes"] if each["name"] == f"shop.{name}")
    return found


def audits(document: dict[str, Any], name: str) -> list[tuple[str, str, int]]:
    return [(audit["name"], audit["status"], audit["failing_rows"]) for audit in node(document, name)["audits"]]


def test_audits_are_asked_about_tables_and_views_and_those_that_do_not_block_warn(seen: dict[str, Any]) -> None:
    built = seen["build"]
    assert built["status"] == "succeeded"
    assert audits(built, "orders") == [
        ("not_null", "passed", 0),
        ("unique_values", "passed", 0),
        ("accepted_range", "failed", 1),
        ("has_customer", "passed", 0),
    ]
    assert audits(built, "customers") == [("number_of_rows", "passed", 0)]
    assert audits(built, "totals") == [("forall", "passed", 0)]
    assert [warning["code"] for warning in built["warnings"] if "accepted_range" in warning["message"]] == [
        "LAM-WARN-010"
    ]


def test_a_refused_day_is_not_published_and_nothing_is_built_on_it(seen: dict[str, Any]) -> None:
    refused = seen["refused"]
    error = node(refused, "orders")["error"]
    assert (refused["status"], error["code"]) == ("failed", "LAM-PLAN-009")
    assert error["message"] == (
        "audit `not_null(columns := (id))` found 1 row; audit `unique_values(columns := id)` found 1 row; "
        "audit `has_customer` found 3 rows; nothing of this was published"
    )
    assert (error["file"], error["interval"][0]) == ("models/orders.sql", "2024-01-03T00:00:00Z")
    assert node(refused, "totals")["status"] == "skipped"
    assert seen["shown"] == [0, 1]


def test_the_rows_that_were_refused_can_be_looked_at(seen: dict[str, Any]) -> None:
    assert seen["kept"] == [["None"], ["9"], ["9", "9", "None"]]


def test_audits_can_be_left_out_for_once(seen: dict[str, Any]) -> None:
    assert seen["skipped"]["status"] == "succeeded"
    assert {status for _, status, _ in audits(seen["skipped"], "orders")} == {"skipped"}
    assert node(seen["skipped"], "orders")["rows"] == 3


def test_an_audit_that_spark_cannot_carry_out_is_named(seen: dict[str, Any]) -> None:
    message = node(seen["named"], "odd")["error"]["message"]
    assert message.startswith("audit `forall(criteria := (1 / (id - 5) < 1))` of `shop.odd`")
    assert "DIVIDE_BY_ZERO" in message
