"""Late rows, restatements, forks and promotion on real Spark: what is computed, and what each environment shows."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.conftest import PATIENCE, Project, surroundings
from tests.kit.told import told

MODELS = {
    "models__orders_sql": """MODEL (name shop.orders, kind INCREMENTAL_BY_TIME_RANGE (time_column ds, lookback 2));
SELECT id, amount, ds FROM raw.orders WHERE ds BETWEEN @start_date AND @end_date
""",
    "models__daily_sql": """MODEL (name shop.daily, kind INCREMENTAL_BY_TIME_RANGE (time_column ds));
SELECT ds, SUM(amount) AS total FROM shop.orders WHERE ds BETWEEN @start_date AND @end_date GROUP BY ds
""",
    "models__shown_sql": "MODEL (name shop.shown, kind VIEW);\nSELECT ds, total FROM shop.daily\n",
    "models__rolling_sql": """MODEL (name shop.rolling, kind INCREMENTAL_BY_TIME_RANGE (time_column ds));
SELECT day.ds, SUM(before.total) AS total
FROM shop.shown AS day JOIN shop.shown AS before ON before.ds BETWEEN day.ds - INTERVAL 2 DAYS AND day.ds
WHERE day.ds BETWEEN @start_date AND @end_date AND before.ds BETWEEN @start_date - INTERVAL 2 DAYS AND @end_date
GROUP BY day.ds
""",
    "models__totals_sql": "MODEL (name shop.totals, kind FULL);\nSELECT SUM(total) AS total FROM shop.rolling\n",
}
SCRIPT = """
import json, sys
from lamina import LaminaError, Project

seen = {}


def note(name, report):
    seen[name] = {}
    for node in report.to_dict()["nodes"]:
        days = [start[8:10] + "-" + end[8:10] for start, end in node["intervals"]]
        seen[name][node["name"]] = [node["action"], node["status"], days]


def restate(first, last, env="prod"):
    return project.build(env, execution_time="2024-01-11", restate="shop.orders", start=first, end=last)


def rows(env):
    return {
        name: [list(map(str, row)) for row in project.query(f"SELECT * FROM shop.{name} ORDER BY 1", env=env).collect()]
        for name in ("orders", "daily", "shown", "rolling", "totals")
    }


with Project.open(sys.argv[1]) as project:
    spark = project.query("SELECT 1 AS x").sparkSession
    spark.sql("CREATE SCHEMA raw")
    spark.sql(
        "CREATE TABLE raw.orders USING parquet AS SELECT id, id % 5 AS amount, "
        "date_add(DATE'2024-01-01', CAST(id / 3 AS int)) AS ds FROM range(45)"
    )
    note("build", project.build(execution_time="2024-01-09"))
    note("quiet", project.run(execution_time="2024-01-10"))
    spark.sql("INSERT INTO raw.orders VALUES (100, 1000, DATE'2024-01-09')")
    note("late", project.run(execution_time="2024-01-11"))
    note("same", restate("2024-01-03", "2024-01-04"))
    spark.sql("INSERT INTO raw.orders VALUES (101, 500, DATE'2024-01-03')")
    seen["before"] = rows("prod")
    note("fork", restate("2024-01-03", "2024-01-03", "dev"))
    seen["prod"], seen["dev"] = rows("prod"), rows("dev")
    seen["again"] = project.build("dev", execution_time="2024-01-11").status
    seen["promoted"] = project.promote("dev", "prod", execution_time="2024-01-11").to_dict()
    seen["after"] = rows("prod")
    seen["nothing"] = project.build(execution_time="2024-01-11").status
    note("next", project.run(execution_time="2024-01-12"))
    fresh = project.build("fresh", execution_time="2024-01-12", force=True)
    seen["next_prod"], seen["fresh"] = rows("prod"), rows("fresh")
print("SEEN" + json.dumps(seen))
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    project = Project(tmp_path_factory.mktemp("rewrites"))
    config = (
        "name: shop\ndefaults: {start: 2024-01-01}\n"
        "spark: {master: 'local[2]', config: {spark.sql.shuffle.partitions: 1}}\n"
    )
    project.write(lamina_yaml=config, **MODELS)
    document: dict[str, Any] = told("-c", SCRIPT, str(project.folder), env=surroundings(), timeout=PATIENCE)
    return document


def test_a_lookback_that_finds_nothing_new_computes_no_child_again(seen: dict[str, Any]) -> None:
    assert seen["quiet"]["shop.orders"] == ["build", "succeeded", ["07-10"]]
    assert seen["quiet"]["shop.daily"] == ["build", "succeeded", ["09-10"]]
    assert seen["quiet"]["shop.rolling"] == ["build", "succeeded", ["09-10"]]


def test_late_rows_reach_every_descendant_through_views_as_far_as_they_change_something(seen: dict[str, Any]) -> None:
    assert seen["late"]["shop.orders"] == ["build", "succeeded", ["08-11"]]
    assert seen["late"]["shop.daily"] == ["build", "succeeded", ["09-11"]]
    assert seen["late"]["shop.rolling"] == ["build", "succeeded", ["09-11"]]
    assert seen["late"]["shop.totals"] == ["build", "succeeded", []]


def test_a_restatement_with_the_same_rows_stops_there(seen: dict[str, Any]) -> None:
    assert seen["same"]["shop.orders"] == ["build", "succeeded", ["03-05"]]
    for name in ("shop.daily", "shop.rolling", "shop.totals"):
        assert seen["same"][name][1:] == ["skipped", []]


def test_restating_in_dev_changes_dev_and_leaves_prod_alone(seen: dict[str, Any]) -> None:
    assert seen["fork"]["shop.orders"] == ["seed_and_build", "succeeded", ["03-04"]]
    assert seen["fork"]["shop.daily"] == ["seed_and_build", "succeeded", ["03-04"]]
    assert seen["fork"]["shop.rolling"] == ["seed_and_build", "succeeded", ["03-06"]]
    assert seen["prod"] == seen["before"]
    changed = {name: len(set(map(str, seen["dev"][name])) - set(map(str, seen["prod"][name]))) for name in seen["dev"]}
    assert changed == {"orders": 1, "daily": 1, "shown": 1, "rolling": 3, "totals": 1}
    assert seen["again"] == "nothing_to_do"


def test_promoting_shows_in_prod_what_dev_shows(seen: dict[str, Any]) -> None:
    assert seen["after"] == seen["dev"]
    assert [node["name"] for node in seen["promoted"]["promoted"]] == [
        "shop.orders",
        "shop.daily",
        "shop.shown",
        "shop.rolling",
        "shop.totals",
    ]
    assert seen["nothing"] == "nothing_to_do"


def test_afterwards_every_table_is_what_a_computation_from_scratch_gives(seen: dict[str, Any]) -> None:
    assert seen["next"]["shop.daily"] == ["build", "succeeded", ["11-12"]]
    assert seen["fresh"] == seen["next_prod"]
