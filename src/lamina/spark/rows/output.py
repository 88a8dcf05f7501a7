"""What a model's rows must look like before they are written: names, declared types, the time column."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from lamina.errors import BadModelResult
from lamina.graph.time_columns import time_kind, why_inexact
from lamina.spark.rows.partitions import HIDDEN_PREFIX
from lamina.spark.rows.types import has_void, stored_type
from lamina.sql.names import quote
from lamina.sql.render import time_condition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from lamina.app.ports.engine import FormerColumns
    from lamina.graph.kinds import TimeColumn
    from lamina.graph.model import Column
    from lamina.timeline.grain import Grain
    from lamina.timeline.interval import Instant, Interval

_RESERVED = re.compile(rf"_lamina_|{HIDDEN_PREFIX}\d", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def shape_output(frame: DataFrame, declared: Sequence[Column] | None) -> DataFrame:
    """The rows with exactly the declared columns, cast and in order; without declared ones, as they are.

    Raises `BadModelResult` for columns that are missing, not declared, of the same name, or that cannot be stored.
    """
    _check_names(frame.columns)
    if declared:
        frame = _as_declared(frame, declared)
    _check_types(frame.schema)
    return frame


def keep_columns(frame: DataFrame, former: FormerColumns) -> DataFrame:
    """The rows with the columns that they shall have next to those of a table; `BadModelResult` where these differ too
    much for the model.
    """
    now = {name.casefold() for name in frame.columns}
    was = {column.name.casefold() for column in former.columns}
    missing = [column for column in former.columns if column.name.casefold() not in now]
    added = [name for name in frame.columns if name.casefold() not in was]
    if missing and former.on_missing == "error":
        raise BadModelResult(
            f"the table has {_list([column.name for column in missing])}, which the output does not have any more",
            hint="select it again, or say in the kind what is to become of it: `on_destructive_change ignore` keeps "
            "it, with NULL in new rows, and `allow` drops it with all its values",
        )
    if added and former.on_added == "error":
        raise BadModelResult(
            f"the output has {_list(added)}, which the table does not have",
            hint="leave it out of the query, or say in the kind what is to become of it: `on_additive_change allow` "
            "adds it, with NULL in rows that are there, and `ignore` leaves it out",
        )
    if added and former.on_added == "ignore":
        frame = frame.drop(*added)
    if missing and former.on_missing == "ignore":
        nulls = [sf.lit(None).cast(column.type or "string").alias(column.name) for column in missing]
        frame = frame.select("*", *nulls)
    return frame


def find_time_column(columns: Sequence[Column], declared: TimeColumn, grain: Grain | None = None) -> Column:
    """The output's time column; `BadModelResult` when there is none or its type says nothing about time.

    With a grain also when its type or format cannot tell units of that grain apart.
    """
    wanted = declared.name.casefold()
    found = next((column for column in columns if column.name.casefold() == wanted), None)
    if found is None:
        names = ", ".join(f"`{column.name}`" for column in columns)
        raise BadModelResult(
            f"the time column `{declared.name}` is not among the output's columns: {names}",
            hint="select the column in the query, or name another one in `time_column`",
        )
    if time_kind(found.type) is None:
        raise BadModelResult(
            f"the time column `{found.name}` has type `{found.type}`, which cannot hold a time",
            hint="cast it to `date`, `timestamp`, or to text or an integer with a `format` in `time_column`",
        )
    problem = why_inexact(declared, found.type or "", grain) if grain else None
    if problem is not None:
        raise BadModelResult(problem[0], hint=problem[1])
    return found


def in_interval(time: Column, declared: TimeColumn, interval: Interval) -> str:
    """The condition that holds for rows inside the interval."""
    kind = time_kind(time.type)
    if kind is None:
        raise BadModelResult(f"the time column `{time.name}` has type `{time.type}`, which cannot hold a time")
    return time_condition(time.name, kind, _clock(interval.start), _clock(interval.end), declared.format)


def _clock(instant: Instant) -> str:
    return instant.to_datetime().replace(tzinfo=None).isoformat(sep=" ")


def _check_names(names: Sequence[str]) -> None:
    if not names:
        raise BadModelResult("the result has no columns", hint="select at least one column")
    repeated = [name for name, count in Counter(name.casefold() for name in names).items() if count > 1]
    if repeated:
        listed = ", ".join(f"`{name}`" for name in repeated)
        raise BadModelResult(
            f"several columns of the output have the same name: {listed}",
            hint="give each a name of its own with AS; Spark does not tell upper from lower case",
        )
    for name in names:
        if not name.strip():
            raise BadModelResult("a column of the output has no name", hint="give it one with AS")
        if _CONTROL.search(name):
            raise BadModelResult(
                f"the name of column `{_CONTROL.sub('?', name)}` holds a line break or another control character",
                hint="give it another name with AS",
            )
        if _RESERVED.match(name):
            raise BadModelResult(
                f"column `{name}` has a name that is reserved for hidden columns",
                hint="give it another name with AS",
            )


def _as_declared(frame: DataFrame, declared: Sequence[Column]) -> DataFrame:
    actual = {name.casefold(): name for name in frame.columns}
    wanted = {column.name.casefold() for column in declared}
    missing = [column.name for column in declared if column.name.casefold() not in actual]
    extra = [name for folded, name in actual.items() if folded not in wanted]
    if missing or extra:
        said = [f"{_list(missing)} declared but not in the output"] if missing else []
        said += [f"{_list(extra)} in the output but not declared"] if extra else []
        raise BadModelResult(
            f"the output does not have the declared columns: {'; '.join(said)}",
            hint="make the query and `columns` agree",
        )
    selected = []
    for column in declared:
        value = sf.col(quote(actual[column.name.casefold()]))
        if column.type is not None:
            value = value.cast(stored_type(column.type))
        selected.append(value.alias(column.name))
    return frame.select(*selected)


def _check_types(schema: StructType) -> None:
    untyped = [field.name for field in schema.fields if has_void(field.dataType)]
    if untyped:
        raise BadModelResult(
            f"{_list(untyped)} {'has' if len(untyped) == 1 else 'have'} no type, only NULL",
            hint="cast it, as in `CAST(NULL AS string)`, or declare the model's `columns`",
        )


def _list(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
