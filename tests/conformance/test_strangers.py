"""What others do to Lamina's tables is refused, said, and mended without loss; housekeeping does no harm."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit.told import told

pytestmark = pytest.mark.timeout(1200)
DELTA = ("daily_delta", "plain_delta")
ICEBERG = ("daily_iceberg", "plain_iceberg")


@pytest.fixture(scope="module")
def steps(server: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("strangers") / "shop"
    found: dict[str, Any] = told("-m", "tests.conformance.strangers", str(folder), server)
    return found


@pytest.mark.parametrize("table", DELTA)
def test_a_constraint_that_refuses_rows_leaves_what_was_shown(steps: dict[str, Any], table: str) -> None:
    assert steps["refused"]["ids"][table] == [1, 2]
    assert "CHECK constraint small" in steps["refused"]["errors"][table]["message"]


@pytest.mark.parametrize("table", ICEBERG)
def test_rows_that_somebody_else_wrote_are_not_taken_for_the_models(steps: dict[str, Any], table: str) -> None:
    error = steps["refused"]["errors"][table]
    assert error["code"] == "LAM-SPARK-013"
    assert "changed by something other than Lamina" in error["message"]
    assert "set_current_snapshot" in error["hint"]
    # Their row is seen by whoever reads the table, and goes with the mending.
    assert sorted(set(steps["refused"]["ids"][table])) == [1, 2]


@pytest.mark.parametrize("table", [*DELTA, *ICEBERG])
def test_once_that_is_mended_the_next_command_goes_on(steps: dict[str, Any], table: str) -> None:
    assert steps["mended"]["status"] == "succeeded"
    assert steps["mended"]["ids"][table] == [1, 2, 3]


@pytest.mark.parametrize("table", [*DELTA, *ICEBERG])
def test_tables_may_be_compacted_and_old_snapshots_removed(steps: dict[str, Any], table: str) -> None:
    assert steps["kept small"]["status"] == "succeeded"
    assert steps["kept small"]["ids"][table] == [1, 2, 3, 4]
