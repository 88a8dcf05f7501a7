"""`kill -9` in the middle of real commands: the next one finishes, and the tables are as if nothing had happened."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lamina.bootstrap import STOP_VARIABLE
from tests.e2e.conftest import Project

RAW = "id,day,amount\n" + "".join(f"{number},2024-01-{1 + number % 6:02d},{number * 3}\n" for number in range(40))
ORDERS = """MODEL (name shop.orders, kind INCREMENTAL_BY_TIME_RANGE (time_column ds, batch_size 2), start '2024-01-01');
SELECT id, amount, CAST(day AS DATE) AS ds FROM shop.raw WHERE CAST(day AS DATE) BETWEEN @start_date AND @end_date
"""
TOTALS = "MODEL (name shop.totals, kind FULL);\nSELECT ds, SUM(amount) AS total FROM shop.orders GROUP BY ds\n"
TOP = "MODEL (name shop.top, kind VIEW);\nSELECT MAX(total) AS total FROM shop.totals\n"
EVERYTHING = (
    "SELECT 'orders' AS name, CAST(id AS STRING) AS a, CAST(amount AS STRING) AS b, CAST(ds AS STRING) AS c "
    "FROM shop.orders UNION ALL SELECT 'totals', CAST(ds AS STRING), CAST(total AS STRING), '' FROM shop.totals "
    "UNION ALL SELECT 'top', CAST(total AS STRING), '', '' FROM shop.top ORDER BY 1, 2, 3, 4"
)
FIRST, NEXT = "2024-01-05", "2024-01-07"


def make(folder: Path) -> Project:
    folder.mkdir()
    project = Project(folder)
    project.write(
        lamina_yaml="name: shop\n",
        seeds__raw_csv=RAW,
        models__orders_sql=ORDERS,
        models__totals_sql=TOTALS,
        models__top_sql=TOP,
    )
    return project


def rows(project: Project) -> list[Any]:
    return project.document("query", EVERYTHING)["rows"]


def expected() -> list[list[str]]:
    """What the models give when nobody kills anything."""
    orders = [(number, number * 3, f"2024-01-{1 + number % 6:02d}") for number in range(40)]
    days = sorted({day for _, _, day in orders})
    totals = {day: sum(amount for _, amount, found in orders if found == day) for day in days}
    found = [["orders", str(number), str(amount), day] for number, amount, day in orders]
    found += [["totals", day, str(total), ""] for day, total in totals.items()]
    return sorted([*found, ["top", str(max(totals.values())), "", ""]])


class Story:
    """A project whose commands are killed one after another."""

    def __init__(self, folder: Path) -> None:
        self.killed: list[subprocess.CompletedProcess[str]] = []
        self.project = make(folder / "killed")
        self.kill("write.decided:3", "build", "--execution-time", FIRST)
        self.kill("promote.pointer", "build", "--execution-time", FIRST)
        self.kill("write.published:1", "run", "--execution-time", NEXT)
        restate = ("--restate", "shop.orders", "--start", "2024-01-02", "--end", "2024-01-03")
        self.kill("write.generation", "build", "--execution-time", NEXT, *restate)
        self.last = self.project.lamina("build", "--execution-time", NEXT, "--json")
        self.again = self.project.lamina("build", "--execution-time", NEXT, "--json")
        self.rows = rows(self.project)

    def kill(self, place: str, *words: str) -> None:
        self.killed.append(self.project.lamina(*words, **{STOP_VARIABLE: f"kill:{place}"}))


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    return Story(tmp_path_factory.mktemp("kill"))


def test_every_command_really_was_killed(story: Story) -> None:
    assert [answer.returncode for answer in story.killed] == [-signal.SIGKILL] * 4, [a.stderr for a in story.killed]


def test_the_next_command_finishes_the_work(story: Story) -> None:
    assert story.last.returncode == 0, story.last.stdout + story.last.stderr
    assert json.loads(story.last.stdout)["environment"]["status"] == "finalized"


def test_then_there_is_nothing_left_to_do(story: Story) -> None:
    assert json.loads(story.again.stdout)["status"] == "nothing_to_do"


def test_the_tables_are_those_of_a_build_that_nobody_killed(story: Story) -> None:
    assert story.rows == expected()
