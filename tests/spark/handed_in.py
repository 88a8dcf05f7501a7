"""A session of a user's own, with the settings that a table format's documentation asks for and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyspark
from pyspark.sql import SparkSession

from lamina import Project
from lamina.spark.sessions.embedded import SparkSettings
from lamina.spark.sessions.format_settings import package_of
from tests.kit.told import tell

SETTINGS = {
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    },
    "iceberg": {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.spark_catalog": "org.apache.iceberg.spark.SparkSessionCatalog",
        "spark.sql.catalog.spark_catalog.type": "hive",
        # What Iceberg needs on an embedded metastore.
        "spark.hadoop.iceberg.engine.hive.lock-enabled": "false",
        "spark.hadoop.hive.metastore.disallow.incompatible.col.type.changes": "false",
    },
}
WHERE = "raw.events WHERE day BETWEEN @start_date AND @end_date"
MODELS = {
    "daily": ("kind INCREMENTAL_BY_TIME_RANGE (time_column day)", f"SELECT id, day FROM {WHERE}"),
    "keyed": (
        "kind INCREMENTAL_BY_UNIQUE_KEY (unique_key k)",
        f"SELECT id % 2 AS k, max(id) AS id FROM {WHERE} GROUP BY 1",
    ),
    "log": ("kind INCREMENTAL_UNMANAGED", f"SELECT id FROM {WHERE}"),
    "total": ("kind FULL", "SELECT count(*) AS id FROM handed.daily"),
    # Reads tables of the format in sessions that are used again.
    "plain": ("kind FULL, table_format parquet", "SELECT max(id) AS id FROM handed.keyed"),
    "seen": ("kind VIEW", "SELECT id FROM handed.daily"),
}


def session(folder: Path, table_format: str, further: Mapping[str, str] = MappingProxyType({})) -> SparkSession:
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.jars.packages", package_of(table_format, pyspark.__version__))
        .config("spark.jars.ivy", str(SparkSettings(home=folder).jar_cache))
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config(
            "spark.hadoop.javax.jdo.option.ConnectionURL", f"jdbc:derby:;databaseName={folder}/metastore;create=true"
        )
        .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={folder}")
    )
    for key, value in {**SETTINGS[table_format], **further}.items():
        builder = builder.config(key, value)
    return builder.enableHiveSupport().getOrCreate()


def main(place: str, table_format: str) -> None:
    folder = Path(place)
    spark = session(folder, table_format)
    spark.sparkContext.setLogLevel("OFF")
    before = dict(spark.conf.getAll)
    spark.sql("CREATE SCHEMA raw")
    days = "SELECT id, date_add(DATE'2023-12-31', id) AS day FROM VALUES (1), (2), (3) v(id)"
    spark.sql(f"CREATE VIEW raw.events AS {days}")
    project = folder / "project"
    (project / "models").mkdir(parents=True)
    (project / "lamina.yaml").write_text(
        f"name: handed\ndefaults: {{start: 2024-01-01, table_format: {table_format}}}\n"
    )
    for name, (header, query) in MODELS.items():
        (project / "models" / f"{name}.sql").write_text(f"MODEL (name handed.{name}, {header});\n{query}\n")
    seen: dict[str, Any] = {"statuses": [], "rows": [], "views": []}
    # One and the same session of the user's reads after every build, with whatever it has kept.
    for environment, day in (("prod", 2), ("prod", 3), ("dev", 3), ("prod", 4)):
        with Project.open(project, spark=spark) as opened:
            seen["statuses"].append(opened.build(environment, execution_time=f"2024-01-{day:02d}").status)
            seen["rows"].append(
                {
                    name: sorted(row.id for row in opened.query(f"SELECT id FROM handed.{name}", environment).collect())
                    for name in MODELS
                }
            )
        schema = "handed" if environment == "prod" else "handed__dev"
        seen["views"].append(
            {name: sorted(row.id for row in spark.sql(f"SELECT id FROM {schema}.{name}").collect()) for name in MODELS}
        )
    with Project.open(project, spark=spark) as opened:
        report = opened.build(execution_time="2024-01-04", restate=["handed.daily"], start="2024-01-02").status
        seen["statuses"].append(report)
        seen["statuses"].append(opened.promote("dev", "prod").status)
    after = dict(spark.conf.getAll)
    changed = (key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
    # Delta sets these in whatever session reads one of its tables.
    seen["changed"] = sorted(key for key in changed if not key.startswith("spark.sql.parquet.fieldId."))
    tell(seen)


if __name__ == "__main__":
    main(*sys.argv[1:])
