"""What a project says and nothing acts on yet: every plan says so, and nothing wrong in it is accepted."""

from __future__ import annotations

import pytest

from lamina.errors import (
    BadConfigValue,
    BadPropertyValue,
    BadPythonModel,
    LaminaError,
    SyntaxProblem,
    UnknownConfigKey,
    UnknownProperty,
)
from lamina.project.configuration.read import read_config
from lamina.project.configuration.shape import ConfigFile, DefaultsSection, TargetSection

MODEL = {"models/a.sql": "MODEL (name a, kind FULL);\nSELECT 1 AS x\n"}


def said(folder, **arguments) -> list[tuple[str, str | None, int | None]]:
    return [
        (notice.code, notice.location.file, notice.location.line)
        for notice in folder.graph(**arguments).warnings
        if notice.location is not None
    ]


# --- external tables --------------------------------------------------------------------------------------------------
FRESHNESS = """
- name: raw.events
  columns: {id: int}
  freshness:
    strategy: column
    type: timestamp
    column: updated_at
    filter: id > 0
    lag_tolerance: 10m
    age: {warn_after: 1d, error_after: 2d}
- name: raw.plain
"""


def test_freshness_is_said_to_have_no_effect_yet_where_it_stands(project):
    folder = project({**MODEL, "sources/raw.yml": FRESHNESS})
    (notice,) = [each for each in folder.graph().warnings if each.code == "LAM-WARN-041"]
    assert (notice.node, notice.location.file, notice.location.line) == ("raw.events", "sources/raw.yml", 4)
    assert "sources/raw.yml:4" in notice.message


def test_a_group_of_tables_says_it_once(project):
    text = "- schema: raw\n  freshness: {strategy: adapter}\n  tables:\n    - name: a\n    - name: b\n"
    assert said(project({**MODEL, "sources/raw.yml": text})) == [("LAM-WARN-041", "sources/raw.yml", 2)]


@pytest.mark.parametrize(
    ("block", "line", "words"),
    [
        ("strategy: columns\n    type: timestamp\n    column: a", 4, "`column`"),
        ("strategy: column\n    type: time\n    column: a", 5, "`timestamp`"),
        ("strategy: column\n    column: a", 4, "needs `type`"),
        ("strategy: column\n    type: timestamp", 4, "needs `column`"),
        ("strategy: sql\n    type: integer", 4, "needs `query`"),
        ("strategy: adapter\n    type: integer", 5, "means nothing"),
        ("strategy: sql\n    type: integer\n    query: SELECT 1\n    column: a", 7, "means nothing"),
        ("strategy: sql\n    type: integer\n    query: SELECT 1\n    filter: a", 7, "means nothing"),
        ("type: integer", 3, "needs a `strategy`"),
        ("strategy: column\n    type: integer\n    column: a\n    lag_tolerance: 10m", 7, "for times"),
        ("strategy: adapter\n    lag_tolerance: 10m", 5, "for times"),
        ("strategy: column\n    type: timestamp\n    column: a\n    lag_tolerance: soon", 7, "a duration"),
        ("strategy: adapter\n    age: {warn_after: soon}", 5, "a duration"),
        ("strategy: adapter\n    age: 1d", 5, "a mapping"),
        ("strategy: adapter\n    age: {warn_after: 3d, error_after: 2d}", 5, "longer than"),
        ("strategy: column\n    type: timestamp\n    column: [a]", 6, "text"),
        ("strategy: column\n    type: timestamp\n    column: max(a)", 6, "name of a column"),
    ],
)
def test_a_wrong_freshness_is_an_error_at_its_line(project, block, line, words):
    folder = project(
        {**MODEL, "sources/raw.yml": f"- name: raw.events\n  columns: {{id: int}}\n  freshness:\n    {block}\n"}
    )
    problem = folder.problem()
    assert type(problem) is BadConfigValue
    assert (problem.location.file, problem.location.line) == ("sources/raw.yml", line)
    assert words in problem.message


