"""Headers and queries become models."""

from __future__ import annotations

import pytest

from lamina.errors import (
    BadName,
    BadPropertyValue,
    BadSchedule,
    DefinitionError,
    Location,
    MacroError,
    SyntaxProblem,
    UnknownMacro,
    UnknownProperty,
)
from lamina.graph.kinds import Full, View
from lamina.graph.model import PythonModule
from lamina.reading.plain_values import read_plain_properties
from lamina.timeline.grain import Grain
from tests.unit.reading.reading import problem, problems, read, read_one

BY_DAY = "kind INCREMENTAL_BY_TIME_RANGE (time_column d)"


def defaults(**values: object):
    found: list = []
    properties = read_plain_properties(values, Location(file="lamina.yaml", line=3), "spark", found)
    assert not found
    return properties


def at(error) -> tuple[str, int]:
    return error.location.file, error.location.line


def test_every_property_is_read():
    model = read_one(
        """
-- What the model is about.
MODEL (
  name Shop.Orders,
  kind FULL,
  owner 'ann',
  tags (finance, daily),
  start '2024-01-01',
  end '2024-12-31',
  cron '0 6 * * *',
  cron_tz 'Europe/Berlin',
  interval_unit hour,
  allow_partials true,
  stamp 'v2',
  column_descriptions (id = 'the key'),
  audits (not_null(columns := (id, name)), My_Audit),
  signals (ready(hours := 3)),
  grains (id, (name, day)),
  references (id),
  clustered_by name,
  partitioned_by (day, bucket_of(name)),
  table_format parquet,
  storage_format orc,
  physical_properties (a = 1, 'b.c' = true, d = 'text'),
  virtual_properties (x = y),
  session_properties ('spark.sql.shuffle.partitions' = 8),
  grants ('select' = ('ann')),
  gateway local,
  optimize_query false,
  formatting false,
  ignored_rules ALL,
  virtual_environment_mode dev_only,
  retention 5,
  project shop,
  replay_on_change bounded-14d,
  run_despite_unchanged '24h',
  wait_for_parents false,
  follow_rewrites false,
  depends_on (other.table),
);
SELECT id, name, /* the day */ day FROM raw.orders
"""
    )
    assert model.name == "shop.orders"
    assert model.description == "What the model is about."
    assert (model.owner, model.tags, model.stamp) == ("ann", ("finance", "daily"), "v2")
    assert (model.start, model.end, model.cron, model.cron_tz) == (
        "2024-01-01",
        "2024-12-31",
        "0 6 * * *",
        "Europe/Berlin",
    )
    assert (model.grain, model.allow_partials) == (Grain.HOUR, True)
    assert [(column.name, column.comment) for column in model.columns] == [
        ("id", "the key"),
        ("name", None),
        ("day", "the day"),
    ]
    assert [(audit.name, dict(audit.arguments)) for audit in model.audits] == [
        ("not_null", {"columns": "(id, name)"}),
        ("my_audit", {}),
    ]
    assert dict(model.signals[0].arguments) == {"hours": "3"}
    assert model.grains == ("id", "(name, day)")
    assert model.partitioned_by == ("day", "bucket_of(name)")
    assert dict(model.physical_properties) == {"a": 1, "b.c": True, "d": "text"}
    assert dict(model.session_properties) == {"spark.sql.shuffle.partitions": 8}
    assert model.replay_on_change == "bounded-14d"
    assert model.run_despite_unchanged == "24h"
    assert (model.wait_for_parents, model.follow_rewrites) == (False, False)
    assert model.further["gateway"] == "local"
    assert model.further["retention"] == "5"


def test_a_short_header_has_defaults():
    model = read_one("MODEL (name a.b); SELECT 1 AS x")
    assert model.kind == View()
    assert (model.cron, model.grain, model.table_format, model.dialect) == ("@daily", Grain.DAY, "parquet", "spark")


def test_materialized_is_another_spelling_of_kind():
    assert read_one("MODEL (name a, materialized table); SELECT 1 AS x").kind == Full()
    assert read_one("MODEL (name a, materialized view); SELECT 1 AS x").kind == View()
    assert isinstance(problem("MODEL (name a, materialized cube); SELECT 1 AS x"), BadPropertyValue)
    assert type(problem("MODEL (name a, materialized table, kind FULL); SELECT 1 AS x")) is DefinitionError


