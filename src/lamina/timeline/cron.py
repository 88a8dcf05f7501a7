"""When a schedule ticks.

`cronsim` reads the expression and walks the calendar of a clock on the wall that never changes. What daylight saving
does to that clock is decided here, in two rules:

- A schedule that names its hours ticks once for each time it names: at the first moment the local clock shows that time
  or a later one. So a daily tick moves to the end of an hour that is skipped, and takes the first of an hour that comes
  twice.
- A schedule that runs in every hour follows real time: it ticks whenever the local clock shows a fitting time, so a
  skipped hour has no ticks and a repeated one has them twice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from lamina.errors import BadSchedule, BadTime
from lamina.near_names import near_names
from lamina.timeline.grain import Grain
from lamina.timeline.interval import MICROS_PER_MINUTE, Instant

if TYPE_CHECKING:
    from collections.abc import Iterator

_ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_FIELDS = ("minute", "hour", "day-of-month", "month", "day-of-week")
_EXAMPLES = "Write five fields like `0 6 * * *` or `*/15 * * * *`, or a name like `@daily`"
_FIELD_TEXT = re.compile(r"[0-9A-Z*,/#-]{1,200}")

_ALL_HOURS = frozenset(range(24))
_MINUTES_PER_DAY = 24 * 60
_SHORTEST_GAP_MINUTES = 5

_UTC = "UTC"
_NONE = timedelta(0)
_SECOND = timedelta(seconds=1)
_MINUTE = timedelta(minutes=1)
_DAY = timedelta(days=1)

_SURVEY_START = datetime(1999, 12, 31, 23, 59, tzinfo=timezone.utc)
# Five years from here hold two leap days; twenty-eight hold every combination of leap year and weekday.
_DAYS_OF_MONTH_REPEAT = timedelta(days=5 * 365 + 2)
_WEEKDAYS_REPEAT = timedelta(days=28 * 365 + 7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When something may run: five cron fields and the zone whose clock they are read on. Made by `Schedule.parse`.

    >>> daily = Schedule.parse("@daily", "America/New_York")
    >>> daily.next_tick(Instant.parse_iso("2024-03-10T12:00:00Z")).isoformat()
    '2024-03-11T04:00:00Z'
    """

    expression: str
    timezone: str

    @classmethod
    def parse(cls, expression: str, timezone: str = _UTC) -> Schedule:
        """Read an expression or an alias like `@daily`; raise `BadSchedule` for what cannot be used."""
        fields = _expand(expression)
        if not _ever_ticks(fields):
            raise BadSchedule(
                f"cron `{expression}` never ticks: no date fits its day-of-month, month and day-of-week fields",
                hint="Choose a day that exists in one of the months, like `0 0 28 2 *`",
            )
        if _smallest_gap_minutes(fields) < _SHORTEST_GAP_MINUTES:
            raise BadSchedule(
                f"cron `{expression}` has ticks less than five minutes apart",
                hint="Use `*/5 * * * *` or slower; steps that do not divide an hour leave a short gap at its end",
            )
        _zone(timezone)
        return cls(expression=fields, timezone=timezone)

    def grain(self) -> Grain:
        """The largest unit that is not longer than the smallest gap between two ticks."""
        return Grain.largest_within(_smallest_gap_minutes(self.expression) * MICROS_PER_MINUTE)

    def previous_tick(self, instant: Instant) -> Instant:
        """The last tick at or before the instant."""
        return self._nearest_tick(instant, forward=False)

    def next_tick(self, instant: Instant) -> Instant:
        """The first tick after the instant."""
        return self._nearest_tick(instant, forward=True)

    def _nearest_tick(self, instant: Instant, *, forward: bool) -> Instant:
        try:
            return Instant.of(self._search(instant.to_datetime().replace(tzinfo=None), forward=forward))
        except OverflowError as problem:
            side = "after" if forward else "before"
            raise BadTime(
                f"cron `{self.expression}` has no tick {side} `{instant}` within the years 1 to 9999",
                hint="Use a time further inside these years",
            ) from problem

    def _search(self, moment: datetime, *, forward: bool) -> datetime:
        """The tick nearest to a UTC moment on one side of it.

        Times on the wall and moments come in the same order except where clocks change. There, the walk starts earlier
        by the size of the change, and goes on by as much after the first find.
        """
        zone = _zone(self.timezone)
        every_hour = _runs_every_hour(self.expression)
        found: datetime | None = None
        start = limit = _wall(moment, zone)
        change = _clock_change(moment, zone)
        for wall in _walls(self.expression, start - change if forward else start + change, forward=forward):
            if found is not None and (wall > limit if forward else wall < limit):
                break
            for tick in _moments(wall, zone, every_hour=every_hour):
                is_beyond = tick > moment if forward else tick <= moment
                if is_beyond and (found is None or (tick < found if forward else tick > found)):
                    found = tick
                    change = _clock_change(found, zone)
                    limit = wall + change if forward else wall - change
            if found is not None and not change:
                break
        if found is None:
            raise OverflowError("no tick")
        return found


