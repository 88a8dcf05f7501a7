"""What the catalog holds, read in few statements, and the statements that change it."""

from __future__ import annotations

import re
import threading
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from pyspark.errors import UnsupportedOperationException

from lamina.errors import CatalogUnfit, EngineError, StatementUnanswered, TransientFailure, raise_all
from lamina.graph.catalogs import read_catalogs, unfit_catalog
from lamina.spark.errors import condition_of, is_failure_of_spark, translate, translate_statement
from lamina.spark.rows.shared_storage import check_shared
from lamina.spark.sessions.places import lies_below
from lamina.spark.statements import MARKER, VIEW_PROPERTY, alter_view, partition_spec, read_marks, table_name
from lamina.sql.names import text_literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import Row

    from lamina.app.ports.published import PartitionColumn, PartitionKey
    from lamina.spark.sessions.session import Sessions

_NAMES_PER_STATEMENT = 100
_COMMENT = re.compile(
    rf"^Comment: (.*?)\n(?:[A-Z][a-z]+: [^\n]*\n)?View Text: {re.escape(MARKER)}", re.MULTILINE | re.DOTALL
)
_LINE = re.compile(r"^(Type|Location|Table Properties|View Text): (.*)$", re.MULTILINE)
_PROPERTY = re.compile(r"(?:^|, )(lamina\.\w+)=([^,\]]*)")
_QUOTED_PROPERTY = re.compile(r"'(lamina\.\w+)'\s*=\s*'([^']*)'")
_NO_VIEWS = frozenset({"UNSUPPORTED_FEATURE.CATALOG_OPERATION", "MISSING_CATALOG_ABILITY.VIEWS"})
_MADE_OR_GONE = frozenset({"TABLE_OR_VIEW_NOT_FOUND", "TABLE_OR_VIEW_ALREADY_EXISTS", "VIEW_ALREADY_EXISTS"})
"""Somebody made or dropped a view between looking and doing."""
_MISSING_SCHEMA = frozenset({"SCHEMA_NOT_FOUND", "NAMESPACE_NOT_FOUND"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """A table or view as far as Lamina looks at it: its type, the properties that Lamina set, the marks in its text."""

    is_view: bool
    properties: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    marks: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    comment: str | None = None
    """Of a view in Spark's own catalog."""

    @property
    def is_our_view(self) -> bool:
        return self.is_view and VIEW_PROPERTY in self.properties


class Catalog:
    """The catalog through the session that nothing interrupts. Schemas that were seen once are not asked for again."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._locations: dict[str, str] = {}
        self._schemas: set[str] = set()
        self._remembered: set[str] = set()
        # Held while a schema is made or looked at: whoever wants the same one at that moment need not ask again.
        self._guard = threading.Lock()
        self._replaces_views = False

    def execute(self, statement: str, doing: str) -> None:
        """Carry out one statement; `StatementUnanswered` when nobody knows whether it landed."""
        session = self._sessions.catalog()
        try:
            session.sql(statement)
        except Exception as error:
            if not is_failure_of_spark(error):
                raise
            translated = translate_statement(error, doing)
            if isinstance(translated, StatementUnanswered):
                self._sessions.forget_catalog()
            raise translated from error

    def set_view(self, name: str, query: str, creation: str, doing: str) -> None:
        """Have a view show a query: in one atomic statement when it exists, and made when it does not.

        Altering it is one change in the catalog. CREATE OR REPLACE VIEW drops the view first in Spark's own catalog:
        readers in between fail. Other catalogs replace it in one change, and cannot alter it; so does Iceberg's, and
        says so, where it stands in for Spark's own.
        """
        for is_last in (False, False, True):
            if _has_catalog(name) or self._replaces_views:
                self.execute(creation.replace("CREATE VIEW", "CREATE OR REPLACE VIEW", 1), doing)
                return
            try:
                # Looking first costs less than a statement that Spark refuses, with a stack trace in its log.
                self.execute(alter_view(name, query) if self._exists(name, doing) else creation, doing)
            except EngineError as error:
                self._replaces_views |= _says_replace(error)
                if is_last or not (self._replaces_views or condition_behind(error) in _MADE_OR_GONE):
                    raise
            else:
                return

    def has_schema(self, schema: str) -> bool:
        """Whether there is such a schema; Spark logs nothing where there is none."""
        return self._asked(lambda known: known.databaseExists(table_name(schema)), f"looking for schema `{schema}`")

    def _exists(self, name: str, doing: str) -> bool:
        return self._asked(lambda known: known.tableExists(table_name(name)), doing)

    def _asked(self, question: Callable[[Any], bool], doing: str) -> bool:
        try:
            return question(self._sessions.catalog().catalog)
        except Exception as error:
            if not is_failure_of_spark(error):
                raise
            raise translate(error, doing) from error

    def check(self, catalogs: Mapping[str, frozenset[str]], settings: Mapping[str, str]) -> None:
        """Raise `CatalogUnfit` for catalogs that Spark does not have, or that cannot hold these formats and views."""
        known = read_catalogs(settings)
        problems = []
        for catalog, formats in sorted(catalogs.items()):
            if catalog not in known:
                problems.append(
                    CatalogUnfit(
                        f"Spark has no catalog `{catalog}`, which names of models begin with",
                        hint=f"name its class in `spark.config` as `spark.sql.catalog.{catalog}`, or where Spark is "
                        "started",
                    )
                )
                continue
            abilities = known[catalog]
            if abilities.has_views and not self._lists_views(catalog):
                abilities = replace(abilities, has_views=False)
            problem = unfit_catalog(catalog, abilities, formats)
            problems += [problem] if problem is not None else []
        raise_all(problems)

    def _lists_views(self, catalog: str) -> bool:
        """What the catalog itself says; some that have no views answer that they hold none."""
        try:
            self.read(f"SHOW VIEWS IN {table_name(catalog)}", f"looking for views in catalog `{catalog}`")
        except EngineError as error:
            return not _says_no_views(error)
        return True

    def read(self, statement: str, doing: str) -> list[Row]:
        """The rows of a statement that changes nothing."""
        session = self._sessions.catalog()
        try:
            return session.sql(statement).collect()
        except Exception as error:
            if not is_failure_of_spark(error):
                raise
            translated = translate(error, doing)
            if isinstance(translated, TransientFailure):
                self._sessions.forget_catalog()
            raise translated from error

    def ensure_schema(self, schema: str) -> int:
        """Make the schema when it is missing; answers how many statements that took."""
        with self._guard:
            if schema in self._schemas:
                return 0
            statement, doing = f"CREATE SCHEMA IF NOT EXISTS {table_name(schema)}", f"making schema `{schema}`"
            try:
                self.execute(statement, doing)
            except StatementUnanswered:
                raise
            except EngineError:
                # Some catalogs look first and then make it, and another process may have come in between.
                self.execute(statement, doing)
            self._schemas.add(schema)
        return 1

    def location_of(self, schema: str) -> str:
        """The folder of a schema, as a path that `LOCATION` takes."""
        with self._guard:
            known = self._locations.get(schema)
            if known is None:
                known = self._locations[schema] = self._look_up_location(schema)
            return known

    def remember_tables(self, schema: str, table: str) -> None:
        """Keep where the tables of a schema in another catalog lie, if this one shows that they lie together."""
        with self._guard:
            if schema in self._locations or schema in self._remembered:
                return
            self._remembered.add(schema)
            # Nothing but looking for tables depends on it.
            with suppress(EngineError):
                told = self._told_location(schema)
                found = next((place for place in (told, unquote(told)) if lies_below(place, table)), None)
                if found is not None:
                    self._sessions.remember_place(schema, found)

    def _told_location(self, schema: str) -> str:
        rows = self.read(f"DESCRIBE SCHEMA {table_name(schema)}", f"looking at schema `{schema}`")
        return next((str(row[1]) for row in rows if row[0] == "Location"), "").rstrip("/")

    def _look_up_location(self, schema: str) -> str:
        # This one statement shows the location as a URI, percent signs escaped.
        location = unquote(self._told_location(schema))
        if not location:
            raise EngineError(
                f"the catalog gives schema `{schema}` no location, so there is no place for its files",
                hint="give the catalog or the schema a location",
            )
        if not self._sessions.shares_disks:
            check_shared(self._sessions.catalog(), location, schema)
        self._sessions.remember_place(schema, location)
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
        if "." in schema:
            found = {f"{schema}.{table}": self._entry_elsewhere(f"{schema}.{table}") for table in tables}
            return {name: entry for name, entry in found.items() if entry is not None}
        pattern = text_literal("|".join(tables))
        try:
            rows = self.read(
                f"SHOW TABLE EXTENDED IN {table_name(schema)} LIKE {pattern}", f"looking into schema `{schema}`"
            )
        except EngineError as error:
            if condition_behind(error) in _MISSING_SCHEMA:
                return {}
            raise
        return {f"{schema}.{row.tableName}": _entry(row.information) for row in rows if not row.isTemporary}

    def _entry_elsewhere(self, name: str) -> CatalogEntry | None:
        """A table or view of another catalog than Spark's own: there, views are not listed with their text."""
        try:
            (row,) = self.read(f"SHOW CREATE TABLE {table_name(name)}", f"looking at `{name}`")
        except EngineError as error:
            if condition_behind(error) in _MISSING_SCHEMA | {"TABLE_OR_VIEW_NOT_FOUND"}:
                return None
            raise
        text = str(row[0])
        is_view = text.startswith("CREATE VIEW")
        return CatalogEntry(
            is_view=is_view,
            properties=MappingProxyType(dict(_QUOTED_PROPERTY.findall(text))),
            marks=MappingProxyType(read_marks(text[text.index(MARKER) :])) if is_view and MARKER in text else {},
        )

    def partition_keys(self, table: str) -> frozenset[tuple[str, ...]]:
        """The partitions of a table, each by the names of its folders without the columns."""
        rows = self.read(f"SHOW PARTITIONS {table_name(table)}", f"listing the partitions of `{table}`")
        return frozenset(tuple(step.split("=", 1)[1] for step in str(row[0]).split("/")) for row in rows)

    def partition_location(self, table: str, columns: Sequence[PartitionColumn], key: PartitionKey) -> str | None:
        """The folder of a partition that exists."""
        schema, _, name = table.rpartition(".")
        rows = self.read(
            f"SHOW TABLE EXTENDED IN {table_name(schema)} LIKE {text_literal(name)} {partition_spec(columns, key)}",
            f"looking at a partition of `{table}`",
        )
        return next((dict(_LINE.findall(row.information)).get("Location") for row in rows), None)


def _has_catalog(name: str) -> bool:
    return name.count(".") > 1


def _says_replace(error: EngineError) -> bool:
    """Whether a catalog refuses to alter a view because it replaces views as a whole."""
    return "Use CREATE OR REPLACE VIEW" in str(error.__cause__)


def _says_no_views(error: EngineError) -> bool:
    return condition_behind(error) in _NO_VIEWS or isinstance(error.__cause__, UnsupportedOperationException)


def condition_behind(error: EngineError) -> str | None:
    """Spark's condition for what became this error."""
    return condition_of(error.__cause__) if error.__cause__ is not None else None


def _entry(information: str) -> CatalogEntry:
    lines = _LINE.findall(information)
    # Comments and the text of a view may hold any line; the type stands before them, the properties after them.
    first, last = dict(reversed(lines)), dict(lines)
    listed = last.get("Table Properties", "").removeprefix("[")
    comment = _COMMENT.search(information)
    return CatalogEntry(
        is_view=first.get("Type") == "VIEW",
        comment=comment[1] if comment else None,
        properties=MappingProxyType(dict(_PROPERTY.findall(listed))),
        marks=MappingProxyType(read_marks(last.get("View Text", ""))),
    )
