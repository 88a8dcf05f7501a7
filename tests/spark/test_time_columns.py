"""Every type of time column with every way to partition: units are written, replaced and compared exactly."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from lamina.app.ports.engine import Written
from lamina.errors import BadModelResult
from lamina.graph.kinds import TimeColumn
from lamina.timeline.grain import Grain
from lamina.timeline.interval import EMPTY, Intervals
from tests.spark.driver import Table

pytest_plugins = ["tests.ports.conftest_engine"]

DAYS = ("2024-01-31", "2024-02-01", "2024-02-02", "2024-02-03")
"""Three days, of which the first lies in another month."""
HOURS = ("2024-01-31T22:00:00", "2024-01-31T23:00:00", "2024-02-01T00:00:00", "2024-02-01T01:00:00")
"""Three hours, of which the last lies in another day and month."""


@dataclass(frozen=True, kw_only=True)
class Time:
    """A type of time column: how a moment is turned into it, and an expression of its month."""

    value: str
    month: str
    time_format: str | None = None
    grain: Grain = Grain.DAY

    @property
    def bounds(self) -> tuple[str, ...]:
        return DAYS if self.grain is Grain.DAY else HOURS


TIMES = {
    "date": Time(value="CAST(ts AS DATE)", month="month(at)"),
    "timestamp": Time(value="ts", month="month(at)", grain=Grain.HOUR),
    "timestamp_ntz": Time(value="CAST(ts AS TIMESTAMP_NTZ)", month="month(at)", grain=Grain.HOUR),
    "string": Time(value="date_format(ts, 'yyyy-MM-dd')", month="month(at)"),
    "string by hour": Time(
        value="date_format(ts, \"yyyy-MM-dd'T'HH\")",
        month="substr(at, 1, 7)",
        time_format="%Y-%m-%dT%H",
        grain=Grain.HOUR,
    ),
    "string, day first": Time(value="date_format(ts, 'dd.MM.yyyy')", month="substr(at, 4, 2)", time_format="%d.%m.%Y"),
    "string with names": Time(value="date_format(ts, 'dd MMM yyyy')", month="substr(at, 4, 3)", time_format="%d %b %Y"),
    "integer": Time(value="CAST(date_format(ts, 'yyyyMMdd') AS INT)", month="at div 100", time_format="%Y%m%d"),
    "integer by hour": Time(
        value="CAST(date_format(ts, 'yyyyMMddHH') AS BIGINT)",
        month="at div 10000",
        time_format="%Y%m%d%H",
        grain=Grain.HOUR,
    ),
}
LAYOUTS = {
    "by time": ("at",),
    "none": (),
    "by time and region": ("at", "region"),
    "by month and region": ("{month}", "region"),
    "by hidden keys": ("upper(region)", "bucket(2, id)"),
}
# Every type and every layout, the commonest in more than one pair.
COMBINATIONS = [
    ("date", "by time"),
    ("timestamp", "by time"),
    ("timestamp", "none"),
    ("timestamp", "by month and region"),
    ("timestamp_ntz", "by time and region"),
    ("string", "by time"),
    ("string by hour", "by month and region"),
    ("string, day first", "by time and region"),
    ("string with names", "by time"),
    ("integer", "by hidden keys"),
    ("integer by hour", "by time"),
]


def rows(time: Time, *values: tuple[int, str, str | None]) -> str:
    """A query that gives rows of an id, a region and a moment."""
    listed = ", ".join(
        f"({number}, '{region}', {'NULL' if at is None else f'TIMESTAMP {at!r}'})" for number, region, at in values
    )
    typed = (
        f"VALUES {listed} v(id, region, ts)" if values else "VALUES (0, '', TIMESTAMP '2024-01-01') v(id, region, ts)"
    )
    return f"SELECT id, region, {time.value} AS at FROM {typed}{'' if values else ' WHERE false'}"


@pytest.mark.parametrize(("kind", "layout"), COMBINATIONS)
def test_a_unit_is_written_replaced_emptied_and_compared_exactly(table: Table, kind: str, layout: str) -> None:
    time = TIMES[kind]
    first, second, third, end = time.bounds
    table = replace(
        table,
        time_column=TimeColumn(name="at", format=time.time_format),
        partitioned_by=tuple(text.format(month=time.month) for text in LAYOUTS[layout]),
    )

    def write(interval: tuple[str, str], *values: tuple[int, str, str | None], recorded: Intervals = EMPTY) -> Written:
        request = replace(table.request(rows(time, *values), interval), grain=time.grain, recorded=recorded)
        written = table.engine.write(request)
        table.publish(request, written)
        return written

    # Rows without a time, and rows outside of the interval, do not land.
    written = write(
        (first, end), (1, "eu", first), (2, "us", second), (3, "eu", third), (8, "eu", end), (9, "eu", None)
    )
    assert (written.rows, written.null_times) == (3, 1)
    assert table.rows("id, region") == [(1, "eu"), (2, "us"), (3, "eu")]

    # Two units are computed again, one of them with other rows: that one is told, and the unit before stays.
    again = (20, "us", second), (21, "eu", second), (3, "eu", third), (7, "eu", first)
    written = write((second, end), *again, recorded=Intervals.from_pairs([(second, end)]))
    assert (written.rows, written.null_times) == (3, 0)
    assert written.changed == Intervals.from_pairs([(second, third)])
    assert table.rows("id, region") == [(1, "eu"), (20, "us"), (21, "eu"), (3, "eu")]

    # The unit in the middle comes out empty: its rows are gone, with every partition that held nothing else.
    assert write((second, third)).rows == 0
    assert table.rows("id, region") == [(1, "eu"), (3, "eu")]
    left = {key[-1] for key in table.manifest} if layout in {"by time and region", "by month and region"} else {"eu"}
    assert left == {"eu"}
    if layout == "by time":
        units = 2 if time.grain is Grain.DAY or "by hour" in kind else len({first[:10], third[:10]})
        assert len(table.manifest) == units


def test_a_type_that_turns_out_not_to_tell_hours_apart_is_refused(table: Table) -> None:
    for kind in ("date", "string", "string, day first", "integer"):
        declared = TimeColumn(name="at", format=TIMES[kind].time_format)
        made = replace(table, time_column=declared, partitioned_by=("at",))
        query = rows(TIMES[kind], (1, "eu", HOURS[0]))
        with pytest.raises(BadModelResult, match="does not say the hour"):
            made.engine.write(replace(made.request(query, (HOURS[0], HOURS[1])), grain=Grain.HOUR))
    # A day that is not over is the beginning of a whole unit.
    part = replace(made.request(query, (DAYS[0], HOURS[0])), grain=Grain.DAY)
    assert made.engine.write(part).rows == 1


def test_values_that_do_not_follow_the_format_lie_in_no_unit(table: Table) -> None:
    table = replace(table, time_column=TimeColumn(name="at"), partitioned_by=("at",))
    values = "VALUES (1, '2024-01-31'), (2, '2024-1-31'), (3, '2024-01-31 05:00:00'), (4, 'soon'), (5, '2024-02-30')"
    written = table.write(f"SELECT * FROM {values} v(id, at)", (DAYS[0], DAYS[3]))
    assert (written.rows, table.rows("id")) == (1, [(1,)])


def test_the_bounds_of_an_interval_are_exact_to_the_microsecond(table: Table) -> None:
    table = replace(table, time_column=TimeColumn(name="at"), partitioned_by=("at",))
    moments = ("2024-01-31 21:59:59.999999", "2024-01-31 22:00:00", "2024-01-31 22:59:59.999999", "2024-01-31 23:00:00")
    values = ", ".join(f"({number}, TIMESTAMP {at!r})" for number, at in enumerate(moments))
    written = table.engine.write(table.request(f"SELECT * FROM VALUES {values} v(id, at)", HOURS[:2]))
    assert written.rows == 2
