from __future__ import annotations

import pytest

from lamina.errors import BadPropertyValue, Location
from lamina.sql.header.merge_clauses import (
    Assignment,
    Delete,
    MergeClause,
    UpdateAll,
    UpdateSome,
    clauses_to_spark,
    differs_when_repeated,
    read_merge_clauses,
)


def test_conditions_and_assignments_are_taken_apart() -> None:
    written = (
        "WHEN MATCHED AND CASE WHEN source.a THEN true END AND source.b IN (1, 2) THEN "
        "UPDATE SET target.a = coalesce(source.a, target.a), `B c` = source.b = 1, Target.d = CASE WHEN x THEN 1 END"
    )
    assert read_merge_clauses((written,)) == (
        MergeClause(
            condition="CASE WHEN source.a THEN true END AND source.b IN (1, 2)",
            action=UpdateSome(
                assignments=(
                    Assignment(column="a", value="coalesce(source.a, target.a)"),
                    Assignment(column="B c", value="source.b = 1"),
                    Assignment(column="d", value="CASE WHEN x THEN 1 END"),
                )
            ),
        ),
    )


def test_every_action_is_known() -> None:
    assert read_merge_clauses(
        (
            "when matched and source.gone then delete",
            "WHEN MATCHED AND x THEN UPDATE *",
            "WHEN MATCHED THEN UPDATE SET *",
        )
    ) == (
        MergeClause(condition="source.gone", action=Delete()),
        MergeClause(condition="x", action=UpdateAll()),
        MergeClause(condition=None, action=UpdateAll()),
    )
    assert read_merge_clauses(()) == ()


@pytest.mark.parametrize(
    "text",
    [
        "WHEN NOT MATCHED THEN INSERT *",
        "WHEN NOT MATCHED BY SOURCE THEN DELETE",
        "WHEN MATCHED BY SOURCE THEN DELETE",
        "WHEN MATCHED AND THEN DELETE",
        "WHEN MATCHED THEN INSERT *",
        "WHEN MATCHED THEN DELETE FROM x",
        "WHEN MATCHED THEN UPDATE SET",
        "WHEN MATCHED THEN UPDATE SET a",
        "WHEN MATCHED THEN UPDATE SET a =",
        "WHEN MATCHED THEN UPDATE SET a = 1,, b = 2",
        "WHEN MATCHED THEN UPDATE SET target.a.b = 1",
        "WHEN MATCHED THEN UPDATE SET source.a = 1",
        "WHEN MATCHED THEN UPDATE SET a = 1, target.A = 2",
        "WHEN MATCHED",
        "",
    ],
)
def test_other_clauses_are_refused(text: str) -> None:
    with pytest.raises(BadPropertyValue) as caught:
        read_merge_clauses((text,), Location(file="models/a.sql", line=3))
    assert caught.value.hint
    assert caught.value.location is not None
    assert caught.value.location.line == 3


def test_a_clause_that_never_applies_is_refused() -> None:
    with pytest.raises(BadPropertyValue, match="never apply"):
        read_merge_clauses(("WHEN MATCHED THEN DELETE", "WHEN MATCHED THEN UPDATE SET *"))


def test_clauses_of_other_dialects_become_sparks_and_times_keep_their_names() -> None:
    written = (
        'WHEN MATCHED AND target."at" < @end_dt AND source.n::int > 1 THEN UPDATE SET target."a b" = source.n::text',
        "WHEN MATCHED THEN DELETE",
    )
    assert clauses_to_spark(written, "duckdb") == (
        "WHEN MATCHED AND target.`at` < @end_dt AND CAST(source.n AS INT) > 1 THEN "
        "UPDATE SET target.`a b` = CAST(source.n AS STRING)",
        "WHEN MATCHED THEN DELETE",
    )
    assert clauses_to_spark(("when matched then update *",), "spark") == ("WHEN MATCHED THEN UPDATE SET *",)


@pytest.mark.parametrize(
    "texts",
    [
        (),
        ("WHEN MATCHED THEN UPDATE SET *",),
        ("WHEN MATCHED AND target.a < source.a THEN UPDATE SET *",),
        ("WHEN MATCHED AND target.a < source.a THEN UPDATE SET *", "WHEN MATCHED AND source.b THEN UPDATE SET *"),
        ("WHEN MATCHED THEN UPDATE SET target.a = source.a, b = SOURCE.`B`",),
        ("WHEN MATCHED AND target.a IS NULL THEN UPDATE SET a = source.a",),
        ("WHEN MATCHED AND source.c THEN UPDATE SET a = source.a", "WHEN MATCHED THEN UPDATE SET b = source.b"),
    ],
)
def test_what_only_takes_over_values_leaves_the_same_when_it_is_done_again(texts: tuple[str, ...]) -> None:
    assert not differs_when_repeated(texts)


@pytest.mark.parametrize(
    "texts",
    [
        ("WHEN MATCHED THEN UPDATE SET a = target.a + source.a",),
        ("WHEN MATCHED THEN UPDATE SET a = source.b",),
        ("WHEN MATCHED THEN UPDATE SET state = 'seen'",),
        ("WHEN MATCHED THEN DELETE",),
        ("WHEN MATCHED AND source.gone THEN DELETE",),
        ("WHEN MATCHED AND target.a < source.a THEN DELETE", "WHEN MATCHED THEN UPDATE SET *"),
        ("WHEN MATCHED AND target.a <> source.a THEN UPDATE SET a = source.a", "WHEN MATCHED THEN UPDATE SET *"),
    ],
    ids=["sum", "other column", "constant", "delete", "new row decides", "table decides", "another clause next"],
)
def test_what_changes_or_deletes_its_own_rows_differs_when_it_is_done_again(texts: tuple[str, ...]) -> None:
    assert differs_when_repeated(texts)
