"""Python models of every kind that allows them, in a project of their own: built, run by recorded code, refused."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lamina import LaminaError, Project
from lamina.spark.engine import SparkEngine

pytest_plugins = ["tests.ports.conftest_engine"]

HELPERS = """
SIGN = "v1"


def signed(frame):
    from pyspark.sql import functions as sf

    return frame.withColumn("sign", sf.lit(SIGN))
"""
MODELS = """
import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
from lamina import model

from shared.helpers import SIGN, signed

BATCH = {"name": "string", "n": "int", "ds": "date", "sign": "string"}
MENU = {"id": "int", "price": "decimal(20,10)", "updated_at": "timestamp"}


@model("pykinds.whole", kind="FULL", columns=BATCH)
def whole(context, start, end, execution_time, **kwargs):
    return signed(context.table("pyraw.batch"))


@model(
    "pykinds.days",
    kind={"name": "INCREMENTAL_BY_TIME_RANGE", "time_column": "ds"},
    start="2024-01-01",
    columns=BATCH,
)
def days(context, start, end, execution_time, **kwargs):
    \"\"\"One frame for each half, the second from pandas; rows outside of the interval are left out.\"\"\"
    rows = context.table("pyraw.batch").where(f"ds BETWEEN '{start:%Y-%m-%d}' AND '{end:%Y-%m-%d}'")
    yield signed(rows.where("n % 2 = 0"))
    odd = rows.where("n % 2 = 1").collect()
    if odd:
        yield pd.DataFrame([{**row.asDict(), "sign": SIGN} for row in odd])
    yield pd.DataFrame({"sign": ["x"], "ds": [dt.date(2023, 1, 1)], "n": [0], "name": ["outside"]})


@model(
    "pykinds.keyed", kind={"name": "INCREMENTAL_BY_UNIQUE_KEY", "unique_key": "name", "order_by": "n"}, columns=BATCH
)
def keyed(context, start, end, execution_time, **kwargs):
    yield signed(context.table("pyraw.batch").where("n % 2 = 0"))
    yield signed(context.table("pyraw.batch").where("n % 2 = 1"))


@model("pykinds.parts", kind="INCREMENTAL_BY_PARTITION", partitioned_by=["ds"], columns=BATCH)
def parts(context, start, end, execution_time, **kwargs):
    return signed(context.table("pyraw.batch"))


@model("pykinds.log", kind="INCREMENTAL_UNMANAGED", columns=BATCH)
def log(context, start, end, execution_time, **kwargs):
    yield from ()
    yield signed(context.table("pyraw.batch"))


@model(
    "pykinds.by_time",
    kind={"name": "SCD_TYPE_2_BY_TIME", "unique_key": "id", "invalidate_hard_deletes": True},
    columns=MENU,
)
def by_time(context, start, end, execution_time, **kwargs):
    return context.table("pyraw.menu")


@model(
    "pykinds.by_column",
    kind={"name": "SCD_TYPE_2_BY_COLUMN", "unique_key": ["id"], "columns": ["price"]},
    columns={"id": "int", "price": "decimal(20,10)"},
)
def by_column(context, start, end, execution_time, **kwargs):
    rows = context.table("pyraw.menu").collect()
    return pd.DataFrame({"price": [row.price for row in rows], "id": [row.id for row in rows]})


@model(
    "pykinds.nested",
    kind="FULL",
    columns={
        "d": "decimal(38,10)",
        "at": "timestamp",
        "tags": "array<struct<name:string,at:timestamp_ntz,price:decimal(10,2)>>",
        "by_day": "map<date,array<int>>",
        "raw": "binary",
        "flag": "boolean",
        "times": "array<timestamp>",
        "scores": "array<double>",
        "until": "map<string,struct<at:timestamp,price:decimal(10,4)>>",
    },
)
def nested(context, start, end, execution_time, **kwargs):
    moment = dt.datetime(2024, 3, 10, 2, 30, 0, 1)
    return pd.DataFrame(
        {
            "flag": pd.array([True, None], dtype="boolean"),
            "raw": [b"\\x00\\xff", None],
            "times": [np.array(["2024-07-01T01:02:03.000004"], dtype="datetime64[ns]"), [moment, pd.NaT]],
            "scores": [np.array([1.5, np.nan]), [1, None]],
            "until": [{"x": {"price": Decimal("1.2"), "at": moment}}, None],
            "by_day": [{dt.date(2024, 1, 1): [1, None]}, {}],
            "tags": [[{"price": Decimal("1.10"), "name": "a", "at": moment}, None], []],
            "at": [pd.Timestamp(moment, tz="America/New_York"), pd.NaT],
            "d": [Decimal("1234567890123456789012345678.0123456789"), None],
        }
    )
