from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.sql.canonical import canonical_text
from lamina.sql.syntax import tokenise

QUERIES = [
    "SELECT o.id, c.name, SUM(o.amount) AS total FROM shop.orders AS o JOIN shop.customers AS c ON o.customer = c.id "
    "WHERE o.ds BETWEEN @start_ds AND @end_ds GROUP BY o.id, c.name HAVING SUM(o.amount) > 10 ORDER BY total DESC",
    "WITH recent AS (SELECT * FROM events WHERE ts >= @start_ts) SELECT kind, COUNT(*) AS n FROM recent GROUP BY kind",
    "SELECT /*+ BROADCAST(b) */ a.x, b.y FROM a LEFT JOIN b USING (id) LATERAL VIEW EXPLODE(a.items) v AS item",
    "SELECT CASE WHEN a > 1 THEN 'It''s -- not a comment' ELSE \"x\" END AS kind, arr[0], m['K'] FROM t",
    "SELECT id FROM a UNION ALL SELECT id FROM b WHERE EXISTS (SELECT 1 FROM c WHERE c.id = b.id)",
    "SELECT ROW_NUMBER() OVER (PARTITION BY id ORDER BY ts DESC) AS rn, FILTER(xs, x -> x.a > 1) AS ys FROM t",
    "SELECT DATE_SUB(ds, 7) AS week_ago, CAST(x AS DECIMAL(10, 2)) AS x FROM t TABLESAMPLE (10 PERCENT)",
    "INSERT INTO log SELECT 'Done', CURRENT_TIMESTAMP()",
    "SET spark.sql.shuffle.partitions = 10",
]
BLANKS = [" ", "\n", "\t", "  \n ", " -- a 'comment\n", " /* b; */ ", "\r\n"]


@given(st.sampled_from(QUERIES), st.randoms(use_true_random=False))
def test_white_space_comments_and_case_never_matter(query: str, chance: random.Random) -> None:
    assert canonical_text(_rewrite(query, chance)) == canonical_text(query)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT a b FROM t c", "SELECT a AS b FROM t AS c"),
        ("SELECT a FROM t WHERE a != 1", "SELECT a FROM t WHERE a <> 1"),
        ("SELECT a FROM t WHERE (a = 1) AND ((b = 2))", "SELECT a FROM t WHERE a = 1 AND b = 2"),
        ("(SELECT a FROM t)", "SELECT a FROM t"),
        ("SELECT `A` FROM `T`", "select a from t"),
        ("SELECT a FROM t INNER JOIN u ON x = y", "SELECT a FROM t JOIN u ON x = y"),
        ("SELECT a FROM t LEFT OUTER JOIN u ON x = y", "SELECT a FROM t LEFT JOIN u ON x = y"),
        ("SELECT a FROM t ORDER BY a ASC", "SELECT a FROM t ORDER BY a"),
        ("SELECT a FROM t;", "SELECT a FROM t"),
        ("TABLE shop.t", "SELECT * FROM shop.t"),
        ("SELECT x FROM a UNION DISTINCT SELECT x FROM b", "SELECT x FROM a UNION SELECT x FROM b"),
        ("(SELECT x FROM a) UNION (SELECT x FROM b)", "SELECT x FROM a UNION SELECT x FROM b"),
        ("SELECT @START_DS", "SELECT @start_ds"),
    ],
)
def test_spellings_of_the_same_query_are_equal(one: str, other: str) -> None:
    assert canonical_text(one) == canonical_text(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT a FROM t", "SELECT b FROM t"),
        ("SELECT 'a' FROM t", "SELECT 'A' FROM t"),
        ("SELECT a FROM t WHERE a = 1", "SELECT a FROM t WHERE a = 1.0"),
        ("SELECT a FROM t WHERE a OR b AND c", "SELECT a FROM t WHERE (a OR b) AND c"),
        ("SELECT a - (b - c) FROM t", "SELECT a - b - c FROM t"),
        ("SELECT size(a) AS n FROM t", "SELECT array_size(a) AS n FROM t"),
        ("SELECT CAST(a AS INT) AS n FROM t", "SELECT TRY_CAST(a AS INT) AS n FROM t"),
        ("SELECT a FROM t WHERE ds = @start_ds", "SELECT a FROM t WHERE ds = @end_ds"),
        ("SELECT a FROM t WHERE ds = @start_ds", "SELECT a FROM t WHERE ds = '@start_ds'"),
        ("SELECT a FROM t JOIN u", "SELECT a FROM t LEFT JOIN u"),
        ("SELECT a FROM x UNION ALL SELECT a FROM y", "SELECT a FROM x UNION SELECT a FROM y"),
        (
            "SELECT a FROM (SELECT a FROM x LIMIT 1) UNION SELECT a FROM y",
            "SELECT a FROM x UNION SELECT a FROM y LIMIT 1",
        ),
        ("SELECT * FROM a, b RIGHT JOIN c ON b.x = c.x", "SELECT * FROM a CROSS JOIN b RIGHT JOIN c ON b.x = c.x"),
        ("SELECT get_json_object(a, '$.B') AS x FROM t", "SELECT get_json_object(a, '$.b') AS x FROM t"),
        ("SELECT DISTINCT a FROM t", "SELECT a FROM t"),
        ("SELECT nvl(a, b) FROM t", "SELECT coalesce(a, b) FROM t"),
        ("SELECT a FROM t TABLESAMPLE (10 PERCENT)", "SELECT a FROM t TABLESAMPLE (20 PERCENT)"),
        ("SET a = 1", "SET a = 2"),
        ("SELECT r'\\d' FROM t", "SELECT r'\\D' FROM t"),
    ],
)
def test_queries_that_mean_something_else_differ(one: str, other: str) -> None:
    assert canonical_text(one) != canonical_text(other)


def test_text_that_cannot_be_parsed_is_compared_token_by_token() -> None:
    assert canonical_text("OPTIMIZE  shop.T -- why\n ZORDER BY (a);") == canonical_text("optimize shop.t zorder by (a)")
    assert canonical_text("SELECT a FROM t AS OF TIMESTAMP 'X'") == canonical_text(
        "select a from T as of timestamp 'X'"
    )


def test_another_dialect_is_compared_as_spark_sees_it() -> None:
    assert canonical_text('SELECT "a"::TEXT AS b FROM t', "postgres") == canonical_text(
        "SELECT CAST(a AS STRING) AS b FROM t"
    )


def test_a_deep_condition_does_not_exhaust_the_stack() -> None:
    condition = " OR ".join(f"a = {number}" for number in range(3000))
    assert canonical_text(f"SELECT a FROM t WHERE {condition}").count("(eq ") == 3000


def _rewrite(query: str, chance: random.Random) -> str:
    """The same tokens with other white space, comments between them, and words in another case."""
    pieces = [chance.choice(["", *BLANKS])]
    end = None
    for token in tokenise(query):
        if end is not None:
            gap = query[end : token.start]
            pieces.append(chance.choice(BLANKS) if gap else "")
        written = query[token.start : token.end + 1]
        if written[0] not in "'\"/":
            written = chance.choice([str.lower, str.upper, str])(written)
        pieces.append(written)
        end = token.end + 1
    return "".join([*pieces, chance.choice(["", ";", " ; -- end", " -- end"])])
