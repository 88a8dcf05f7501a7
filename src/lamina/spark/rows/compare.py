"""Whether two sets of rows are the same, and in which units of time they are not, without bringing rows to the driver.

Every row gets a hash; counts and sums of hashes are compared. Spark's hash leaves NULL out, so that `(NULL, 1)` and
`(1, NULL)` would look the same: which values are NULL is hashed along. Sums are taken of the two halves of a
hash, which thousands of millions of rows cannot bring to overflow; should it happen, the rows count as different.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, MapType, StringType, StructType, VariantType

from lamina.sql.names import quote
from lamina.timeline.interval import EMPTY, Intervals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

    from lamina.timeline.grain import Grain
    from lamina.timeline.interval import Interval

HASH = "_lamina_hash"
_LOW = 0xFFFFFFFF
_BITS = 30
_SIDE = "_lamina_side"
_PIECE = "_lamina_piece"
_MOST_PIECES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What was measured of some rows: equal values mean equal rows, in any order."""

    rows: int
    low: int | None
    high: int | None

    @classmethod
    def of(cls, found: Mapping[str, Any], name: str = "content") -> Content:
        """From the results of `content_measures`."""
        return cls(rows=int(found[f"{name}_rows"]), low=found[f"{name}_low"], high=found[f"{name}_high"])

    @classmethod
    def total(cls, texts: Iterable[str]) -> Content:
        """Of rows that were measured in several parts, from what `to_text` says of each."""
        parts = [[int(number) for number in text.split(":")] for text in texts]
        rows, low, high = (sum(numbers) for numbers in zip(*parts, strict=True))
        return cls(rows=rows, low=low if rows else None, high=high if rows else None)

    @property
    def is_known(self) -> bool:
        """Whether the sums fit into what holds them."""
        return self.rows == 0 or (self.low is not None and self.high is not None)

    def is_same(self, other: Content) -> bool:
        """Whether the rows are the same; no when that cannot be known."""
        return self.is_known and other.is_known and self == other

    def to_text(self) -> str | None:
        """For the record."""
        return f"{self.rows}:{self.low or 0}:{self.high or 0}" if self.is_known else None


NO_ROWS = Content(rows=0, low=None, high=None)


def with_hash(rows: DataFrame, columns: StructType) -> DataFrame:
    """The rows with a column that holds the hash of the named columns."""
    named = [(sf.col(quote(field.name)), field.dataType) for field in columns.fields]
    values = [_hashable(value, data_type) for value, data_type in named]
    return rows.withColumn(HASH, sf.xxhash64(*values, *_which_are_null([value for value, _ in named])))


def _which_are_null(values: list[SparkColumn]) -> list[SparkColumn]:
    """Numbers with a bit for each value that is NULL: much cheaper for every row than to hash where a value stands."""
    masks = []
    for first in range(0, len(values), _BITS):
        bits = [
            sf.when(value.isNull(), sf.lit(1 << index)).otherwise(sf.lit(0))
            for index, value in enumerate(values[first : first + _BITS])
        ]
        masks.append(reduce(lambda left, right: left.bitwiseOR(right), bits))
    return masks


def content_measures(counts: SparkColumn, name: str = "content") -> dict[str, SparkColumn]:
    """Aggregates over rows with a hash for which the condition holds, under names that begin as said."""
    value = sf.when(counts, sf.col(HASH))
    return {
        f"{name}_rows": sf.count_if(counts),
        f"{name}_low": sf.try_sum(value.bitwiseAND(sf.lit(_LOW))),
        f"{name}_high": sf.try_sum(sf.shiftrightunsigned(value, 32)),
    }


def contents_by_time(
    rows: DataFrame, stretches: Sequence[Interval], condition: Callable[[Interval], str]
) -> dict[Interval, Content]:
    """What rows with a hash are in each of these stretches of time, as far as there are any; one job."""
    measures = [value.alias(name) for name, value in content_measures(sf.lit(True)).items()]
    counted = rows.filter(" OR ".join(f"({condition(piece)})" for piece in Intervals.of(stretches)))
    grouped = _numbered(counted, stretches, condition).groupBy(_PIECE).agg(*measures)
    return {stretches[row[_PIECE]]: Content.of(row.asDict()) for row in grouped.collect()}


