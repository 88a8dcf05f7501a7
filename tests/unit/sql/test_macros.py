"""Variables, names, definitions, templates and time in texts with macros."""

from __future__ import annotations

import pytest
import sqlglot

from lamina.errors import LaminaError, Location, MacroError, Problems, SyntaxProblem, UnknownMacro
from lamina.sql.fragment import Fragment
from lamina.sql.macros.expand import Expansion, expand
from lamina.sql.macros.scope import MacroScope, VariableValue
from lamina.sql.macros.times import substitute_times, time_literals
from lamina.sql.syntax import to_spark
from lamina.timeline.macro_times import TimeValue

HERE = Location(file="models/a.sql", line=10, column=1)
VARIABLES: dict[str, VariableValue] = {
    "region": "eu",
    "limit_rows": 5,
    "ratio": 0.5,
    "is_big": True,
    "nothing": None,
    "minus": -5,
    "ids": [1, 2],
    "names": ["a", "b"],
    "pairs": [["a", 1], ["b", 2]],
    "none_at_all": [],
    "labels": {"k": 1},
    "table": "raw.orders",
    "odd": "two words",
    "quote": "it's",
}


def fragment(text: str, dialect: str = "spark") -> Fragment:
    return Fragment(text=text, location=HERE, dialect=dialect)


def run(text: str, *definitions: str, dialect: str = "spark", **scope: object) -> Expansion:
    made = MacroScope(
        **{"variables": VARIABLES, "definitions": tuple(fragment(each, dialect) for each in definitions), **scope}  # type: ignore[arg-type]  # a test gives what it needs
    )
    return expand(fragment(text, dialect), made)


def expanded(text: str, *definitions: str, dialect: str = "spark", **scope: object) -> str:
    return run(text, *definitions, dialect=dialect, **scope).text


def failure(text: str, *definitions: str, **scope: object) -> LaminaError:
    with pytest.raises(LaminaError) as caught:
        run(text, *definitions, **scope)
    return caught.value


# --- values ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("@region", "'eu'"),
        ("@REGION", "'eu'"),
        ("@limit_rows", "5"),
        ("@ratio", "0.5"),
        ("@is_big", "TRUE"),
        ("@nothing", "NULL"),
        ("@quote", r"'it\'s'"),
        ("@labels", "MAP_FROM_ARRAYS(ARRAY('k'), ARRAY(1))"),
    ],
)
def test_a_variable_is_written_as_the_literal_of_its_type(text: str, wanted: str) -> None:
    assert expanded(text) == wanted


def test_text_is_quoted_the_way_the_dialect_quotes() -> None:
    assert expanded("@quote", dialect="duckdb") == "'it''s'"


def test_a_list_is_written_with_commas_inside_brackets() -> None:
    assert expanded("x IN (@ids) AND y = ARRAY(@names)") == "x IN (1, 2) AND y = ARRAY('a', 'b')"


def test_a_list_behind_in_brings_its_own_brackets() -> None:
    assert expanded("x IN @ids") == "x IN (1, 2)"


def test_an_empty_list_leaves_no_comma() -> None:
    assert expanded("SELECT a, @none_at_all, b").split() == ["SELECT", "a", ",", "b"]


@pytest.mark.parametrize("text", ["x IN (@none_at_all)", "x IN @none_at_all"])
def test_an_empty_list_behind_in_is_an_error(text: str) -> None:
    assert isinstance(failure(text), MacroError)


def test_a_negative_number_does_not_start_a_comment() -> None:
    assert expanded("x-@minus") == "x-(-5)"


def test_what_stands_in_strings_and_comments_is_left_alone() -> None:
    text = "SELECT '@region', \"@region\", `a@region` -- @nope\n, /* @nope */ 1 /*+ HINT(@x) */"
    assert expanded(text) == text


def test_a_session_variable_of_another_database_is_left_alone() -> None:
    assert expanded("SELECT @@version, @region", dialect="mysql") == "SELECT @@version, 'eu'"


def test_macros_inside_commands_are_found() -> None:
    assert expanded("OPTIMIZE @this_model ZORDER BY (@{region})", this_model="db.t") == "OPTIMIZE db.t ZORDER BY (eu)"


def test_var_reads_a_variable_by_name() -> None:
    assert expanded("@VAR('region'), @var('LIMIT_ROWS')") == "'eu', 5"


def test_var_falls_back_to_its_default() -> None:
    assert expanded("@VAR('missing', a + 1)") == "a + 1"


