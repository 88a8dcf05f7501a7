"""Statements and hooks around the query of a model: their order, their session, and what a failure leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lamina import Project
from lamina.spark.engine import SparkEngine

pytest_plugins = ["tests.ports.conftest_engine"]

SAY = "INSERT INTO hooklog.said SELECT (SELECT count(*) FROM hooklog.said), '{}'"
HOOKS = """
from lamina import hook


@hook
def say(context, word):
    word = f"{word} {context.var('mark')} {context.model} {context.start} {context.end} {context.execution_time}"
    context.spark.sql(f"INSERT INTO hooklog.said SELECT (SELECT count(*) FROM hooklog.said), '{word}'")


@hook
def prepare(context):
    context.spark.sql("CREATE OR REPLACE TEMPORARY VIEW made_ready AS SELECT 1 AS x")
    context.spark.conf.set("spark.sql.shuffle.partitions", "7")


@hook
def trip(context):
    if context.spark.table("hooklog.switch").first().is_on:
        raise ValueError("tripped")
"""
FILES = {
    "lamina.yaml": "name: hooked\nconcurrency: 1\nvariables: {mark: '!'}\ndefaults: {start: 2024-01-01}\n",
    "python/hooks.py": HOOKS,
    "models/whole.sql": f"""MODEL (
  name hooked.whole, kind FULL, pre_hooks [say(word := 'first')], post_hooks [say(word := 'last'), trip]
);
CREATE TEMPORARY VIEW recent AS SELECT x FROM hooklog.source;
{SAY.format("before")};
SELECT x FROM recent;
{SAY.format("after")};
""",
    # Its columns are known before anything is done, because its statements only prepare.
    "models/light.sql": """MODEL (name hooked.light, kind FULL);
-- a comment in front
SET spark.sql.ansi.enabled = false;
CREATE OR REPLACE TEMP VIEW recent AS SELECT int('x') AS x FROM hooklog.source;
SELECT x FROM recent
""",
    "models/reads_light.sql": "MODEL (name hooked.reads_light, kind FULL);\nSELECT x FROM hooked.light\n",
    "models/shown.sql": f"""MODEL (name hooked.shown, kind VIEW, pre_hooks [say(word := 'v')], post_hooks [trip]);
{SAY.format("view before")};
SELECT x + 1 AS x FROM hooked.whole;
{SAY.format("view after")};
""",
    "models/prepared.sql": """MODEL (name hooked.prepared, kind FULL, pre_hooks [prepare]);
SELECT x, current_schema() AS place FROM made_ready
""",
    "models/days.py": """
from lamina import model


@model(
    "hooked.days",
    kind={"name": "INCREMENTAL_BY_TIME_RANGE", "time_column": "ds"},
    columns={"x": "int", "ds": "date"},
    post_hooks=[("say", {"word": "days"})],
)
def days(context, start, end, execution_time, **kwargs):
    return context.spark.sql("SELECT 1 AS x, explode(sequence(DATE'2024-01-01', DATE'2024-01-04')) AS ds")
""",
}


def at(number: int) -> str:
    return f"2024-01-0{number} 00:00:00+00:00"


class Story:
    """The project's commands, and what was said and shown after each."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.reports: dict[str, dict[str, Any]] = {}
        self.said: dict[str, list[str]] = {}
        self.rows: dict[str, dict[str, Any]] = {}

    def step(self, name: str, command: str, time: str, *, x: int, is_on: bool) -> None:
        self.spark.sql(f"CREATE OR REPLACE VIEW hooklog.source AS SELECT {x} AS x")
        self.spark.sql(f"CREATE OR REPLACE VIEW hooklog.switch AS SELECT {is_on} AS is_on")
        self.spark.sql("TRUNCATE TABLE hooklog.said")
        with Project.open(self.folder, spark=self.spark) as project:
            report = getattr(project, command)(execution_time=time).to_dict()
            self.reports[name] = {node["name"].removeprefix("hooked."): node for node in report["nodes"]}
        self.said[name] = [row.word for row in self.spark.sql("SELECT word FROM hooklog.said ORDER BY n").collect()]
        self.rows[name] = {
            table: sorted(row.x for row in self.spark.sql(f"SELECT x FROM hooked.{table}").collect())
            for table in ("whole", "shown", "prepared", "days")
        }


@pytest.fixture(scope="module")
def story(engine: SparkEngine, tmp_path_factory: pytest.TempPathFactory) -> Story:
    spark = engine.frame("SELECT 1 AS x").sparkSession
    spark.sql("CREATE SCHEMA hooklog")
    spark.sql("CREATE TABLE hooklog.said (n BIGINT, word STRING) USING parquet")
    folder = tmp_path_factory.mktemp("hooked")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    story = Story(spark, folder)
    story.step("built", "build", "2024-01-03", x=1, is_on=False)
    # What is recorded runs, whatever the files say by now.
    (folder / "python" / "hooks.py").write_text(HOOKS.replace("{word} {context", "other {context"))
    story.step("failed", "run", "2024-01-04", x=2, is_on=True)
    story.step("mended", "run", "2024-01-04", x=2, is_on=False)
    return story


