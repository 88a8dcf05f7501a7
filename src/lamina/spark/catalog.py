"""What the catalog holds, read in few statements, and the statements that change it."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import unquote

from lamina.errors import EngineError
from lamina.spark.errors import condition_of, is_failure_of_spark, translate, translate_statement
from lamina.spark.tables import partition_spec, table_name, text_literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import Row

    from lamina.app.records import PartitionColumn, PartitionKey
    from lamina.spark.session import Sessions

_NAMES_PER_STATEMENT = 100
_LINE = re.compile(r"^(Type|Location|Table Properties): (.*)$", re.MULTILINE)
_PROPERTY = re.compile(r"(?:^|, )(lamina\.\w+)=([^,\]]*)")
_MISSING_SCHEMA = frozenset({"SCHEMA_NOT_FOUND", "NAMESPACE_NOT_FOUND"})
_MISSING_PARTITION = frozenset({"PARTITIONS_NOT_FOUND", "PARTITION_NOT_FOUND", "NO_SUCH_PARTITION"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """A table or view as far as Lamina looks at it: its type and the properties that Lamina set."""

    is_view: bool
    properties: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


class Catalog:
    """The catalog through the session that nothing interrupts. Schemas that were seen once are not asked for again."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._locations: dict[str, str] = {}
        self._schemas: set[str] = set()
        self._guard = threading.Lock()

    def execute(self, statement: str, doing: str) -> None:
        """Carry out one statement; `StatementUnanswered` when nobody knows whether it landed."""
        session = self._sessions.catalog()
        try:
            session.sql(statement)
        except Exception as error:
            if not is_failure_of_spark(error):
                raise
            raise translate_statement(error, doing) from error

    def read(self, statement: str, doing: str) -> list[Row]:
        """The rows of a statement that changes nothing."""
        session = self._sessions.catalog()
        try:
            return session.sql(statement).collect()
        except Exception as error:
            if not is_failure_of_spark(error):
                raise
            raise translate(error, doing) from error

    def ensure_schema(self, schema: str) -> int:
        """Make the schema when it is missing; answers how many statements that took."""
        with self._guard:
            if schema in self._schemas:
                return 0
        self.execute(f"CREATE SCHEMA IF NOT EXISTS {table_name(schema)}", f"making schema `{schema}`")
        with self._guard:
            self._schemas.add(schema)
        return 1

    def location_of(self, schema: str) -> str:
        """The folder of a schema, as a path that `LOCATION` takes."""
        with self._guard:
            known = self._locations.get(schema)
        if known is not None:
            return known
        rows = self.read(f"DESCRIBE SCHEMA {table_name(schema)}", f"looking at schema `{schema}`")
        found = next((str(row[1]) for row in rows if row[0] == "Location"), "")
        if not found:
            raise EngineError(
                f"the catalog gives schema `{schema}` no location, so there is no place for its files",
                hint="give the catalog or the schema a location",
            )
        # This one statement shows the location as a URI, percent signs escaped.
        location = unquote(found).rstrip("/")
        with self._guard:
            self._locations[schema] = location
        return location

    def entries(self, names: Iterable[str]) -> dict[str, CatalogEntry]:
        """The tables and views among these names that exist; one statement per schema and hundred names."""
        by_schema: dict[str, list[str]] = {}
        for name in dict.fromkeys(names):
            schema, _, table = name.rpartition(".")
            by_schema.setdefault(schema, []).append(table)
        found: dict[str, CatalogEntry] = {}
        for schema, tables in by_schema.items():
            for first in range(0, len(tables), _NAMES_PER_STATEMENT):
                found.update(self._entries_in(schema, tables[first : first + _NAMES_PER_STATEMENT]))
        return found

    def _entries_in(self, schema: str, tables: Sequence[str]) -> dict[str, CatalogEntry]:
        pattern = text_literal("|".join(tables))
        try:
            rows = self.read(
                f"SHOW TABLE EXTENDED IN {table_name(schema)} LIKE {pattern}", f"looking into schema `{schema}`"
            )
        except EngineError as error:
            if error.__cause__ is not None and condition_of(error.__cause__) in _MISSING_SCHEMA:
                return {}
            raise
        return {f"{schema}.{row.tableName}": _entry(row.information) for row in rows if not row.isTemporary}

    def partition_location(self, table: str, columns: Sequence[PartitionColumn], key: PartitionKey) -> str | None:
        """The folder of a partition; None when there is no such partition."""
        schema, _, name = table.rpartition(".")
        try:
            rows = self.read(
                f"SHOW TABLE EXTENDED IN {table_name(schema)} LIKE {text_literal(name)} {partition_spec(columns, key)}",
                f"looking at a partition of `{table}`",
            )
        except EngineError as error:
            if error.__cause__ is not None and condition_of(error.__cause__) in _MISSING_PARTITION:
                return None
            raise
        return next((_lines(row.information).get("Location") for row in rows), None)


def _entry(information: str) -> CatalogEntry:
    lines = _lines(information)
    listed = lines.get("Table Properties", "").removeprefix("[")
    return CatalogEntry(
        is_view=lines.get("Type") == "VIEW",
        properties=MappingProxyType(dict(_PROPERTY.findall(listed))),
    )


def _lines(information: str) -> dict[str, str]:
    """The lines that matter; the last of each kind counts, because a comment in front could hold anything."""
    return dict(_LINE.findall(information))
