"""Expressions evaluated in Python have the value they have in SQL."""

from __future__ import annotations

from datetime import date, datetime, timezone

import pytest

from lamina.sql.macros.scalars import NotConstant
from lamina.sql.macros.values import evaluate, literal


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("-(2 - 5)", 3),
        ("7 DIV 2", 3),
        ("-7 % 3", -1),
        ("4 / 2", 2),
        ("5 / 2", 2.5),
        ("'5' + 1", 6),
        ("1L", 1),
        ("1e3", 1000.0),
        ("'a' = 'a'", True),
        ("'5' > 3", True),
        ("NULL = 1", None),
        ("NULL <=> NULL", True),
        ("NOT NULL", None),
        ("NULL AND FALSE", False),
        ("NULL OR TRUE", True),
        ("1 IS NULL", False),
        ("NULL IS NOT NULL", False),
        ("1 IN (1, 2)", True),
        ("3 NOT IN (1, NULL)", None),
        ("2 BETWEEN 1 AND 3", True),
        ("'abc' LIKE 'a_c'", True),
        ("'ABC' ILIKE 'a%'", True),
        ("'abc' RLIKE 'b'", True),
        ("CASE WHEN 1 = 2 THEN 3 ELSE 4 END", 4),
        ("CASE 1 WHEN 1 THEN 'one' END", "one"),
        ("IF(TRUE, 1, 2)", 1),
        ("COALESCE(NULL, 3)", 3),
        ("NULLIF(1, 1)", None),
        ("'a' || 1", "a1"),
        ("CONCAT('a', NULL)", None),
        ("CONCAT_WS('-', 'a', NULL, 'b')", "a-b"),
        ("LOWER('AB') || UPPER('cd')", "abCD"),
        ("LENGTH(TRIM('  abc '))", 3),
        ("SUBSTR('hello', 2, 3)", "ell"),
        ("SUBSTR('hello', -3)", "llo"),
        ("REPLACE('abc', 'b')", "ac"),
        ("STARTSWITH('abc', 'ab') AND CONTAINS('abc', 'b')", True),
        ("LEFT('abc', 2) || RIGHT('abc', 1)", "abc"),
        ("ROUND(2.5)", 3),
        ("GREATEST(1, 5, NULL)", 5),
        ("SIZE(ARRAY(1, 2))", 2),
        ("ARRAY_CONTAINS(ARRAY(1, 2), 2)", True),
        ("CAST('12' AS INT) + 1", 13),
        ("CAST(1 AS STRING)", "1"),
        ("CAST('true' AS BOOLEAN)", True),
        ("DATE '2024-01-31' + INTERVAL 1 MONTH", date(2024, 2, 29)),
        ("DATE_SUB('2024-01-05', 3)", date(2024, 1, 2)),
        ("DATE_ADD('2024-01-05', 3)", date(2024, 1, 8)),
        ("ADD_MONTHS('2024-01-31', 1)", date(2024, 2, 29)),
        ("DATEDIFF('2024-01-05', '2024-01-01')", 4),
        ("YEAR('2024-02-01') * 100 + MONTH('2024-02-01')", 202402),
        ("DATE '2024-01-01' > '2023-12-31'", True),
        ("TIMESTAMP '2024-01-01 00:00:00+02:00' < TIMESTAMP '2023-12-31 23:00:00+00:00'", True),
        ("TIMESTAMP '2024-01-01 10:00:00+00:00' - INTERVAL 2 HOURS", datetime(2024, 1, 1, 8, tzinfo=timezone.utc)),
    ],
)
def test_an_expression_has_its_value(text: str, value: object) -> None:
    found = evaluate(text, "spark")
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        "a = 1",
        "f(1)",
        "CURRENT_DATE",
        "(SELECT 1)",
        "1 +",
        "1 / 0",
        "'x' > 3",
        "'a'::INT",
        "DATE 'soon'",
        "1 IN (SELECT 2)",
    ],
)
def test_an_expression_without_a_value_says_so(text: str) -> None:
    with pytest.raises(NotConstant):
        evaluate(text, "spark")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([1, "a"], "1, 'a'"),
        ([[1, 2], [3]], "(1, 2), (3)"),
        (date(2024, 1, 1), "CAST('2024-01-01' AS DATE)"),
        (datetime(2024, 1, 1, tzinfo=timezone.utc), "CAST('2024-01-01 00:00:00+00:00' AS TIMESTAMP)"),
    ],
)
def test_a_value_is_written_as_sql(value: object, text: str) -> None:
    assert literal(value, "spark") == text
