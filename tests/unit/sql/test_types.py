from __future__ import annotations

import pytest

from lamina.errors import BadPropertyValue, SyntaxProblem
from lamina.sql.types import check_expression, columns_in, header_expression, normalise_type


@pytest.mark.parametrize(
    ("text", "dialect", "expected"),
    [
        ("INT64", "bigquery", "bigint"),
        ("TEXT", "spark", "string"),
        ("Integer", "spark", "int"),
        ("decimal", "spark", "decimal(10,0)"),
        ("DECIMAL( 10 , 2 )", "spark", "decimal(10,2)"),
        ("timestamp_ltz", "spark", "timestamp"),
        ("varchar(10)", "spark", "varchar(10)"),
        ("interval day to second", "spark", "interval day to second"),
        ("STRUCT<a: INT, `b c` ARRAY<STRING>>", "spark", "struct<a:int,`b c`:array<string>>"),
        (
            "map<string, struct<x: double not null comment 'it'>>",
            "spark",
            "map<string,struct<x:double not null comment 'it'>>",
        ),
        ("integer[]", "postgres", "array<int>"),
        ("varchar", "postgres", "string"),
        ("TIMESTAMP", "duckdb", "timestamp_ntz"),
        ("NUMBER(38, 0)", "snowflake", "decimal(38,0)"),
    ],
)
def test_types_are_written_as_spark_writes_them(text: str, dialect: str, expected: str) -> None:
    assert normalise_type(text, dialect) == expected


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("nosuch", "spark"),
        ("array<nosuch>", "spark"),
        ("array<int", "spark"),
        ("int int", "spark"),
        ("decimal(40,2)", "spark"),
        ("decimal(2,3)", "spark"),
        ("", "spark"),
        ("varchar", "spark"),
        ("jsonb", "postgres"),
        ("int); DROP TABLE x", "postgres"),
    ],
)
def test_types_that_spark_does_not_have_are_refused(text: str, dialect: str) -> None:
    with pytest.raises(BadPropertyValue):
        normalise_type(text, dialect)


def test_a_misspelled_type_comes_with_the_nearest() -> None:
    with pytest.raises(BadPropertyValue) as caught:
        normalise_type("bigintt")
    assert caught.value.hint == "did you mean `bigint`?"


@pytest.mark.parametrize(
    ("text", "dialect", "expected"),
    [
        ("COALESCE(\"name\", '')", "spark", "COALESCE(`name`, '')"),
        ("COALESCE(\"name\", '')", "bigquery", "COALESCE(`name`, '')"),
        ("date_sub(ds, 1)", "spark", "date_sub(ds, 1)"),
        ('"Total"::int', "postgres", "CAST(`Total` AS INT)"),
        ("ts >= @start_ds", "duckdb", "ts >= @start_ds"),
    ],
)
def test_double_quoted_words_in_headers_are_names(text: str, dialect: str, expected: str) -> None:
    assert header_expression(text, dialect) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("month(ts)", ("ts",)),
        ("region", ("region",)),
        ('COALESCE("name", \'\') || b || "name"', ("name", "b")),
        ("address.city", ("address",)),
        ("filter(xs, x -> x > y)", ("xs", "y")),
        ("1", ()),
    ],
)
def test_the_columns_of_an_expression_are_found(text: str, expected: tuple[str, ...]) -> None:
    assert columns_in(text) == expected


@pytest.mark.parametrize("text", ["", "a, b", "a FROM t", "(a", "a AS b", "a b", "a; b", "'a"])
def test_what_is_not_one_expression_is_refused(text: str) -> None:
    with pytest.raises(SyntaxProblem):
        check_expression(text)
