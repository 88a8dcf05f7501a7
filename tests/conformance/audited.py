"""Models whose rows come out different each time that they are computed, with audits that would see it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from lamina import Project
from tests.conformance.project import FORMATS
from tests.kit.told import tell

KINDS = {
    "whole": "FULL",
    "daily": "INCREMENTAL_BY_TIME_RANGE (time_column day)",
    "keyed": "INCREMENTAL_BY_UNIQUE_KEY (unique_key id)",
    "history": "SCD_TYPE_2_BY_COLUMN (unique_key id, columns [token])",
}
MODEL = (
    "MODEL (name audited.{kind}_{table_format}, table_format {table_format}, kind {text}, start '2024-01-01', "
    "audits (same_rows, not_null(columns := (id, token))));\n"
    "SELECT CAST(id AS INT) AS id, uuid() AS token, CAST(@{time}_ds AS DATE) AS day FROM range(0, 20)\n"
)
# What is computed anew for each of the two reads differs in every row.
AUDIT = "AUDIT (name same_rows);\nSELECT id, token FROM @this_model EXCEPT SELECT id, token FROM @this_model\n"


def main(place: str, remote: str) -> None:
    folder, spark = Path(place), SparkSession.builder.remote(remote).create()
    for name in ("models", "audits"):
        (folder / name).mkdir(parents=True)
    (folder / "lamina.yaml").write_text(f"name: audited\nspark: {{remote: '{remote}'}}\nconcurrency: 2\n")
    (folder / "audits" / "same_rows.sql").write_text(AUDIT)
    for table_format in FORMATS:
        for kind, text in KINDS.items():
            time = "start" if kind == "daily" else "execution"
            model = MODEL.format(kind=kind, table_format=table_format, text=text, time=time)
            (folder / "models" / f"{kind}_{table_format}.sql").write_text(model)
    seen: dict[str, Any] = {}
    for command, at in (("build", "2024-01-02"), ("run", "2024-01-03")):
        with Project.open(folder) as project:
            report = getattr(project, command)(execution_time=at).to_dict()
        assert report["status"] == "succeeded", [node["error"] for node in report["nodes"] if node["error"]]
        seen[command] = {
            node["name"].removeprefix("audited."): [(audit["name"], audit["status"]) for audit in node["audits"]]
            for node in report["nodes"]
        }
    spark.sql("CREATE OR REPLACE VIEW audited.computed_anew AS SELECT id, uuid() AS token FROM range(0, 20)")
    both = "SELECT * FROM audited.computed_anew EXCEPT SELECT * FROM audited.computed_anew"
    seen["computed anew"] = spark.sql(both).count()
    tell(seen)


if __name__ == "__main__":
    main(*sys.argv[1:])
