"""How rows are laid out in folders: partition columns, the names of folders, and which of them an interval touches."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Literal, TypeAlias

from lamina.app.ports.published import PartitionColumn
from lamina.app.rendering.key_ranges import unit_key
from lamina.errors import BadModelResult, BadTime
from lamina.graph.time_partitions import TIME_TRANSFORM
from lamina.spark.rows.types import is_integer
from lamina.sql.names import quote
from lamina.sql.render import DEFAULT_TIME_FORMAT
from lamina.timeline.grain import Grain
from lamina.timeline.interval import Instant, Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamina.app.ports.published import PartitionKey
    from lamina.graph.kinds import TimeColumn
    from lamina.graph.model import Column

HIDDEN_PREFIX = "lamina_p"
"""Hidden columns begin with a letter: Hive cannot filter by a partition column that begins with an underscore."""
NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
LONGEST_FOLDER = 255
_ATTEMPT = "lamina_attempt"

Touch: TypeAlias = Literal["inside", "outside", "partly", "unknown"]
"""How the rows of a partition lie to an interval."""

# What Spark and Hive escape in the name of a partition's folder.
_ESCAPED = frozenset({*(chr(code) for code in range(1, 0x20)), *"\"#%'*/:=?\\\x7f{[]^"})
_FILTERABLE = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_NAME = re.compile(r"\w+|`(?:[^`]|``)+`")
_BUCKET = re.compile(r"bucket\s*\(\s*(\d+)\s*,\s*(.+)\)", re.IGNORECASE | re.DOTALL)
_TRUNCATE = re.compile(r"truncate\s*\(\s*(\d+)\s*,\s*(\w+|`(?:[^`]|``)+`)\s*\)", re.IGNORECASE)
_DIGIT_FORMAT = re.compile(r"(?:[^%]|%[YmdHMSf])+")


# --- layout -----------------------------------------------------------------------------------------------------------
def plan_partitions(partitioned_by: Sequence[str], columns: Sequence[Column]) -> tuple[PartitionColumn, ...]:
    """The partition columns for these expressions.

    Dates, integers, strings and booleans partition by themselves, so that readers prune. Timestamps, by their day in
    UTC, and everything else get a hidden column of text, and so does everything when no column would be left for the
    files.
    """
    planned = tuple(_plan_one(index, text.strip(), columns) for index, text in enumerate(partitioned_by))
    visible = {column.name.casefold() for column in planned if not column.is_hidden}
    if len(visible) < len(columns):
        return _without_repeats(planned)
    return tuple(
        column
        if column.is_hidden
        else PartitionColumn(
            name=f"{HIDDEN_PREFIX}{index}", type="string", expression=_identity_expression(column.name)
        )
        for index, column in enumerate(planned)
    )


def attempt_column(index: int) -> PartitionColumn:
    """A hidden column that holds the number of the attempt, so that what it writes never meets what is there.

    Its expression is the same for every attempt, and so is the shape of the table.
    """
    return PartitionColumn(name=f"{HIDDEN_PREFIX}{index}", type="string", expression=_ATTEMPT)


def is_attempt(column: PartitionColumn) -> bool:
    """Whether the column holds the number of the attempt that wrote a row."""
    return column.expression == _ATTEMPT


def _identity_expression(column: str) -> str:
    return f"CAST({quote(column)} AS STRING)"


def _plan_one(index: int, text: str, columns: Sequence[Column]) -> PartitionColumn:
    column = _column_named(text, columns)
    hidden = f"{HIDDEN_PREFIX}{index}"
    if column is None:
        return PartitionColumn(name=hidden, type="string", expression=_hidden_expression(text, columns))
    if column.type in {"timestamp", "timestamp_ntz"}:
        return PartitionColumn(name=hidden, type="string", expression=unit_key("days", column.name))
    is_simple = column.type in {"date", "string", "boolean"} or is_integer(column.type or "")
    if is_simple and _FILTERABLE.fullmatch(column.name):
        return PartitionColumn(name=column.name, type=column.type or "string")
    return PartitionColumn(name=hidden, type="string", expression=_identity_expression(column.name))


def _hidden_expression(text: str, columns: Sequence[Column]) -> str:
    transform = TIME_TRANSFORM.fullmatch(text)
    if transform is not None:
        column = _column_named(transform[2], columns)
        if column is not None:
            return unit_key(transform[1].lower().removesuffix("s") + "s", column.name)
    truncated = _TRUNCATE.fullmatch(text)
    cut = _column_named(truncated[2], columns) if truncated is not None else None
    if truncated is not None and cut is not None:
        name, width = quote(cut.name), truncated[1]
        return f"left({name}, {width})" if cut.type == "string" else f"CAST({name} - pmod({name}, {width}) AS STRING)"
    bucket = _BUCKET.fullmatch(text)
    if bucket is not None:
        return f"CAST(pmod(hash({bucket[2]}), {bucket[1]}) AS STRING)"
    return f"CAST(({text}) AS STRING)"


def _without_repeats(planned: tuple[PartitionColumn, ...]) -> tuple[PartitionColumn, ...]:
    """A column named twice, as when the time column is also listed by hand, partitions once."""
    by_meaning = {(column.expression or column.name.casefold()): column for column in reversed(planned)}
    return tuple(column for column in planned if by_meaning[column.expression or column.name.casefold()] is column)


def _column_named(text: str, columns: Sequence[Column]) -> Column | None:
    if _NAME.fullmatch(text) is None:
        return None
    name = (text[1:-1].replace("``", "`") if text.startswith("`") else text).casefold()
    return next((column for column in columns if column.name.casefold() == name), None)


# --- folders ----------------------------------------------------------------------------------------------------------
def escape(value: str | None) -> str:
    """A partition's value as Spark writes it into the name of a folder."""
    if value is None:
        return NULL_FOLDER
    return "".join(f"%{ord(character):02X}" if character in _ESCAPED else character for character in value)


