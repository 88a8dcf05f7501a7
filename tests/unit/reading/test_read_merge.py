"""`when_matched` and `merge_filter` are read with the model: macros expanded, Spark's SQL, wrong clauses refused."""

from __future__ import annotations

import pytest

from lamina.graph.kinds import IncrementalByUniqueKey
from tests.unit.reading.reading import problem, read_one


def written(properties: str, dialect: str = "spark") -> str:
    kind = f"INCREMENTAL_BY_UNIQUE_KEY (unique_key id, {properties})"
    return f"MODEL (name shop.t, dialect {dialect}, kind {kind});\nSELECT id, n FROM raw.t"


def kind_of(properties: str, dialect: str = "spark") -> IncrementalByUniqueKey:
    kind = read_one(written(properties, dialect), variables={"least": 3, "column": "n"}).kind
    assert isinstance(kind, IncrementalByUniqueKey)
    return kind


def test_variables_are_filled_in_and_times_wait_for_the_run():
    kind = kind_of(
        "when_matched (WHEN MATCHED AND source.n > @least AND target.ds < @start_ds THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET target.@{column} = source.n + @least), merge_filter target.ds >= @end_ds - @least"
    )
    assert kind.when_matched == (
        "WHEN MATCHED AND source.n > 3 AND target.ds < @start_ds THEN DELETE",
        "WHEN MATCHED THEN UPDATE SET target.`n` = source.n + 3",
    )
    assert kind.merge_filter == "target.ds >= @end_ds - 3"


def test_other_dialects_are_translated():
    kind = kind_of(
        'when_matched (WHEN MATCHED THEN UPDATE SET target."n" = source.n::int), '
        "merge_filter source.a::text = target.b",
        "duckdb",
    )
    assert kind.when_matched == ("WHEN MATCHED THEN UPDATE SET target.`n` = CAST(source.n AS INT)",)
    assert kind.merge_filter == "CAST(source.a AS STRING) = target.b"


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ("when_matched (WHEN NOT MATCHED THEN INSERT *)", "is not a clause of `when_matched`"),
        ("when_matched (WHEN MATCHED AND source.ds < @start_ds THEN INSERT *)", "is not a clause of `when_matched`"),
        ("when_matched (WHEN MATCHED THEN DELETE WHEN MATCHED THEN UPDATE SET *)", "has no condition"),
        ("merge_filter @IF(@start_ds > '2024-01-01', a = b, c = d)", "asks a macro about time"),
        ("merge_filter source.n > @nothing", "nothing"),
    ],
)
def test_what_cannot_be_a_clause_is_refused_with_its_place(properties: str, message: str):
    found = problem(written(properties))
    assert message in found.message
    assert found.location is not None
    assert found.location.line == 1


def test_partitions_may_be_made_of_the_columns_of_validity():
    model = read_one(
        "MODEL (name shop.t, kind SCD_TYPE_2_BY_TIME (unique_key id), partitioned_by valid_to);\n"
        "SELECT id, updated_at FROM raw.t"
    )
    assert model.partitioned_by == ("valid_to",)
    assert (
        "names `valid_too`"
        in problem(
            "MODEL (name shop.t, kind SCD_TYPE_2_BY_TIME (unique_key id), partitioned_by valid_too);\n"
            "SELECT id, updated_at FROM raw.t"
        ).message
    )
