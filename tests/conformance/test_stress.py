"""Eight processes and many kills: nobody sees half of anything, nothing hangs, and one more command sets all right."""

from __future__ import annotations

import os
import random
import signal
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from tests.conformance.stress import DAYS, ROWS, WORKERS, date, summary
from tests.kit.told import told

SECONDS = float(os.environ.get("LAMINA_STRESS_SECONDS", "12"))
SEED = int(os.environ.get("LAMINA_STRESS_SEED", random.SystemRandom().randrange(10**6)))
REFUSALS = {"LAM-PLAN-003", "LAM-PLAN-011"}
"""Others kept changing what was planned until the command stopped before writing; a promotion that lacks something."""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(SECONDS * 3 + 1500)]


@pytest.fixture(scope="module")
def stressed(server: str, postgresql: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with psycopg.connect(postgresql, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA stress")
    state = f"{postgresql}?options={quote('-csearch_path=stress', safe='')}"
    folder = str(tmp_path_factory.mktemp("stress") / "project")
    seen = told("-m", "tests.conformance.stress", folder, server, state, str(SEED), str(SECONDS))
    print(f"LAMINA_STRESS_SEED={SEED}: {summary(seen)}, {seen['reads']} reads")
    return seen


def test_readers_never_fail_and_see_every_day_whole_once_and_of_one_edition(stressed: dict[str, Any]) -> None:
    assert stressed["wrong"] == []
    assert stressed["reads"] > WORKERS


def test_no_command_hangs_and_those_that_were_not_killed_succeed(stressed: dict[str, Any]) -> None:
    ended = stressed["ended"]
    assert [each for each in ended if each["is_hanging"]] == []
    assert any(each["exit"] == -signal.SIGKILL for each in ended)
    bad = [each for each in ended if each["exit"] not in {0, -signal.SIGKILL} and not REFUSALS & set(each["codes"])]
    assert not bad, "\n\n".join(f"{each['words']} ({each['seconds']} s)\n{each['text']}" for each in bad)


def test_nothing_that_succeeded_says_failed(stressed: dict[str, Any]) -> None:
    said = [each for each in stressed["ended"] if each["exit"] == 0 and "failed" in each["text"].lower()]
    assert said == []
    assert [each for each in stressed["ended"] if "Traceback" in each["text"]] == []


def test_one_more_command_brings_everything_right(stressed: dict[str, Any]) -> None:
    assert (stressed["last"]["exit"], stressed["again"]["exit"]) == (0, 0)
    rows = stressed["rows"]
    assert rows["log"] == [[date(day), number] for day in range(1, DAYS + 1) for number in range(ROWS)]
    assert [row[:2] for row in rows["days"]] == rows["log"]
    assert rows["latest"] == rows["days"]
    assert rows["totals"] == rows["days"]
