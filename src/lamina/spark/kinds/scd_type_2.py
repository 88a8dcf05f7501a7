"""SCD type 2 without MERGE: a table of histories after one more look at the source, as a query over what it was.

Rows of the table and of the source are put together and looked at key by key. Every row of the table stays, the open
one of a key perhaps with an end; a row of the source is added where its key has no open row, or one that it changes.
Nothing is ever filled in, so that what was recorded is never changed, and no row ends before it begins, whatever times
the source or the clock bring.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from pyspark.sql import functions as sf
from pyspark.sql.types import DateType, StringType
from typing_extensions import assert_never

from lamina.errors import BadModelResult
from lamina.graph.kinds import ScdType2ByColumn, ScdType2ByTime
from lamina.spark.kinds.columns import find_column, side_by_side
from lamina.spark.kinds.comparable import comparable
from lamina.spark.kinds.keys import IS_REPEATED, is_null_key, key_columns, with_keys, with_order
from lamina.spark.kinds.problems import NULL_KEY, NULL_TIME, OPEN_TWICE, PROBLEM, REPEATED_KEY
from lamina.spark.rows.types import is_timestamp, type_text
from lamina.sql.names import quote
from lamina.timeline.interval import Instant

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

ScdType2: TypeAlias = ScdType2ByTime | ScdType2ByColumn

_EPOCH = Instant(0)

_IS_NEW = "_lamina_is_new"
_IS_OPEN = "_lamina_is_open"
_FACTS = "_lamina_facts"
_OLD = "_lamina_old"
_NEW = "_lamina_new"
_CLOSED_UNTIL = "_lamina_closed_until"
_NEW_ROWS = "_lamina_new_rows"
_OPEN_ROWS = "_lamina_open_rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    """What the kinds do differently. `old` and `new` are the facts of a key's open row and of its row in the source."""

    facts: tuple[SparkColumn, ...]
    """What of a row is looked at, `at` being its own time."""
    is_changed: SparkColumn
    starts: SparkColumn
    """When what the source says began."""
    first_starts: SparkColumn
    """The same for rows of the first load."""


def scd_type_2_by_time(
    base: DataFrame | None, source: DataFrame, kind: ScdType2ByTime, *, execution_time: Instant
) -> DataFrame:
    """All histories after a run: the source's columns, then the two of validity.

    `base` is the table before it, None when it holds no row yet. A row of the source with a later `updated_at` than
    the open row of its key ends that one; an equal or earlier one says nothing new. A key that is new later is valid
    from its `updated_at`, one that was deleted and is back from the later of that and its end.

    The last column is `PROBLEM`: rows in which it is not NULL keep the result from being used.
    """
    return _histories(base, source, kind, _rules_by_time(source, kind), execution_time)


def scd_type_2_by_column(
    base: DataFrame | None, source: DataFrame, kind: ScdType2ByColumn, *, execution_time: Instant
) -> DataFrame:
    """All histories after a run: as `scd_type_2_by_time`, but a row is changed when one of the `columns` is.

    Changes, new keys and keys that are back are valid from the execution time, or from the row's own time where
    `updated_at_name` names it; a row of an earlier time than the open one says nothing new. That column is no change
    by itself when all columns are compared. With `execution_time_as_valid_from` new keys begin at the execution time
    all the same, those of the first run among them, which otherwise are valid since 1970.
    """
    return _histories(base, source, kind, _rules_by_column(source, kind, execution_time), execution_time)


def scd_type_2(base: DataFrame | None, source: DataFrame, kind: ScdType2, *, execution_time: Instant) -> DataFrame:
    """All histories after a run, by time or by column."""
    return _histories(base, source, kind, _rules(source, kind, execution_time), execution_time)


def changed_histories(base: DataFrame, source: DataFrame, kind: ScdType2, *, execution_time: Instant) -> DataFrame:
    """Of what `scd_type_2` gives only the rows that are not in `base`: those that begin, and those that end now."""
    rules = _rules(source, kind, execution_time)
    return _histories(base, source, kind, rules, execution_time, only_changed=True)


# --- what the kinds do differently ------------------------------------------------------------------------------------
def _rules(source: DataFrame, kind: ScdType2, execution_time: Instant) -> _Rules:
    match kind:
        case ScdType2ByTime():
            return _rules_by_time(source, kind)
        case ScdType2ByColumn():
            return _rules_by_column(source, kind, execution_time)
        case _:
            assert_never(kind)