def test_old_spellings_are_understood():
    model = read_one("MODEL (name a, table_properties (x = 1), query_change_backfill full); SELECT 1 AS x")
    assert dict(model.physical_properties) == {"x": 1}
    assert model.replay_on_change == "full"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("cron '0 6 * *'", BadSchedule),
        ("cron_tz 'Europe/Nowhere'", BadSchedule),
        ("interval_unit week", BadSchedule),
        ("interval_unit month", BadSchedule),
        ("start 'some day'", BadSchedule),
        ("start '2024-02-01', end '2024-01-01'", BadSchedule),
        ("allow_partials perhaps", BadPropertyValue),
        ("physical_properties (1)", BadPropertyValue),
        ("audits (not_null(id))", BadPropertyValue),
        ("partitioned_by (x, x)", BadPropertyValue),
        ("partitioned_by (x + y)", BadPropertyValue),
        ("partitioned_by z", DefinitionError),
        ("clustered_by z", DefinitionError),
        ("grain x, grains (x, y)", DefinitionError),
        ("replay_on_change sometimes", BadPropertyValue),
        ("query_change_backfill full, replay_on_change full", DefinitionError),
        ("run_despite_unchanged 'often'", BadPropertyValue),
        ("columns (x NOTATYPE)", BadPropertyValue),
        ("columns (q INT)", DefinitionError),
        ("table_format excel", BadPropertyValue),
        ("physical_version 'a'", DefinitionError),
        ("forward_only true", DefinitionError),
        ("depends_on (1)", BadPropertyValue),
        ("owneri ann", UnknownProperty),
        ("tags (a, b, (c))", BadPropertyValue),
        ("column_descriptions (x)", BadPropertyValue),
        ("virtual_environment_mode sideways", BadPropertyValue),
    ],
)
def test_a_wrong_property_is_refused_where_it_stands(line: str, expected: type):
    found = problems(f"MODEL (\n  name a,\n  kind FULL,\n  {line}\n);\nSELECT 1 AS x, 2 AS y")
    assert [type(error) for error in found] == [expected]
    assert at(found[0]) == ("models/m.sql", 4)


def test_an_end_needs_a_start():
    assert type(problem("MODEL (name a, end '2024-01-01'); SELECT 1 AS x")) is BadSchedule
    model = read_one("MODEL (name a, end '2024-01-01'); SELECT 1 AS x", defaults=defaults(start="2023-01-01"))
    assert model.start == "2023-01-01"


def test_the_nearest_property_is_offered():
    assert problem("MODEL (name a, owneri ann); SELECT 1 AS x").hint == "did you mean `owner`?"


def test_all_problems_of_a_file_come_together():
    found = problems(
        "MODEL (\n name a,\n owneri x,\n cron 'never',\n kind FUL\n);\nSELECT @nothing AS a, @nowhere AS b"
    )
    assert [error.code for error in found] == [
        "LAM-SQL-002",
        "LAM-SQL-003",
        "LAM-SQL-006",
        "LAM-SQL-006",
        "LAM-DEF-005",
    ]


@pytest.mark.parametrize("name", ["a.`b c`", "`ä`.b", "a.`b;DROP TABLE x`", "x." + "y" * 200, "`'`.b"])
def test_a_name_the_catalog_cannot_hold_is_refused(name: str):
    error = problem(f"MODEL (\n  name {name}\n);\nSELECT 1 AS x")
    assert type(error) is BadName
    assert at(error) == ("models/m.sql", 2)


def test_a_name_has_at_most_three_parts():
    assert read("MODEL (name c.s.t); SELECT 1 AS x")[0].name.parts == ("c", "s", "t")
    assert type(problem("MODEL (name a.b.c.d); SELECT 1 AS x")) is BadName


def test_a_quoted_name_is_refused():
    assert isinstance(problem("MODEL (name 'a.b'); SELECT 1 AS x"), BadPropertyValue)


def test_a_file_without_a_header_or_a_query_is_refused():
    assert type(problem("SELECT 1 AS x")) is SyntaxProblem
    error = problem("\nMODEL (name a);")
    assert type(error) is DefinitionError
    assert at(error) == ("models/m.sql", 2)


