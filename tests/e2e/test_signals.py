"""A signal that asks Spark, recorded and asked again without its file."""

from __future__ import annotations

from tests.e2e.conftest import Project

MODEL = """
MODEL (
  name shop.orders,
  kind INCREMENTAL_BY_TIME_RANGE (time_column ds),
  start '2024-01-01',
  signals (counted)
);
SELECT CAST(ds AS DATE) AS ds FROM VALUES ('2024-01-01'), ('2024-01-02') AS t(ds)
WHERE ds BETWEEN @start_ds AND @end_ds
"""
CODE = """
from lamina import signal


@signal()
def counted(batch, context):
    return batch[: context.spark.sql("SELECT 2 AS days").first()["days"]]
"""


def test_a_signal_may_ask_spark_and_a_run_needs_no_files(project: Project):
    project.write(models__orders_sql=MODEL, signals__checks_py=CODE)
    built = project.document("build", "--execution-time", "2024-01-05")
    (project.folder / "signals" / "checks.py").unlink()
    run = project.document("run", "--execution-time", "2024-01-06")

    assert built["nodes"][0]["intervals"] == [["2024-01-01T00:00:00Z", "2024-01-03T00:00:00Z"]]
    assert run["nodes"][0]["intervals"] == [["2024-01-03T00:00:00Z", "2024-01-05T00:00:00Z"]]
    assert run["nodes"][0]["waiting_for"] == [
        {"name": "signal:counted", "interval": ["2024-01-05T00:00:00Z", "2024-01-06T00:00:00Z"]}
    ]
