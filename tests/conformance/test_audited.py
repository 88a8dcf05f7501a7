"""Audits read the rows that were written, not computed again; what they refuse, or what fails, changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.audited import KINDS, REGIONS, TABLES, UNTOLD

pytestmark = pytest.mark.timeout(900)
PASSED = [["same_rows", "passed"], ["not_null", "passed"]]
ROWS = 20
DAYS = 3
ROWS_IN_THE_END = {
    # Every day's rows are kept, and a history keeps what they replace.
    **dict.fromkeys(("daily", "appended", "parted", "by_time", "by_column"), ROWS * DAYS),
    # Each day replaces the one before it.
    **dict.fromkeys(("whole", "keyed"), ROWS),
}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("step", ["build", "run", "mended"])
def test_audits_see_the_rows_that_were_written(seen: dict[str, Any], step: str, table: str) -> None:
    assert seen[step]["audits"][table] == PASSED
    assert seen[step]["errors"] == {}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("step", ["build", "run", "mended"])
def test_audits_see_what_readers_will_see_and_of_time_what_is_processed(
    seen: dict[str, Any], step: str, table: str
) -> None:
    shown = len(seen[step]["rows"][table])
    assert seen[step]["looked_at"][table] == (ROWS if table.startswith("daily_") else shown)


def test_rows_that_are_computed_again_would_be_seen(seen: dict[str, Any]) -> None:
    assert seen["computed anew"] == ROWS


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(
    ("step", "words"),
    [("failing query", "boom"), ("failing audit", "`not_null(columns := (id, token))` found 1 row")],
)
def test_what_fails_is_said_and_changes_nothing(seen: dict[str, Any], step: str, words: str, table: str) -> None:
    assert words in seen[step]["errors"][table]
    assert seen[step]["rows"][table] == seen["run"]["rows"][table]


@pytest.mark.parametrize("table", TABLES)
def test_once_that_is_mended_the_same_time_is_processed(seen: dict[str, Any], table: str) -> None:
    assert len(seen["mended"]["rows"][table]) == ROWS_IN_THE_END[table.rpartition("_")[0]]


@pytest.mark.parametrize("table", REGIONS)
def test_a_text_that_would_not_come_back_is_refused_before_it_is_shown(seen: dict[str, Any], table: str) -> None:
    assert "`region` holds an empty text" in seen["failing query"]["errors"][table]
    assert seen["failing query"]["rows"][table] == seen["run"]["rows"][table]
    days = [{"day": f"2024-01-0{day}", "region": "eu", "id": 1} for day in (1, 2, 3)]
    assert seen["mended"]["rows"][table] == days


@pytest.mark.parametrize("table", [*TABLES, *REGIONS])
def test_rows_are_counted_also_where_spark_does_not_tell_what_it_measured(seen: dict[str, Any], table: str) -> None:
    # A history is written as a whole on parquet: with all that came before.
    grown = ROWS if table in {"by_time_parquet", "by_column_parquet"} else 0
    assert seen[UNTOLD]["counts"][table] == seen["run"]["counts"][table] + grown


def test_every_kind_is_among_them() -> None:
    assert set(KINDS) == set(ROWS_IN_THE_END)