def test_a_model_that_is_not_enabled_is_ignored():
    assert read("MODEL (name a, enabled false, kind NONSENSE (x 1)); SELECT 1 AS x") == ()


def test_references_are_found_where_they_stand():
    (draft,) = read("MODEL (name a);\nSELECT x\nFROM raw.b AS b\nJOIN Raw.C USING (x)\nJOIN raw.b AS d USING (x)")
    assert [(each.name.to_text(), each.location.line) for each in draft.references] == [("raw.b", 3), ("raw.c", 4)]


def test_a_query_that_cannot_be_read_is_refused_where_it_is_wrong():
    error = problem("MODEL (name a);\nSELECT\n  x\n  FROM FROM WHERE y")
    assert isinstance(error, SyntaxProblem)
    assert error.location.file == "models/m.sql"
    assert error.location.line in {3, 4}


def test_places_are_right_behind_macros():
    text = (
        "MODEL (name a);\n@DEF(n, 1);\nSELECT\n  @EACH(['a', 'b'], c -> @{c}),\n  @n AS n,\n  x\nFROM raw.b,\n(SELECT"
    )
    error = problem(text)
    assert isinstance(error, SyntaxProblem)
    assert error.location.line == 8


def test_an_unknown_macro_is_refused_with_the_nearest():
    error = problem("MODEL (name a);\nSELECT\n  @strt_ds AS x")
    assert isinstance(error, UnknownMacro)
    assert at(error) == ("models/m.sql", 3)
    assert "start_ds" in (error.hint or "")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("MODEL (name a);\nSELECT\n  @@x", 3),
        ("MODEL (name a);\nSELECT 1 AS x,\n  @ y FROM t", 3),
        ("MODEL (name a);\nSELECT a@1 FROM t", 2),
        ("MODEL (name a);\nSELECT 1 AS x;\nINSERT INTO l SELECT @@x", 3),
    ],
)
def test_a_sign_that_begins_no_name_is_refused_where_it_stands(text: str, line: int):
    error = problem(text)
    assert isinstance(error, MacroError)
    assert at(error) == ("models/m.sql", line)


def test_signs_in_texts_names_and_settings_are_no_macros():
    read(
        "MODEL (name a);\nSET x = me@1;\nSELECT 'a@b', '@@x', `u@h` AS `@y` -- @z @@\n"
        "FROM t WHERE ds > @execution_ds AND \"@x\" <> ''"
    )


def test_variables_in_quoted_names_are_filled_in_wherever_macros_are_allowed():
    model = read_one(
        "MODEL (name `@schema`.`o_@{schema}`, kind FULL, partitioned_by (`@part`));\n"
        "CREATE TABLE `@schema`.x (a int);\n"
        "SELECT 1 AS `@part` FROM `@schema`.`orders`;\nON_VIRTUAL_UPDATE_BEGIN;\nGRANT SELECT ON `@schema`.o TO x;\n"
        "ON_VIRTUAL_UPDATE_END;\n",
        variables={"schema": "raw", "part": "day"},
    )
    assert model.name == "raw.o_raw"
    assert model.partitioned_by == ("`day`",)
    assert model.body.query.expanded.strip() == "SELECT 1 AS `day` FROM `raw`.`orders`"
    assert [each.expanded for each in model.body.pre_statements] == ["CREATE TABLE `raw`.x (a int)"]
    assert [each.expanded for each in model.body.on_virtual_update] == ["GRANT SELECT ON `raw`.o TO x"]
    assert dict(model.body.macros.variables) == {"schema": "raw", "part": "day"}


def test_variables_in_quoted_names_reach_kinds_audits_and_blueprints():
    (model,) = (
        draft.model
        for draft in read(
            """MODEL (
              name `@{who}`.`@what`, blueprints ((who := ann, what := orders)), dialect spark,
              kind INCREMENTAL_BY_UNIQUE_KEY (unique_key (`@key`, `other`)),
              audits (mine, not_null(columns := (`@key`))), depends_on (`@who`.`b`)
            );
            SELECT 1 AS id, 2 AS other FROM `@who`.`c`;
            AUDIT (name mine); SELECT * FROM @this_model WHERE `@key` IN (SELECT id FROM `@{who}`.d)""",
            variables={"key": "id"},
        )
    )
    assert model.name == "ann.orders"
    assert model.kind.unique_key == ("`id`", "`other`")
    mine, not_null = model.audits
    assert "`id` IN (SELECT id FROM `ann`.d)" in mine.code.query.expanded
    assert "`id`" in not_null.code.query.expanded


