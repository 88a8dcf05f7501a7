"""Why new rows cannot be folded into a table, found in the job that folds them.

The result of a fold has a hidden column that names what is wrong with a row, and rows with which something is wrong
are always in the result: they fail the job that would write them. What it was, and which keys are concerned, is looked
up only then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from lamina.errors import BadModelResult
from lamina.graph.kinds import IncrementalByUniqueKey
from lamina.spark.kinds.keys import IS_REPEATED, key_columns, with_keys, with_order

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lamina.graph.kinds import KeyedKind

PROBLEM = "_lamina_problem"
"""The hidden column: NULL, or one of the following."""
NULL_KEY = "null_key"
REPEATED_KEY = "repeated_key"
NULL_TIME = "null_time"
OPEN_TWICE = "open_twice"

_MOST_NAMED = 5


def check_fold(folded: DataFrame, batch: DataFrame, kind: KeyedKind) -> None:
    """Raise `BadModelResult` when the result of a fold must not be used; `batch` are the new rows as they came."""
    problems = (NULL_KEY, REPEATED_KEY, NULL_TIME, OPEN_TWICE)
    counts = [sf.count_if(sf.col(PROBLEM) == name).alias(name) for name in problems]
    found = folded.agg(*counts).collect()[0].asDict()
    key = ", ".join(kind.unique_key)
    if count := found[NULL_KEY]:
        raise BadModelResult(
            f"the unique key `{key}` is NULL in {count} of the new rows",
            hint="leave such rows out in the query, or replace NULL with a value there",
        )
    if found[REPEATED_KEY]:
        raise _repeated(batch, kind)
    if count := found[NULL_TIME]:
        time = getattr(kind, "updated_at_name", None)
        raise BadModelResult(
            f"`{time}` is NULL in {count} of the new rows; nothing says when they began",
            hint=f"give them a time in the query, as with `coalesce({time}, created_at)`",
        )
    if count := found[OPEN_TWICE]:
        raise BadModelResult(
            f"{count} rows of the table are open beside another one of the same unique key `{key}`",
            hint="go back to the `unique_key` that the table was written with, or build a new version",
        )


def _repeated(batch: DataFrame, kind: KeyedKind) -> BadModelResult:
    order_by = kind.order_by if isinstance(kind, IncrementalByUniqueKey) else ()
    said = f"several of the new rows have the same unique key `{', '.join(kind.unique_key)}`"
    said += _repeated_keys(batch, kind.unique_key, order_by)
    if order_by:
        hint = "add a column to `order_by` in which these rows differ"
        return BadModelResult(f"{said}, and `order_by` does not tell the last", hint=hint)
    hint = "keep one row per key in the query, or let `unique_key` tell them apart"
    if isinstance(kind, IncrementalByUniqueKey):
        hint += "; `order_by` in the kind says which of them is the last and wins"
    return BadModelResult(said, hint=hint)


def _repeated_keys(batch: DataFrame, unique_key: tuple[str, ...], order_by: tuple[str, ...]) -> str:
    """Some of the keys as text; empty should the rows come out different this time."""
    keys = key_columns(unique_key)
    ordered = with_order(with_keys(batch, unique_key), unique_key, order_by)
    values = [sf.col(name).cast("string").alias(name) for name in keys]
    repeated = ordered.filter(IS_REPEATED).orderBy(*keys).select(*values).limit(_MOST_NAMED + 1).collect()
    listed = ", ".join(f"`{', '.join(str(value) for value in row)}`" for row in repeated[:_MOST_NAMED])
    return f": {listed}{' and others' if len(repeated) > _MOST_NAMED else ''}" if listed else ""
