"""The rules of time once more, slowly: what every command of a long history should process, unit by unit.

Nothing here comes from the planner. Time is counted in whole hours since 1970, what is done is a set of unit starts,
and every question is answered by looking at each unit.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from functools import cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)
WHOLE = -1
"""Stands for the unit of a model that is computed whole."""


def hours(text: str) -> int:
    """Hours since 1970 of ISO text."""
    return (datetime.fromisoformat(text).replace(tzinfo=timezone.utc) - EPOCH) // HOUR


@cache
def moment(hour: int) -> datetime:
    return EPOCH + hour * HOUR


@cache
def day_text(hour: int) -> str:
    return f"{moment(hour):%Y-%m-%d}"


@cache
def hour_text(hour: int) -> str:
    return f"{moment(hour):%Y-%m-%dT%H:00:00Z}"


# --- the grid ---------------------------------------------------------------------------------------------------------
@cache
def month_start(hour: int) -> int:
    return hours(f"{moment(hour):%Y-%m}-01")


def unit_start(grain: str, hour: int) -> int:
    if grain == "month":
        return month_start(hour)
    return hour if grain == "hour" else hour // 24 * 24


def unit_end(grain: str, start: int) -> int:
    if grain == "month":
        return month_start(start + 31 * 24)
    return start + (1 if grain == "hour" else 24)


def units_between(grain: str, begin: int, end: int) -> Iterator[int]:
    """Units from one boundary up to a moment, whole ones only."""
    if grain != "month":
        step = unit_end(grain, 0)
        yield from range(begin, end - step + 1, step)
        return
    unit = begin
    while unit_end(grain, unit) <= end:
        yield unit
        unit = unit_end(grain, unit)


def last_local_time(at: int, now: int, zone: str = "UTC", weekday: int | None = None, day: int | None = None) -> int:
    """The last full hour until `now` at which a clock in the zone shows this hour, on such a day."""
    while True:
        local = moment(now).astimezone(ZoneInfo(zone))
        if local.hour == at and weekday in {None, local.weekday()} and day in {None, local.day}:
            return now
        now -= 1


# --- what there is ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What is declared of one model.

    `reads` says how many hours before its unit each parent is read, `None` for all of its past; what is read always
    ends with the unit. `tick` answers the last tick of the schedule until a moment.
    """

    name: str
    reads: Mapping[str, int | None]
    source: str | None = None
    grain: Literal["hour", "day", "month"] = "day"
    tick: Callable[[int], int]
    start: int = 0
    lookback: int = 0
    batch_size: int | None = None
    is_whole: bool = False
    follows: bool = True


