"""The macros that write SQL; that Spark takes what they write was tried on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import sqlglot

from lamina.errors import LaminaError, Location, MacroError
from lamina.sql.fragment import Fragment
from lamina.sql.macros.expand import Expansion, expand
from lamina.sql.macros.scope import MacroScope

if TYPE_CHECKING:
    from collections.abc import Mapping

COLUMNS = {"t": {"id": "bigint", "Name": "string", "at": "timestamp"}, "u": {"name": "int", "id": "int", "x": "int"}}


def columns_of(name: str) -> Mapping[str, str] | None:
    return COLUMNS.get(name.removeprefix("db."))


def run(text: str, dialect: str = "spark", *, is_load: bool = False) -> Expansion:
    fragment = Fragment(text=text, location=Location(file="a.sql", line=1, column=1), dialect=dialect)
    return expand(fragment, MacroScope(variables={"cols": ["id", "Name"]}, columns_of=None if is_load else columns_of))


def written(text: str, dialect: str = "spark", *, is_load: bool = False) -> str:
    return run(text, dialect, is_load=is_load).text


def failure(text: str, dialect: str = "spark") -> LaminaError:
    with pytest.raises(LaminaError) as caught:
        written(text, dialect)
    return caught.value


# --- @STAR
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("@STAR(t)", "`id`, `Name`, `at`"),
        ("@STAR(db.t, x)", "x.`id`, x.`Name`, x.`at`"),
        ("@STAR('db.t', x, exclude := [ID, at])", "x.`Name`"),
        ("@STAR(t, x, [id, `Name`], 'p_', '_s')", "x.`at` AS `p_at_s`"),
        ("@STAR(t, exclude := @cols, quote_identifiers := false)", "at"),
        ("@STAR(unknown, x)", "x.*"),
        ("@STAR(unknown, x, exclude := [a])", "x.* EXCEPT (a)"),
    ],
)
def test_star_lists_the_columns(text: str, wanted: str) -> None:
    assert written(text) == wanted


def test_star_is_a_star_while_columns_are_not_looked_up() -> None:
    found = run("SELECT @STAR(db.t, x, prefix := 'p_')", is_load=True)
    assert found.text == "SELECT x.*"
    assert found.columns_used == {"db.t"}


def test_star_cannot_rename_unknown_columns() -> None:
    assert "`unknown`" in failure("@STAR(unknown, prefix := 'p_')").message


def test_star_that_excludes_everything_is_an_error() -> None:
    assert isinstance(failure("@STAR(t, exclude := [id, name, at])"), MacroError)


def test_star_names_the_nearest_argument() -> None:
    assert failure("@STAR(t, exlude := [id])").hint == "did you mean `exclude`?"


# --- @GENERATE_SURROGATE_KEY
def test_a_surrogate_key_is_safe_for_null() -> None:
    assert written("@GENERATE_SURROGATE_KEY(a, b + 1)") == (
        "md5(CONCAT(COALESCE(CAST(a AS STRING), '_null_'), '|', COALESCE(CAST(b + 1 AS STRING), '_null_')))"
    )


@pytest.mark.parametrize("name", ["'SHA256'", "'sha-256'", "SHA256"])
def test_a_surrogate_key_takes_another_hash(name: str) -> None:
    key = written(f"@GENERATE_SURROGATE_KEY(a, hash_function := {name})")
    assert key == "sha2(COALESCE(CAST(a AS STRING), '_null_'), 256)"


def test_a_surrogate_key_of_a_list_takes_every_item() -> None:
    assert written("@GENERATE_SURROGATE_KEY(@EACH([a, b], x -> x))").count("COALESCE") == 2


@pytest.mark.parametrize("text", ["@GENERATE_SURROGATE_KEY()", "@GENERATE_SURROGATE_KEY(a, hash_function := 'crc')"])
def test_a_surrogate_key_without_columns_or_hash_is_an_error(text: str) -> None:
    assert isinstance(failure(text), MacroError)


# --- @DEDUPLICATE
def test_deduplicate_keeps_the_first_row_of_each_key() -> None:
    assert written("@DEDUPLICATE(db.t, [a, CAST(b AS DATE)], ['c DESC NULLS LAST', 'd'])") == (
        "SELECT * EXCEPT (_lamina_row) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a, CAST(b AS DATE) "
        "ORDER BY c DESC NULLS LAST, d) AS _lamina_row FROM db.t) AS _lamina_numbered WHERE _lamina_row = 1"
    )


def test_deduplicate_takes_single_columns_without_brackets() -> None:
    assert "PARTITION BY a ORDER BY c)" in written("@DEDUPLICATE(t, a, c)")


@pytest.mark.parametrize("text", ["@DEDUPLICATE(t, [a], [])", "@DEDUPLICATE(t, [a])", "@DEDUPLICATE(t, [a], ['c ('])"])
def test_deduplicate_without_a_usable_ordering_is_an_error(text: str) -> None:
    assert isinstance(failure(text), MacroError)


# --- @DATE_SPINE
def test_a_date_spine_includes_both_ends() -> None:
    assert written("@DATE_SPINE('day', '2024-01-01', '2024-01-31')") == (
        "SELECT EXPLODE(SEQUENCE(CAST('2024-01-01' AS DATE), CAST('2024-01-31' AS DATE), INTERVAL 1 DAY)) AS date_day"
    )


def test_a_date_spine_over_the_interval_stays_symbolic() -> None:
    found = run("@DATE_SPINE('quarter', @start_ds, @end_ds)")
    assert "CAST(@start_ds AS DATE), CAST(@end_ds AS DATE), INTERVAL 3 MONTH)) AS date_quarter" in found.text
    assert not found.is_time_dependent


@pytest.mark.parametrize(
    "text",
    [
        "@DATE_SPINE('dya', '2024-01-01', '2024-01-31')",
        "@DATE_SPINE('day', '2024-01-32', '2024-02-01')",
        "@DATE_SPINE('day', 'soon', '2024-02-01')",
        "@DATE_SPINE('day', '2024-02-01', '2024-01-31')",
    ],
)
def test_a_date_spine_that_cannot_be_is_an_error(text: str) -> None:
    assert isinstance(failure(text), MacroError)


# --- @UNION
def test_union_takes_shared_columns_with_the_types_of_the_first() -> None:
    assert written("@UNION('distinct', t, db.u)") == (
        "SELECT CAST(`id` AS bigint) AS `id`, CAST(`Name` AS string) AS `Name` FROM t UNION DISTINCT "
        "SELECT CAST(`id` AS bigint) AS `id`, CAST(`Name` AS string) AS `Name` FROM db.u"
    )


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("@UNION('all', a, b)", "SELECT * FROM a UNION ALL SELECT * FROM b"),
        ("@UNION(a, b)", "SELECT * FROM a UNION ALL SELECT * FROM b"),
        ("@UNION(1 = 1, 'distinct', a, b)", "SELECT * FROM a UNION DISTINCT SELECT * FROM b"),
        ("@UNION(false, 'all', a, b)", "SELECT * FROM a"),
        ("@UNION(1 = 2, a, b)", "SELECT * FROM a"),
    ],
)
def test_union_takes_a_kind_and_a_condition(text: str, wanted: str) -> None:
    assert written(text, is_load=True) == wanted


@pytest.mark.parametrize("text", ["@UNION('all')", "@UNION('some', t)", "@UNION('all', t, unknown)"])
def test_union_of_what_cannot_be_joined_is_an_error(text: str) -> None:
    assert isinstance(failure(text), MacroError)


# --- @PIVOT
def test_pivot_makes_a_column_of_each_value() -> None:
    assert written("@PIVOT(status, ['open', 'in work'])") == (
        "SUM(CASE WHEN status = 'open' THEN 1 ELSE 0 END) AS `open`, "
        "SUM(CASE WHEN status = 'in work' THEN 1 ELSE 0 END) AS `in work`"
    )


def test_pivot_takes_its_options() -> None:
    options = "agg := 'MAX', cmp := '>', prefix := 'p_', then_value := a + b, else_value := NULL, quote := false"
    assert written(f"@PIVOT(n, [1], {options})") == "MAX(CASE WHEN n > 1 THEN (a + b) ELSE NULL END) AS p_1"


# --- arithmetic
def test_safe_arithmetic_minds_null_and_zero() -> None:
    assert (
        written("@SAFE_ADD(a, b)")
        == "CASE WHEN a IS NULL AND b IS NULL THEN NULL ELSE COALESCE(a, 0) + COALESCE(b, 0) END"
    )
    assert "COALESCE(a, 0) - COALESCE((b + 1), 0)" in written("@SAFE_SUB(a, b + 1)")
    assert written("@SAFE_DIV(a, b - 1) * 2") == "(a / NULLIF((b - 1), 0)) * 2"


def test_a_distance_takes_miles_or_kilometres() -> None:
    assert written("@HAVERSINE_DISTANCE(a, b, c, d)").startswith("7917.5117 * ASIN")
    assert written("@HAVERSINE_DISTANCE(a, b, c, d, 'km')").startswith("12742.0176 * ASIN")
    assert isinstance(failure("@HAVERSINE_DISTANCE(a, b, c, d, 'm')"), MacroError)


# --- other dialects
@pytest.mark.parametrize("dialect", ["duckdb", "bigquery", "snowflake", "postgres"])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT @GENERATE_SURROGATE_KEY(a, b) AS k FROM t",
        "SELECT @SAFE_DIV(a, b) AS k FROM t",
        "SELECT @STAR(t, t, exclude := [id]) FROM t",
        "@DEDUPLICATE(db.t, [a], ['c DESC'])",
        "@UNION('all', t, u)",
    ],
)
def test_what_is_written_can_be_read_in_the_dialect_of_the_model(text: str, dialect: str) -> None:
    assert sqlglot.parse_one(written(text, dialect), dialect=dialect).sql("spark")


def test_a_date_spine_comes_back_from_duckdb_as_spark_writes_it() -> None:
    text = sqlglot.transpile(written("@DATE_SPINE('day', '2024-01-01', '2024-01-02')", "duckdb"), "duckdb", "spark")[0]
    assert "EXPLODE(SEQUENCE(" in text


def test_a_dialect_that_cannot_hold_a_date_spine_is_told() -> None:
    assert "bigquery" in failure("@DATE_SPINE('day', '2024-01-01', '2024-01-02')", "bigquery").message
