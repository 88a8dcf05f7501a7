"""A server's folders that are gone are told before Spark reads them as empty, and brought back."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.timeout(600)
GONE = [["LAM-SPARK-023", "vanish.days"]]


def test_a_partition_that_is_gone_is_told_to_whoever_would_read_it(seen: dict[str, Any]) -> None:
    assert seen["first"] == "succeeded"
    assert (seen["query"], seen["total"]) == (GONE, GONE)
    (fault,) = seen["faults"]
    assert "ds=2024-01-02` is not there" in fault


def test_who_reads_other_partitions_goes_on(seen: dict[str, Any]) -> None:
    assert seen["later"] == "succeeded"


def test_a_repair_brings_it_back(seen: dict[str, Any]) -> None:
    assert seen["repair"]["vanish.days"] == "repaired"
    assert seen["again"] in {"succeeded", "nothing_to_do"}
    assert seen["rows"] == [[4, 4]]


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_tables_with_a_history_are_told_and_brought_back(seen: dict[str, Any], table_format: str) -> None:
    told = seen["lakes"][table_format]
    assert len(told.pop("faults")) == 1
    assert told == {
        "first": "succeeded",
        "repair": ["repaired"],
        "force": "succeeded",
        "again": "nothing_to_do",
        "rows": 3,
    }