@pytest.mark.parametrize(
    ("text", "line", "hint"),
    [
        ("- name: raw.a\n  freshness: {strategy: adapter, aeg: {warn_after: 1d}}\n", 2, "did you mean `age`?"),
        ("- name: raw.a\n  freshness:\n    strategy: adapter\n    age: {warn: 1d}\n", 4, "did you mean `warn_after`?"),
        ("- name: raw.a\n  freshnes: {strategy: adapter}\n", 2, "did you mean `freshness`?"),
    ],
)
def test_an_unknown_key_of_freshness_comes_with_the_nearest(project, text, line, hint):
    problem = project({**MODEL, "sources/raw.yml": text}).problem()
    assert (type(problem), problem.location.line, problem.hint) == (UnknownConfigKey, line, hint)


def test_keys_of_other_tools_and_a_name_that_nobody_reads_are_said(project):
    text = "- name: events\n  table: raw.events\n  gateway: main\n- schema: raw\n  start: 2024-01-01\n  tables: [b]\n"
    assert said(project({**MODEL, "sources/raw.yml": text})) == [
        ("LAM-WARN-046", "sources/raw.yml", 3),
        ("LAM-WARN-046", "sources/raw.yml", 1),
        ("LAM-WARN-046", "sources/raw.yml", 5),
    ]


def test_parts_of_a_name_that_are_left_out_are_said(project):
    text = "- {name: raw.a, schema: lake}\n- {name: b, catalog: lake}\n- {name: c, schema: raw, catalog: lake}\n"
    assert said(project({**MODEL, "sources/raw.yml": text})) == [
        ("LAM-WARN-046", "sources/raw.yml", 1),
        ("LAM-WARN-046", "sources/raw.yml", 2),
    ]


def test_a_group_cannot_have_what_belongs_to_a_table(project):
    problem = project({**MODEL, "sources/raw.yml": "- schema: raw\n  columns: {a: int}\n  tables: [b]\n"}).problem()
    assert (type(problem), problem.location.line) == (BadConfigValue, 2)


# --- unit tests -------------------------------------------------------------------------------------------------------
TESTS = """
counts_orders:
  model: shop.a
  description: all of them
  gateway: spark
  schema: fixtures
  vars: {start: 2024-01-01, end: 2024-01-02, execution_time: "2024-01-02 00:00:00", region: eu}
  inputs:
    raw.orders: [{id: 1}, {id: 2}]
    raw.more: {columns: {id: int}, rows: [{id: 3}]}
    raw.csv: {format: csv, rows: "id\\n1\\n", csv_settings: {sep: ","}}
    raw.file: {path: fixtures/a.csv, format: csv}
    raw.asked: {query: SELECT 1 AS id}
    shop.between:
  outputs:
    partial: true
    ctes: {orders: {rows: [{id: 1}], partial: true}}
    query: {columns: {n: bigint}, rows: [{n: 2}]}
keeps_what_was_there:
  model: shop.a
  partial: true
  existing: {rows: [{id: 1}]}
  inputs: {raw.orders: {rows: [{id: 1}]}}
  outputs: {rows: [{id: 1}]}
"""


def test_unit_tests_are_said_not_to_run_one_by_one(project):
    folder = project({**MODEL, "tests/deep/orders.yml": TESTS, "tests/empty.yaml": "# nothing yet\n"})
    assert said(folder) == [
        ("LAM-WARN-045", "tests/deep/orders.yml", 2),
        ("LAM-WARN-045", "tests/deep/orders.yml", 19),
    ]


