from __future__ import annotations

import calendar
import re
import sqlite3
import time
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Literal, TypeAlias

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lamina.sql.windows import InputWindow, Offset, input_windows

MICRO = timedelta(microseconds=1)
HOUR = 3600 * 1_000_000
DAY = 24 * HOUR
TIMES = {"a": "ds", "b": "ds", "s.c": "ts"}
WHOLE = "ds BETWEEN @start_ds AND @end_ds"


def shown(offset: Offset | None) -> str:
    if offset is None:
        return "open"
    months = f" {offset.months:+d} months" if offset.months else ""
    days, micros = int(offset.micros / DAY), offset.micros - int(offset.micros / DAY) * DAY
    return offset.base + months + (f" {days:+d} days" if days else "") + (f" {micros:+d} us" if micros else "")


def windows(text: str, dialect: str = "spark", **options: object) -> dict[str, str]:
    """The windows by table, such as `start -7 days .. end`."""
    found = input_windows(text, dialect, TIMES, **options)  # type: ignore[arg-type]  # options differ by test
    return {name: f"{shown(window.lower)} .. {shown(window.upper)}" for name, window in found.items()}


def window(condition: str, **options: object) -> str:
    return windows(f"SELECT * FROM a WHERE {condition}", **options)["a"]


# --- bounds ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("ds BETWEEN @start_ds AND @end_ds", "start .. end"),
        ("ds BETWEEN @start_date AND @end_date", "start .. end"),
        ("ds BETWEEN @start_dt AND @end_dt", "start .. end"),
        ("ds BETWEEN @start_dtntz AND @end_dtntz", "start .. end"),
        ("ds BETWEEN @start_ts AND @end_ts", "start .. end"),
        ("ds BETWEEN @start_tstz AND @end_tstz", "start .. end"),
        ("@start_ds <= ds AND @end_ds >= ds", "start .. end"),
        ("ds >= @START_DS AND (ds <= @end_ds)", "start .. end"),
        ("ds >= @start_dt AND ds < @end_dt", "start .. end"),
        ("ds < @end_ds", "open .. end -1 days"),
        ("ds = @start_ds", "start .. start +1 days"),
        ("ds IN (@end_ds)", "end -1 days .. end"),
        ("ds IN (@start_ds, @end_ds)", "start .. end"),
        ("ds > @end_date", "end -1 days .. open"),
        ("ds >= @start_ds", "start .. open"),
        ("ds < @start_dt", "open .. start"),
    ],
)
def test_time_variables_bound_the_window(condition: str, expected: str) -> None:
    assert window(condition) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("ds >= @start_ds - INTERVAL 30 DAYS AND ds <= @end_ds", "start -30 days .. end"),
        ("ds >= @start_ds - INTERVAL '1' WEEK", "start -7 days .. open"),
        ("ds >= @start_dt - INTERVAL 1 DAY + INTERVAL 2 HOURS", f"start {2 * HOUR - DAY:+d} us .. open"),
        ("ds >= @start_dt - (INTERVAL 1 DAY + INTERVAL 2 HOURS)", f"start -1 days {-2 * HOUR:+d} us .. open"),
        ("ds >= INTERVAL -2 DAYS + @start_dt", "start -2 days .. open"),
        ("ds >= date_sub(@start_ds, 7)", "start -7 days .. open"),
        ("ds >= date_add(@start_ds, -7)", "start -7 days .. open"),
        ("ds >= dateadd(DAY, -7, @start_ds)", "start -7 days .. open"),
        ("ds >= timestampadd(HOUR, -48, @start_ts)", "start -2 days .. open"),
        ("ds >= @start_date - 3", "start -3 days .. open"),
        ("ds >= add_months(@start_date, -2)", "start -2 months .. open"),
        ("ds >= @start_dt - INTERVAL 1 YEAR", "start -12 months .. open"),
        ("ds >= CAST(@start_ds AS DATE) - INTERVAL 2 DAYS", "start -2 days .. open"),
        ("ds >= to_date(@start_ds)", "start .. open"),
        ("ds >= DATE(@start_ts)", "start .. open"),
        ("ds >= TIMESTAMP(@start_ts)", "start .. open"),
        ("ds <= @end_dt + INTERVAL 1 DAY", "open .. end +1 days"),
        ("ds <= @end_ds - INTERVAL 1 DAY", "open .. end -1 days"),
        ("ds >= date_trunc('month', @start_dt)", "start -1 months .. open"),
        ("ds >= trunc(@start_date, 'YEAR')", "start -12 months .. open"),
        ("ds >= date_trunc('week', @start_dt)", "start -7 days .. open"),
        ("ds < date_trunc('day', @end_dt)", "open .. end -1 days"),
        # A month before the last day of the interval is not a month before the day after it, give or take.
        ("ds >= @end_date - INTERVAL 1 MONTH", "end -1 months -6 days .. open"),
    ],
)
def test_bounds_move_with_arithmetic(condition: str, expected: str) -> None:
    assert window(condition) == expected