def test_var_without_default_names_the_nearest_variable() -> None:
    error = failure("@VAR('regoin')")
    assert isinstance(error, UnknownMacro)
    assert "region" in str(error.hint)


# --- names -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("@{region}", "eu"),
        ("foo_@{region}_bar", "foo_eu_bar"),
        ("schema_@{region}.orders", "schema_eu.orders"),
        ("@{region}@{limit_rows}", "eu5"),
        ("item_@limit_rows", "item_5"),
        ("t.@region", "t.eu"),
        ("@region.id", "eu.id"),
        ("1 AS @region", "1 AS eu"),
        ("CAST(a AS @region)", "CAST(a AS eu)"),
        ("@{table}", "raw.orders"),
        ("@{odd}", "`two words`"),
        ("x_@{odd}", "`x_two words`"),
        ("@{limit_rows}", "5"),
        ("@{region}(a)", "eu(a)"),
        ("`@{region} of a`", "`eu of a`"),
    ],
)
def test_braces_and_glue_make_an_identifier(text: str, wanted: str) -> None:
    assert expanded(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("`@region`.`t`", "`eu`.`t`"),
        ("`@REGION`", "`eu`"),
        ("`raw_@{region}_x`", "`raw_eu_x`"),
        ("`x@{region}`", "`xeu`"),
        ("`raw_@region`", "`raw_eu`"),
        ("`@table`", "`raw.orders`"),
        ("`@tick`", "`a``b`"),
        ("`n@{limit_rows}`", "`n5`"),
        ("`@@region`", "`@region`"),
        ("INSERT INTO `@region`.t SELECT `@region`", "INSERT INTO `eu`.t SELECT `eu`"),
        ("parquet.`abfss://box@region.dfs.net/@region/x`", "parquet.`abfss://box@region.dfs.net/eu/x`"),
    ],
)
def test_variables_in_quoted_names_are_filled_in(text: str, wanted: str) -> None:
    assert expanded(text, variables={**VARIABLES, "tick": "a`b"}) == wanted


def test_double_quotes_are_names_where_the_dialect_says_so() -> None:
    assert expanded('SELECT * FROM "@region"."t"', dialect="postgres") == 'SELECT * FROM "eu"."t"'
    assert expanded('SELECT "@region"') == 'SELECT "@region"'


def test_a_table_written_as_text_is_a_name_too() -> None:
    assert expanded('SELECT "@region" FROM "@region"."t" JOIN x."raw_@{region}"') == (
        'SELECT "@region" FROM "eu"."t" JOIN x."raw_eu"'
    )
    assert isinstance(failure("SELECT * FROM a, '@regoin'.t"), UnknownMacro)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT trim(BOTH 'x' FROM '@region'), a IS DISTINCT FROM '@region', f(a, '@region') FROM t",
        "SELECT TRANSFORM (a) USING '@region' AS (b) FROM t",
        "SELECT * FROM f('a', '@region') JOIN t ON a IN ('b', '@region') ORDER BY a, '@region'",
    ],
)
def test_other_text_stays(text: str) -> None:
    assert expanded(text) == text


def test_variables_in_hints_are_filled_in() -> None:
    assert expanded("SELECT /*+ REPARTITION(@limit_rows, `@{region}`), BROADCAST(@region) */ a FROM t") == (
        "SELECT /*+ REPARTITION(5, `eu`), BROADCAST(eu) */ a FROM t"
    )
    assert (
        expanded("@EACH([a, b], c -> (SELECT /*+ MERGE(@c) */ 1))")
        == "(SELECT /*+ MERGE(a) */ 1), (SELECT /*+ MERGE(b) */ 1)"
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("SELECT /*+ BROADCAST(@regoin) */ a FROM t", UnknownMacro),
        ("SELECT /*+ BROADCAST(@{regoin}) */ a FROM t", UnknownMacro),
        ("SELECT /*+ REPARTITION(@IF(TRUE, 1, 2)) */ a FROM t", MacroError),
    ],
)
def test_a_sign_that_would_be_left_in_a_hint_is_an_error(text: str, kind: type[LaminaError]) -> None:
    error = failure(text)
    assert isinstance(error, kind)
    assert (error.location.line, error.location.column) == (10, 8)


def test_a_quoted_name_cannot_become_empty() -> None:
    assert isinstance(failure("SELECT * FROM `@nothing`.t", variables={"nothing": ""}), MacroError)


