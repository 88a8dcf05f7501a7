from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lamina.errors import BadTime
from lamina.timeline.interval import Instant
from lamina.timeline.parse import TimeLike, as_end, as_start, parse_duration, parse_range, parse_time

at = Instant.parse_iso

NOW = at("2024-03-31T15:30:45.000001Z")
DAY = 24 * 3600 * 1_000_000


@pytest.mark.parametrize(
    ("value", "instant", "is_date"),
    [
        ("2024-01-31", "2024-01-31", True),
        (" 2024-01-31 ", "2024-01-31", True),
        ("20240131", "2024-01-31", True),
        (20240131, "2024-01-31", True),
        (date(2024, 1, 31), "2024-01-31", True),
        ("2024-01-31 00:00:00", "2024-01-31", False),
        ("2024-01-31T06:00", "2024-01-31T06:00:00", False),
        ("2024-01-31T06:00:00Z", "2024-01-31T06:00:00", False),
        ("2024-01-31 06:00:00+02:00", "2024-01-31T04:00:00", False),
        (datetime(2024, 1, 31), "2024-01-31", False),
        (datetime(2024, 1, 31, 6, tzinfo=timezone(timedelta(hours=-5))), "2024-01-31T11:00:00", False),
        ("1704067200000", "2024-01-01", False),
        (1704067200000, "2024-01-01", False),
        (0, "1970-01-01", False),
        (-1, "1969-12-31T23:59:59.999", False),
        ("-1000", "1969-12-31T23:59:59", False),
        ("now", "2024-03-31T15:30:45.000001", False),
        ("Today", "2024-03-31", True),
        ("YESTERDAY", "2024-03-30", True),
        ("tomorrow", "2024-04-01", True),
        ("1 minute ago", "2024-03-31T15:29:45.000001", False),
        ("2 hours ago", "2024-03-31T13:30:45.000001", False),
        ("in 90 minutes", "2024-03-31T17:00:45.000001", False),
        ("an hour ago", "2024-03-31T14:30:45.000001", False),
        ("1 day ago", "2024-03-30", True),
        ("0 days ago", "2024-03-31", True),
        ("2 weeks ago", "2024-03-17", True),
        ("1 month ago", "2024-02-29", True),
        ("in 1 month", "2024-04-30", True),
        ("13  months  ago", "2023-02-28", True),
        ("a year ago", "2023-03-31", True),
        ("in 3 Days", "2024-04-03", True),
    ],
)
def test_times_are_read_as_people_write_them(value: TimeLike, instant: str, is_date: bool) -> None:
    parsed = parse_time(value, relative_to=NOW)
    assert (parsed.instant, parsed.is_date) == (at(instant), is_date)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "soon",
        "2024-02-30",
        "2024-01",
        "20241331",
        "2024",
        2024,
        "202401",
        "3 days",
        "in 3 days ago",
        "3 fortnights ago",
        "three days ago",
        "-3 days ago",
        "1.5 days ago",
        "999999999 years ago",
        "in 999999999 weeks",
        "9" * 18,
        "9" * 30,
        True,
        "2024-01-01T25:00:00",
        "2024-01-01; DROP TABLE x",
        "٣ days ago",
        "²",
    ],
)
def test_what_is_no_time_is_refused_with_examples(value: TimeLike) -> None:
    with pytest.raises(BadTime) as refused:
        parse_time(value, relative_to=NOW)
    assert refused.value.hint


@pytest.mark.parametrize("value", [None, 1.5, [], b"2024-01-01"])
def test_other_types_are_refused(value: object) -> None:
    with pytest.raises(BadTime) as refused:
        parse_time(value, relative_to=NOW)  # type: ignore[arg-type]
    assert type(value).__name__ in refused.value.message


@given(st.text() | st.integers())
@example("1" * 5000)
@example(10**5000)
def test_no_text_or_number_fails_in_another_way(value: str | int) -> None:
    try:
        parsed = parse_time(value, relative_to=NOW)
    except BadTime:
        return
    assert not parsed.is_date or parsed.instant.micros % DAY == 0


@given(st.datetimes())
def test_what_is_written_as_iso_is_read_back(moment: datetime) -> None:
    instant = Instant.of(moment)
    assert parse_time(instant.isoformat(), relative_to=NOW).instant == instant
    assert parse_time(moment.isoformat(), relative_to=NOW).instant == instant
    assert parse_time(moment.isoformat(" "), relative_to=NOW).instant == instant
    compact = f"{moment.year:04}{moment.month:02}{moment.day:02}"
    for text in (moment.date().isoformat(), compact):
        parsed = parse_time(text, relative_to=NOW)
        assert (parsed.instant.to_datetime().date(), parsed.is_date) == (moment.date(), True)


def test_a_date_as_end_includes_its_day_and_a_timestamp_does_not() -> None:
    day, moment = parse_time("2024-02-29", relative_to=NOW), parse_time("2024-02-29 00:00:00", relative_to=NOW)
    assert as_start(day) == as_start(moment) == as_end(moment) == at("2024-02-29")
    assert as_end(day) == at("2024-03-01")


@pytest.mark.parametrize(
    ("start", "end", "pair"),
    [
        ("2024-01-01", "2024-01-01", ("2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z")),
        ("2024-01-01", "2024-01-31", ("2024-01-01T00:00:00Z", "2024-02-01T00:00:00Z")),
        ("2024-01-01", "2024-01-01T12:00:00", ("2024-01-01T00:00:00Z", "2024-01-01T12:00:00Z")),
        ("1 week ago", "yesterday", ("2024-03-24T00:00:00Z", "2024-03-31T00:00:00Z")),
        ("today", "now", ("2024-03-31T00:00:00Z", "2024-03-31T15:30:45.000001Z")),
    ],
)
def test_a_range_runs_from_its_start_to_its_end(start: str, end: str, pair: tuple[str, str]) -> None:
    assert parse_range(start, end, NOW).to_pair() == pair


@pytest.mark.parametrize(
    ("start", "end"), [("2024-01-02", "2024-01-01"), ("2024-01-02", "2024-01-02T00:00:00"), ("now", "1 hour ago")]
)
def test_a_range_that_ends_before_it_starts_is_refused(start: str, end: str) -> None:
    with pytest.raises(BadTime) as refused:
        parse_range(start, end, relative_to=NOW)
    assert f"`{start}`" in refused.value.message
    assert f"`{end}`" in refused.value.message


def test_the_last_day_of_all_cannot_be_included() -> None:
    with pytest.raises(BadTime):
        parse_range("9999-12-31", "9999-12-31", NOW)


@pytest.mark.parametrize(
    ("text", "micros"),
    [("14d", 14 * DAY), ("24h", DAY), ("90m", DAY // 16), ("2w", 14 * DAY), (" 1D ", DAY), ("0d", 0)],
)
def test_durations_are_read(text: str, micros: int) -> None:
    assert parse_duration(text) == micros


@pytest.mark.parametrize("text", ["", "14", "d", "-1d", "1.5h", "14 parsecs", "1mo", "1y", "²d", "9" * 40 + "d"])
def test_what_is_no_duration_is_refused_with_examples(text: str) -> None:
    with pytest.raises(BadTime) as refused:
        parse_duration(text)
    assert "14d" in str(refused.value.hint)
