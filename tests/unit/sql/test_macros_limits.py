"""What macros may not do: take forever, grow without end, or fail in ways of Python."""

from __future__ import annotations

from typing import NoReturn

import pytest

from lamina.errors import LaminaError, Location
from lamina.sql.fragment import Fragment
from lamina.sql.macros import expander as macro_expander
from lamina.sql.macros.expand import expand
from lamina.sql.macros.scope import MacroScope

VARIABLES = {"big": 10**400, "none": float("nan"), "endless": float("-inf")}


def expanded(text: str, **functions) -> str:
    scope = MacroScope(variables=VARIABLES, functions=functions)
    return expand(Fragment(text=text, location=Location(file="a.sql", line=1, column=1)), scope).text


def problem(text: str, **functions) -> LaminaError:
    with pytest.raises(LaminaError) as caught:
        expanded(text, **functions)
    (found,) = caught.value.problems
    assert found.code == "LAM-SQL-005"
    assert found.location is not None
    assert found.location.line == 1
    assert len(found.message) < 1000
    return found


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("1 / 0", "divides by zero"),
        ("1 % 0", "divides by zero"),
        ("POW(9, POW(9, 9))", "more than 1000 digits"),
        ("POWER(2, 100000000)", "more than 1000 digits"),
        ("POW(0, -1)", "fails"),
        ("POW(-8, 0.5)", "is no number"),
        ("POW(1e300, 2)", "fails"),
        ("9" * 1001, "more than 1000 digits"),
        ("'" + "9" * 5000 + "' > 1", "more than 1000 digits"),
        ("CAST('" + "9" * 5000 + "' AS INT)", "more than 1000 digits"),
        ("@big * @big * @big", "more than 1000 digits"),
        ("0x" + "f" * 6000, "can only be computed while the query runs"),
        ("X'" + "f" * 6000 + "' > 1", "can only be computed while the query runs"),
        ("1e308 * 10", "no finite number"),
        ("1e400", "no finite number"),
        ("CAST('NaN' AS DOUBLE)", "no finite number"),
        ("CAST('inf' AS INT)", "cannot be read as INT"),
        ("ROUND(1, -1000000000)", "fails"),
        ("LEFT('abc', 'x')", "fails"),
        ("ADD_MONTHS(DATE '2024-01-01', 100000000)", "fails"),
        ("DATE '2024-01-01' + INTERVAL 100000 YEAR", "fails"),
        ("DATE '2024-01-01' + 99999999999999999999", "fails"),
        ("'a' RLIKE '('", "is not a regular expression"),
        ("'a' RLIKE '*'", "is not a regular expression"),
        ("'a' RLIKE '[z-a]'", "is not a regular expression"),
        ("'a' RLIKE '" + "(" * 900 + "a" + ")" * 900 + "'", "nested too deeply"),
        ("'a' RLIKE '(a)\\\\1'", "look around or back"),
        ("1 RLIKE 'a'", "must both be text"),
        (f"'{'a' * 2000}' RLIKE '{'(a*)*' * 60}b'", "more than 200000 steps"),
        ("REPLACE(REPLACE('{0}', 'a', '{0}'), 'a', '{0}')".format("a" * 500), "more than 1000000 characters"),
        (f"'{'a' * 600_000}' || '{'a' * 600_000}'", "more than 1000000 characters"),
        ("1" + " + 1" * 300, "nested more than 150 deep"),
        ("NOT " * 190 + "TRUE", "nested more than 150 deep"),
        ("1" + " + 1" * 3000, "nested"),
    ],
)
@pytest.mark.parametrize("macro", ["SELECT @EVAL({0})", "SELECT @IF(({0}) = 1, 1)"])
def test_what_cannot_be_computed_says_why(macro: str, expression: str, said: str):
    assert said in problem(macro.format(expression)).message


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (f"'{'a' * 40}!' RLIKE '(a+)+$'", "FALSE"),
        (f"'{'a' * 40}!' RLIKE '^(a|aa)+$'", "FALSE"),
        ("'a' RLIKE '(?:a{60000}){60000}'", "FALSE"),
        ("'x' RLIKE '(){1000000000}$'", "TRUE"),
        ("'orders_eu_v2' RLIKE '^[a-z]+(_[a-z]\\\\w*)*$'", "TRUE"),
        ("'Orders' RLIKE '(?i)^orders$'", "TRUE"),
        ("'a b' RLIKE 'a\\\\sb'", "TRUE"),
        (f"'{'a' * 60}b' LIKE '{'%a' * 30}%c'", "FALSE"),
        ("'orders_eu' LIKE 'o%\\_e_'", "FALSE"),
        ("'orders_eu' LIKE 'o%s_e_'", "TRUE"),
        ("'ORDERS' ILIKE '%der%'", "TRUE"),
        ("POW(2, 64)", str(2**64)),
        ("1" + " + 1" * 100, "101"),
    ],
)
def test_what_takes_long_elsewhere_is_computed(expression: str, value: str):
    assert expanded(f"SELECT @EVAL({expression})") == f"SELECT {value}"


