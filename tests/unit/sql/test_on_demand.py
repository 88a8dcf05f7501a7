"""A text that is not looked into gets the answer that looking would have given."""

from __future__ import annotations

import pytest

from lamina.sql import on_demand, session_statements, time_filters
from lamina.sql.macros.times import TIME_NAMES

CLOCKS = (
    "current_date",
    "CURRENT_DATE()",
    "current_timestamp()",
    "current_time",
    "localtimestamp",
    "now()",
    "NOW ( )",
    "curdate()",
    "unix_timestamp()",
)
TEXTS = (
    *(f"SELECT {clock} AS x" for clock in CLOCKS),
    *(f"SELECT '{clock}' AS x" for clock in CLOCKS),
    *(f"SELECT @{name}" for name in sorted(TIME_NAMES)),
    *(f"SELECT @{{{name.upper()}}}, ${name}, :{name}" for name in sorted(TIME_NAMES)),
    *(f"SELECT 1 -- @{name}" for name in sorted(TIME_NAMES)),
    "SELECT started_at, end_of FROM knowing",
    "SELECT 1",
    "",
)
STATEMENTS = (
    "CREATE OR REPLACE TEMPORARY VIEW v USING csv OPTIONS (path 'x')",
    "create temp view v as select 1",
    "/* a */ CREATE TEMP VIEW v (a) AS SELECT 1",
    "CACHE LAZY TABLE v AS SELECT 1",
    "cache table v",
    "SET x = 1",
    "INSERT INTO t SELECT 1",
)


@pytest.mark.parametrize("dialect", ["spark", "duckdb"])
@pytest.mark.parametrize("text", TEXTS)
def test_times_in_a_text(text: str, dialect: str):
    assert on_demand.names_interval(text, dialect) == time_filters.names_interval(text, dialect)
    assert on_demand.names_clock(text, dialect) == time_filters.names_clock(text, dialect)


@pytest.mark.parametrize("text", STATEMENTS)
def test_what_statements_read(text: str):
    assert on_demand.reads_unseen(text) == session_statements.reads_unseen(text)


def test_no_clauses_differ_in_nothing():
    assert not on_demand.differs_when_repeated(())
    assert on_demand.differs_when_repeated(("WHEN MATCHED THEN UPDATE SET target.n = target.n + source.n",))
