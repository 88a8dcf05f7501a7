"""Laws of expansion that hold for any text."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.errors import LaminaError, Location
from lamina.sql.fragment import Fragment
from lamina.sql.macros.expand import expand
from lamina.sql.macros.scope import MacroScope
from lamina.sql.macros.times import substitute_times

HERE = Location(file="a.sql", line=1, column=1)
TIMES = {"start_ds": "'2024-01-01'", "end_dt": "TIMESTAMP '2024-01-02 00:00:00+00:00'", "start_millis": "(-5)"}
VARIABLES = {"name": "v", "ids": [1, 2], "is_on": True}

words = st.sampled_from(
    [
        "SELECT",
        "a",
        "b.c",
        "FROM t",
        "WHERE",
        "AND",
        ",",
        "(x)",
        "1",
        "+",
        "'a @b'",
        "-- @c\n",
        "/* @d */",
        "`x@e`",
        "\n",
    ]
)
macros = st.sampled_from(
    [
        "@start_ds",
        "@end_dt",
        "@start_millis",
        "@name",
        "@{name}_x",
        "IN (@ids)",
        "@EACH([a, b], x -> x + @start_ds)",
        "@IF(@is_on, ds > @start_ds)",
        "@IF(NOT @is_on, x)",
        "@AND(a, @end_dt > b)",
        "@SAFE_DIV(a, @start_millis)",
    ]
)
deciding = st.sampled_from(["@IF(@start_ds > '2000', a, b)", "t_@{start_millis}", "@EVAL(@start_millis + 1)"])


def fragment(parts: list[str]) -> Fragment:
    return Fragment(text=" ".join(parts), location=HERE)


@given(st.text().filter(lambda text: "@" not in text))
def test_a_text_without_macros_expands_to_itself(text: str) -> None:
    found = expand(Fragment(text=text, location=HERE), MacroScope())
    assert found.text == text


@given(st.lists(words))
def test_a_text_whose_signs_are_quoted_expands_to_itself(parts: list[str]) -> None:
    assert expand(fragment(parts), MacroScope()).text == fragment(parts).text


@settings(deadline=None)
@given(st.lists(st.one_of(words, macros)))
def test_filling_in_times_later_gives_the_same_text(parts: list[str]) -> None:
    symbolic = expand(fragment(parts), MacroScope(variables=VARIABLES))
    direct = expand(fragment(parts), MacroScope(variables=VARIABLES, times=TIMES))
    assert not symbolic.is_time_dependent
    assert substitute_times(symbolic.text, "spark", TIMES) == direct.text
    assert symbolic.times_used == direct.times_used


@settings(deadline=None)
@given(st.lists(st.one_of(words, macros)), deciding, st.lists(st.one_of(words, macros)))
def test_a_time_that_decides_is_always_noticed(before: list[str], macro: str, after: list[str]) -> None:
    parts = [*before, macro, *after]
    assert expand(fragment(parts), MacroScope(variables=VARIABLES)).is_time_dependent
    assert expand(fragment(parts), MacroScope(variables=VARIABLES, times=TIMES)).is_time_dependent


@settings(deadline=None)
@given(st.lists(st.one_of(words, macros), min_size=1))
def test_every_character_has_a_place_in_the_file(parts: list[str]) -> None:
    source = fragment(parts)
    found = expand(source, MacroScope(variables=VARIABLES, times=TIMES))
    last = source.at(len(source.text))
    for offset in range(len(found.text) + 1):
        place = found.location_at(offset)
        assert (place.line, place.column) <= (last.line, last.column)


pieces = st.sampled_from(
    [
        *"@{}()[],'`\". \n1ax",
        "@@",
        ":=",
        "->",
        "--",
        "@x",
        "@{x}",
        "@IF(",
        "@EACH(",
        "@EVAL(",
        "@SQL(",
        "@'",
        "@DEF(",
        "@WHERE(",
        "@JOIN(",
        "@WITH(",
        "@VAR(",
        "@STAR(",
        "@UNION(",
        "@PIVOT(",
        "@AND(",
        "@REDUCE(",
        "@start_ds",
        "true",
        "false",
        "AND",
        "SELECT",
        "FROM",
        "AS",
        "IN",
        "*",
        "-",
        ";",
    ]
)


def problems_of(text: str) -> tuple[LaminaError, ...]:
    try:
        expand(Fragment(text=text, location=HERE), MacroScope(variables={"a": 1, "x": "y"}))
    except LaminaError as error:
        return error.problems
    return ()


@settings(deadline=None)
@given(st.lists(pieces, max_size=25).map("".join))
def test_whatever_is_written_is_expanded_or_reported_with_its_place(text: str) -> None:
    assert all(problem.location for problem in problems_of(text))
