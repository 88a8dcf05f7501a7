from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lamina.errors import BadSchedule, BadTime
from lamina.timeline.cron import Schedule
from lamina.timeline.grain import Grain
from lamina.timeline.interval import MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, Instant

at = Instant.parse_iso


def ticks_between(schedule: Schedule, start: str, end: str) -> list[str]:
    """Every tick in [start, end), as text."""
    found = []
    tick = schedule.next_tick(at(start).minus(1))
    while tick < at(end):
        found.append(tick.isoformat())
        tick = schedule.next_tick(tick)
    return found


def local_ticks(schedule: Schedule, start: str, end: str) -> list[str]:
    zone = ZoneInfo(schedule.timezone)
    ticks = ticks_between(schedule, start, end)
    return [f"{at(tick).to_datetime().astimezone(zone):%d %H:%M %Z}" for tick in ticks]


# --- which unit a schedule works in ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("expression", "grain"),
    [
        ("@hourly", Grain.HOUR),
        ("@daily", Grain.DAY),
        ("@midnight", Grain.DAY),
        ("@weekly", Grain.DAY),
        ("@monthly", Grain.MONTH),
        ("@yearly", Grain.YEAR),
        ("@annually", Grain.YEAR),
        ("*/5 * * * *", Grain.FIVE_MINUTE),
        ("*/10 * * * *", Grain.FIVE_MINUTE),
        ("*/15 * * * *", Grain.QUARTER_HOUR),
        ("*/20 * * * *", Grain.QUARTER_HOUR),
        ("*/30 * * * *", Grain.HALF_HOUR),
        ("0 */6 * * *", Grain.HOUR),
        ("30 4 * * *", Grain.DAY),
        ("0 6 * * 1-5", Grain.DAY),
        ("0 0 1,15 * *", Grain.DAY),
        ("0 0 1 */3 *", Grain.MONTH),
        ("0 0 L * *", Grain.MONTH),
        ("0 0 LW * *", Grain.MONTH),
        ("0 0 28-31 * 1#1", Grain.DAY),
        ("0 0 * * MON#1", Grain.MONTH),
        # First Mondays of January can be 364 days apart.
        ("0 0 * 1 MON#1", Grain.MONTH),
        ("0 0 29 2 *", Grain.YEAR),
        ("0 0 1 1 *", Grain.YEAR),
        # The shortest gap need not be among the first few, and may lie over midnight or the end of an hour.
        ("0 0,4,8,12,16,20,21 * * *", Grain.HOUR),
        ("0,55 0,23 * * *", Grain.FIVE_MINUTE),
        ("0,55 0,23 * * 1", Grain.HALF_HOUR),
        ("0,55 0,23 1 * *", Grain.HALF_HOUR),
        ("*/45 * * * *", Grain.QUARTER_HOUR),
        ("0 0 1,31 * *", Grain.DAY),
    ],
)
def test_the_unit_is_the_largest_that_fits_between_ticks(expression: str, grain: Grain) -> None:
    assert Schedule.parse(expression).grain() is grain
    assert Schedule.parse(expression, "America/New_York").grain() is grain


# --- what is refused -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("expression", ["* * * * *", "*/4 * * * *", "*/7 * * * *", "0,3 * * * *", "58,1 0-23 * * *"])
def test_faster_than_five_minutes_is_refused(expression: str) -> None:
    with pytest.raises(BadSchedule, match="five minutes") as refused:
        Schedule.parse(expression)
    assert refused.value.hint


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("", "five fields"),
        ("0 0 * *", "five fields"),
        ("0 0 0 * * *", "five fields"),
        ("60 0 * * *", "minute"),
        ("0 24 * * *", "hour"),
        ("0 0 32 * *", "day-of-month"),
        ("0 0 * 13 *", "month"),
        ("0 0 * * 8", "day-of-week"),
        ("0 0 * * MON#1/2", "day-of-week"),
        ("0 0 * * FUNDAY", "day-of-week"),
        ("0 R * * *", "hour"),
        ("a b c d e", "minute"),
        ("0 0 30 2 *", "never ticks"),
        ("0 0 */20 * 1L", "never ticks"),
        (f"{'9' * 5000} 0 * * *", "minute"),
        ("0 ² * * *", "hour"),
    ],
)
def test_an_unusable_expression_is_refused_and_says_why(expression: str, said: str) -> None:
    with pytest.raises(BadSchedule) as refused:
        Schedule.parse(expression)
    assert said in refused.value.message
    assert refused.value.hint
    assert refused.value.code == "LAM-DEF-005"


