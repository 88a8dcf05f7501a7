"""Every built-in audit on real rows: what passes, what fails, NULLs, conditions, odd names."""

from __future__ import annotations

import re

import pytest

from lamina.app.rendering.audits import audit_queries
from lamina.app.rendering.models import Relations
from lamina.spark.engine import SparkEngine
from lamina.timeline.interval import Instant
from tests.kit.audits import CASES, Case, builtin_sql, over
from tests.unit.reading.reading import read_one

pytest_plugins = ["tests.ports.conftest_engine"]

_COLUMN = re.compile(r"(`[^`]+`|\w+) ([\w(,)]+)(?:, |$)")


def literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
        return f"'{escaped}'"
    return str(value)


def relation(case: Case) -> str:
    """The rows of a case as a subquery."""
    columns = _COLUMN.findall(case.columns)
    nothing = ", ".join(f"CAST(NULL AS {type_}) AS {name}" for name, type_ in columns)
    selects = [f"SELECT {nothing} WHERE false"]
    for row in case.rows:
        pairs = zip(row, columns, strict=True)
        selects.append(
            "SELECT " + ", ".join(f"CAST({literal(value)} AS {type_}) AS {name}" for value, (name, type_) in pairs)
        )
    return f"({' UNION ALL '.join(selects)})"


@pytest.mark.parametrize("audit", sorted({case.audit for case in CASES}))
def test_an_audit_gives_the_rows_that_fail_and_no_others(engine: SparkEngine, audit: str) -> None:
    cases = [case for case in CASES if case.audit == audit]
    # One query for all cases of an audit: starting a job costs more than running it.
    counts = [
        f"SELECT {number} AS number, count(*) AS failing FROM "
        f"({over(builtin_sql(case.audit, case.arguments), relation(case))}) AS failures"
        for number, case in enumerate(cases)
    ]
    found = dict(engine.query(" UNION ALL ".join(counts), limit=None).rows)
    assert {str(case): found[number] for number, case in enumerate(cases)} == {
        str(case): case.failing for case in cases
    }


def test_failing_rows_have_the_columns_of_the_model_and_nothing_else(engine: SparkEngine) -> None:
    model = read_one(
        """
        MODEL (name shop.orders, kind FULL, audits (
            not_null(columns := "order id"),
            unique_values(columns := (`order id`)),
            sequential_values(column := n),
            z_score(column := n, threshold := 1),
            mutually_exclusive_ranges(lower_bound_column := n, upper_bound_column := n)
        ));
        SELECT `order id`, n FROM raw.orders
        """
    )
    rows = "(SELECT CAST(NULL AS int) AS `order id`, n FROM VALUES (3), (3), (9) AS t(n))"
    queries = audit_queries(model, model.audits, rows, Relations(models={}), None, Instant(0))
    failing = {query.name: engine.query(query.sql, limit=None) for query in queries}
    assert {tuple(column.name for column in found.columns) for found in failing.values()} == {("order id", "n")}
    # Which of the rows with the same value comes first is left to Spark.
    assert len(failing.pop("unique_values").rows) == 2
    assert {name: sorted(row[1] for row in found.rows) for name, found in failing.items()} == {
        "not_null": [3, 3, 9],
        "sequential_values": [3, 9],
        "z_score": [9],
        "mutually_exclusive_ranges": [],
    }


def test_an_audit_of_the_project_joins_the_rows_with_themselves(engine: SparkEngine) -> None:
    model = read_one(
        """
        MODEL (name shop.orders, kind FULL);
        SELECT 1 AS id, 2 AS parent;
        AUDIT (name has_parent);
        SELECT child.* FROM @this_model AS child LEFT ANTI JOIN @this_model ON child.parent = @this_model.id
        WHERE child.parent IS NOT NULL
        """
    )
    rows = "(SELECT * FROM VALUES (1, NULL), (2, 1), (3, 7) AS t(id, parent))"
    (query,) = audit_queries(model, model.audits, rows, Relations(models={}), None, Instant(0))
    assert engine.query(query.sql, limit=None).rows == ((3, 7),)
