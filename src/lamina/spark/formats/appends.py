"""Appended batches on parquet: each is a partition of its own, and small ones are joined from time to time.

Else a table that is appended to every five minutes would have ten thousand partitions after five weeks. Every so many
batches, the next one takes former ones along that are small beside each other. Every row is rewritten a few times at
most, as often as the table doubles, and how many partitions there are follows how much they hold, not how often
something was appended.
"""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from lamina.errors import RowsMissing
from lamina.spark.rows.written_files import as_it_is
from lamina.sql.names import quote

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from lamina.app.ports.engine import Base
    from lamina.app.ports.published import PartitionColumn, PartitionKey

EVERY = 32
"""Partitions with the same values are looked at whenever they have become so many more."""
LARGEST = 1 << 30
"""What is joined holds no more bytes than this."""
_JOINED = "m"


def joined_key(attempt: int) -> str:
    """The attempt's partition of rows that were there before."""
    return f"{attempt}{_JOINED}"


def find_small(session: SparkSession, root: str, base: Base) -> frozenset[PartitionKey]:
    """The partitions of appended batches that the next one should take along; most of the time there are none."""
    groups: dict[PartitionKey, dict[PartitionKey, str]] = {}
    for key, folder in base.manifest.items():
        groups.setdefault(key[:-1], {})[key] = folder
    full = [group for group in groups.values() if len(group) % EVERY == 0]
    if not full:
        return frozenset()
    folders = {key: f"{root}/{folder}" for group in full for key, folder in group.items()}
    sizes = _sizes(session, folders)
    return frozenset(key for group in full for key in small_ones({key: sizes[key] for key in group}))


def small_ones(sizes: Mapping[PartitionKey, int]) -> list[PartitionKey]:
    """Which partitions to join: those that never were, and of the others, from the smallest on, each that is at most
    twice as large as all before it together. A single one gains nothing.
    """
    chosen: list[PartitionKey] = []
    total = 0
    for key in sorted(sizes, key=lambda key: (_is_joined(key), sizes[key])):
        is_alike = not _is_joined(key) or sizes[key] <= 2 * total
        if is_alike and total + sizes[key] <= LARGEST:
            chosen.append(key)
            total += sizes[key]
    return chosen if len(chosen) > 1 else []


def as_joined(rows: DataFrame, columns: Iterable[PartitionColumn], attempt: int) -> DataFrame:
    """Rows of former batches as rows of the partition that an attempt joins them in."""
    *_, last = columns
    return rows.withColumn(last.name, sf.lit(joined_key(attempt)))


def rows_of_exactly(
    session: SparkSession, columns: Sequence[PartitionColumn], keys: Collection[PartitionKey], rows: DataFrame
) -> DataFrame:
    """Of some rows, those of these partitions and no other: whatever is taken along leaves its own partition."""
    names = [quote(column.name) for column in columns]
    fields = ", ".join(f"k{number} STRING" for number in range(len(names)))
    chosen = session.createDataFrame(list(keys), fields)
    same = [sf.col(name).cast("string").eqNullSafe(sf.col(f"k{number}")) for number, name in enumerate(names)]
    return rows.join(sf.broadcast(chosen), reduce(and_, same), "left_semi")


def check_joined(session: SparkSession, root: str, base: Base, joined: Collection[PartitionKey], written: int) -> None:
    """Raise `RowsMissing` unless as many rows were written as lie where they were taken from; nothing is shown yet."""
    folders = [as_it_is(f"{root}/{base.manifest[key]}") for key in joined]
    there = session.read.schema("lamina_none INT").parquet(*folders).count()
    if there != written:
        raise RowsMissing(
            f"{there:,} rows of former batches were to be taken along, and {written:,} were written",
            hint="nothing was changed; run the command again, and report this if it says the same",
        )


def _is_joined(key: PartitionKey) -> bool:
    return (key[-1] or "").endswith(_JOINED)


def _sizes(session: SparkSession, folders: Mapping[PartitionKey, str]) -> dict[PartitionKey, int]:
    """How many bytes lie in each folder; Spark lists them, and reads none."""
    files = session.read.format("binaryFile").load([as_it_is(folder) for folder in folders.values()])
    found = files.select("path", "length").collect()
    sizes: dict[str, int] = {}
    for row in found:
        folder = _plain(row.path).rpartition("/")[0]
        sizes[folder] = sizes.get(folder, 0) + row.length
    return {key: sizes.get(_plain(folder), 0) for key, folder in folders.items()}


def _plain(path: str) -> str:
    """A path that can be compared, however its scheme is written."""
    scheme, colon, rest = path.partition(":")
    return "/" + (rest if colon and "/" not in scheme else path).lstrip("/")