def _expand(expression: str) -> str:
    """The five fields of an expression or alias, in one spelling."""
    text = expression.strip()
    if text.startswith("@"):
        if text.lower() in _ALIASES:
            return _ALIASES[text.lower()]
        near = near_names(text.lower(), _ALIASES)
        known = ", ".join(f"`{alias}`" for alias in _ALIASES)
        raise BadSchedule(
            f"cron `{expression}` is not a known name",
            hint=f"Did you mean `{near[0]}`? The names are {known}" if near else f"The names are {known}",
        )
    fields = text.upper().split()
    if len(fields) != len(_FIELDS):
        raise BadSchedule(
            f"cron `{expression}` does not have five fields ({', '.join(_FIELDS)}) but {len(fields)}",
            hint=_EXAMPLES,
        )
    for position, field in enumerate(fields):
        alone = ["*"] * len(_FIELDS)
        alone[position] = field
        if not _FIELD_TEXT.fullmatch(field) or not _is_readable(" ".join(alone)):
            raise BadSchedule(
                f"cron `{expression}` has an unreadable {_FIELDS[position]} field: `{field}`", hint=_EXAMPLES
            )
    return " ".join(fields)


def _is_readable(fields: str) -> bool:
    try:
        CronSim(fields, _SURVEY_START)
    except (CronSimError, AssertionError, TypeError, ValueError):
        # The reader promises the first; the others escape from it for odd combinations such as `MON#1/2`.
        return False
    return True


def _zone(name: str) -> ZoneInfo:
    """The zone of that name."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as problem:
        by_lower = {known.lower(): known for known in available_timezones()}
        near = near_names(name.lower(), by_lower)
        hint = "Use an IANA name like `Europe/Berlin` or `UTC`"
        raise BadSchedule(
            f"`{name}` is not a known time zone",
            hint=f"Did you mean `{by_lower[near[0]]}`? {hint}" if near else hint,
        ) from problem


def _ever_ticks(fields: str) -> bool:
    return _is_readable(fields) and next(CronSim(fields, _SURVEY_START), None) is not None


@lru_cache(maxsize=1024)
def _runs_every_hour(fields: str) -> bool:
    return CronSim(fields, _SURVEY_START).hours >= _ALL_HOURS


@lru_cache(maxsize=1024)
def _smallest_gap_minutes(fields: str) -> int:
    """The shortest time between two ticks on a clock that never changes, as exactly as the unit depends on it."""
    sets = CronSim(fields, _SURVEY_START)
    ticks = sorted(60 * hour + minute for hour in sets.hours for minute in sets.minutes)
    gaps = [later - earlier for earlier, later in pairwise(ticks)]
    over_midnight = _MINUTES_PER_DAY - ticks[-1] + ticks[0]
    if gaps and min(gaps) <= over_midnight:
        return min(gaps)
    # With one tick a day, all gaps from a day to less than the shortest month mean the same unit.
    days = _smallest_gap_days(fields, enough=1 if gaps else 27)
    return min([*gaps, over_midnight + (days - 1) * _MINUTES_PER_DAY])


def _smallest_gap_days(fields: str, *, enough: int) -> int:
    """The fewest days from one day with ticks to the next, or the first distance found that is not above `enough`."""
    _, _, day, month, weekday = fields.split()
    survey = _DAYS_OF_MONTH_REPEAT if weekday == "*" and "W" not in day else _WEEKDAYS_REPEAT
    midnights = CronSim(f"0 0 {day} {month} {weekday}", _SURVEY_START)
    smallest = survey.days
    for earlier, later in pairwise(takewhile(lambda midnight: midnight - _SURVEY_START < survey, midnights)):
        smallest = min(smallest, (later - earlier).days)
        if smallest <= enough:
            break
    return smallest


def _walls(fields: str, start: datetime, *, forward: bool) -> Iterator[datetime]:
    """The times on the wall that fit: after the start going forward, from the start on going back."""
    minute = start.replace(second=0, microsecond=0)
    return CronSim(fields, minute) if forward else CronSim(fields, minute + _MINUTE, reverse=True)


def _moments(wall: datetime, zone: ZoneInfo, *, every_hour: bool) -> tuple[datetime, ...]:
    """The UTC moments at which a time on the wall makes a tick, under the two rules at the top of this file."""
    before = _offset(wall.replace(tzinfo=zone, fold=0))
    after = _offset(wall.replace(tzinfo=zone, fold=1))
    if before == after:
        return (wall - before,)
    if before > after:
        return (wall - before, wall - after) if every_hour else (wall - before,)
    return () if every_hour else (_end_of_gap(wall - after, wall - before, zone),)


def _end_of_gap(early: datetime, late: datetime, zone: ZoneInfo) -> datetime:
    """The moment the clock is put forward, between a moment before and one not before it."""
    old = _offset_at(early, zone)
    while late - early > _SECOND:
        middle = early + (late - early) // _SECOND // 2 * _SECOND
        if _offset_at(middle, zone) == old:
            early = middle
        else:
            late = middle
    return late


def _clock_change(moment: datetime, zone: ZoneInfo) -> timedelta:
    """By how much clocks are put forward or back within a day of the moment."""
    if zone.key == _UTC:
        return _NONE
    offsets = [_offset_at(near, zone) for near in (moment - _DAY, moment, moment + _DAY)]
    return max(offsets) - min(offsets)


def _wall(moment: datetime, zone: ZoneInfo) -> datetime:
    return moment + _offset_at(moment, zone)


def _offset_at(moment: datetime, zone: ZoneInfo) -> timedelta:
    return _offset(moment.replace(tzinfo=timezone.utc).astimezone(zone))


def _offset(local: datetime) -> timedelta:
    return local.utcoffset() or _NONE
