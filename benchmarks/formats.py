"""What formats cost: MERGE against the same by hand, rows written for those that change, audits on top of a query."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lamina import Project

_SETTINGS = (
    "concurrency: 1\nspark: {master: 'local[2]', config: {spark.driver.memory: 6g, spark.sql.shuffle.partitions: 4}}"
)
_COLUMNS = (
    "id, id % 97 AS customer_id, CAST(id % 1300 AS DOUBLE) AS amount, CONCAT('status', id % 3) AS status, "
    "CONCAT('city ', id % 5000) AS city"
)
_FORMATS = ("delta", "iceberg")
_BY_KEY = {
    "delta": "'delta.enableDeletionVectors' = 'true'",
    "iceberg": "'write.merge.mode' = 'merge-on-read'",
}


def main() -> dict[str, Any]:
    """All figures, in each format."""
    return {"upsert": upserting(), "scd_type_2": histories(), "audits": auditing()}


def _project(folder: Path, header: str, query: str, table_format: str) -> Project:
    (folder / "models").mkdir(parents=True)
    (folder / ".lamina").mkdir()
    # Spark is needed for the source before the first build tells which format the project has.
    (folder / ".lamina" / "formats").write_text("\n".join(_FORMATS))
    (folder / "lamina.yaml").write_text(f"name: shop\n{_SETTINGS}\n")
    text = f"MODEL (name shop.target, table_format {table_format}, start '2024-01-01', kind {header});\n{query}\n"
    (folder / "models" / "target.sql").write_text(text)
    return Project.open(folder)


def _source(spark: Any, query: str) -> None:
    """The source is a table of files, so that nothing but reading it is measured; its name stays the same."""
    spark.sql("CREATE SCHEMA IF NOT EXISTS raw")
    spark.sql("DROP TABLE IF EXISTS raw.source")
    spark.sql(f"CREATE TABLE raw.source USING parquet AS {query}")


@contextmanager
def _built(kind: str, table_format: str, query: str) -> Iterator[tuple[Project, Any]]:
    """A project whose one model of a kind has processed a source, and its session."""
    with (
        tempfile.TemporaryDirectory() as place,
        _project(Path(place) / "shop", kind, "SELECT * FROM raw.source", table_format) as project,
    ):
        spark = project.query("SELECT 1").sparkSession
        _source(spark, query)
        assert project.build(execution_time="2024-01-02").status == "succeeded"
        yield project, spark


def _run(project: Project, at: str) -> float:
    report = project.run(execution_time=at).to_dict()
    (node,) = [node for node in report["nodes"] if node["status"] == "succeeded"]
    return float(node["seconds"])


def upserting(rows: int = 20_000_000, rounds: int = 3) -> dict[str, Any]:
    """One hundredth of the rows changed, spread over all files; the best of the rounds, each beginning with another.

    By hand it is done twice: on a table as the format makes it, and on one with the properties that Lamina gives it.
    """
    return {table_format: _upsert(table_format, rows, rounds) for table_format in _FORMATS}


def _upsert(table_format: str, rows: int, rounds: int) -> dict[str, Any]:
    source = f"SELECT {_COLUMNS} FROM range(0, {rows}, 1, 8)"
    with _built("INCREMENTAL_BY_UNIQUE_KEY (unique_key id)", table_format, source) as (project, spark):
        schema = "lamina_iceberg.hand" if table_format == "iceberg" else "hand"
        spark.sql(f"CREATE SCHEMA {schema}")
        hands = {f"{schema}.plain": "", f"{schema}.alike": f"TBLPROPERTIES ({_BY_KEY[table_format]})"}
        for name, properties in hands.items():
            spark.sql(f"CREATE TABLE {name} USING {table_format} {properties} AS SELECT * FROM raw.source")
        seconds: dict[str, list[float]] = {"lamina": [], **{name: [] for name in hands}}
        for number in range(rounds):
            changed = f"SELECT {_COLUMNS} FROM (SELECT id * 100 + {number} AS id FROM range(0, {rows // 100}, 1, 2))"
            _source(spark, changed.replace("id % 1300", f"id % 1300 + {number + 1}"))
            works = [*hands, "lamina"]
            for name in [*works[number % 3 :], *works[: number % 3]]:
                begun = time.perf_counter()
                if name == "lamina":
                    _run(project, f"2024-01-{number + 3:02d}")
                else:
                    spark.sql(
                        f"MERGE INTO {name} AS target USING raw.source AS source ON target.id = source.id "
                        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
                    )
                seconds[name].append(time.perf_counter() - begun)
        contents = "SELECT count(*), bit_xor(xxhash64(id, customer_id, amount, status, city)) FROM "
        shown = project.query(f"{contents} shop.target").collect()
        assert all(spark.sql(contents + name).collect() == shown for name in hands)
    ours, plain, alike = (min(times) for times in seconds.values())
    return {
        "rows": rows,
        "lamina_seconds": round(ours, 1),
        "hand_written_seconds": round(plain, 1),
        "hand_written_alike_seconds": round(alike, 1),
        "ratio": round(ours / plain, 2),
        "ratio_to_alike": round(ours / alike, 2),
    }


def histories(keys: int = 5_000_000) -> dict[str, Any]:
    """One hundredth of the keys changed: how many rows are written for each that changed, and how long it takes."""
    return {table_format: _history(table_format, keys) for table_format in ("parquet", *_FORMATS)}


def _history(table_format: str, keys: int) -> dict[str, Any]:
    kind = "SCD_TYPE_2_BY_COLUMN (unique_key id, columns [amount, status])"
    source = f"SELECT {_COLUMNS} FROM range(0, {keys}, 1, 4)"
    with _built(kind, table_format, source) as (project, spark):
        changed = "IF(id % 100 = 0, amount + 1, amount) AS amount"
        _source(spark, f"SELECT * EXCEPT (amount), {changed} FROM ({source})")
        seconds = _run(project, "2024-01-03")
        (total,) = project.query("SELECT count(*) FROM shop.target").collect()[0]
        assert total == keys + keys // 100
        written = _rows_written(spark, table_format, total)
    return {"keys": keys, "seconds": round(seconds, 1), "rows_written_per_changed": round(written / (keys // 50), 1)}


def _rows_written(spark: Any, table_format: str, total: int) -> int:
    """What the last commit of the table wrote; on parquet, the whole table. A changed key changes two rows."""
    if table_format == "parquet":
        return total
    schema = "lamina_iceberg.shop__lamina" if table_format == "iceberg" else "shop__lamina"
    name = next(row.tableName for row in spark.sql(f"SHOW TABLES IN {schema}").collect() if "__g_" in row.tableName)
    if table_format == "delta":
        metrics = spark.sql(f"DESCRIBE HISTORY {schema}.{name} LIMIT 1").collect()[0]["operationMetrics"]
        return int(metrics["numOutputRows"])
    newest = spark.sql(f"SELECT summary FROM {schema}.{name}.snapshots ORDER BY committed_at DESC LIMIT 1").collect()
    return int(newest[0]["summary"]["added-records"])


# --- audits -----------------------------------------------------------------------------------------------------------
def auditing(rows: int = 3_000_000, rounds: int = 2) -> dict[str, Any]:
    """The same costly query without audits and with three that block; a second computation would double the time."""
    return {table_format: _audited(table_format, rows, rounds) for table_format in ("parquet", *_FORMATS)}


def _audited(table_format: str, rows: int, rounds: int) -> dict[str, Any]:
    costly = "id, " + ", ".join(
        f"sha2(repeat(CAST(id + {number} AS STRING), 60), 512) AS h{number}" for number in range(4)
    )
    query = f"SELECT {costly}, CAST(@start_ds AS DATE) AS day FROM range(0, {rows}, 1, 4)"
    header = "INCREMENTAL_BY_TIME_RANGE (time_column day)"
    audits = (
        "audits (not_null(columns := (id, h0)), accepted_range(column := id, min_v := 0), unique_values(columns := id))"
    )
    seconds: dict[str, list[float]] = {"plain": [], "audited": []}
    with tempfile.TemporaryDirectory() as place:
        project = _project(Path(place) / "shop", header, query, table_format)
        target = Path(place) / "shop" / "models" / "target.sql"
        text = target.read_text()
        target.write_text(text.replace("shop.target", "shop.plain"))
        (target.parent / "audited.sql").write_text(text.replace("shop.target,", f"shop.audited, {audits},"))
        with project:
            assert project.build(execution_time="2024-01-02").status == "succeeded"
            for number in range(rounds):
                report = project.run(execution_time=f"2024-01-{number + 3:02d}").to_dict()
                assert report["status"] == "succeeded", report
                for node in report["nodes"]:
                    seconds[node["name"].removeprefix("shop.")].append(node["seconds"])
    plain, audited = (min(seconds[name]) for name in ("plain", "audited"))
    return {"rows": rows, "plain_seconds": plain, "audited_seconds": audited, "ratio": round(audited / plain, 2)}


if __name__ == "__main__":
    print(main())
