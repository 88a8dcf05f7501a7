"""Two weeks of `run` on real Spark with late rows, a restatement and a day that fails, against a build from scratch."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.conftest import PATIENCE, Project, surroundings
from tests.kit.told import told

MODELS = {
    "orders": """
MODEL (
  name {schema}.orders,
  kind INCREMENTAL_BY_TIME_RANGE (time_column ds, lookback 2),
  start '2024-02-26',
  cron '@daily'
);
SELECT ds, id, amount, amount / divisor AS share
FROM lake.events
WHERE ds BETWEEN @start_date AND @end_date
""",
    "trailing": """
MODEL (name {schema}.trailing, kind INCREMENTAL_BY_TIME_RANGE (time_column ds), cron '@daily');
SELECT d.ds, SUM(o.amount) AS amount, COUNT(*) AS orders
FROM {schema}.orders AS o
JOIN (SELECT explode(sequence(@start_date, @end_date)) AS ds) AS d ON o.ds BETWEEN d.ds - INTERVAL 3 DAYS AND d.ds
WHERE o.ds BETWEEN @start_date - INTERVAL 3 DAYS AND @end_date
GROUP BY d.ds
""",
    "monthly": """
MODEL (name {schema}.monthly, kind INCREMENTAL_BY_TIME_RANGE (time_column month), cron '@monthly');
SELECT CAST(date_trunc('month', ds) AS DATE) AS month, SUM(amount) AS amount, COUNT(*) AS orders
FROM {schema}.orders
WHERE ds BETWEEN @start_date AND @end_date
GROUP BY 1
""",
    "totals": """
MODEL (name {schema}.totals, kind FULL);
SELECT COUNT(*) AS days, SUM(amount) AS amount, MAX(orders) AS most FROM {schema}.trailing
""",
    "shown": """
MODEL (name {schema}.shown, kind VIEW);
SELECT ds, COUNT(*) AS orders FROM {schema}.orders GROUP BY ds
""",
}
SCRIPT = """
import json, sys
from datetime import date, timedelta
from pyspark.sql import SparkSession
from lamina import Project

folder, fresh_folder, tables = sys.argv[1], sys.argv[2], sys.argv[3].split(",")
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "1")
    .config("spark.default.parallelism", "1")
    .config("spark.sql.warehouse.dir", folder + "/warehouse")
    .getOrCreate()
)
rows = {}


def put(day, *amounts, divisor=1):
    rows[day] = [(day, number, amount, divisor) for number, amount in enumerate(amounts)]


def write():
    values = ", ".join(f"(DATE'{d}', {i}, {a}, {v})" for found in rows.values() for d, i, a, v in found)
    spark.sql("INSERT OVERWRITE lake.events VALUES " + values)


spark.sql("CREATE DATABASE lake")
spark.sql("CREATE TABLE lake.events (ds DATE, id INT, amount INT, divisor INT) USING parquet")
for number in range(35):
    put((date(2024, 2, 26) + timedelta(days=number)).isoformat(), 10 + number, 100 + number)

# What happens to the source in the night before a run.
nights = {
    "2024-03-03": lambda: put("2024-02-29", 5, 6, 7),         # late, for a month that is over
    "2024-03-04": lambda: rows.pop("2024-03-02"),             # gone
    "2024-03-05": lambda: put("2024-03-04", 5, divisor=0),    # no query can compute this day
    "2024-03-06": lambda: put("2024-03-04", 5, 6),            # mended
    "2024-03-07": lambda: (put("2024-02-27", 1), rows.pop("2024-02-28")),
}
days = ["2024-03-02", *nights, "2024-03-08", "2024-04-01"]
seen = {"days": {}}


