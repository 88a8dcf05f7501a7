from __future__ import annotations

import pytest

from lamina.errors import BadPropertyValue, Location, SyntaxProblem
from lamina.sql.query import analyse_query

SCHEMAS = {"shop.orders": ("id", "amount", "ds"), "shop.customers": ("id", "name")}


def references(text: str) -> list[str]:
    shape = analyse_query(text)
    return [reference.name.to_text() for reference in shape.references]


def columns(text: str, dialect: str = "spark") -> list[str] | None:
    found = analyse_query(text, dialect, schemas=SCHEMAS).output_columns
    return None if found is None else [column.name for column in found]


# --- references ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM a, b", ["a", "b"]),
        ("SELECT * FROM orders o JOIN orders p ON o.id = p.parent", ["orders", "orders"]),
        ("SELECT * FROM `Shop`.`my orders`", ["shop.`my orders`"]),
        ("SELECT * FROM cat.shop.orders", ["cat.shop.orders"]),
        ("TABLE shop.x", ["shop.x"]),
        ("TABLE x UNION ALL TABLE y", ["x", "y"]),
        ("VALUES (1), (2)", []),
        ("FROM x SELECT a", ["x"]),
        ("SELECT * FROM t PIVOT (sum(v) FOR y IN (1, 2))", ["t"]),
        ("SELECT * FROM t LATERAL VIEW explode(xs) v AS x", ["t"]),
        ("SELECT * FROM t, LATERAL (SELECT * FROM u WHERE u.id = t.id)", ["t", "u"]),
        ("SELECT * FROM t TABLESAMPLE (10 PERCENT)", ["t"]),
        ("SELECT /*+ BROADCAST(u) */ * FROM t", ["t"]),
        ("SELECT * FROM range(10)", []),
        ("SELECT * FROM f(TABLE(shop.t))", ["shop.t"]),
        ("SELECT * FROM f(TABLE shop.t)", ["shop.t"]),
        ("SELECT a FROM t WHERE a IN (SELECT b FROM u) AND EXISTS (SELECT 1 FROM v)", ["t", "u", "v"]),
        ("SELECT (SELECT max(a) FROM u) AS m FROM t", ["u", "t"]),
        ("SELECT a FROM t UNION SELECT a FROM u EXCEPT SELECT a FROM v", ["t", "u", "v"]),
        ("SELECT * FROM (t JOIN u ON t.a = u.a) x", ["t", "u"]),
        ("SELECT 'FROM no.such' AS x FROM t -- FROM not.this", ["t"]),
    ],
)
def test_every_table_that_is_read_is_a_reference(text: str, expected: list[str]) -> None:
    assert references(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("WITH a AS (SELECT 1 AS x) SELECT * FROM a", []),
        ("WITH A AS (SELECT 1 AS x) SELECT * FROM `a`", []),
        ("WITH orders AS (SELECT * FROM orders) SELECT * FROM orders", ["orders"]),
        ("WITH a AS (SELECT 1 AS x), b AS (SELECT * FROM a JOIN c) SELECT * FROM b", ["c"]),
        ("WITH b AS (SELECT * FROM a), a AS (SELECT 1 AS x) SELECT * FROM a, b", ["a"]),
        ("WITH a AS (SELECT 1 AS x) SELECT * FROM shop.a", ["shop.a"]),
        ("WITH a AS (WITH b AS (SELECT 1 AS x) SELECT * FROM b) SELECT * FROM a, b", ["b"]),
        ("WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT * FROM r, s", ["s"]),
        ("SELECT * FROM t WHERE a IN (WITH t AS (SELECT 1 AS x) SELECT x FROM t)", ["t"]),
    ],
)
def test_common_table_expressions_hide_tables_as_they_do_in_spark(text: str, expected: list[str]) -> None:
    assert references(text) == expected


def test_a_reference_knows_where_it_stands_and_its_alias() -> None:
    shape = analyse_query("SELECT 'é' AS x FROM `Shop`.Orders AS o, customers")
    orders, customers = shape.references
    assert shape.text[orders.start : orders.end] == "`Shop`.Orders"
    assert (orders.alias, orders.has_alias) == ("o", True)
    assert (customers.alias, customers.has_alias) == (None, False)


def test_a_folder_read_as_a_table_is_flagged() -> None:
    shape = analyse_query("SELECT * FROM parquet.`/data/x` JOIN parquet.orders")
    assert [reference.is_path for reference in shape.references] == [True, False]


