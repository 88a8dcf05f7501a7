"""A whole project whose every text holds `${…}`, built in a session of a user's own that would replace it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from lamina import Project
from tests.kit.told import tell
from tests.spark.handed_in import session

TEXT = "${env:PATH}"
OTHER = "${nobody.knows}"


def models(table_format: str) -> dict[str, str]:
    """Each kind that writes in a way of its own."""
    described = (
        f"description '{TEXT}', column_descriptions (said = '{TEXT}'), physical_properties (note = '{TEXT}'), "
        f"virtual_properties (note = '{TEXT}'), table_format {table_format}"
    )
    rows = f"SELECT id, p AS said, p FROM texts.seeded WHERE p IN ('{TEXT}', '{OTHER}')"
    merge = f"WHEN MATCHED AND target.said = '{TEXT}' THEN UPDATE SET target.said = concat(source.said, '{TEXT}')"
    return {
        "whole": f"kind FULL, partitioned_by p, {described}, audits (only(text := '{TEXT}'))); {rows}",
        "kept": f"kind INCREMENTAL_BY_PARTITION, partitioned_by p, {described}); {rows}",
        "keyed": f"kind INCREMENTAL_BY_UNIQUE_KEY (unique_key id, when_matched ({merge})), {described}); {rows}",
        "timed": (
            f"kind INCREMENTAL_BY_TIME_RANGE (time_column day), partitioned_by (day, p), {described}); "
            f"SELECT id, p AS said, p, DATE'2024-01-01' AS day FROM texts.seeded "
            f"WHERE DATE'2024-01-01' BETWEEN @start_date AND @end_date"
        ),
        "history": f"kind SCD_TYPE_2_BY_COLUMN (unique_key id, columns [said]), {described}); {rows}",
        "around": (
            f"kind FULL, {described}); CREATE TEMPORARY VIEW v AS SELECT 1 AS id, '{TEXT}' AS said; "
            f"SELECT id, said FROM v; CREATE TEMPORARY VIEW w AS SELECT '{TEXT}' AS said"
        ),
        "seen": f"kind VIEW, description '{TEXT}'); SELECT 1 AS id, '{TEXT}' AS said",
    }


def main(place: str, table_format: str) -> None:
    folder = Path(place)
    spark = session(folder, table_format, {"spark.databricks.delta.snapshotPartitions": "1"})
    spark.sparkContext.setLogLevel("OFF")
    project = folder / "project"
    for name in ("models", "seeds", "audits"):
        (project / name).mkdir(parents=True)
    (project / "lamina.yaml").write_text("name: texts\ndefaults: {start: 2024-01-01}\n")
    (project / "seeds" / "texts.csv").write_text(f"id,p\n1,{TEXT}\n2,{OTHER}\n")
    (project / "models" / "seeded.sql").write_text(
        "MODEL (name texts.seeded, kind SEED (path '../seeds/texts.csv'), columns (id INT, p STRING), "
        f"description '{TEXT}');\n"
    )
    (project / "audits" / "only.sql").write_text(
        f"AUDIT (name only); SELECT * FROM @this_model WHERE said NOT IN (@text, '{OTHER}')"
    )
    for one in {"parquet", table_format}:
        for name, rest in models(one).items():
            (project / "models" / f"{one}_{name}.sql").write_text(f"MODEL (name {one}.{name}, {rest}\n")
    seen: dict[str, Any] = {"statuses": [], "problems": [], "rows": {}, "told": {}}
    for day in (2, 3):
        with Project.open(project, spark=spark) as opened:
            report = opened.build(execution_time=f"2024-01-{day:02d}")
            seen["statuses"].append(report.status)
            seen["problems"] += [str(result.error) for result in report.results.values() if result.error is not None]
    quiet = spark.newSession()
    quiet.conf.set("spark.sql.variable.substitute", "false")
    with Project.open(project, spark=spark) as opened:
        for one in ("parquet", table_format):
            for name in models(one):
                rows = opened.query(f"SELECT id, said, '{TEXT}' AS literal FROM {one}.{name}").collect()
                seen["rows"][f"{one}.{name}"] = sorted([row.id, row.said, row.literal] for row in rows)
                told = repr(quiet.sql(f"DESCRIBE TABLE EXTENDED {one}.{name}").collect())
                seen["told"][f"{one}.{name}"] = told.count(TEXT)
    seen["still"] = spark.conf.get("spark.sql.variable.substitute")
    tell(seen)


if __name__ == "__main__":
    main(*sys.argv[1:])
