"""Statements that get lost, of every kind in every format: readers see each day once, as a whole or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.faults import LOSSES, TABLES
from tests.conformance.test_kills import expected

pytestmark = pytest.mark.timeout(1500 + 120 * len(LOSSES))


def in_order(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(str(sorted(row.items())) for row in rows)


@pytest.mark.parametrize("number", range(len(LOSSES)))
@pytest.mark.parametrize("table", TABLES)
def test_a_lost_statement_neither_loses_nor_doubles_a_row(seen: Any, table: str, number: int) -> None:
    name = table.rpartition("_")[0]
    before, after = (in_order(expected(days)[name]) for days in (number + 1, number + 2))
    *during, last = (in_order(shown[table]) for shown in seen[number]["shown"])
    assert last == after
    assert all(rows in (before, after) for rows in during)


@pytest.mark.parametrize("number", range(len(LOSSES)))
def test_statements_got_lost_and_nothing_was_left_to_do(seen: Any, number: int) -> None:
    day, loss = seen[number], LOSSES[number]
    # Few kinds need more than four statements.
    least = len(TABLES) if loss.statement == 0 else 1
    assert sum(1 for count in day["lost"].values() if count) >= least
    assert day["ends"][-1] in {"succeeded", "nothing_to_do"}
    assert day["again"] == "nothing_to_do"
