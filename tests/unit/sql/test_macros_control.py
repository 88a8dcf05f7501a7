"""Conditions, loops, values, clause gates and what they leave behind."""

from __future__ import annotations

import pytest

from lamina.errors import LaminaError, Location, MacroError
from lamina.sql.fragment import Fragment
from lamina.sql.macros.expand import expand
from lamina.sql.macros.scope import MacroScope, VariableValue

VARIABLES: dict[str, VariableValue] = {
    "region": "eu",
    "size": 5,
    "is_big": True,
    "names": ["a", "b"],
    "pairs": [["a", 1], ["b", 2]],
    "one_pair": [["a", 1]],
}


def written(text: str, dialect: str = "spark") -> str:
    return expand(
        Fragment(text=text, location=Location(file="a.sql", line=1, column=1), dialect=dialect),
        MacroScope(variables=VARIABLES),
    ).text


def squeezed(text: str) -> str:
    return " ".join(written(text).split())


def failure(text: str) -> LaminaError:
    with pytest.raises(LaminaError) as caught:
        written(text)
    return caught.value


# --- @IF
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("@IF(@region = 'eu', a, b)", "a"),
        ("@IF(@region = 'us', a, b)", "b"),
        ("@IF(@region IN ('eu', 'uk') AND NOT @size < 3, a, b)", "a"),
        ("@IF(@region IN @names, a, b)", "b"),
        ("@IF(NULL, a, b)", "b"),
        ("@IF(@is_big, a)", "a"),
        ("@IF(NOT @is_big, a)", ""),
        ("@IF(@IF(@is_big, 1, 2) = 1, @IF(false, x, y), z)", "y"),
        ("@if(upper(@region) || @size = 'EU5', a)", "a"),
    ],
)
def test_if_takes_the_branch_its_condition_says(text: str, wanted: str) -> None:
    assert written(text) == wanted


def test_if_wraps_a_statement_with_commas() -> None:
    statement = "ALTER TABLE t SET TBLPROPERTIES ('a' = '1', 'b' = '2')"
    assert written(f"@IF(@is_big, {statement})") == statement


def test_if_chooses_between_whole_queries() -> None:
    assert written("@IF(false, SELECT a, b FROM t, SELECT c, d FROM u)") == "SELECT c, d FROM u"


def test_a_column_in_a_condition_is_an_error_that_shows_it() -> None:
    error = failure("SELECT @IF(amount > 5, a)")
    assert isinstance(error, MacroError)
    assert "`amount > 5`" in error.message
    assert error.location == Location(file="a.sql", line=1, column=12)


def test_text_as_a_condition_is_an_error() -> None:
    assert isinstance(failure("@IF(@region, a)"), MacroError)


@pytest.mark.parametrize("text", ["@IF(true)", "@IF(true, a, b, c)", "@IF(nope := 1)"])
def test_if_with_the_wrong_arguments_is_an_error(text: str) -> None:
    assert isinstance(failure(text), MacroError)


# --- what nothing leaves behind
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("SELECT a, @IF(false, b) FROM t", "SELECT a FROM t"),
        ("SELECT @IF(false, a), b FROM t", "SELECT b FROM t"),
        ("SELECT a, @IF(false, b), c FROM t", "SELECT a , c FROM t"),
        ("SELECT @IF(false, a), @IF(false, b), c FROM t", "SELECT c FROM t"),
        ("f(@IF(false, a), b)", "f( b)"),
        ("f(a, @IF(false, b))", "f(a )"),
        ("WITH a AS (SELECT 1), @IF(false, b AS (SELECT 2)) SELECT 1", "WITH a AS (SELECT 1) SELECT 1"),
        ("SELECT a, @IF(false, DISTINCT) b", "SELECT a, b"),
        ("WHERE a AND @IF(false, b)", "WHERE a"),
        ("WHERE @IF(false, a) AND b", "WHERE b"),
        ("WHERE a AND @IF(false, b) AND c", "WHERE a AND c"),
        ("SELECT 1 FROM t WHERE @IF(false, a) GROUP BY b", "SELECT 1 FROM t GROUP BY b"),
        ("SELECT 1 FROM t ORDER BY @IF(false, a)", "SELECT 1 FROM t"),
        ("CASE WHEN a AND @IF(false, b) THEN 1 END", "CASE WHEN a THEN 1 END"),
    ],
)
def test_a_macro_without_a_result_leaves_nothing_dangling(text: str, wanted: str) -> None:
    assert squeezed(text) == wanted


