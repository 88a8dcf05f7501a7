"""Signals through the command line, on a project on disk and without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from lamina.cli.main import cli

MODEL = """
MODEL (
  name shop.orders,
  kind INCREMENTAL_BY_TIME_RANGE (time_column ds),
  start '2024-01-01',
  signals ({0})
);
SELECT CAST(ds AS DATE) AS ds FROM VALUES ('2024-01-01'), ('2024-01-02') AS t(ds)
WHERE ds BETWEEN @start_ds AND @end_ds
"""
CODE = """
from datetime import datetime, timezone

from lamina import signal


@signal()
def arrived(batch, until):
    last = datetime.fromisoformat(until).replace(tzinfo=timezone.utc)
    return [unit for unit in batch if unit[1] <= last]


@signal()
def broken(batch):
    return batch.nothing
"""
Plan = Callable[..., Result]


@pytest.fixture
def plan(project, monkeypatch) -> Plan:
    """`lamina plan` of a model with these signals, where Spark could not start."""
    monkeypatch.setenv("JAVA_HOME", "/nowhere")

    def call(signals: str, *words: str) -> Result:
        folder = project({"models/orders.sql": MODEL.format(signals), "signals/checks.py": CODE})
        return CliRunner().invoke(cli, ["plan", "-C", str(folder.root), "--execution-time", "2024-01-05", *words])

    return call


def test_a_plan_says_what_waits_for_a_signal(plan: Plan):
    answer = plan("arrived(until := '2024-01-03')")
    (node,) = json.loads(plan("arrived(until := '2024-01-03')", "--json").stdout)["nodes"]

    assert answer.exit_code == 0
    assert "signal `arrived` to release" in " ".join(answer.stdout.split())
    assert node["intervals"] == [["2024-01-01T00:00:00Z", "2024-01-03T00:00:00Z"]]
    assert node["waiting_for"] == [
        {"name": "signal:arrived", "interval": ["2024-01-03T00:00:00Z", "2024-01-05T00:00:00Z"]}
    ]


def test_a_plan_in_which_everything_waits_does_not_claim_that_nothing_is_missing(plan: Plan):
    answer = plan("arrived(until := '2023-01-03')")

    assert answer.exit_code == 0
    assert "Nothing can be processed now: see what waits above" in answer.stderr


def test_an_unknown_signal_is_an_invalid_project(plan: Plan):
    answer = plan("arrivedd", "--json")
    (error,) = json.loads(answer.stdout)["errors"]

    assert answer.exit_code == 2
    assert (error["code"], error["file"], error["line"]) == ("LAM-DEF-006", "models/orders.sql", 6)
    assert error["hint"] == "did you mean `arrived`?"


def test_a_failing_signal_is_shown_with_its_line(plan: Plan):
    answer = plan("broken")
    (node,) = json.loads(plan("broken", "--json").stdout)["nodes"]

    assert answer.exit_code == 1
    assert "signals/checks.py:15" in answer.stderr
    assert (node["error"]["code"], node["error"]["line"]) == ("LAM-PLAN-010", 15)