"""
SUM = "MODEL (name pykinds.below, kind FULL); SELECT sum(n) AS n, max(sign) AS sign FROM pykinds.days"

BATCHES = (
    "('a', 1, DATE'2024-01-01'), ('b', 2, DATE'2024-01-01'), ('a', 3, DATE'2024-01-02')",
    "('c', 4, DATE'2024-01-02'), ('a', 5, DATE'2024-01-03')",
)
MENUS = (
    "(1, 1.1000000001, TIMESTAMP'2024-01-01 10:00:00Z'), (2, 2, TIMESTAMP'2024-01-01 10:00:00Z')",
    "(1, 1.2, TIMESTAMP'2024-01-03 10:00:00Z')",
)


@dataclass
class Story:
    first: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    second: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    statuses: dict[str, Any] = field(default_factory=dict)
    nested: list[Any] = field(default_factory=list)


def put(spark: SparkSession, number: int) -> None:
    batch = f"SELECT * FROM VALUES {BATCHES[number]} AS t(name, n, ds)"
    price = "CAST(price AS decimal(20,10)) AS price"
    menu = f"SELECT id, {price}, updated_at FROM VALUES {MENUS[number]} AS t(id, price, updated_at)"
    for name, query in (("batch", batch), ("menu", menu)):
        spark.sql(f"CREATE OR REPLACE VIEW pyraw.{name} AS {query}")


def look(project: Project) -> dict[str, list[tuple[Any, ...]]]:
    found = {}
    for name in ("whole", "days", "keyed", "parts", "log", "by_time", "by_column", "below"):
        frame = project.query(f"SELECT * FROM pykinds.{name}")
        texts = frame.selectExpr(*(f"CAST({column} AS string) AS {column}" for column in frame.columns))
        found[name] = sorted((tuple(row) for row in texts.collect()), key=str)
    return found


@pytest.fixture(scope="module")
def spark(engine: SparkEngine) -> SparkSession:
    session = engine.frame("SELECT 1 AS x").sparkSession
    session.sql("CREATE SCHEMA IF NOT EXISTS pyraw")
    return session


def folder(path: Path, **files: str) -> Path:
    for name, text in {"lamina.yaml": "name: pykinds\n", **files}.items():
        place = path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def story(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Story:
    files = {"models/kinds.py": MODELS, "shared/helpers.py": HELPERS, "models/below.sql": SUM}
    root = folder(tmp_path_factory.mktemp("pykinds"), **files)
    seen = Story()
    put(spark, 0)
    with Project.open(root, spark=spark) as project:
        # What a moment without a zone means does not depend on where the machine stands.
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("TZ", "America/New_York")
            time.tzset()
            built = project.build(execution_time="2024-01-03")
        time.tzset()
        seen.statuses["built"] = {node["name"]: node["error"] or node["status"] for node in built.to_dict()["nodes"]}
        seen.first = look(project)
        seen.nested = project.query("SELECT * FROM pykinds.nested ORDER BY flag NULLS LAST").collect()
        seen.statuses["again"] = project.build(execution_time="2024-01-03").status
    put(spark, 1)
    (root / "shared" / "helpers.py").write_text(HELPERS.replace("v1", "v2"), encoding="utf-8")
    with Project.open(root, spark=spark) as project:
        run = project.run(execution_time="2024-01-04")
        seen.statuses["run"] = {node["name"]: node["error"] or node["status"] for node in run.to_dict()["nodes"]}
        seen.second = look(project)
    return seen


def test_every_kind_is_built_and_then_there_is_nothing_to_do(story: Story) -> None:
    assert set(story.statuses["built"].values()) == {"succeeded"}
    assert story.statuses["again"] == "nothing_to_do"


def test_a_whole_table_is_what_was_returned_last(story: Story) -> None:
    assert story.first["whole"] == [
        ("a", "1", "2024-01-01", "v1"),
        ("a", "3", "2024-01-02", "v1"),
        ("b", "2", "2024-01-01", "v1"),
    ]
    assert story.second["whole"] == [("a", "5", "2024-01-03", "v1"), ("c", "4", "2024-01-02", "v1")]


def test_intervals_keep_what_they_hold_and_rows_outside_are_left_out(story: Story) -> None:
    assert story.first["days"] == story.first["whole"]
    assert story.second["days"] == sorted([*story.first["whole"], ("a", "5", "2024-01-03", "v1")])
    assert story.second["below"] == [("11", "v1")]


def test_keys_are_replaced_and_of_several_rows_the_last_in_order_wins(story: Story) -> None:
    assert story.first["keyed"] == [("a", "3", "2024-01-02", "v1"), ("b", "2", "2024-01-01", "v1")]
    assert story.second["keyed"] == [
        ("a", "5", "2024-01-03", "v1"),
        ("b", "2", "2024-01-01", "v1"),
        ("c", "4", "2024-01-02", "v1"),
    ]


def test_partitions_that_occur_are_replaced(story: Story) -> None:
    assert story.first["parts"] == story.first["whole"]
    kept = [row for row in story.first["whole"] if row[2] == "2024-01-01"]
    assert story.second["parts"] == sorted([*kept, *story.second["whole"]])


def test_every_run_is_appended(story: Story) -> None:
    assert story.first["log"] == story.first["whole"]
    assert story.second["log"] == sorted([*story.first["whole"], *story.second["whole"]])


def test_histories_are_kept_by_time_and_by_column(story: Story) -> None:
    epoch, ten = "1970-01-01 00:00:00", "2024-01-0{} 10:00:00"
    assert story.first["by_time"] == [
        ("1", "1.1000000001", ten.format(1), epoch, None),
        ("2", "2.0000000000", ten.format(1), epoch, None),
    ]
    assert story.second["by_time"] == [
        ("1", "1.1000000001", ten.format(1), epoch, ten.format(3)),
        ("1", "1.2000000000", ten.format(3), ten.format(3), None),
        ("2", "2.0000000000", ten.format(1), epoch, "2024-01-04 00:00:00"),
    ]
    assert story.second["by_column"] == [
        ("1", "1.1000000001", epoch, "2024-01-04 00:00:00"),
        ("1", "1.2000000000", "2024-01-04 00:00:00", None),
        ("2", "2.0000000000", epoch, None),
    ]


def test_a_run_uses_the_recorded_helpers(story: Story) -> None:
    assert set(story.statuses["run"].values()) <= {"succeeded", None}
    assert {row[3] for row in story.second["whole"]} == {"v1"}


def test_pandas_values_inside_values_are_exact(story: Story) -> None:
    full, empty = story.nested
    assert str(full.d) == "1234567890123456789012345678.0123456789"
    assert full.at.isoformat() == "2024-03-10T07:30:00.000001"
    first, second = full.tags
    assert (first.name, str(first.price), first.at.isoformat()) == ("a", "1.10", "2024-03-10T02:30:00.000001")
    assert second is None
    assert {str(day): values for day, values in full.by_day.items()} == {"2024-01-01": [1, None]}
    assert (bytes(full.raw), full.flag) == (b"\x00\xff", True)
    assert [at.isoformat() for at in full.times] == ["2024-07-01T01:02:03.000004"]
    assert (full.scores[0], math.isnan(full.scores[1])) == (1.5, True)
    assert (full.until["x"].at.isoformat(), str(full.until["x"].price)) == ("2024-03-10T02:30:00.000001", "1.2000")
    assert (empty.times[0].isoformat(), empty.times[1]) == ("2024-03-10T02:30:00.000001", None)
    assert (empty.scores, empty.until) == ([1.0, None], None)
    assert (empty.d, empty.at, empty.tags, empty.by_day, empty.raw, empty.flag) == (None, None, [], {}, None, None)


@pytest.mark.parametrize("kind", ["VIEW", "EMBEDDED", "MANAGED", '{"name": "SEED", "path": "x.csv"}'])
def test_kinds_without_a_function_refuse_python_with_the_reason(tmp_path: Path, kind: str) -> None:
    given = kind if kind.startswith("{") else f'"{kind}"'
    header = f'@model("pykinds.x", kind={given}, columns={{"id": "int"}})'
    text = f"from lamina import model\n{header}\ndef x(context, **kwargs): ...\n"
    with pytest.raises(LaminaError) as caught:
        Project.open(folder(tmp_path, **{"models/x.py": text})).plan()
    (problem,) = caught.value.problems
    assert "a Python model cannot be of kind" in problem.message
    assert problem.location is not None
    assert problem.location.file == "models/x.py"


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ('{"id": "int", "more": "int", "lost": "string"}', "`lost`"),
        ('{"id": "int"}', "`more`"),
        ('{"id": "date", "more": "int"}', "CAST(id AS DATE)"),
    ],
)
def test_declared_columns_are_checked(spark: SparkSession, tmp_path: Path, columns: str, said: str) -> None:
    text = (
        f'from lamina import model\n@model("pykinds.x", kind="FULL", columns={columns})\n'
        'def x(context, *args, **kwargs):\n    return context.spark.sql("SELECT 1 AS id, 2 AS more")\n'
    )
    with Project.open(folder(tmp_path, **{"models/x.py": text}), spark=spark) as project:
        report = project.build(execution_time="2024-01-03")
    (node,) = report.to_dict()["nodes"]
    assert node["status"] == "failed"
    assert said in node["error"]["message"]
