"""Columns that a query asks of tables which do not have them; `tests/spark` holds the same queries against Spark."""

from __future__ import annotations

import pytest

from lamina.sql.lineage.missing_columns import MissingColumn, find_missing_columns
from tests.kit.columns import RIGHT, SCHEMAS, WRONG


def missing(query: str, dialect: str = "spark") -> tuple[MissingColumn, ...]:
    return find_missing_columns(query, dialect, SCHEMAS).missing


@pytest.mark.parametrize("query", RIGHT)
def test_nothing_is_missed_where_spark_finds_everything(query: str) -> None:
    assert missing(query) == ()


@pytest.mark.parametrize("query", WRONG)
def test_what_is_nowhere_is_missed_where_it_stands(query: str) -> None:
    found = missing(query)
    assert found
    assert any(each.written == WRONG[query] for each in found)
    assert all(query[each.offset :].startswith(each.written) for each in found)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT nope FROM t JOIN unknown ON true",
        "SELECT t.nope FROM t, unknown",
        "SELECT nope FROM t LATERAL VIEW explode(xs) e",
        "SELECT nope FROM parquet.`/data/x`",
        "SELECT nope FROM t VERSION AS OF 1",
        "SELECT nope FROM f(1)",
        "SELECT id, nope.x FROM (SELECT s.* FROM t)",
        "SELECT nope",
        "SELECT _metadata.file_path, t._metadata FROM t",
        "SELECT session.x, system.session.x FROM t",
        "SELECT `(id|k)?+.+`, `(id)?+.+` FROM t",
        "SELECT * FROM unknown WHERE id IN (SELECT nope FROM t)",
        "SELECT nope FROM (SELECT *, id + 1 FROM unknown)",
        "SELECT nope FROM (SELECT DATE '2024-01-01' FROM t)",
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT nope FROM r) SELECT n FROM r",
        "SELECT * FROM t WHERE id = (SELECT max(nope) FROM unknown)",
        "this is no query",
    ],
)
def test_doubt_means_silence(query: str) -> None:
    assert missing(query) == ()


def test_what_is_known_of_a_missing_column_is_told() -> None:
    (found,) = missing("SELECT x.naem FROM t AS x JOIN u ON x.id = u.id")
    assert (found.name, found.relation, found.table) == ("naem", "x", "t")
    assert found.known == SCHEMAS["t"]


def test_several_columns_are_missed_at_once_and_each_where_it_stands() -> None:
    assert [each.written for each in missing("SELECT a, b, a FROM t")] == ["a", "b", "a"]


def test_names_are_compared_without_case_in_every_dialect() -> None:
    assert missing('SELECT "ID", "T2" FROM t', "postgres") == ()
    assert [each.name for each in missing('SELECT "NOPE" FROM t', "postgres")] == ["NOPE"]


def test_queries_nested_without_end_are_left_alone() -> None:
    assert missing("SELECT a FROM " + "(SELECT * FROM " * 150 + "t" + ")" * 150) != ()
    assert missing(" UNION ALL ".join(["SELECT nope FROM t"] * 3000)) == ()
