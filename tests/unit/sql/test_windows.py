from __future__ import annotations

import time

import pytest

from lamina.sql.lineage.input_windows import Offset
from lamina.sql.lineage.windows import input_windows

HOUR = 3600 * 1_000_000
DAY = 24 * HOUR
TIMES = {"a": "ds", "b": "ds", "s.c": "ts"}
WHOLE = "ds BETWEEN @start_ds AND @end_ds"


def shown(offset: Offset | None) -> str:
    if offset is None:
        return "open"
    months = f" {offset.months:+d} months" if offset.months else ""
    days, micros = int(offset.micros / DAY), offset.micros - int(offset.micros / DAY) * DAY
    text = offset.base + months + (f" {days:+d} days" if days else "") + (f" {micros:+d} us" if micros else "")
    return f"day of {text}" if offset.is_day else text


def windows(text: str, dialect: str = "spark", /, **options: object) -> dict[str, str]:
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
    assert window(WHOLE, is_day_aligned=False) == "day of start .. end +1 days"
    for known in ("date", "timestamp"):
        assert window(WHOLE, is_day_aligned=False, time_types={"a": known}) == "day of start .. end"
    assert window("ds BETWEEN @start_dt AND @end_dt", is_day_aligned=False) == "start .. end"


def test_the_type_of_the_time_column_makes_bounds_of_text_exact() -> None:
    condition = "ds >= @start_ts AND ds < @start_ts + INTERVAL 1 HOUR"
    assert window(condition, is_day_aligned=False) == f"day of start .. start {HOUR + 1:+d} us"
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
            f"WITH w AS (SELECT * FROM a) SELECT 1 FROM w WHERE {WHOLE} UNION ALL SELECT 1 FROM w TABLESAMPLE (9 ROWS)",
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


def test_columns_of_unknown_types_are_equal_by_day_only() -> None:
    text = "SELECT 1 FROM a JOIN b ON a.ds = b.ds WHERE a.ds BETWEEN @start_dt AND @end_dt"
    exact = {"a": "start .. end", "b": "start .. end"}
    assert windows(text) == exact
    assert windows(text, is_day_aligned=False) == {"a": "start .. end", "b": "day of start .. end +1 days"}
    assert windows(text, is_day_aligned=False, time_types={"a": "timestamp", "b": "string"}) == exact


@pytest.mark.parametrize("side", ["", "LEFT", "RIGHT"])
def test_a_shared_column_of_a_join_narrows_both_sides(side: str) -> None:
    text = f"SELECT 1 FROM a {side} JOIN b USING (ds) WHERE {WHOLE}"
    assert windows(text) == {"a": "start .. end", "b": "start .. end"}
    other = f"SELECT 1 FROM other {side} JOIN b USING (ds) WHERE {WHOLE}"
    assert windows(other) == {"b": "start .. end"}


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
