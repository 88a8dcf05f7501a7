"""How deep SQL may be nested."""

from __future__ import annotations

import pytest
from sqlglot import Dialect

from lamina.sql.depth import DEEPEST, too_deep


def is_too_deep(text: str) -> bool:
    return too_deep(Dialect.get_or_raise("spark").tokenize(text)) is not None


@pytest.mark.parametrize(
    "level",
    [
        *("(", "[", "CASE WHEN 1 THEN ", "NOT ", "- ", "~ ", "INTERVAL ", "FROM ", "f(", "x -> ", "(x, y) -> "),
        *("ARRAY<", "MAP<INT, ", "STRUCT<a: ", "a JOIN ", "(SELECT 1 FROM ", "NOT - ", "CASE (", "f(x -> "),
    ],
)
def test_levels_of_any_sort_are_counted(level: str) -> None:
    assert is_too_deep(f"SELECT {level * (DEEPEST + 1)}1")
    assert not is_too_deep(f"SELECT {level * (DEEPEST // 4)}1")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + ", ".join(["TRANSFORM(a, x -> x + 1)"] * 500),
        "SELECT 1 FROM t WHERE " + " AND ".join(["a -> 'b' = 1"] * 500),
        "SELECT " + ", ".join(["CASE WHEN a THEN (b) ELSE -c END"] * 500),
        "SELECT " + ", ".join(["CAST(a AS ARRAY<MAP<INT, ARRAY<INT>>>)"] * 500),
        "SELECT 1 FROM a" + " JOIN b ON a.x = b.x JOIN c USING (x)" * 300,
        "SELECT 1 FROM a WHERE " + " OR ".join(["x < 1 AND y > 2"] * 500),
        " UNION ALL ".join(["SELECT a FROM b JOIN c"] * 500),
        "SELECT 1" + " + 1" * 5000,
    ],
)
def test_what_stands_side_by_side_is_not_deep(text: str) -> None:
    assert not is_too_deep(text)
