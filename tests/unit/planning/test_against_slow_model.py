"""The planner's arithmetic on ranges against a slow model that looks at every unit."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from hypothesis import assume, event, example, given, settings
from hypothesis import strategies as st

from lamina.graph.kinds import Full, View
from lamina.graph.names import NodeName
from lamina.planning.batches import batches_of
from lamina.planning.inputs import Flags
from lamina.planning.missing import asked_range, missing_intervals, schedule_of, with_lookback
from lamina.planning.plan import make_plan
from lamina.planning.reach import intervals_reading, units_reading
from lamina.planning.readiness import split_by_readiness
from lamina.sql.lineage.input_windows import InputWindow, Offset
from lamina.timeline.grain import Grain
from lamina.timeline.interval import Instant, Interval, Intervals
from tests.kit.models import World, daily, graph, model
from tests.unit.planning import slow_model as slow
from tests.unit.planning.slow_model import CRONS, UTC, Asked, Bound, Cron, Node, Parent, Window

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lamina.graph.model import Model
    from tests.unit.planning.slow_model import Piece

ZONES = ("UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu")
# Days around which calendars and clocks are odd: leap days, ends of months and years, daylight saving here and there.
ODD_DAYS = (
    "2023-02-28",
    "2023-12-31",
    "2024-02-29",
    "2024-03-10",
    "2024-03-31",
    "2024-04-07",
    "2024-04-30",
    "2024-10-06",
    "2024-10-27",
    "2024-11-03",
    "2024-12-31",
    "2000-02-29",
    "2100-02-28",
)
SIZES = {"five_minute": 60, "quarter_hour": 60, "half_hour": 60, "hour": 80, "day": 70, "month": 30, "year": 6}


# --- between the two worlds -------------------------------------------------------------------------------------------
def instant(moment: datetime) -> Instant:
    return Instant.of(moment)


def ranges(found: Intervals | Interval | None) -> list[Piece]:
    intervals = [found] if isinstance(found, Interval) else found or []
    return [(one.start.to_datetime(), one.end.to_datetime()) for one in intervals]


def intervals(unit: str, starts: Iterable[datetime]) -> Intervals:
    return Intervals.of(Interval(instant(one), instant(slow.unit_after(unit, one))) for one in starts)


def starts(unit: str, found: Intervals) -> set[datetime]:
    """The units of a set of ranges; it must be made of whole ones."""
    cut = slow.pieces(unit, ranges(found))
    assert all(slow.unit_at(unit, begin) == begin and slow.unit_after(unit, begin) == end for begin, end in cut)
    return {begin for begin, _ in cut}


def one_model(name: str, unit: str, reads: Iterable[str] = ("raw.x",), **options: object) -> Model:
    kind = daily(lookback=options.pop("lookback", 0), batch_size=options.pop("batch_size", None))
    return model(name, reads, kind=kind, grain=Grain(unit), **options)


# --- strategies -------------------------------------------------------------------------------------------------------
@st.composite
def moments(draw) -> datetime:
    """A moment near an odd day, often exactly on an hour."""
    day = datetime.fromisoformat(draw(st.sampled_from(ODD_DAYS))).replace(tzinfo=UTC)
    minutes = draw(st.one_of(st.integers(-48, 72).map(lambda hour: hour * 60), st.integers(-3000, 5000)))
    return day + timedelta(minutes=minutes, seconds=draw(st.sampled_from([0, 0, 1, 59])))


unit_names = st.sampled_from([grain.value for grain in Grain])


@st.composite
def some_units(draw, unit: str, near: datetime, size: int | None = None) -> set[datetime]:
    """Units around a moment, in a few runs with holes."""
    first = slow.unit_at(unit, near)
    all_units = [first]
    for _ in range(size or 20):
        all_units.append(slow.unit_after(unit, all_units[-1]))
    cuts = sorted(draw(st.lists(st.integers(0, len(all_units)), max_size=6)))
    chosen: set[datetime] = set()
    for begin, end in zip(cuts[::2], cuts[1::2], strict=False):
        chosen |= set(all_units[begin:end])
    return chosen


@st.composite
def bounds(draw, *, is_end: bool | None = None) -> Bound:
    shift = draw(
        st.sampled_from([timedelta(0), timedelta(0), timedelta(days=-7), timedelta(hours=-5), timedelta(days=3)])
        | st.integers(-3000, 3000).map(lambda minutes: timedelta(minutes=minutes))
        | st.sampled_from([timedelta(microseconds=-1), timedelta(microseconds=1)])
    )
    return Bound(
        is_end=draw(st.booleans()) if is_end is None else is_end,
        months=draw(st.sampled_from([0, 0, 0, -1, 1, -3, -12])),
        shift=shift,
    )


@st.composite
def windows(draw, unit: str, units: Iterable[datetime]) -> Window:
    """A window that leaves something to read for every unit.

    Where its bounds leave nothing, the planner may take a unit for a reader that it is not: doubt means reached.
    """
    lower, upper = draw(st.none() | bounds()), draw(st.none() | bounds())
    found = Window(lower, upper)
    if not all(found.reads_something(unit, one) for one in units):
        found = Window(upper, lower)
    assume(all(found.reads_something(unit, one) for one in units))
    return found


def input_window(window: Window) -> InputWindow:
    def offset(bound: Bound | None) -> Offset | None:
        if bound is None:
            return None
        micros = bound.shift // timedelta(microseconds=1)
        return Offset(base="end" if bound.is_end else "start", months=bound.months, micros=micros)

    return InputWindow(lower=offset(window.lower), upper=offset(window.upper))


# --- schedules and what is missing ------------------------------------------------------------------------------------
@given(cron=st.sampled_from(CRONS), zone=st.sampled_from(ZONES), now=moments())
@settings(max_examples=60)
@example(cron=CRONS[12], zone="America/New_York", now=datetime(2024, 3, 10, 7, 0, tzinfo=UTC))
@example(cron=CRONS[13], zone="Europe/Berlin", now=datetime(2024, 10, 27, 0, 45, tzinfo=UTC))
def test_the_last_tick_of_a_schedule(cron: Cron, zone: str, now: datetime) -> None:
    made = schedule_of(one_model("shop.m", cron.unit, cron=cron.expression, cron_tz=zone))
    assert made.grain().value == cron.unit
    assert made.previous_tick(instant(now)).to_datetime() == slow.last_tick(cron, zone, now)


@st.composite
def questions(draw) -> tuple[Asked, Model, Flags]:
    """A model on a schedule and a command at some moment, a limited number of units after the model's start."""
    cron, zone, now = draw(st.sampled_from(CRONS)), draw(st.sampled_from(ZONES)), draw(moments())
    start = slow.unit_at(cron.unit, now)
    for _ in range(draw(st.integers(0, SIZES[cron.unit]))):
        start = slow.unit_before(cron.unit, start)
    start += timedelta(minutes=draw(st.sampled_from([0, 0, 1, 300])))
    is_partial = draw(st.booleans())
    end_day = draw(st.none() | st.integers(-3, 3))
    model_end = None if end_day is None else slow.unit_at("day", now) + timedelta(days=end_day)
    flag_start = draw(st.none() | st.integers(-60, 2).map(lambda hours: now + timedelta(hours=hours)))
    flag_end = draw(st.none() | st.integers(-60, 60).map(lambda hours: now + timedelta(hours=hours)))
    one = one_model(
        "shop.m",
        cron.unit,
        cron=cron.expression,
        cron_tz=zone,
        start=start.isoformat(),
        # A date includes that day.
        end=None if model_end is None else f"{model_end:%Y-%m-%d}",
        allow_partials=is_partial,
    )
    flags = Flags(start=flag_start.isoformat() if flag_start else None, end=flag_end.isoformat() if flag_end else None)
    ends = [model_end + timedelta(days=1)] if model_end else []
    question = Asked(
        cron=cron,
        zone=zone,
        start=start,
        now=now,
        is_cron_respected=draw(st.booleans()),
        ends=(*ends, *([flag_end] if flag_end else [])),
        command_start=flag_start,
        allows_partials=is_partial,
    )
    return question, one, flags


