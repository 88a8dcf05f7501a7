"""Whether everybody who works on a table sees the same files.

Executors on other machines write to their own disks when tables lie in a folder of the machine that the driver runs on.
Spark takes no notice: the job succeeds, and what the driver commits holds nothing of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from pyspark.errors import AnalysisException

from lamina.errors import RowsMissing, UnsharedWarehouse
from lamina.spark.errors import condition_of
from lamina.spark.rows.written_files import as_it_is

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

_HINT = (
    "put the warehouse where every machine of the cluster sees it, such as HDFS, an object store or a network drive: "
    "`spark.sql.warehouse.dir`, or the location of the schema"
)


def is_scattered(session: SparkSession) -> bool:
    """Whether executors may run on other machines than the driver."""
    return not str(session.conf.get("spark.master", "local")).startswith("local")


def is_on_a_disk(location: str) -> bool:
    """Whether files at a location lie on a disk of whichever machine looks there."""
    return urlsplit(location).scheme in {"", "file"}


def may_scatter(session: SparkSession, location: str) -> bool:
    """Whether executors may write to disks of their own what belongs to a location."""
    return is_on_a_disk(location) and is_scattered(session)


def check_shared(session: SparkSession, location: str, schema: str) -> None:
    """Raise `UnsharedWarehouse` for a schema on a local disk when executors may run elsewhere."""
    if may_scatter(session, location):
        raise UnsharedWarehouse(
            f"tables of schema `{schema}` would lie in the folder `{location}`, and Spark runs on "
            f"`{session.conf.get('spark.master')}`: its executors would write to disks of their own, and their rows "
            "would be lost",
            hint=f"{_HINT}; if that folder is the same on all of them, say so: `spark: {{shared_warehouse: true}}`",
        )


def check_rows(written: int, given: int) -> None:
    """Raise `RowsMissing` when fewer rows lie in the warehouse than the query gave."""
    if written < given:
        raise RowsMissing(
            f"the query gave {given:,} {'row' if given == 1 else 'rows'}, and {written:,} of them are in the warehouse",
            hint=f"executors wrote to places that the driver does not see; {_HINT}",
        )


def check_files(session: SparkSession, listed: Callable[[], Sequence[str]]) -> None:
    """Raise `RowsMissing` when files of a table that was just written are not where the driver looks for them.

    Formats that keep a list of their files take it from the executors, and never look. `listed` answers that list.
    """
    if not is_scattered(session):
        return
    files = [unquote(file) for file in listed() if is_on_a_disk(file)]
    missing = find_missing(session, files)
    if missing is not None:
        raise RowsMissing(
            f"files of the table that was just written are not in the warehouse, among them `{missing}`",
            hint=f"executors wrote to places that the driver does not see; {_HINT}",
        )


def find_missing(session: SparkSession, paths: Sequence[str]) -> str | None:
    """One of these files or folders that is not where the driver looks for it; None when all of them are."""
    if not paths:
        return None
    try:
        # The driver looks for every path before it reads any; what their folders are called does not matter then.
        reader = session.read.format("binaryFile").option("recursiveFileLookup", "true")
        _ = reader.load([as_it_is(path) for path in paths]).schema
    except AnalysisException as error:
        if condition_of(error) != "PATH_NOT_FOUND":
            raise
        return (error.getMessageParameters() or {}).get("path", paths[0])
    return None
