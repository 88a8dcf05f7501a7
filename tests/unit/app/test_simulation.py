"""Four hundred days of `run` with everything that happens in a year, against books that are kept unit by unit."""

from __future__ import annotations

import random
import re
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pytest

from lamina.errors import QueryFailed
from lamina.graph.kinds import IncrementalByTimeRange, TimeColumn, View
from lamina.graph.names import NodeName
from lamina.sql.lineage.input_windows import InputWindow, Offset
from lamina.timeline.grain import Grain
from lamina.timeline.interval import MICROS_PER_HOUR
from tests.kit.app import LEASE_TIME, Killed, Place, reading
from tests.kit.bookkeeping import (
    WHOLE,
    Books,
    Command,
    Rules,
    day_text,
    digest,
    hour_text,
    hours,
    last_local_time,
    unit_end,
    units_between,
)
from tests.kit.engine import is_generation, names_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lamina.graph.model import Model
    from lamina.timeline.interval import Interval
    from tests.kit.app import Process
    from tests.kit.engine import Row

pytestmark = pytest.mark.slow

FIRST = hours("2023-11-20")
AFTER = FIRST + 24 * 480
WEEK = 7 * 24
NEW_YORK = "America/New_York"

midnight = partial(last_local_time, 0)
RULES = (
    Rules(
        name="sim.clicks", reads={}, source="raw.clicks", grain="hour", tick=lambda now: now, start=FIRST, lookback=6
    ),
    Rules(
        name="sim.orders",
        reads={},
        source="raw.orders",
        tick=lambda now: midnight(now, NEW_YORK),
        start=FIRST,
        lookback=2,
    ),
    # An hour that waits for a day.
    Rules(name="sim.hourly", reads={"sim.orders": 0}, grain="hour", tick=lambda now: now, start=FIRST),
    Rules(name="sim.daily", reads={"sim.clicks": 0}, tick=midnight, start=FIRST, batch_size=2),
    Rules(
        name="sim.trailing",
        reads={"sim.orders": WEEK, "sim.daily": 0},
        tick=lambda now: last_local_time(6, now),
        start=FIRST,
        lookback=1,
        batch_size=5,
    ),
    Rules(
        name="sim.weekly",
        reads={"sim.daily": 0},
        tick=lambda now: midnight(now, weekday=6),
        start=hours("2023-12-05"),
        lookback=1,
    ),
    Rules(
        name="sim.monthly",
        reads={"sim.trailing": 0, "sim.clicks": 0},
        grain="month",
        tick=lambda now: midnight(now, day=1),
        start=hours("2023-11-01"),
    ),
    Rules(name="sim.history", reads={"sim.orders": None}, tick=midnight, start=FIRST),
    Rules(name="sim.frozen", reads={"sim.orders": 0}, tick=midnight, start=FIRST, follows=False),
    Rules(name="sim.below", reads={"sim.orders": 24}, tick=midnight, start=FIRST),
    Rules(name="sim.totals", reads={"sim.trailing": None, "sim.monthly": None}, tick=midnight, is_whole=True),
    Rules(name="sim.ledger", reads={}, source="raw.other", tick=lambda now: midnight(now, weekday=6), is_whole=True),
)
CRONS = {
    "sim.clicks": "@hourly",
    "sim.hourly": "@hourly",
    "sim.trailing": "0 6 * * *",
    "sim.weekly": "@weekly",
    "sim.monthly": "@monthly",
    "sim.ledger": "@weekly",
}
GRAINS = {"hour": Grain.HOUR, "day": Grain.DAY, "month": Grain.MONTH}
BY_NAME = {rules.name: rules for rules in RULES}


# --- the project ------------------------------------------------------------------------------------------------------
def model_of(rules: Rules) -> Model:
    # The one that looks at orders through a view.
    written = ["sim.shown"] if rules.name == "sim.below" else [*rules.reads, *([rules.source] if rules.source else [])]
    settings: dict[str, Any] = {"cron": CRONS.get(rules.name, "@daily")}
    if rules.is_whole:
        return reading(rules.name, *written, **settings)
    column = TimeColumn(name="ds", format="%Y-%m-%dT%H:%M:%SZ" if rules.grain == "hour" else None)
    made = reading(
        rules.name,
        *written,
        kind=IncrementalByTimeRange(time_column=column, lookback=rules.lookback, batch_size=rules.batch_size),
        partitioned_by=("day",) if rules.grain == "hour" else ("ds",) if rules.source else ("month",),
        grain=GRAINS[rules.grain],
        start=day_text(rules.start) if rules.source or rules.name == "sim.weekly" else None,
        cron_tz=NEW_YORK if rules.name == "sim.orders" else "UTC",
        follow_rewrites=rules.follows,
        **settings,
    )
    return replace(made, windows={NodeName(parent): window(back) for parent, back in rules.reads.items()})


