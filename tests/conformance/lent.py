"""Tables whose files others read: whoever keeps a lake small maintains every table that Lamina has made."""

from __future__ import annotations

import contextlib
import re
import sys
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException

from lamina import Project
from lamina.bootstrap import OpenOptions, diagnose
from tests.conformance.project import Event, set_sources
from tests.kit.connect import reader
from tests.kit.told import tell

SCHEMA = "lent"
EVENTS: list[Event] = [(day, "a", f"2024-01-{day:02d}", day) for day in range(1, 10)]
# What nobody needs may be deleted at once: whoever sets this would lose files of a clone without protection.
AT_ONCE = "physical_properties ('delta.deletedFileRetentionDuration' = 'interval 0 hours')"
WHERE = "raw.events WHERE day BETWEEN @start_date AND @end_date"
BY_DAY = "kind INCREMENTAL_BY_TIME_RANGE (time_column day), clustered_by (id)"
HEADERS = {
    "borrows": f"kind INCREMENTAL_UNMANAGED, table_format delta, {AT_ONCE}",
    "copies": f"kind INCREMENTAL_UNMANAGED, table_format delta, seed_copy always, {AT_ONCE}",
    "days": f"{BY_DAY}, table_format delta, {AT_ONCE}",
    "log_ice": "kind INCREMENTAL_UNMANAGED, table_format iceberg",
    "days_ice": f"{BY_DAY}, table_format iceberg",
}
# Read what is kept there, by versions that are recorded.
READERS = {"reads": "days", "reads_ice": "days_ice"}
MODELS = (*HEADERS, *READERS)
ENVIRONMENTS = {"prod": SCHEMA, "dev": f"{SCHEMA}__dev"}
_GENERATION = re.compile(r"\w+__g_\d+")


def write_models(folder: Path, columns: str) -> None:
    for name, header in HEADERS.items():
        text = f"MODEL (name {SCHEMA}.{name}, {header});\nSELECT {columns} FROM {WHERE}\n"
        (folder / "models" / f"{name}.sql").write_text(text)
    for name, parent in READERS.items():
        text = f"MODEL (name {SCHEMA}.{name}, kind FULL);\nSELECT id FROM {SCHEMA}.{parent}\n"
        (folder / "models" / f"{name}.sql").write_text(text)


class Lake:
    """A project, and somebody who maintains every table in its schemas."""

    def __init__(self, folder: Path, remote: str) -> None:
        self.folder, self.spark = folder, reader(remote)
        # VACUUM looks for files in as many tasks, ten thousand by default.
        self.spark.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", "2")
        self.maintained = 0
        self.refused: list[str] = []

    def build(self, environment: str, at: str, **flags: Any) -> str:
        with Project.open(self.folder) as project:
            return project.build(environment, execution_time=at, **flags).status

    def shown(self) -> dict[str, Any]:
        return {
            f"{environment}.{name}": self._rows(f"{schema}.{name}")
            for environment, schema in ENVIRONMENTS.items()
            for name in MODELS
        }

    def read_by_versions(self, at: str) -> dict[str, Any]:
        """What models and people read by Lamina's own names."""
        restated = self.build("prod", at, restate=[f"{SCHEMA}.{name}" for name in READERS])
        with Project.open(self.folder) as project:
            rows = {
                name: sorted(row.id for row in project.query(f"SELECT id FROM {SCHEMA}.{name}").collect())
                for name in MODELS
            }
        return {"restated": restated, "rows": rows}

    def _rows(self, table: str) -> list[int] | str:
        try:
            return sorted(row.id for row in self.spark.sql(f"SELECT id FROM {table}").collect())
        except PySparkException as error:
            return error.getCondition() or str(error)[:500]

    def maintain_delta(self, *, robs: bool = False) -> None:
        """Every table; or those that lend files, without keeping anything, and not those that read them."""
        used = self._borrowers() if robs else set()
        for table in self._tables(f"{SCHEMA}__lamina"):
            if table.rpartition(".")[2] not in used:
                # One that nobody reads any more may have lost files itself.
                with contextlib.suppress(*([PySparkException] if robs else [])):
                    self.spark.sql(f"OPTIMIZE {table}").collect()
                self.spark.sql(f"VACUUM {table} {'RETAIN 0 HOURS' if robs else ''}").collect()
                self.maintained += 1

    def _borrowers(self) -> set[str]:
        """Production's tables, and dev's own."""
        with Project.open(self.folder) as project:
            prod, dev = (project.environment(name).to_dict()["pointers"] for name in ENVIRONMENTS)
        found: set[str] = set()
        for pointer in (*prod.values(), dev[f"{SCHEMA}.days"]):
            (row,) = self.spark.sql(f"SHOW CREATE TABLE {pointer['physical_table']}").collect()
            found |= set(_GENERATION.findall(row[0]))
        return found

    def maintain_iceberg(self) -> None:
        """What Iceberg recommends, so often that all but the last step is forgotten, and without any delay."""
        for table in self._tables(f"lamina_iceberg.{SCHEMA}__lamina"):
            name = f"table => '{table.partition('.')[2]}'"
            rewrite = f"rewrite_data_files({name}, options => map('rewrite-all', 'true'))"
            expire = f"expire_snapshots({name}, older_than => TIMESTAMP '2100-01-01', retain_last => 1)"
            orphans = (
                f"remove_orphan_files({name})",
                f"remove_orphan_files({name}, older_than => current_timestamp())",
            )
            for call in (rewrite, f"rewrite_manifests({name})", rewrite, expire, *orphans):
                try:
                    self.spark.sql(f"CALL lamina_iceberg.system.{call}").collect()
                except PySparkException as error:
                    self.refused.append(f"{call.partition('(')[0]}: {error}"[:200])
            self.maintained += 1

    def _tables(self, schema: str) -> list[str]:
        found = self.spark.sql(f"SHOW TABLES IN {schema}").collect()
        names = [row.tableName for row in found if "__g_" in row.tableName]
        return [f"{schema}.{name}" for name in names if not name.startswith("reads")]

    def faults(self) -> list[str]:
        """What `doctor` finds."""
        found = diagnose(OpenOptions(directory=self.folder))
        return [f"{one.detail} {one.fix}" for one in found if one.status == "fault"]

    def repair(self, environment: str) -> dict[str, str]:
        with Project.open(self.folder) as project:
            report = project.state_repair(environment, execution_time="2024-01-07").to_dict()
        return {row["name"]: row["status"] for row in report["repair"]}


