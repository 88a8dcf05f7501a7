"""Every kind gives the same rows on every table format, whatever happens, and readers never see anything wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conformance.sessions import FORMATS_IN, PAIRS, SeenIn

pytestmark = pytest.mark.timeout(1500)
EPOCH = "1970-01-01T00:00:00.000Z"


def order(number: int, customer: str, day: str, amount: int) -> dict[str, Any]:
    return {"id": number, "customer": customer, "amount": amount, "day": day}


def plain(number: int, customer: str, day: str) -> dict[str, Any]:
    return {"id": number, "ts": f"{day}T05:00:00.000Z", "customer": customer}


FIRST = [order(1, "a", "2024-01-01", 10), order(2, "b", "2024-01-01", 20), order(3, "a", "2024-01-02", 30)]
THIRD_DAY = [order(4, "c", "2024-01-03", 40), order(5, "a", "2024-01-03", 5)]
LATE = [*FIRST[:2], order(3, "a", "2024-01-02", 31), order(6, "b", "2024-01-02", 1)]
FOURTH_DAY = order(7, "b", "2024-01-04", 7)

PLAIN = [plain(row["id"], row["customer"], row["day"]) for row in FIRST]
PLAIN_THIRD_DAY = [plain(row["id"], row["customer"], row["day"]) for row in THIRD_DAY]
PLAIN_LATE = [plain(row["id"], row["customer"], row["day"]) for row in LATE]

EARLY_MONTHS = [{"day": "2024-01-01", "events": 2}, {"day": "2024-01-02", "events": 1}]
MONTHS = [*EARLY_MONTHS, {"day": "2024-01-03", "events": 2}]

A, B, C = (
    {"customer": "a", "kind": "x", "total": 40, "last": "2024-01-02"},
    {"customer": "b", "total": 20, "last": "2024-01-01"},
    {"customer": "c", "kind": "x", "total": 40, "last": "2024-01-03"},
)
LATER_A = {**A, "total": 45, "last": "2024-01-03"}

APPENDED = [{"id": 1, "customer": "a"}, {"id": 2, "customer": "b"}, {"id": 3, "customer": "a"}]
APPENDED_LATER = [*APPENDED, {"id": 4, "customer": "c"}, {"id": 5, "customer": "a"}]

RUN = "2024-01-04T00:00:00.000Z"
TEA = {"id": 1, "name": "tea", "price": 3, "updated_at": "2024-01-01T00:00:00.000Z", "valid_from": EPOCH}
CAKE = {"id": 2, "name": "cake", "price": 5, "updated_at": "2024-01-01T00:00:00.000Z", "valid_from": EPOCH}
DEARER = {**TEA, "price": 4, "updated_at": "2024-01-03T08:00:00.000Z", "valid_from": "2024-01-03T08:00:00.000Z"}
PIE = {
    "id": 3,
    "name": "pie",
    "price": 6,
    "updated_at": "2024-01-03T09:00:00.000Z",
    "valid_from": "2024-01-03T09:00:00.000Z",
}
BY_TIME = [{**TEA, "valid_to": DEARER["valid_from"]}, DEARER, {**CAKE, "valid_to": RUN}, PIE]


def without_time(row: dict[str, Any], **changes: str) -> dict[str, Any]:
    return {**{key: value for key, value in row.items() if key != "updated_at"}, **changes}


BY_COLUMN = [
    without_time(TEA, valid_to=RUN),
    without_time(DEARER, valid_from=RUN),
    without_time(CAKE),
    without_time(PIE, valid_from=RUN),
]

EXPECTED: dict[str, dict[str, list[dict[str, Any]]]] = {
    "first load": {
        "daily": FIRST,
        "plain": PLAIN,
        "whole": [{"customer": "a", "total": 40}, {"customer": "b", "total": 20}],
        "adds": [A, B],
        "appends": APPENDED,
        "months": MONTHS,
        "by_time": [TEA, CAKE],
        "by_column": [without_time(TEA), without_time(CAKE)],
    },
    "next interval": {
        "daily": [*FIRST, *THIRD_DAY],
        "plain": [*PLAIN, *PLAIN_THIRD_DAY],
        "whole": [{"customer": "a", "total": 45}, {"customer": "b", "total": 20}, {"customer": "c", "total": 40}],
        "adds": [LATER_A, B, C],
        "appends": APPENDED_LATER,
        "months": MONTHS,
        "by_time": BY_TIME,
        "by_column": BY_COLUMN,
    },
}
EXPECTED["rerun"] = EXPECTED["first load"]
EXPECTED["restate"] = {
    **EXPECTED["next interval"],
    "daily": LATE,
    "plain": PLAIN_LATE,
    "whole": [{"customer": "a", "total": 41}, {"customer": "b", "total": 21}],
}
EXPECTED["failing"] = EXPECTED["restate"]
EXPECTED["two writers"] = {
    "daily": [*LATE, FOURTH_DAY],
    "plain": [*PLAIN_LATE, plain(7, "b", "2024-01-04")],
    "whole": [{"customer": "a", "total": 41}, {"customer": "b", "total": 28}],
    "adds": [LATER_A, {**B, "total": 27, "last": "2024-01-04"}, C],
    "appends": [*APPENDED_LATER, {"id": 7, "customer": "b"}],
    # January is replaced by what is left of it; nothing would be if no row of it had come.
    "months": [{"day": "2024-01-04", "events": 1}, {"day": "2024-02-01", "events": 1}],
    "by_time": BY_TIME,
    "by_column": BY_COLUMN,
}


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


@pytest.mark.parametrize(("sort", "table_format"), PAIRS)
@pytest.mark.parametrize("kind", EXPECTED["first load"])
@pytest.mark.parametrize("step", ["first load", "rerun", "next interval", "restate", "failing", "two writers"])
def test_the_rows_are_those_that_the_kind_promises(
    seen_in: SeenIn, step: str, kind: str, table_format: str, sort: str
) -> None:
    assert seen_in(sort)["steps"][step]["rows"][f"{kind}_{table_format}"] == in_order(EXPECTED[step][kind])


@pytest.mark.parametrize("sort", FORMATS_IN)
def test_each_step_answers_as_it_should(seen_in: SeenIn, sort: str) -> None:
    answers = {name: step["statuses"] for name, step in seen_in(sort)["steps"].items()}
    two = answers.pop("two writers")
    assert answers == {
        "first load": ["succeeded"],
        "rerun": ["nothing_to_do"],
        "next interval": ["succeeded"],
        "restate": ["succeeded"],
        "failing": ["failed"],
    }, {name: step["failed"] for name, step in seen_in(sort)["steps"].items()}
    # One finds nothing left to do, or each of them does a part.
    assert two in (["nothing_to_do", "succeeded"], ["succeeded", "succeeded"])


@pytest.mark.parametrize(("sort", "table_format"), PAIRS)
def test_a_failing_query_and_a_failing_audit_say_so(seen_in: SeenIn, table_format: str, sort: str) -> None:
    failed = seen_in(sort)["steps"]["failing"]["failed"]
    assert "`not_null(columns := (amount))` found 1 row" in failed[f"daily_{table_format}"]
    assert "boom" in failed[f"plain_{table_format}"]


@pytest.mark.parametrize("sort", FORMATS_IN)
def test_readers_never_see_an_error(seen_in: SeenIn, sort: str) -> None:
    assert seen_in(sort)["errors"] == []
    assert seen_in(sort)["reads"] > 50


@pytest.mark.parametrize(("sort", "table_format"), PAIRS)
@pytest.mark.parametrize("kind", EXPECTED["first load"])
def test_readers_see_what_was_before_a_step_or_what_is_after_it_and_nothing_else(
    seen_in: SeenIn, kind: str, table_format: str, sort: str
) -> None:
    steps = [in_order(step[kind]) for step in EXPECTED.values()]
    states = seen_in(sort)["states"][f"{kind}_{table_format}"]
    assert states
    assert [state for state in states if state not in steps] == []
