"""Writes docs/reference/models.md: every property of a MODEL header, every kind, seeds and Python models."""

# ruff: noqa: E501  # what is said of a key is one line of a table
from __future__ import annotations

import inspect
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING

from lamina.graph.kinds import KINDS, CsvSettings
from lamina.reading.kinds import CSV_KEYS
from lamina.reading.kinds import PROPERTIES as KIND_PROPERTIES
from lamina.reading.model_header import PROPERTIES
from lamina.reading.model_properties import FURTHER
from lamina.spark.python.models import ModelContext
from tools.documented import NOTICE, documented, table, value

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD = f"""\
# Models

{NOTICE}

A model is a file in `models/`: a header and a query, or a Python function.

```sql
MODEL (
  name shop.daily_revenue,
  kind INCREMENTAL_BY_TIME_RANGE (time_column order_date),
  start '2024-01-01',
  audits (not_null(columns := order_date))
);

SELECT order_date, SUM(amount) AS revenue
FROM shop.orders
WHERE order_date BETWEEN @start_date AND @end_date
GROUP BY order_date
```

Properties are separated by commas, in any order; case does not count in their names. A list is written `a`, `(a, b)` or
`[a, b]`, a mapping `(key = value, …)`. An unknown property is an error that names the nearest one. Properties marked
*data* decide what rows a table holds: a change of them makes a new version. A change of the others never touches data.
"""
_DATA, _MORE = "data", ""
_KINDS: dict[str, type] = {str(vars(kind)["name"]): kind for kind in KINDS}
MODEL = {
    "name": (
        _DATA,
        "A table's name, `schema.table` or `catalog.schema.table`. Default: the file's name, in the target's schema.",
    ),
    "kind": (
        _DATA,
        "How the table is stored and refreshed: one of the [kinds](#kinds). Default: VIEW for SQL, FULL for Python.",
    ),
    "materialized": (_DATA, "`view` or `table`: another spelling of the kinds VIEW and FULL."),
    "dialect": (
        _DATA,
        "The SQL dialect of the file, such as `snowflake`; it is translated to Spark's. Default: `spark`.",
    ),
    "description": (_MORE, "What the table is. Readers see it as the table's comment."),
    "owner": (_MORE, "Who answers for the model."),
    "tags": (_MORE, "Words that `--select tag:x` finds."),
    "start": (
        _MORE,
        "Where the model's time begins. Default: the earliest start of what it reads, else `defaults.start`, else one tick ago.",
    ),
    "end": (_MORE, "Where it ends; a date includes that day."),
    "cron": (
        _MORE,
        "When a new interval is released to `run`: five fields, or `@hourly`, `@daily` and the like. Default: `@daily`.",
    ),
    "cron_tz": (_MORE, "The time zone in which `cron` ticks. Intervals stay in UTC. Default: `UTC`."),
    "interval_unit": (
        _MORE,
        "The unit in which time is counted, `five_minute`, `quarter_hour`, `half_hour`, `hour`, `day`, `month` or `year`. Default: what fits `cron`.",
    ),
    "allow_partials": (_MORE, "Whether a unit that is not over is computed, and again until it is. Default: `false`."),
    "stamp": (_DATA, "Any text; changing it makes a new version."),
    "columns": (
        _DATA,
        "Columns and types, `(id INT, at TIMESTAMP)`. Python models need them. Default: what the query gives.",
    ),
    "column_descriptions": (
        _MORE,
        "Comments of columns, `(id = 'the key')`. Default: the comments beside them in the query.",
    ),
    "depends_on": (
        _DATA,
        "What the model reads beside what its query names; for Python models everything that it reads.",
    ),
    "audits": (_MORE, "Audits of the rows; see [audits](../guides/audits.md)."),
    "signals": (_MORE, "Functions that hold intervals back; see [signals](../guides/signals.md)."),
    "pre_hooks": (_DATA, "Python functions that run before a batch; see [statements](../guides/statements.md)."),
    "post_hooks": (_DATA, "Python functions that run after a batch, before it is shown."),
    "grain": (_MORE, "The columns that tell rows apart."),
    "grains": (_MORE, "Several such keys. Excludes `grain`."),
    "partitioned_by": (_DATA, "Columns, or expressions over one column, by which the table is partitioned."),
    "clustered_by": (_DATA, "Columns by which rows lie together, in formats that can."),
    "table_format": (
        _DATA,
        "`parquet`, `delta` or `iceberg`; see [table formats](../guides/table-formats.md). Default: `parquet`.",
    ),
    "storage_format": (_DATA, "The format of the files inside, such as `orc` in Iceberg tables."),
    "table_properties": (_DATA, "Another name of `physical_properties`."),
    "physical_properties": (_DATA, "Properties of the table that holds the rows."),
    "virtual_properties": (_MORE, "Properties of the view that readers see."),
    "session_properties": (_DATA, "Spark settings while the model is computed."),
    "enabled": (_MORE, "`false` leaves the file out of the project. Default: `true`."),
    "blueprints": (_MORE, "A list of mappings; each makes a model of this file, with its values as `@name`."),
    "forward_only": (_MORE, "As the property of incremental kinds; see [below](#incremental-kinds)."),
    "replay_on_change": (
        _MORE,
        "`full`, `forward` or `bounded-14d`: how much history a change of an incremental model computes anew. Which of them this release carries out: see [kinds that fold](../guides/folding-kinds.md#when-the-model-or-what-it-reads-changes).",
    ),
    "query_change_backfill": (_MORE, "Another name of `replay_on_change`."),
    "run_despite_unchanged": (
        _MORE,
        "Has `build` compute a model without intervals although nothing that it reads has changed.",
    ),
    "wait_for_parents": (_MORE, "`false` computes intervals that the models above do not cover yet. Default: `true`."),
    "follow_rewrites": (
        _MORE,
        "`false` leaves recorded intervals alone where what they read came out different. Default: `true`.",
    ),
    "seed_copy": (_MORE, "`always` gives a version files of its own where it begins as a copy of another."),
}
_KEPT = "Is read and kept, and has no effect in this release."
KIND = {
    "path": "The CSV file: relative to the model's file, or `$root/…` from the project's folder.",
    "SEED.batch_size": "Is read and kept, and has no effect.",
    "csv_settings": "How the file is read; see [seeds](#seeds).",
    "materialized": "Asks for a materialized view; Spark has none, so it stays a plain one, and the plan says so.",
    "batch_size": "How many units one batch computes; without it, all that are missing.",
    "batch_concurrency": "How many batches of the model may run at once.",
    "lookback": "How many units before each new one are computed again, for rows that come late.",
    "time_column": "The column that says which interval a row belongs to, with a format where it is text: `(ds, 'yyyy-MM-dd')`.",
    "partition_by_time_column": "Whether the table is partitioned by the time column.",
    "unique_key": "The column or columns by which rows replace each other; expressions are allowed.",
    "when_matched": "`WHEN MATCHED …` clauses of a MERGE, over `source` and `target`. Default: every column is replaced.",
    "merge_filter": "A condition over `source` and `target` that limits which rows of the table are compared.",
    "order_by": "Says which of several new rows with the same key is the last and counts. Without it such rows are an error.",
    "insert_overwrite": "Replaces the partitions that occur in the new rows instead of appending.",
    "valid_from_name": "The column that says from when a row is valid.",
    "valid_to_name": "The column that says until when; NULL for rows that still are.",
    "time_data_type": "The type of both: `timestamp`, `timestamp_ntz` or `date`.",
    "invalidate_hard_deletes": "Whether a row is closed whose key the query no longer gives.",
    "updated_at_name": "The column of the query that says when a row changed.",
    "updated_at_as_valid_from": "Whether rows of the first load are valid from `updated_at` instead of from 1970-01-01.",
    "columns": "The columns whose change closes a row; `*` for all.",
    "execution_time_as_valid_from": "Whether rows of the first load are valid from the execution time instead of from 1970-01-01.",
    "materialization": "The name of a materialization of the project's own. Not run by this release.",
    "materialization_properties": "Settings of such a materialization.",
    "forward_only": "Whether a changed model keeps its history and goes on with the new query.",
    "disable_restatement": "Whether recorded rows may not be computed again; `--reset` overrules it.",
    "on_destructive_change": "What happens where columns go: `error`, `warn`, `allow` or `ignore`.",
    "on_additive_change": "What happens where columns are added: `error`, `warn`, `allow` or `ignore`.",
    "auto_restatement_cron": "When `run` computes recorded time again by itself.",
    "auto_restatement_intervals": "How many of the last units that is; without it, all.",
}
KINDS_TOLD = {
    "FULL": "The whole table is computed anew each time.",
    "VIEW": "A view over the query; nothing is stored.",
    "EMBEDDED": "No table and no view: the query is put into the models that read it.",
    "SEED": "A CSV file loaded as a table.",
    "EXTERNAL": "A table that others write. It is declared in `sources/`, not in a model.",
    "INCREMENTAL_BY_TIME_RANGE": "Rows belong to intervals by a time column; an interval is replaced whole.",
    "INCREMENTAL_BY_UNIQUE_KEY": "New rows replace rows with the same key.",
    "INCREMENTAL_BY_PARTITION": "Partitions that occur in the new rows replace those of the table.",
    "INCREMENTAL_UNMANAGED": "Every run appends what its query gives.",
    "SCD_TYPE_2_BY_TIME": "The history of a dimension: a newer `updated_at` closes the former row.",
    "SCD_TYPE_2_BY_COLUMN": "The history of a dimension: a changed column closes the former row.",
    "CUSTOM": "A materialization of the project's own. Read and checked; refused at plan by this release.",
    "MANAGED": "Kept current by a stream. Read and checked; refused at plan by this release.",
}
CSV = {
    "delimiter": "What separates fields: one character.",
    "quotechar": "What encloses fields that hold a delimiter or a line end.",
    "doublequote": "Whether a doubled quote inside such a field stands for one.",
    "escapechar": "A character that takes the meaning of the next one.",
    "skipinitialspace": "Whether spaces behind a delimiter are left out.",
    "lineterminator": "What ends a line. Default: any line end.",
    "encoding": "The encoding of the file.",
    "na_values": "Texts that mean NULL: a list, or a mapping of columns to lists.",
    "keep_default_na": "Whether the usual texts, such as an empty field, `NULL` and `NaN`, mean NULL too.",
}
SEED_TEXT = """\
A CSV file in `seeds/` that no model names is a table by itself, named after the file. A model names its file:

```sql
MODEL (
  name shop.countries,
  kind SEED (path '../seeds/countries.csv', csv_settings (delimiter = ';')),
  columns (code STRING, name STRING)
);
```

Without `columns` their types are found in the file. `csv_settings` takes:
"""
CONTEXT = {
    "spark": "The Spark session of this task, in UTC. Its settings, catalog and views must stay as they are.",
    "table": "`table(name)`: the rows of a model or source in `depends_on`, as a DataFrame of the environment.",
    "resolve_table": "`resolve_table(name)`: SQL text that stands for that table.",
    "var": "`var(name, default)`: a variable of the project or the blueprint.",
}
PYTHON_TEXT = """\
## Python models

```python
# models/clean.py
from lamina import model


@model(
    "shop.clean",
    kind={"name": "INCREMENTAL_BY_TIME_RANGE", "time_column": "ds"},
    columns={"id": "bigint", "ds": "date"},
    depends_on=["shop.orders"],
    start="2024-01-01",
)
def execute(context, start, end, execution_time, **kwargs):
    orders = context.table("shop.orders")
    return orders.where(orders.ds.between(start.date(), end.date())).select("id", "ds")
```

Every property above is a keyword, except statements around a query, which a function does itself; `kind` is a name or a
mapping with `name` and the kind's properties. `columns` are required. The function returns or yields PySpark or pandas
DataFrames. `start` and `end` are the first and the last moment of the interval, `execution_time` the moment the command
works at; variables of the project come by name where the function takes them. With `is_sql=True` it returns the text of a
query instead. `context` has:
"""


