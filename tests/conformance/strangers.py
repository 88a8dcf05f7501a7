"""Other people's hands on Lamina's tables: restrictions, foreign rows, housekeeping; what commands make of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from lamina import Project
from tests.conformance.project import Event, rows_shown, set_sources, write_project
from tests.kit.connect import reader
from tests.kit.told import tell

NAMES = ("daily", "plain")
FORMATS = ("delta", "iceberg")
TABLES = [f"{name}_{table_format}" for name in NAMES for table_format in FORMATS]
EVENTS: list[Event] = [(day, "a", f"2024-01-{day:02d}", day) for day in range(1, 10)]


class Strangers:
    """A project whose tables others have access to."""

    def __init__(self, folder: Path, remote: str) -> None:
        self.folder = folder
        self.spark = reader(remote)
        self.steps: dict[str, dict[str, Any]] = {}
        write_project(folder, f"remote: '{remote}'", "strange", FORMATS, NAMES)
        set_sources(self.spark, EVENTS)

    def build(self, name: str, at: str) -> None:
        with Project.open(self.folder) as project:
            report = project.build(execution_time=at).to_dict()
        errors = {node["name"].removeprefix("strange."): node["error"] for node in report["nodes"] if node["error"]}
        shown = rows_shown(self.spark, "strange", TABLES)
        ids = {table: sorted(row["id"] for row in rows) for table, rows in shown.items()}
        self.steps[name] = {"status": report["status"], "errors": errors, "ids": ids}

    def tables(self, schema: str) -> list[str]:
        """The generations of a format."""
        found = self.spark.sql(f"SHOW TABLES IN {schema}").collect()
        wanted = [row.tableName for row in found if "__g_" in row.tableName]
        return [f"{schema}.{name}" for name in wanted if name.startswith(("daily_", "plain_"))]


def main(folder: str, remote: str) -> None:
    story = Strangers(Path(folder), remote)
    spark = story.spark
    story.build("first", "2024-01-03")
    delta = [name for name in story.tables("strange__lamina") if "_delta__v_" in name]
    iceberg = story.tables("lamina_iceberg.strange__lamina")
    for name in delta:
        spark.sql(f"ALTER TABLE {name} ADD CONSTRAINT small CHECK (id < 3)")
    recorded = {
        name: spark.sql(f"SELECT snapshot_id FROM {name}.refs WHERE name = 'main'").head()[0] for name in iceberg
    }
    for name in iceberg:
        spark.sql(f"INSERT INTO {name} SELECT * FROM {name} LIMIT 1")
    story.build("refused", "2024-01-04")
    for name in delta:
        spark.sql(f"ALTER TABLE {name} DROP CONSTRAINT small")
    for name in iceberg:
        table = name.partition(".")[2]
        spark.sql(f"CALL lamina_iceberg.system.set_current_snapshot('{table}', {recorded[name]})")
    story.build("mended", "2024-01-04")
    for name in iceberg:
        table = name.partition(".")[2]
        call = (
            f"CALL lamina_iceberg.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))"
        )
        spark.sql(call)
        spark.sql(
            f"CALL lamina_iceberg.system.expire_snapshots(table => '{table}', older_than => TIMESTAMP '2100-01-01', "
            "retain_last => 1)"
        )
    for name in delta:
        spark.sql(f"OPTIMIZE {name}")
    story.build("kept small", "2024-01-05")
    tell(story.steps)


if __name__ == "__main__":
    main(*sys.argv[1:])
