"""A batch beside which files of its table are rewritten is done once more, and its rows are there once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.maintained import TABLES

pytestmark = pytest.mark.timeout(1200)
# Delta lets an append and an OPTIMIZE both through.
CONFLICTING = [name for name in TABLES if name != "appended_delta"]


def expected(table: str, days: int) -> list[Any]:
    ids = range(1, days + 1)
    return sorted(sum(ids[first::2]) for first in (0, 1)) if table.startswith("keyed") else list(ids)


def shown(seen: dict[str, Any], step: str, table: str) -> list[Any]:
    return sorted(row["total" if table.startswith("keyed") else "id"] for row in seen[step]["rows"][table])


@pytest.mark.parametrize("table", CONFLICTING)
def test_the_table_refused_the_first_try(seen: dict[str, Any], table: str) -> None:
    assert seen["changes"][table] == 2


@pytest.mark.parametrize("table", TABLES)
def test_the_batch_is_done_once_more_and_its_rows_are_there_once(seen: dict[str, Any], table: str) -> None:
    assert (seen["maintained"]["status"], seen["maintained"]["errors"]) == ("succeeded", {})
    assert shown(seen, "maintained", table) == expected(table, 3)


@pytest.mark.parametrize("table", TABLES)
def test_later_batches_go_on_from_there(seen: dict[str, Any], table: str) -> None:
    assert seen["after"]["status"] == "succeeded"
    assert shown(seen, "after", table) == expected(table, 4)