@dataclass(slots=True)
class Book:
    """What was done of one model so far."""

    done: set[int] = field(default_factory=set)
    known: set[int] = field(default_factory=set)
    """Everything that was ever done, counting now or not."""
    dirty: set[int] = field(default_factory=set)
    """Done units that read what came out different since."""
    values: dict[int, str] = field(default_factory=dict)
    moved: int = 0
    """How often its rows changed in any way."""
    seen: dict[str, int] = field(default_factory=dict)
    """What `moved` was of each parent when a whole model was computed."""
    built: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command: `run`, or a build that restates a model over whole days."""

    now: int
    is_cron_ignored: bool = False
    restated: str | None = None
    begin: int | None = None
    end: int | None = None
    failing: str | None = None
    batches_before_failure: int = 0

    @property
    def is_build(self) -> bool:
        return self.restated is not None


class Books:
    """The books of all models; `perform` enters one command and answers what it should process."""

    def __init__(self, rules: Iterable[Rules], sources: Mapping[str, Mapping[str, str]]) -> None:
        self.rules = {one.name: one for one in rules}
        self.sources = sources
        self.books = {name: Book() for name in self.rules}
        self._after: dict[str, set[int]] = {}
        """What each model will have done when the work planned for it is done."""

    def perform(self, command: Command) -> Counter[tuple[str, int]]:
        """Every unit that is processed, and how often."""
        planned = {name: self._plan(name, command) for name in self.rules if not self.rules[name].is_whole}
        for name, plan in planned.items():
            book = self.books[name]
            book.done -= plan.again
            book.dirty -= plan.again
        processed: Counter[tuple[str, int]] = Counter()
        stopped: set[str] = set()
        for name, rules in self.rules.items():
            if self._above(name) & stopped:
                stopped.add(name)
            elif rules.is_whole:
                if self._is_whole_due(name, command):
                    if command.failing == name and command.batches_before_failure == 0:
                        stopped.add(name)
                        continue
                    processed[name, WHOLE] += 1
                    self._build_whole(name, command)
            else:
                self._work(name, planned[name], command, processed, stopped)
        return processed

    # --- planning one model ---
    def _plan(self, name: str, command: Command) -> _Plan:
        rules, book = self.rules[name], self.books[name]
        begin, end = self._asked(rules, command)
        missing = set(units_between(rules.grain, begin, end)) - book.done
        again = set(book.dirty) if rules.follows else set()
        if command.restated == name:
            assert command.begin is not None
            assert command.end is not None
            possible = book.known | missing
            again |= {u for u in possible if u < command.end and unit_end(rules.grain, u) > command.begin}
        if command.restated in {name, *self._above(name)}:
            # What an earlier try opened again and did not come to is finished along, wherever it lies.
            again |= book.known - book.done
        wanted = missing | again
        ready = {unit for unit in wanted if self._is_readable(rules, unit)}
        fresh = (missing & ready) - book.known
        before = {unit for one in fresh for unit in self._units_before(rules, one)} - wanted
        # Only what was computed before is looked at again.
        before &= book.known
        certain = ready | {unit for unit in before if self._is_readable(rules, unit)}
        self._after[name] = (book.done - again) | certain
        return _Plan(certain=certain, again=again & book.done)

    def _asked(self, rules: Rules, command: Command) -> tuple[int, int]:
        released = command.now if command.is_build or command.is_cron_ignored else rules.tick(command.now)
        begin = rules.start
        if command.begin is not None:
            begin = max(begin, unit_start(rules.grain, command.begin))
        return begin, released if command.end is None else min(released, command.end)

    def _units_before(self, rules: Rules, unit: int) -> Iterator[int]:
        for _ in range(rules.lookback):
            unit = unit_start(rules.grain, unit - 1)
            if unit >= rules.start:
                yield unit

    def _is_readable(self, rules: Rules, unit: int) -> bool:
        """Whether every parent covers what the unit reads once its own planned work is done."""
        for parent, back in rules.reads.items():
            above = self.rules[parent]
            if above.is_whole:
                continue
            end = unit_end(rules.grain, unit)
            first = above.start if back is None else max(above.start, unit_start(above.grain, unit - back))
            while first < end:
                if first not in self._after[parent]:
                    return False
                first = unit_end(above.grain, first)
        return True

    # --- doing the work of one model ---
    def _work(
        self,
        name: str,
        plan: _Plan,
        command: Command,
        processed: Counter[tuple[str, int]],
        stopped: set[str],
    ) -> None:
        rules, book = self.rules[name], self.books[name]
        reached = set(book.dirty) if rules.follows else set()
        work = plan.certain | {unit for unit in reached if self._is_readable(rules, unit)}
        if not work:
            return
        book.done -= reached
        book.dirty -= reached
        for number, batch in enumerate(batches(rules, work)):
            if command.failing == name and number == command.batches_before_failure:
                book.done -= set(batch)
                stopped.add(name)
                return
            self._process(name, batch)
            processed.update((name, unit) for unit in batch)

    def _process(self, name: str, batch: list[int]) -> None:
        book = self.books[name]
        changed = set()
        for unit in batch:
            value = self._value(self.rules[name], unit)
            if unit in book.known and value != book.values.get(unit):
                changed.add(unit)
            book.values.pop(unit, None)
            if value is not None:
                book.values[unit] = value
        if changed or not set(batch) <= book.known:
            book.moved += 1
        book.done |= set(batch)
        book.known |= set(batch)
        for child, rules in self.rules.items():
            if name in rules.reads and not rules.is_whole:
                self._reach(rules, self.books[child], name, changed)

    def _reach(self, rules: Rules, book: Book, parent: str, changed: set[int]) -> None:
        """Mark the done units of a child that read one of the changed ones."""
        if not changed:
            return
        back, grain = rules.reads[parent], self.rules[parent].grain
        first, last = min(changed), unit_end(grain, max(changed))
        for unit in book.done:
            end = unit_end(rules.grain, unit)
            begin = None if back is None else unit - back
            if end <= first or (begin is not None and begin >= last):
                continue
            if any(one < end and (begin is None or unit_end(grain, one) > begin) for one in changed):
                book.dirty.add(unit)

    # --- models that are computed whole ---
    def _is_whole_due(self, name: str, command: Command) -> bool:
        rules, book = self.rules[name], self.books[name]
        if book.built < 0 or command.restated == name:
            return True
        if any(self.books[parent].moved != book.seen.get(parent) for parent in rules.reads):
            return True
        if rules.source is None or command.is_build:
            return False
        return command.is_cron_ignored or rules.tick(command.now) > book.built

    def _build_whole(self, name: str, command: Command) -> None:
        rules, book = self.rules[name], self.books[name]
        before = book.values.get(WHOLE)
        rows: list[tuple[str | None, int, str]] = [
            (parent, u, v) for parent in rules.reads for u, v in self.books[parent].values.items()
        ]
        rows += [(rules.source, 0, f"{u}={v}") for u, v in self.sources.get(rules.source or "", {}).items()]
        book.values[WHOLE] = digest(rows)
        book.moved += before != book.values[WHOLE]
        book.seen = {parent: self.books[parent].moved for parent in rules.reads}
        book.built = command.now

    # --- what the queries give ---
    def _value(self, rules: Rules, unit: int) -> str | None:
        """One value of everything a unit reads; nothing when there is nothing to read."""
        end, read = unit_end(rules.grain, unit), []
        if rules.source is not None:
            text = hour_text(unit) if rules.grain == "hour" else day_text(unit)
            if text in self.sources[rules.source]:
                read.append((rules.source, unit, self.sources[rules.source][text]))
        for parent, back in rules.reads.items():
            values = self.books[parent].values
            if back is None:
                read += [(parent, u, v) for u, v in values.items() if u < end]
            else:
                # A row belongs to the moment its unit starts.
                step = 1 if self.rules[parent].grain == "hour" else 24
                begin = -((back - unit) // step) * step
                read += [(parent, u, values[u]) for u in range(begin, end, step) if u in values]
        return digest(read) if read else None

    def _above(self, name: str) -> set[str]:
        found: set[str] = set()
        waiting = [*self.rules[name].reads]
        while waiting:
            parent = waiting.pop()
            if parent not in found:
                found.add(parent)
                waiting.extend(self.rules[parent].reads)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    certain: set[int]
    again: set[int]


def batches(rules: Rules, units: set[int]) -> list[list[int]]:
    """Neighbouring units together, as many as a batch may hold, oldest first."""
    found: list[list[int]] = []
    for unit in sorted(units):
        is_next = bool(found) and unit_end(rules.grain, found[-1][-1]) == unit
        if is_next and (rules.batch_size is None or len(found[-1]) < rules.batch_size):
            found[-1].append(unit)
        else:
            found.append([unit])
    return found


@cache
def _number(name: str, unit: int, value: str) -> int:
    return int.from_bytes(blake2b(f"{name} {unit} {value}".encode(), digest_size=8).digest(), "big")


def digest(rows: Iterable[tuple[str | None, int, str]]) -> str:
    """A text that is the same for the same rows in any order, and for no others."""
    return f"{sum(_number(str(name), unit, value) for name, unit, value in rows) % 2**64:016x}"
