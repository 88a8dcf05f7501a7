"""A batch of many days writes a file for each, in every format; a child reads the days of its window."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.files import DAYS, TABLES
from tests.conformance.project import FORMATS

pytestmark = pytest.mark.timeout(900)


@pytest.mark.parametrize("table", TABLES)
def test_a_batch_of_many_days_writes_a_file_for_each(seen: dict[str, Any], table: str) -> None:
    assert seen["build"]["errors"] == seen["run"]["errors"] == []
    assert seen["build"]["files"][table] == [DAYS, 10 * DAYS]
    assert seen["run"]["files"][table] == [2 * DAYS, 20 * DAYS]


@pytest.mark.parametrize("table_format", FORMATS)
def test_a_child_sees_all_rows_of_its_days(seen: dict[str, Any], table_format: str) -> None:
    assert seen["children"][table_format] == [10, 26 * 10]