# --- columns -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT id, o.amount, s.field.inner, b AS c, d e FROM shop.orders o", ["id", "amount", "inner", "c", "e"]),
        ("SELECT CAST(a AS INT), (b), 1, 'x' FROM t", ["a", "b", "1", "x"]),
        ("SELECT a + 1, count(*), sum(DISTINCT a) FROM t", ["(a + 1)", "count(1)", "sum(DISTINCT a)"]),
        ("SELECT * FROM shop.orders", ["id", "amount", "ds"]),
        ("SELECT o.*, name FROM shop.orders o, shop.customers", ["id", "amount", "ds", "name"]),
        ("SELECT shop.customers.* FROM shop.orders, shop.customers", ["id", "name"]),
        ("SELECT * FROM shop.orders JOIN shop.customers USING (id)", ["id", "amount", "ds", "name"]),
        ("SELECT * FROM shop.orders LEFT SEMI JOIN shop.customers USING (id)", ["id", "amount", "ds"]),
        ("SELECT * EXCEPT (amount) FROM shop.orders", ["id", "ds"]),
        ("WITH a AS (SELECT 1 AS x, 2 AS y) SELECT *, 3 AS z FROM a", ["x", "y", "z"]),
        ("WITH a(p, q) AS (SELECT 1, 2) SELECT * FROM a", ["p", "q"]),
        ("SELECT * FROM (SELECT a, b FROM t) LATERAL VIEW explode(b) v AS item", ["a", "b", "item"]),
        ("SELECT * FROM VALUES (1, 2) AS t(a, b)", ["a", "b"]),
        ("VALUES (1, 2)", ["col1", "col2"]),
        ("SELECT a FROM t UNION ALL SELECT b FROM u", ["a"]),
        ("SELECT stack(2, 1, 2) AS (p, q), explode(xs) AS r FROM t", ["p", "q", "r"]),
        ("TABLE shop.customers", ["id", "name"]),
        ("SELECT * FROM range(3)", ["id"]),
    ],
)
def test_columns_are_known_under_the_names_that_spark_gives(text: str, expected: list[str]) -> None:
    assert columns(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM elsewhere",
        "SELECT s.* FROM shop.orders",
        "SELECT explode(xs) FROM t",
        "SELECT * FROM shop.orders PIVOT (sum(amount) FOR ds IN ('a'))",
        "SELECT * FROM shop.orders NATURAL JOIN shop.customers",
        "SELECT * FROM shop.orders, shop.customers c LEFT JOIN shop.customers d USING (id)",
    ],
)
def test_columns_that_cannot_be_known_are_none(text: str) -> None:
    assert columns(text) is None


def test_an_expression_without_alias_may_have_an_uncertain_name() -> None:
    found = analyse_query("SELECT to_timestamp(a), row_number() OVER (ORDER BY a) AS n FROM t").output_columns
    assert found is not None
    assert [column.is_name_certain for column in found] == [False, True]


def test_comments_beside_columns_belong_to_them() -> None:
    found = analyse_query(
        """
        -- what this is about
        SELECT /*+ BROADCAST(c) */ DISTINCT
          o.id, -- the order
          -- how it goes on
          c.name /* of the customer */, /* before */ flag,
          amount /* inside */ * 2 AS twice,
          '-- no comment' AS text
          , last -- the end
        FROM shop.orders o -- not a column's
        JOIN shop.customers c USING (id)
        """
    ).output_columns
    assert found is not None
    assert {column.name: column.comment for column in found} == {
        "id": "the order",
        "name": "of the customer",
        "flag": "before",
        "twice": "inside",
        "text": None,
        "last": "the end",
    }


def test_comments_survive_the_translation_of_another_dialect() -> None:
    found = analyse_query('SELECT "a" -- first\n, b::int AS c -- second\nFROM t', "postgres").output_columns
    assert found is not None
    assert [(column.name, column.comment) for column in found] == [("a", "first"), ("c", "second")]


COMMENTED = """
WITH a AS (
  SELECT x, -- the inner one
    -- above the inner one
    y /* beside the inner one */ FROM t
), b /* named b */ AS (SELECT 1 AS z -- one
)
SELECT -- all of it
  -- above x
  -- in two lines
  x,

  -- about a part of the columns

  y, /* beside y */
  -- above z, with a comma
  z -- beside z, with a comma
  -- above w
  , w
  , (SELECT max(v) FROM u) AS v, /* before */ r -- after
  , q IS DISTINCT FROM r AS s -- told apart
  -- the end
FROM a -- not a column's
WHERE x > 1 -- nor this
"""