def main(place: str, remote: str) -> None:
    folder = Path(place)
    (folder / "models").mkdir(parents=True)
    (folder / "lamina.yaml").write_text(
        f"name: {SCHEMA}\nspark: {{remote: '{remote}'}}\ndefaults: {{start: 2024-01-01}}\n"
    )
    lake = Lake(folder, remote)
    set_sources(lake.spark, EVENTS)
    seen: dict[str, Any] = {}
    write_models(folder, "id, day")
    seen["first"] = [lake.build("prod", "2024-01-02"), lake.build("prod", "2024-01-03")]
    # A copy of dev's own, which begins with production's rows; one of its days is computed anew.
    seen["first"] += [lake.build("dev", "2024-01-03")]
    seen["first"] += [lake.build("dev", "2024-01-03", restate=[f"{SCHEMA}.days"], start="2024-01-02")]
    write_models(folder, "id, day, customer")
    # Versions of another definition, which begin with the rows of the former one; then once more from these.
    seen["changed"] = lake.build("prod", "2024-01-04")
    write_models(folder, "id, day, customer, amount")
    seen["again"] = lake.build("prod", "2024-01-05")
    seen["before"] = lake.shown()
    lake.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    lake.maintain_delta()
    lake.maintain_iceberg()
    seen["maintained"], seen["refused"], seen["after"] = lake.maintained, lake.refused, lake.shown()
    seen["next"] = lake.build("prod", "2024-01-06")
    seen["later"], seen["by versions"] = lake.shown(), lake.read_by_versions("2024-01-06")
    # Copies that read files of tables which are in use no more, and somebody who overrides what these say themselves.
    seen["first"] += [lake.build("dev", "2024-01-06")]
    seen["first"] += [lake.build("dev", "2024-01-06", restate=[f"{SCHEMA}.days"], start="2024-01-05")]
    write_models(folder, "id, day, customer, amount, amount + 1 AS more")
    seen["changed again"] = lake.build("prod", "2024-01-07")
    seen["whole"] = lake.shown()
    lake.maintain_delta(robs=True)
    seen["robbed"], seen["faults"] = lake.shown(), lake.faults()
    seen["repaired"] = {environment: lake.repair(environment) for environment in ENVIRONMENTS}
    seen["mended"], seen["healthy"] = lake.shown(), lake.faults()
    seen["repaired again"] = lake.repair("prod")
    seen["unchanged"] = lake.build("prod", "2024-01-07")
    seen["last"] = lake.build("prod", "2024-01-08")
    lake.maintain_delta(robs=True)
    seen["in the end"] = lake.shown()
    tell(seen)


if __name__ == "__main__":
    main(*sys.argv[1:])
