"""Audits read the rows that were written, not computed again; what they refuse, or what fails, changes nothing."""

from __future__ import annotations

import pytest

from tests.conformance.audited import KINDS, UNTOLD, regions_in, tables_in
from tests.conformance.sessions import FORMATS_IN, SeenIn

pytestmark = pytest.mark.timeout(900)
PASSED = [["same_rows", "passed"], ["not_null", "passed"]]
TABLES = [(sort, table) for sort, formats in FORMATS_IN.items() for table in tables_in(formats)]
REGIONS = [(sort, table) for sort, formats in FORMATS_IN.items() for table in regions_in(formats)]
ROWS = 20
DAYS = 3
ROWS_IN_THE_END = {
    # Every day's rows are kept, and a history keeps what they replace.
    **dict.fromkeys(("daily", "appended", "parted", "by_time", "by_column"), ROWS * DAYS),
    # Each day replaces the one before it.
    **dict.fromkeys(("whole", "keyed"), ROWS),
}


@pytest.mark.parametrize(("sort", "table"), TABLES)
@pytest.mark.parametrize("step", ["build", "run", "mended"])
def test_audits_see_the_rows_that_were_written(seen_in: SeenIn, step: str, table: str, sort: str) -> None:
    assert seen_in(sort)[step]["audits"][table] == PASSED
    assert seen_in(sort)[step]["errors"] == {}


@pytest.mark.parametrize(("sort", "table"), TABLES)
@pytest.mark.parametrize("step", ["build", "run", "mended"])
def test_audits_see_what_readers_will_see_and_of_time_what_is_processed(
    seen_in: SeenIn, step: str, table: str, sort: str
) -> None:
    shown = len(seen_in(sort)[step]["rows"][table])
    assert seen_in(sort)[step]["looked_at"][table] == (ROWS if table.startswith("daily_") else shown)


@pytest.mark.parametrize("sort", FORMATS_IN)
def test_rows_that_are_computed_again_would_be_seen(seen_in: SeenIn, sort: str) -> None:
    assert seen_in(sort)["computed anew"] == ROWS


@pytest.mark.parametrize(("sort", "table"), TABLES)
@pytest.mark.parametrize(
    ("step", "words"),
    [("failing query", "boom"), ("failing audit", "`not_null(columns := (id, token))` found 1 row")],
)
def test_what_fails_is_said_and_changes_nothing(seen_in: SeenIn, step: str, words: str, table: str, sort: str) -> None:
    assert words in seen_in(sort)[step]["errors"][table]
    assert seen_in(sort)[step]["rows"][table] == seen_in(sort)["run"]["rows"][table]


@pytest.mark.parametrize(("sort", "table"), TABLES)
def test_once_that_is_mended_the_same_time_is_processed(seen_in: SeenIn, table: str, sort: str) -> None:
    assert len(seen_in(sort)["mended"]["rows"][table]) == ROWS_IN_THE_END[table.rpartition("_")[0]]


@pytest.mark.parametrize(("sort", "table"), REGIONS)
def test_a_text_that_would_not_come_back_is_refused_before_it_is_shown(seen_in: SeenIn, table: str, sort: str) -> None:
    assert "`region` holds an empty text" in seen_in(sort)["failing query"]["errors"][table]
    assert seen_in(sort)["failing query"]["rows"][table] == seen_in(sort)["run"]["rows"][table]
    days = [{"day": f"2024-01-0{day}", "region": "eu", "id": 1} for day in (1, 2, 3)]
    assert seen_in(sort)["mended"]["rows"][table] == days


@pytest.mark.parametrize(("sort", "table"), [*TABLES, *REGIONS])
def test_rows_are_counted_also_where_spark_does_not_tell_what_it_measured(
    seen_in: SeenIn, table: str, sort: str
) -> None:
    # A history is written as a whole on parquet: with all that came before.
    grown = ROWS if table in {"by_time_parquet", "by_column_parquet"} else 0
    assert seen_in(sort)[UNTOLD]["counts"][table] == seen_in(sort)["run"]["counts"][table] + grown


def test_every_kind_is_among_them() -> None:
    assert set(KINDS) == set(ROWS_IN_THE_END)