@pytest.mark.parametrize(
    ("test", "line", "expected", "words"),
    [
        ("  modle: a\n  model: a\n  outputs: {query: []}", 2, UnknownConfigKey, "`modle`"),
        ("  outputs: {query: []}", 1, BadConfigValue, "needs `model`"),
        ("  model: a", 1, BadConfigValue, "needs `outputs`"),
        ("  model: [a]\n  outputs: {query: []}", 2, BadConfigValue, "text"),
        ("  model: a\n  outputs: [{a: 1}]", 3, BadConfigValue, "a mapping"),
        ("  model: a\n  outputs: {}", 3, BadConfigValue, "names no rows"),
        ("  model: a\n  outputs:\n    quary: [{a: 1}]", 4, UnknownConfigKey, "`quary`"),
        ("  model: a\n  outputs:\n    query: [1]", 4, BadConfigValue, "a mapping of columns"),
        ("  model: a\n  outputs:\n    query: {rows: {a: 1}}", 4, BadConfigValue, "a list of rows"),
        ("  model: a\n  outputs:\n    ctes: [a]\n    query: []", 4, BadConfigValue, "a mapping"),
        ("  model: a\n  outputs: {query: [], partial: maybe}", 3, BadConfigValue, "`true` or `false`"),
        ("  model: a\n  outputs: {query: []}\n  inputs: [a]", 4, BadConfigValue, "a mapping"),
        (
            "  model: a\n  outputs: {query: []}\n  inputs:\n    b: {rows: [], query: SELECT 1}",
            5,
            BadConfigValue,
            "both",
        ),
        ("  model: a\n  outputs: {query: []}\n  inputs:\n    b: {row: []}", 5, UnknownConfigKey, "`row`"),
        ("  model: a\n  outputs: {query: []}\n  inputs:\n    b: {rows: [], format: xml}", 5, BadConfigValue, "`csv`"),
        ("  model: a\n  outputs: {query: []}\n  vars: {start: whenever}", 4, BadConfigValue, "a time"),
        ("  model: a\n  outputs: {query: []}\n  vars: 1", 4, BadConfigValue, "a mapping"),
        ("  model: a\n  outputs: {query: []}\n  existing: [{a: 1}]", 4, BadConfigValue, "a mapping"),
        ("  - a", 1, BadConfigValue, "a mapping"),
    ],
)
def test_a_wrong_unit_test_is_an_error_at_its_line(project, test, line, expected, words):
    problem = project({**MODEL, "tests/t.yml": f"t:\n{test}\n"}).problems()[0]
    assert type(problem) is expected
    assert (problem.location.file, problem.location.line) == ("tests/t.yml", line)
    assert words in problem.message


# --- functions --------------------------------------------------------------------------------------------------------
CENTS = """FUNCTION (
  name shop.cents,
  arguments (amount DECIMAL(10,2), rate INT DEFAULT 100),
  returns BIGINT,
  description 'money as cents',
);
CAST(amount * rate AS BIGINT)
"""
PAIRS = """-- pairs
FUNCTION (name pairs, arguments (a MAP<STRING, INT>), returns TABLE (a INT, b STRING));
SELECT 1, 'x';
"""
CLEAN = """
from lamina import udf
KIND = "pandas"
@udf("shop.clean", arguments={"text": "string"}, returns="string", kind=KIND)
def clean(text):
    raise RuntimeError("nobody runs this")
"""


def test_functions_are_said_not_to_be_made(project):
    folder = project(
        {**MODEL, "functions/cents.sql": CENTS, "functions/sql/pairs.sql": PAIRS, "functions/python/clean.py": CLEAN}
    )
    assert said(folder) == [
        ("LAM-WARN-044", "functions/cents.sql", 1),
        ("LAM-WARN-044", "functions/python/clean.py", 4),
        ("LAM-WARN-044", "functions/sql/pairs.sql", 2),
    ]


@pytest.mark.parametrize(
    ("text", "line", "expected", "words"),
    [
        ("FUNCTION (\n  name a,\n  retruns INT\n);\n1", 3, UnknownProperty, "`retruns`"),
        ("FUNCTION (name a,\n  returns INTT);\n1", 2, BadPropertyValue, "INTT"),
        ("FUNCTION (name a, returns INT,\n  arguments (x INTT));\n1", 2, BadPropertyValue, "INTT"),
        ("FUNCTION (name a, returns INT,\n  arguments (x));\n1", 2, SyntaxProblem, "no type"),
        ("FUNCTION (name a, returns INT,\n  arguments (x INT, X INT));\n1", 2, SyntaxProblem, "twice"),
        ("FUNCTION (name a, returns INT,\n  arguments x);\n1", 2, BadPropertyValue, "a list"),
        ("FUNCTION (name a, returns INT,\n  description 5);\n1", 2, BadPropertyValue, "text in quotes"),
        ("FUNCTION (name 'a', returns INT);\n1", 1, BadPropertyValue, "string literal"),
        ("FUNCTION (name a, returns INT, returns INT);\n1", 1, SyntaxProblem, "twice"),
        ("FUNCTION (name a, returns TABLE);\n1", 1, BadPropertyValue, "a list"),
        ("FUNCTION (name a, returns INT)\n1", 2, SyntaxProblem, "`;`"),
        ("FUNCTION (name a, returns INT);\n1;\n2", 3, SyntaxProblem, "one expression"),
        ("SELECT 1", 1, SyntaxProblem, "no FUNCTION header"),
        ("", 1, SyntaxProblem, "no FUNCTION header"),
    ],
)
def test_a_wrong_function_is_an_error_at_its_line(project, text, line, expected, words):
    problem = project({**MODEL, "functions/a.sql": text}).problems()[0]
    assert type(problem) is expected
    assert (problem.location.file, problem.location.line) == ("functions/a.sql", line)
    assert words in problem.message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("FUNCTION (name a);\n1", "does not say what it returns"),
        ("FUNCTION (name a, returns INT);", "has no body"),
        ("FUNCTION (name a, returns INT)", "has no body"),
    ],
)
def test_a_function_needs_a_type_and_a_body(project, text, words):
    assert words in project({**MODEL, "functions/a.sql": text}).problem().message