@pytest.mark.parametrize("made", ["x.`@nope`", "`@{nope}`.t", "`@nope`.t AS y"])
def test_a_table_that_a_macro_names_by_an_unknown_variable_is_an_error(made: str):
    text = f"MODEL (name a, kind FULL);\nSELECT a\nFROM t JOIN @SQL('{made}') ON TRUE"
    (error,) = problems(text)
    assert isinstance(error, UnknownMacro)
    assert (error.location.line, error.location.column) == (3, 13)


def test_a_table_whose_name_begins_with_a_sign_can_be_meant():
    model = read_one("MODEL (name a, kind FULL); SELECT a FROM x.`@@nope`")
    assert model.body.query.expanded == "SELECT a FROM x.`@nope`"


def test_double_quoted_names_are_filled_in_where_the_dialect_quotes_names_so():
    model = read_one(
        'MODEL (name "@schema".orders, kind FULL, dialect postgres, cron "@daily", description "by @{who} at @home");'
        'SELECT "@col" FROM "@schema"."t"',
        variables={"schema": "raw", "col": "id"},
    )
    assert (model.name, model.cron, model.description) == ("raw.orders", "@daily", "by @{who} at @home")
    assert model.body.query.expanded.strip() == 'SELECT "id" FROM "raw"."t"'


def test_names_with_a_sign_of_their_own_leave_a_model_what_it_was():
    text = "MODEL (name a, kind FULL, clustered_by (`u@h`, `@stamp`)); SELECT 1 AS `u@h`, 2 AS `@stamp` FROM t"
    model = read_one(text)
    assert model.clustered_by == ("`u@h`", "`@stamp`")
    assert model == read_one(text, variables={"h": 1, "other": 2})


@pytest.mark.parametrize("kind", ["FULL", "VIEW"])
def test_a_model_that_is_computed_whole_has_no_interval_to_ask_for(kind: str):
    query = "SELECT\n @start_ds AS x, @execution_ds AS y"
    found = problems(f"MODEL (name a, kind {kind});\nSET x = @end_ds;\n{query};\nSET y = @start_ts")
    assert [at(error) for error in found] == [("models/m.sql", line) for line in (2, 4, 5)]
    assert [error.location.column for error in found] == [9, 2, 9]
    assert "`@start_ds` has no value in a model of kind" in found[1].message


def test_only_variables_in_use_belong_to_the_model():
    model = read_one(
        f"MODEL (name a, {BY_DAY}); SELECT @region AS x, @start_ds AS d",
        variables={"region": "eu", "other": 1, "third": [1]},
    )
    assert dict(model.body.macros.variables) == {"region": "eu"}
    assert model.body.query.expanded == "SELECT 'eu' AS x, @start_ds AS d"
    assert model.body.query.is_time_dependent is False


def test_a_branch_not_taken_keeps_its_variables():
    model = read_one(
        f"MODEL (name a, {BY_DAY}); SELECT @IF(@start_ds > '2024-01-01', @late, @early) AS d",
        variables={"late": 1, "early": 2, "other": 3},
    )
    assert model.body.query.is_time_dependent is True
    assert dict(model.body.macros.variables) == {"late": 1, "early": 2}


def test_python_macros_bring_their_modules():
    module = PythonModule(name="macros.m", path="macros/m.py", source="")
    other = PythonModule(name="macros.o", path="macros/o.py", source="")
    model = read_one(
        "MODEL (name a); SELECT @double(2) AS x",
        functions={"double": lambda evaluator, x: f"{x} * 2", "other": lambda evaluator: "1"},
        macro_modules={"double": (module,), "other": (other,)},
    )
    assert model.body.query.expanded == "SELECT 2 * 2 AS x"
    assert model.body.macros.modules == (module,)


def test_statements_around_the_query_are_expanded():
    model = read_one(
        "MODEL (name a); SET x = @region; @IF(false, SET y = 1); SELECT 1 AS x; ANALYZE TABLE @region",
        variables={"region": "eu"},
    )
    assert [text.expanded for text in model.body.pre_statements] == ["SET x = 'eu'"]
    assert [text.expanded for text in model.body.post_statements] == ["ANALYZE TABLE 'eu'"]


