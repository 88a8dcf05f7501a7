"""What the interval engine costs: comparing rows, planning on a long history, and a backfill in one batch."""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lamina import Project
from lamina.app.writing.contents import MOST_UNITS
from lamina.graph.kinds import TimeColumn
from lamina.identity.naming import PhysicalName
from lamina.planning.inputs import VersionFacts
from lamina.planning.plan import make_plan
from lamina.spark.engine import SparkEngine
from lamina.spark.sessions.embedded import SparkSettings
from lamina.timeline.grain import Grain
from lamina.timeline.interval import EMPTY, Interval, Intervals
from tests.kit.models import World, daily, instant, model
from tests.spark.driver import Table

if TYPE_CHECKING:
    from collections.abc import Callable

_DAYS = 30
_FIRST, _END = "2024-01-01", "2024-01-31"
_SETTINGS = {"spark.driver.memory": "6g", "spark.sql.shuffle.partitions": "2"}
_COLUMNS = "id, id % 97 AS customer_id, CAST(id % 1300 AS DOUBLE) AS amount, CONCAT('status', id % 3) AS status"

_MORE_COLUMNS = (
    "uuid() AS reference, concat('city ', id % 5000) AS city, CAST(id % 77 AS DECIMAL(12, 2)) AS tax, "
    "timestampadd(SECOND, CAST(id % 86400 AS INT), TIMESTAMP'2024-01-01') AS ordered_at"
)


def main() -> dict[str, Any]:
    """All three."""
    return {"comparing": comparing(), "planning": planning_on_history(), "backfill": backfill()}


def best(rounds: int, *works: Callable[[], object]) -> list[float]:
    """The shortest time of each, taken in turns so that all meet the same machine."""
    best = [float("inf")] * len(works)
    for _ in range(rounds):
        for number, work in enumerate(works):
            begun = time.perf_counter()
            work()
            best[number] = min(best[number], time.perf_counter() - begun)
    return best


# --- comparing --------------------------------------------------------------------------------------------------------
def comparing(rows: int = 6_000_000) -> dict[str, Any]:
    """The same batch written with and without a comparison with what it replaces, equal and in part different.

    Eight days, of which seven were computed before: what a model that looks back by a week writes every day, compared
    with what is remembered of those days. And a month computed again, for which the old rows are read.
    """
    with tempfile.TemporaryDirectory() as folder:
        engine = SparkEngine(
            SparkSettings(home=Path(folder) / ".lamina", master="local[2]", config=_SETTINGS), _ignore, _ignore
        )
        engine.prepare("benchmark")
        try:
            source = f"SELECT {_COLUMNS}, {_MORE_COLUMNS} FROM range(0, {rows}, 1, 8)"
            engine.frame("CREATE SCHEMA IF NOT EXISTS raw")
            engine.frame(f"CREATE TABLE raw.orders USING parquet AS {source}")
            table = Table(engine, "bench", partitioned_by=("ds",), time_column=TimeColumn(name="ds"))
            found = {}
            for name, days, past in (("looking_back", 8, 7), ("a_month_again", 30, 30)):
                day = f"date_add(DATE'{_FIRST}', CAST(id % {days} AS INT)) AS ds"
                query = f"SELECT * EXCEPT (amount), amount, {day} FROM raw.orders"
                other = query.replace(" amount,", " IF(id = 8, 0, amount) AS amount,")
                found[name] = _compared(replace(table, name=name), query, other, days, past)
        finally:
            engine.close()
    return {"rows": rows, **found}


def _compared(table: Table, query: str, other: str, days: int, past: int) -> dict[str, float]:
    begin = instant(_FIRST)
    whole = Interval(begin, Grain.DAY.add(begin, days)).to_pair()
    remembered = replace(table, measured_in=Grain.DAY if days <= MOST_UNITS else None)
    remembered.write(query, whole)
    recorded = Intervals.of([Interval(begin, Grain.DAY.add(begin, past))])
    plain_table = replace(remembered, measured_in=None)

    def write(written: Table, sql: str, compared: Intervals) -> None:
        table.engine.write(replace(written.request(sql, whole), recorded=compared, grain=Grain.DAY))

    plain, same, different = best(
        3,
        lambda: write(plain_table, query, EMPTY),
        lambda: write(remembered, query, recorded),
        lambda: write(remembered, other, recorded),
    )
    return {
        "write_seconds": round(plain, 2),
        "ratio_when_the_same": round(same / plain, 2),
        "ratio_when_different": round(different / plain, 2),
    }


