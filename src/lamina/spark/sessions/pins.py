"""Versions of Delta tables that stand in for those that are recorded.

Tables are read at the version that holds what was recorded. Whoever keeps them small rewrites files and deletes the old
ones some time later, and then only a newer version can be read, which holds the same rows. That is found out when it is
needed, so reading costs nothing as long as nothing was deleted.
"""

from __future__ import annotations

import dataclasses
import re
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from lamina.app.ports.published import Head
from lamina.spark.errors import condition_of, is_failure_of_spark
from lamina.spark.statements import table_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

PINNED = re.compile(r"(`(?:[^`]|``)+`(?:\.`(?:[^`]|``)+`)*) VERSION AS OF (\d+)")
"""Tables that are read at a version of theirs, as Lamina writes it."""
UNCHECKED = ("spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration", "false")
"""Delta refuses to read versions that are older than a week, whether their files are there or not."""
_UNREADABLE = (
    "FAILED_READ_FILE.FILE_NOT_EXIST",
    "DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION",
    "DELTA_VERSION_NOT_FOUND",
    "DELTA_LOG_FILE_NOT_FOUND",
    "DELTA_VERSIONS_NOT_CONTIGUOUS",
)
_SAME_ROWS = frozenset(
    {
        "OPTIMIZE",
        "REORG",
        "VACUUM START",
        "VACUUM END",
        "SET TBLPROPERTIES",
        "UNSET TBLPROPERTIES",
        "UPGRADE PROTOCOL",
        "ADD COLUMNS",
        "CHANGE COLUMN",
        "ADD CONSTRAINT",
        "DROP CONSTRAINT",
        "CLUSTER BY",
        "COMPUTE STATS",
    }
)
"""Operations that change no row, by the names that Delta's history gives them."""
_FENCE = "lamina fence"
_COUNTED = 10**12
"""Delta counts its versions. Iceberg names snapshots by random numbers of some nineteen digits, and keeps Lamina's."""

Value = TypeVar("Value")


class Pins:
    """What is known of newer versions; may be used by several threads."""

    def __init__(self) -> None:
        self._newer: dict[tuple[str, int], int] = {}
        self._guard = threading.Lock()

    def applied(self, request: Value) -> Value:
        """A request, or a text, that reads what stands in for versions which can no longer be read."""
        with self._guard:
            newer = dict(self._newer)
        return _mapped(request, lambda table, version: newer.get((table, version), version)) if newer else request

    def renew(self, session: SparkSession, request: object) -> bool:
        """Look what stands in for the versions that a request reads; answers whether anything is to be read anew."""
        found = {pin: now for pin in set(_pins_of(request)) if (now := _same_rows(session, *pin)) != pin[1]}
        with self._guard:
            self._newer |= found
        return bool(found)


def cannot_be_read(error: BaseException | None) -> bool:
    """Whether an error says that a version of a table, or a file of it, is not there any more."""
    found = condition_of(error) if error is not None else None
    return found is not None and found.startswith(_UNREADABLE)


def _same_rows(session: SparkSession, table: str, version: int) -> int:
    """The newest version with the rows of this one, as far as the table's history still tells what came in between."""
    try:
        history = session.sql(f"DESCRIBE HISTORY {table}").filter(f"version > {version}")
        later = history.select("version", "operation", "userMetadata").collect()
    except Exception as error:
        if not is_failure_of_spark(error):
            raise
        # A table that is not there any more: reading it tells what is wrong.
        return version
    is_same = all(row.operation in _SAME_ROWS or str(row.userMetadata).startswith(_FENCE) for row in later)
    return max((int(row.version) for row in later), default=version) if is_same else version


def _mapped(value: Any, newer: Callable[[str, int], int]) -> Any:
    """The same value, with other versions wherever it names one: in texts and in heads."""
    if isinstance(value, str):
        return PINNED.sub(lambda found: f"{found[1]} VERSION AS OF {newer(found[1], int(found[2]))}", value)
    if isinstance(value, Head):
        return value if value.snapshot is None else dataclasses.replace(value, snapshot=newer(*_pin_of(value)))
    if isinstance(value, tuple):
        return tuple(_mapped(item, newer) for item in value)
    if isinstance(value, Mapping):
        return {key: _mapped(item, newer) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        now = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        changed = {name: _mapped(item, newer) for name, item in now.items()}
        changed = {name: item for name, item in changed.items() if item != now[name]}
        return dataclasses.replace(value, **changed) if changed else value
    return value


def _pins_of(request: object) -> Iterator[tuple[str, int]]:
    """The versions of Delta tables that a request names."""
    found: list[tuple[str, int]] = []

    def note(table: str, version: int) -> int:
        found.append((table, version))
        return version

    _mapped(request, note)
    yield from (pin for pin in found if pin[1] < _COUNTED)


def _pin_of(head: Head) -> tuple[str, int]:
    if head.snapshot is None:
        raise TypeError(head)
    return table_name(head.generation), head.snapshot
