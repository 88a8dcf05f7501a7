"""The example shop, from `init` to the run of the next day, as a new user would go through it."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sqlite3
import subprocess
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Project, lamina

FIRST_DAY, NEXT_DAY = "2024-01-08", "2024-01-09"
REVENUE = "SELECT CAST(order_date AS STRING) AS day, orders, revenue FROM shop.daily_revenue ORDER BY 1"
Answer = subprocess.CompletedProcess[str]


class Story:
    """What every step of the tour answered; told once for all tests."""

    def __init__(self, folder: Path) -> None:
        self.created = lamina("init", "shop", cwd=folder)
        self.shop = Project(folder / "shop")
        self.plan = self.shop.lamina("plan", "--execution-time", FIRST_DAY, "--json")
        self.was_touched_by_plan = (self.shop.folder / ".lamina" / "warehouse").exists()
        self.build = self.shop.lamina("build", "--execution-time", FIRST_DAY)
        self.second_build = self.shop.lamina("build", "--execution-time", FIRST_DAY)
        self.csv = self.shop.lamina("query", REVENUE, "--csv")
        self.prod_before = self.shop.lamina("env", "show", "prod", "--json")

        model = self.shop.folder / "models" / "daily_revenue.sql"
        text = model.read_text(encoding="utf-8")
        model.write_text(text.replace("SUM(amount) AS revenue", "SUM(amount) * 2 AS revenue"), encoding="utf-8")
        self.dev_plan_text = self.shop.lamina("plan", "dev", "--execution-time", FIRST_DAY)
        self.dev_plan = self.shop.lamina("plan", "dev", "--execution-time", FIRST_DAY, "--json")
        self.dev_build = self.shop.lamina("build", "dev", "--execution-time", FIRST_DAY, "--json")
        self.dev_rows = self.shop.lamina("query", REVENUE, "--env", "dev", "--json")
        self.prod_after = self.shop.lamina("env", "show", "prod", "--json")
        self.environments = self.shop.lamina("env", "list", "--json")

        self.run = self.shop.lamina("run", "--execution-time", NEXT_DAY, "--json")
        self.second_run = self.shop.lamina("run", "--execution-time", NEXT_DAY)
        self.prod_rows = self.shop.lamina("query", REVENUE, "--json")
        self.intervals = self.shop.lamina("intervals", "shop.orders", "--execution-time", NEXT_DAY, "--json")
        self.intervals_tomorrow = self.shop.lamina(
            "intervals", "shop.orders", "--execution-time", "2024-01-10", "--json"
        )
        self.history = self.shop.lamina("history", "--json")


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    return Story(tmp_path_factory.mktemp("tour"))


def revenue_by_day(shop: Project, *, until: str) -> dict[str, tuple[int, Decimal]]:
    """Orders and revenue per day, computed from the seeds without Lamina and without Spark."""
    seeds = shop.folder / "seeds"
    with (seeds / "products.csv").open(encoding="utf-8") as file:
        prices = {row["id"]: int(row["price_cents"]) for row in csv.DictReader(file)}
    found: dict[str, tuple[int, Decimal]] = defaultdict(lambda: (0, Decimal(0)))
    with (seeds / "raw_orders.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            day = row["ordered_at"][:10]
            if row["status"] != "cancelled" and day < until:
                orders, amount = found[day]
                cents = int(row["quantity"]) * prices[row["product"]]
                found[day] = orders + 1, amount + Decimal(cents) / 100
    return dict(found)


def by_day(rows: list[list[Any]]) -> dict[str, tuple[int, Decimal]]:
    return {day: (int(orders), Decimal(revenue)) for day, orders, revenue in rows}


def read(answer: Answer) -> dict[str, Any]:
    """The document of a command that went well."""
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return json.loads(answer.stdout)


def nodes(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {node["name"]: node for node in document["nodes"]}


def test_init_creates_a_project_that_can_be_planned_at_once(story: Story):
    assert story.created.returncode == 0
    assert "lamina.yaml" in story.created.stdout
    assert read(story.plan)["status"] == "planned"
    assert {node["action"] for node in read(story.plan)["nodes"]} == {"build"}
    assert {node["reason"] for node in read(story.plan)["nodes"]} == {"first_run"}
    assert nodes(read(story.plan))["shop.orders"]["intervals"] == [["2024-01-01T00:00:00Z", "2024-01-08T00:00:00Z"]]


def test_a_plan_touches_nothing(story: Story):
    assert not story.was_touched_by_plan


def test_the_first_build_builds_everything(story: Story):
    assert story.build.returncode == 0, story.build.stderr
    assert "succeeded: 9 built" in story.build.stdout
    assert "environment prod is finalized" in story.build.stdout


def test_nothing_of_sparks_own_log_is_shown(story: Story):
    for line in story.build.stderr.splitlines():
        assert not any(word in line for word in (" WARN ", " INFO ", " ERROR ", "Setting default log level", "SLF4J"))


def test_progress_names_every_batch(story: Story):
    assert "starting Spark" in story.build.stderr
    assert "done shop.orders 2024-01-01 to 2024-01-07: " in story.build.stderr


def test_the_data_is_what_the_seeds_say(story: Story):
    assert story.csv.returncode == 0, story.csv.stderr
    header, *rows = list(csv.reader(io.StringIO(story.csv.stdout)))
    assert header == ["day", "orders", "revenue"]
    assert by_day(rows) == revenue_by_day(story.shop, until=FIRST_DAY)


def test_a_second_build_has_nothing_to_do(story: Story):
    assert story.second_build.returncode == 0
    assert "Nothing to do" in story.second_build.stdout
    assert "Spark" not in story.second_build.stderr


def test_a_change_is_planned_for_dev_with_its_difference(story: Story):
    found = nodes(read(story.dev_plan))

    assert read(story.dev_plan)["environment"] == {"name": "dev", "status": "new", "baseline": "prod"}
    assert found["shop.daily_revenue"]["reason"] == "query_changed"
    assert {name for name, node in found.items() if node["action"] == "build"} == {"shop.daily_revenue"}
    assert "-  SUM(amount) AS revenue" in story.dev_plan_text.stdout
    assert "+  SUM(amount) * 2 AS revenue" in story.dev_plan_text.stdout


def test_dev_shares_what_did_not_change(story: Story):
    assert read(story.dev_build)["status"] == "succeeded"
    assert {name for name, node in nodes(read(story.dev_build)).items() if node["status"]} == {"shop.daily_revenue"}


def test_dev_shows_the_change_and_prod_does_not_move(story: Story):
    expected = revenue_by_day(story.shop, until=FIRST_DAY)

    assert by_day(read(story.dev_rows)["rows"]) == {day: (n, 2 * amount) for day, (n, amount) in expected.items()}
    assert read(story.prod_after) == read(story.prod_before)
    assert [environment["name"] for environment in read(story.environments)["environments"]] == ["dev", "prod"]


def test_the_run_of_the_next_day_processes_exactly_that_day(story: Story):
    found = nodes(read(story.run))

    assert read(story.run)["status"] == "succeeded"
    for name in ("shop.orders", "shop.daily_revenue"):
        assert found[name]["intervals"] == [["2024-01-08T00:00:00Z", "2024-01-09T00:00:00Z"]]
        assert found[name]["status"] == "succeeded"


def test_a_run_goes_on_with_the_recorded_code(story: Story):
    assert by_day(read(story.prod_rows)["rows"]) == revenue_by_day(story.shop, until=NEXT_DAY)
    assert [column["name"] for column in read(story.prod_rows)["columns"]] == ["day", "orders", "revenue"]


def test_a_second_run_says_when_something_is_due(story: Story):
    assert story.second_run.returncode == 0
    assert "Nothing to do" in story.second_run.stdout
    assert "due at 2024-01-10 00:00:00 UTC" in story.second_run.stdout


def test_intervals_tell_what_is_covered_and_what_is_missing(story: Story):
    assert read(story.intervals)["covered"] == [["2024-01-01T00:00:00Z", "2024-01-09T00:00:00Z"]]
    assert read(story.intervals)["missing"] == []
    assert read(story.intervals_tomorrow)["missing"] == [["2024-01-09T00:00:00Z", "2024-01-10T00:00:00Z"]]


def test_history_remembers_every_run(story: Story):
    runs = [(run["command"], run["environment"], run["status"]) for run in read(story.history)["history"]]

    assert runs == [("run", "prod", "succeeded"), ("build", "dev", "succeeded"), ("build", "prod", "succeeded")]
    first = read(story.history)["history"][-1]
    assert {batch["name"] for batch in first["batches"]} == {node["name"] for node in read(story.plan)["nodes"]}


def test_a_plan_of_an_unchanged_project_does_not_load_spark(story: Story):
    story.shop.lamina("plan", "--execution-time", NEXT_DAY)

    answer = lamina("plan", "--execution-time", NEXT_DAY, cwd=story.shop.folder, PYTHONPROFILEIMPORTTIME="1")

    assert answer.returncode == 0
    loaded = {line.rpartition("|")[2].strip() for line in answer.stderr.splitlines() if line.startswith("import time:")}
    assert "lamina.app.looking.looking" in loaded
    assert [name for name in loaded if name.split(".")[0] in {"pyspark", "py4j", "pandas"}] == []


def test_state_of_a_newer_version_is_left_alone(story: Story, tmp_path: Path):
    folder = tmp_path / "shop"
    shutil.copytree(story.shop.folder, folder)
    (state,) = (folder / ".lamina").glob("*.db")
    with sqlite3.connect(state) as database:
        database.execute("UPDATE lamina_store SET schema_version = 9999")
    database.close()

    answer = lamina("plan", "--json", cwd=folder)

    assert answer.returncode == 1
    assert json.loads(answer.stdout)["errors"][0]["code"] == "LAM-STATE-002"


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (("query", "SELECT 1", "--env", "nowhere"), 2, "LAM-PLAN-004"),
        (("intervals", "shop.ordrs"), 2, "did you mean `shop.orders`"),
        (("render", "shop.ordrs"), 2, "did you mean `shop.orders`"),
        (("plan", "--select", "shop.ordrs"), 2, "did you mean `shop.orders`"),
        (("plan", "--start", "2024-01-05", "--end", "2024-01-01"), 2, "LAM-USE-003"),
        (("plan", "--execution-time", "someday"), 2, "LAM-USE-003"),
        (("plan", "bad-name"), 2, "LAM-USE-001"),
        (("history", "nothing"), 2, "LAM-USE-001"),
        (("env", "show", "nowhere"), 2, "LAM-PLAN-004"),
        (("plan", "--target", "nowhere"), 2, "nowhere"),
    ],
)
def test_a_wrong_word_is_one_clear_message(story: Story, words: tuple[str, ...], code: int, expected: str):
    answer = story.shop.lamina(*words)

    assert answer.returncode == code
    assert expected in answer.stderr
    assert answer.stdout == ""
    assert "Traceback" not in answer.stderr
