"""One project with every kind in every table format, and sources that a test can change as it likes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FORMATS = ("parquet", "delta", "iceberg")

Event = tuple[int, str, str, int | None]
"""Number, customer, day, amount."""
Product = tuple[int, str, int, str]
"""Number, name, price, when it was changed."""

NO_EVENTS = "SELECT CAST(0 AS INT) AS id, '' AS customer, DATE'2020-01-01' AS day, 0 AS amount WHERE false"
NO_PRODUCTS = "SELECT CAST(0 AS INT) AS id, '' AS name, 0 AS price, TIMESTAMP'2020-01-01' AS updated_at WHERE false"

MODELS = {
    # Audited before it is shown, partitioned by a date that is written as text.
    "daily": (
        "kind INCREMENTAL_BY_TIME_RANGE (time_column day), audits (not_null(columns := (amount)))",
        "SELECT id, customer, amount, CAST(day AS STRING) AS day FROM raw.events "
        "WHERE day BETWEEN @start_date AND @end_date",
    ),
    # Nothing holds it back; partitioned by the day of a timestamp.
    "plain": (
        "kind INCREMENTAL_BY_TIME_RANGE (time_column ts)",
        "SELECT id, CAST(day AS TIMESTAMP) + INTERVAL 5 HOURS AS ts, IF(customer = 'boom', CAST(raise_error('boom') "
        "AS STRING), customer) AS customer FROM raw.events WHERE day BETWEEN @start_date AND @end_date",
    ),
    "whole": ("kind FULL", "SELECT customer, SUM(amount) AS total FROM {schema}.daily_{f} GROUP BY customer"),
    # What it adds would be added twice if a batch were applied twice.
    "adds": (
        "kind INCREMENTAL_BY_UNIQUE_KEY (unique_key (customer, COALESCE(kind, '')), when_matched ("
        "WHEN MATCHED AND source.total = 0 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET target.total = target.total + source.total, target.last = source.last))",
        "SELECT customer, IF(customer = 'b', NULL, 'x') AS kind, SUM(amount) AS total, MAX(day) AS last "
        "FROM raw.events WHERE day BETWEEN @start_date AND @end_date GROUP BY customer",
    ),
    "appends": (
        "kind INCREMENTAL_UNMANAGED",
        "SELECT id, customer FROM raw.events WHERE day BETWEEN @start_date AND @end_date",
    ),
    "months": (
        "kind INCREMENTAL_BY_PARTITION, partitioned_by (months(day))",
        "SELECT day, COUNT(*) AS events FROM raw.events GROUP BY day",
    ),
    "by_time": (
        "kind SCD_TYPE_2_BY_TIME (unique_key id, invalidate_hard_deletes true)",
        "SELECT id, name, price, updated_at FROM raw.products",
    ),
    "by_column": (
        "kind SCD_TYPE_2_BY_COLUMN (unique_key id, columns [name, price])",
        "SELECT id, name, price FROM raw.products",
    ),
}


def write_project(
    folder: Path, spark: str, schema: str, formats: tuple[str, ...] = FORMATS, names: tuple[str, ...] = ()
) -> None:
    """The files of the project, whose schema nobody else uses on the server; with `names` only these models."""
    (folder / "models").mkdir(parents=True)
    (folder / "lamina.yaml").write_text(
        f"name: {schema}\nspark: {{{spark}}}\ndefaults: {{start: 2024-01-01}}\nconcurrency: 2\n"
    )
    for name in names or tuple(MODELS):
        header, query = MODELS[name]
        for table_format in formats:
            text = f"MODEL (name {schema}.{name}_{table_format}, table_format {table_format}, {header});\n{query}\n"
            text = text.replace("{f}", table_format).replace("{schema}", schema)
            (folder / "models" / f"{name}_{table_format}.sql").write_text(text)


def set_sources(spark: Any, events: list[Event], products: list[Product] | None = None) -> None:
    """The sources are views, so that changing them costs nothing."""
    spark.sql("CREATE SCHEMA IF NOT EXISTS raw")
    rows = [
        f"SELECT {number}, '{customer}', DATE'{day}', {'NULL' if amount is None else amount}"
        for number, customer, day, amount in events
    ]
    spark.sql(f"CREATE OR REPLACE VIEW raw.events AS {' UNION ALL '.join([NO_EVENTS, *rows])}")
    rows = [f"SELECT {number}, '{name}', {price}, TIMESTAMP'{at}'" for number, name, price, at in products or []]
    spark.sql(f"CREATE OR REPLACE VIEW raw.products AS {' UNION ALL '.join([NO_PRODUCTS, *rows])}")


def rows_shown(spark: Any, schema: str, tables: list[str]) -> dict[str, list[dict[str, Any]]]:
    """What readers of every table see, in one statement; columns that are NULL are left out."""
    texts = [f"SELECT '{table}' AS name, to_json(struct(*)) AS row FROM {schema}.{table}" for table in tables]
    found: dict[str, list[dict[str, Any]]] = {table: [] for table in tables}
    for name, row in spark.sql(" UNION ALL ".join(texts)).collect():
        found[name].append(json.loads(row))
    return {name: sorted(rows, key=lambda row: json.dumps(row, sort_keys=True)) for name, rows in found.items()}
