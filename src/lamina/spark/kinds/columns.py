"""Rows of a table beside new ones: the same columns, in the same types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from lamina.errors import BadModelResult
from lamina.near_names import near_names
from lamina.spark.rows.types import can_read_as, type_text
from lamina.sql.names import quote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame


def side_by_side(base: DataFrame, batch: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Both with the batch's columns; each column in the wider of its two types, NULL in old rows when it is new.

    Raises `BadModelResult` when neither type holds every value of the other.
    """
    before = {field.name.casefold(): field for field in base.schema.fields}
    old: list[SparkColumn] = []
    new: list[SparkColumn] = []
    for field in batch.schema.fields:
        name, wanted = field.name, type_text(field.dataType)
        stored = before.get(name.casefold())
        written = wanted if stored is None else type_text(stored.dataType)
        if not can_read_as(written, wanted):
            if not can_read_as(wanted, written):
                raise BadModelResult(
                    f"column `{name}` was written as `{written}` and would now be `{wanted}`; "
                    "the rows that the table holds cannot be read that way",
                    hint=f"cast it to `{written}` in the query, or change the model so that a new version is built",
                )
            wanted = written
        value = sf.lit(None) if stored is None else sf.col(quote(stored.name))
        old.append(value.cast(wanted).alias(name))
        new.append(sf.col(quote(name)).cast(wanted).alias(name))
    return base.select(*old), batch.select(*new)


def find_column(rows: DataFrame, name: str, key: str) -> str:
    """The name as the rows spell it; `BadModelResult` when the property `key` names a column that is not there."""
    found = next((column for column in rows.columns if column.casefold() == name.casefold()), None)
    if found is None:
        raise BadModelResult(f"`{key}`: `{name}` is not among the output's columns", hint=_near(name, rows.columns))
    return found


def _near(name: str, names: Sequence[str]) -> str:
    near = near_names(name, names)
    return f"did you mean `{near[0]}`?" if near else f"the columns are {', '.join(f'`{each}`' for each in names)}"
