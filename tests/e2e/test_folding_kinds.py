"""Kinds whose runs are put into what the table holds, on real Spark: tables after successive commands, cell by cell."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.conftest import PATIENCE, Project, surroundings
from tests.kit.told import told

MENU = "unique_key id, invalidate_hard_deletes true"
MODELS = {
    "models__stock_sql": """MODEL (
  name shop.stock, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key (lower(name), size)), partitioned_by (place, days(seen))
);
SELECT name, size, amount, place, seen FROM raw.stock
""",
    "models__sums_sql": """MODEL (name shop.sums, start '2019-12-30', kind INCREMENTAL_BY_UNIQUE_KEY (
  unique_key name, batch_size 1, when_matched (
    WHEN MATCHED AND source.n < 0 AND target.last < @end_date THEN DELETE
    WHEN MATCHED THEN UPDATE SET target.n = target.n + source.n, target.last = source.last
  )));
SELECT name, SUM(n) AS n, MAX(ds) AS last FROM raw.events WHERE ds BETWEEN @start_date AND @end_date GROUP BY name
""",
    "models__seen_sql": """MODEL (name shop.seen, start '2019-12-30', dialect duckdb, kind INCREMENTAL_BY_UNIQUE_KEY (
  unique_key name, merge_filter target."n" < source.n::int, order_by n));
SELECT name, n FROM raw.events WHERE ds BETWEEN @start_date AND @end_date
""",
    "models__strict_sql": """MODEL (name shop.strict, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key id));
SELECT id, name FROM raw.strict
""",
    "models__by_time_sql": f"""MODEL (name shop.by_time, kind SCD_TYPE_2_BY_TIME ({MENU}));
SELECT id, name, price, updated_at FROM raw.menu
""",
    "models__by_column_sql": f"""MODEL (
  name shop.by_column, kind SCD_TYPE_2_BY_COLUMN ({MENU}, columns [name, price]), partitioned_by valid_to);
SELECT id, name, price FROM raw.menu
""",
    "models__current_sql": """MODEL (name shop.current, kind FULL);
SELECT id, name, valid_from FROM shop.by_time WHERE valid_to IS NULL
""",
    "models__months_sql": """MODEL (name shop.months, kind INCREMENTAL_BY_PARTITION, partitioned_by months(ds));
SELECT name, n, ds FROM raw.batch
""",
    "models__log_sql": """MODEL (name shop.log, kind INCREMENTAL_UNMANAGED, partitioned_by ds);
SELECT name, n, ds FROM raw.batch
""",
    "models__latest_sql": """MODEL (
  name shop.latest, kind INCREMENTAL_UNMANAGED (insert_overwrite true), partitioned_by ds);
SELECT name, n, ds FROM raw.batch
""",
}
SCRIPT = """
import json, sys
from lamina import Project