def _rules_by_time(source: DataFrame, kind: ScdType2ByTime) -> _Rules:
    at = _time_of(source, kind.updated_at_name)
    starts = sf.col(f"{_NEW}.at").cast(kind.time_data_type)
    return _Rules(
        facts=(at.alias("at"),),
        # The open row has no time when the column is younger than the row: the source knows better.
        is_changed=sf.expr(f"{_OLD}.at IS NULL OR {_NEW}.at > {_OLD}.at"),
        starts=starts,
        first_starts=starts if kind.updated_at_as_valid_from else _literal(_EPOCH, kind),
    )


def _rules_by_column(source: DataFrame, kind: ScdType2ByColumn, execution_time: Instant) -> _Rules:
    is_changed = f"NOT ({_NEW}.compared <=> {_OLD}.compared)"
    facts = [_compared(source, kind).alias("compared")]
    now = starts = _literal(execution_time, kind)
    if kind.updated_at_name is not None:
        facts.append(_time_of(source, kind.updated_at_name).alias("at"))
        is_changed += f" AND NOT coalesce({_NEW}.at < {_OLD}.at, false)"
        starts = sf.col(f"{_NEW}.at").cast(kind.time_data_type)
        if kind.execution_time_as_valid_from:
            starts = sf.when(sf.col(_OLD).isNull(), now).otherwise(starts)
    return _Rules(
        facts=tuple(facts),
        is_changed=sf.expr(is_changed),
        starts=starts,
        first_starts=now if kind.execution_time_as_valid_from else _literal(_EPOCH, kind),
    )


# --- the fold ---------------------------------------------------------------------------------------------------------
def _histories(
    base: DataFrame | None,
    source: DataFrame,
    kind: ScdType2,
    rules: _Rules,
    execution_time: Instant,
    *,
    only_changed: bool = False,
) -> DataFrame:
    _check_names(source, kind)
    now = _literal(execution_time, kind)
    unknown = sf.lit(None).cast(kind.time_data_type)
    new = source.withColumns({kind.valid_from_name: unknown, kind.valid_to_name: unknown})
    if base is None:
        return _first_load(new, kind, rules)
    _check_base(base, kind)
    old, new = side_by_side(base, new)
    both = old.withColumn(_IS_NEW, sf.lit(False)).unionByName(new.withColumn(_IS_NEW, sf.lit(True)))
    seen = _seen_by_key(both, kind, rules)
    is_added = sf.col(_OLD).isNull() | rules.is_changed
    is_ended = sf.col(_NEW).isNotNull() & rules.is_changed
    # The greatest of several leaves NULL out: keys without an open or a closed row have nothing to wait for.
    valid_from = sf.col(quote(kind.valid_from_name))
    starts = sf.greatest(rules.starts, sf.col(f"{_OLD}.valid_from"), sf.col(_CLOSED_UNTIL))
    ends = sf.when(is_ended, starts)
    if kind.invalidate_hard_deletes:
        ends = ends.when(sf.col(_NEW).isNull(), sf.greatest(now, valid_from))
    is_old = sf.col(_IS_OPEN) & ends.isNotNull() if only_changed else ~sf.col(_IS_NEW)
    return (
        seen.filter(is_old | (sf.col(_IS_NEW) & is_added) | sf.col(PROBLEM).isNotNull())
        .withColumns(
            {
                kind.valid_from_name: sf.when(sf.col(_IS_NEW), starts).otherwise(valid_from),
                kind.valid_to_name: sf.when(sf.col(_IS_OPEN), ends).otherwise(sf.col(quote(kind.valid_to_name))),
            }
        )
        .select(*(quote(name) for name in new.columns), PROBLEM)
    )


def _first_load(new: DataFrame, kind: ScdType2, rules: _Rules) -> DataFrame:
    ordered = with_order(with_keys(new, kind.unique_key), kind.unique_key).withColumn(_NEW, sf.struct(*rules.facts))
    problem = (
        sf.when(is_null_key(kind.unique_key), NULL_KEY)
        .when(sf.col(IS_REPEATED), REPEATED_KEY)
        .when(_has_no_time(kind), NULL_TIME)
    )
    rows = ordered.withColumns({kind.valid_from_name: rules.first_starts, PROBLEM: problem})
    return rows.select(*(quote(name) for name in new.columns), PROBLEM)