def test_a_misspelled_alias_comes_with_the_nearest_one() -> None:
    with pytest.raises(BadSchedule) as refused:
        Schedule.parse("@dayly")
    assert "`@daily`" in str(refused.value.hint)


@pytest.mark.parametrize(
    ("zone", "near"),
    [
        ("America/NewYork", "`America/New_York`"),
        ("europe/berlin", "`Europe/Berlin`"),
        ("utc", "`UTC`"),
        ("", "IANA"),
        ("../etc/passwd", "IANA"),
        ("America", "IANA"),
        ("a\0b", "IANA"),
        ("Größe", "IANA"),
    ],
)
def test_an_unknown_zone_is_refused_with_a_hint(zone: str, near: str) -> None:
    with pytest.raises(BadSchedule) as refused:
        Schedule.parse("@daily", zone)
    assert near in str(refused.value.hint)


@given(st.text() | st.text(alphabet="0123456789*/,-#LW@ MONTUE", max_size=25))
@settings(deadline=None)
@example("0 0 * * L")
@example("*/0 * * * *")
def test_any_text_is_a_schedule_or_refused(text: str) -> None:
    try:
        schedule = Schedule.parse(text)
    except BadSchedule:
        return
    assert schedule.previous_tick(at("2024-01-01")) <= at("2024-01-01") < schedule.next_tick(at("2024-01-01"))


def test_spelling_does_not_matter() -> None:
    assert Schedule.parse(" 0  0 * * sun ") == Schedule.parse("0 0 * * SUN")
    assert Schedule.parse("@Daily") == Schedule.parse("0 0 * * *", "UTC") == Schedule.parse("@midnight")
    assert Schedule.parse("@daily") != Schedule.parse("@daily", "Europe/Berlin")


# --- ticks in UTC ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("expression", "moment", "previous", "following"),
    [
        ("@daily", "2024-01-05T06:07:08", "2024-01-05", "2024-01-06"),
        ("@daily", "2024-01-05", "2024-01-05", "2024-01-06"),
        ("@daily", "2024-01-04T23:59:59.999999", "2024-01-04", "2024-01-05"),
        ("@daily", "2024-01-05T00:00:00.000001", "2024-01-05", "2024-01-06"),
        ("@hourly", "2024-01-05T06:07:08", "2024-01-05T06:00:00", "2024-01-05T07:00:00"),
        ("@weekly", "2024-01-05", "2023-12-31", "2024-01-07"),
        ("@monthly", "2024-03-15", "2024-03-01", "2024-04-01"),
        ("@yearly", "2024-02-29", "2024-01-01", "2025-01-01"),
        ("0 0 29 2 *", "2023-01-01", "2020-02-29", "2024-02-29"),
        ("0 0 31 * *", "2024-02-15", "2024-01-31", "2024-03-31"),
        ("0 0 L * *", "2023-02-15", "2023-01-31", "2023-02-28"),
        ("0 6 * * 1-5", "2024-01-06T12:00:00", "2024-01-05T06:00:00", "2024-01-08T06:00:00"),
        ("*/15 8-9 * * *", "2024-01-05T09:50:00", "2024-01-05T09:45:00", "2024-01-06T08:00:00"),
        ("0 0 1 * 1", "2024-01-05", "2024-01-01", "2024-01-08"),
        ("0 0 1 * 1", "2024-01-30", "2024-01-29", "2024-02-01"),
        ("0 0 * 2 MON#5", "2024-01-01", "2016-02-29", "2044-02-29"),
    ],
)
def test_ticks_surround_a_moment(expression: str, moment: str, previous: str, following: str) -> None:
    schedule = Schedule.parse(expression)
    assert schedule.previous_tick(at(moment)) == at(previous)
    assert schedule.next_tick(at(moment)) == at(following)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_at_the_ends_of_time_there_is_a_clear_refusal(zone: str) -> None:
    schedule = Schedule.parse("0 6 15 6 *", zone)
    with pytest.raises(BadTime):
        schedule.next_tick(at("9999-12-31"))
    with pytest.raises(BadTime):
        schedule.previous_tick(at("0001-01-02"))


