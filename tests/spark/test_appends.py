"""Tables that are appended to again and again: as many partitions as their size asks for, every row once."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lamina import Project
from lamina.spark.engine import SparkEngine
from lamina.spark.formats import appends, parquet

pytest_plugins = ["tests.ports.conftest_engine"]

FIVE_WEEKS = 5 * 7 * 24 * 12
MODEL = """MODEL (
  name often.log, kind INCREMENTAL_UNMANAGED, cron '*/5 * * * *', start '2024-01-01', partitioned_by (half),
  audits (unique_values(columns := (id)))
);
SELECT id, IF(id < 6, 'a', 'b') AS half FROM raw.ticks
"""


def grown(sizes: list[int]) -> tuple[int, int, dict[Any, int]]:
    """Batches of these sizes: the most partitions there ever were, the bytes that were written again, what is left."""
    there: dict[tuple[str], int] = {}
    most = again = 0
    for number, size in enumerate(sizes):
        joined = appends.small_ones(there) if there and len(there) % appends.EVERY == 0 else []
        taken = sum(there.pop(key) for key in joined)
        there |= {(appends.joined_key(number),): taken} if joined else {}
        there[str(number),] = size
        most, again = max(most, len(there)), again + taken
    assert sum(there.values()) == sum(sizes)
    return most, again, there


def test_five_weeks_of_five_minutes_are_a_few_partitions_and_rows_are_written_a_few_times():
    most, again, _ = grown([1_000_000] * FIVE_WEEKS)
    assert most <= 2 * appends.EVERY
    assert again <= 5 * 1_000_000 * FIVE_WEEKS


def test_small_batches_between_large_ones_are_joined_and_large_ones_left_alone(monkeypatch):
    monkeypatch.setattr(appends, "LARGEST", 100)
    sizes = [90 if number % 8 == 0 else 1 for number in range(400)]
    _, again, left = grown(sizes)
    large = [size for size in left.values() if size >= 90]
    assert len(left) - len(large) <= appends.EVERY
    # Less than once each, although the small ones among them are written several times.
    assert again < sum(sizes)


@pytest.mark.parametrize("sizes", [{}, {("1",): 5}, {("1m",): 5, ("2",): 1}])
def test_where_little_is_gained_nothing_is_joined(sizes):
    assert appends.small_ones(sizes) == []


@pytest.fixture(scope="module")
def spark(engine: SparkEngine) -> SparkSession:
    return engine.frame("SELECT 1 AS x").sparkSession


def test_joined_batches_hold_every_row_once_and_audits_see_them_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(appends, "EVERY", 3)
    (tmp_path / "models").mkdir()
    (tmp_path / "lamina.yaml").write_text("name: often\n")
    (tmp_path / "models" / "log.sql").write_text(MODEL)
    spark.sql("CREATE SCHEMA IF NOT EXISTS raw")
    counts, rows = [], []
    for number in range(1, 10):
        spark.sql(f"CREATE OR REPLACE VIEW raw.ticks AS SELECT {number} AS id")
        with Project.open(tmp_path, spark=spark) as project:
            now = f"2024-01-02T00:{5 * number:02d}:00"
            report = (project.build if number == 1 else project.run)(execution_time=now).to_dict()
            assert report["status"] == "succeeded", report
            (log,) = [node for node in report["nodes"] if node["name"] == "often.log"]
            rows.append(log["rows"])
            assert [audit["status"] for audit in log["audits"]] == ["passed"]
            shown = [tuple(row) for row in project.query("SELECT id, half FROM often.log").collect()]
        assert sorted(shown) == [(each, "a" if each < 6 else "b") for each in range(1, number + 1)]
        (view,) = spark.sql("SHOW CREATE TABLE often.log").collect()
        version = str(view[0]).partition("FROM")[2].strip().replace("`", "").removeprefix("spark_catalog.")
        shown_by = str(spark.sql(f"SHOW CREATE TABLE {version}").collect()[0][0])
        generation = shown_by.rpartition("FROM")[2].strip().replace("`", "").removeprefix("spark_catalog.")
        counts.append(spark.sql(f"SHOW PARTITIONS {generation}").count())
    assert rows == [1] * 9
    # Whenever three batches of one half are there, the next one joins them, whichever half it belongs to itself.
    assert counts == [1, 2, 3, 2, 3, 2, 3, 4, 3]


NAMED = """MODEL (
  name often.named, kind INCREMENTAL_UNMANAGED, cron '*/5 * * * *', start '2024-01-01', partitioned_by (country, day)
);
SELECT id, country, day FROM raw.named
"""


def test_joining_takes_no_row_of_a_partition_that_is_not_joined(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names that filters of a metastore cannot hold, and so many partitions that a filter names a few too many."""
    monkeypatch.setattr(appends, "EVERY", 4)
    monkeypatch.setattr(parquet, "_MOST_CONDITIONS", 3)
    (tmp_path / "models").mkdir()
    (tmp_path / "lamina.yaml").write_text("name: often\n")
    (tmp_path / "models" / "named.sql").write_text(NAMED)
    spark.sql("CREATE SCHEMA IF NOT EXISTS raw")
    expected: list[tuple[Any, ...]] = []
    for number in range(1, 10):
        # Some come a batch later than others, so that they are not joined at the same time.
        countries = [
            "Cote d'Ivoire",
            "a/b, c",
            None,
            *(["Italy"] if number > 1 else []),
            *(["x"] if number > 2 else []),
        ]
        batch = [(number * 10 + index, country, date(2024, 1, 1)) for index, country in enumerate(countries)]
        spark.createDataFrame(batch, "id INT, country STRING, day DATE").createOrReplaceTempView("one_batch")
        spark.sql("DROP TABLE IF EXISTS raw.named")
        spark.sql("CREATE TABLE raw.named USING parquet AS SELECT * FROM one_batch")
        expected += batch
        with Project.open(tmp_path, spark=spark) as project:
            now = f"2024-01-02T00:{5 * number:02d}:00"
            report = (project.build if number == 1 else project.run)(execution_time=now).to_dict()
            assert report["status"] == "succeeded", report
            shown = [tuple(row) for row in project.query("SELECT id, country, day FROM often.named").collect()]
        assert sorted(shown) == sorted(expected)
