"""Times, counts and values as people read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lamina.timeline.interval import MICROS_PER_DAY, MICROS_PER_SECOND, Instant, Interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lamina.timeline.interval import Intervals

_SHOWN_RANGES = 4


def count_of(number: int, noun: str) -> str:
    """A number with its noun: `1 batch`, `3 batches`."""
    if number == 1:
        return f"1 {noun}"
    plural = f"{noun}es" if noun.endswith(("ch", "s", "x")) else f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {plural}"


def seconds_words(seconds: float) -> str:
    """How long something took: `0.4 s`, `2 min 05 s`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def moment_words(moment: Instant) -> str:
    """A moment: the date alone at midnight, else to the minute or as exact as needed."""
    date, _, clock = moment.isoformat().removesuffix("Z").partition("T")
    if moment.micros % MICROS_PER_DAY == 0:
        return date
    return f"{date} {clock.removesuffix(':00')}"


def date_time_words(moment: Instant | None) -> str:
    """A moment to the second; nothing for `None`."""
    if moment is None:
        return ""
    whole = Instant(moment.micros - moment.micros % MICROS_PER_SECOND)
    return whole.isoformat().replace("T", " ").removesuffix("Z")


def interval_words(interval: Interval | Sequence[str]) -> str:
    """A range of time; whole days are named by their first and last day."""
    known = interval if isinstance(interval, Interval) else Interval.from_pair(interval)
    if known.start.micros % MICROS_PER_DAY == 0 and known.end.micros % MICROS_PER_DAY == 0:
        first, last = moment_words(known.start), moment_words(known.end.minus(MICROS_PER_DAY))
        return first if first == last else f"{first} to {last}"
    return f"{moment_words(known.start)} until {moment_words(known.end)} UTC"


def intervals_words(intervals: Intervals | Iterable[Interval], *, is_complete: bool = False) -> str:
    """Ranges of time in one line; of many only the first few unless `is_complete`."""
    known = [interval_words(interval) for interval in intervals]
    if is_complete or len(known) <= _SHOWN_RANGES + 1:
        return ", ".join(known)
    return f"{', '.join(known[:_SHOWN_RANGES])} and {len(known) - _SHOWN_RANGES} more ranges"


def printable(value: Any) -> str:
    """Text without the control characters that could command a terminal."""
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" else letter.encode("unicode_escape").decode("ascii")
        for letter in str(value)
    )


def short(version: str | None) -> str:
    """The beginning of a version's hash: enough to tell two of them apart."""
    return version[:8] if version else ""