# --- daylight saving -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("zone", "start", "end", "ticks"),
    [
        (
            "America/New_York",
            "2024-03-09T00:00:00",
            "2024-03-12T00:00:00",
            ["09 02:30 EST", "10 03:00 EDT", "11 02:30 EDT"],
        ),
        (
            "Europe/Berlin",
            "2024-03-30T00:00:00",
            "2024-04-02T00:00:00",
            ["30 02:30 CET", "31 03:00 CEST", "01 02:30 CEST"],
        ),
        (
            "Europe/Berlin",
            "2024-10-26T00:00:00",
            "2024-10-29T00:00:00",
            ["26 02:30 CEST", "27 02:30 CEST", "28 02:30 CET"],
        ),
    ],
)
def test_a_daily_tick_neither_vanishes_nor_doubles(zone: str, start: str, end: str, ticks: list[str]) -> None:
    assert local_ticks(Schedule.parse("30 2 * * *", zone), start, end) == ticks


def test_a_daily_tick_in_the_hour_that_comes_twice_takes_the_first() -> None:
    schedule = Schedule.parse("30 1 * * *", "America/New_York")
    assert local_ticks(schedule, "2024-11-02T00:00:00", "2024-11-05T00:00:00") == [
        "02 01:30 EDT",
        "03 01:30 EDT",
        "04 01:30 EST",
    ]
    second_pass = at("2024-11-03T06:10:00")
    assert schedule.previous_tick(second_pass) == at("2024-11-03T05:30:00")
    assert schedule.next_tick(second_pass) == at("2024-11-04T06:30:00")


