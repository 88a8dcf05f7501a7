"""A source that loses a column and gets another one: what becomes of tables over all that it has."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from lamina import Project
from tests.conformance.project import FORMATS, rows_shown
from tests.kit.connect import reader
from tests.kit.told import tell

SCHEMA = "wide"
KINDS = {
    "keyed": "INCREMENTAL_BY_UNIQUE_KEY (unique_key id)",
    "strict": "INCREMENTAL_UNMANAGED (on_destructive_change allow, on_additive_change error)",
    "fixed": "INCREMENTAL_UNMANAGED (on_destructive_change ignore, on_additive_change ignore)",
    "told": (
        "INCREMENTAL_BY_TIME_RANGE (time_column day, on_destructive_change warn, on_additive_change warn, "
        "partition_by_time_column false)"
    ),
}
TABLES = [f"{name}_{table_format}" for name in KINDS for table_format in FORMATS]
DAYS = (("first", "build", "2024-01-02", "1 AS id, 'x' AS a"), ("then", "run", "2024-01-03", "2 AS id, 'y' AS b"))


def write_files(folder: Path, remote: str) -> None:
    (folder / "models").mkdir(parents=True)
    (folder / "lamina.yaml").write_text(
        f"name: {SCHEMA}\nspark: {{remote: '{remote}'}}\nconcurrency: 2\ndefaults: {{start: 2024-01-01}}\n"
    )
    for table_format in FORMATS:
        for name, kind in KINDS.items():
            (folder / "models" / f"{name}_{table_format}.sql").write_text(
                f"MODEL (name {SCHEMA}.{name}_{table_format}, kind {kind}, table_format {table_format});\n"
                "SELECT *, CAST(@start_ds AS DATE) AS day FROM columns_raw.source\n"
            )


def main(place: str, remote: str) -> None:
    folder, spark = Path(place), reader(remote)
    write_files(folder, remote)
    spark.sql("CREATE SCHEMA IF NOT EXISTS columns_raw")
    seen: dict[str, Any] = {}
    for step, command, at, columns in DAYS:
        spark.sql(f"CREATE OR REPLACE VIEW columns_raw.source AS SELECT {columns}")
        with Project.open(folder) as project:
            report = getattr(project, command)(execution_time=at).to_dict()
        nodes = {node["name"].removeprefix(f"{SCHEMA}."): node for node in report["nodes"]}
        seen[step] = {
            "errors": {name: node["error"]["message"] for name, node in nodes.items() if node["error"]},
            "warnings": [(each["code"], each["node"], each["message"]) for each in report["warnings"]],
            "columns": {table: spark.table(f"{SCHEMA}.{table}").columns for table in TABLES},
            "rows": rows_shown(spark, SCHEMA, TABLES),
        }
    tell(seen)


if __name__ == "__main__":
    main(*sys.argv[1:])