def test_a_model_has_no_table_of_its_own_around_its_query():
    found = problems("MODEL (name a);\nSELECT * FROM @this_model;\nANALYZE TABLE @{this_model}")
    assert [at(error) for error in found] == [("models/m.sql", 2), ("models/m.sql", 3)]
    assert "`@this_model` has no value here" in found[0].message


def read_by(text: str) -> dict[str, int | None]:
    """The tables that a file names, and the lines where it does so first."""
    (draft,) = read(text)
    return {reference.name.to_text(): reference.location.line for reference in draft.references}


def test_statements_around_a_query_are_read_like_it():
    text = """MODEL (name a, kind FULL);
CREATE TEMPORARY VIEW recent AS
SELECT * FROM raw.orders;
SELECT * FROM recent JOIN raw.customers JOIN Orders;
INSERT INTO notes.log SELECT count(*) FROM recent, shop.b, raw.orders;
CALL system.nothing(raw.third)
"""
    assert read_by(text) == {"raw.orders": 3, "raw.customers": 4, "orders": 4, "shop.b": 5}
    assert read_by(text.replace("kind FULL", "kind EMBEDDED")) == {"recent": 4, "raw.customers": 4, "orders": 4}


def test_a_temporary_view_may_have_the_name_of_a_table_that_is_written_with_its_schema():
    text = "MODEL (name a); CREATE TEMP VIEW orders AS SELECT * FROM shop.orders; SELECT * FROM Orders"
    assert read_by(text) == {"shop.orders": 1}


def test_a_name_is_a_table_or_a_temporary_view_but_not_both():
    found = problems("MODEL (name a);\nCREATE TEMP VIEW orders AS\nSELECT * FROM Orders;\nSELECT * FROM orders")
    assert [at(error) for error in found] == [("models/m.sql", 2)]
    assert "`orders` is read as a table before" in found[0].message


def test_macros_in_a_header_are_expanded_but_late_ones_are_not():
    model = read_one(
        """MODEL (
          name @{layer}.orders, owner @who, cron @hourly,
          audits (recent(since := @start_ds)), physical_properties (x = @who)
        ); SELECT 1 AS x""",
        variables={"layer": "gold", "who": "ann"},
    )
    assert (model.name, model.owner, model.cron) == ("gold.orders", "ann", "@hourly")
    assert dict(model.audits[0].arguments) == {"since": "@start_ds"}
    assert dict(model.physical_properties) == {"x": "@who"}


def test_blueprints_give_one_model_each():
    drafts = read(
        """MODEL (
          name @{customer}.orders,
          blueprints ((customer := alpha, field := x), (customer := beta, field := y))
        ); SELECT @{field} AS value, '@customer' AS label FROM @{customer}.raw"""
    )
    assert [draft.name.to_text() for draft in drafts] == ["alpha.orders", "beta.orders"]
    assert [draft.references[0].name.to_text() for draft in drafts] == ["alpha.raw", "beta.raw"]
    assert [dict(draft.model.body.macros.blueprint) for draft in drafts] == [
        {"customer": "alpha", "field": "x"},
        {"customer": "beta", "field": "y"},
    ]


@pytest.mark.parametrize(
    "made", ["@EACH(@names, x -> (c := @x))", "@SQL('(c := a), (c := b)')", "@SQL('((c := a), (c := b))')"]
)
def test_a_macro_may_give_all_blueprints(made: str):
    text = f"MODEL (name @{{c}}.o, kind FULL, blueprints {made}); SELECT 1 AS x"
    assert [draft.name.to_text() for draft in read(text, variables={"names": ["a", "b"]})] == ["a.o", "b.o"]


@pytest.mark.parametrize(
    "kind", ["FULL", "INCREMENTAL_BY_UNIQUE_KEY (unique_key a)", "SCD_TYPE_2_BY_COLUMN (unique_key a, columns (a))"]
)
def test_a_query_gives_no_column_that_is_not_declared(kind: str):
    text = f"MODEL (name m, kind {kind},\ncolumns (A INT));\nSELECT 1 AS a, 2 AS b"
    error = problem(text)
    assert isinstance(error, DefinitionError)
    assert (at(error), "`b`" in error.message) == (("models/m.sql", 2), True)


