"""Every MODEL example of the documents Lamina is measured against, retyped, loads as written."""

from __future__ import annotations

from pathlib import Path

import pytest

from lamina.sql.header.document import read_document
from tests.unit.reading.reading import read

EXAMPLES = sorted((Path(__file__).parents[2] / "fixtures" / "seed_examples").glob("*.sql"))

# Examples that show only a header get a query whose columns the header names.
COLUMNS = (
    "event_date",
    "other_col",
    "region",
    "department",
    "ds",
    "id",
    "name",
    "first_name",
    "last_name",
    "price",
    "salary",
    "title",
    "updated_at",
)
QUERY = "SELECT " + ", ".join(f"CAST(NULL AS STRING) AS {name}" for name in COLUMNS) + " FROM raw_rows"


def test_the_examples_are_there():
    assert len(EXAMPLES) >= 38


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_loads(path: Path):
    text = path.read_text()
    document = read_document(text, path.name)
    is_header_only = document.query is None and "kind SEED" not in text
    (draft,) = read(f"{text}\n{QUERY}" if is_header_only else text, file=path.name, stem=path.stem)
    assert draft.model.location.file == path.name


def example(name: str, *, add_query: bool = True):
    text = next(path for path in EXAMPLES if path.stem == name).read_text()
    (draft,) = read(f"{text}\n{QUERY}" if add_query else text, stem=name)
    return draft


def test_a_header_without_a_name_takes_the_stem():
    draft = example("run_always")
    assert draft.name.to_text() == "run_always"
    assert draft.model.kind.name == "FULL"
    assert draft.model.run_despite_unchanged == "always"
    assert example("run_every_day").model.run_despite_unchanged == "24h"


def test_forward_only_stands_in_the_header_too():
    assert example("guide_forward_only", add_query=False).model.kind.policy.forward_only is True
    assert example("guide_time_range", add_query=False).model.kind.policy.forward_only is False


def test_double_quoted_words_are_names_in_expressions():
    assert example("unique_key_expression").model.kind.unique_key == ("COALESCE(`name`, '')",)


def test_several_merge_clauses_are_kept_apart():
    assert len(example("unique_key_when_matched_twice").model.kind.when_matched) == 2


def test_the_time_column_is_a_partition_unless_told_otherwise():
    assert example("time_column_name").model.partitioned_by == ("event_date",)
    assert example("partition_by_time_column_false").model.partitioned_by == ("other_col",)
    assert example("partition_composite").model.partitioned_by == ("region", "department")


def test_restatement_of_history_is_off_unless_enabled():
    assert example("scd_restatement_enabled").model.kind.policy.disable_restatement is False
    assert example("scd_restatement_disabled_again").model.kind.policy.disable_restatement is True


def test_declared_columns_of_a_seed_get_spark_types():
    columns = example("seed", add_query=False).model.columns
    assert [(column.name, column.type) for column in columns] == [
        ("id", "bigint"),
        ("item_id", "bigint"),
        ("event_date", "date"),
    ]
