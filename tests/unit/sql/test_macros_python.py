"""Python macros: what they are given, what they may return, and what goes wrong."""

from __future__ import annotations

from collections.abc import Callable  # read at run time
from typing import Literal

import pytest
from sqlglot import exp

from lamina.errors import LaminaError, Location, MacroError
from lamina.sql.fragment import Fragment
from lamina.sql.macros.expand import Expansion, expand
from lamina.sql.macros.python_macros import MacroEvaluator
from lamina.sql.macros.scope import MacroScope


def run(text: str, *functions: Callable[..., object], **scope: object) -> Expansion:
    fragment = Fragment(text=text, location=Location(file="a.sql", line=3, column=1))
    made = {function.__name__: function for function in functions}
    variables = {"region": "eu", "ids": [1, 2]}
    return expand(fragment, MacroScope(**{"functions": made, "variables": variables, **scope}))  # type: ignore[arg-type]  # a test gives what it needs


def written(text: str, *functions: Callable[..., object], **scope: object) -> str:
    return run(text, *functions, **scope).text


def failure(text: str, *functions: Callable[..., object], **scope: object) -> LaminaError:
    with pytest.raises(LaminaError) as caught:
        run(text, *functions, **scope)
    return caught.value


def given(wanted: object) -> tuple[Callable[..., object], list[object]]:
    """A macro with one annotated argument, and the list it keeps what it is given in."""
    seen: list[object] = []

    def take(evaluator: MacroEvaluator, value: object) -> str:
        seen.append(value)
        return "1"

    take.__annotations__["value"] = wanted
    return take, seen


# --- arguments
@pytest.mark.parametrize(
    ("wanted", "text", "value"),
    [
        (int, "1 + 2", 3),
        (int, "-4", -4),
        (float, "2", 2.0),
        (bool, "true", True),
        (bool, "1 = 2", False),
        (str, "'a b'", "a b"),
        (str, "col", "col"),
        (str, "t.col", "t.col"),
        (str, "@region", "eu"),
        (list[int], "[1, 2]", [1, 2]),
        (list[int], "(1, 2)", [1, 2]),
        (list[int], "@ids", [1, 2]),
        (list[str], "a", ["a"]),
        (tuple[str, int], "('a', 1)", ("a", 1)),
        (tuple[int, ...], "[1, 2, 3]", (1, 2, 3)),
        (int | None, "NULL", None),
        (int | str, "'x'", "x"),
        (Literal["a", "b"], "'b'", "b"),
        (list[list[int]], "[(1, 2), (3, 4)]", [[1, 2], [3, 4]]),
    ],
)
def test_an_argument_is_given_in_the_annotated_type(wanted: object, text: str, value: object) -> None:
    take, seen = given(wanted)
    written(f"@take({text})", take)
    assert seen == [value]


@pytest.mark.parametrize(
    ("wanted", "text", "class_"),
    [
        (None, "a + 1", exp.Add),
        (exp.Expression, "x.y", exp.Column),
        (exp.Column, "'a'", exp.Column),
        (exp.Table, "db.t", exp.Table),
        (exp.Identifier, "a", exp.Identifier),
        (exp.Query, "(SELECT 1)", exp.Subquery),
        (exp.Expression, "x -> x + 1", exp.Lambda),
        (exp.Expression, "SELECT a, b FROM t", exp.Select),
        (exp.DataType, "'decimal(10, 2)'", exp.DataType),
    ],
)
def test_an_argument_is_given_as_an_expression(wanted: object, text: str, class_: type) -> None:
    take, seen = given(wanted)
    if wanted is None:
        del take.__annotations__["value"]
    written(f"@take({text})", take)
    assert isinstance(seen[0], class_)


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (int, "abc"),
        (int, "1.5"),
        (bool, "3"),
        (list[int], "[1, 'x']"),
        (tuple[int, int], "(1, 2, 3)"),
        (Literal["a"], "'b'"),
    ],
)
def test_an_argument_of_another_type_is_an_error(wanted: object, text: str) -> None:
    take, _ = given(wanted)
    error = failure(f"@take({text})", take)
    assert isinstance(error, MacroError)
    assert "`value`" in error.message


