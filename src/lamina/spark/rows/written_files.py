"""What a batch has written, found out from its folder: rows to look at again, and the partitions there are.

Names of folders cost nothing while rows are written; collecting the keys of rows does, for every one of them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

from lamina.spark.rows.partitions import NULL_FOLDER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from lamina.app.ports.published import PartitionKey

_GLOB = re.compile(r"([\\{}\[\]*?])")
_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")


def read_back(session: SparkSession, path: str, schema: StructType | str) -> DataFrame:
    """The rows below a folder; what looks like a pattern in its path is taken as it is."""
    return session.read.schema(schema).parquet(as_it_is(path))


def as_it_is(path: str) -> str:
    """A path in which nothing is taken for a pattern."""
    return _GLOB.sub(r"\\\1", path)


def partitions_below(written: DataFrame, folder: str) -> dict[PartitionKey, str]:
    """The partitions that were written below a folder (relative, as everything Lamina names) with their own folders."""
    found: dict[PartitionKey, str] = {}
    for file in written.inputFiles():
        below = unquote(file).rpartition(f"/{folder}/")[2]
        steps = below.split("/")[:-1]
        key = tuple(_value(step.partition("=")[2]) for step in steps)
        found[key] = "/".join((folder, *steps))
    return found


def _value(escaped: str) -> str | None:
    return None if escaped == NULL_FOLDER else _ESCAPE.sub(lambda code: chr(int(code[1], 16)), escaped)