def page() -> str:
    """The whole page."""
    lines = [HEAD, "## Properties", ""]
    told = MODEL | dict.fromkeys(FURTHER, (_MORE, _KEPT))
    words = dict(documented(PROPERTIES, {key: text for key, (_, text) in told.items()}, "MODEL"))
    lines += table(("property", "changes", "meaning"), ((f"`{key}`", told[key][0], words[key]) for key in PROPERTIES))
    lines += ["## Kinds", ""]
    told_kinds = dict(documented(KIND_PROPERTIES, KINDS_TOLD, "kinds"))
    every = [_told(kind, key) for kind, keys in KIND_PROPERTIES.items() for key in keys]
    meanings = dict(documented(every, KIND, "properties of kinds"))
    for name, kind in _KINDS.items():
        lines += [f"### {name}", "", told_kinds[name], ""]
        rows = [
            (f"`{key}`", _default(kind, key), meanings[_told(name, key)])
            for key in KIND_PROPERTIES[name]
            if key not in _policy()
        ]
        lines += table(("property", "default", "meaning"), rows) if rows else []
        if set(_policy()) <= set(KIND_PROPERTIES[name]):
            lines += ["It also takes the properties of [incremental kinds](#incremental-kinds).", ""]
    lines += ["### Incremental kinds", "", "Those that keep rows from one run to the next take these too:", ""]
    lines += table(
        ("property", "default", "meaning"), ((f"`{key}`", _policies(key), meanings[key]) for key in _policy())
    )
    lines += ["## Seeds", "", SEED_TEXT]
    lines += table(("setting", "default", "meaning"), _csv())
    lines += [PYTHON_TEXT, *table(("name", "meaning"), _context())]
    return "\n".join(lines).rstrip() + "\n"


