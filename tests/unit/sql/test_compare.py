from __future__ import annotations

import pytest

from lamina.sql.compare import changed_columns, unified_diff


def test_a_diff_shows_the_changed_lines_under_the_name() -> None:
    diff = unified_diff("SELECT\n  a\nFROM t\n", "SELECT\n  b\nFROM t\n", "shop.orders")
    assert diff.splitlines() == [
        "--- shop.orders (before)",
        "+++ shop.orders (now)",
        "@@ -1,3 +1,3 @@",
        " SELECT",
        "-  a",
        "+  b",
        " FROM t",
    ]


def test_equal_texts_have_no_diff() -> None:
    assert unified_diff("SELECT a\n", "SELECT a", "x") == ""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("SELECT a, b FROM t", "select A, -- x\n b from t", ()),
        ("SELECT a, b FROM t", "SELECT b, a FROM t", ()),
        ("SELECT a FROM t", "SELECT a, b + 1 AS c FROM t", ("c",)),
        ("SELECT a, b FROM t", "SELECT a FROM t", ("b",)),
        ("SELECT a, b AS c, d FROM t", "SELECT a, b + 1 AS c, e FROM t", ("c", "e", "d")),
        (
            "WITH x AS (SELECT a AS b FROM t) SELECT b FROM x",
            "WITH x AS (SELECT a + 1 AS b FROM t) SELECT b FROM x",
            ("b",),
        ),
        ("SELECT o.a FROM t AS o", "SELECT p.a FROM t AS p", ()),
        ("SELECT *, f(x) AS y FROM t", "SELECT *, g(x) AS y FROM t", ("y",)),
        ("SELECT *, 1 AS y FROM t", "SELECT * EXCEPT (z), 1 AS y FROM t", ("*",)),
        ("SELECT a FROM t, u", "SELECT a, b FROM t, u", ("b",)),
        ("SELECT a FROM t WHERE a > 1", "SELECT a FROM t WHERE a > 2", ()),
    ],
)
def test_columns_that_are_added_removed_or_computed_differently_are_named(
    old: str, new: str, expected: tuple[str, ...]
) -> None:
    assert changed_columns(old, new) == expected
