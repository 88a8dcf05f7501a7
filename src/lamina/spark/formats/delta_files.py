"""Files of Delta tables that are gone, and where the rows they held may lie now.

A clone reads files of the table it was made from. Where somebody deleted these all the same, that table's log says
which files were written in their place: OPTIMIZE writes the same rows into fewer files.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf

from lamina.spark.errors import condition_of
from lamina.spark.formats.lake import fitted
from lamina.spark.rows.written_files import as_it_is
from lamina.spark.statements import table_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, Row, SparkSession

    from lamina.app.ports.published import Head

SKIPPING = {"spark.sql.files.ignoreMissingFiles": "true"}
"""Settings of a session in which what is left of a table can be read."""
_TABLE = re.compile(r"(.*?__v_[0-9a-f]{16}(?:_\d+)?__g_\d+)/")
_VECTOR = "deletionVector STRUCT<storageType STRING, cardinality BIGINT>"
_ACTIONS = (
    f"add STRUCT<path STRING, dataChange BOOLEAN, stats STRING, {_VECTOR}>, "
    f"remove STRUCT<path STRING, dataChange BOOLEAN, {_VECTOR}>, commitInfo STRUCT<operation STRING>"
)

Rewritten: TypeAlias = "tuple[frozenset[str], frozenset[str]]"
"""Files that a commit took away, and those with the same rows that it put in their place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Log:
    """What a table's log says."""

    rows: Mapping[str, int | None] = field(default_factory=dict)
    """The files it holds now, each with its rows; None where that is not recorded."""
    marked: frozenset[str] = frozenset()
    """Those of them of which some rows are marked as gone."""
    rewritten: tuple[tuple[int, Rewritten], ...] = ()
    """The commits that wrote whole files anew and changed no row, with their versions."""


@dataclass(slots=True)
class _Puzzle:
    """Which files, together, hold the rows of a table."""

    wanted: set[str]
    taken: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Files of other tables that stand in, with the folder of the table and its version that names them."""

    def exchange(self, folder: str, log: _Log, marked: frozenset[str], missing: set[str]) -> None:
        """Take what a lender wrote in the place of files that are gone, wherever all that it joined is wanted."""
        for version, (removed, added) in log.rewritten:
            if missing & removed and removed <= self.wanted and not removed & marked:
                self.wanted = (self.wanted - removed) | added
                self.taken = {file: place for file, place in self.taken.items() if file not in removed}
                self.taken |= dict.fromkeys(added, (folder, version))
                missing |= added


def data_files(session: SparkSession, table: str, snapshot: int | None) -> list[str]:
    """The files that hold the rows of a version of a table, by its own list."""
    return session.sql(f"SELECT * FROM {_at(table_name(table), snapshot)}").inputFiles()


def missing_files(session: SparkSession, head: Head) -> tuple[str, ...]:
    """The files that a table names and that are not there."""
    named = {_plain(file) for file in data_files(session, head.generation, head.snapshot)}
    return tuple(sorted(_missing(session, named)))


def mended_rows(session: SparkSession, head: Head) -> tuple[DataFrame, int] | None:
    """The rows of a table of which files are gone, and how many these are; None where they are nowhere to be found.

    The session must have the settings of `SKIPPING`.
    """
    (detail,) = session.sql(f"DESCRIBE DETAIL {table_name(head.generation)}").select("location").collect()
    log = _read_log(session, _plain(detail.location, is_encoded=False))
    named = {_plain(file) for file in data_files(session, head.generation, head.snapshot)}
    counts = [log.rows.get(file) for file in named]
    puzzle, missing = _Puzzle(wanted=set(named)), _missing(session, named)
    for folder in sorted({_folder(file) for file in missing}):
        puzzle.exchange(folder, _read_log(session, folder), log.marked, missing)
    if None in counts or _missing(session, puzzle.wanted):
        return None
    stored = session.sql(f"SELECT * FROM {_at(table_name(head.generation), head.snapshot)}")
    frames = [fitted(session, _of_files(stored, named & puzzle.wanted), head.generation)]
    for folder, version in sorted(set(puzzle.taken.values())):
        files = [file for file, place in puzzle.taken.items() if place == (folder, version)]
        lender = session.sql(f"SELECT * FROM {_at(f'delta.`{folder}`', version)}")
        # The clone may have got columns since, which its lender knows nothing of.
        frames.append(fitted(session, _of_files(lender, files), head.generation))
    rows = frames[0]
    for frame in frames[1:]:
        rows = rows.unionAll(frame)
    return rows, sum(count for count in counts if count is not None)


def _at(table: str, version: int | None) -> str:
    return table if version is None else f"{table} VERSION AS OF {version}"


def _of_files(rows: DataFrame, files: Iterable[str]) -> DataFrame:
    """The rows that lie in some of a table's files; no two files of Delta tables have the same name."""
    names = [file.rpartition("/")[2] for file in files]
    return rows.filter(sf.col("_metadata.file_name").isin(names)) if names else rows.filter("false")