def _told(kind: str, key: str) -> str:
    """Under what a property is told: its own name, or that of a kind where it means something else."""
    return f"{kind}.{key}" if f"{kind}.{key}" in KIND else key


def _policy() -> tuple[str, ...]:
    return KIND_PROPERTIES["INCREMENTAL_BY_PARTITION"]


def _default(kind: type, key: str) -> str:
    """As the kind's class has it; a property without a default has to be given."""
    field = next((each for each in fields(kind) if each.name == key), None)
    if field is None:
        return ""
    if field.default is MISSING and field.default_factory is MISSING:
        return "required"
    return value(field.default) if field.default is not MISSING else ""


def _policies(key: str) -> str:
    """The default of a property that all incremental kinds share, with the kinds that have another."""
    found: dict[str, list[str]] = {}
    for name, kind in _KINDS.items():
        policy = next((each for each in fields(kind) if each.name == "policy"), None)
        if policy is not None and policy.default_factory is not MISSING:
            found.setdefault(value(getattr(policy.default_factory(), key)), []).append(name)
    most = max(found, key=lambda default: len(found[default]))
    others = [f"{default} of {', '.join(names)}" for default, names in found.items() if default != most]
    return "; ".join([most, *others])


def _csv() -> Iterator[tuple[str, str, str]]:
    defaults = {each.name: each.default for each in fields(CsvSettings)}
    for key, text in documented(CSV_KEYS, CSV, "csv_settings"):
        yield f"`{key}`", value(defaults[key]), text


def _context() -> Iterator[tuple[str, str]]:
    public = [name for name, _ in inspect.getmembers(ModelContext) if not name.startswith("_")]
    for name, text in documented(["spark", *public], CONTEXT, "context"):
        yield f"`context.{name}`", text