@pytest.mark.parametrize(
    "condition",
    [
        "ds >= '2020-01-01'",
        "ds != @start_ds",
        "ds NOT BETWEEN @start_ds AND @end_ds",
        "NOT ds < @start_ds",
        "NOT (ds > @end_ds OR ds < @start_ds)",
        "ds <=> @start_ds",
        "ds IS NULL OR ds = @start_ds",
        "ds = @start_ds OR x = 1",
        "unix_timestamp(ds) >= @start_epoch",
        "hour(ds) = @start_hour",
        "ds >= @execution_ds",
        "ds >= @start_ds - INTERVAL 1.5 DAYS",
        "ds >= @start_dt - make_interval(0, 1)",
        "ds >= least(@start_ds, x)",
        "substr(ds, 1, 7) = @start_ds",
        "to_date(ds, 'dd.MM.yyyy') >= @start_ds",
        "from_utc_timestamp(ds, 'Asia/Tokyo') >= @start_ts",
        "ds.field >= @start_ds",
        "coalesce(ds, x) >= @start_ds",
        "x >= @start_ds",
        "ds IN (SELECT @start_ds)",
    ],
)
def test_what_is_not_understood_bounds_nothing(condition: str) -> None:
    assert window(condition) == "open .. open"


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("CAST(ds AS DATE) BETWEEN @start_date AND @end_date", "start .. end"),
        ("DATE(ds) = @start_ds", "start .. start +1 days"),
        ("to_date(ds) <= @end_dt", "open .. end"),
        ("to_date(ds, 'yyyy-MM-dd') BETWEEN @start_date AND @end_date", "start .. end"),
        ("date_trunc('day', ds) BETWEEN @start_dt AND @end_dt", "start .. end"),
        ("date_trunc('hour', ds) < @end_dt", "open .. end"),
        ("date_format(ds, 'yyyy-MM-dd') = @end_ds", "end -1 days .. end"),
        ("CAST(ds AS TIMESTAMP) < @start_dt", "open .. start"),
        ("date_trunc('month', ds) = date_trunc('month', @start_dt)", "start -1 months .. start +31 days"),
    ],
)
def test_a_rounded_time_column_widens_what_it_is_compared_with(condition: str, expected: str) -> None:
    assert window(condition) == expected


def test_ranges_joined_by_or_are_covered_by_one() -> None:
    condition = f"({WHOLE}) OR ds BETWEEN @start_ds - INTERVAL 7 DAYS AND @end_ds - INTERVAL 7 DAYS"
    assert window(condition) == "start -7 days .. end"
    assert window(f"({WHOLE} AND x = 1) OR (ds = @start_ds AND y = 2)") == "start .. end"


def test_bounds_that_cannot_be_compared_are_both_covered() -> None:
    assert window("ds >= @start_dt - INTERVAL 1 MONTH OR ds >= @start_dt - INTERVAL 30 DAYS") == (
        "start -1 months -30 days .. open"
    )
    assert (
        window("ds >= @start_dt - INTERVAL 1 MONTH OR ds >= @start_dt - INTERVAL 31 DAYS") == "start -31 days .. open"
    )


def test_without_whole_days_bounds_that_go_by_days_widen() -> None:
    assert window(WHOLE, is_day_aligned=False) == "start -1 days .. end +1 days"
    assert window("ds BETWEEN @start_dt AND @end_dt", is_day_aligned=False) == "start .. end"


def test_the_type_of_the_time_column_makes_bounds_of_text_exact() -> None:
    condition = "ds >= @start_ts AND ds < @start_ts + INTERVAL 1 HOUR"
    assert window(condition, is_day_aligned=False) == f"start -1 days .. start {HOUR + 1:+d} us"
    for name in ("timestamp", "TIMESTAMP_NTZ"):
        found = window(condition, is_day_aligned=False, time_types={"a": name})
        assert found == f"start .. start {HOUR:+d} us"


def test_a_time_column_of_another_type_is_not_bounded() -> None:
    assert window(WHOLE, time_types={"a": "int"}) == "open .. open"
    assert window(WHOLE, time_types={"a": "string"}) == "start .. end"