def test_a_parameter_and_a_definition_fill_quoted_names() -> None:
    assert expanded("@EACH([a, b], c -> `x_@c`)") == "`x_a`, `x_b`"
    assert expanded("SELECT `@mine`", "@DEF(mine, 'col')") == "SELECT `col`"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT `user@host` FROM t",
        "SELECT `@timestamp`, t.`@type` FROM t",
        "SELECT extract(year FROM `@timestamp`), a IS DISTINCT FROM `@b` FROM t AS `@c`",
        "SELECT * FROM t LATERAL VIEW explode(x) `@v` AS y JOIN u USING (`@id`) ORDER BY a, `@b`",
        "WITH `@a` AS (SELECT 1), `@b` (x) AS (SELECT 2) SELECT * FROM `@a`, `@b`",
        "SELECT * FROM parquet.`s3://me@host/data/@x`",
        "SELECT * FROM `user@host`.t",
    ],
)
def test_signs_that_belong_to_a_quoted_name_stay(text: str) -> None:
    assert expanded(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM `@regoin`.t",
        "SELECT * FROM a JOIN x.`@regoin` USING (id)",
        "SELECT * FROM a, `@regoin`.t",
        "SELECT * FROM (SELECT 1 FROM f(a), `raw_@regoin`)",
        "INSERT INTO `@regoin`.t SELECT 1",
        "SELECT `x_@{regoin}`",
    ],
)
def test_a_quoted_table_that_begins_with_the_sign_is_an_unknown_variable(text: str) -> None:
    error = failure(text)
    assert isinstance(error, UnknownMacro)
    assert error.hint == "did you mean `@region`?"
    assert error.location == Location(
        file="models/a.sql", line=10, column=text.index("`") + 1 if ".`" not in text else 24
    )


def test_a_list_or_a_whole_table_is_no_part_of_a_quoted_name() -> None:
    assert isinstance(failure("SELECT `@ids`"), MacroError)
    assert isinstance(failure("SELECT `@this_model`", this_model="a.b"), MacroError)


def test_an_identifier_is_joined_in_dialects_whose_names_hold_the_sign() -> None:
    assert expanded("SELECT a_@{region}_b, c_@region", dialect="tsql") == "SELECT a_eu_b, c_eu"


def test_a_reserved_word_is_quoted() -> None:
    assert expanded("SELECT @{word}", variables={"word": "select"}) == "SELECT `select`"


def test_a_type_that_is_no_name_stays_bare_in_a_cast() -> None:
    assert expanded("CAST(a AS @type)", variables={"type": "DECIMAL(10, 2)"}) == "CAST(a AS DECIMAL(10, 2))"


def test_a_list_cannot_be_part_of_a_name() -> None:
    assert isinstance(failure("foo_@{ids}"), MacroError)


# --- who wins --------------------------------------------------------------------------------------------------------
def test_definitions_win_over_locals_over_blueprint_over_variables() -> None:
    scope = {"locals": {"b": "l", "c": "l"}, "blueprint": {"b": "p", "c": "p", "d": "p"}}
    variables = {"a": "v", "b": "v", "c": "v", "d": "v", "e": "v"}
    text = expanded("@a, @b, @c, @d, @e", "@DEF(a, def)", "@DEF(b, def)", variables=variables, **scope)
    assert text == "def, def, l, 'p', 'v'"


def test_a_blueprint_variable_is_read_with_and_without_default() -> None:
    scope = {"blueprint": {"customer": "acme"}, "locals": {"field": "amount"}}
    text = expanded("@{customer}, @BLUEPRINT_VAR('customer'), @field, @BLUEPRINT_VAR('other', 1)", **scope)
    assert text == "acme, 'acme', amount, 1"


def test_macros_in_a_local_are_expanded() -> None:
    assert expanded("@condition", locals={"condition": "region = @region"}) == "region = 'eu'"


# --- definitions -----------------------------------------------------------------------------------------------------
def test_a_definition_stands_for_its_value() -> None:
    assert expanded("SELECT @size", "@DEF(size, 10)") == "SELECT 10"


def test_a_definition_in_the_text_counts_behind_it_and_leaves_nothing() -> None:
    assert expanded("@DEF(size, 10); SELECT @size") == "; SELECT 10"


def test_a_defined_value_keeps_its_precedence() -> None:
    assert expanded("@size * 2", "@DEF(size, a + 1)") == "(a + 1) * 2"


def test_a_defined_text_becomes_a_name_in_braces() -> None:
    assert expanded("t_@{suffix}", "@DEF(suffix, 'x')") == "t_x"