def test_numbers_without_a_digit_are_written_as_spark_reads_them():
    assert expanded("SELECT @none, @endless") == "SELECT CAST('nan' AS DOUBLE), CAST('-inf' AS DOUBLE)"


@pytest.fixture
def low(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that are reached quickly."""
    monkeypatch.setattr(macro_expander, "_MOST_EXPANSIONS", 300)
    monkeypatch.setattr(macro_expander, "_MOST_CHARACTERS", 50_000)


TEN = f"[{', '.join('0123456789')}]"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "SELECT " + "".join(f"@EACH({TEN}, x{n} -> " for n in range(9)) + "x1" + ")" * 9,
            "more than 300 expansions",
        ),
        (f"SELECT @EACH([{', '.join(['1'] * 400)}], x -> x)", "more than 300 expansions"),
        (f"SELECT @REDUCE([{', '.join(['1'] * 60)}], (x, y) -> x + x)", "more than"),
        ("SELECT " + "@SAFE_ADD(1, " * 30 + "1" + ")" * 30, "more than 50000 characters"),
        ("SELECT " + "@IF(TRUE, " * 100 + "1" + ")" * 100, "nested more than 50 macros deep"),
        ("SELECT " + "@EVAL(" * 1000 + "1" + ")" * 1000, "nested more than 50 macros deep"),
        ("SELECT " + "@EACH([1], x -> " * 100 + "x" + ")" * 100, "without end"),
        ("SELECT @long()", "more than 50000 characters"),
        ("SELECT @again()", "without end"),
    ],
)
def test_what_grows_too_large_says_the_limit(low: None, text: str, said: str):
    functions = {"long": lambda evaluator: "1 + " * 20_000 + "1", "again": lambda evaluator: "@again() + @again()"}
    assert said in problem(text, **functions).message


def test_definitions_that_double_each_other_say_the_limit(low: None):
    definitions = tuple(
        Fragment(text=f"@DEF(a{n}, @a{n - 1} + @a{n - 1})" if n else "@DEF(a0, 1)", location=Location(line=n + 1))
        for n in range(35)
    )
    with pytest.raises(LaminaError, match=r"more than (300 expansions|50000 characters)"):
        expand(Fragment(text="SELECT @a34", location=Location(line=99)), MacroScope(definitions=definitions))


class Ending(list[object]):
    """A list that ends the process of whoever goes through it."""

    def __iter__(self) -> NoReturn:
        raise SystemExit(0)


@pytest.mark.parametrize(
    "returned", [10**5000, object(), [[object()]], Ending([1])], ids=["digits", "object", "objects", "ending"]
)
def test_what_a_macro_returns_and_cannot_be_written_is_refused(returned: object):
    assert "`@m` returned" in problem("SELECT @m()", m=lambda evaluator: returned).message
