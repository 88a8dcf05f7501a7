"""Folders of a server's own disk that are moved away; nobody but Spark can look for them."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from lamina import LaminaError, Project
from lamina.bootstrap import OpenOptions, diagnose
from lamina.spark.sessions import places
from lamina.spark.sessions.format_settings import ICEBERG_CATALOG
from tests.kit.connect import reader
from tests.kit.told import tell

FILES = {
    "lamina.yaml": "name: vanish\nspark: {{remote: '{remote}'}}\ndefaults: {{start: 2024-01-01}}\n",
    "models/days.sql": "MODEL (name vanish.days, kind INCREMENTAL_BY_TIME_RANGE (time_column ds));\n"
    "SELECT explode(sequence(@start_date, @end_date)) AS ds, 1 AS n",
    "models/later.sql": "MODEL (name vanish.later, kind INCREMENTAL_BY_TIME_RANGE (time_column ds));\n"
    "SELECT ds, n FROM vanish.days WHERE ds BETWEEN @start_date AND @end_date",
    "models/total.sql": "MODEL (name vanish.total, kind FULL); SELECT SUM(n) AS n FROM vanish.days",
}

LAKES = {"delta": "", "iceberg": f"{ICEBERG_CATALOG}."}
"""The catalog of a format's tables."""
LAKE_FILES = {
    "lamina.yaml": "name: {name}\nspark: {{remote: '{remote}'}}\n"
    "defaults: {{start: 2024-01-01, table_format: {table_format}}}\n",
    "models/days.sql": "MODEL (name {name}.days, kind INCREMENTAL_BY_TIME_RANGE (time_column ds));\n"
    "SELECT explode(sequence(@start_date, @end_date)) AS ds, 1 AS n",
}


def main(place: str, remote: str) -> None:
    folder, spark = Path(place), reader(remote)
    for path, text in FILES.items():
        (folder / path).parent.mkdir(exist_ok=True, parents=True)
        (folder / path).write_text(text.format(remote=remote) if path == "lamina.yaml" else text)
    seen: dict[str, Any] = {}

    def build(at: str, *models: str) -> Any:
        with Project.open(folder) as project:
            try:
                return project.build(execution_time=at, select=models or None).status
            except LaminaError as error:
                return sorted((each["code"], each["node"]) for each in error.errors)

    def query(sql: str) -> Any:
        with Project.open(folder) as project:
            try:
                return [list(row) for row in project.query(sql).collect()]
            except LaminaError as error:
                return sorted((each["code"], each["node"]) for each in error.errors)

    seen["first"] = build("2024-01-04")
    (row,) = spark.sql("DESCRIBE SCHEMA vanish__lamina").filter("info_name = 'Location'").collect()
    (batches,) = Path(places._local(str(row[1])) or "").glob("_lamina_*")
    (day,) = batches.glob("days__v_*/*/ds=2024-01-02")
    shutil.move(day, folder / "day")
    seen["faults"] = [one.detail for one in diagnose(OpenOptions(directory=folder)) if one.status == "fault"]
    seen["query"], seen["total"] = query("SELECT count(*) FROM vanish.days"), build("2024-01-05", "vanish.days+")
    # Days that are not read are not missed.
    seen["later"] = build("2024-01-05", "vanish.days", "vanish.later")
    with Project.open(folder) as project:
        report = project.state_repair(execution_time="2024-01-05").to_dict()
        seen["repair"] = {row["name"]: row["status"] for row in report["repair"]}
    seen["again"], seen["rows"] = (
        build("2024-01-05"),
        query("SELECT (SELECT count(*) FROM vanish.days), n FROM vanish.total"),
    )
    seen["lakes"] = {
        table_format: lake(folder.parent / table_format, spark, remote, table_format) for table_format in LAKES
    }
    tell(seen)


def lake(folder: Path, spark: SparkSession, remote: str, table_format: str) -> dict[str, Any]:
    """A table that keeps a history of its own, moved away twice."""
    name = f"vanish_{table_format}"
    for path, text in LAKE_FILES.items():
        (folder / path).parent.mkdir(exist_ok=True, parents=True)
        (folder / path).write_text(text.format(name=name, remote=remote, table_format=table_format))

    def move_away(to: str) -> None:
        (row,) = (
            spark.sql(f"DESCRIBE SCHEMA {LAKES[table_format]}{name}__lamina").filter("info_name = 'Location'").collect()
        )
        for table in Path(places._local(str(row[1])) or "").glob("days__v_*__g_*"):
            shutil.move(table, folder / f"{to}_{table.name}")

    def build(**flags: Any) -> str:
        with Project.open(folder) as project:
            return project.build(execution_time="2024-01-04", **flags).status

    seen = {"first": build()}
    move_away("first")
    seen["faults"] = [one.detail for one in diagnose(OpenOptions(directory=folder)) if one.status == "fault"]
    with Project.open(folder) as project:
        seen["repair"] = [
            row["status"] for row in project.state_repair(execution_time="2024-01-04").to_dict()["repair"]
        ]
    move_away("second")
    seen["force"], seen["again"] = build(force=True), build()
    with Project.open(folder) as project:
        seen["rows"] = project.query(f"SELECT count(*) FROM {name}.days").collect()[0][0]
    return seen


if __name__ == "__main__":
    main(*sys.argv[1:])