def test_an_inline_function_replaces_its_parameters() -> None:
    assert expanded("@area(r + 1)", "@DEF(area, x -> pi() * x * @x)") == "pi() * (r + 1) * (r + 1)"


def test_an_inline_function_of_two_takes_named_arguments() -> None:
    assert expanded("@minus(1, b := 2)", "@DEF(minus, (a, b) -> a - b)", variables={}) == "1 - 2"


def test_a_definition_sees_those_before_it() -> None:
    assert expanded("@b", "@DEF(a, 1)", "@DEF(b, @a + 1)", "@DEF(a, 5)") == "1 + 1"


def test_a_definition_may_build_on_the_name_it_replaces() -> None:
    assert expanded("@a", "@DEF(a, 1)", "@DEF(a, @a + 1)") == "1 + 1"


def test_an_inline_function_called_with_too_many_arguments_is_an_error() -> None:
    assert isinstance(failure("@f(1, 2)", "@DEF(f, x -> x)"), MacroError)


def test_an_inline_function_without_brackets_is_an_error() -> None:
    assert "function" in failure("@f", "@DEF(f, x -> x)").message


def test_a_defined_list_can_be_gone_through() -> None:
    assert expanded("SELECT @EACH(@cols, c -> SUM(c))", "@DEF(cols, [a, b])") == "SELECT SUM(a), SUM(b)"


def test_a_defined_query_gets_brackets_behind_from() -> None:
    assert expanded("SELECT * FROM @q", "@DEF(q, SELECT a, b FROM t)") == "SELECT * FROM (SELECT a, b FROM t)"


# --- templates -------------------------------------------------------------------------------------------------------
def test_a_string_template_becomes_a_string() -> None:
    assert expanded("@'s3://@{region}/@limit_rows'") == "'s3://eu/5'"


def test_an_address_in_a_template_is_left_alone() -> None:
    assert expanded("@'someone@example.com'") == "'someone@example.com'"


def test_sql_reads_a_text_as_sql() -> None:
    assert expanded("@SQL('SELECT @{region}_id FROM @table')") == "SELECT eu_id FROM raw.orders"


def test_sql_expands_macros_in_its_text() -> None:
    assert expanded("@SQL('@EACH(@names, n -> n)')") == "'a', 'b'"


def test_sql_takes_an_expression_and_a_type() -> None:
    assert expanded("@SQL('a' || ' + ' || @region, 'expression')") == "a + eu"


def test_an_unknown_name_in_braces_of_a_template_is_an_error() -> None:
    assert isinstance(failure("@'@{regiom}'"), UnknownMacro)


# --- predefined ------------------------------------------------------------------------------------------------------
def test_the_model_its_kind_and_the_stage_are_known() -> None:
    text = expanded(
        "@this_model, @model_kind_name, @runtime_stage", this_model="db.t", model_kind="FULL", stage="auditing"
    )
    assert text == "db.t, 'FULL', 'auditing'"


def test_the_model_stays_a_placeholder_until_it_is_known() -> None:
    symbolic = expanded("SELECT * FROM @this_model WHERE ds = @start_ds")
    assert symbolic == "SELECT * FROM @this_model WHERE ds = @start_ds"
    values = {"this_model": "db.t", "start_ds": "'2024-01-01'"}
    assert substitute_times(symbolic, "spark", values) == "SELECT * FROM db.t WHERE ds = '2024-01-01'"


def test_a_text_that_asks_for_the_stage_is_expanded_again_later() -> None:
    assert run("@IF(@runtime_stage = 'evaluating', ALTER TABLE t)").is_time_dependent


# --- time ------------------------------------------------------------------------------------------------------------
TIMES = {"start_ds": "'2024-01-01'", "end_ds": "'2024-01-02'", "start_dt": "TIMESTAMP '2024-01-01 00:00:00+00:00'"}


def test_a_time_variable_stays_in_the_text_without_an_interval() -> None:
    found = run("WHERE ds BETWEEN @START_DS AND @end_ds")
    assert found.text == "WHERE ds BETWEEN @start_ds AND @end_ds"
    assert found.times_used == {"start_ds", "end_ds"}
    assert not found.is_time_dependent


def test_a_time_variable_gets_its_value_with_an_interval() -> None:
    assert expanded("ds >= @start_ds AND t > @start_dt", times=TIMES) == (
        "ds >= '2024-01-01' AND t > TIMESTAMP '2024-01-01 00:00:00+00:00'"
    )


