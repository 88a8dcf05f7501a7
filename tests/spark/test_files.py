"""How many files a batch writes: as few as its partitions need where tasks would multiply them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from pyspark.sql import functions as sf

from lamina.graph.kinds import TimeColumn
from lamina.spark.formats.distribution import _lie_together
from tests.spark.driver import Table

pytest_plugins = ["tests.ports.conftest_engine"]

TASKS = 6
MONTH = ("2024-01-01", "2024-01-31")
WIDE = {"spark.sql.adaptive.enabled": "true", "spark.sql.shuffle.partitions": "200"}
"""As on a cluster; the tests' own session does without."""


def rows_of(days: int, rows: int = 600, value: str = "id") -> str:
    """Every task holds rows of every day."""
    at = f"date_add(DATE'2024-01-01', CAST(id % {days} AS INT))"
    return f"SELECT id, {value} AS value, id div 300 AS half, {at} AS ds FROM range(0, {rows}, 1, {TASKS})"


def files_of(table: Table) -> Counter[str]:
    """How many files lie in each folder of a table."""
    found = table.engine.frame(f"SELECT * FROM {table.physical}").inputFiles()
    return Counter(file.rpartition("/")[0] for file in found)


def by_day(table: Table, settings: dict[str, str], partitioned_by: tuple[str, ...] = ("ds",)) -> Table:
    return replace(table, partitioned_by=partitioned_by, time_column=TimeColumn(name="ds"), settings=settings)


@pytest.mark.parametrize(
    ("partitioned_by", "partitions"), [(("ds",), 30), (("ds", "half"), 60)], ids=["days", "days and more"]
)
def test_a_batch_of_many_days_writes_a_file_for_each(
    table: Table, partitioned_by: tuple[str, ...], partitions: int
) -> None:
    table = by_day(table, WIDE, partitioned_by)
    written = table.write(rows_of(30), MONTH)
    assert written.rows == 600
    assert table.rows("count(*), sum(id)") == [(600, sum(range(600)))]
    assert Counter(files_of(table).values()) == {1: partitions}


def test_a_whole_table_with_partitions_writes_few_files_too(table: Table) -> None:
    table = replace(table, partitioned_by=("upper(concat('d', ds))",), settings=WIDE)
    table.write(rows_of(10))
    assert Counter(files_of(table).values()) == {1: 10}


def test_a_large_partition_is_written_by_several_tasks(table: Table) -> None:
    table = by_day(table, {**WIDE, "spark.sql.adaptive.advisoryPartitionSizeInBytes": "100KB"})
    skewed = rows_of(30, 60_000, "sha2(CAST(id AS STRING), 256)").replace("id % 30", "if(id % 100 = 0, id % 30, 7)")
    table.write(skewed, MONTH)
    counts = sorted(files_of(table).values())
    assert counts[-1] >= TASKS // 2
    assert counts[-2] == 1


@pytest.mark.parametrize(
    ("days", "interval", "session", "partitioned_by"),
    [
        (1, ("2024-01-01", "2024-01-02"), WIDE, ("ds",)),
        (2, ("2024-01-01", "2024-01-03"), {**WIDE, "spark.sql.shuffle.partitions": "8"}, ("ds",)),
        (1, ("2024-01-01", "2024-01-02"), WIDE, ()),
    ],
    ids=["one day", "few tasks", "no partitions"],
)
def test_rows_stay_where_they_are_when_that_saves_little(
    table: Table, days: int, interval: tuple[str, str], session: dict[str, str], partitioned_by: tuple[str, ...]
) -> None:
    table = by_day(table, session, partitioned_by)
    table.write(rows_of(days), interval)
    assert set(files_of(table).values()) == {TASKS}


ORDERED = "id div 10000"
MIXED = "id % 30"


@pytest.mark.parametrize(("day", "are_together"), [(ORDERED, True), (MIXED, False)], ids=["in order", "in any order"])
def test_rows_are_shuffled_only_where_their_partitions_lie_scattered(
    table: Table, day: str, are_together: bool
) -> None:
    # Each of six tasks has five of the thirty days, or a few rows of every day.
    days = f"date_add(DATE'2024-01-01', CAST({day} AS INT))"
    rows = table.engine.frame(f"SELECT id, {days} AS ds FROM range(0, 300000, 1, {TASKS})")
    assert _lie_together(rows, [sf.col("ds")]) == are_together


@pytest.mark.parametrize(
    "query",
    [
        # Too few rows to tell.
        "SELECT id, id div 100 AS ds FROM range(0, 3000, 1, 6)",
        # A shuffle mixes whatever lay together, and looking would compute everything.
        f"SELECT count(*) AS id, {ORDERED} AS ds FROM range(0, 300000, 1, 6) GROUP BY 2",
        # Most rows lie together, and many partitions have a row here and there.
        f"SELECT id, if(id % 100 = 0, id % 977, {ORDERED}) AS ds FROM range(0, 300000, 1, 6)",
        "SELECT id, id AS ds FROM range(0)",
    ],
)
def test_in_doubt_rows_are_brought_together(table: Table, query: str) -> None:
    assert not _lie_together(table.engine.frame(query), [sf.col("ds")])