# --- references ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM s.c WHERE c.ts >= @start_ts", {"s.c": "start .. open"}),
        ("SELECT * FROM s.c AS z WHERE z.ts >= @start_ts", {"s.c": "start .. open"}),
        ("SELECT * FROM s.c AS z WHERE c.ts >= @start_ts", {"s.c": "open .. open"}),
        ("SELECT * FROM other WHERE ds >= @start_ds", {}),
        ("SELECT * FROM a, other WHERE ds >= @start_ds", {"a": "start .. open"}),
        ("SELECT * FROM a, b WHERE ds >= @start_ds", {"a": "open .. open", "b": "open .. open"}),
        ("SELECT * FROM a LATERAL VIEW explode(xs) t AS x WHERE ds >= @start_ds", {"a": "start .. open"}),
        ("SELECT * FROM a LATERAL VIEW explode(xs) t AS ds WHERE t.ds >= @start_ds", {"a": "open .. open"}),
        (
            "SELECT 1 FROM a z WHERE z.ds >= @start_ds UNION ALL SELECT 1 FROM a WHERE ds <= @end_ds",
            {"a": "open .. open"},
        ),
        (
            f"SELECT 1 FROM a WHERE {WHOLE} UNION SELECT 1 FROM a WHERE ds = @start_date - 1",
            {"a": "start -1 days .. end"},
        ),
        (f"SELECT * FROM a TABLESAMPLE (5 ROWS) WHERE {WHOLE}", {"a": "open .. open"}),
        (f"SELECT * FROM a PIVOT (max(x) FOR y IN (1, 2)) WHERE {WHOLE}", {"a": "open .. open"}),
        (f"SELECT * FROM (a JOIN b ON a.ds = b.ds) WHERE a.{WHOLE}", {"a": "open .. open", "b": "open .. open"}),
        (f"WITH RECURSIVE r AS (SELECT * FROM a WHERE {WHOLE}) SELECT * FROM r", dict.fromkeys(TIMES, "open .. open")),
        (f"SELECT * FROM f(TABLE(a)) WHERE {WHOLE}", dict.fromkeys(TIMES, "open .. open")),
        ("SELECT (", dict.fromkeys(TIMES, "open .. open")),
        (f"WITH a AS (SELECT * FROM b WHERE {WHOLE}) SELECT * FROM a", {"b": "start .. end"}),
        (f"WITH unused AS (SELECT * FROM b) SELECT * FROM a WHERE {WHOLE}", {"a": "start .. end", "b": "open .. open"}),
        (
            f"WITH w AS (SELECT * FROM a) SELECT * FROM w WHERE {WHOLE} AND x IN (SELECT x FROM w TABLESAMPLE (1 ROWS))",
            {"a": "open .. open"},
        ),
    ],
)
def test_every_reference_is_found_and_none_is_narrowed_by_mistake(text: str, expected: dict[str, str]) -> None:
    assert windows(text) == expected


def test_subqueries_of_expressions_count_with_their_own_conditions() -> None:
    assert windows(f"""
        SELECT (SELECT max(x) FROM s.c WHERE ts < @start_dt) FROM a
        WHERE {WHOLE} AND EXISTS (SELECT 1 FROM b WHERE b.id = a.id AND ds >= @start_ds AND a.ds <= @end_ds)
    """) == {"a": "start .. end", "b": "start .. open", "s.c": "open .. start"}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("SELECT ds FROM a", "start .. end"),
        ("SELECT * FROM a", "start .. end"),
        ("SELECT a.*, 1 AS one FROM a", "start .. end"),
        ("SELECT z AS ds FROM (SELECT ds AS z, x FROM a)", "start .. end"),
        ("SELECT CAST(ds AS DATE) AS ds FROM a", "start .. end"),
        ("SELECT DISTINCT ds, x FROM a", "start .. end"),
        ("SELECT ds, count(*) AS n FROM a GROUP BY ds", "start .. end"),
        ("SELECT CAST(ds AS DATE) AS ds, count(*) AS n FROM a GROUP BY 1", "start .. end"),
        ("SELECT x, CAST(ds AS DATE) AS ds FROM a GROUP BY ALL", "start .. end"),
        ("SELECT date_trunc('day', t.ds) AS ds FROM a AS t GROUP BY date_trunc('day', ds)", "start .. end"),
        ("SELECT max(ds) AS ds FROM a GROUP BY x", "open .. open"),
        ("SELECT ds, count(*) AS n FROM a GROUP BY ROLLUP (ds)", "open .. open"),
        ("SELECT ds, row_number() OVER (ORDER BY x) AS n FROM a", "open .. open"),
        ("SELECT ds FROM a QUALIFY row_number() OVER (ORDER BY x) = 1", "open .. open"),
        ("SELECT ds FROM a ORDER BY x LIMIT 10", "open .. open"),
        ("(SELECT ds FROM a) LIMIT 10", "open .. open"),
        ("SELECT ds FROM a OFFSET 1", "open .. open"),
        ("SELECT coalesce(ds, x) AS ds FROM a", "open .. open"),
        ("SELECT *, x AS ds FROM a", "open .. open"),
        ("SELECT * EXCEPT (ds), x AS ds FROM a", "open .. open"),
        ("SELECT ds FROM a UNION ALL SELECT DATE'2020-01-01'", "start .. end"),
        ("SELECT x, ds FROM a EXCEPT SELECT x, ds FROM a", "start .. end"),
        ("SELECT x, ds FROM a UNION ALL SELECT ds, x FROM a", "open .. open"),
        ("SELECT x, ds FROM a UNION ALL BY NAME SELECT ds, x FROM a", "start .. end"),
    ],
)
def test_a_filter_on_a_subquery_narrows_what_it_reads_where_that_is_right(source: str, expected: str) -> None:
    assert windows(f"SELECT * FROM ({source}) s WHERE {WHOLE}") == {"a": expected}
    assert windows(f"WITH s AS ({source}) SELECT * FROM s WHERE s.{WHOLE}") == {"a": expected}


def test_conditions_inside_and_outside_of_a_subquery_add_up() -> None:
    text = "SELECT * FROM (SELECT ds FROM a WHERE ds >= @start_ds LIMIT 3) WHERE ds <= @end_ds"
    assert windows(text) == {"a": "start .. open"}
    assert windows(text.replace("LIMIT 3", "")) == {"a": "start .. end"}


