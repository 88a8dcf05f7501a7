"""Where the words of a text come from that was made of a part of a file."""

from __future__ import annotations

import pytest

from lamina.errors import Location
from lamina.sql.fragment import Fragment
from lamina.sql.places import place_of
from lamina.sql.render import resolve_tables, wrap_time_filter


def written(text: str, line: int = 5) -> Fragment:
    return Fragment(text=text, location=Location(file="models/m.sql", line=line, column=1))


def found(text: str, made: str, word: str) -> tuple[int | None, int | None]:
    place = place_of(written(text), made, made.index(word))
    assert place.file == "models/m.sql"
    return place.line, place.column


def test_a_text_that_was_left_alone_is_its_own_place() -> None:
    assert found("SELECT\n  a,\n  bad\nFROM t", "SELECT\n  a,\n  bad\nFROM t", "bad") == (7, 3)


def test_a_place_is_found_behind_what_macros_made() -> None:
    text = "SELECT\n  @EACH([a, b], c -> SUM(c) AS sum_@{c}),\n  bad,\n  c\nFROM t"
    made = "SELECT\n  SUM(a) AS sum_a, SUM(b) AS sum_b,\n  bad,\n  c\nFROM t"
    assert found(text, made, "bad") == (7, 3)


def test_what_a_macro_made_stands_where_the_macro_does() -> None:
    text = "SELECT a,\n  @money(x) AS y\nFROM t"
    assert found(text, "SELECT a,\n  CAST(wrong(x) AS DECIMAL) AS y\nFROM t", "wrong") == (6, 3)


def test_a_column_that_a_macro_made_stands_where_the_macro_does() -> None:
    assert found("SELECT\n  @names()\nFROM t", "SELECT\n  id, bad\nFROM t", "bad") == (6, 3)
    assert found("SELECT a\nFROM t\n@FILTER", "SELECT a\nFROM t\nWHERE bad > 1", "bad") == (7, 1)


@pytest.mark.parametrize("word", ["bad", "worse"])
def test_a_query_around_it_and_other_tables_in_it_change_no_places(word: str) -> None:
    text = "SELECT\n  o.bad,\n  ds\nFROM shop.orders AS o\nWHERE worse(o.ds)"
    made = wrap_time_filter(
        resolve_tables(text, "spark", {"shop.orders": "(SELECT `ds`, `bad` FROM `g`.`t__1`)"}), "`ds` >= '2024-01-01'"
    )
    wanted = {"bad": (6, 5), "worse": (9, 7)}
    offset = made.index(f"o.{word}") + 2 if word == "bad" else made.index(word)
    place = place_of(written(text), made, offset)
    assert (place.line, place.column) == wanted[word]


def test_what_cannot_be_found_is_at_the_query() -> None:
    assert found("SELECT 1", "completely different", "different") == (5, 1)
    assert place_of(written(""), "x", 0).line == 5
    assert place_of(written("SELECT 1"), "", 0).line == 5
