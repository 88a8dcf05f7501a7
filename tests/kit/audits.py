"""Built-in audits with rows they pass and rows they refuse, for every place that checks them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lamina.sql.builtin_audits import THIS_MODEL, builtin_arguments, find_builtin

if TYPE_CHECKING:
    from collections.abc import Mapping

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """An audit over rows of the given columns, and how many rows it gives."""

    audit: str
    columns: str
    arguments: Mapping[str, str]
    rows: list[Row] = field(default_factory=list)
    failing: int = 0

    def __str__(self) -> str:
        called = ", ".join(f"{key} := {text}" for key, text in self.arguments.items())
        return f"{self.audit}({called}) over {self.rows}"


def builtin_sql(audit: str, arguments: Mapping[str, str], dialect: str = "spark") -> str:
    """The query of a built-in audit over `THIS_MODEL`."""
    found = find_builtin(audit)
    assert found is not None
    return found[0].build(builtin_arguments(audit, arguments, dialect))


def over(sql: str, relation: str) -> str:
    """The query with the audited rows put in."""
    return sql.replace(f"FROM {THIS_MODEL}", f"FROM {relation}")


def _cases(audit: str, columns: str, arguments: dict[str, str], *examples: tuple[list[Row], int]) -> list[Case]:
    return [Case(audit=audit, columns=columns, arguments=arguments, rows=rows, failing=n) for rows, n in examples]


_COLUMN = {"column": "x"}
_UUID = "123e4567-e89b-12d3-a456-426614174000"
_DEPENDENT: list[Row] = [("a", "u")] * 10 + [("b", "v")] * 10
_INDEPENDENT: list[Row] = [("a", "u"), ("a", "v"), ("b", "u"), ("b", "v")] * 5
_CHI = {"column_a": "x", "column_b": "y", "critical_value": "3.841"}
_RANGES = {"lower_bound_column": "x", "upper_bound_column": "y"}
_KL = {"source_column": "x", "target_column": "y", "threshold": "0.2"}

CASES: list[Case] = [
    *_cases("not_null", "x int, y int", {"columns": "(x, y)"}, ([(1, 2)], 0), ([(None, 2), (1, None), (1, 1)], 2)),
    *_cases(
        "not_null", "x int, y int", {"columns": "x", "condition": "y > 0"}, ([(None, 0), (None, 1), (None, None)], 1)
    ),
    *_cases(
        "not_null", "`order id` int, `select` int", {"columns": "(`order id`, select)"}, ([(None, 1), (1, None)], 2)
    ),
    *_cases(
        "unique_values", "x int, y int", {"columns": "(x, y)"}, ([(1, 1), (2, 2)], 0), ([(1, 1), (1, 2), (2, 2)], 2)
    ),
    *_cases("unique_values", "x int, y int", {"columns": "x", "condition": "y = 1"}, ([(1, 1), (1, 2), (3, 1)], 0)),
    *_cases("unique_values", "x int, _row int", {"columns": "x"}, ([(None, 1), (None, 2), (None, 3)], 2)),
    *_cases(
        "unique_combination_of_columns",
        "x int, y int",
        {"columns": "(x, y)"},
        ([(1, 1), (1, 2), (2, 1)], 0),
        ([(1, 1), (1, 1), (1, 1), (None, 2), (None, 2), (3, 3)], 2),
    ),
    *_cases(
        "unique_combination_of_columns",
        "x string, y int",
        {"columns": "(lower(x), y)", "condition": "y < 9"},
        ([("a", 1), ("A", 1), ("a", 9), ("a", 9)], 1),
    ),
    *_cases(
        "accepted_values",
        "x string",
        {"column": "x", "is_in": "('a', 'b')"},
        ([("a",), ("b",), (None,)], 0),
        ([("a",), ("c",), ("B",)], 2),
    ),
    *_cases("accepted_values", "x int", {"column": "x", "is_in": "(1, NULL)"}, ([(1,), (2,), (None,)], 1)),
    *_cases("accepted_values", "x int", {"column": "x", "is_in": "NULL, null"}, ([(1,), (None,)], 1)),
    *_cases(
        "not_accepted_values",
        "x int",
        {"column": "x", "is_in": "(1, 2)", "condition": "x < 2"},
        ([(3,), (None,)], 0),
        ([(1,), (2,), (3,)], 1),
    ),
    *_cases("not_accepted_values", "x int", {"column": "x", "is_in": "(1, NULL)"}, ([(1,), (2,), (None,)], 2)),
    *_cases("not_accepted_values", "x int", {"column": "x", "is_in": "(NULL)"}, ([(1,), (None,)], 1)),
    *_cases("number_of_rows", "x int", {"threshold": "2"}, ([(1,)] * 3, 0), ([(1,)] * 2, 1), ([], 1)),
    *_cases("number_of_rows", "x int", {"threshold": "1", "condition": "x = 1"}, ([(1,), (2,), (2,)], 1)),
    *_cases(
        "forall",
        "x int, y int",
        {"criteria": "(x > 0, y IN (1, 2))"},
        ([(1, 1), (None, 2), (1, None)], 0),
        ([(0, 1), (1, 3), (None, 3)], 3),
    ),
    *_cases("forall", "x int, y int", {"criteria": "x > 0 OR y > 0"}, ([(1, 0), (0, 1)], 0), ([(0, 0)], 1)),
    *_cases(
        "accepted_range",
        "x int",
        {"column": "x", "min_v": "1", "max_v": "3"},
        ([(1,), (3,), (None,)], 0),
        ([(0,), (4,), (2,)], 2),
    ),
    *_cases(
        "accepted_range",
        "x int",
        {"column": "x", "min_v": "1", "max_v": "3", "inclusive": "false"},
        ([(2,)], 0),
        ([(1,), (3,)], 2),
    ),
    *_cases("accepted_range", "x date", {"column": "x", "max_v": "DATE '2024-01-31'"}, ([("2024-01-31",)], 0)),
    *_cases("accepted_range", "x int", {"column": "x", "min_v": "-5", "condition": "x <> -9"}, ([(-6,), (-9,)], 1)),
    *_cases("at_least_one", "x int", _COLUMN, ([(None,), (1,)], 0), ([(None,), (None,)], 1), ([], 0)),
    *_cases("at_least_one", "x int, y int", {"column": "x", "condition": "y = 1"}, ([(None, 1), (1, 2)], 1)),
    *_cases("not_constant", "x int", _COLUMN, ([(1,), (2,)], 0), ([(1,), (1,), (None,)], 1), ([], 1)),
    *_cases("not_empty_string", "x string", _COLUMN, ([("a",), (None,), (" ",)], 0), ([("",), ("a",)], 1)),
    *_cases(
        "not_null_proportion",
        "x int",
        {"column": "x", "threshold": "0.5"},
        ([(1,), (1,), (None,)], 0),
        ([(1,), (None,)], 1),
        ([], 1),
    ),
    *_cases("sequential_values", "x int", _COLUMN, ([(3,), (1,), (2,), (None,)], 0), ([(1,), (3,), (4,), (4,)], 2)),
    *_cases("sequential_values", "x int", {"column": "x", "interval": "10"}, ([(10,), (20,)], 0), ([(1,), (2,)], 1)),
    *_cases(
        "sequential_values",
        "x timestamp",
        {"column": "x", "interval": "INTERVAL 1 HOUR"},
        ([("2024-01-01 00:00:00",), ("2024-01-01 01:00:00",)], 0),
        ([("2024-01-01 00:00:00",), ("2024-01-01 02:00:00",)], 1),
    ),
    *_cases("sequential_values", "x date", {"column": "x"}, ([("2024-02-29",), ("2024-03-01",)], 0)),
    *_cases(
        "mutually_exclusive_ranges",
        "x int, y int",
        _RANGES,
        ([(1, 2), (2, 4), (7, 9)], 0),
        ([(1, 3), (2, 4)], 1),
        ([(5, 1)], 1),
        ([(1, None)], 0),
        ([(1, 2), (2, None)], 0),
        ([(1, None), (5, 6)], 1),
        ([(None, 2), (2, 3)], 0),
        ([(None, 2), (None, 3)], 1),
        ([(1, 10), (2, 3), (5, 6)], 1),
        ([], 0),
    ),
    *_cases(
        "mutually_exclusive_ranges",
        "x int, y int, z string",
        {**_RANGES, "partition_clause": "'PARTITION BY z'"},
        ([(1, 3, "a"), (2, 4, "b")], 0),
        ([(1, 3, "a"), (2, 4, "a")], 1),
    ),
    *_cases(
        "mutually_exclusive_ranges",
        "x int, y int, z string",
        {**_RANGES, "partition_clause": "(z)", "condition": "z <> 'old'"},
        ([(1, 3, "old"), (2, 4, "old"), (2, 4, "b")], 0),
    ),
    *_cases(
        "valid_uuid",
        "x string",
        _COLUMN,
        ([(_UUID,), (_UUID.upper(),), (None,)], 0),
        ([(_UUID[:-1],), (f"{_UUID}\n",), (f" {_UUID}",), ("",)], 4),
    ),
    *_cases(
        "valid_url",
        "x string",
        _COLUMN,
        ([("https://a.io",), ("http://localhost:80/x?y=1#z",), ("ftp://f",), (None,)], 0),
        ([("a.io",), ("https://",), ("https://a b",), ("see https://a.io",), ("https://a.io\n",)], 5),
    ),
    *_cases(
        "valid_email",
        "x string",
        _COLUMN,
        ([("a.b+c@d-e.co.uk",), ("o'neill@x.ie",), ("`q@x.io",), (None,)], 0),
        ([("a@b",), ("@b.c",), ("a b@c.de",), ("a@b..c",), ("a@b.c\n",), ("",)], 6),
    ),
    *_cases(
        "valid_http_method", "x string", _COLUMN, ([("GET",), ("PATCH",), (None,)], 0), ([("get",), ("FETCH",)], 2)
    ),
    *_cases(
        "match_regex_pattern_list",
        "x string",
        {"column": "x", "patterns": r"('^\\d+$', 'b')"},
        ([("12",), ("abc",), (None,)], 0),
        ([("x1",), ("b",)], 1),
    ),
    *_cases(
        "not_match_regex_pattern_list",
        "x string",
        {"column": "x", "patterns": r"('^\\d+$', 'b')"},
        ([("x1",), (None,)], 0),
        ([("12",), ("b",), ("x",)], 2),
    ),
    *_cases(
        "match_like_pattern_list",
        "x string",
        {"column": "x", "patterns": "('a%', '%z')"},
        ([("ab",), ("yz",), (None,)], 0),
        ([("b",), ("az",)], 1),
    ),
    *_cases(
        "not_match_like_pattern_list",
        "x string",
        {"column": "x", "patterns": "'a%'"},
        ([("b",), (None,)], 0),
        ([("ab",), ("b",)], 1),
    ),
    *_cases(
        "string_length_between",
        "x string",
        {"column": "x", "min_v": "2", "max_v": "3"},
        ([("ab",), ("äöü",), (None,)], 0),
        ([("a",), ("abcd",), ("",)], 3),
    ),
    *_cases("string_length_equal", "x int", {"column": "x", "v": "2"}, ([(10,), (None,)], 0), ([(1,), (100,)], 2)),
    *_cases(
        "stddev_in_range",
        "x double",
        {"column": "x", "min_v": "1", "max_v": "2"},
        ([(1.0,), (2.0,), (3.0,), (None,)], 0),
        ([(1.0,), (1.0,)], 1),
        ([(1.0,)], 0),
        ([], 0),
    ),
    *_cases(
        "mean_in_range",
        "x int",
        {"column": "x", "min_v": "1.5", "max_v": "2", "inclusive": "false"},
        ([(1,), (2,), (2,), (None,)], 0),
        ([(1,), (3,)], 1),
        ([], 0),
    ),
    *_cases("mean_in_range", "x int", {"column": "x", "max_v": "2", "condition": "x < 9"}, ([(1,), (3,), (9,)], 0)),
    *_cases(
        "z_score",
        "x int, y int",
        {"column": "x", "threshold": "2"},
        ([(5, 1)] * 9, 0),
        ([(1, 1)] * 9 + [(100, 1)], 1),
        ([(None, 1), (1, 1)], 0),
    ),
    *_cases(
        "z_score",
        "x decimal(10,2), y int",
        {"column": "x", "threshold": "2", "condition": "y = 1"},
        ([(1, 1)] * 9 + [(100, 0)], 0),
    ),
    *_cases(
        "kl_divergence",
        "x string, y string",
        _KL,
        ([("a", "b"), ("b", "a")], 0),
        ([("a", "a"), ("a", "a"), ("a", "a"), ("b", "b"), ("b", "a"), (None, None)], 0),
        ([("a", "a"), ("a", "b"), ("a", "b"), ("b", "b")], 1),
        ([("a", "a"), ("c", "a")], 1),
        ([("a", "a"), ("a", "c")], 1),
        ([], 0),
    ),
    *_cases("chi_square", "x string, y string", _CHI, (_DEPENDENT, 0), (_INDEPENDENT, 1), ([], 0)),
    *_cases("chi_square", "x string, y string", {**_CHI, "dependent": "false"}, (_DEPENDENT, 1), (_INDEPENDENT, 0)),
    *_cases("chi_square", "x string, y string", {**_CHI, "condition": "x <> 'b'"}, (_DEPENDENT, 1)),
]
"""Every built-in audit, NULLs and conditions included."""
