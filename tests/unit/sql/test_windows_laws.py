from __future__ import annotations

import calendar
import re
import sqlite3
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from random import Random
from typing import Literal, TypeAlias

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lamina.sql.lineage.input_windows import InputWindow, Offset
from lamina.sql.lineage.windows import input_windows

MICRO = timedelta(microseconds=1)
TIMES = {"a": "ds", "b": "ds"}


# --- bounds ----------------------------------------------------------------------------------------------------
Point: TypeAlias = "str | date | datetime"
"""A value as Spark has it: text, a date, or a timestamp."""
UNITS = ("hour", "day", "week", "month", "quarter", "year")


def add_months(moment: datetime, months: int) -> datetime:
    years, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    day = min(moment.day, calendar.monthrange(years, month + 1)[1])
    return moment.replace(year=years, month=month + 1, day=day)


def moment_of(offset: Offset, start: datetime, end: datetime) -> datetime:
    base = start if offset.base == "start" else end
    moved = add_months(base, offset.months) + offset.micros * MICRO
    return moved.replace(hour=0, minute=0, second=0, microsecond=0) if offset.is_day else moved


def holds(window: InputWindow, moment: datetime, start: datetime, end: datetime) -> bool:
    return (window.lower is None or moment_of(window.lower, start, end) <= moment) and (
        window.upper is None or moment < moment_of(window.upper, start, end)
    )


def as_timestamp(point: Point) -> datetime:
    if isinstance(point, str):
        return datetime.fromisoformat(point.removesuffix("+00:00"))
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


@settings(max_examples=200, deadline=None)
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


# --- queries ---------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Sql:
    """The same text for Spark and for SQLite, which is used to compute results."""

    spark: str
    lite: str


def sql(spark: str, lite: str | None = None, /, **parts: Sql) -> Sql:
    texts = {name: part.spark for name, part in parts.items()}, {name: part.lite for name, part in parts.items()}
    return Sql(spark=spark.format(**texts[0]), lite=(lite or spark).format(**texts[1]))


Grain: TypeAlias = Literal["day", "hour"]


@dataclass(frozen=True)
class Queries:
    """Random queries; all of them give the columns id, ds and x."""

    random: Random
    grain: Grain

    def pick(self, *options: Sql) -> Sql:
        return self.random.choice(options)

    def chance(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    def moved(self, value: Sql) -> Sql:
        count = self.random.randint(-3, 3)
        # SQLite rounds to milliseconds, which would move the last microsecond of an interval out of it.
        lite = "date({v}" if self.grain == "day" else "datetime(substr({v}, 1, 19)"
        return sql(f"{{v}} + INTERVAL '{count}' {self.grain.upper()}", f"{lite}, '{count} {self.grain}s')", v=value)

    def bound(self) -> Sql:
        suffix = "ds" if self.grain == "day" else "ts"
        value = self.pick(sql(f"@start_{suffix}"), sql(f"@end_{suffix}"))
        return self.moved(value) if self.chance(30) else value

    def comparison(self, column: Sql, others: list[Sql]) -> Sql:
        operator = self.random.choice(["<", "<=", "=", ">=", ">"])
        bound = self.random.choice(others) if others and self.chance(40) else self.bound()
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
        column = self.random.choice(names)
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
        shape = self.random.randint(0, 3 if depth == 0 else 9)
        if shape <= 3:
            return self.single(depth)
        if shape <= 7:
            return self.joined(depth)
        kind = self.random.choice(["UNION ALL", "UNION", "INTERSECT", "EXCEPT"])
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
        columns = self.random.choice(
            ["l.id, l.ds, r.x", "l.id, r.ds, r.x", "r.id, coalesce(l.ds, r.ds) AS ds, l.x", "1 AS id, l.ds, 1 AS x"]
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


def check_that_rows_outside_do_not_matter(random: Random, grain: Grain) -> None:
    """Compare the result of a random query over random tables with the result over what the windows leave of them."""
    unit = timedelta(days=1) if grain == "day" else timedelta(hours=1)
    first = datetime(2024, 2, 26, 20 if grain == "hour" else 0)
    queries = Queries(random=random, grain=grain)
    query = sql("SELECT * FROM ({q}) q{w}", q=queries.query(random.choice([1, 1, 2])), w=queries.where(["q"]))
    type_ = "date" if grain == "day" else "timestamp"
    found = [
        input_windows(query.spark, "spark", TIMES, time_types=types, is_day_aligned=grain == "day")
        for types in ({"a": type_, "b": type_}, {})
    ]
    for _ in range(4):
        start = first + random.randint(2, 4) * unit
        end = start + random.randint(1, 2) * unit
        moments = [first + step * unit for step in range(8)]
        times = [str(moment.date() if grain == "day" else moment) for moment in moments]
        tables = {
            name: [(random.randint(1, 2), random.choice(times), random.randint(1, 3)) for _ in range(6)]
            for name in TIMES
        }
        text = query.lite
        for name, moment in (("start", start), ("end", end - MICRO)):
            text = text.replace(f"@{name}_ds", f"'{moment.date()}'").replace(f"@{name}_ts", f"'{moment}'")
        expected = result(text, tables)
        for windows in found:
            kept = {
                name: [
                    row for row in rows if name in windows and holds(windows[name], as_timestamp(row[1]), start, end)
                ]
                for name, rows in tables.items()
            }
            assert kept == tables or result(text, kept) == expected, (query.spark, dict(windows))


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**9), st.sampled_from(["day", "hour"]))
def test_rows_outside_of_the_windows_do_not_matter(seed: int, grain: Grain) -> None:
    # Hypothesis picks the seed only: drawing whole queries from it would take most of the time.
    check_that_rows_outside_do_not_matter(Random(seed), grain)