# --- precedence
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("@IF(true, a + b) * 2", "(a + b) * 2"),
        ("@IF(true, a + b), 2", "a + b, 2"),
        ("NOT @IF(true, a OR b)", "NOT (a OR b)"),
        ("x AND @IF(true, a = 1)", "x AND a = 1"),
        ("x = @IF(true, SELECT 1)", "x = (SELECT 1)"),
        ("a @IF(true, + b)", "a + b"),
    ],
)
def test_a_result_keeps_its_meaning_beside_operators(text: str, wanted: str) -> None:
    assert written(text) == wanted


# --- @EACH, @REDUCE, @FILTER
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("@EACH([a, b], x -> SUM(x) AS sum_@x)", "SUM(a) AS sum_a, SUM(b) AS sum_b"),
        ("@EACH((a, b), x -> x)", "a, b"),
        ("@EACH(ARRAY(a, b), x -> x)", "a, b"),
        ("@EACH(a, x -> x + 1)", "a + 1"),
        ("@EACH(f(a, b), x -> x)", "f(a, b)"),
        ("@EACH(@names, x -> c = x AS @{x}_is)", "c = 'a' AS a_is, c = 'b' AS b_is"),
        ("@EACH(@names, x -> c = x AS x)", "c = 'a' AS a, c = 'b' AS b"),
        ("@EACH(@names, x -> t.@x)", "t.a, t.b"),
        ("@EACH([1, 2], x -> @IF(x > 1, x))", "2"),
        ("@EACH([(a, 1), (b, 2)], (k, v) -> k > v)", "a > 1, b > 2"),
        ("@EACH(@pairs, (k, v) -> @{k} = v)", "a = 1, b = 2"),
        ("@EACH(@one_pair, (k, v) -> @{k} = v)", "a = 1"),
        ("@EACH([a], x -> @EACH([1, 2], y -> x * y))", "a * 1, a * 2"),
        ("@EACH([1 + 2], x -> x * 3)", "(1 + 2) * 3"),
        ("@EACH([a], x -> t.x + x.b + x(1))", "t.x + a.b + x(1)"),
        ("@EACH([a], x -> TRANSFORM(items, x -> x + 1) + x)", "TRANSFORM(items, x -> x + 1) + a"),
        ("@EACH([], x -> x)", ""),
        ("@EACH([a -- note\n, b], x -> x)", "a, b"),
    ],
)
def test_each_goes_through_every_kind_of_list(text: str, wanted: str) -> None:
    assert written(text) == wanted


def test_each_without_a_lambda_is_an_error() -> None:
    assert "lambda" in failure("@EACH([1], 2)").message


def test_each_with_items_that_do_not_fit_the_lambda_is_an_error() -> None:
    assert isinstance(failure("@EACH([1], (a, b) -> a)"), MacroError)


def test_reduce_folds_from_the_left() -> None:
    assert written("@REDUCE([a, b, c], (x, y) -> x - y)") == "(a - b) - c"


@pytest.mark.parametrize(("text", "wanted"), [("@REDUCE([a], (x, y) -> x)", "a"), ("@REDUCE([], (x, y) -> x)", "")])
def test_reduce_of_one_or_none_is_that(text: str, wanted: str) -> None:
    assert written(text) == wanted


def test_filter_keeps_what_fits() -> None:
    assert written("@FILTER([1, 2, 3], x -> x > 1)") == "2, 3"


def test_filter_feeds_each_and_reduce() -> None:
    assert written("@REDUCE(@EACH(@FILTER([1, 2, 3], x -> x > 1), x -> c_@x), (a, b) -> a + b)") == "c_2 + c_3"


def test_filter_by_a_column_is_an_error() -> None:
    assert isinstance(failure("@FILTER([1], x -> x > amount)"), MacroError)