@pytest.mark.parametrize(
    "dialect", ["spark", "databricks", "bigquery", "duckdb", "snowflake", "postgres", "trino", "tsql"]
)
def test_a_placeholder_survives_the_translation_to_spark_and_is_filled_in(dialect: str) -> None:
    text = to_spark(
        expanded("SELECT @start_ds || 'x' AS a, '@start_ds' AS b, f(@end_ds) AS c", dialect=dialect), dialect
    )
    assert text.count("@") == 3
    filled = substitute_times(text, "spark", TIMES)
    assert "'2024-01-01'" in filled
    assert "'2024-01-02'" in filled
    assert filled.count("@start_ds") == 1


def test_a_sum_with_a_placeholder_keeps_its_brackets_where_the_sign_is_an_operator() -> None:
    assert expanded("2 * @IF(true, @start_millis + 1)", dialect="duckdb") == "2 * (@start_millis + 1)"


def test_placeholders_in_strings_and_comments_are_not_filled_in() -> None:
    text = "SELECT '@start_ds' -- @start_ds\n, @start_ds, a::start_ds"
    assert substitute_times(text, "spark", TIMES) == "SELECT '@start_ds' -- @start_ds\n, '2024-01-01', a::start_ds"


def test_a_time_that_decides_a_macro_makes_the_text_time_dependent() -> None:
    found = run("@IF(@start_ds >= '2024-01-01', a, b)")
    assert found.is_time_dependent
    assert found.text == "b"
    assert run("@IF(@start_ds >= '2024-01-01', a, b)", times=TIMES).text == "a"


def test_a_time_in_a_branch_does_not_make_the_text_time_dependent() -> None:
    found = run("@IF(@is_big, ds > @start_ds)")
    assert found.text == "ds > @start_ds"
    assert not found.is_time_dependent


def test_a_time_that_reaches_a_condition_through_a_lambda_is_noticed() -> None:
    assert run("@FILTER([@start_ds], x -> x > '2024')").is_time_dependent


def test_a_time_inside_a_name_makes_the_text_time_dependent() -> None:
    found = run("FROM t_@{start_ds}", times={"start_ds": "'20240101'"})
    assert found.text == "FROM t_20240101"
    assert found.is_time_dependent


def test_a_time_without_a_value_is_an_error_with_its_place() -> None:
    error = failure("SELECT\n  @start_ds", times={"execution_ds": "'2024-01-01'"})
    assert isinstance(error, MacroError)
    assert (error.location.line, error.location.column) == (11, 3)  # type: ignore[union-attr]  # it has one


def test_latest_is_another_name_for_execution() -> None:
    assert expanded("@latest_ds", times={"execution_ds": "'2024-01-01'"}) == "'2024-01-01'"


VALUES = {
    "start_dt": TimeValue(kind="timestamp", value="2024-01-01 00:00:00+00:00"),
    "start_dtntz": TimeValue(kind="timestamp_ntz", value="2024-01-01 00:00:00"),
    "start_date": TimeValue(kind="date", value="2024-01-01"),
    "start_ds": TimeValue(kind="string", value="2024-01-01"),
    "start_epoch": TimeValue(kind="float", value=1704067200.0),
    "start_millis": TimeValue(kind="int", value=-5),
}


def test_times_are_typed_literals_in_spark() -> None:
    assert time_literals(VALUES) == {
        "start_dt": "TIMESTAMP '2024-01-01 00:00:00+00:00'",
        "start_dtntz": "TIMESTAMP_NTZ '2024-01-01 00:00:00'",
        "start_date": "DATE '2024-01-01'",
        "start_ds": "'2024-01-01'",
        "start_epoch": "1704067200.0",
        "start_millis": "(-5)",
    }


@pytest.mark.parametrize("dialect", ["bigquery", "duckdb", "snowflake", "postgres", "trino"])
def test_times_of_other_dialects_become_the_same_type_in_spark(dialect: str) -> None:
    made = {
        name: sqlglot.transpile(text, read=dialect, write="spark")[0]
        for name, text in time_literals(VALUES, dialect).items()
    }
    assert made["start_dt"] == "CAST('2024-01-01 00:00:00+00:00' AS TIMESTAMP)"
    assert made["start_date"] == "CAST('2024-01-01' AS DATE)"
    assert made["start_ds"] == "'2024-01-01'"