# --- Python -----------------------------------------------------------------------------------------------------------
NODES = """
import lamina
from lamina import Retry, asset, check as verify, hook, loader, task
NAMES = ["shop.a"]

@loader("raw.orders", write="append", columns={"id": "bigint", "at": "timestamp"}, cursor="at", unique_key=["id"])
def load_orders(ctx): ...

@task(depends_on=["shop.a", load_orders], tags="nightly", retry=Retry(attempts=3, delay=0.5, backoff=2))
def export(ctx): ...

@task
def bare(ctx): ...

@lamina.asset(depends_on=NAMES, columns={"id": "int"}, cron="@daily", description="a file")
def file(ctx): ...

@verify(depends_on=export, severity="warn")
def enough(ctx): ...

@lamina.asset(columns=["id", "name"])
def named(ctx): ...

@hook
def named_by_models(context): ...

@hook(on="after_model", models=["shop.a"])
def after(ctx): ...

raise RuntimeError("nobody runs this")
"""


def test_nodes_in_python_are_said_not_to_run(project):
    folder = project({**MODEL, "python/deep/nodes.py": NODES})
    found = [(notice.node, notice.location.line) for notice in folder.graph().warnings]
    assert found == [
        ("raw.orders", 6),
        ("export", 9),
        ("bare", 12),
        ("file", 15),
        ("enough", 18),
        ("named", 21),
        ("after", 27),
    ]
    assert {code for code, _, _ in said(folder)} == {"LAM-WARN-043"}


@pytest.mark.parametrize(
    ("decorator", "words", "hint"),
    [
        ('@loader("a", wirte="append")', "no argument `wirte`", "did you mean `write`?"),
        ('@loader("a", write="upsert")', "`write` of", None),
        ('@loader("a", write="merge")', "needs `unique_key`", None),
        ('@loader("a", columns={"id": "itn"})', "`columns` of", None),
        ('@loader("a", columns=["id"])', "`columns` of", None),
        ("@loader(1)", "`name` of", None),
        ('@task("a", "b")', "by position", None),
        ("@task(depends_on=[1])", "`depends_on` of", None),
        ('@task(columns={"a": "int"})', "no argument `columns`", None),
        ("@task(tags=[1])", "`tags` of", None),
        ("@task(retry=3)", "`retry` of", None),
        ("@task(retry=Retry(attempts=0))", "`retry` of", None),
        ("@task(retry=Retry(times=3))", "`retry` of", None),
        ('@task(cron="sometimes")', "`cron` of", None),
        ("@task(description=5)", "`description` of", None),
        ('@check(severity="fatal")', "`severity` of", None),
        ('@check(severty="warn")', "no argument `severty`", "did you mean `severity`?"),
        ('@hook(on="before")', "`on` of", None),
        ('@hook(on="before_model", models=[1])', "`models` of", None),
        ('@asset(columns=["id", 1])', "`columns` of", None),
        ("@asset(unique_key='id')", "no argument `unique_key`", None),
    ],
)
def test_a_wrong_decorator_is_an_error_at_its_line(project, decorator, words, hint):
    text = f"from lamina import *\nfrom lamina import Retry, hook, loader\n{decorator}\ndef f(ctx): ...\n"
    problem = project({**MODEL, "python/nodes.py": text}).problem()
    assert type(problem) is BadPythonModel
    assert (problem.location.file, problem.location.line) == ("python/nodes.py", 3)
    assert words in problem.message
    assert hint is None or problem.hint == hint


