"""No flag takes history from readers: what the command line answers, and what prod shows after it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.conftest import Project

NOW = ("--execution-time", "2024-01-06")
CONFIG = (
    "name: shop\ndefaults: {start: 2024-01-01}\n"
    "spark: {master: 'local[1]', config: {spark.sql.shuffle.partitions: 1}}\n"
)
DAYS = "SELECT explode(sequence(DATE'2024-01-01', DATE'2024-01-31')) AS ds"


def model(name: str, amount: int, policy: str = "") -> str:
    return (
        f"MODEL (name shop.{name}, kind INCREMENTAL_BY_TIME_RANGE (time_column ds{policy}));\n"
        f"SELECT ds, {amount} AS amount FROM shop.days WHERE ds BETWEEN @start_date AND @end_date\n"
    )


def put(project: Project, amount: int) -> None:
    project.write(
        models__plain_sql=model("plain", amount), models__kept_sql=model("kept", amount, ", forward_only true")
    )


def refusal(project: Project, *flags: str) -> dict[str, Any]:
    (error,) = project.document("build", *flags, *NOW, code=1)["errors"]
    return dict(error)


def rows(project: Project) -> list[list[int]]:
    sql = "SELECT count(*), sum(p.amount), sum(k.amount) FROM shop.plain p JOIN shop.kept k ON p.ds = k.ds"
    found: list[list[int]] = project.document("query", sql)["rows"]
    return found


@pytest.fixture
def built(project: Project) -> Project:
    project.write(lamina_yaml=CONFIG, models__days_sql=f"MODEL (name shop.days, kind VIEW);\n{DAYS}\n")
    put(project, 1)
    project.document("build", *NOW)
    put(project, 10)
    return project


def test_no_flag_takes_history_from_readers_but_a_reset_that_says_so(built: Project) -> None:
    kept, plain = ("--select", "shop.kept"), ("--exclude", "shop.kept")
    for flags in (("--force", *kept), ("--restate", "shop.kept", "--start", "2024-01-05", *kept)):
        error = refusal(built, *flags)
        assert (error["code"], error["node"]) == ("LAM-PLAN-002", "shop.kept")
        assert "--reset shop.kept" in error["hint"]
    built.write(models__kept_sql=model("kept", 1, ", forward_only true"))
    for flags in ((), ("--force",), ("--restate", "shop.plain")):
        error = refusal(built, *flags, "--start", "2024-01-05", *plain)
        assert (error["code"], error["node"]) == ("LAM-PLAN-013", "shop.plain")
        assert "--allow-gaps" in error["hint"]
    assert rows(built) == [[5, 5, 5]]
    put(built, 10)
    assert built.document("build", "--reset", "shop.kept", *NOW, code=2)["errors"][0]["code"].startswith("LAM-USE")
    done = built.document("build", "--reset", "shop.kept", "--yes", *NOW)
    assert (done["status"], done["environment"]["status"]) == ("succeeded", "finalized")
    assert rows(built) == [[5, 50, 50]]


def test_less_history_can_be_meant(built: Project) -> None:
    built.write(models__kept_sql=model("kept", 1, ", forward_only true"))
    built.document("build", "--start", "2024-01-05", "--allow-gaps", *NOW)
    assert rows(built) == [[1, 10, 1]]
