"""Tables over files that somebody else writes: made known to the catalog, never written by Lamina."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.errors import EngineError, NameTaken
from lamina.spark.catalog.catalog import condition_behind
from lamina.spark.statements import table_name
from lamina.sql.names import text_literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from lamina.app.ports.engine import ExternalTable
    from lamina.spark.catalog.catalog import Catalog

# Folders of partitions that are added later are found when the table is read, not only those the catalog was told of.
PARTITIONS_AS_THEY_LIE = {"spark.sql.hive.manageFilesourcePartitions": "false"}
_TAKEN = frozenset({"TABLE_OR_VIEW_ALREADY_EXISTS"})


def read_shape(session: SparkSession, table: ExternalTable) -> StructType:
    """What Spark finds in the files."""
    shape = session.read.format(table.format).options(**dict(table.options)).load(table.path).schema
    if not shape.fields:
        raise EngineError(
            f"Spark finds no columns in `{table.path}`",
            hint="name a file or folder with data in it, and the format that it is written in",
        )
    return shape


def creation(table: ExternalTable) -> str:
    """The one statement that makes a table known."""
    options = ", ".join(f"{text_literal(key)} = {text_literal(value)}" for key, value in table.options)
    using = f"{table.format} OPTIONS ({options})" if options else table.format
    return f"CREATE TABLE {table_name(table.name)} USING {using} LOCATION {text_literal(table.path)}"


def refuse_taken(catalog: Catalog, session: SparkSession, table: ExternalTable) -> None:
    """Raise `NameTaken` where the catalog has something of that name."""
    if session.catalog.tableExists(table_name(table.name)):
        raise taken(table)
    catalog.ensure_schema(table.name.rpartition(".")[0])


def is_taken(error: EngineError) -> bool:
    """Whether somebody else made something of that name in between."""
    return condition_behind(error) in _TAKEN


def taken(table: ExternalTable) -> NameTaken:
    """The error for a name that the catalog has already."""
    return NameTaken(
        f"the catalog has a table or view `{table.name}` already; it is left as it is",
        hint="choose another name, or drop the other table yourself",
    )