def _seen_by_key(both: DataFrame, kind: ScdType2, rules: _Rules) -> DataFrame:
    """Every row with what is known of its key."""
    valid_from, valid_to = sf.col(quote(kind.valid_from_name)), sf.col(quote(kind.valid_to_name))
    facts = sf.struct(valid_from.alias("valid_from"), *rules.facts)
    rows = with_keys(both, kind.unique_key).withColumns({_IS_OPEN: ~sf.col(_IS_NEW) & valid_to.isNull(), _FACTS: facts})
    key = f"OVER (PARTITION BY {', '.join(key_columns(kind.unique_key))})"
    seen = rows.withColumns(
        {
            _OLD: sf.expr(f"first(CASE WHEN {_IS_OPEN} THEN {_FACTS} END, true) {key}"),
            _NEW: sf.expr(f"first(CASE WHEN {_IS_NEW} THEN {_FACTS} END, true) {key}"),
            _CLOSED_UNTIL: sf.expr(f"max({quote(kind.valid_to_name)}) {key}"),
            _NEW_ROWS: sf.expr(f"count_if({_IS_NEW}) {key}"),
            _OPEN_ROWS: sf.expr(f"count_if({_IS_OPEN}) {key}"),
        }
    )
    is_new = sf.col(_IS_NEW)
    problem = (
        sf.when(is_new & is_null_key(kind.unique_key), NULL_KEY)
        .when(is_new & (sf.col(_NEW_ROWS) > 1), REPEATED_KEY)
        .when(is_new & _has_no_time(kind), NULL_TIME)
        .when(sf.col(_IS_OPEN) & (sf.col(_OPEN_ROWS) > 1), OPEN_TWICE)
    )
    return seen.withColumn(PROBLEM, problem)


def _compared(source: DataFrame, kind: ScdType2ByColumn) -> SparkColumn:
    """The values whose change is one, in one struct, which compares NULL with NULL as equal."""
    time = (kind.updated_at_name or "").casefold()
    names = [find_column(source, name, "columns") for name in kind.columns] or [
        name for name in source.columns if name.casefold() != time
    ]
    return sf.struct(*(comparable(sf.col(quote(name)), source.schema[name].dataType) for name in names))


# --- times ------------------------------------------------------------------------------------------------------------
def _time_of(source: DataFrame, name: str) -> SparkColumn:
    """The row's own time, in a type whose order is that of time."""
    found = find_column(source, name, "updated_at_name")
    data_type = source.schema[found].dataType
    if isinstance(data_type, StringType):
        return sf.col(quote(found)).cast("timestamp")
    if isinstance(data_type, DateType) or is_timestamp(data_type):
        return sf.col(quote(found))
    raise BadModelResult(
        f"`updated_at_name`: column `{found}` has type `{type_text(data_type)}`, which cannot hold a time",
        hint="cast it to `timestamp` or `date` in the query",
    )


def _literal(instant: Instant, kind: ScdType2) -> SparkColumn:
    """A moment as the two columns of validity hold it, whatever the session's zone."""
    moment = instant.to_datetime().replace(tzinfo=None)
    match kind.time_data_type:
        case "timestamp_ntz":
            return sf.expr(f"TIMESTAMP_NTZ '{moment.isoformat(sep=' ')}'")
        case "date":
            return sf.expr(f"DATE '{moment.date().isoformat()}'")
        case _:
            return sf.expr(f"TIMESTAMP '{moment.isoformat(sep=' ')}+00:00'")


# --- what must hold ---------------------------------------------------------------------------------------------------
def _check_names(source: DataFrame, kind: ScdType2) -> None:
    names = {name.casefold() for name in source.columns}
    for key, name in (("valid_from_name", kind.valid_from_name), ("valid_to_name", kind.valid_to_name)):
        if name.casefold() in names:
            raise BadModelResult(
                f"the query gives a column `{name}`, which is the name of a column of validity",
                hint=f"give it another name with AS, or name the column of validity differently with `{key}`",
            )


def _check_base(base: DataFrame, kind: ScdType2) -> None:
    """The columns of validity are where they were: without them every row of the past would be open."""
    types = {field.name.casefold(): type_text(field.dataType) for field in base.schema.fields}
    for key, name in (("valid_from_name", kind.valid_from_name), ("valid_to_name", kind.valid_to_name)):
        stored = types.get(name.casefold())
        if stored is None:
            raise BadModelResult(
                f"the table has no column `{name}`, which `{key}` names",
                hint=f"go back to the former `{key}`, or build a new version",
            )
        if stored != kind.time_data_type:
            raise BadModelResult(
                f"column `{name}` was written as `{stored}` and `time_data_type` is `{kind.time_data_type}`",
                hint=f"set `time_data_type {stored}`, or build a new version",
            )


def _has_no_time(kind: ScdType2) -> SparkColumn:
    """Holds for keys whose row in the source has a time of its own that is NULL."""
    return sf.lit(False) if kind.updated_at_name is None else sf.col(f"{_NEW}.at").isNull()