def asked_of(question: Asked, one: Model, flags: Flags) -> Interval | None:
    start = one.grain.floor(instant(question.start))
    return asked_range(one, start, flags, instant(question.now), respects_cron=question.is_cron_respected)


@given(asking=questions())
@settings(max_examples=60)
def test_what_a_command_asks_for(asking: tuple[Asked, Model, Flags]) -> None:
    question, one, flags = asking
    found = asked_of(question, one, flags)
    assert slow.pieces(question.cron.unit, ranges(found)) == slow.asked(question)


@given(asking=questions(), data=st.data())
@settings(max_examples=60)
def test_what_is_missing_is_what_is_asked_for_and_not_done(asking: tuple[Asked, Model, Flags], data) -> None:
    question, one, flags = asking
    unit, wanted = question.cron.unit, slow.asked(question)
    done = data.draw(some_units(unit, question.start, SIZES[unit]))
    covered = intervals(unit, done)
    ragged = slow.unit_at(unit, question.now)
    if question.allows_partials and ragged < question.now and data.draw(st.booleans()):
        # The unit that was not over when it was processed counts for nothing.
        done = {each for each in done if each < ragged}
        covered = intervals(unit, done).union(Intervals.of([Interval(instant(ragged), instant(question.now))]))
    found = missing_intervals(one, asked_of(question, one, flags), covered)
    assert slow.pieces(unit, ranges(found)) == {piece for piece in wanted if piece[0] not in done}