def test_columns_of_stars_in_set_operations_are_known_from_schemas() -> None:
    text = f"SELECT * FROM (SELECT * FROM a UNION ALL SELECT * FROM b) WHERE {WHOLE}"
    assert windows(text) == {"a": "start .. end", "b": "open .. open"}
    schemas = {"a": ("id", "ds"), "b": ("key", "ds")}
    assert windows(text, schemas=schemas) == {"a": "start .. end", "b": "start .. end"}


def test_columns_renamed_by_an_alias_are_followed_by_position() -> None:
    assert windows("SELECT * FROM (SELECT x, ds FROM a) t(k, d) WHERE d = @start_ds") == {"a": "start .. start +1 days"}
    assert windows("WITH t(k, ds) AS (SELECT ds, x FROM a) SELECT * FROM t WHERE ds = @start_ds") == {
        "a": "open .. open"
    }


@pytest.mark.parametrize(
    ("join", "expected"),
    [
        ("a JOIN b ON a.ds = b.ds", ("start .. end", "start .. end")),
        ("a JOIN b ON a.id = b.id AND b.ds >= @start_ds", ("start .. end", "start .. open")),
        ("a JOIN b ON a.id = b.id", ("start .. end", "open .. open")),
        ("a LEFT JOIN b ON a.ds = b.ds", ("start .. end", "start .. end")),
        ("a LEFT JOIN b ON a.id = b.id AND b.ds >= @start_ds", ("start .. end", "start .. open")),
        ("b LEFT JOIN a ON a.ds = b.ds", ("start .. end", "open .. open")),
        ("b LEFT JOIN a ON a.id = b.id AND b.ds >= @start_ds", ("start .. end", "open .. open")),
        ("b RIGHT JOIN a ON a.ds = b.ds", ("start .. end", "start .. end")),
        ("a RIGHT JOIN b ON a.ds = b.ds", ("start .. end", "open .. open")),
        ("a FULL JOIN b ON a.ds = b.ds AND b.ds >= @start_ds", ("start .. end", "open .. open")),
        ("a LEFT SEMI JOIN b ON a.ds = b.ds AND b.ds >= @start_ds", ("start .. end", "start .. end")),
        ("a LEFT ANTI JOIN b ON a.ds = b.ds", ("start .. end", "start .. end")),
        ("a LEFT ANTI JOIN b ON a.id = b.id AND b.ds >= @start_ds", ("start .. end", "start .. open")),
        ("a CROSS JOIN b", ("start .. end", "open .. open")),
        ("a JOIN b USING (ds)", ("start .. end", "start .. end")),
        ("a LEFT JOIN b USING (ds)", ("start .. end", "start .. end")),
        ("a NATURAL JOIN b", ("open .. open", "open .. open")),
        ("a JOIN b ON b.ds BETWEEN a.ds - INTERVAL 7 DAYS AND a.ds", ("start .. end", "start -7 days .. end")),
        ("a JOIN b ON CAST(b.ds AS DATE) = date_sub(a.ds, 1)", ("start .. end", "start -1 days .. end -1 days")),
        ("a JOIN b ON a.ds <=> b.ds", ("start .. end", "open .. open")),
        ("other o JOIN a ON o.ds = a.ds JOIN b ON b.ds = o.ds", ("start .. end", "open .. open")),
    ],
)
def test_conditions_of_joins_narrow_the_sides_they_filter(join: str, expected: tuple[str, str]) -> None:
    text = f"SELECT 1 FROM {join} WHERE a.{WHOLE}"
    assert windows(text) == {"a": expected[0], "b": expected[1]}


def test_a_join_filters_rows_by_its_own_condition_only_where_they_are_not_kept() -> None:
    condition = "a.ds = b.ds AND a.ds >= @start_ds"
    assert windows(f"SELECT 1 FROM a JOIN b ON {condition}") == {"a": "start .. open", "b": "start .. open"}
    assert windows(f"SELECT 1 FROM a LEFT JOIN b ON {condition}") == {"a": "open .. open", "b": "open .. open"}
    assert windows(f"SELECT 1 FROM b LEFT JOIN a ON {condition}") == {"a": "start .. open", "b": "open .. open"}
    assert windows(f"SELECT 1 FROM a RIGHT JOIN b ON {condition}") == {"a": "start .. open", "b": "open .. open"}
    assert windows(f"SELECT 1 FROM a FULL JOIN b ON {condition}") == {"a": "open .. open", "b": "open .. open"}
    assert windows(f"SELECT 1 FROM a LEFT ANTI JOIN b ON {condition}") == {"a": "open .. open", "b": "open .. open"}


def test_a_shared_column_of_a_full_join_narrows_both_sides() -> None:
    assert windows(f"SELECT 1 FROM a FULL JOIN b USING (ds) WHERE {WHOLE}") == {
        "a": "start .. end",
        "b": "start .. end",
    }