def test_an_annotation_that_cannot_be_resolved_gives_an_expression() -> None:
    take, seen = given("NotImported")
    written("@take(1)", take)
    assert isinstance(seen[0], exp.Literal)


def test_arguments_may_be_named_and_defaulted() -> None:
    def add(evaluator: MacroEvaluator, a: int, b: int = 10) -> int:
        return a + b

    assert written("@add(1), @add(1, b := 2), @ADD(a := 3, b := 4)", add) == "11, 3, 7"


def test_arguments_may_be_any_number() -> None:
    def joined(evaluator: MacroEvaluator, *names: str, **more: int) -> str:
        return "_".join([*names, *(f"{key}{value}" for key, value in more.items())])

    assert written("@joined(a, 'b', c := 1)", joined) == "a_b_c1"


def test_macros_in_arguments_are_expanded_first() -> None:
    take, seen = given(str)
    written("@take(@IF(@region = 'eu', inside))", take)
    assert seen == ["inside"]


def test_a_wrong_number_of_arguments_is_an_error_with_the_signature() -> None:
    def one(evaluator: MacroEvaluator, a: int) -> int:
        return a

    error = failure("@one(1, 2)", one)
    assert isinstance(error, MacroError)
    assert "a: int" in str(error.hint)


def test_an_argument_that_is_not_sql_is_an_error() -> None:
    take, _ = given(exp.Expression)
    assert isinstance(failure("@take(1 +)", take), MacroError)


# --- results
@pytest.mark.parametrize(
    ("returned", "wanted"),
    [
        ("a + 1", "a + 1"),
        ("x = @region", "x = 'eu'"),
        ("@EACH(@ids, i -> i)", "1, 2"),
        (exp.column("a"), "a"),
        (exp.Literal.string("it's"), r"'it\'s'"),
        (["a", exp.column("b"), None, 3], "a, b, 3"),
        (("a", "b"), "a, b"),
        (5, "5"),
        (1.5, "1.5"),
        (True, "TRUE"),
        (None, ""),
        ([], ""),
    ],
)
def test_a_result_becomes_sql(returned: object, wanted: str) -> None:
    def give(evaluator: MacroEvaluator) -> object:
        return returned

    assert written("@give()", give) == wanted


def test_no_result_takes_a_comma_with_it() -> None:
    def nothing(evaluator: MacroEvaluator) -> None:
        return None

    assert written("SELECT a, @nothing() FROM t", nothing).split() == ["SELECT", "a", "FROM", "t"]


def test_a_returned_comment_does_not_swallow_what_follows() -> None:
    def noted(evaluator: MacroEvaluator) -> str:
        return "a -- note"

    assert written("SELECT @noted(), b", noted) == "SELECT a -- note\n, b"


def test_a_time_in_a_returned_text_stays_symbolic() -> None:
    def between(evaluator: MacroEvaluator, column: str) -> str:
        return f"{column} BETWEEN @start_ds AND @end_ds"

    found = run("@between(ds)", between)
    assert found.text == "ds BETWEEN @start_ds AND @end_ds"
    assert not found.is_time_dependent
    assert found.macros_used == {"between"}


def test_a_time_in_a_returned_expression_stays_symbolic() -> None:
    def since(evaluator: MacroEvaluator) -> exp.Expression:
        return evaluator.parse_one("ds >= @start_ds")

    assert written("@since()", since) == "ds >= @start_ds"


def test_a_time_given_to_a_macro_has_a_value_and_makes_the_text_time_dependent() -> None:
    take, seen = given(str)
    assert run("@take(@start_ds)", take).is_time_dependent
    assert run("@take(@start_ds)", take, times={"start_ds": "'2024-05-01'"}).is_time_dependent
    assert seen == ["1970-01-01", "2024-05-01"]