seen, statuses = {}, {}
TABLES = {
    "stock": ("name string, size int, amount int, place string, seen timestamp", [
        [("Tea", 1, 5, "shelf", "2024-01-01 10:00:00"), ("Tea", 2, 6, "shelf", "2024-01-01 10:00:00")],
        [("TEA", 1, 7, "cellar", "2024-01-02 10:00:00"), ("Rum", 1, 1, "cellar", "2024-01-02 11:00:00")],
        [("TEA", 1, 7, "cellar", "2024-01-02 10:00:00"), ("Rum", 1, 1, "cellar", "2024-01-02 11:00:00")],
    ]),
    "events": ("name string, n int, ds date", [
        [("a", 1, "2019-12-30"), ("a", 2, "2019-12-30"), ("b", 5, "2019-12-31"), ("a", 4, "2019-12-31")],
        [("late", 9, "2019-12-30"), ("a", 10, "2020-01-01"), ("c", 1, "2020-01-01")],
        [("a", -1, "2020-01-02"), ("c", 1, "2020-01-02")],
    ]),
    "strict": ("id int, name string", [
        [(1, "one"), (2, "two")],
        [(2, "2"), (3, "three"), (3, "3"), (4, "four"), (4, "4")],
        [(5, "five"), (None, "none")],
    ]),
    "menu": ("id int, name string, price double, updated_at timestamp", [
        [(1, "Chicken Sandwich", 10.99, "2020-01-01"), (2, "Cheeseburger", 8.99, "2020-01-01"),
         (3, "French Fries", 4.99, "2020-01-01")],
        [(1, "Chicken Sandwich", 12.99, "2020-01-02"), (3, "French Fries", 4.99, "2020-01-01"),
         (4, "Milkshake", 3.99, "2020-01-02")],
        [(1, "Chicken Sandwich", 14.99, "2020-01-03"), (2, "Cheeseburger", 8.99, "2020-01-03"),
         (3, "French Fries", 4.99, "2020-01-01"), (4, "Chocolate Milkshake", 3.99, "2020-01-03")],
    ]),
    "batch": ("name string, n int, ds date", [
        [("a", 1, "2024-01-01"), ("a", 2, "2024-01-31"), ("b", 3, "2024-02-01")],
        [("c", 4, "2024-01-31"), ("a", 5, "2024-03-01")],
        [],
    ]),
}


def put(number):
    for name, (columns, contents) in TABLES.items():
        parts = [column.split() for column in columns.split(", ")]
        selected = ", ".join(f"CAST({part} AS {kind}) AS {part}" for part, kind in parts)
        rows = contents[number]
        values = ", ".join(str(row).replace("None", "NULL") for row in rows)
        nothing = "(" + ", ".join("NULL" for _ in parts) + ")"
        names = ", ".join(part for part, _ in parts)
        query = f"SELECT {selected} FROM VALUES {values or nothing} AS t({names})" + ("" if rows else " WHERE false")
        if number == 0:
            spark.sql(f"CREATE TABLE raw.{name} USING parquet AS {query}")
        else:
            spark.sql(f"INSERT OVERWRITE TABLE raw.{name} {query}")


def look(step, names):
    seen[step] = {}
    for name in names:
        frame = project.query(f"SELECT * FROM shop.{name}")
        texts = frame.selectExpr(*(f"CAST({column} AS string) AS {column}" for column in frame.columns))
        rows = [tuple(row) for row in texts.collect()]
        seen[step][name] = sorted(rows, key=lambda row: [(cell is None, cell or "") for cell in row])


def note(step, report):
    nodes = report.to_dict()["nodes"]
    statuses[step] = {node["name"][5:]: [node["status"], (node["error"] or {}).get("message"),
                                         (node["error"] or {}).get("hint")] for node in nodes}
    statuses[step]["all"] = report.status
    look(step, MODELS)


MODELS = sys.argv[2].split(",")
with Project.open(sys.argv[1]) as project:
    spark = project.query("SELECT 1 AS x").sparkSession
    spark.sql("SET spark.sql.session.timeZone = UTC")
    spark.sql("CREATE SCHEMA raw")
    put(0)
    note("first", project.build(execution_time="2020-01-01 11:00:00"))
    statuses["again"] = project.build(execution_time="2020-01-01 11:00:00").status
    put(1)
    note("second", project.run(execution_time="2020-01-02 11:00:00"))
    put(2)
    note("third", project.run(execution_time="2020-01-03 11:00:00"))
    restated = project.build(execution_time="2020-01-03 11:00:00", restate=["shop.stock", "shop.by_time", "shop.log"])
    statuses["warnings"] = [[notice["code"], notice["node"]] for notice in restated.to_dict()["warnings"]]
    look("restated", ["stock", "log"])
