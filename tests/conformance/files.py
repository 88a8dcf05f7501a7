"""Batches of many days that every task has rows of, in every table format, and a child that reads one of these days."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from lamina import Project
from tests.conformance.project import FORMATS
from tests.kit.connect import reader
from tests.kit.told import tell

SCHEMA = "laid_out"
DAYS, TASKS = 20, 4
HEADERS = {"plain": "", "audited": ", audits (not_null(columns := (id)))"}
TABLES = [f"{name}_{table_format}" for name in HEADERS for table_format in FORMATS]


def write_files(folder: Path, remote: str) -> None:
    (folder / "models").mkdir(parents=True)
    (folder / "lamina.yaml").write_text(
        f"name: {SCHEMA}\nspark: {{remote: '{remote}'}}\nconcurrency: 2\ndefaults: {{start: 2024-01-01}}\n"
    )
    wide = "session_properties ('spark.sql.shuffle.partitions' = 200, 'spark.sql.adaptive.enabled' = true)"
    at = f"CAST(date_add(DATE'2024-01-01', CAST(id % {2 * DAYS} AS INT)) AS TIMESTAMP)"
    for table_format in FORMATS:
        for name, header in HEADERS.items():
            (folder / "models" / f"{name}_{table_format}.sql").write_text(
                f"MODEL (name {SCHEMA}.{name}_{table_format}, kind INCREMENTAL_BY_TIME_RANGE (time_column at), "
                f"table_format {table_format}, {wide}{header});\n"
                f"SELECT id, at FROM (SELECT id, {at} AS at FROM range(0, 400, 1, {TASKS})) "
                "WHERE at BETWEEN @start_dt AND @end_dt\n"
            )
        (folder / "models" / f"child_{table_format}.sql").write_text(
            f"MODEL (name {SCHEMA}.child_{table_format}, kind INCREMENTAL_BY_TIME_RANGE (time_column day), "
            f"start '2024-01-15', table_format {table_format});\n"
            f"SELECT to_date(at) AS day, count(*) AS n FROM {SCHEMA}.plain_{table_format} "
            "WHERE at BETWEEN @start_dt AND @end_dt GROUP BY 1\n"
        )


def main(place: str, remote: str) -> None:
    folder, spark = Path(place), reader(remote)
    write_files(folder, remote)
    seen: dict[str, Any] = {}
    for command, at in (("build", "2024-01-21"), ("run", "2024-02-10")):
        with Project.open(folder) as project:
            report = getattr(project, command)(execution_time=at).to_dict()
        # Which file a row is from is told neither in a union nor inside of an aggregate.
        counted = "SELECT count(DISTINCT file), count(*) FROM (SELECT input_file_name() AS file FROM"
        seen[command] = {
            "errors": [node["error"] for node in report["nodes"] if node["error"]],
            "files": {table: list(spark.sql(f"{counted} {SCHEMA}.{table})").collect()[0]) for table in TABLES},
        }
    children = [f"SELECT '{name}', min(n), sum(n) FROM {SCHEMA}.child_{name}" for name in FORMATS]
    seen["children"] = {name: found for name, *found in spark.sql(" UNION ALL ".join(children)).collect()}
    tell(seen)


if __name__ == "__main__":
    main(*sys.argv[1:])