@given(unit=unit_names, near=moments(), lookback=st.integers(0, 5), before=st.integers(0, 6), data=st.data())
@settings(max_examples=50)
def test_lookback_adds_the_units_before_each_missing_one_and_nothing_else(unit, near, lookback, before, data) -> None:
    missing = data.draw(some_units(unit, near))
    start = slow.unit_at(unit, near)
    for _ in range(before):
        start = slow.unit_before(unit, start)
    one = one_model("shop.m", unit, lookback=lookback)
    found = with_lookback(one, intervals(unit, missing), instant(start), lookback)
    assert starts(unit, found) == slow.looked_back(unit, missing, start, lookback)


@given(unit=unit_names, near=moments(), size=st.none() | st.integers(1, 9), data=st.data())
@settings(max_examples=50)
def test_batches_are_runs_of_neighbours_in_order(unit, near, size, data) -> None:
    missing = data.draw(some_units(unit, near, 30))
    found = batches_of(one_model("shop.m", unit, batch_size=size), intervals(unit, missing))
    expected = slow.batches(unit, missing, size)
    assert [batch.index for batch in found] == list(range(len(expected)))
    assert [ranges(batch.interval) for batch in found] == [
        [(batch[0], slow.unit_after(unit, batch[-1]))] for batch in expected
    ]


# --- windows ----------------------------------------------------------------------------------------------------------
PAIRS = st.sampled_from(
    [
        ("day", "day"),
        ("hour", "day"),
        ("day", "hour"),
        ("month", "day"),
        ("day", "month"),
        ("month", "hour"),
        ("month", "month"),
        ("year", "month"),
        ("five_minute", "hour"),
        ("half_hour", "quarter_hour"),
    ]
)