def test_names_of_others_are_no_nodes(project):
    text = "from celery import task\n@task(retries=3)\ndef f(): ...\n@other.check\ndef g(): ...\n"
    assert said(project({**MODEL, "python/jobs.py": text})) == []


def test_what_is_computed_is_not_judged(project):
    text = (
        "from lamina import task\nx = {}\n@task(**x)\ndef f(ctx): ...\n@task(tags=[t for t in 'ab'])\ndef g(ctx): ...\n"
    )
    assert len(said(project({**MODEL, "python/jobs.py": text}))) == 2


def test_an_edit_is_seen_and_the_rest_comes_from_the_cache(project):
    folder = project({**MODEL, "tests/t.yml": "a: {model: a, outputs: {query: []}}\n"})
    assert said(folder) == said(folder) == [("LAM-WARN-045", "tests/t.yml", 1)]
    folder.write({"tests/t.yml": "\na: {model: a, outputs: {query: []}}\n"})
    assert said(folder) == [("LAM-WARN-045", "tests/t.yml", 2)]
    folder.write({"tests/t.yml": "a: {modle: a}\n"})
    assert {type(problem) for problem in folder.problems()} == {UnknownConfigKey, BadConfigValue}


# --- models and lamina.yaml -------------------------------------------------------------------------------------------
def test_run_despite_unchanged_is_said_to_have_no_effect_yet(project):
    text = "MODEL (\n  name @{region}.a,\n  kind FULL,\n  blueprints ((region := eu), (region := us)),\n"
    folder = project({"models/a.sql": f"{text}  run_despite_unchanged 24h\n);\nSELECT 1 AS x\n"})
    (notice,) = folder.graph().warnings
    assert (notice.code, notice.node, notice.location.line) == ("LAM-WARN-040", "eu.a", 5)
    folder.write(
        {"models/a.sql": "MODEL (name @{name}, gateway main, blueprints ((name := a), (name := b))); SELECT 1 AS x"}
    )
    (notice,) = folder.graph().warnings
    assert (notice.code, notice.node) == ("LAM-WARN-046", "shop.a")


def test_settings_of_targets_that_belong_to_later_releases_are_said(project):
    text = "name: shop\ntargets:\n  dev:\n    schema: dev\n    reuse_from: prod\n    reuse_hard_copy: true\n"
    folder = project({**MODEL, "lamina.yaml": f"{text}    defer_sources_to: prod\n  prod: {{schema: prod}}\n"})
    expected = [("LAM-WARN-042", "lamina.yaml", line) for line in (5, 6, 7)]
    assert said(folder) == said(folder) == expected
    folder.write({"lamina.yaml": f"# moved\n{text}  prod: {{schema: prod}}\n"})
    assert said(folder) == [("LAM-WARN-042", "lamina.yaml", line) for line in (6, 7)]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("reuse_form: prod", UnknownConfigKey),
        ("reuse_from: prd", BadConfigValue),
        ("reuse_from: dev", BadConfigValue),
        ("reuse_hard_copy: maybe", BadConfigValue),
        ("defer_sources_to: prd", BadConfigValue),
        ("defer_sources_to: [prod]", BadConfigValue),
    ],
)
def test_wrong_settings_of_targets_are_errors_at_their_line(project, key, expected):
    text = f"name: shop\ntargets:\n  dev:\n    schema: dev\n    {key}\n  prod: {{schema: prod}}\n"
    problem = project({**MODEL, "lamina.yaml": text}).problem()
    assert (type(problem), problem.location.file, problem.location.line) == (expected, "lamina.yaml", 5)


def test_settings_of_other_tools_are_said_once_where_they_stand(project):
    text = "name: shop\ndefaults:\n  optimize_query: true\n  formatting: false\n"
    models = {
        "models/a.sql": "MODEL (\n  name a,\n  gateway main,\n  virtual_environment_mode full\n);\nSELECT 1 AS x\n"
    }
    folder = project({"lamina.yaml": text, **models, "models/b.sql": "MODEL (name b); SELECT 1 AS x"})
    assert said(folder) == [
        ("LAM-WARN-046", "lamina.yaml", 3),
        ("LAM-WARN-046", "lamina.yaml", 4),
        ("LAM-WARN-046", "models/a.sql", 3),
    ]
    assert said(project({"lamina.yaml": "name: shop\ndefaults: {optimize_query: false}\n"})) == [
        ("LAM-WARN-046", "models/a.sql", 3)
    ]