print("SEEN" + json.dumps([seen, statuses]))
"""


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    project = Project(tmp_path_factory.mktemp("folds"))
    settings = "{spark.sql.shuffle.partitions: 1, spark.sql.adaptive.enabled: false}"
    project.write(lamina_yaml=f"name: shop\nspark: {{config: {settings}}}\n", **MODELS)
    names = ",".join(name.removeprefix("models__").removesuffix("_sql") for name in MODELS)
    seen, statuses = told("-c", SCRIPT, str(project.folder), names, env=surroundings(), timeout=PATIENCE)
    tables = {step: {name: [tuple(row) for row in rows] for name, rows in made.items()} for step, made in seen.items()}
    return tables, statuses


FIRST_BATCH = [("a", "1", "2024-01-01"), ("a", "2", "2024-01-31"), ("b", "3", "2024-02-01")]
EPOCH = "1970-01-01 00:00:00"
JAN_1, JAN_2, JAN_3 = (f"2020-01-0{day} 00:00:00" for day in (1, 2, 3))
RUN_2, RUN_3 = (f"2020-01-0{day} 11:00:00" for day in (2, 3))
History = tuple[dict[str, Any], dict[str, Any]]


def test_a_unique_key_replaces_rows_and_vanished_partitions_vanish(history: History) -> None:
    tables, statuses = history
    shelf, cellar = "2024-01-01 10:00:00", "2024-01-02 1{}:00:00"
    assert tables["first"]["stock"] == [("Tea", "1", "5", "shelf", shelf), ("Tea", "2", "6", "shelf", shelf)]
    after = [("Rum", "1", "1", "cellar", cellar.format(1)), ("TEA", "1", "7", "cellar", cellar.format(0))]
    assert tables["second"]["stock"] == tables["third"]["stock"] == [*after, ("Tea", "2", "6", "shelf", shelf)]
    assert tables["restated"]["stock"] == after
    assert statuses["again"] == "nothing_to_do"


def test_an_additive_clause_counts_every_day_once_and_a_condition_deletes(history: History) -> None:
    tables, _ = history
    assert tables["first"]["sums"] == [("a", "7", "2019-12-31"), ("b", "5", "2019-12-31")]
    assert tables["second"]["sums"] == [
        ("a", "17", "2020-01-01"),
        ("b", "5", "2019-12-31"),
        ("c", "1", "2020-01-01"),
    ]
    assert tables["third"]["sums"] == [("b", "5", "2019-12-31"), ("c", "2", "2020-01-02")]


def test_rows_for_which_the_merge_filter_does_not_hold_do_not_match(history: History) -> None:
    tables, _ = history
    assert tables["first"]["seen"] == [("a", "4"), ("b", "5")]
    assert tables["second"]["seen"] == [("a", "10"), ("b", "5"), ("c", "1")]
    assert tables["third"]["seen"] == [("a", "-1"), ("a", "10"), ("b", "5"), ("c", "1"), ("c", "1")]


def test_repeated_and_missing_keys_are_refused_and_nothing_changes(history: History) -> None:
    tables, statuses = history
    assert statuses["second"]["strict"] == [
        "failed",
        "several of the new rows have the same unique key `id`: `3`, `4`",
        "keep one row per key in the query, or let `unique_key` tell them apart; `order_by` in the kind says "
        "which of them is the last and wins",
    ]
    assert statuses["third"]["strict"][:2] == ["failed", "the unique key `id` is NULL in 1 of the new rows"]
    assert all(tables[step]["strict"] == [("1", "one"), ("2", "two")] for step in ("first", "second", "third"))


def test_histories_by_time_are_those_of_the_menu(history: History) -> None:
    tables, _ = history
    sandwich, burger, fries = "Chicken Sandwich", "Cheeseburger", "French Fries"
    assert tables["first"]["by_time"] == [
        ("1", sandwich, "10.99", JAN_1, EPOCH, None),
        ("2", burger, "8.99", JAN_1, EPOCH, None),
        ("3", fries, "4.99", JAN_1, EPOCH, None),
    ]
    assert tables["second"]["by_time"] == [
        ("1", sandwich, "10.99", JAN_1, EPOCH, JAN_2),
        ("1", sandwich, "12.99", JAN_2, JAN_2, None),
        ("2", burger, "8.99", JAN_1, EPOCH, RUN_2),
        ("3", fries, "4.99", JAN_1, EPOCH, None),
        ("4", "Milkshake", "3.99", JAN_2, JAN_2, None),
    ]
    assert tables["third"]["by_time"] == [
        ("1", sandwich, "10.99", JAN_1, EPOCH, JAN_2),
        ("1", sandwich, "12.99", JAN_2, JAN_2, JAN_3),
        ("1", sandwich, "14.99", JAN_3, JAN_3, None),
        ("2", burger, "8.99", JAN_1, EPOCH, RUN_2),
        ("2", burger, "8.99", JAN_3, JAN_3, None),
        ("3", fries, "4.99", JAN_1, EPOCH, None),
        ("4", "Chocolate Milkshake", "3.99", JAN_3, JAN_3, None),
        ("4", "Milkshake", "3.99", JAN_2, JAN_2, JAN_3),
    ]
    assert tables["third"]["current"] == [row[:2] + row[4:5] for row in tables["third"]["by_time"] if row[5] is None]


def test_histories_by_column_are_those_of_the_menu(history: History) -> None:
    tables, _ = history
    sandwich, burger, fries = "Chicken Sandwich", "Cheeseburger", "French Fries"
    assert tables["first"]["by_column"] == [
        ("1", sandwich, "10.99", EPOCH, None),
        ("2", burger, "8.99", EPOCH, None),
        ("3", fries, "4.99", EPOCH, None),
    ]
    assert tables["second"]["by_column"] == [
        ("1", sandwich, "10.99", EPOCH, RUN_2),
        ("1", sandwich, "12.99", RUN_2, None),
        ("2", burger, "8.99", EPOCH, RUN_2),
        ("3", fries, "4.99", EPOCH, None),
        ("4", "Milkshake", "3.99", RUN_2, None),
    ]
    assert tables["third"]["by_column"] == [
        ("1", sandwich, "10.99", EPOCH, RUN_2),
        ("1", sandwich, "12.99", RUN_2, RUN_3),
        ("1", sandwich, "14.99", RUN_3, None),
        ("2", burger, "8.99", EPOCH, RUN_2),
        ("2", burger, "8.99", RUN_3, None),
        ("3", fries, "4.99", EPOCH, None),
        ("4", "Chocolate Milkshake", "3.99", RUN_3, None),
        ("4", "Milkshake", "3.99", RUN_2, RUN_3),
    ]


def test_partitions_that_occur_are_replaced_and_absent_ones_stay(history: History) -> None:
    tables, _ = history
    assert tables["first"]["months"] == tables["first"]["latest"] == FIRST_BATCH
    assert tables["second"]["months"] == [("a", "5", "2024-03-01"), ("b", "3", "2024-02-01"), ("c", "4", "2024-01-31")]
    assert tables["second"]["latest"] == [("a", "1", "2024-01-01"), *tables["second"]["months"]]
    assert all(tables["third"][name] == tables["second"][name] for name in ("months", "latest"))


def test_every_run_is_appended_once(history: History) -> None:
    tables, _ = history
    assert tables["first"]["log"] == FIRST_BATCH
    both = sorted([*FIRST_BATCH, ("c", "4", "2024-01-31"), ("a", "5", "2024-03-01")])
    assert tables["second"]["log"] == tables["third"]["log"] == tables["restated"]["log"] == both


def test_a_restatement_says_what_it_loses_and_what_it_must_not_touch(history: History) -> None:
    _, statuses = history
    assert [warning for warning in statuses["warnings"] if warning[0] != "LAM-WARN-001"] == [
        ["LAM-WARN-015", "shop.by_time"],
        ["LAM-WARN-015", "shop.log"],
        ["LAM-WARN-016", "shop.stock"],
    ]
