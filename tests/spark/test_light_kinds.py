"""Kinds that compute little or nothing, in a project of their own: views, embedded queries, seeds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lamina import Project
from lamina.spark.engine import SparkEngine

pytest_plugins = ["tests.ports.conftest_engine"]

FILES = {
    "lamina.yaml": "name: light\n",
    "seeds/codes.csv": "code,name\n1,one\n2,\n",
    "models/codes.sql": "MODEL (name light.codes, kind SEED (path '$root/seeds/codes.csv'));\n",
    "models/first.sql": "MODEL (name light.first, kind EMBEDDED); SELECT code, name, DATE'2024-01-01' AS ds FROM codes",
    "models/second.sql": "MODEL (name light.second, kind EMBEDDED); SELECT f.code + 1 AS code, f.ds FROM first AS f",
    "models/third.sql": """MODEL (name light.third, kind EMBEDDED);
SELECT code, ds, @start_ds AS asked FROM second WHERE ds BETWEEN @start_date AND @end_date
UNION ALL SELECT code, ds, 'first' FROM light.first""",
    "models/days.sql": """MODEL (name light.days, kind INCREMENTAL_BY_TIME_RANGE (time_column ds), start '2024-01-01');
SELECT code, asked, ds FROM light.third""",
    "models/page.sql": """MODEL (name light.page, kind VIEW (materialized true));
SELECT s.code, d.n FROM light.second AS s CROSS JOIN (SELECT count(*) AS n FROM light.days) AS d""",
}


@pytest.fixture(scope="module")
def spark(engine: SparkEngine) -> SparkSession:
    return engine.frame("SELECT 1 AS x").sparkSession


class Light:
    """The project, opened anew for every command."""

    def __init__(self, root: Path, spark: SparkSession) -> None:
        self.root, self.spark = root, spark

    def write(self, path: str, text: str) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")

    def build(self) -> dict[str, Any]:
        with Project.open(self.root, spark=self.spark) as project:
            return project.build(execution_time="2024-01-03").to_dict()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with Project.open(self.root, spark=self.spark) as project:
            return sorted(tuple(row) for row in project.query(sql).collect())


@pytest.fixture(scope="module")
def light(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Light:
    made = Light(tmp_path_factory.mktemp("light"), spark)
    for path, text in FILES.items():
        made.write(path, text)
    return made


@pytest.fixture(scope="module")
def built(light: Light) -> dict[str, Any]:
    report = light.build()
    assert report["status"] == "succeeded", report
    # Read at once: other tests change the project.
    return {
        **report,
        "page": light.rows("SELECT * FROM light.page"),
        "days": light.rows("SELECT code, asked FROM light.days"),
    }


def built_models(report: dict[str, Any]) -> list[str]:
    return sorted(node["name"] for node in report["nodes"] if node["status"] == "succeeded")


def test_a_materialized_view_becomes_a_plain_one_and_that_is_said(built: dict[str, Any]) -> None:
    warnings = {warning["node"]: warning["message"] for warning in built["warnings"]}
    assert "becomes a plain view" in warnings["light.page"]
    assert built["page"] == [(2, 4), (3, 4)]


def test_embedded_queries_are_put_into_their_readers_through_several_levels(
    light: Light, built: dict[str, Any], spark: SparkSession
) -> None:
    assert built["days"] == [(1, "first"), (2, "2024-01-01"), (2, "first"), (3, "2024-01-01")]
    assert light.rows("SELECT * FROM light.second") == light.rows("SELECT code + 1, ds FROM light.first")
    shown = {row.tableName for row in spark.sql("SHOW TABLES IN light").collect() if not row.isTemporary}
    assert shown == {"codes", "days", "page"}
    embedded = [node for node in built["nodes"] if node["kind"] == "EMBEDDED"]
    assert [node["physical_table"] for node in embedded] == [None, None, None]


def test_a_seed_is_loaded_again_only_for_other_content_or_settings(light: Light, built: dict[str, Any]) -> None:
    assert light.build()["status"] == "nothing_to_do"
    os.utime(light.root / "seeds/codes.csv", (1, 1))
    assert light.build()["status"] == "nothing_to_do"
    light.write(
        "models/codes.sql", FILES["models/codes.sql"].replace("kind SEED (", "owner me, kind SEED (batch_size 7, ")
    )
    assert built_models(light.build()) == []
    assert light.rows("SELECT name FROM light.codes WHERE code = 2") == [(None,)]

    settings = FILES["models/codes.sql"].replace("codes.csv'", "codes.csv', csv_settings (keep_default_na = false)")
    light.write("models/codes.sql", settings)
    assert built_models(light.build()) == ["light.codes", "light.days", "light.page"]
    assert light.rows("SELECT name FROM light.codes WHERE code = 2") == [("",)]

    light.write("seeds/codes.csv", "code,name\n1,one\n2,two\n5,five\n")
    assert built_models(light.build()) == ["light.codes", "light.days", "light.page"]
    assert light.rows("SELECT code, name FROM light.codes") == [(1, "one"), (2, "two"), (5, "five")]
    assert light.build()["status"] == "nothing_to_do"