def test_a_filter_reaches_through_several_subqueries_and_joins() -> None:
    assert windows(f"""
        WITH daily AS (SELECT CAST(c.ts AS DATE) AS day, count(*) AS n FROM s.c GROUP BY CAST(c.ts AS DATE)),
        joined AS (SELECT a.ds, a.x, d.n FROM a LEFT JOIN daily d ON d.day = a.ds)
        SELECT j.*, b.x FROM joined j JOIN b ON b.ds = j.ds WHERE j.{WHOLE}
    """) == dict.fromkeys(TIMES, "start .. end")


def test_other_dialects_are_understood() -> None:
    text = "SELECT * FROM a WHERE ds >= DATEADD(day, -1, @start_ds) AND ds <= @end_ds"
    assert windows(text, "snowflake") == {"a": "start -1 days .. end"}
    assert windows("SELECT * FROM a WHERE ds = $end_ds", "duckdb") == {"a": "end -1 days .. end"}


def test_queries_that_grow_beyond_reason_are_given_up_quickly() -> None:
    steps = ["c0 AS (SELECT ds FROM a)"]
    steps += [f"c{i} AS (SELECT l.ds FROM c{i - 1} l JOIN c{i - 1} r ON l.ds = r.ds)" for i in range(1, 40)]
    began = time.perf_counter()
    assert windows(f"WITH {', '.join(steps)} SELECT * FROM c39 WHERE {WHOLE}") == dict.fromkeys(TIMES, "open .. open")
    assert time.perf_counter() - began < 2


# --- laws: bounds ----------------------------------------------------------------------------------------------------
Point: TypeAlias = "str | date | datetime"
"""A value as Spark has it: text, a date, or a timestamp."""
UNITS = ("hour", "day", "week", "month", "quarter", "year")


def add_months(moment: datetime, months: int) -> datetime:
    years, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    day = min(moment.day, calendar.monthrange(years, month + 1)[1])
    return moment.replace(year=years, month=month + 1, day=day)


def moment_of(offset: Offset, start: datetime, end: datetime) -> datetime:
    base = start if offset.base == "start" else end
    return add_months(base, offset.months) + offset.micros * MICRO


def holds(window: InputWindow, moment: datetime, start: datetime, end: datetime) -> bool:
    return (window.lower is None or moment_of(window.lower, start, end) <= moment) and (
        window.upper is None or moment < moment_of(window.upper, start, end)
    )


def as_timestamp(point: Point) -> datetime:
    if isinstance(point, str):
        return datetime.fromisoformat(point.removesuffix("+00:00").ljust(10))
    return point if isinstance(point, datetime) else datetime(point.year, point.month, point.day)


def as_date(point: Point) -> date:
    return as_timestamp(point).date()


def as_text(point: Point) -> str:
    if isinstance(point, datetime):
        return re.sub(r"(\.\d*?)0+$", r"\1", str(point))
    return str(point)


def compare(one: Point, operator: str, other: Point) -> bool:
    """Spark's comparison: text is cast to the type of the other side, a date to a timestamp."""
    pair: tuple[object, object]
    if isinstance(one, datetime) or isinstance(other, datetime):
        pair = as_timestamp(one), as_timestamp(other)
    elif isinstance(one, str) and isinstance(other, str):
        pair = one, other
    else:
        pair = as_date(one), as_date(other)
    less, equal = pair[0] < pair[1], pair[0] == pair[1]  # type: ignore[operator]  # both are of one type
    return {"<": less, "<=": less or equal, "=": equal, ">=": not less, ">": not less and not equal}[operator]