@pytest.mark.parametrize(
    "dialect", ["spark", "databricks", "duckdb", "snowflake", "postgres", "bigquery", "redshift", "trino", "mysql"]
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_comments_beside_and_above_the_outermost_columns_count_in_every_dialect(dialect: str, line_end: str) -> None:
    text = COMMENTED.replace("q IS DISTINCT FROM r", "q = r") if dialect in {"mysql", "redshift"} else COMMENTED
    found = analyse_query(text.replace("\n", line_end), dialect).output_columns
    assert found is not None
    assert {column.name: column.comment for column in found} == {
        "x": "above x in two lines",
        "y": "beside y",
        "z": "beside z, with a comma",
        "w": "above w",
        "v": None,
        "r": "before after",
        "s": "told apart",
    }


@pytest.mark.parametrize(
    ("text", "dialect", "expected"),
    [
        ("WITH a AS (SELECT x /* inner */ FROM t) SELECT x, y FROM a", "spark", [None, None]),
        ("WITH a AS (SELECT x /* inner */ FROM t) SELECT x, y FROM a", "duckdb", [None, None]),
        ("SELECT x, # one\n y FROM t", "bigquery", ["one", None]),
        ("SELECT x, // one\n // two\n y FROM t", "snowflake", ["one", "two"]),
        ("SELECT x -- one\nUNION ALL\nSELECT y -- two", "duckdb", ["one"]),
        ("SELECT x FROM (SELECT x /* inner */ FROM t) AS s", "duckdb", [None]),
        ("SELECT CASE WHEN x THEN 1 -- one\n ELSE 2 END AS x -- which", "spark", ["which"]),
        ("SELECT TOP 3 x -- one\n, y FROM t", "tsql", ["one", None]),
        ("SELECT x, -- one\n y, -- two\n -- none\nFROM t", "bigquery", ["one", "two"]),
        ("SELECT t.limit, -- one\n t.order AS window, -- two\n y AS z -- three", "spark", ["one", "two", "three"]),
        ("(SELECT x, -- one\n y -- two\nFROM t) UNION ALL (SELECT x, y -- none\nFROM u)", "spark", ["one", "two"]),
        ("SELECT * FROM t -- all", "duckdb", None),
    ],
)
def test_comments_elsewhere_are_nobodys(text: str, dialect: str, expected: list[str | None] | None) -> None:
    found = analyse_query(text, dialect).output_columns
    assert (None if found is None else [column.comment for column in found]) == expected


def test_types_of_casts_are_declared() -> None:
    shape = analyse_query(
        "SELECT CAST(a AS DECIMAL(10, 2)) AS Price, b::timestamp, (c::string) AS d, DATE '2024-01-01' AS e FROM t"
    )
    assert dict(shape.declared_types) == {"price": "decimal(10,2)", "b": "timestamp", "d": "string", "e": "date"}


# --- the rest ------------------------------------------------------------------------------------------------------
def test_a_star_at_the_top_is_seen_and_one_below_is_not() -> None:
    assert analyse_query("SELECT a FROM t UNION ALL SELECT u.* FROM u").select_star
    assert not analyse_query("SELECT a FROM (SELECT * FROM t) WHERE EXISTS (SELECT * FROM u)").select_star


def test_every_called_function_is_named_as_written() -> None:
    shape = analyse_query("SELECT /*+ REPARTITION(3) */ My_Fn(a), nvl(b, 1), shop.score(c) FROM my_table_fn(1)")
    assert shape.function_names == {"my_fn", "nvl", "shop.score", "my_table_fn"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT a FROM t", True),
        ("SELECT rand() AS r FROM t", False),
        ("SELECT current_date AS d", False),
        ("SELECT a FROM t WHERE ts < now()", False),
        ("SELECT a FROM t TABLESAMPLE (10 PERCENT)", False),
        ("SELECT a FROM t TABLESAMPLE (10 PERCENT) REPEATABLE (1)", True),
        ("SELECT a FROM t WHERE ds = @start_ds", True),
    ],
)
def test_queries_that_differ_from_run_to_run_are_not_deterministic(text: str, *, expected: bool) -> None:
    assert analyse_query(text).is_deterministic is expected


@pytest.mark.parametrize(
    ("text", "line", "column", "word"),
    [
        ("SELECT a\nFROM t\nWHERE (a = 1", 3, 12, "`)`"),
        ("SELECT a b c FROM t", 1, 12, "`c`"),
        ("SELECT\n  'abc FROM t", 2, 3, "string"),
        ("SELECT a /* no end", 1, 10, "comment"),
        ("SELECT a,, b FROM t", 1, 9, "comma"),
        ("SELECT a FROM t; SELECT b FROM t", 1, 18, "second"),
        ("DROP TABLE t", 1, 1, "`DROP`"),
        ("SELECT FROM t", 1, 1, "no column"),
        ("FROM t |> SELECT a", 1, 8, "pipe"),
        ("SELECT a FROM t WHERE", 1, 17, "`WHERE`"),
    ],
)
def test_a_query_that_cannot_be_read_is_an_error_at_its_place(text: str, line: int, column: int, word: str) -> None:
    with pytest.raises(SyntaxProblem) as caught:
        analyse_query(text, location=Location(file="models/a.sql", line=11, column=1))
    assert caught.value.location == Location(file="models/a.sql", line=10 + line, column=column)
    assert word in caught.value.message
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "  -- nothing\n", ";"])
def test_an_empty_query_is_an_error(text: str) -> None:
    with pytest.raises(SyntaxProblem):
        analyse_query(text)


def test_an_unknown_dialect_comes_with_the_nearest() -> None:
    with pytest.raises(BadPropertyValue) as caught:
        analyse_query("SELECT 1", "bigqery")
    assert caught.value.hint is not None
    assert "`bigquery`" in caught.value.hint


def test_offsets_point_into_the_translated_text() -> None:
    shape = analyse_query("SELECT x::date AS d FROM shop.orders WHERE x > @start_ds", "duckdb")
    reference = shape.references[0]
    assert shape.text[reference.start : reference.end] == "shop.orders"
    assert "@start_ds" in shape.text


def test_a_comma_after_the_last_column_is_dropped():
    shape = analyse_query("SELECT a, b,\nFROM t")
    assert [column.name for column in shape.output_columns or ()] == ["a", "b"]
    assert shape.text == "SELECT a, b \nFROM t"
