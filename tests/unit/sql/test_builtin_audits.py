"""Built-in audits as text: what they take, and that it can be read as Spark's SQL."""

from __future__ import annotations

import pytest

from lamina.errors import BadAudit
from lamina.sql.builtin_audits import BUILTIN_AUDITS, THIS_MODEL, builtin_arguments, find_builtin
from lamina.sql.header.audit_arguments import split_argument, translate_argument
from lamina.sql.query import analyse_query
from tests.kit.audits import CASES, Case, builtin_sql

NAMES = [
    "not_null",
    "unique_values",
    "unique_combination_of_columns",
    "accepted_values",
    "not_accepted_values",
    "number_of_rows",
    "forall",
    "accepted_range",
    "at_least_one",
    "not_constant",
    "not_empty_string",
    "not_null_proportion",
    "sequential_values",
    "mutually_exclusive_ranges",
    "valid_uuid",
    "valid_url",
    "valid_email",
    "valid_http_method",
    "match_regex_pattern_list",
    "not_match_regex_pattern_list",
    "match_like_pattern_list",
    "not_match_like_pattern_list",
    "string_length_between",
    "string_length_equal",
    "stddev_in_range",
    "mean_in_range",
    "z_score",
    "kl_divergence",
    "chi_square",
]


def test_every_audit_of_the_table_exists():
    assert sorted(BUILTIN_AUDITS) == sorted(NAMES)


def test_every_audit_has_a_copy_that_does_not_block():
    for name in NAMES:
        blocking, not_blocking = find_builtin(name), find_builtin(f"{name}_non_blocking")
        assert blocking == (BUILTIN_AUDITS[name], True)
        assert not_blocking == (BUILTIN_AUDITS[name], False)
    assert find_builtin("not_nul") is None
    assert find_builtin("not_null_non_blocking_non_blocking") is None


def test_the_cases_try_every_audit():
    assert {case.audit for case in CASES} == set(NAMES)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_query_reads_the_model_and_nothing_else(case: Case):
    shape = analyse_query(builtin_sql(case.audit, case.arguments))
    assert {reference.name.to_text() for reference in shape.references} == {THIS_MODEL}


@pytest.mark.parametrize("name", NAMES)
def test_a_condition_narrows_what_is_looked_at(name: str):
    arguments = next(case.arguments for case in CASES if case.audit == name and "condition" not in case.arguments)
    assert "(y = 1 OR z)" not in builtin_sql(name, arguments)
    assert "(y = 1 OR z)" in builtin_sql(name, {**arguments, "condition": "y = 1 OR z"})
    assert "(y = 1 OR z)" in builtin_sql(name, {**arguments, "condition": "'y = 1 OR z'"})
    assert "ds > @start_ds" in builtin_sql(name, {**arguments, "condition": "ds > @start_ds"})


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("id", "`id`"),
        ("Order", "`Order`"),
        ("`order id`", "`order id`"),
        ('"order id"', "`order id`"),
        ("'id'", "`id`"),
        ("`a``b`", "`a``b`"),
        ("a.b", "(a.b)"),
        ("lower(name)", "(lower(name))"),
        ("(id)", "`id`"),
        ("id -- the key\n", "`id`"),
    ],
)
def test_a_column_may_have_any_name(written: str, read: str):
    assert builtin_sql("not_null", {"columns": written}) == f"SELECT * FROM {THIS_MODEL} WHERE ({read} IS NULL)"


@pytest.mark.parametrize("written", ["(a, b)", "[a, b]", "ARRAY(a, b)", "a, b", "('a', 'b')", "(a, /* and */ b,)"])
def test_columns_may_be_listed_in_any_form(written: str):
    assert "`a` IS NULL OR `b` IS NULL)" in builtin_sql("not_null", {"columns": written})


def test_arguments_are_written_in_the_dialect_of_the_model():
    arguments = {"column": '"order id"', "min_v": "x::bigint", "condition": "\"a b\" = 'c' AND ds >= @start_ds"}
    assert builtin_sql("accepted_range", arguments, "duckdb") == (
        f"SELECT * FROM {THIS_MODEL} WHERE (`order id` < (CAST(x AS BIGINT))) AND (`a b` = 'c' AND ds >= @start_ds)"
    )


def test_sql_of_spark_stays_as_it_was_written():
    sql = builtin_sql("forall", {"criteria": "(SIZE(tags)>=1, array_size(tags) < 9)"})
    assert sql == f"SELECT * FROM {THIS_MODEL} WHERE (NOT (SIZE(tags)>=1) OR NOT (array_size(tags) < 9))"


@pytest.mark.parametrize(
    ("audit", "arguments", "message"),
    [
        ("not_null", {"columns": "()"}, "`columns` of audit `not_null` is empty"),
        ("not_null", {"columns": "a +"}, "is no expression"),
        ("not_null", {"columns": "a, 'b'c'"}, "cannot be read"),
        ("not_null", {"columns": "(SELECT a FROM b"}, "cannot be read"),
        ("not_constant", {"column": "(a, b)"}, "must be one expression, not 2"),
        ("accepted_range", {"column": "a"}, "needs `min_v`, `max_v` or both"),
        ("mean_in_range", {"column": "a", "min_v": "NULL"}, "needs `min_v`, `max_v` or both"),
        ("accepted_range", {"column": "a", "min_v": "1", "inclusive": "maybe"}, "must be `true` or `false`"),
        (
            "chi_square",
            {"column_a": "a", "column_b": "b", "critical_value": "1", "dependent": "1"},
            "`true` or `false`",
        ),
        ("number_of_rows", {"threshold": "1", "condition": "a AS b"}, "is no expression"),
        ("accepted_values", {"column": "a", "is_in": ""}, "is empty"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(audit: str, arguments: dict[str, str], message: str):
    with pytest.raises(BadAudit, match=message.replace("(", r"\(").replace("`", "`")):
        builtin_sql(audit, arguments)


def test_the_columns_that_arguments_name_are_known():
    ranges = BUILTIN_AUDITS["mutually_exclusive_ranges"]
    arguments = {"lower_bound_column": "`valid from`", "upper_bound_column": "coalesce(valid_to, now())"}
    assert ranges.named_columns(builtin_arguments("x", arguments, "spark")) == ("valid from",)
    assert BUILTIN_AUDITS["not_null"].named_columns(builtin_arguments("x", {"columns": "(a, b + 1, C)"}, "spark")) == (
        "a",
        "C",
    )


@pytest.mark.parametrize(
    ("text", "dialect", "to", "expected"),
    [
        ("(a, b)", "spark", "spark", "(a, b)"),
        ("x > 1 -- comment", "spark", "spark", "x > 1"),
        ('"a b"', "duckdb", "spark", "`a b`"),
        ("`a b`", "spark", "duckdb", '"a b"'),
        ("('a', x::int)", "duckdb", "spark", "('a', CAST(x AS INT))"),
        ("ds >= @start_ds", "spark", "duckdb", "ds >= @start_ds"),
        ("ds >= @start_ds", "duckdb", "bigquery", "ds >= @start_ds"),
    ],
)
def test_an_argument_can_be_handed_to_an_audit_in_another_dialect(text: str, dialect: str, to: str, expected: str):
    assert translate_argument(text, dialect, to) == expected


def test_a_query_in_brackets_is_one_item():
    assert split_argument("(SELECT max(a), 1 FROM b)", "spark") == ("(SELECT max(a), 1 FROM b)",)