@given(grains=PAIRS, near=moments(), data=st.data())
@settings(max_examples=60)
def test_the_units_that_read_a_stretch(grains, near, data) -> None:
    unit, other = grains
    among = data.draw(some_units(unit, near))
    span = ranges(intervals(unit, among).span())
    window = data.draw(windows(unit, slow.units(unit, *span[0]) if span else []))
    stretch_units = data.draw(some_units(other, near - data.draw(st.integers(-3, 3)) * timedelta(days=9)))
    one = replace(one_model("shop.m", unit, ["shop.p"]), windows={NodeName("shop.p"): input_window(window)})
    stretches = intervals(other, stretch_units)
    expected = slow.reading(unit, among, window, ranges(stretches))
    event(f"some: {bool(expected)}")
    assert starts(unit, intervals_reading(one, NodeName("shop.p"), intervals(unit, among), stretches)) == expected
    for begin, end in ranges(stretches):
        within = intervals(unit, among).span()
        if within is None:
            continue
        stretch = Interval(instant(begin), instant(end))
        found = units_reading(Grain(unit), within, input_window(window), stretch)
        all_units = slow.units(unit, *ranges(within)[0])
        assert (starts(unit, Intervals.of([found])) if found else set()) == slow.reading(
            unit, all_units, window, [(begin, end)]
        )


@given(grains=PAIRS, near=moments(), data=st.data())
@settings(max_examples=60)
def test_a_unit_is_ready_when_every_parent_covers_what_it_reads(grains, near, data) -> None:
    unit, other = grains
    missing = data.draw(some_units(unit, near, 8))
    parents: dict[str, tuple[Parent, Window]] = {}
    for number in range(data.draw(st.integers(1, 2))):
        back = data.draw(st.integers(0, 40))
        begin = slow.unit_at(other, near - timedelta(days=back if other != "hour" else back % 5))
        done, one = set(), begin
        holes = data.draw(some_units(other, begin + timedelta(days=data.draw(st.integers(0, 60))), 3))
        until = max(missing, default=near) + timedelta(days=data.draw(st.integers(0, 70)))
        while one < until:
            done |= {one} - holes
            one = slow.unit_after(other, one)
        days = data.draw(st.none() | st.integers(1, 31))
        end = None if days is None else slow.unit_at("day", begin) + timedelta(days=days)
        parents[f"shop.p{number}"] = (
            Parent(unit=other, begin=begin, done=frozenset(done), end=end),
            data.draw(windows(unit, missing)),
        )
    child = replace(
        one_model("shop.m", unit, list(parents)),
        windows={NodeName(name): input_window(window) for name, (_, window) in parents.items()},
    )
    above = [
        one_model(name, other, end=None if parent.end is None else f"{parent.end - timedelta(days=1):%Y-%m-%d}")
        for name, (parent, _) in parents.items()
    ]
    available = {
        NodeName(name): (instant(parent.begin), intervals(other, parent.done)) for name, (parent, _) in parents.items()
    }
    found = split_by_readiness(graph(*above, child), child, intervals(unit, missing), available, instant(near))
    expected = {one for one in missing if slow.is_ready(unit, one, parents.values())}
    event(f"waits: {bool(missing - expected)}")
    assert starts(unit, found.ready) == expected
    assert starts(unit, found.waiting) == missing - expected
    assert bool(found.waiting_for) == bool(missing - expected)
    for waiting in found.waiting_for:
        begin, end = ranges(waiting.interval)[0]
        parent, window = parents[str(waiting.name)]
        assert any(window.meets(unit, one, begin, end) for one in missing - expected)
        assert any(one < end and slow.unit_after(other, one) > begin for one in _lacking(parent, end))


def _lacking(parent: Parent, until: datetime) -> list[datetime]:
    one, found = parent.begin, []
    while one < until:
        if one not in parent.done:
            found.append(one)
        one = slow.unit_after(parent.unit, one)
    return found


# --- restatements -----------------------------------------------------------------------------------------------------
UNITS = {"hour": "@hourly", "day": "@daily", "month": "@monthly"}
NEAR_WINDOWS = st.sampled_from(
    [
        Window(Bound(False), Bound(True)),
        Window(Bound(False, shift=timedelta(days=-3)), Bound(True)),
        Window(Bound(False, months=-1), Bound(True)),
        Window(Bound(False, shift=timedelta(days=-2)), Bound(False)),
        Window(None, Bound(True)),
        Window(),
    ]
)


