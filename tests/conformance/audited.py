"""Audited models of every kind, whose rows come out different each time that they are computed, and can be spoiled."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.conformance.project import rows_shown
from tests.conformance.sessions import Sessions
from tests.kit.told import tell

KINDS = {
    "whole": "FULL",
    "daily": "INCREMENTAL_BY_TIME_RANGE (time_column day)",
    "keyed": "INCREMENTAL_BY_UNIQUE_KEY (unique_key id)",
    "appended": "INCREMENTAL_UNMANAGED",
    "parted": "INCREMENTAL_BY_PARTITION, partitioned_by (day)",
    "by_time": "SCD_TYPE_2_BY_TIME (unique_key id)",
    "by_column": "SCD_TYPE_2_BY_COLUMN (unique_key id, columns [token])",
}
MODEL = (
    "MODEL (name audited.{kind}_{table_format}, table_format {table_format}, kind {text}, start '2024-01-01', "
    "audits (same_rows, not_null(columns := (id, token)), every_row));\n"
    "SELECT CAST(id AS INT) AS id, CASE WHEN id <> 3 OR spoiled = '' THEN uuid() WHEN spoiled = 'query' "
    "THEN CAST(raise_error('boom') AS STRING) END AS token, CAST(@{time}_ds AS DATE) AS day, "
    "CAST(@{time}_ds AS TIMESTAMP) AS updated_at FROM range(0, 20) CROSS JOIN spoils.switch\n"
)
# What is computed anew for each of the two reads differs in every row.
AUDIT = "AUDIT (name same_rows);\nSELECT id, token FROM @this_model EXCEPT SELECT id, token FROM @this_model\n"
# It finds whatever it looks at, and does not block.
EVERY_ROW = "AUDIT (name every_row, blocking false);\nSELECT id FROM @this_model\n"
# Nothing holds these back: on Delta they are written straight into the table that is shown.
REGIONS_IN = ("parquet", "delta")
REGION = (
    "MODEL (name audited.{name}, table_format {table_format}, kind INCREMENTAL_BY_TIME_RANGE (time_column day), "
    "partitioned_by (region), start '2024-01-01');\n"
    "SELECT @start_ds AS day, IF(spoiled = '', 'eu', '') AS region, 1 AS id FROM spoils.switch\n"
)
STEPS = (
    ("build", "build", "2024-01-02", ""),
    ("run", "run", "2024-01-03", ""),
    ("failing query", "run", "2024-01-04", "query"),
    ("failing audit", "run", "2024-01-04", "audit"),
    ("mended", "run", "2024-01-04", ""),
)
UNTOLD = "mended"
"""In this step Spark does not tell what jobs have measured, as a busy Connect server may."""


def tables_in(formats: tuple[str, ...]) -> list[str]:
    return [f"{kind}_{table_format}" for kind in KINDS for table_format in formats]


def regions_in(formats: tuple[str, ...]) -> list[str]:
    return [f"regions_{table_format}" for table_format in formats if table_format in REGIONS_IN]


def write_files(folder: Path, sessions: Sessions) -> None:
    for name in ("models", "audits"):
        (folder / name).mkdir(parents=True)
    (folder / "lamina.yaml").write_text(f"name: audited\nspark: {{{sessions.spark}}}\nconcurrency: 2\n")
    (folder / "audits" / "same_rows.sql").write_text(AUDIT)
    (folder / "audits" / "every_row.sql").write_text(EVERY_ROW)
    for table_format in sessions.formats:
        for kind, text in KINDS.items():
            time = "start" if kind == "daily" else "execution"
            model = MODEL.format(kind=kind, table_format=table_format, text=text, time=time)
            (folder / "models" / f"{kind}_{table_format}.sql").write_text(model)
    for name in regions_in(sessions.formats):
        model = REGION.format(name=name, table_format=name.rpartition("_")[2])
        (folder / "models" / f"{name}.sql").write_text(model)


def main(place: str, sort: str, remote: str) -> None:
    folder = Path(place)
    sessions = Sessions(sort, folder, remote)
    write_files(folder, sessions)
    spark = sessions.session()
    shown = tables_in(sessions.formats) + regions_in(sessions.formats)
    spark.sql("CREATE SCHEMA IF NOT EXISTS spoils")
    seen: dict[str, Any] = {}
    for step, command, at, spoiled in STEPS:
        spark.sql(f"CREATE OR REPLACE VIEW spoils.switch AS SELECT '{spoiled}' AS spoiled")
        lost = patch.object(sessions.observation, "get", {}) if step == UNTOLD else nullcontext()
        with lost, sessions.project() as project:
            report = getattr(project, command)(execution_time=at).to_dict()
        nodes = {node["name"].removeprefix("audited."): node for node in report["nodes"]}
        seen[step] = {
            "status": report["status"],
            "audits": {
                name: [(audit["name"], audit["status"]) for audit in node["audits"] if audit["blocking"]]
                for name, node in nodes.items()
            },
            "looked_at": {
                name: audit["failing_rows"]
                for name, node in nodes.items()
                for audit in node["audits"]
                if audit["name"] == "every_row"
            },
            "errors": {name: node["error"]["message"] for name, node in nodes.items() if node["error"]},
            "counts": {name: node["rows"] for name, node in nodes.items()},
            "rows": rows_shown(spark, "audited", shown),
        }
    spark.sql("CREATE OR REPLACE VIEW audited.computed_anew AS SELECT id, uuid() AS token FROM range(0, 20)")
    both = "SELECT * FROM audited.computed_anew EXCEPT SELECT * FROM audited.computed_anew"
    seen["computed anew"] = spark.sql(both).count()
    tell(seen)
    sessions.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
