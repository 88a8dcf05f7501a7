"""Python models: what they get, what they may return, and what becomes of their mistakes."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent

import pytest

from lamina.app.ports.engine import BatchTime, PythonQuery, SqlQuery
from lamina.errors import AnalysisFailed, BadModelResult, QueryFailed
from lamina.graph.kinds import TimeColumn
from lamina.graph.model import Column, PythonBody, PythonModule
from lamina.spark.python.recorded_modules import RecordedModules
from lamina.timeline.interval import Instant, Interval
from tests.spark.driver import Table, on_lines

pytest_plugins = ["tests.ports.conftest_engine"]

HEADER = "from lamina import model\n\n\n"


def query(source: str, **others: str) -> PythonQuery:
    """A model in `models/x.py`, from line 4 on, with other modules beside it."""
    sources = {"models__x": HEADER + dedent(source).lstrip("\n")} | {
        name: dedent(text).lstrip("\n") for name, text in others.items()
    }
    modules = [
        PythonModule(name=name.replace("__", "."), path=f"{name.replace('__', '/')}.py", source=text)
        for name, text in sources.items()
    ]
    return PythonQuery(
        body=PythonBody(module="models.x", function="execute", modules=tuple(modules)),
        tables={"shop.y": "(SELECT 1 AS id UNION ALL SELECT 2)", "`shop`.`z`": "range(3)"},
        time=BatchTime(
            interval=Interval(Instant.parse_iso("2024-01-02"), Instant.parse_iso("2024-01-03")),
            execution=Instant.parse_iso("2024-02-01T12:00:00Z"),
        ),
        variables={"region": "eu"},
    )


def test_a_model_gets_its_tables_times_and_variables(table: Table) -> None:
    table.write(
        query(
            """
            def execute(context, start, end, execution_time, region, **kwargs):
                z = context.spark.sql(f"SELECT * FROM {context.resolve_table('shop.z')}")
                said = f"{start} {end} {execution_time} {region} {context.var('region')} {context.var('no', 5)}"
                return context.table("Shop.Y").union(z).selectExpr("count(*) AS n", f"'{said}' AS said")
            """
        )
    )
    said = "2024-01-02 00:00:00+00:00 2024-01-02 23:59:59.999999+00:00 2024-02-01 12:00:00+00:00 eu eu 5"
    assert table.rows() == [(5, said)]


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ("context, start, end, execution_time", "{start.day} {execution_time.month}"),
        ("context, **kwargs", "{kwargs['start'].day} {kwargs['execution_time'].month}"),
        ("context, execution_time, start", "{start.day} {execution_time.month}"),
        ("ctx, begin, finish, now", "{begin.day} {now.month}"),
    ],
)
def test_a_model_gets_what_it_asks_for(table: Table, parameters: str, said: str) -> None:
    table.write(
        query(
            f"""
            def execute({parameters}):
                said = f"{said}"
                return {parameters.partition(",")[0]}.spark.createDataFrame([(said,)], "said string")
            """
        )
    )
    assert table.rows() == [("2 2",)]


def test_what_is_yielded_is_put_together_by_name(table: Table) -> None:
    table.write(
        query(
            """
            def execute(context, start, end, execution_time, **kwargs):
                yield context.spark.sql("SELECT 1 AS a, 2 AS b")
                yield context.spark.sql("SELECT 20 AS b, 10 AS a")
            """
        )
    )
    assert table.rows() == [(1, 2), (10, 20)]


def test_a_generator_that_yields_nothing_gives_no_rows(table: Table) -> None:
    table.columns = (Column(name="id", type="int"),)
    table.write(query("def execute(context, *args, **kwargs):\n    yield from ()\n"))
    assert table.rows() == []


def test_only_rows_of_the_interval_land(table: Table) -> None:
    table = replace(table, partitioned_by=("ds",), time_column=TimeColumn(name="ds"))
    table.write(
        query(
            """
            def execute(context, *args, **kwargs):
                return context.spark.range(5).selectExpr("id", "date_add(DATE'2024-01-01', CAST(id AS int)) AS ds")
            """
        ),
        ("2024-01-02", "2024-01-03"),
    )
    assert table.rows() == [(1, "2024-01-02")]


def test_pandas_keeps_exact_types(table: Table) -> None:
    table.columns = (
        Column(name="n", type="bigint"),
        Column(name="price", type="decimal(38,10)"),
        Column(name="at", type="timestamp"),
        Column(name="wall", type="timestamp_ntz"),
        Column(name="day", type="date"),
    )
    table.write(
        query(
            """
            import datetime as dt
            from decimal import Decimal

            import pandas as pd


            def execute(context, *args, **kwargs):
                return pd.DataFrame(
                    {
                        "at": [pd.Timestamp("2024-03-10 02:30:00"), pd.Timestamp("2024-11-03 01:30:00.000001")],
                        "wall": [pd.Timestamp("2024-03-10 02:30:00"), pd.NaT],
                        "n": [2**53 + 1, 5],
                        "price": [Decimal("1234567890123456789012345678.0123456789"), None],
                        "day": [dt.date(2024, 1, 1), None],
                    }
                )
            """
        )
    )
    assert table.rows() == [
        (5, None, "2024-11-03T01:30:00.000001Z", None, None),
        (
            9007199254740993,
            "1234567890123456789012345678.0123456789",
            "2024-03-10T02:30:00Z",
            "2024-03-10T02:30:00",
            "2024-01-01",
        ),
    ]


def test_pandas_without_declared_columns_shows_its_types(table: Table) -> None:
    source = """
        import pandas as pd

        def execute(context, *args, **kwargs):
            return pd.DataFrame({"a": [1, 2], "b": ["x", None]})
        """
    table.write(query(source))
    assert table.rows() == [(1, "x"), (2, None)]
    with pytest.raises(BadModelResult, match=r"the type of column `b`.*is unclear"):
        table.write(query(source.replace('["x", None]', "[None, None]")))


@pytest.mark.parametrize(
    ("body", "line", "said"),
    [
        ("pass", 4, "returned nothing"),
        ("return [1, 2]", 4, r"returned a `builtins.list`, not a DataFrame"),
        ("yield None", 4, "returned nothing"),
        ("x = 1\nraise ValueError('no such luck')", 7, "raised `ValueError`: no such luck"),
        ("raise SystemExit", 6, "raised `SystemExit`"),
        ("import os\nos._exit(0)", 7, "raised `SystemExit`: 0"),
        ("raise KeyboardInterrupt", 6, "raised `KeyboardInterrupt`"),
        ("yield context.table('shop.y')\nexit()", 7, "raised `SystemExit`"),
        ("def again(): again()\nagain()", 6, "raised `RecursionError`"),
        ("open('/no/such/file')", 6, "raised `FileNotFoundError`"),
        ("return context.table('shop.yy')", 6, "`shop.yy` is not a table this model depends on"),
        ("return context.spark.sql('SELECT 1').drop('1')", None, "the result has no columns"),
        (
            "context.spark.conf.set('spark.sql.ansi.enabled', 'false')",
            None,
            r"session: setting `spark.sql.ansi.enabled`",
        ),
        ("context.table('shop.y').createOrReplaceTempView('mine')", None, r"session: temporary view `mine`"),
        ("context.spark.sql('USE s_other')", None, r"session: current schema"),
    ],
)
def test_a_mistake_is_told_with_the_line_of_the_code(table: Table, body: str, line: int | None, said: str) -> None:
    table.write(SqlQuery(sql="SELECT 1 AS id", pre_statements=on_lines("CREATE SCHEMA IF NOT EXISTS s_other")))
    indented = "".join(f"    {part}\n" for part in body.splitlines())
    with pytest.raises(BadModelResult, match=said) as caught:
        table.write(query(f"@model('shop.x')\ndef execute(context, *args, **kwargs):\n{indented}"))
    assert str(caught.value.location) == (f"models/x.py:{line}" if line else "models/t.sql:1")


def test_a_failure_of_spark_inside_a_model_has_its_line_too(table: Table) -> None:
    with pytest.raises(AnalysisFailed) as caught:
        table.write(
            query("def execute(context, *args, **kwargs):\n    return context.spark.sql('SELECT nope').count()\n")
        )
    assert str(caught.value.location) == "models/x.py:5"


def test_code_that_cannot_be_read_is_told(table: Table) -> None:
    with pytest.raises(BadModelResult, match="SyntaxError") as caught:
        table.write(query("def execute(:\n"))
    assert str(caught.value.location) == "models/x.py:4"


def test_functions_of_recorded_modules_run_on_executors(table: Table) -> None:
    table.write(
        query(
            """
            from pyspark.sql.functions import udf
            from shared import helpers
            from shared.helpers import Scale


            def execute(context, *args, **kwargs):
                double = udf(lambda x: helpers.double(x) + Scale(factor=1).factor, "long")
                return context.table("shop.y").select(double("id").alias("id"))
            """,
            shared__helpers="""
            from __future__ import annotations

            from dataclasses import dataclass

            from .base import TWO


            @dataclass
            class Scale:
                factor: int


            def double(x):
                return TWO * x
            """,
            shared__base="TWO = 2",
        )
    )
    assert table.rows() == [(3,), (5,)]


def test_a_function_that_fails_on_an_executor_says_why(table: Table) -> None:
    with pytest.raises(QueryFailed, match=r"failed in Python code that runs on Spark: ValueError: no such luck"):
        table.write(
            query(
                """
                from pyspark.sql.functions import udf


                def execute(context, *args, **kwargs):
                    def fail(x):
                        raise ValueError("no such luck")

                    return context.table("shop.y").select(udf(fail, "long")("id").alias("id"))
                """
            )
        )


def test_two_versions_of_a_module_do_not_meet() -> None:
    def load(value: int) -> object:
        modules = (
            PythonModule(name="models.x", path="models/x.py", source="from shared import VALUE\nimport models.other\n"),
            PythonModule(name="models.other", path="models/other.py", source=""),
            PythonModule(name="shared", path="shared.py", source=f"VALUE = {value}\n"),
        )
        return RecordedModules.of(modules).load("models.x")

    first, second = load(1), load(2)
    assert (first.VALUE, second.VALUE) == (1, 2)  # type: ignore[attr-defined]
    assert first.models.other is not second.models.other  # type: ignore[attr-defined]
    assert load(1) is first
    with pytest.raises(ImportError):
        __import__("shared")