def partition_path(columns: Sequence[PartitionColumn], key: PartitionKey) -> str:
    """The folder of a partition inside of a batch's folder; `BadModelResult` when a value is too long for one."""
    steps = [f"{escape(column.name)}={escape(value)}" for column, value in zip(columns, key, strict=True)]
    for column, step in zip(columns, steps, strict=True):
        if len(step.encode()) > LONGEST_FOLDER:
            raise too_long(column)
    return "/".join(steps)


def too_long(column: PartitionColumn) -> BadModelResult:
    """The error for a value that cannot name a folder."""
    what = f"the expression `{column.expression}`" if column.is_hidden else f"column `{column.name}`"
    return BadModelResult(
        f"{what} has a value that is too long to partition by: a folder's name has at most {LONGEST_FOLDER} bytes",
        hint="partition by something shorter, such as a hash or the first letters",
    )


# --- time -------------------------------------------------------------------------------------------------------------
_UNITS = {"hours": Grain.HOUR, "days": Grain.DAY, "months": Grain.MONTH, "years": Grain.YEAR}
_FORMATS = {Grain.HOUR: "%Y-%m-%d-%H", Grain.DAY: "%Y-%m-%d", Grain.MONTH: "%Y-%m", Grain.YEAR: "%Y"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeKey:
    """Which part of a partition's key says when its rows are: in a unit of time, or at the one moment of its value."""

    index: int
    unit: Grain | None
    time_format: str


def find_time_key(partition_columns: Sequence[PartitionColumn], time: Column, declared: TimeColumn) -> TimeKey | None:
    """The part of the key that is made from the time column alone, if any; of several the finest."""
    identity = _identity_expression(time.name)
    is_text = time.type == "string" or is_integer(time.type or "")
    time_format = declared.format or DEFAULT_TIME_FORMAT if is_text else "%Y-%m-%d"
    units = {} if is_text else {unit_key(name, time.name): unit for name, unit in _UNITS.items()}
    found: list[TimeKey] = []
    for index, column in enumerate(partition_columns):
        unit = units.get(column.expression or "")
        is_itself = column.expression == identity or (not column.is_hidden and column.name == time.name)
        if (is_itself and (is_text or time.type == "date")) or (unit is Grain.DAY and time.type == "date"):
            found.append(TimeKey(index=index, unit=None, time_format=time_format))
        elif unit is not None:
            found.append(TimeKey(index=index, unit=unit, time_format=_FORMATS[unit]))
    return min(found, key=lambda key: key.unit.smallest_micros if key.unit else 0, default=None)


def touch(key: PartitionKey, time_key: TimeKey, interval: Interval) -> Touch:
    """How the rows of a partition lie to the interval, from its key alone.

    A month or a year that lies partly inside says nothing: it may have many partitions, of which few hold such rows.
    """
    value = key[time_key.index]
    if value is None:
        # Rows without a time are never written under an interval.
        return "outside"
    moment = _read(value, time_key.time_format)
    if moment is None:
        return "unknown"
    unit = time_key.unit
    if unit is None:
        return "inside" if interval.contains(moment) else "outside"
    try:
        time = Interval(moment, unit.next(moment))
    except BadTime:
        return "unknown"
    if interval.contains(time):
        return "inside"
    if not interval.overlaps(time):
        return "outside"
    return "unknown" if unit.calendar_months else "partly"


def _read(value: str, time_format: str) -> Instant | None:
    """The moment a text stands for, when Python and Spark are sure to agree about it."""
    if _DIGIT_FORMAT.fullmatch(time_format) is None:
        return None
    try:
        moment = datetime.strptime(value, time_format).replace(tzinfo=timezone.utc)
    except ValueError:
        return None
    return Instant.of(moment) if moment.strftime(time_format) == value else None
