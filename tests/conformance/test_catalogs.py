"""Models may live in other catalogs than Spark's own; what a catalog cannot hold is said before anything is built."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.timeout(600)


@pytest.mark.parametrize(
    ("step", "status", "amounts"),
    [
        ("first", "succeeded", [1, 2]),
        ("again", "nothing_to_do", [1, 2]),
        ("next", "succeeded", [1, 2, 3]),
        ("dev", "succeeded", [10, 20, 30]),
    ],
)
def test_a_table_in_a_catalog_of_its_own_is_built_like_any_other(
    seen: dict[str, Any], step: str, status: str, amounts: list[int]
) -> None:
    assert seen[step] == {
        "status": status,
        "rows": [[number, amount] for number, amount in enumerate(amounts, 1)],
        "totals": [sum(amounts), sum(amounts)],
        "errors": [],
    }


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("no views", "catalog `files` has no views"),
        ("wrong format", "catalog `store` holds tables of the format `iceberg` alone, not parquet"),
        ("no catalog", "Spark has no catalog `nowhere`"),
    ],
)
def test_what_a_catalog_cannot_hold_is_refused_before_anything_is_built(
    seen: dict[str, Any], case: str, words: str
) -> None:
    (error,) = seen[case]
    assert error["code"] == "LAM-PLAN-012"
    assert words in error["message"]
