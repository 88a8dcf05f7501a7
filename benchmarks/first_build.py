"""A first build of the example shop in a cold process, against the same tables and views written by hand.

Both start Spark with an embedded catalog of their own. By hand, a model is one CREATE TABLE AS, one after the other,
and nothing is recorded, audited or made safe.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parent.parent
_AT = "2024-01-08"
_LAMINA = f"""
import json, sys, time
from collections import Counter
from pathlib import Path
from pyspark.sql import SparkSession
from lamina import Project
from lamina.app.ports.events import SparkStarted
from lamina.bootstrap import OpenOptions, open_application
from lamina.app.requests import PlanRequest
from lamina.bootstrap import parse_execution_time

sent, started = Counter(), []
real = SparkSession.sql
def counting(session, text, *arguments, **named):
    sent[text.split()[0].upper()] += 1
    return real(session, text, *arguments, **named)
SparkSession.sql = counting

def emit(event):
    if isinstance(event, SparkStarted):
        started.append(event.seconds)

begun = time.perf_counter()
application = open_application(OpenOptions(directory=Path(sys.argv[1])), emit)
report = application.build(PlanRequest(command="build", now=parse_execution_time("{_AT}"))).to_dict()
seconds = time.perf_counter() - begun
seeds = [node["seconds"] for node in report["nodes"] if node["type"] == "seed"]
application.close()
print("SEEN" + json.dumps({{"status": report["status"], "seconds": seconds, "spark": sum(started), "sent": sent,
                            "seeds": sum(seeds), "models": len(report["nodes"])}}))
"""
_MODELS = (
    "CREATE VIEW shop.stg_orders AS SELECT CAST(id AS INT) AS order_id, CAST(customer AS INT) AS customer_id, "
    "CAST(product AS INT) AS product_id, CAST(quantity AS INT) AS quantity, CAST(ordered_at AS TIMESTAMP) AS "
    "ordered_at, "
    "status FROM shop.raw_orders",
    "CREATE TABLE shop.orders USING parquet PARTITIONED BY (order_date) AS SELECT o.order_id, o.customer_id, "
    "o.product_id, o.quantity, o.quantity * p.price_cents / 100 AS amount, o.quantity * p.price_cents >= 10000 AS "
    "is_large, CAST(o.ordered_at AS DATE) AS order_date FROM shop.stg_orders o JOIN shop.products p "
    "ON p.id = o.product_id WHERE o.status <> 'cancelled'",
    "CREATE TABLE shop.customers USING parquet AS SELECT c.id AS customer_id, c.name, c.country, COUNT(o.order_id) AS "
    "orders, COALESCE(SUM(o.amount), 0) AS lifetime_amount, MIN(o.order_date) AS first_order, MAX(o.order_date) AS "
    "last_order FROM shop.raw_customers c LEFT JOIN shop.orders o ON o.customer_id = c.id GROUP BY ALL",
    "CREATE TABLE shop.daily_revenue USING parquet PARTITIONED BY (order_date) AS SELECT COUNT(*) AS orders, "
    "COUNT(DISTINCT customer_id) AS customers, SUM(amount) AS revenue, order_date FROM shop.orders GROUP BY order_date",
    "CREATE TABLE shop.order_sizes USING parquet AS SELECT is_large, COUNT(*) AS orders, SUM(amount) AS amount "
    "FROM shop.orders GROUP BY is_large",
    "CREATE VIEW shop.top_customers AS SELECT * FROM shop.customers ORDER BY lifetime_amount DESC LIMIT 5",
)
_BY_HAND = """
import json, sys, time
from pathlib import Path
from pyspark.sql import SparkSession

home, statements = Path(sys.argv[1]), json.loads(sys.argv[2])
begun = time.perf_counter()
spark = (
    SparkSession.builder.master("local[*]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.sql.warehouse.dir", str(home / "warehouse"))
    .config("spark.hadoop.javax.jdo.option.ConnectionURL", f"jdbc:derby:;databaseName={home}/catalog;create=true")
    .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={home}")
    .enableHiveSupport()
    .getOrCreate()
)
started = time.perf_counter() - begun
for statement in statements:
    spark.sql(statement)
print("SEEN" + json.dumps({"seconds": time.perf_counter() - begun, "spark": started}))
"""


def main(rounds: int = 2) -> dict[str, Any]:
    """The better of some rounds that take turns."""
    ours, by_hand = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as place:
            project = Path(place) / "shop"
            _run([str(Path(sys.executable).parent / "lamina"), "init", str(project)])
            statements = _statements(project)
            by_hand.append(_told(_BY_HAND, str(Path(place)), json.dumps(statements)))
            ours.append(_told(_LAMINA, str(project)))
    best, hand = (min(rows, key=lambda row: row["seconds"]) for rows in (ours, by_hand))
    if best["status"] != "succeeded":
        raise RuntimeError(best)
    return {
        "models": best["models"],
        "statements": best["sent"],
        "seconds": round(best["seconds"], 1),
        "of_which_spark_starts": round(best["spark"], 1),
        "of_which_seeds": round(best["seeds"], 1),
        "by_hand_seconds": round(hand["seconds"], 1),
        "ratio": round(best["seconds"] / hand["seconds"], 2),
    }


def _statements(project: Path) -> list[str]:
    """The shop's seeds and models by hand, each over the whole time."""
    found = ["CREATE SCHEMA shop"]
    for path in sorted((project / "seeds").glob("*.csv")):
        options = f"OPTIONS (path '{path}', header 'true', inferSchema 'true')"
        found.append(f"CREATE TEMPORARY VIEW csv_{path.stem} USING csv {options}")
        found.append(f"CREATE TABLE shop.{path.stem} USING parquet AS SELECT * FROM csv_{path.stem}")
    return [*found, *_MODELS]


def _told(program: str, *arguments: str) -> dict[str, Any]:
    return dict(json.loads(_run([sys.executable, "-c", program, *arguments]).rpartition("SEEN")[2]))


def _run(words: list[str]) -> str:
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(_ROOT / "src"), str(_ROOT)])}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    begun = time.perf_counter()
    answer = subprocess.run(words, env=variables, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise RuntimeError(f"{words[:3]} failed after {time.perf_counter() - begun:.0f} s: {answer.stderr[-3000:]}")
    return answer.stdout