@st.composite
def projects(draw) -> list[tuple[Model, dict[str, Window]]]:
    """Up to five models, each over some of those before it, with a window into every one that has intervals."""
    made: list[tuple[Model, dict[str, Window]]] = []
    for number in range(draw(st.integers(2, 5))):
        name, earlier = f"shop.m{number}", [str(one.name) for one, _ in made]
        reads = draw(st.lists(st.sampled_from(earlier), unique=True, min_size=1, max_size=2)) if earlier else []
        sort = draw(st.sampled_from(["hour", "day", "day", "month", "full", "view"])) if earlier else "day"
        if sort in {"full", "view"}:
            one = model(name, reads, kind=Full() if sort == "full" else View(), start="2024-01-20")
            made.append((one, {}))
            continue
        stored = _stored({str(one.name): one for one, _ in made}, reads)
        read = {parent: draw(NEAR_WINDOWS) for parent, above in stored.items() if not isinstance(above.kind, Full)}
        one = replace(
            one_model(name, sort, reads or ["raw.x"], cron=UNITS[sort], start="2024-01-20"),
            windows={NodeName(parent): input_window(window) for parent, window in read.items()},
            follow_rewrites=draw(st.sampled_from([True, True, True, False])),
        )
        made.append((one, {**{parent: Window() for parent in stored}, **read}))
    return made


def _stored(models: dict[str, Model], reads: Iterable[str]) -> dict[str, Model]:
    """Parents that store rows, views looked through."""
    found: dict[str, Model] = {}
    for read in reads:
        one = models[read]
        found |= _stored(models, map(str, one.reads)) if isinstance(one.kind, View) else {read: one}
    return found


@given(made=projects(), data=st.data())
@settings(max_examples=50)
def test_what_a_restatement_may_reach(made: list[tuple[Model, dict[str, Window]]], data) -> None:
    now, models = datetime(2024, 3, 2, 12, tzinfo=UTC), {str(one.name): one for one, _ in made}
    world = World(*models.values())
    world.carry_out(make_plan(world.inputs(now.isoformat())))
    nodes = {
        name: Node(
            unit=None if isinstance(one.kind, Full) else one.grain.value,
            parents={
                parent: read.get(parent, Window())
                for parent in _stored(models, map(str, one.reads) if name != "shop.m0" else [])
            },
            done=frozenset(starts(one.grain.value, world.covered(name)))
            if not isinstance(one.kind, Full)
            else frozenset(),
            follows=one.follow_rewrites,
        )
        for name, (one, read) in ((str(one.name), (one, read)) for one, read in made)
        if not isinstance(one.kind, View)
    }
    restated = data.draw(st.sampled_from([name for name, node in nodes.items() if node.unit is not None]))
    first = datetime(2024, 1, 18, tzinfo=UTC) + timedelta(days=data.draw(st.integers(0, 45)))
    last = first + timedelta(days=data.draw(st.integers(0, 3)))
    unit = nodes[restated].unit
    assert unit is not None
    again = {
        one for one in nodes[restated].done if one < last + timedelta(days=1) and slow.unit_after(unit, one) > first
    }
    flags = Flags(restate=(restated,), start=f"{first:%Y-%m-%d}", end=f"{last:%Y-%m-%d}")
    plan = {str(step.node): step for step in make_plan(world.inputs(now.isoformat(), flags=flags)).steps}
    expected = slow.cascade(nodes, restated, again) if again else {}
    event(f"reaches {len(expected)}")
    assert starts(unit, plan[restated].redone) == again
    for name, node in nodes.items():
        step, reached = plan[name], expected.get(name, set())
        if node.unit is None:
            assert bool(step.batches) == (reached is None)
        elif name != restated:
            assert step.redone.is_empty
            assert starts(node.unit, step.may_follow) == reached
            assert starts(node.unit, step.intervals) == reached