def _ignore(_: object) -> None:
    """Nobody watches."""


# --- planning ---------------------------------------------------------------------------------------------------------
def planning_on_history(models: int = 300, units: int = 5_000_000) -> dict[str, Any]:
    """Plans of the same project with one recorded unit per model and with millions."""
    short, long = (_plans(models, count) for count in (1, units))
    one, many = best(15, short, long)
    return {"models": models, "units": units, "seconds": round(many, 4), "ratio_to_one_unit": round(many / one, 2)}


def _plans(models: int, units: int) -> Callable[[], object]:
    now = instant("2024-01-01")
    start = Grain.FIVE_MINUTE.add(now, -units)
    made = [
        replace(
            model(f"shop.m{number}", ["raw.x"], kind=daily(lookback=2), start=start.isoformat(), cron="*/5 * * * *"),
            grain=Grain.FIVE_MINUTE,
        )
        for number in range(models)
    ]
    world = World(*made)
    world.carry_out(make_plan(world.inputs(now.isoformat(), command="build")))
    facts: dict[PhysicalName, VersionFacts] = world.facts
    covered = Intervals.of([Interval(start, now)])
    world.facts = {name: replace(found, covered=covered) for name, found in facts.items()}
    inputs = world.inputs(Grain.FIVE_MINUTE.add(now, 1).isoformat(), command="run")
    return lambda: make_plan(inputs)


# --- backfill ---------------------------------------------------------------------------------------------------------
def backfill(rows: int = 50_000_000) -> dict[str, Any]:
    """Thirty days in one batch, against one INSERT of the same query by hand, in one session."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "models").mkdir()
        (folder / "lamina.yaml").write_text(
            f"name: bench\ndefaults: {{start: {_FIRST}}}\nspark:\n  master: local[2]\n  config:\n"
            + "".join(f"    {key}: {value}\n" for key, value in _SETTINGS.items()),
            encoding="utf-8",
        )
        with Project.open(folder) as project:
            session = project.query("SELECT 1 AS x").sparkSession
            session.sql("CREATE SCHEMA IF NOT EXISTS raw")
            session.sql(
                f"CREATE TABLE raw.events USING parquet AS SELECT {_COLUMNS}, "
                f"date_add(DATE'{_FIRST}', CAST(id / {rows // _DAYS} AS INT)) AS ds FROM range(0, {rows}, 1, 8)"
            )
            session.sql("CREATE SCHEMA IF NOT EXISTS hand")
            session.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
            counter = iter(range(100))

            def by_hand() -> None:
                name = f"hand.t{next(counter)}"
                session.sql(
                    f"CREATE TABLE {name} (id BIGINT, customer_id BIGINT, amount DOUBLE, status STRING, ds DATE) "
                    "USING parquet PARTITIONED BY (ds)"
                )
                session.sql(
                    f"INSERT OVERWRITE {name} SELECT id, customer_id, amount * 2, status, ds FROM raw.events "
                    f"WHERE ds BETWEEN DATE'{_FIRST}' AND DATE'2024-01-30'"
                )
                session.sql(f"DROP TABLE {name}")

            def by_lamina() -> None:
                (folder / "models" / "events.sql").write_text(
                    "MODEL (name bench.events, kind INCREMENTAL_BY_TIME_RANGE (time_column ds), "
                    f"stamp 'round {next(counter)}');\n"
                    "SELECT id, customer_id, amount * 2 AS amount, status, ds FROM raw.events "
                    "WHERE ds BETWEEN @start_date AND @end_date\n",
                    encoding="utf-8",
                )
                report = project.build("prod", execution_time=_END)
                assert report.status == "succeeded", report.to_dict()

            hand, ours = best(2, by_hand, by_lamina)
    return {
        "rows": rows,
        "by_hand_seconds": round(hand, 2),
        "lamina_seconds": round(ours, 2),
        "ratio": round(ours / hand, 2),
    }