def differing_units(
    old: DataFrame, new: DataFrame, within: Intervals, grain: Grain, condition: Callable[[Interval], str]
) -> tuple[Intervals, int]:
    """The units of `within` in which rows with a hash differ, and how many jobs that took.

    The time is cut into few pieces, those that differ are cut again: cost follows what differs, not how many units
    there are. Where very many pieces differ they stay as they are, which tells too much and never too little.
    """
    both = old.withColumn(_SIDE, sf.lit(-1)).select(HASH, _SIDE, *_names(old))
    both = both.unionByName(new.withColumn(_SIDE, sf.lit(1)).select(HASH, _SIDE, *_names(old)))
    found, open_pieces, jobs = EMPTY, cut(within, grain), 0
    while open_pieces:
        jobs += 1
        different = _differing(both, open_pieces, condition)
        if len(different) > _MOST_PIECES // 2:
            return found.union(Intervals.of(different)), jobs
        units = [piece for piece in different if grain.next(piece.start) >= piece.end]
        found = found.union(Intervals.of(units))
        larger = [piece for piece in different if grain.next(piece.start) < piece.end]
        open_pieces = cut(Intervals.of(larger), grain)
    return found, jobs


def _differing(both: DataFrame, pieces: list[Interval], condition: Callable[[Interval], str]) -> list[Interval]:
    side, value = sf.col(_SIDE), sf.col(HASH)
    sums = [
        sf.sum(side),
        sf.try_sum(value.bitwiseAND(sf.lit(_LOW)) * side),
        sf.try_sum(sf.shiftrightunsigned(value, 32) * side),
    ]
    is_different = reduce(lambda left, right: left | right, [total.isNull() | (total != 0) for total in sums])
    grouped = _numbered(both, pieces, condition).groupBy(_PIECE)
    found = grouped.agg(is_different.alias("is_different")).filter("is_different").select(_PIECE).collect()
    return [pieces[row[0]] for row in sorted(found)]


def _numbered(rows: DataFrame, pieces: Sequence[Interval], condition: Callable[[Interval], str]) -> DataFrame:
    """Rows of these pieces, each with the number of its own."""
    first, *rest = pieces
    number = sf.when(sf.expr(condition(first)), 0)
    for index, piece in enumerate(rest, start=1):
        number = number.when(sf.expr(condition(piece)), index)
    return rows.withColumn(_PIECE, number).filter(sf.col(_PIECE).isNotNull())


def cut(time: Intervals, grain: Grain) -> list[Interval]:
    """The time in pieces of whole units, so few that they make a manageable number."""
    pieces = max(2, _MOST_PIECES // max(1, len(time)))
    return [
        piece for interval in time for piece in grain.split(interval, max(1, -(-(grain.count(interval) + 2) // pieces)))
    ]


def _names(rows: DataFrame) -> list[str]:
    return [quote(name) for name in rows.columns if name != HASH]


def _hashable(value: SparkColumn, data_type: DataType) -> SparkColumn:
    """The value in a form whose hash tells NULL from nothing, and text by its characters whatever its collation."""
    match data_type:
        case StringType():
            return value.cast("string")
        case VariantType():
            return sf.to_json(value)
        case StructType():
            parts = [
                part
                for index, field in enumerate(data_type.fields)
                for part in (_hashable(value.getField(field.name), field.dataType), sf.lit(index))
            ]
            return sf.when(value.isNotNull(), sf.struct(*parts)) if parts else value.isNotNull()
        case ArrayType():
            inner = data_type.elementType
            return sf.struct(
                sf.size(value), sf.transform(value, lambda item: sf.struct(item.isNull(), _hashable(item, inner)))
            )
        case MapType():
            key_type, value_type = data_type.keyType, data_type.valueType
            entries = sf.transform(
                sf.array_sort(sf.map_keys(value)),
                lambda key: sf.struct(
                    _hashable(key, key_type),
                    sf.element_at(value, key).isNull(),
                    _hashable(sf.element_at(value, key), value_type),
                ),
            )
            return sf.struct(sf.size(value), entries)
        case _:
            return value
