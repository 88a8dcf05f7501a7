"""The rules of time, slowly and obviously: sets of unit starts, loops over every unit, no arithmetic on ranges.

A unit is known by the moment it starts. Everything is written from what the design promises, not from the planner; it
shares nothing with it but the names of units.
"""

from __future__ import annotations

import calendar
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

UTC = timezone.utc
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
MINUTES = {"five_minute": 5, "quarter_hour": 15, "half_hour": 30, "hour": 60, "day": 24 * 60}
Piece = tuple[datetime, datetime]
"""A unit, or what is over of it, with both its ends."""


# --- the grid ---------------------------------------------------------------------------------------------------------
def unit_at(unit: str, moment: datetime) -> datetime:
    """The start of the unit that a moment lies in."""
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    if unit == "year":
        return midnight.replace(month=1, day=1)
    if unit == "month":
        return midnight.replace(day=1)
    start = midnight
    while start + MINUTES[unit] * MINUTE <= moment:
        start += MINUTES[unit] * MINUTE
    return start


def unit_after(unit: str, start: datetime) -> datetime:
    """The start of the next unit."""
    if unit == "year":
        return start.replace(year=start.year + 1)
    if unit == "month":
        return start.replace(year=start.year + start.month // 12, month=start.month % 12 + 1)
    return start + MINUTES[unit] * MINUTE


def unit_before(unit: str, start: datetime) -> datetime:
    """The start of the unit before."""
    return unit_at(unit, start - timedelta(microseconds=1))


def units(unit: str, begin: datetime, end: datetime) -> list[datetime]:
    """The starts of the whole units between a boundary and a moment."""
    found, start = [], begin
    while unit_after(unit, start) <= end:
        found.append(start)
        start = unit_after(unit, start)
    return found


def pieces(unit: str, ranges: Iterable[Piece]) -> set[Piece]:
    """Ranges cut where units begin."""
    found = set()
    for begin, end in ranges:
        start = begin
        while start < end:
            next_ = min(unit_after(unit, unit_at(unit, start)), end)
            found.add((start, next_))
            start = next_
    return found


# --- schedules --------------------------------------------------------------------------------------------------------
def last_of_month(day: date) -> bool:
    return day.day == calendar.monthrange(day.year, day.month)[1]


@dataclass(frozen=True)
class Cron:
    """An expression, what it means, and the unit that follows from it."""

    expression: str
    unit: str
    minutes: tuple[int, ...] = (0,)
    hours: tuple[int, ...] = (0,)
    fits: Callable[[date], bool] = lambda _: True

    def __repr__(self) -> str:
        return self.expression


EVERY_HOUR = tuple(range(24))
CRONS = (
    Cron("@hourly", "hour", hours=EVERY_HOUR),
    Cron("@daily", "day"),
    Cron("@midnight", "day"),
    Cron("@weekly", "day", fits=lambda day: day.isoweekday() == 7),
    Cron("@monthly", "month", fits=lambda day: day.day == 1),
    Cron("@yearly", "year", fits=lambda day: (day.month, day.day) == (1, 1)),
    Cron("@annually", "year", fits=lambda day: (day.month, day.day) == (1, 1)),
    Cron("*/5 * * * *", "five_minute", minutes=tuple(range(0, 60, 5)), hours=EVERY_HOUR),
    Cron("*/20 * * * *", "quarter_hour", minutes=(0, 20, 40), hours=EVERY_HOUR),
    Cron("*/30 * * * *", "half_hour", minutes=(0, 30), hours=EVERY_HOUR),
    Cron("30 */6 * * *", "hour", minutes=(30,), hours=(0, 6, 12, 18)),
    Cron("0 6 * * *", "day", hours=(6,)),
    # Hours that daylight saving skips or repeats.
    Cron("15 2 * * *", "day", minutes=(15,), hours=(2,)),
    Cron("30 1 * * *", "day", minutes=(30,), hours=(1,)),
    Cron("0 1-3 * * *", "hour", hours=(1, 2, 3)),
    Cron("0 6 * * 1-5", "day", hours=(6,), fits=lambda day: day.isoweekday() < 6),
    Cron("0 0 1,15 * *", "day", fits=lambda day: day.day in {1, 15}),
    Cron("0 12 L * *", "month", hours=(12,), fits=last_of_month),
    Cron("0 0 1 */3 *", "month", fits=lambda day: day.day == 1 and day.month in {1, 4, 7, 10}),
    Cron("0 0 29 2 *", "year", fits=lambda day: (day.month, day.day) == (2, 29)),
    # Where both kinds of days are named, either will do.
    Cron("0 0 13 * FRI", "day", fits=lambda day: day.day == 13 or day.isoweekday() == 5),
)


def last_tick(cron: Cron, zone: str, now: datetime) -> datetime:
    """The last tick until now: days are looked at from tomorrow back until one has brought a tick."""
    day = now.astimezone(ZoneInfo(zone)).date() + DAY
    latest: datetime | None = None
    while True:
        if cron.fits(day):
            found = [tick for tick in ticks_of_day(cron, zone, day) if tick <= now]
            if latest is not None:
                return max([latest, *found])
            latest = max(found, default=None)
        elif latest is not None:
            return latest
        day -= DAY


def ticks_of_day(cron: Cron, zone: str, day: date) -> Iterator[datetime]:
    """The moments at which a day of the local calendar brings a tick.

    A schedule for every hour ticks whenever the local clock shows a fitting time. One that names its hours ticks once
    for each: at the first moment the local clock shows that time or a later one.
    """
    local = ZoneInfo(zone)
    for hour in cron.hours:
        for minute in cron.minutes:
            wall = datetime(day.year, day.month, day.day, hour, minute)
            twice = {wall.replace(tzinfo=local, fold=fold).astimezone(UTC) for fold in (0, 1)}
            if cron.hours == EVERY_HOUR:
                yield from (moment for moment in twice if moment.astimezone(local).replace(tzinfo=None) == wall)
            else:
                moment = min(twice) - 180 * MINUTE
                while moment.astimezone(local).replace(tzinfo=None) < wall:
                    moment += MINUTE
                yield moment


# --- missing ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Asked:
    """What bounds the time of a model in a command; ends are exclusive moments."""

    cron: Cron
    zone: str
    start: datetime
    now: datetime
    is_cron_respected: bool
    ends: tuple[datetime, ...] = ()
    command_start: datetime | None = None
    allows_partials: bool = False


def asked(question: Asked) -> set[Piece]:
    """Every unit a command is about, and with partials what is over of the one after them."""
    unit = question.cron.unit
    released = question.now
    if question.is_cron_respected:
        released = last_tick(question.cron, question.zone, question.now)
    limit = min([released, *question.ends])
    start = unit_at(unit, question.start)
    if question.command_start is not None:
        start = max(start, unit_at(unit, question.command_start))
    found = {(one, unit_after(unit, one)) for one in units(unit, start, limit)}
    if question.allows_partials and start < limit and unit_at(unit, limit) < limit:
        found.add((unit_at(unit, limit), limit))
    return found


def looked_back(unit: str, missing: Iterable[datetime], start: datetime, lookback: int) -> set[datetime]:
    """Missing units and so many before each of them, none before the model begins."""
    found = set()
    for one in missing:
        found.add(one)
        earlier = one
        for _ in range(lookback):
            earlier = unit_before(unit, earlier)
            if earlier >= start:
                found.add(earlier)
    return found


def batches(unit: str, missing: Iterable[datetime], size: int | None) -> list[list[datetime]]:
    """Neighbours together, so many at most, oldest first."""
    found: list[list[datetime]] = []
    for one in sorted(missing):
        if found and unit_after(unit, found[-1][-1]) == one and (size is None or len(found[-1]) < size):
            found[-1].append(one)
        else:
            found.append([one])
    return found


# --- windows ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Bound:
    """A moment relative to a unit: months are added first, to the last day of a month that is too short."""

    is_end: bool
    months: int = 0
    shift: timedelta = timedelta(0)

    def of(self, unit: str, start: datetime) -> datetime:
        moment = unit_after(unit, start) if self.is_end else start
        number = moment.year * 12 + moment.month - 1 + self.months
        year, month = divmod(number, 12)
        day = min(moment.day, calendar.monthrange(year, month + 1)[1])
        return moment.replace(year=year, month=month + 1, day=day) + self.shift


@dataclass(frozen=True)
class Window:
    """What a unit reads of a parent: from one bound to another. Open to the past without the first; without the
    second it ends with the unit."""

    lower: Bound | None = None
    upper: Bound | None = None

    def until(self, unit: str, start: datetime) -> datetime:
        """Where what a unit reads ends."""
        return unit_after(unit, start) if self.upper is None else self.upper.of(unit, start)

    def meets(self, unit: str, start: datetime, begin: datetime, end: datetime) -> bool:
        """Whether a unit reads anything of a stretch."""
        first = begin if self.lower is None else max(begin, self.lower.of(unit, start))
        return first < min(self.until(unit, start), end)

    def reads_something(self, unit: str, start: datetime) -> bool:
        """Whether the bounds leave anything between them."""
        return self.lower is None or self.lower.of(unit, start) < self.until(unit, start)


@dataclass(frozen=True)
class Parent:
    """A parent with intervals: where it begins, its own end if it has one, and the units it will have."""

    unit: str
    begin: datetime
    done: frozenset[datetime]
    end: datetime | None = None


def is_ready(unit: str, start: datetime, parents: Iterable[tuple[Parent, Window]]) -> bool:
    """Whether every parent has all that the unit reads, as far as the parent's own time goes."""
    for parent, window in parents:
        one = parent.begin
        while one < window.until(unit, start):
            after = unit_after(parent.unit, one)
            end = after if parent.end is None else min(after, parent.end)
            if one not in parent.done and one < end and window.meets(unit, start, one, end):
                return False
            one = after
    return True


def reading(unit: str, among: Iterable[datetime], window: Window, stretches: Iterable[Piece]) -> set[datetime]:
    """The units that read anything of any stretch."""
    known = list(stretches)
    return {one for one in among if any(window.meets(unit, one, begin, end) for begin, end in known)}


# --- cascades ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Node:
    """A model in a graph: parents that store rows, with the window into each; `unit` is None for whole tables."""

    unit: str | None
    parents: Mapping[str, Window]
    done: frozenset[datetime] = frozenset()
    follows: bool = True


def cascade(nodes: Mapping[str, Node], restated: str, again: set[datetime]) -> dict[str, set[datetime] | None]:
    """What may be reached in every model when some units of one come out different; None is a whole table."""
    found: dict[str, set[datetime] | None] = {restated: again}
    for name, node in nodes.items():
        if name == restated or not node.follows:
            continue
        above = {parent: found[parent] for parent in node.parents if parent in found}
        if not above:
            continue
        if node.unit is None:
            found[name] = None
            continue
        reached: set[datetime] = set()
        for parent, changed in above.items():
            unit = nodes[parent].unit
            if changed is None or unit is None:
                reached |= node.done
            else:
                stretches = [(one, unit_after(unit, one)) for one in changed]
                reached |= reading(node.unit, node.done, node.parents[parent], stretches)
        if reached:
            found[name] = reached
    return found
