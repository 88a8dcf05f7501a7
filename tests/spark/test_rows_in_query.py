"""Rows as part of a query."""

from __future__ import annotations

import json
from datetime import date

from lamina.spark.rows.in_query import _portions


def test_rows_are_cut_into_portions_that_hold_all_of_them_in_order() -> None:
    rows = [[number, "x" * 1000] for number in range(3000)]
    portions = list(_portions(rows, ["int", "string"]))
    assert len(portions) == 4
    assert [row["c0"] for portion in portions for row in json.loads(portion)] == list(range(3000))


def test_no_rows_are_one_empty_portion() -> None:
    assert list(_portions([], ["int"])) == ["[]"]


def test_values_travel_as_json_can_hold_them() -> None:
    types = ["date", "binary", "double", "double", "string"]
    (portion,) = _portions([[date(1970, 1, 2), b"\x00\xff", float("nan"), float("-inf"), None]], types)
    assert json.loads(portion) == [{"c0": 1, "c1": "AP8=", "c2": "NaN", "c3": "-Infinity"}]
