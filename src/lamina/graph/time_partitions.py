"""Expressions of `partitioned_by` that say when the rows of a partition are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lamina.timeline.grain import Grain

if TYPE_CHECKING:
    from lamina.graph.kinds import TimeColumn

TIME_TRANSFORM = re.compile(r"(years?|months?|days?|hours?)\s*\(\s*(\w+|`(?:[^`]|``)+`)\s*\)", re.IGNORECASE)
_NAME = re.compile(r"\w+|`(?:[^`]|``)+`")
_AS_SPARK_WRITES_IT = (None, "%Y-%m-%d")
_GRAINS = {"year": Grain.YEAR, "month": Grain.MONTH, "day": Grain.DAY, "hour": Grain.HOUR}


def grain_of_partition(expression: str, time: TimeColumn) -> Grain | None:
    """The unit of which no two share a partition by this expression; None where nobody can tell.

    A time column by itself counts by the day, which is what a timestamp is partitioned by. Whether a transform reads
    texts as the times that they are is sure only of dates as Spark writes them.
    """
    text = expression.strip()
    if _NAME.fullmatch(text):
        return Grain.DAY if _is_time(text, time) else None
    transform = TIME_TRANSFORM.fullmatch(text)
    if transform is None or not _is_time(transform[2], time) or time.format not in _AS_SPARK_WRITES_IT:
        return None
    return _GRAINS[transform[1].lower().removesuffix("s")]


def _is_time(name: str, time: TimeColumn) -> bool:
    plain = name[1:-1].replace("``", "`") if name.startswith("`") else name
    return plain.casefold() == time.name.casefold()
