"""Statements around a query: the tables they read, the views they leave, and tables put in place of names."""

from __future__ import annotations

import pytest

from lamina.sql.render import resolve_statement_tables
from lamina.sql.session_statements import SessionView, reads_unseen, session_view, tables_read

ROWS = "(SELECT a FROM g)"
READING = {
    "SELECT assert_true(count(*) > 0) FROM {}": "AS `m`",
    "SELECT shop.m.a, m.b FROM {}": None,
    "CREATE TEMPORARY VIEW v AS SELECT * FROM {}": "AS `m`",
    "create or replace temp view v (x COMMENT 'as', y) COMMENT 'as' AS SELECT * FROM {}": "AS `m`",
    "CREATE TEMP VIEW v AS (SELECT * FROM {})": "AS `m`",
    "CREATE TABLE IF NOT EXISTS a.b USING parquet PARTITIONED BY (x) AS SELECT * FROM {}": "AS `m`",
    "CACHE LAZY TABLE c OPTIONS ('storageLevel' = 'DISK_ONLY') AS SELECT * FROM {}": "AS `m`",
    "INSERT INTO log (a, b) SELECT a, b FROM {} AS x": "",
    "INSERT INTO TABLE log SELECT a FROM {} x": "",
    "INSERT OVERWRITE TABLE log PARTITION (ds = 'x') SELECT a FROM {}": "AS `m`",
    "INSERT INTO log BY NAME (SELECT a FROM {})": "AS `m`",
    "INSERT INTO log REPLACE WHERE a > 1 SELECT a FROM {}": "AS `m`",
    "INSERT OVERWRITE DIRECTORY '/x' USING csv OPTIONS ('a' = 'b') SELECT * FROM {}": "AS `m`",
    "WITH q AS (SELECT a FROM {}) INSERT INTO log SELECT * FROM q": "AS `m`",
    "FROM {} INSERT INTO a SELECT x INSERT INTO b SELECT y": "AS `m`",
    "DECLARE VARIABLE x INT DEFAULT (SELECT max(a) FROM {})": "AS `m`",
    "SET VAR x = (SELECT max(a) FROM {})": "AS `m`",
    "DELETE FROM log WHERE id IN (SELECT a FROM {})": "AS `m`",
    "UPDATE log SET a = (SELECT max(a) FROM {})": "AS `m`",
    "MERGE INTO log t USING {} AS s ON t.a = s.a WHEN MATCHED THEN DELETE": "",
    "MERGE INTO log t USING (SELECT * FROM {}) s ON t.a = s.a WHEN MATCHED THEN DELETE": "AS `m`",
    "CREATE TEMPORARY FUNCTION f(x INT) RETURNS INT RETURN SELECT max(a) + x FROM {}": "AS `m`",
}


@pytest.mark.parametrize(("statement", "alias"), READING.items())
def test_what_a_statement_reads_is_found_and_replaced(statement: str, alias: str | None) -> None:
    written = statement.format("shop.m")
    assert "shop.m" in tables_read(written)
    found = resolve_statement_tables(written, {"shop.m": ROWS, "log": "(no)"})
    if alias is None:
        assert found == f"SELECT `m`.a, m.b FROM {ROWS} AS `m`"
    else:
        assert found == statement.format(f"{ROWS} {alias}".strip())


def test_a_merge_keeps_the_names_of_its_columns() -> None:
    found = resolve_statement_tables(
        "MERGE INTO log USING shop.m ON log.a = shop.m.a WHEN MATCHED THEN DELETE", {"shop.m": ROWS}
    )
    assert found == f"MERGE INTO log USING {ROWS} AS `m` ON log.a = `m`.a WHEN MATCHED THEN DELETE"


def test_a_table_as_a_query_is_spelled_out() -> None:
    spelled = f"SELECT * FROM {ROWS} AS `m`"
    for before in ("CREATE TEMP VIEW v AS ", "INSERT INTO log ", ""):
        assert resolve_statement_tables(f"{before}TABLE shop.m", {"shop.m": ROWS}) == before + spelled


UNTOUCHED = [
    "SET spark.sql.shuffle.partitions = 4",
    "ANALYZE TABLE shop.m COMPUTE STATISTICS",
    "REFRESH TABLE shop.m",
    "CALL lake.system.rewrite_data_files(table => 'shop.m')",
    "OPTIMIZE shop.m",
    "DROP VIEW shop.m",
    "INSERT INTO shop.m VALUES (1)",
    "INSERT INTO shop.m SELECT 1",
    "INSERT INTO TABLE shop.m SELECT 1",
    "DELETE FROM shop.m",
    "MERGE INTO shop.m t USING b AS s ON t.a = s.a WHEN MATCHED THEN DELETE",
    "CREATE TEMPORARY VIEW v USING parquet OPTIONS (path '/shop.m')",
    "CREATE TEMPORARY FUNCTION f AS 'shop.m' USING JAR '/x.jar'",
    "EXECUTE IMMEDIATE 'SELECT * FROM shop.m'",
    "GRANT SELECT ON TABLE shop.m TO b",
    "this is 'no statement",
    "SELECT (((",
    "",
]


@pytest.mark.parametrize("statement", UNTOUCHED)
def test_what_is_written_to_and_what_cannot_be_read_stays(statement: str) -> None:
    assert resolve_statement_tables(statement, {"shop.m": ROWS}) == statement
    assert "shop.m" not in tables_read(statement)


VIEWS = {
    "CREATE TEMPORARY VIEW Recent AS SELECT 1": SessionView(name="recent", query="SELECT 1", has_columns=False),
    "-- why\nCREATE OR REPLACE TEMP VIEW `a``b` (x) AS SELECT 1": SessionView(
        name="a`b", query="SELECT 1", has_columns=True
    ),
    "CREATE TEMP VIEW IF NOT EXISTS v AS\n(SELECT 1)": SessionView(name="v", query="(SELECT 1)", has_columns=False),
    "CREATE TEMP VIEW v USING jdbc OPTIONS (url 'x')": SessionView(name="v", query=None, has_columns=False),
    "CACHE TABLE c AS SELECT 1": SessionView(name="c", query="SELECT 1", has_columns=False),
    "CACHE TABLE c": None,
    "CREATE VIEW v AS SELECT 1": None,
    "SELECT 1": None,
}


@pytest.mark.parametrize(("statement", "view"), VIEWS.items())
def test_a_temporary_view_is_seen_with_its_query(statement: str, view: SessionView | None) -> None:
    assert session_view(statement) == view
    assert reads_unseen(statement) is (view is not None and view.query is None)
