"""Names of tables: reading them, writing them, and what the catalog can hold."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lamina.errors import BadName

LONGEST_TABLE_NAME = 128
LONGEST_SCHEMA_NAME = 120
MOST_PARTS = 3

_PART = re.compile(r"`((?:[^`]|``)+)`|\"((?:[^\"]|\"\")+)\"|([^\s.`\"]+)")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CATALOG_CHARACTERS = re.compile(r"[A-Za-z0-9_]+")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class TableName:
    """The name of a table in lower case, with the schema and catalog where they were written."""

    catalog: str | None = None
    schema: str | None = None
    table: str

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts that are there, from the catalog to the table."""
        return tuple(part for part in (self.catalog, self.schema, self.table) if part is not None)

    def to_text(self) -> str:
        """`a.b.c`; a part that holds anything but letters, digits, underscores and dashes is in backticks."""
        return ".".join(part if re.fullmatch(r"[\w\-]+", part) else quote(part) for part in self.parts)

    def in_schema(self, schema: str | None, catalog: str | None = None) -> TableName:
        """The same name with the missing schema and catalog filled in."""
        if self.schema is not None or schema is None:
            return self
        return TableName(catalog=catalog.lower() if catalog else None, schema=schema.lower(), table=self.table)

    def __str__(self) -> str:
        return self.to_text()


def make_table_name(parts: tuple[str, ...] | list[str]) -> TableName:
    """The name with these one to three unquoted parts."""
    if not 1 <= len(parts) <= MOST_PARTS:
        raise BadName(
            f"table name `{'.'.join(parts)}` has {len(parts)} parts, one to {MOST_PARTS} are possible",
            hint="write `table`, `schema.table` or `catalog.schema.table`",
        )
    table, schema, catalog, *_ = [*reversed([part.lower() for part in parts]), None, None]
    return TableName(catalog=catalog, schema=schema, table=str(table))


def parse_table_name(text: str, dialect: str = "spark") -> TableName:
    """Read `table`, `schema.table` or `catalog.schema.table`, with parts bare, in backticks or in double quotes.

    Spark compares names without regard to case, so the result is in lower case.
    """
    stripped = text.strip()
    parts: list[str] = []
    position = 0
    while True:
        match = _PART.match(stripped, position)
        if match is None:
            raise _unreadable(text)
        backticked, quoted, bare = match.groups()
        if backticked is not None:
            part = backticked.replace("``", "`")
            parts.extend(part.split(".") if dialect == "bigquery" else [part])
        elif quoted is not None:
            parts.append(quoted.replace('""', '"'))
        else:
            parts.append(bare)
        position = match.end()
        if position == len(stripped):
            break
        if stripped[position] != ".":
            raise _unreadable(text)
        position += 1
    if not all(parts):
        raise _unreadable(text)
    return make_table_name(parts)


def text_literal(text: str) -> str:
    """A string in Spark SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def quote(*parts: str) -> str:
    """Spark SQL text of a name: every part in backticks, joined by dots."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def is_plain_identifier(text: str) -> bool:
    """Whether a word can be an identifier without quotes, leaving reserved words aside."""
    return _PLAIN.fullmatch(text) is not None


def check_catalog_name(part: str, *, longest: int = LONGEST_TABLE_NAME) -> str | None:
    """Why Hive's catalog cannot hold a table, view or schema of this name; None when it can.

    For schemas `longest` is `LONGEST_SCHEMA_NAME`.
    """
    if not part:
        return "the name is empty"
    if _CATALOG_CHARACTERS.fullmatch(part) is None:
        wrong = next(character for character in part if _CATALOG_CHARACTERS.fullmatch(character) is None)
        return f"`{wrong}` is not possible, only ASCII letters, digits and underscores are"
    if len(part) > longest:
        return f"the name has {len(part)} characters, at most {longest} are possible"
    return None


def _unreadable(text: str) -> BadName:
    return BadName(
        f"`{text}` is not a table name",
        hint="write `table`, `schema.table` or `catalog.schema.table`, with unusual parts in backticks",
    )