def words(said: list[str]) -> list[str]:
    """What was said around the models that are not Python's."""
    return [word.partition(" !")[0] for word in said if not word.startswith("days")]


def test_hooks_stand_around_statements_and_statements_around_the_query(story: Story) -> None:
    assert words(story.said["built"]) == ["first", "before", "after", "last", "v", "view before", "view after"]
    assert {node["status"] for node in story.reports["built"].values()} == {"succeeded"}
    assert story.rows["built"] == {"whole": [1], "shown": [2], "prepared": [1], "days": [1, 1]}


def test_hooks_are_told_what_the_batch_is_about(story: Story) -> None:
    assert f"first ! hooked.whole None None {at(3)}" in story.said["built"]
    end = at(2).replace("00:00:00", "23:59:59.999999")
    assert f"days ! hooked.days {at(1)} {end} {at(3)}" in story.said["built"]


def test_a_hook_that_fails_shows_nothing_and_says_where(story: Story) -> None:
    error = story.reports["failed"]["whole"]["error"]
    assert error["code"] == "LAM-SPARK-016"
    assert error["message"] == "hook `trip` of `hooked.whole` raised `ValueError`: tripped"
    raises = next(number for number, line in enumerate(HOOKS.split("\n"), 1) if "raise" in line)
    assert (error["file"], error["line"]) == ("python/hooks.py", raises)
    assert story.rows["failed"] == {**story.rows["built"], "days": [1, 1, 1]}


def test_the_next_command_runs_the_recorded_hooks_again(story: Story) -> None:
    assert words(story.said["failed"])[:4] == ["first", "before", "after", "last"]
    assert words(story.said["mended"])[:4] == ["first", "before", "after", "last"]
    assert story.rows["mended"] == {"whole": [2], "shown": [3], "prepared": [1], "days": [1, 1, 1]}


def test_what_hooks_and_statements_change_ends_with_the_batch(story: Story) -> None:
    assert story.spark.conf.get("spark.sql.shuffle.partitions") != "7"
    assert story.spark.conf.get("spark.sql.ansi.enabled") == "true"
    assert not [row for row in story.spark.sql("SHOW VIEWS").collect() if row.viewName in {"made_ready", "recent"}]


READER = """MODEL (name named.reader, kind FULL);
CREATE TEMPORARY VIEW whole AS SELECT named.whole.x, shown.y FROM named.whole JOIN named.shown AS shown;
SELECT x, y FROM whole;
INSERT INTO namelog.said SELECT max(named.whole.x) FROM named.whole;
"""


def test_names_in_statements_mean_what_they_mean_in_the_query(engine: SparkEngine, tmp_path: Path) -> None:
    spark = engine.frame("SELECT 1 AS x").sparkSession
    spark.sql("CREATE SCHEMA namelog")
    spark.sql("CREATE TABLE namelog.said (x INT) USING parquet")
    (tmp_path / "models").mkdir()
    (tmp_path / "lamina.yaml").write_text("name: named\n")
    (tmp_path / "models" / "whole.sql").write_text("MODEL (name named.whole, kind FULL);\nSELECT 1 AS x")
    (tmp_path / "models" / "shown.sql").write_text(
        "MODEL (name named.shown, kind VIEW);\nSELECT x * 2 AS y FROM named.whole"
    )
    (tmp_path / "models" / "reader.sql").write_text(READER)

    def build(environment: str) -> list[str]:
        with Project.open(tmp_path, spark=spark) as project:
            report = project.build(environment, execution_time="2024-01-03").to_dict()
        assert report["status"] == "succeeded", report
        return sorted(node["name"] for node in report["nodes"] if node["batches"])

    def shown(schema: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in spark.sql(f"SELECT * FROM {schema}.reader").collect()]

    def said() -> list[int]:
        spark.sql("REFRESH TABLE namelog.said")
        return sorted(row.x for row in spark.table("namelog.said").collect())

    # There are no views of the parents yet, in no environment.
    build("dev")
    assert (shown("named__dev"), said()) == ([(1, 2)], [1])
    build("prod")
    assert (shown("named"), said()) == ([(1, 2)], [1])
    # What a statement reads is a parent: a change reaches it, in its own environment.
    (tmp_path / "models" / "whole.sql").write_text("MODEL (name named.whole, kind FULL);\nSELECT 10 AS x")
    assert "named.reader" in build("dev")
    assert (shown("named__dev"), shown("named"), said()) == ([(10, 20)], [(1, 2)], [1, 10])
