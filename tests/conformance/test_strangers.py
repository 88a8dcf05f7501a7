"""What others do to Lamina's tables is refused, said, and mended without loss; housekeeping does no harm."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.timeout(1200)
DELTA = ("daily_delta", "plain_delta")
ICEBERG = ("daily_iceberg", "plain_iceberg")


@pytest.mark.parametrize("table", DELTA)
def test_a_constraint_that_refuses_rows_leaves_what_was_shown(seen: dict[str, Any], table: str) -> None:
    assert seen["refused"]["ids"][table] == [1, 2]
    assert "CHECK constraint small" in seen["refused"]["errors"][table]["message"]


@pytest.mark.parametrize("table", ICEBERG)
def test_rows_that_somebody_else_wrote_are_not_taken_for_the_models(seen: dict[str, Any], table: str) -> None:
    error = seen["refused"]["errors"][table]
    assert error["code"] == "LAM-SPARK-013"
    assert "changed by something other than Lamina" in error["message"]
    assert "set_current_snapshot" in error["hint"]
    # Their row is seen by whoever reads the table, and goes with the mending.
    assert sorted(set(seen["refused"]["ids"][table])) == [1, 2]


@pytest.mark.parametrize("table", [*DELTA, *ICEBERG])
def test_once_that_is_mended_the_next_command_goes_on(seen: dict[str, Any], table: str) -> None:
    assert seen["mended"]["status"] == "succeeded"
    assert seen["mended"]["ids"][table] == [1, 2, 3]


@pytest.mark.parametrize("table", [*DELTA, *ICEBERG])
def test_tables_may_be_compacted_and_old_snapshots_removed(seen: dict[str, Any], table: str) -> None:
    assert seen["kept small"]["status"] == "succeeded"
    assert seen["kept small"]["ids"][table] == [1, 2, 3, 4]