@pytest.mark.parametrize(
    ("kind", "query"),
    [
        ("VIEW", "SELECT 1 AS a, 2 AS b"),
        ("FULL", "SELECT a, * FROM t"),
        ("FULL", "SELECT a, b IS NULL FROM t"),
        ("SCD_TYPE_2_BY_COLUMN (unique_key a, columns (a))", "SELECT 1 AS a"),
    ],
)
def test_declared_columns_are_left_to_spark_where_the_query_does_not_tell(kind: str, query: str):
    declared = "a INT, valid_from TIMESTAMP, valid_to TIMESTAMP" if kind.startswith("SCD") else "a INT"
    assert read_one(f"MODEL (name m, kind {kind}, columns ({declared})); {query}").columns_are_declared


def test_a_macro_may_give_a_list_wherever_a_list_can_stand():
    model = read_one(
        "MODEL (name a, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key @keys), tags @keys, "
        "partitioned_by @EACH(@keys, x -> @{x}), columns @EACH(@keys, x -> @{x} INT)); SELECT 1 AS a, 2 AS b",
        variables={"keys": ["a", "b"]},
    )
    assert (model.kind.unique_key, model.tags, model.partitioned_by) == (("a", "b"), ("a", "b"), ("a", "b"))
    assert [(column.name, column.type) for column in model.columns] == [("a", "int"), ("b", "int")]


def test_a_problem_of_every_blueprint_is_told_once():
    text = "MODEL (name @{c}.o, owneri x, blueprints ((c := a), (c := b))); SELECT 1 AS x"
    assert isinstance(problem(text), UnknownProperty)


def test_an_audit_in_the_file_is_attached():
    model = read_one(
        "MODEL (name a, kind FULL); SELECT 1 AS x; AUDIT (name positive); SELECT * FROM @this_model WHERE x <= 0"
    )
    assert [audit.name for audit in model.audits] == ["positive"]
    assert "x <= 0" in model.audits[0].code.query.expanded


def test_defaults_of_the_project_stand_behind_the_header():
    found = defaults(
        cron="@hourly",
        owner="team",
        kind="FULL",
        physical_properties={"a": 1, "b": 2},
        audits=["not_empty"],
        pre_statements=["SET a = @region"],
        table_format="parquet",
    )
    model = read_one(
        "MODEL (name a, owner ann, physical_properties (b = 3, a = NULL), audits (mine)); SELECT 1 AS x",
        defaults=found,
        variables={"region": "eu"},
    )
    assert (model.cron, model.owner, model.kind) == ("@hourly", "ann", Full())
    assert dict(model.physical_properties) == {"b": 3}
    assert [audit.name for audit in model.audits] == ["not_empty", "mine"]
    assert [text.expanded for text in model.body.pre_statements] == ["SET a = 'eu'"]


def test_kind_defaults_reach_only_kinds_that_have_them():
    found = defaults(on_destructive_change="allow", batch_concurrency=3)
    text = "MODEL (name a, kind INCREMENTAL_BY_TIME_RANGE (time_column ds)); SELECT DATE '2024-01-01' AS ds"
    kind = read_one(text, defaults=found).kind
    assert (kind.policy.on_destructive_change, kind.batch_concurrency) == ("allow", 3)
    assert read_one("MODEL (name a, kind FULL); SELECT 1 AS x", defaults=found).kind == Full()


def test_another_dialect_is_read_as_such():
    model = read_one("MODEL (name a, dialect duckdb, columns (x INT8, y TEXT)); SELECT 1::INT8 AS x, y FROM raw.b")
    assert model.dialect == "duckdb"
    assert [column.type for column in model.columns] == ["bigint", "string"]


def test_two_columns_of_one_name_are_refused():
    assert type(problem("MODEL (name a, kind FULL); SELECT 1 AS x, 2 AS X")) is DefinitionError


def test_a_description_of_an_unknown_column_is_a_warning():
    (draft,) = read("MODEL (name a, column_descriptions (y = 'why')); SELECT 1 AS x")
    assert [notice.code for notice in draft.notices] == ["LAM-WARN-002"]


def test_a_star_over_an_unknown_table_leaves_columns_open():
    model = read_one("MODEL (name a); SELECT * FROM raw.b")
    assert model.columns is None
    assert model.body.has_star is True