def window(back: int | None) -> InputWindow:
    lower = None if back is None else Offset(base="start", micros=-back * MICROS_PER_HOUR)
    return InputWindow(lower=lower, upper=Offset(base="end"))


def text_of(rules: Rules, unit: int) -> str:
    return hour_text(unit) if rules.grain == "hour" else day_text(unit)


def make_sources(chance: random.Random) -> dict[str, dict[str, str]]:
    clicks = {hour_text(hour): f"{chance.random()}" for hour in range(FIRST, AFTER) if chance.random() > 0.2}
    orders = {day_text(day): f"{chance.random()}" for day in range(FIRST, AFTER, 24) if chance.random() > 0.1}
    return {"raw.clicks": clicks, "raw.orders": orders, "raw.other": {"2024-01-01": "one"}}


class Queries:
    """What the models' queries give, and how often each unit was asked of them."""

    def __init__(self, place: Place) -> None:
        self._catalog = place.catalog
        self.processed: Counter[tuple[str, int]] = Counter()
        self.last_batch: set[tuple[str, int]] = set()
        self.failing: str | None = None
        self.left = 0
        self._parsed: dict[str, list[tuple[int, str]]] = {}

    def __call__(self, node: str, interval: Interval | None, sql: str) -> list[Row]:
        if node == self.failing:
            self.left -= 1
            if self.left < 0:
                raise QueryFailed("no luck")
        rules = BY_NAME[node]
        relations = {self._model_of(name): name for name in names_in(sql)}
        if interval is None:
            rows = [("all", self._whole(rules, relations))]
            units = [WHOLE]
        else:
            begin, end = (moment.micros // MICROS_PER_HOUR for moment in (interval.start, interval.end))
            units = list(units_between(rules.grain, begin, end))
            rows = list(self._rows(rules, relations, units))
        self.last_batch = {(node, unit) for unit in units}
        self.processed.update(self.last_batch)
        return rows

    @staticmethod
    def _model_of(relation: str) -> str:
        return re.sub(r"__v_.*", "", relation).replace("sim__lamina.", "sim.")

    def _whole(self, rules: Rules, relations: dict[str, str]) -> str:
        if rules.source is not None:
            return digest((rules.source, 0, f"{u}={v}") for u, v in self._catalog.rows_of_relation(rules.source))
        found = [(name, *row) for name in rules.reads for row in self._rows_from(relations[name], 0, AFTER)]
        return digest(found)

    def _rows(self, rules: Rules, relations: dict[str, str], units: list[int]) -> Iterator[Row]:
        end = unit_end(rules.grain, units[-1])
        above = {
            name: sorted(self._rows_from(relations[name], 0 if back is None else units[0] - back, end))
            for name, back in rules.reads.items()
        }
        numbers = {
            name: (
                [unit for unit, _ in rows],
                [0, *accumulate(int(digest([(name, unit, value)]), 16) for unit, value in rows)],
            )
            for name, rows in above.items()
        }
        for unit in units:
            text, total, count = text_of(rules, unit), 0, 0
            own = self._catalog.sources[rules.source].get(text) if rules.source else None
            if rules.source and own is not None:
                total, count = int(digest([(rules.source, unit, own)]), 16), 1
            for name, back in rules.reads.items():
                starts, sums = numbers[name]
                first = 0 if back is None else bisect_left(starts, unit - back)
                last = bisect_left(starts, unit_end(rules.grain, unit))
                total, count = total + sums[last] - sums[first], count + last - first
            if count:
                yield text, f"{total % 2**64:016x}"

    def _rows_from(self, generation: str, begin: int, end: int) -> list[tuple[int, str]]:
        assert is_generation(generation), generation
        low, high = day_text(begin), day_text(end)
        found: list[tuple[int, str]] = []
        for key, folder in self._catalog.partitions_of(generation).items():
            first = str(key[0])[:10]
            if low[: len(first)] <= first <= high:
                if folder not in self._parsed:
                    self._parsed[folder] = [(hours(unit[:13]), value) for unit, value in self._catalog.folders[folder]]
                found += [row for row in self._parsed[folder] if begin <= row[0] < end]
        return found


# --- the simulator ----------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class Simulation:
    """A place, the books of it, and everything that chance does to both."""

    seed: int
    days: int
    kills: float = 0.0
    """How many of the commands are killed."""
    chance: random.Random = field(init=False)
    place: Place = field(init=False)
    queries: Queries = field(init=False)
    books: Books = field(init=False)
    last: Command = field(init=False)
    happened: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        shown = reading("sim.shown", "sim.orders", kind=View())
        models = [*(model_of(rules) for rules in RULES), shown]
        self.place = Place(*models, sources=make_sources(self.chance))
        self.queries = Queries(self.place)
        self.books = Books(RULES, self.place.catalog.sources)

    def live(self) -> None:
        """The first build, day after day, and one more run in which nothing goes wrong."""
        day = FIRST + 20 * 24
        expected = self.books.perform(Command(now=day, is_cron_ignored=True))
        self.process().build(hour_text(day))
        self.check(Command(now=day), expected)
        while day < FIRST + self.days * 24:
            day += 24 * (self.chance.randint(3, 8) if self.chance.random() < 0.03 else 1)
            self.late_rows()
            self.perform(self.some_command(day + self.chance.randrange(24)))
        self.kills = 0.0
        self.last = Command(now=day + 24 * 2, is_cron_ignored=True)
        self.perform(self.last)

    def process(self) -> Process:
        return self.place.process(compute=self.queries)

    # --- what happens ---
    def late_rows(self) -> None:
        """Rows of the sources that come, change or go where the next lookback sees them."""
        for rules in RULES[:2]:
            if self.chance.random() < 0.3:
                step = unit_end(rules.grain, 0)
                first_open = max(self.books.books[rules.name].known) + step
                self.change(rules, first_open - step * self.chance.randint(1, rules.lookback))
        if self.chance.random() < 0.05:
            self.place.catalog.sources["raw.other"]["2024-01-01"] = f"{self.chance.random()}"

    def change(self, rules: Rules, unit: int) -> None:
        assert rules.source is not None
        rows, text = self.place.catalog.sources[rules.source], text_of(rules, unit)
        if text in rows and self.chance.random() < 0.3:
            del rows[text]
        else:
            rows[text] = f"{self.chance.random()}"

    def some_command(self, now: int) -> Command:
        command = Command(now=now)
        kind = self.chance.random()
        if kind < 0.06:
            command = replace(command, is_cron_ignored=True)
        elif kind < 0.14:
            command = self.restatement(now)
        if self.chance.random() < 0.2:
            failing = self.chance.choice(RULES).name
            command = replace(command, failing=failing, batches_before_failure=self.chance.choice([0, 0, 1, 2]))
        return command

    def restatement(self, now: int) -> Command:
        rules = self.chance.choice([RULES[0], RULES[1], *RULES])
        begin = self.chance.randrange(FIRST // 24, now // 24) * 24
        end = min(now // 24 * 24, begin + 24 * self.chance.randint(1, 4))
        if rules.source is not None and not rules.is_whole and self.chance.random() < 0.7:
            step = unit_end(rules.grain, 0)
            for unit in range(begin, end, step):
                if self.chance.random() < 0.3:
                    self.change(rules, unit)
        return Command(now=now, restated=rules.name, begin=begin, end=end)

    # --- carrying it out ---
    def perform(self, command: Command) -> None:
        expected = self.books.perform(command)
        self.queries.failing, self.queries.left = command.failing, command.batches_before_failure
        self.place.clock.advance(24 * 3600)
        if self.chance.random() < self.kills and command.failing is None:
            self.kill(command, expected)
        else:
            self.give(self.process(), command)
            self.check(command, expected)
        self.happened["restatement"] += command.restated is not None
        self.forget()

    def give(self, process: Process, command: Command) -> None:
        now = hour_text(command.now)
        if command.restated is None:
            report = process.run(now, ignore_cron=command.is_cron_ignored)
        else:
            assert command.begin is not None
            assert command.end is not None
            last = day_text(command.end - 24)
            report = process.build(now, restate=(command.restated,), start=day_text(command.begin), end=last)
        self.happened[report.status] += 1

    def kill(self, command: Command, expected: Counter[tuple[str, int]]) -> None:
        """The command dies somewhere and is given again once its leases have run out.

        Together they process what one would have, and only what was in flight twice.
        """
        process = self.place.dying(self.chance.choice(KILL_POINTS), self.chance.randint(1, 4), compute=self.queries)
        try:
            self.give(process, command)
        except Killed:
            self.happened["killed"] += 1
        else:
            self.check(command, expected)
            return
        self.place.clock.advance(LEASE_TIME)
        first, in_flight = self.queries.processed, self.queries.last_batch
        self.queries.processed = Counter()
        self.give(self.process(), command)
        second = self.queries.processed
        assert set(first.values()) | set(second.values()) <= {1}, "a command processes a unit at most once"
        assert first.keys() | second.keys() == expected.keys(), self.difference(command, first + second, expected)
        twice = first.keys() & second.keys()
        asked_again = {key for key in expected if key[0] == command.restated}
        if command.is_cron_ignored:
            # Without a schedule, nobody knows whether the source has changed since a moment ago.
            asked_again.add(("sim.ledger", WHOLE))
        assert twice <= in_flight | asked_again, "what was recorded is not done again"
        self.queries.processed = Counter()

    def check(self, command: Command, expected: Counter[tuple[str, int]]) -> None:
        found, self.queries.processed = self.queries.processed, Counter()
        assert found == expected, self.difference(command, found, expected)

    @staticmethod
    def difference(command: Command, found: Counter[tuple[str, int]], expected: Counter[tuple[str, int]]) -> str:
        def words(counts: Counter[tuple[str, int]]) -> list[str]:
            return [f"{name} {hour_text(unit)} {times}" for (name, unit), times in sorted(counts.items())]

        lines = ["too often:", *words(found - expected), "not:", *words(expected - found)]
        return "\n".join([f"{command} at {hour_text(command.now)}", *lines])

    def forget(self) -> None:
        """What a janitor would remove, so that a day at the end costs what one at the beginning does."""
        contents = self.place.store._contents
        contents.attempts = {n: a for n, a in contents.attempts.items() if a.status not in {"done", "aborted"}}
        contents.batches, contents.runs, contents.run_ends = [], {}, {}


KILL_POINTS = (
    "write.taken",
    "write.intent",
    "write.half_folder",
    "write.written",
    "write.generation",
    "write.decide",
    "write.decided",
    "write.published",
    "write.unchanged",
    "write.done",
    "write.released",
    "follow.recorded",
    "child.parent_pinned",
)


def check_tables(simulation: Simulation) -> None:
    """Every table holds what the books say, and what a build from scratch over the same sources gives (law 1)."""
    place = simulation.place
    fresh = Place(*place.project.models, sources=place.catalog.sources)
    fresh.process(compute=Queries(fresh)).build(hour_text(simulation.last.now))
    for rules in RULES:
        book = simulation.books.books[rules.name]
        shown = list(place.rows(rules.name))
        values = {"all" if unit == WHOLE else text_of(rules, unit): value for unit, value in book.values.items()}
        assert shown == sorted(values.items()), rules.name
        # A model that does not follow keeps what it computed once.
        assert not rules.follows or shown == list(fresh.rows(rules.name)), rules.name


def test_in_four_hundred_days_every_unit_is_processed_exactly_as_often_as_the_rules_say() -> None:
    simulation = Simulation(seed=20240229, days=400)
    simulation.live()
    check_tables(simulation)
    assert simulation.place.unsettled().is_empty
    assert min(simulation.happened[what] for what in ("restatement", "failed")) > 15


def test_commands_that_are_killed_and_given_again_do_together_what_one_would_have_done() -> None:
    simulation = Simulation(seed=1, days=110, kills=0.6)
    simulation.live()
    check_tables(simulation)
    assert simulation.happened["killed"] > 15
