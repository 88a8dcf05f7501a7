"""Columns that come and go: nothing is lost unless the model says so."""

from __future__ import annotations

import pytest

from tests.conformance.sessions import PAIRS, SeenIn

pytestmark = pytest.mark.timeout(900)
BEFORE = {"id": 1, "a": "x", "day": "2024-01-01"}


@pytest.mark.parametrize(("sort", "table_format"), PAIRS)
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("keyed", "the table has `a`, which the output does not have any more"),
        ("strict", "the output has `b`, which the table does not have"),
    ],
)
def test_what_the_model_does_not_allow_is_refused_and_changes_nothing(
    seen_in: SeenIn, name: str, words: str, table_format: str, sort: str
) -> None:
    seen, table = seen_in(sort), f"{name}_{table_format}"
    assert seen["first"]["errors"] == {}
    assert seen["then"]["errors"][table] == words
    assert seen["then"]["rows"][table] == seen["first"]["rows"][table] == [BEFORE]


@pytest.mark.parametrize(("sort", "table_format"), PAIRS)
def test_columns_that_are_ignored_leave_the_table_as_it_is(seen_in: SeenIn, table_format: str, sort: str) -> None:
    seen = seen_in(sort)
    table = f"fixed_{table_format}"
    assert set(seen["then"]["columns"][table]) == {"id", "a", "day"}
    assert seen["then"]["rows"][table] == [BEFORE, {"id": 2, "day": "2024-01-02"}]


@pytest.mark.parametrize(("sort", "table_format"), PAIRS)
def test_columns_that_may_change_are_told(seen_in: SeenIn, table_format: str, sort: str) -> None:
    seen = seen_in(sort)
    table = f"told_{table_format}"
    assert seen["then"]["columns"][table] == ["id", "b", "day"]
    assert seen["then"]["rows"][table] == [
        {"id": 2, "b": "y", "day": "2024-01-02"},
        {"id": 1, "day": "2024-01-01"},
    ]
    said = [message for code, node, message in seen["then"]["warnings"] if code == "LAM-WARN-023" and table in node]
    assert len(said) == 2
    assert "column `a` went away" in said[0]
    assert "column `b` came" in said[1]