def _missing(session: SparkSession, files: Iterable[str]) -> set[str]:
    by_folder: dict[str, set[str]] = {}
    for file in files:
        by_folder.setdefault(_folder(file), set()).add(file)
    return {file for folder, named in by_folder.items() for file in named - _files_below(session, folder)}


def _files_below(session: SparkSession, folder: str) -> set[str]:
    reader = session.read.format("binaryFile").option("recursiveFileLookup", "true")
    try:
        found = reader.option("pathGlobFilter", "*.parquet").load(as_it_is(folder)).select("path").collect()
    except AnalysisException as error:
        if condition_of(error) != "PATH_NOT_FOUND":
            raise
        return set()
    return {_plain(row.path, is_encoded=False) for row in found}


def _folder(file: str) -> str:
    """The folder of the table that a file belongs to; where that cannot be told, the one it lies in."""
    found = _TABLE.match(file)
    return found[1] if found else file.rpartition("/")[0]


def _plain(address: str, *, is_encoded: bool = True) -> str:
    """A file's address in one spelling."""
    return re.sub(r"^file:/+", "file:/", unquote(address) if is_encoded else address)


# --- logs -------------------------------------------------------------------------------------------------------------
def _read_log(session: SparkSession, folder: str) -> _Log:
    """What is left of a table's log: its last checkpoint and the commits that are still there."""
    log = as_it_is(f"{folder}/_delta_log")
    columns = ("add", "remove", "commitInfo.operation", "_metadata.file_name")
    reader = session.read.schema(_ACTIONS)
    try:
        commits = reader.option("pathGlobFilter", "*.json").json(log).select(*columns).collect()
        saved = reader.option("pathGlobFilter", "*.checkpoint*.parquet").parquet(log).select(*columns).collect()
    except AnalysisException as error:
        if condition_of(error) != "PATH_NOT_FOUND":
            raise
        return _Log()
    by_version: dict[int, list[Row]] = {}
    for row in commits:
        if re.fullmatch(r"\d+\.json", row.file_name):
            by_version.setdefault(int(row.file_name.partition(".")[0]), []).append(row)
    newest = max((int(row.file_name.partition(".")[0]) for row in saved), default=-1)
    begin = [row for row in saved if int(row.file_name.partition(".")[0]) == newest]
    later = [by_version[version] for version in sorted(by_version) if version > newest]
    holds = _replay(folder, [begin, *later])
    found = ((version, _rewritten(folder, by_version[version])) for version in sorted(by_version))
    return _Log(
        rows={path: count for path, (count, _) in holds.items()},
        marked=frozenset(path for path, (_, is_marked) in holds.items() if is_marked),
        rewritten=tuple((version, each) for version, each in found if each is not None),
    )


def _replay(folder: str, commits: Sequence[Sequence[Row]]) -> dict[str, tuple[int | None, bool]]:
    """The files that a table holds after some commits: how many rows each has, and whether some are marked as gone."""
    holds: dict[str, tuple[int | None, bool]] = {}
    for actions in commits:
        for row in actions:
            if row.remove is not None:
                holds.pop(_file(folder, row.remove.path), None)
        for row in actions:
            if row.add is not None:
                vector = row.add.deletionVector
                gone = 0 if vector is None else vector.cardinality
                count = json.loads(row.add.stats or "{}").get("numRecords")
                rows = None if count is None or gone is None else count - gone
                holds[_file(folder, row.add.path)] = rows, vector is not None
    return holds


def _rewritten(folder: str, actions: Sequence[Row]) -> Rewritten | None:
    """What a commit wrote anew without changing a row; None for every other commit."""
    removes = [row.remove for row in actions if row.remove is not None]
    adds = [row.add for row in actions if row.add is not None]
    if not removes or any(
        each.dataChange is not False or each.deletionVector is not None for each in (*removes, *adds)
    ):
        return None
    removed, added = ({_file(folder, each.path) for each in some} for some in (removes, adds))
    return frozenset(removed), frozenset(added)


def _file(folder: str, path: str) -> str:
    """The address of a file that a log names: by itself, or below its table."""
    plain = _plain(path)
    return plain if re.match(r"[a-z][a-z0-9+.-]*:/|/", plain) else f"{folder}/{plain}"