def note(report):
    # `all` for a whole table, else the first and the last day of every range.
    found = {}
    for node in report.to_dict()["nodes"]:
        if node["status"] in {"failed", "skipped"}:
            found[node["name"].partition(".")[2]] = node["status"]
        elif node["status"] == "succeeded":
            ends = [(start, date.fromisoformat(end[:10]) - timedelta(days=1)) for start, end in node["intervals"]]
            ranges = [f"{start[5:10]}..{end:%m-%d}" for start, end in ends]
            found[node["name"].partition(".")[2]] = " ".join(ranges) or "all"
    return found


write()
with Project.open(folder, spark=spark) as project:
    seen["build"] = note(project.build(execution_time="2024-03-01"))
    for day in days:
        if day in nights:
            nights[day]()
            write()
        if day == "2024-03-07":
            flags = {"restate": "shop.orders", "start": "2024-02-27", "end": "2024-02-28"}
            seen["restated"] = note(project.build(execution_time="2024-03-06", **flags))
        seen["days"][day] = note(project.run(execution_time=day))
    seen["again"] = project.run(execution_time=day).status
with Project.open(fresh_folder, spark=spark) as project:
    seen["fresh"] = project.build(execution_time=day).status


def rows_of(schema, table):
    return sorted(map(str, spark.table(f"{schema}.{table}").collect()))


seen["tables"] = {table: [rows_of("shop", table), rows_of("fresh", table)] for table in tables}
spark.stop()
print("SEEN" + json.dumps(seen))
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folders = []
    for schema in ("shop", "fresh"):
        project = Project(tmp_path_factory.mktemp(schema))
        project.write(lamina_yaml=f"name: {schema}\n")
        project.write(**{f"models__{name}_sql": text.format(schema=schema) for name, text in MODELS.items()})
        folders.append(str(project.folder))
    document: dict[str, Any] = told("-c", SCRIPT, *folders, ",".join(MODELS), env=surroundings(), timeout=PATIENCE)
    return document


def test_the_first_build_covers_every_complete_unit(seen: dict[str, Any]) -> None:
    assert seen["build"] == {
        "orders": "02-26..02-29",
        "trailing": "02-26..02-29",
        "monthly": "02-01..02-29",
        "totals": "all",
        "shown": "all",
    }


def test_every_run_processes_what_is_new_what_it_looks_back_at_and_what_is_reached(seen: dict[str, Any]) -> None:
    assert seen["days"] == {
        # A lookback that finds nothing new reaches nobody.
        "2024-03-02": {"orders": "02-28..03-01", "trailing": "03-01..03-01", "totals": "all"},
        # Late rows reach the days that read them and the month that was over.
        "2024-03-03": {
            "orders": "02-29..03-02",
            "trailing": "02-29..03-02",
            "monthly": "02-01..02-29",
            "totals": "all",
        },
        "2024-03-04": {"orders": "03-01..03-03", "trailing": "03-02..03-03", "totals": "all"},
        "2024-03-05": {"orders": "failed", "trailing": "skipped", "totals": "skipped"},
        "2024-03-06": {"orders": "03-02..03-05", "trailing": "03-04..03-05", "totals": "all"},
        "2024-03-07": {"orders": "03-04..03-06", "trailing": "03-06..03-06", "totals": "all"},
        "2024-03-08": {"orders": "03-05..03-07", "trailing": "03-07..03-07", "totals": "all"},
        # After a pause everything is made up for, and the month is over.
        "2024-04-01": {
            "orders": "03-06..03-31",
            "trailing": "03-08..03-31",
            "monthly": "03-01..03-31",
            "totals": "all",
        },
    }
    assert seen["again"] == "nothing_to_do"


def test_a_restatement_reaches_as_far_as_it_is_read(seen: dict[str, Any]) -> None:
    assert seen["restated"] == {
        "orders": "02-27..02-28",
        "trailing": "02-27..03-02",
        "monthly": "02-01..02-29",
        "totals": "all",
    }


@pytest.mark.parametrize("table", MODELS)
def test_every_table_is_what_a_build_from_scratch_gives(seen: dict[str, Any], table: str) -> None:
    found, fresh = seen["tables"][table]
    assert found
    assert found == fresh