@pytest.mark.parametrize("zone", ["America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "America/Havana"])
@pytest.mark.parametrize("clock", ["0 0", "30 0", "30 1", "0 2", "30 2", "0 3", "0 12"])
def test_a_daily_schedule_ticks_once_per_local_day_all_year(zone: str, clock: str) -> None:
    schedule = Schedule.parse(f"{clock} * * *", zone)
    ticks = ticks_between(schedule, "2024-01-01T15:00:00", "2025-01-01T15:00:00")
    days = [at(tick).to_datetime().astimezone(ZoneInfo(zone)).date() for tick in ticks]
    assert all((later - earlier).days == 1 for earlier, later in pairwise(days))
    assert len(days) == 366


@pytest.mark.parametrize("zone", ["America/New_York", "Europe/Berlin"])
def test_an_hourly_schedule_ticks_every_real_hour(zone: str) -> None:
    schedule = Schedule.parse("@hourly", zone)
    for start in ("2024-03-09", "2024-03-30", "2024-10-26", "2024-11-02"):
        tick = at(start)
        for _ in range(3 * 24):
            following = schedule.next_tick(tick)
            assert following.micros - tick.micros == MICROS_PER_HOUR
            tick = following


def test_several_times_in_a_skipped_hour_become_one_tick() -> None:
    schedule = Schedule.parse("*/20 2,3 * * *", "America/New_York")
    assert local_ticks(schedule, "2024-03-10T00:00:00", "2024-03-11T00:00:00") == [
        "10 03:00 EDT",
        "10 03:20 EDT",
        "10 03:40 EDT",
    ]


def test_a_zone_moves_the_tick_and_not_the_day_of_the_grid() -> None:
    schedule = Schedule.parse("@daily", "America/New_York")
    assert schedule.previous_tick(at("2024-01-05T04:59:59")) == at("2024-01-04T05:00:00")
    assert schedule.previous_tick(at("2024-01-05T05:00:00")) == at("2024-01-05T05:00:00")
    assert Grain.DAY.floor(schedule.previous_tick(at("2024-01-05T06:00:00"))) == at("2024-01-05")


# --- against a model that looks at every minute of a few days --------------------------------------------------------
CHANGES = [
    ("UTC", "2024-02-28"),
    ("America/New_York", "2024-03-10"),
    ("America/New_York", "2024-11-03"),
    ("Europe/Berlin", "2024-03-31"),
    ("Europe/Berlin", "2024-10-27"),
    ("Australia/Lord_Howe", "2024-04-06"),
    ("Australia/Lord_Howe", "2024-10-05"),
    ("America/Sao_Paulo", "2018-02-18"),
    ("America/Sao_Paulo", "2018-11-04"),
    ("America/Havana", "2024-03-10"),
    ("America/Havana", "2024-11-03"),
    ("Asia/Kolkata", "2024-06-01"),
    ("Pacific/Apia", "2011-12-30"),
]
_DAYS_AROUND = 3


@cache
def minutes_around(zone: str, day: str) -> list[tuple[datetime, datetime]]:
    """Every UTC minute of the days around a change of clocks, with the local time it shows."""
    start = at(day).to_datetime() - timedelta(days=_DAYS_AROUND)
    utc = [start + timedelta(minutes=minute) for minute in range(2 * _DAYS_AROUND * 1440)]
    return [(moment, moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None)) for moment in utc]


def slow_ticks(zone: str, day: str, minutes: set[int], hours: set[int], weekdays: set[int]) -> list[Instant]:
    """All ticks of the days around a change, straight from the two rules."""
    shown = minutes_around(zone, day)

    def fits(local: date) -> bool:
        return local.isoweekday() % 7 in weekdays

    if hours == set(range(24)):
        found = [moment for moment, local in shown if local.minute in minutes and fits(local)]
    else:
        first, last = shown[0][1].date(), shown[-1][1].date()
        days = [first + timedelta(days=number) for number in range(1, (last - first).days)]
        named = sorted(
            datetime(local.year, local.month, local.day, hour, minute)
            for local in days
            if fits(local)
            for hour in hours
            for minute in minutes
        )
        found, position = [], 0
        for wall in named:
            # The first moment that shows this time or a later one; named times ascend, so the search goes on.
            while shown[position][1] < wall:
                position += 1
            found.append(shown[position][0])
    return sorted({Instant.of(moment) for moment in found})


minute_sets = st.sampled_from([{0}, {30}, {59}, {0, 30}, {15, 45}, {0, 5, 50}, set(range(0, 60, 5)), {7, 22}])
hour_sets = st.sampled_from([set(range(24)), set(range(0, 24, 6))]) | st.sets(
    st.integers(0, 23), min_size=1, max_size=5
)
weekday_sets = st.just(set(range(7))) | st.sets(st.integers(0, 6), min_size=1, max_size=3)


@given(
    st.sampled_from(CHANGES),
    minute_sets,
    hour_sets,
    weekday_sets,
    st.integers(-2 * MICROS_PER_DAY, 2 * MICROS_PER_DAY - 1)
    | st.integers(-48 * 12, 48 * 12 - 1).map(lambda n: n * 5 * MICROS_PER_MINUTE),
)
@settings(deadline=None)
def test_ticks_near_a_change_of_clocks_follow_the_two_rules(
    change: tuple[str, str], minutes: set[int], hours: set[int], weekdays: set[int], offset: int
) -> None:
    zone, day = change
    fields = [",".join(map(str, sorted(numbers))) for numbers in (minutes, hours, weekdays)]
    schedule = Schedule.parse(f"{fields[0]} {fields[1]} * * {fields[2] if len(weekdays) < 7 else '*'}", zone)
    expected = slow_ticks(zone, day, minutes, hours, weekdays)
    moment = at(day).plus(offset)
    reach = at(day).minus(2 * MICROS_PER_DAY), at(day).plus(2 * MICROS_PER_DAY)

    before = [tick for tick in expected if tick <= moment]
    after = [tick for tick in expected if tick > moment]
    previous, following = schedule.previous_tick(moment), schedule.next_tick(moment)
    # Beyond the days of the model there may be other ticks; inside them they must be the same.
    if before or previous > reach[0]:
        assert previous == before[-1]
    if after or following < reach[1]:
        assert following == after[0]


@given(
    st.sampled_from(CHANGES),
    st.sampled_from(
        ["@hourly", "*/5 * * * *", "30 2 * * *", "0 */6 * * *", "15 1,2,23 * * *", "0 * 4 * *", "30 * * * 6"]
    ),
    st.integers(-3 * MICROS_PER_DAY, 3 * MICROS_PER_DAY),
)
@settings(deadline=None)
def test_next_and_previous_undo_each_other(change: tuple[str, str], expression: str, offset: int) -> None:
    zone, day = change
    schedule = Schedule.parse(expression, zone)
    moment = at(day).plus(offset)
    following = schedule.next_tick(moment)
    previous = schedule.previous_tick(moment)
    assert previous <= moment < following
    assert schedule.previous_tick(following) == following
    assert schedule.previous_tick(following.minus(1)) == previous
    assert schedule.next_tick(previous) == following


def test_a_schedule_does_not_depend_on_the_zone_of_the_moment_given() -> None:
    local = datetime(2024, 1, 5, 1, tzinfo=timezone(timedelta(hours=2)))
    assert Schedule.parse("@daily").previous_tick(Instant.of(local)) == at("2024-01-04")