# --- what was used ---------------------------------------------------------------------------------------------------
def test_only_variables_that_were_read_are_named() -> None:
    found = run("@region, @VAR('ids'), @IF(false, @odd), '@ratio'")
    assert found.variables_used == {"region", "ids"}


def test_a_text_without_the_sign_is_returned_as_it_is() -> None:
    text = "SELECT 'unterminated"
    assert run(text).text is text


# --- places ----------------------------------------------------------------------------------------------------------
def test_copied_text_is_found_where_it_was_written() -> None:
    found = run("SELECT @EACH([a, b], x -> x + 1),\n  @IF(true, something) FROM t")
    assert found.location_at(found.text.index("something")) == Location(file="models/a.sql", line=11, column=13)
    assert found.location_at(found.text.index("FROM")) == Location(file="models/a.sql", line=11, column=24)


def test_made_text_is_found_where_its_macro_stands() -> None:
    found = run("SELECT\n  @region AS r")
    assert found.location_at(found.text.index("eu")) == Location(file="models/a.sql", line=11, column=3)


def test_the_body_of_a_definition_is_found_in_its_own_place() -> None:
    definition = Fragment(text="@DEF(f, x -> wrong(x))", location=Location(file="models/a.sql", line=4, column=1))
    scope = MacroScope(definitions=(definition,))
    found = expand(fragment("SELECT @f(1)"), scope)
    assert found.location_at(found.text.index("wrong")) == Location(file="models/a.sql", line=4, column=14)


def test_places_behind_a_filled_in_time_are_right() -> None:
    found = run("SELECT @start_ds, b", times=TIMES)
    assert found.location_at(found.text.index(" b") + 1).column == 19


def test_the_end_of_the_text_has_a_place() -> None:
    found = run("@IF(false, a)")
    assert found.text == ""
    assert found.location_at(0).line == 10


# --- mistakes --------------------------------------------------------------------------------------------------------
def test_a_misspelled_variable_names_the_nearest_one() -> None:
    error = failure("SELECT @regoin")
    assert error.code == "LAM-SQL-006"
    assert error.hint == "did you mean `@region`?"
    assert error.location == Location(file="models/a.sql", line=10, column=8)


def test_a_misspelled_macro_names_the_nearest_one() -> None:
    assert failure("@EECH([1], x -> x)").hint == "did you mean `@EACH`?"


def test_a_misspelled_time_names_the_nearest_one() -> None:
    assert failure("@strat_ds").hint == "did you mean `@start_ds`?"


def test_all_unknown_names_are_reported_together() -> None:
    error = failure("@one_x, @two_x(1), @IF(@three_x = 1, a)")
    assert isinstance(error, Problems)
    assert [problem.code for problem in error.problems] == ["LAM-SQL-006"] * 3


def test_a_mistake_in_a_lambda_is_reported_once() -> None:
    assert len(failure("@EACH([1, 2, 3], x -> @nope)").problems) == 1


def test_a_misspelled_name_in_a_branch_that_is_not_taken_is_found() -> None:
    error = failure("@IF(@runtime_stage = 'evaluating', @GENERATE_SUROGATE_KEY(a), @regoin)", stage="evaluating")
    assert {problem.hint for problem in error.problems} == {
        "did you mean `@GENERATE_SURROGATE_KEY`?",
        "did you mean `@region`?",
    }


def test_a_branch_may_use_a_variable_whose_existence_was_tested() -> None:
    assert expanded("a @IF(@VAR('maybe', NULL) IS NOT NULL, + @maybe)").strip() == "a"


def test_a_variable_called_like_a_function_is_an_error() -> None:
    assert isinstance(failure("@region(1)"), UnknownMacro)


def test_a_function_used_like_a_variable_is_an_error() -> None:
    assert failure("SELECT @each").hint == "call it: `@each(...)`"


def test_macros_that_call_each_other_forever_are_an_error() -> None:
    error = failure("@a", locals={"a": "@b", "b": "@a"})
    assert isinstance(error, MacroError)


def test_an_unterminated_string_is_an_error() -> None:
    assert isinstance(failure("SELECT @region, 'open"), SyntaxProblem)


def test_a_bracket_that_is_never_closed_is_an_error() -> None:
    assert "never closed" in failure("SELECT @IF(true, a").message


def test_an_empty_argument_is_an_error() -> None:
    assert isinstance(failure("@IF(true, )"), MacroError)


def test_a_positional_argument_behind_a_named_one_is_an_error() -> None:
    assert "positional" in failure("@STAR(relation := t, a)").message