def test_variables_that_are_something_else_in_every_project_are_said(project):
    text = "name: shop\nvariables:\n  region: eu\n  Start_DS: x\ntargets:\n  prod:\n    variables: {this_model: y}\n"
    folder = project({**MODEL, "lamina.yaml": text})
    for _ in range(2):
        assert said(folder) == [("LAM-WARN-046", "lamina.yaml", 4), ("LAM-WARN-046", "lamina.yaml", 7)]


@pytest.mark.parametrize(
    ("kind", "query", "line"),
    [
        ("INCREMENTAL_BY_UNIQUE_KEY (unique_key x,\n batch_size 3)", "SELECT 1 AS x", 2),
        ("INCREMENTAL_BY_UNIQUE_KEY (unique_key x,\n\n lookback 3)", "SELECT 1 AS x", 3),
        ("SCD_TYPE_2_BY_COLUMN (unique_key x, columns *,\n batch_size 3)", "SELECT 1 AS x", 2),
        ("SCD_TYPE_2_BY_TIME (unique_key x,\n batch_size 3)", "SELECT 1 AS x, now() AS updated_at", 2),
        ("INCREMENTAL_BY_UNIQUE_KEY (unique_key x,\n batch_size 3)", "SELECT x FROM raw.t WHERE d > @start_ds", None),
        ("SCD_TYPE_2_BY_COLUMN (unique_key x, columns *,\n batch_size 3)", "SELECT @end_ds AS x", None),
        ("INCREMENTAL_BY_UNIQUE_KEY (unique_key x,\n auto_restatement_intervals 3)", "SELECT 1 AS x", 2),
        ("SEED (path '../seeds/b.csv',\n batch_size 3)", "", 2),
    ],
)
def test_portions_of_what_has_no_time_are_said_to_mean_nothing(project, kind, query, line):
    sources = {"sources/raw.yml": "- {name: raw.t, columns: {x: int, d: date}}", "seeds/b.csv": "x\n1\n"}
    folder = project({"models/a.sql": f"MODEL (name a, kind {kind});\n{query}\n", **sources})
    assert said(folder) == ([("LAM-WARN-046", "models/a.sql", line)] if line else [])


def test_an_embedded_query_that_asks_about_time_counts(project):
    kind = "INCREMENTAL_BY_UNIQUE_KEY (unique_key x, batch_size 3)"
    folder = project(
        {
            "models/a.sql": f"MODEL (name a, kind {kind});\nSELECT x FROM b\n",
            "models/b.sql": "MODEL (name b, kind EMBEDDED);\nSELECT x FROM raw.t WHERE d > @start_ds\n",
            "sources/raw.yml": "- {name: raw.t, columns: {x: int, d: date}}",
        }
    )
    assert said(folder) == []


def test_settings_without_effect_in_audits_and_macros_are_said(project):
    folder = project(
        {
            **MODEL,
            "audits/alone.sql": "AUDIT (name alone, standalone true,\n  cron '@daily');\nSELECT * FROM a WHERE x > 5\n",
            "macros/m.py": "from lamina import macro\n@macro(metadata_only=True)\ndef m(evaluator):\n    return '1'\n",
            "models/helper.py": "from lamina import task\n@task\ndef t(ctx): ...\n",
        }
    )
    assert sorted(said(folder)) == [
        ("LAM-WARN-043", "models/helper.py", 2),
        ("LAM-WARN-046", "audits/alone.sql", 2),
        ("LAM-WARN-046", "macros/m.py", 2),
    ]


@pytest.mark.parametrize("name", ["comment", "lamina.view", "view.x", "owner"])
def test_properties_of_views_that_are_kept_by_others_are_refused(project, name):
    text = f"MODEL (name a, kind FULL,\n  virtual_properties ('{name}' = 'x'));\nSELECT 1 AS x\n"
    problem = project({"models/a.sql": text}).problem()
    assert (problem.code, problem.location.line) == ("LAM-DEF-001", 2)


