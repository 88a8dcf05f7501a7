"""What is said about missing columns, held against Spark: a query that Spark analyses misses nothing."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator

import pytest

from lamina.errors import AnalysisFailed, QueryFailed
from lamina.spark.engine import SparkEngine
from lamina.sql.lineage.missing_columns import ColumnFindings, find_missing_columns
from tests.kit.columns import RIGHT, SCHEMAS, VIEWS, WRONG

pytest_plugins = ["tests.ports.conftest_engine"]


def names_found(found: ColumnFindings) -> list[str]:
    return [each.written for each in found.missing]


def plain(names: Iterable[str]) -> set[str]:
    """The names that can be asked for without backticks: nothing is said about other ones."""
    return {name.lower() for name in names if re.fullmatch(r"\w+", name)}


def analyse(engine: SparkEngine, query: str) -> list[str] | None:
    """The columns that Spark finds; None when it refuses the query."""
    try:
        return [str(name) for name in engine.frame(query).columns]
    except (AnalysisFailed, QueryFailed):
        return None


@pytest.fixture
def tables(engine: SparkEngine) -> Iterator[SparkEngine]:
    for view in VIEWS:
        engine.frame(view)
    yield engine
    # The session is that of other tests as well.
    for name in SCHEMAS:
        engine.frame(f"DROP VIEW {name}")


def test_nothing_is_missed_by_a_query_that_spark_analyses(tables: SparkEngine) -> None:
    refused = [query for query in RIGHT if analyse(tables, query) is None]
    assert refused == []
    wrong = {query: missed for query in RIGHT if (missed := names_found(find_missing_columns(query, "spark", SCHEMAS)))}
    assert wrong == {}


def test_columns_of_a_query_are_those_that_spark_gives(tables: SparkEngine) -> None:
    for query in RIGHT[::3]:
        columns = find_missing_columns(query, "spark", SCHEMAS).columns
        if columns is not None:
            given = analyse(tables, query) or []
            assert plain(columns) == plain(given), query


def test_what_is_missing_is_found_and_refused_by_spark_too(tables: SparkEngine) -> None:
    for query, missing in WRONG.items():
        assert analyse(tables, query) is None, query
        assert names_found(find_missing_columns(query, "spark", SCHEMAS))[-1].endswith(missing), query


def test_no_query_that_spark_analyses_is_refused_whatever_its_names_are(tables: SparkEngine) -> None:
    """Queries of the list above with names put in each other's places."""
    chance = random.Random(20240101)
    names = ["id", "k", "s", "xs", "m", "T2", "v", "t", "u", "x", "y", "f", "a", "b", "c", "n"]
    found = agreed = 0
    for _ in range(250):
        words = re.split(r"(\b\w+\b)", chance.choice(RIGHT))
        places = [index for index, word in enumerate(words) if word in names]
        for index in chance.sample(places, k=min(len(places), chance.choice([1, 1, 2]))):
            words[index] = chance.choice(names)
        query = "".join(words)
        findings = find_missing_columns(query, "spark", SCHEMAS)
        if not findings.missing and findings.columns is None:
            continue
        given = analyse(tables, query)
        if findings.missing:
            assert given is None, (query, names_found(findings))
            found += 1
        elif given is not None:
            assert plain(findings.columns or ()) == plain(given), query
            agreed += 1
    assert found > 40
    assert agreed > 20
