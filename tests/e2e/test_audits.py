"""Audits on real Spark: what they refuse is never seen and can be looked at."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.conftest import PATIENCE, Project, surroundings
from tests.kit.told import told

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
APART = {
    "audits__sums_sql": """
AUDIT (name sums_agree, standalone true);
SELECT 1 FROM shop.totals AS t WHERE t.orders <> (SELECT count(*) FROM shop.orders)
""",
    "sources__raw_yml": """
sources:
  - name: raw.orders
    audits:
      - {name: number_of_rows, threshold: 0}
      - {name: not_null, columns: [id], blocking: false}
""",
}
SCRIPT = """
import json, pathlib, re, sys
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
    seen["asked"] = project.audit(execution_time="2024-01-04", exclude="shop.odd").to_dict()
    seen["one day"] = project.audit(execution_time="2024-01-04", select="shop.orders", end="2024-01-02").to_dict()
    model = pathlib.Path(sys.argv[1], "models", "orders.sql")
    text = model.read_text()
    model.write_text(text.replace("audits (", "audits (accepted_values(column := amount, is_in := (1, 5)),"))
    seen["planned"] = project.plan(execution_time="2024-01-04").to_dict()
    seen["new audit"] = project.build(execution_time="2024-01-04").to_dict()
    seen["still shown"] = project.query("SELECT id FROM shop.orders").count()
    model.write_text(text.replace("audits (", "audits (accepted_values(column := amount, is_in := (1, 5, -1)),"))
    seen["mended audit"] = project.build(execution_time="2024-01-04", exclude="shop.odd").to_dict()
    seen["again"] = project.build(execution_time="2024-01-04", exclude="shop.odd").to_dict()
print("SEEN" + json.dumps(seen))
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    project = Project(tmp_path_factory.mktemp("audits"))
    config = (
        "name: shop\ndefaults: {start: 2024-01-01}\n"
        "spark: {master: 'local[2]', config: {spark.sql.shuffle.partitions: 1}}\n"
    )
    project.write(lamina_yaml=config, **{f"models__{name}_sql": text for name, text in MODELS.items()}, **APART)
    document: dict[str, Any] = told("-c", SCRIPT, str(project.folder), env=surroundings(), timeout=PATIENCE)
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


def asked(document: dict[str, Any]) -> dict[tuple[str, str], tuple[str, int]]:
    return {(row["node"], row["name"]): (row["status"], row["failing_rows"]) for row in document["audits"]}


def test_sources_are_audited_before_they_are_read_and_standalone_audits_after(seen: dict[str, Any]) -> None:
    assert asked(seen["build"]) == {
        ("raw.orders", "number_of_rows"): ("passed", 0),
        ("raw.orders", "not_null"): ("passed", 0),
        ("sums_agree", "sums_agree"): ("passed", 0),
    }
    assert asked(seen["refused"])["raw.orders", "not_null"] == ("failed", 1)


def test_the_audit_command_asks_about_all_that_is_built(seen: dict[str, Any]) -> None:
    document = seen["asked"]
    assert document["status"] == "failed"
    assert asked(document) == {
        ("raw.orders", "number_of_rows"): ("passed", 0),
        ("raw.orders", "not_null"): ("failed", 1),
        ("shop.orders", "not_null"): ("failed", 1),
        ("shop.orders", "unique_values"): ("failed", 1),
        ("shop.orders", "accepted_range"): ("failed", 1),
        ("shop.orders", "has_customer"): ("failed", 3),
        ("shop.customers", "number_of_rows"): ("passed", 0),
        ("shop.totals", "forall"): ("passed", 0),
        ("sums_agree", "sums_agree"): ("passed", 0),
    }
    (row,) = [row for row in document["audits"] if (row["node"], row["name"]) == ("shop.orders", "not_null")]
    assert row["failing_rows_at"].startswith("parquet.`")
    assert row["intervals"] == [["2024-01-01T00:00:00Z", "2024-01-04T00:00:00Z"]]


def test_the_audit_command_keeps_to_its_bounds(seen: dict[str, Any]) -> None:
    assert seen["one day"]["status"] == "succeeded"
    assert asked(seen["one day"])["shop.orders", "not_null"] == ("passed", 0)


def test_a_new_audit_is_asked_about_what_is_built_and_keeps_readers_where_they_are(seen: dict[str, Any]) -> None:
    planned = node(seen["planned"], "orders")
    assert (planned["action"], planned["batches"]) == ("metadata", 0)
    assert planned["explanation"].startswith("audits changed: 1 to ask over")
    failed = node(seen["new audit"], "orders")
    assert (seen["new audit"]["status"], failed["status"], failed["rows"]) == ("failed", "failed", None)
    assert [(audit["name"], audit["failing_rows"]) for audit in failed["audits"]] == [("accepted_values", 1)]
    assert seen["still shown"] == 5


def test_a_mended_audit_passes_and_the_next_build_has_nothing_to_do(seen: dict[str, Any]) -> None:
    assert audits(seen["mended audit"], "orders") == [("accepted_values", "passed", 0)]
    assert seen["mended audit"]["status"] == "succeeded"
    assert seen["again"]["status"] == "nothing_to_do"
