"""The time variables that queries can use, such as `@start_ds` and `@end_ts`."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamina.timeline.interval import Instant, Interval

TimeKind: TypeAlias = Literal["timestamp", "timestamp_ntz", "date", "string", "float", "int"]

_MICROS_PER_MILLI = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeValue:
    """The value of a time variable: which SQL type it has, and its text or number."""

    kind: TimeKind
    value: str | float | int


def time_values(interval: Interval | None, execution: Instant) -> Mapping[str, TimeValue]:
    """Every time variable by name, in lower case and without `@`; all of it UTC.

    `end_*` is the last microsecond of the interval, so that `BETWEEN @start_x AND @end_x` is right for every suffix.
    `latest_*` is another name for `execution_*`. Without an interval there is no `start_*` and no `end_*`.
    """
    moments = {"execution": execution, "latest": execution}
    if interval is not None:
        moments |= {"start": interval.start, "end": interval.end.minus(1)}
    return MappingProxyType(
        {f"{prefix}_{suffix}": value for prefix, moment in moments.items() for suffix, value in _forms(moment).items()}
    )


def _forms(instant: Instant) -> dict[str, TimeValue]:
    """One moment under every suffix."""
    moment = instant.to_datetime()
    with_zone = str(moment)
    without_zone = str(moment.replace(tzinfo=None))
    day = moment.date().isoformat()
    # Rounded down, also before 1970, so that a moment never leaves its interval.
    millis = instant.micros // _MICROS_PER_MILLI
    return {
        "dt": TimeValue(kind="timestamp", value=with_zone),
        "dtntz": TimeValue(kind="timestamp_ntz", value=without_zone),
        "date": TimeValue(kind="date", value=day),
        "ds": TimeValue(kind="string", value=day),
        "ts": TimeValue(kind="string", value=without_zone),
        "tstz": TimeValue(kind="string", value=with_zone),
        "epoch": TimeValue(kind="float", value=millis / 1000),
        "millis": TimeValue(kind="int", value=millis),
        "hour": TimeValue(kind="int", value=moment.hour),
    }