# --- every key --------------------------------------------------------------------------------------------------------
DEFAULTS = {
    "kind": "FULL",
    "dialect": "duckdb",
    "cron": "'@hourly'",
    "cron_tz": "Europe/Berlin",
    "owner": "ada",
    "start": "2024-01-01",
    "table_format": "delta",
    "storage_format": "orc",
    "seed_copy": "always",
    "on_destructive_change": "allow",
    "on_additive_change": "error",
    "physical_properties": "{a: 1}",
    "virtual_properties": "{a: 1}",
    "session_properties": "{a: 1}",
    "audits": "[not_null(columns := (x))]",
    "optimize_query": "true",
    "allow_partials": "true",
    "interval_unit": "hour",
    "enabled": "false",
    "formatting": "true",
    "batch_concurrency": "2",
    "pre_statements": "[SELECT 1]",
    "post_statements": "[SELECT 1]",
    "on_virtual_update": "[SELECT 1]",
}
"""What a model makes of each of them is the matter of tests/unit/app/test_every_setting.py."""

KEYS = {
    "name": ("name: shop", "name: store"),
    "mode": ("", "mode: direct"),
    "spark": ("", "spark: {master: 'local[2]'}"),
    "state": ("", "state: sqlite:///other.db"),
    "targets": ("", "targets: {prod: {schema: other}}"),
    "default_target": ("targets: {a: {schema: a}, b: {schema: b}}", "default_target: b"),
    "variables": ("", "variables: {a: 1}"),
    "unsuffixed_environment": ("", "unsuffixed_environment: live"),
    "strict_sources": ("", "strict_sources: true"),
    "replay_on_change": ("", "replay_on_change: forward"),
    "concurrency": ("", "concurrency: 7"),
}
TARGET = {
    "schema": "other",
    "schema_suffix": "_x",
    "reuse_from": "b",
    "reuse_hard_copy": "true",
    "defer_sources_to": "b",
    "spark": "{master: 'local[2]', config: {spark.a: 1}, shared_warehouse: true}",
    "state": "sqlite:///other.db",
    "variables": "{a: 1}",
}


@pytest.mark.parametrize("key", DefaultsSection.model_fields)
def test_every_default_reaches_models_or_is_said(project, key):
    kind = "INCREMENTAL_BY_TIME_RANGE (time_column ds)"
    models = {
        "models/a.sql": f"MODEL (name a, kind {kind});\nSELECT ds, x FROM raw.t\n",
        "models/b.sql": "MODEL (name b); SELECT 1 AS x",
    }
    before = project({**models, "lamina.yaml": "name: shop\n"})
    config, plain = before.open().config(), before.graph()
    before.write({"lamina.yaml": f"name: shop\ndefaults:\n  {key}: {DEFAULTS[key]}\n"})
    try:
        found = before.graph()
    except LaminaError:
        assert key == "enabled"
        return
    has_other_settings = before.open().config().settings() != config.settings()
    assert (found.models, found.warnings) != (plain.models, plain.warnings) or has_other_settings


@pytest.mark.parametrize("key", [key for key in ConfigFile.model_fields if key != "defaults"])
def test_every_key_of_the_configuration_says_something(key):
    given, changed = KEYS[key]
    base = "name: shop\n" if key != "name" else ""
    after = changed if key == "name" else f"{base}{given}\n{changed}"
    assert read_config(after) != read_config(f"{base}{given}\n")


@pytest.mark.parametrize("key", [info.alias or name for name, info in TargetSection.model_fields.items()])
def test_every_key_of_a_target_says_something(key):
    base = "name: shop\ntargets: {a: {%s}, b: {schema: b}}\n"
    assert read_config(base % f"{key}: {TARGET[key]}") != read_config(base % "")


def test_python_models_are_looked_at_like_others(project):
    text = (
        "from lamina import model\n\n@model('p', kind='FULL', columns={'x': 'int'}, gateway='main', end='2024-01-05',\n"
    )
    folder = project({"models/p.py": f"{text}       start='2024-01-01')\ndef execute(context, **kwargs): ...\n"})
    assert said(folder) == [("LAM-WARN-046", "models/p.py", 3)] * 2
    found = [notice.message.partition(" (")[0] for notice in folder.graph().warnings]
    assert found == ["`gateway` of `p`", "`end` of `p`"]