def test_something_that_is_not_sql_is_an_error() -> None:
    def give(evaluator: MacroEvaluator) -> object:
        return object()

    assert isinstance(failure("@give()", give), MacroError)


def test_a_macro_that_returns_itself_is_an_error() -> None:
    def again(evaluator: MacroEvaluator) -> str:
        return "@again()"

    assert isinstance(failure("@again()", again), MacroError)


def test_an_exception_names_the_macro_and_both_places() -> None:
    def broken(evaluator: MacroEvaluator) -> str:
        raise KeyError("lost")

    error = failure("SELECT\n  @broken()", broken)
    assert isinstance(error, MacroError)
    assert error.message == "`@broken` failed: KeyError: 'lost'"
    assert error.location == Location(file="a.sql", line=4, column=3)
    assert "test_macros_python.py" in str(error.hint)
    assert isinstance(error.__cause__, KeyError)


def test_a_python_macro_wins_over_a_built_in_one() -> None:
    def star(evaluator: MacroEvaluator) -> str:
        return "mine"

    assert written("@STAR()", star) == "mine"


def test_a_misspelled_python_macro_names_the_nearest_one() -> None:
    take, _ = given(int)
    assert failure("@tkae(1)", take).hint == "did you mean `@take`?"


def test_a_python_macro_is_called_once_per_place() -> None:
    take, seen = given(int)
    written("@IF(@take(1) = 1, a), @EACH(@take(2), x -> x)", take)
    assert seen == [1, 2]


# --- the evaluator
def test_the_evaluator_knows_its_surroundings() -> None:
    seen: dict[str, object] = {}

    def look(evaluator: MacroEvaluator) -> str:
        seen.update(
            region=evaluator.var("REGION"),
            missing=evaluator.var("missing", 7),
            customer=evaluator.blueprint_var("customer"),
            locals=evaluator.locals,
            this_model=evaluator.this_model,
            kind=evaluator.model_kind_name,
            dialect=evaluator.dialect,
            value=evaluator.evaluate(exp.convert(3)),
        )
        return "1"

    found = run("@look()", look, blueprint={"customer": "acme"}, locals={"f": "x"}, model_kind="VIEW")
    assert seen == {
        "region": "eu",
        "missing": 7,
        "customer": "acme",
        "locals": {"customer": "acme", "f": "x"},
        "this_model": "@this_model",
        "kind": "VIEW",
        "dialect": "spark",
        "value": 3,
    }
    assert found.variables_used == {"region"}
    assert not found.is_time_dependent


def test_a_macro_that_looks_at_the_stage_is_expanded_again_later() -> None:
    def staged(evaluator: MacroEvaluator) -> str:
        return f"'{evaluator.runtime_stage}'"

    found = run("@staged()", staged, stage="evaluating")
    assert found.text == "'evaluating'"
    assert found.is_time_dependent


def test_the_evaluator_gives_columns_with_types() -> None:
    def typed(evaluator: MacroEvaluator, relation: exp.Expression) -> list[str]:
        return [f"CAST({name} AS {type_.sql('spark')})" for name, type_ in evaluator.columns_to_types(relation).items()]

    found = run("@typed(db.t)", typed, columns_of=lambda name: {"a": "int"} if name == "db.t" else None)
    assert found.text == "CAST(a AS INT)"
    assert found.columns_used == {"db.t"}


def test_columns_that_are_not_looked_up_yet_have_a_stand_in() -> None:
    def names(evaluator: MacroEvaluator) -> list[str]:
        return list(evaluator.columns_to_types("t"))

    assert written("SELECT @names() FROM t", names) == "SELECT __columns_not_known_yet__ FROM t"


def test_columns_that_are_not_known_are_an_error() -> None:
    def names(evaluator: MacroEvaluator) -> list[str]:
        return list(evaluator.columns_to_types("t"))

    assert "`t`" in failure("@names()", names, columns_of=lambda _: None).message