# --- @EVAL
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("@EVAL(1 + 2 * 3)", "7"),
        ("@EVAL(@size / 2)", "2.5"),
        ("@EVAL(10 / 2)", "5"),
        ("@EVAL(upper(@region))", "'EU'"),
        ("@EVAL(@size > 3)", "TRUE"),
        ("@EVAL(NULL)", "NULL"),
        ("item_@EVAL(1 + 1)", "item_2"),
        ("@EVAL(DATE '2024-01-31' + INTERVAL 1 MONTH)", "CAST('2024-02-29' AS DATE)"),
    ],
)
def test_eval_writes_the_value(text: str, wanted: str) -> None:
    assert written(text) == wanted


def test_eval_of_a_column_is_an_error() -> None:
    assert isinstance(failure("@EVAL(a + 1)"), MacroError)


# --- @AND, @OR
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("@AND(a = 1, NULL, b)", "a = 1 AND b"),
        ("@AND(a, b OR c)", "a AND (b OR c)"),
        ("@AND(a, @IF(false, b))", "a"),
        ("@AND(NULL)", "TRUE"),
        ("@AND()", "TRUE"),
        ("@OR(NULL, NULL)", "TRUE"),
        ("@OR(a, b) AND c", "(a OR b) AND c"),
        ("@AND(@EACH([x, y], c -> c > 0))", "x > 0 AND y > 0"),
    ],
)
def test_connectors_skip_what_is_null(text: str, wanted: str) -> None:
    assert written(text) == wanted


# --- clause gates
QUERY = (
    "@WITH({0}) x AS (SELECT 1), y (a) AS (SELECT 2) SELECT a FROM t LEFT OUTER @JOIN({0}) u ON LEFT(t.a, 1) = u.a "
    "CROSS JOIN v @WHERE({0}) a IN (SELECT 1 FROM w WHERE b) @GROUP_BY({0}) a, b @HAVING({0}) COUNT(*) > 1 "
    "@ORDER_BY({0}) a, b @LIMIT({0}) 5"
)


def test_open_gates_keep_their_clauses() -> None:
    assert squeezed(QUERY.format("@is_big")) == (
        "WITH x AS (SELECT 1), y (a) AS (SELECT 2) SELECT a FROM t LEFT OUTER JOIN u ON LEFT(t.a, 1) = u.a "
        "CROSS JOIN v WHERE a IN (SELECT 1 FROM w WHERE b) GROUP BY a, b HAVING COUNT(*) > 1 ORDER BY a, b LIMIT 5"
    )


def test_closed_gates_take_their_clauses_with_them() -> None:
    assert squeezed(QUERY.format("NOT @is_big")) == "SELECT a FROM t CROSS JOIN v"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("SELECT a FROM t @WHERE(false) b = 1 UNION ALL SELECT 2", "SELECT a FROM t UNION ALL SELECT 2"),
        ("SELECT a FROM (SELECT 1 @WHERE(false) b = 1) AS t WHERE c", "SELECT a FROM (SELECT 1 ) AS t WHERE c"),
        ("SELECT a FROM t @ORDER_BY(false) b; SELECT 2", "SELECT a FROM t ; SELECT 2"),
        ("SELECT a FROM t @JOIN(false) u USING (a), v", "SELECT a FROM t , v"),
        ("SELECT a FROM t @JOIN(false) u ON x LEFT @JOIN(true) v ON y", "SELECT a FROM t LEFT JOIN v ON y"),
        ("SELECT a FROM t @WHERE(@size = 5) x > @size", "SELECT a FROM t WHERE x > 5"),
    ],
)
def test_a_clause_ends_where_the_next_one_starts(text: str, wanted: str) -> None:
    assert squeezed(text) == wanted


def test_a_gate_needs_one_condition() -> None:
    assert isinstance(failure("SELECT a FROM t @WHERE(true, false) b"), MacroError)


def test_a_misspelled_name_in_a_closed_clause_is_found() -> None:
    assert failure("SELECT a FROM t @WHERE(false) b = @regoin").hint == "did you mean `@region`?"