def truncated(moment: datetime, unit: str) -> datetime:
    if unit == "hour":
        return moment.replace(minute=0, second=0, microsecond=0)
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    if unit == "week":
        return day - timedelta(days=day.weekday())
    if unit == "day":
        return day
    months = {"month": 1, "quarter": 3, "year": 12}[unit]
    return day.replace(day=1, month=(day.month - 1) // months * months + 1)


def shift(point: Point, delta: timedelta, months: int) -> Point:
    moved = add_months(as_timestamp(point), months) + delta
    if isinstance(point, str):
        return as_text(moved)
    return moved if isinstance(point, datetime) or delta % timedelta(days=1) else moved.date()


@dataclass(frozen=True)
class Term:
    """An expression of time: its text, and its value."""

    text: str
    value: Point


def variables(start: datetime, end: datetime) -> list[Term]:
    return [
        Term(text=f"@{name}_{suffix}", value=value)
        for name, moment in (("start", start), ("end", end - MICRO))
        for suffix, value in (
            ("ds", str(moment.date())),
            ("date", moment.date()),
            ("ts", str(moment)),
            ("tstz", f"{moment}+00:00"),
            ("dt", moment),
        )
    ]


@st.composite
def terms(draw: st.DrawFn, start: datetime, end: datetime) -> Term:
    term = draw(st.sampled_from(variables(start, end)))
    for _ in range(draw(st.integers(0, 3))):
        inner, value, count = term.text, term.value, draw(st.integers(-40, 40))
        unit = draw(st.sampled_from(UNITS))
        # Spark takes no months from text.
        moves = ["HOURS", "DAYS"] if isinstance(value, str) else ["HOURS", "DAYS", "MONTHS", "YEARS"]
        move = draw(st.sampled_from(moves))
        months = {"MONTHS": count, "YEARS": 12 * count}.get(move, 0)
        delta = {"HOURS": timedelta(hours=count), "DAYS": timedelta(days=count)}.get(move, timedelta())
        term = draw(
            st.sampled_from(
                [
                    Term(text=f"{inner} + INTERVAL '{count}' {move}", value=shift(value, delta, months)),
                    Term(text=f"({inner} - INTERVAL '{-count}' {move})", value=shift(value, delta, months)),
                    Term(text=f"date_add({inner}, {count})", value=as_date(value) + timedelta(days=count)),
                    Term(text=f"add_months({inner}, {count})", value=shift(as_date(value), timedelta(), count)),
                    Term(text=f"CAST({inner} AS DATE)", value=as_date(value)),
                    Term(text=f"CAST({inner} AS TIMESTAMP)", value=as_timestamp(value)),
                    Term(text=f"CAST({inner} AS STRING)", value=as_text(value)),
                    Term(text=f"date_trunc('{unit}', {inner})", value=truncated(as_timestamp(value), unit)),
                ]
            )
        )
    return term


@st.composite
def columns(draw: st.DrawFn, moment: datetime) -> tuple[str, str, Point]:
    """The type of a time column, an expression of it, and the value of that for a row of the moment."""
    is_midnight = moment == truncated(moment, "day")
    forms: list[tuple[str, Point]] = [("timestamp", moment), ("string", str(moment)), ("string", moment.isoformat())]
    if is_midnight:
        forms += [("date", moment.date()), ("string", str(moment.date()))]
    type_, value = draw(st.sampled_from(forms))
    unit = draw(st.sampled_from(UNITS))
    text, value = draw(
        st.sampled_from(
            [
                ("ds", value),
                ("CAST(ds AS DATE)", as_date(value)),
                ("to_date(ds)", as_date(value)),
                ("CAST(ds AS TIMESTAMP)", as_timestamp(value)),
                ("date_format(ds, 'yyyy-MM-dd')", str(as_date(value))),
                (f"date_trunc('{unit}', ds)", truncated(as_timestamp(value), unit)),
                (f"date_trunc('{unit}', CAST(ds AS DATE))", truncated(as_timestamp(as_date(value)), unit)),
            ]
        )
    )
    return type_, text, value


@settings(max_examples=400, deadline=None)
@given(st.data(), st.booleans())
def test_every_row_that_passes_a_comparison_lies_in_the_window(data: st.DataObject, is_day_aligned: bool) -> None:
    day = data.draw(st.dates(date(2019, 1, 1), date(2024, 12, 31)))
    steps = timedelta(days=1) if is_day_aligned else timedelta(minutes=5)
    start = datetime(day.year, day.month, day.day)
    if not is_day_aligned:
        start += data.draw(st.integers(0, 287)) * steps
    end = start + data.draw(st.integers(1, 40)) * steps
    term = data.draw(terms(start, end))
    near = as_timestamp(term.value)
    near = data.draw(st.sampled_from([near, truncated(near, "day"), start, end]))
    distance = st.sampled_from([timedelta(), MICRO, timedelta(hours=5), timedelta(days=1), timedelta(days=20)])
    moment = near + data.draw(distance) * data.draw(st.sampled_from([1, -1]))
    type_, column, value = data.draw(columns(moment))
    operator = data.draw(st.sampled_from(["<", "<=", "=", ">=", ">"]))
    assume(compare(value, operator, term.value))
    for types in ({"a": type_}, {}):
        text = f"SELECT * FROM a WHERE {column} {operator} {term.text}"
        found = input_windows(text, "spark", TIMES, time_types=types, is_day_aligned=is_day_aligned)["a"]
        assert holds(found, moment, start, end), (text, found, moment, start, end)
        bounded = found.lower if operator[0] == ">" else found.upper
        assert bounded is not None


# --- laws: queries ---------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Sql:
    """The same text for Spark and for SQLite, which is used to compute results."""

    spark: str
    lite: str


def sql(spark: str, lite: str | None = None, **parts: Sql) -> Sql:
    texts = {name: part.spark for name, part in parts.items()}, {name: part.lite for name, part in parts.items()}
    return Sql(spark=spark.format(**texts[0]), lite=(lite or spark).format(**texts[1]))


Grain: TypeAlias = Literal["day", "hour"]


@dataclass(frozen=True)
class Queries:
    """Random queries; all of them give the columns id, ds and x."""

    draw: st.DrawFn
    grain: Grain

    def pick(self, *options: Sql) -> Sql:
        return self.draw(st.sampled_from(options))

    def chance(self, percent: int) -> bool:
        return self.draw(st.integers(0, 99)) < percent

    def moved(self, value: Sql) -> Sql:
        count = self.draw(st.integers(-3, 3))
        # SQLite rounds to milliseconds, which would move the last microsecond of an interval out of it.
        lite = "date({v}" if self.grain == "day" else "datetime(substr({v}, 1, 19)"
        return sql(f"{{v}} + INTERVAL '{count}' {self.grain.upper()}", f"{lite}, '{count} {self.grain}s')", v=value)

    def bound(self) -> Sql:
        suffix = "ds" if self.grain == "day" else "ts"
        value = self.pick(sql(f"@start_{suffix}"), sql(f"@end_{suffix}"))
        return self.moved(value) if self.chance(30) else value

    def comparison(self, column: Sql, others: list[Sql]) -> Sql:
        operator = self.draw(st.sampled_from(["<", "<=", "=", ">=", ">"]))
        bound = self.draw(st.sampled_from(others)) if others and self.chance(40) else self.bound()
        bound = self.moved(bound) if self.chance(15) else bound
        low = self.bound()
        return self.pick(
            sql(f"{{c}} {operator} {{b}}", c=column, b=bound),
            sql(f"{{b}} {operator} {{c}}", c=column, b=bound),
            sql("{c} BETWEEN {l} AND {b}", c=column, b=bound, l=low),
            sql("{c} IN ({b}, {l})", c=column, b=bound, l=low),
            sql(
                f"CAST({{c}} AS DATE) {operator} CAST({{b}} AS DATE)",
                f"substr({{c}}, 1, 10) {operator} substr({{b}}, 1, 10)",
                c=column,
                b=bound,
            ),
        )

    def condition(self, relations: list[str], depth: int) -> Sql:
        names = [sql(f"{name}.ds") for name in relations]
        column = self.draw(st.sampled_from(names))
        others = [name for name in names if name != column]
        if depth > 0 and self.chance(50):
            one, other = self.condition(relations, depth - 1), self.condition(relations, depth - 1)
            table = self.table()
            relation = relations[0]
            return self.pick(
                sql("({a} AND {b})", a=one, b=other),
                sql("({a} AND {b})", a=one, b=other),
                sql("({a} OR {b})", a=one, b=other),
                sql("(NOT {a})", a=one),
                sql("({a} OR {c} IS NULL)", a=one, c=column),
                sql(f"{relation}.x <= 2"),
                sql(
                    f"EXISTS (SELECT 1 FROM {{t}} z WHERE z.id = {relation}.id AND {{k}})",
                    t=table,
                    k=self.condition(["z"], 0),
                ),
                sql(
                    f"{relation}.id NOT IN (SELECT z.id FROM {{t}} z WHERE {{k}})", t=table, k=self.condition(["z"], 0)
                ),
            )
        return self.comparison(column, others)

    def table(self) -> Sql:
        return self.pick(sql("a"), sql("b"))

    def source(self, depth: int) -> Sql:
        return sql("({q})", q=self.query(depth - 1)) if depth > 0 and self.chance(60) else self.table()

    def where(self, relations: list[str]) -> Sql:
        return sql(" WHERE {c}", c=self.condition(relations, 1)) if self.chance(60) else sql("")

    def query(self, depth: int) -> Sql:
        shape = self.draw(st.integers(0, 3 if depth == 0 else 9))
        if shape <= 3:
            return self.single(depth)
        if shape <= 7:
            return self.joined(depth)
        kind = self.draw(st.sampled_from(["UNION ALL", "UNION", "INTERSECT", "EXCEPT"]))
        return sql(f"{{a}} {kind} {{b}}", a=self.whole(depth - 1), b=self.whole(depth - 1))

    def whole(self, depth: int) -> Sql:
        return sql("SELECT id, ds, x FROM ({q}) w", q=self.query(depth))

    def single(self, depth: int) -> Sql:
        parts = {"s": self.source(depth), "w": self.where(["l"])}
        day = sql("CAST(l.ds AS DATE)", "substr(l.ds, 1, 10)")
        if self.grain == "hour":
            # SQLite has no dates: the midnight of the day is text like all others.
            day = sql("date_trunc('DAY', l.ds)", "strftime('%Y-%m-%d 00:00:00', l.ds)")
        return self.pick(
            sql("SELECT l.id, l.ds, l.x FROM {s} l{w}", **parts),
            sql("SELECT * FROM {s} l{w}", **parts),
            sql("SELECT l.id, {d} AS ds, l.x FROM {s} l{w}", d=day, **parts),
            sql("SELECT DISTINCT l.x AS id, l.ds, 1 AS x FROM {s} l{w}", **parts),
            sql("SELECT 1 AS id, l.ds, count(*) AS x FROM {s} l{w} GROUP BY l.ds", **parts),
            sql("SELECT count(*) AS id, {d} AS ds, sum(l.x) AS x FROM {s} l{w} GROUP BY {d}", d=day, **parts),
            sql("SELECT l.id, max(l.ds) AS ds, count(*) AS x FROM {s} l{w} GROUP BY l.id", **parts),
            sql(
                "SELECT l.id, l.ds, row_number() OVER (PARTITION BY l.id ORDER BY l.ds, l.x) AS x FROM {s} l{w}",
                **parts,
            ),
            sql("SELECT l.id, l.ds, l.x FROM {s} l{w} ORDER BY l.id, l.ds, l.x LIMIT 2", **parts),
        )

    def joined(self, depth: int) -> Sql:
        on = self.condition(["l", "r"], 1)
        if self.chance(60):
            on = sql("l.ds = r.ds AND {c}" if self.chance(50) else "l.id = r.id AND {c}", c=on)
        parts = {"l": self.source(depth), "r": self.source(depth), "c": on, "w": self.where(["l", "r"])}
        columns = self.draw(
            st.sampled_from(
                ["l.id, l.ds, r.x", "l.id, r.ds, r.x", "r.id, coalesce(l.ds, r.ds) AS ds, l.x", "1 AS id, l.ds, 1 AS x"]
            )
        )
        left_only = {**parts, "w": self.where(["l"])}
        semi = "SELECT l.id, l.ds, l.x FROM (SELECT * FROM {l} l{w}) l WHERE"
        options = [
            sql(f"SELECT {columns} FROM {{l}} l JOIN {{r}} r ON {{c}}{{w}}", **parts),
            sql(f"SELECT {columns} FROM {{l}} l LEFT JOIN {{r}} r ON {{c}}{{w}}", **parts),
            sql(
                f"SELECT {columns} FROM {{l}} l RIGHT JOIN {{r}} r ON {{c}}{{w}}",
                f"SELECT {columns} FROM {{r}} r LEFT JOIN {{l}} l ON {{c}}{{w}}",
                **parts,
            ),
            sql("SELECT l.id, ds, r.x FROM {l} l JOIN {r} r USING (ds){w}", **parts),
            sql("SELECT l.id, ds, r.x FROM {l} l LEFT JOIN {r} r USING (ds){w}", **parts),
            sql(
                "SELECT l.id, l.ds, l.x FROM {l} l LEFT SEMI JOIN {r} r ON {c}{w}",
                semi + " EXISTS (SELECT 1 FROM {r} r WHERE {c})",
                **left_only,
            ),
            sql(
                "SELECT l.id, l.ds, l.x FROM {l} l LEFT ANTI JOIN {r} r ON {c}{w}",
                semi + " NOT EXISTS (SELECT 1 FROM {r} r WHERE {c})",
                **left_only,
            ),
        ]
        if sqlite3.sqlite_version_info >= (3, 39):
            options += [
                sql(f"SELECT {columns} FROM {{l}} l FULL JOIN {{r}} r ON {{c}}{{w}}", **parts),
                sql("SELECT l.id, ds, r.x FROM {l} l FULL JOIN {r} r USING (ds){w}", **parts),
            ]
        return self.pick(*options)


Row: TypeAlias = "tuple[int, str, int]"


def result(text: str, tables: dict[str, list[Row]]) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(":memory:")
    try:
        for name, rows in tables.items():
            connection.execute(f"CREATE TABLE {name} (id INT, ds TEXT, x INT)")
            connection.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", rows)
        return sorted(connection.execute(text).fetchall(), key=repr)
    finally:
        connection.close()


@st.composite
def cases(draw: st.DrawFn, grain: Grain) -> tuple[Sql, datetime, datetime, dict[str, list[Row]]]:
    unit = timedelta(days=1) if grain == "day" else timedelta(hours=1)
    first = datetime(2024, 2, 26, 20 if grain == "hour" else 0)
    start = first + draw(st.integers(3, 7)) * unit
    end = start + draw(st.integers(1, 2)) * unit
    queries = Queries(draw=draw, grain=grain)
    query = sql("SELECT * FROM ({q}) q{w}", q=queries.query(2), w=queries.where(["q"]))
    moments = st.integers(0, 11).map(
        lambda step: str((first + step * unit).date() if grain == "day" else first + step * unit)
    )
    rows = st.lists(st.tuples(st.integers(1, 2), moments, st.integers(1, 3)), min_size=4, max_size=10)
    return query, start, end, {"a": draw(rows), "b": draw(rows)}


def check_that_rows_outside_do_not_matter(
    case: tuple[Sql, datetime, datetime, dict[str, list[Row]]], grain: Grain
) -> None:
    query, start, end, tables = case
    types = {"a": "date", "b": "date"} if grain == "day" else {"a": "timestamp", "b": "timestamp"}
    text = query.lite
    for name, moment in (("start", start), ("end", end - MICRO)):
        text = text.replace(f"@{name}_ds", f"'{moment.date()}'").replace(f"@{name}_ts", f"'{moment}'")
    for known in (types, {}):
        found = input_windows(query.spark, "spark", TIMES, time_types=known, is_day_aligned=grain == "day")
        kept = {
            name: [row for row in rows if name not in found or holds(found[name], as_timestamp(row[1]), start, end)]
            for name, rows in tables.items()
        }
        assert result(text, kept) == result(text, tables), (query.spark, dict(found))


@settings(max_examples=200, deadline=None)
@given(cases("day"))
def test_rows_outside_of_the_windows_do_not_matter_to_days(
    case: tuple[Sql, datetime, datetime, dict[str, list[Row]]],
) -> None:
    check_that_rows_outside_do_not_matter(case, "day")


@settings(max_examples=200, deadline=None)
@given(cases("hour"))
def test_rows_outside_of_the_windows_do_not_matter_to_hours(
    case: tuple[Sql, datetime, datetime, dict[str, list[Row]]],
) -> None:
    check_that_rows_outside_do_not_matter(case, "hour")
