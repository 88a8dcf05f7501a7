"""`kind X (...)` becomes one of the kinds."""

from __future__ import annotations

import pytest

from lamina.errors import BadPropertyValue, BadSchedule, DefinitionError, UnknownKind, UnknownProperty
from lamina.graph.kinds import (
    KINDS,
    CsvSettings,
    Custom,
    IncrementalByPartition,
    IncrementalByTimeRange,
    IncrementalByUniqueKey,
    IncrementalPolicy,
    IncrementalUnmanaged,
    Managed,
    ScdType2ByColumn,
    ScdType2ByTime,
    Seed,
    TimeColumn,
    View,
)
from lamina.reading.kinds import PROPERTIES, strftime_format
from tests.unit.reading.reading import problem, problems, read, read_one

SELECT = (
    "SELECT DATE '2024-01-01' AS ds, 1 AS id, 'x' AS name, TIMESTAMP '2024-01-01 00:00:00' AS updated_at FROM raw.t"
)


def kind_of(kind: str, more: str = ""):
    return read_one(f"MODEL (name a, kind {kind}{more}); {SELECT}").kind


def test_every_kind_can_be_read():
    assert {kind.name for kind in KINDS} == set(PROPERTIES)


def test_a_time_range_with_everything():
    kind = kind_of(
        """INCREMENTAL_BY_TIME_RANGE (
          time_column (ds, 'yyyy-MM-dd'), batch_size 30, batch_concurrency 2, lookback 3,
          partition_by_time_column false, forward_only true, disable_restatement true,
          on_destructive_change allow, on_additive_change ERROR,
          auto_restatement_cron '@weekly', auto_restatement_intervals 7)"""
    )
    assert kind == IncrementalByTimeRange(
        time_column=TimeColumn(name="ds", format="%Y-%m-%d"),
        batch_size=30,
        batch_concurrency=2,
        lookback=3,
        partition_by_time_column=False,
        policy=IncrementalPolicy(
            forward_only=True,
            disable_restatement=True,
            on_destructive_change="allow",
            on_additive_change="error",
            auto_restatement_cron="@weekly",
            auto_restatement_intervals=7,
        ),
    )


def test_a_unique_key_with_everything():
    kind = kind_of(
        """INCREMENTAL_BY_UNIQUE_KEY (
          unique_key (id, lower(name)), order_by ('updated_at DESC', id), batch_size 5, lookback 1, batch_concurrency 1,
          when_matched (WHEN MATCHED THEN UPDATE SET target.name = source.name),
          merge_filter source.ds > @start_ds)"""
    )
    assert isinstance(kind, IncrementalByUniqueKey)
    assert kind.unique_key == ("id", "lower(name)")
    assert kind.order_by == ("updated_at DESC", "id")
    assert kind.when_matched == ("WHEN MATCHED THEN UPDATE SET target.`name` = source.name",)
    assert kind.merge_filter == "source.ds > @start_ds"
    assert (kind.batch_size, kind.lookback) == (5, 1)


def test_the_other_kinds_with_their_properties():
    assert kind_of("VIEW (materialized true)") == View(materialized=True)
    assert kind_of("FULL").name == "FULL"
    assert kind_of("EMBEDDED").name == "EMBEDDED"
    assert kind_of("MANAGED") == Managed()
    assert kind_of("INCREMENTAL_BY_PARTITION", ", partitioned_by name") == IncrementalByPartition()
    assert kind_of("INCREMENTAL_UNMANAGED (disable_restatement false)") == IncrementalUnmanaged(
        policy=IncrementalPolicy(forward_only=True, disable_restatement=False)
    )
    assert kind_of("CUSTOM (materialization 'mine', materialization_properties (a = 1), lookback 2)") == Custom(
        materialization="mine", materialization_properties={"a": 1}, lookback=2
    )


@pytest.mark.parametrize("written", ["(name DESC, id)", "[name desc, id]", "('name DESC', id)"])
def test_what_wins_among_rows_of_a_key_is_ordered(written: str):
    kind = kind_of(f"INCREMENTAL_BY_UNIQUE_KEY (unique_key ds, order_by {written})")
    assert kind.order_by == ("name DESC", "id")


def test_clauses_may_name_any_column_of_both_sides():
    kind = kind_of(
        "INCREMENTAL_BY_UNIQUE_KEY (unique_key id, order_by lower(NAME) DESC NULLS LAST, merge_filter source.ds > "
        "@start_ds AND target.ID > 1, when_matched (WHEN MATCHED AND exists(array(source.id), x -> x > target.id) THEN "
        "UPDATE SET name = coalesce(source.name, TARGET.name)))"
    )
    assert kind.order_by == ("lower(NAME) DESC NULLS LAST",)


def test_history_kinds():
    by_time = kind_of("SCD_TYPE_2 (unique_key id, time_data_type DATE, updated_at_as_valid_from true)")
    assert by_time == ScdType2ByTime(unique_key=("id",), time_data_type="date", updated_at_as_valid_from=True)
    by_column = kind_of("SCD_TYPE_2_BY_COLUMN (unique_key id, columns *, execution_time_as_valid_from true)")
    assert by_column == ScdType2ByColumn(unique_key=("id",), columns=(), execution_time_as_valid_from=True)
    for every in ("(*)", "[*]", "'*'"):
        assert kind_of(f"SCD_TYPE_2_BY_COLUMN (unique_key id, columns {every})").columns == ()
    listed = kind_of("SCD_TYPE_2_BY_COLUMN (unique_key id, columns (name), updated_at_name updated_at)")
    assert (listed.columns, listed.updated_at_name) == (("name",), "updated_at")


def test_a_seed_with_its_settings():
    (draft,) = read(
        r"""MODEL (name a, kind SEED (
          path '..\seeds\x.csv', batch_size 10,
          csv_settings (delimiter = ';', quotechar = "'", doublequote = false, escapechar = '#',
            skipinitialspace = true, encoding = 'latin-1', na_values = ('-', 'n/a'), keep_default_na = false)))"""
    )
    assert draft.model.kind == Seed(
        path="../seeds/x.csv",
        batch_size=10,
        csv_settings=CsvSettings(
            delimiter=";",
            quotechar="'",
            doublequote=False,
            escapechar="#",
            skipinitialspace=True,
            encoding="latin-1",
            na_values=("-", "n/a"),
            keep_default_na=False,
        ),
    )


def test_missing_values_may_be_given_per_column():
    (draft,) = read("MODEL (name a, kind SEED (path 'x.csv', csv_settings (na_values = (id = ('0'), name = ''))))")
    assert dict(draft.model.kind.csv_settings.na_values_by_column) == {"id": ("0",), "name": ("",)}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("INCREMENTAL_BY_TIME_RANGE", DefinitionError),
        ("INCREMENTAL_BY_TIME_RANGE (time_column nothing)", DefinitionError),
        ("INCREMENTAL_BY_TIME_RANGE (time_column 'ds')", BadPropertyValue),
        ("INCREMENTAL_BY_TIME_RANGE (time_column (ds, 5))", BadPropertyValue),
        ("INCREMENTAL_BY_TIME_RANGE (time_column (ds, 'sometimes'))", BadPropertyValue),
        ("INCREMENTAL_BY_TIME_RANGE (time_column (ds, '%Q'))", DefinitionError),
        ("INCREMENTAL_BY_TIME_RANGE (time_column ds, batch_size 0)", BadPropertyValue),
        ("INCREMENTAL_BY_TIME_RANGE (time_column ds, batch_size -1)", BadPropertyValue),
        ("INCREMENTAL_BY_TIME_RANGE (time_column ds, lookback 1.5)", BadPropertyValue),
        ("INCREMENTAL_BY_TIME_RANGE (time_column ds, on_additive_change maybe)", BadPropertyValue),
        ("INCREMENTAL_BY_TIME_RANGE (time_column ds, auto_restatement_cron 'x')", BadSchedule),
        ("INCREMENTAL_BY_TIME_RANGE (time_colum ds, time_column ds)", UnknownProperty),
        ("INCREMENTAL_BY_UNIQUE_KEY", DefinitionError),
        ("INCREMENTAL_BY_UNIQUE_KEY (unique_key nothing)", DefinitionError),
        ("INCREMENTAL_BY_UNIQUE_KEY (unique_key id, batch_concurrency 2)", BadPropertyValue),
        ("INCREMENTAL_BY_UNIQUE_KEY (unique_key id, order_by nothing DESC)", DefinitionError),
        ("INCREMENTAL_BY_UNIQUE_KEY (unique_key id, merge_filter name > 1)", DefinitionError),
        (
            "INCREMENTAL_BY_UNIQUE_KEY (unique_key id, when_matched (WHEN MATCHED THEN UPDATE SET name = t.name))",
            DefinitionError,
        ),
        (
            "INCREMENTAL_BY_UNIQUE_KEY (unique_key id, when_matched (WHEN MATCHED AND id > 1 THEN DELETE))",
            DefinitionError,
        ),
        ("INCREMENTAL_BY_PARTITION", DefinitionError),
        ("INCREMENTAL_BY_PARTITION (forward_only true), partitioned_by name", DefinitionError),
        ("INCREMENTAL_UNMANAGED (batch_size 3)", UnknownProperty),
        ("INCREMENTAL_UNMANAGED (insert_overwrite true)", DefinitionError),
        ("SCD_TYPE_2_BY_TIME", DefinitionError),
        ("SCD_TYPE_2_BY_TIME (unique_key id, updated_at_name nothing)", DefinitionError),
        ("SCD_TYPE_2_BY_TIME (unique_key ())", DefinitionError),
        ("SCD_TYPE_2_BY_TIME (unique_key id, valid_from_name v, valid_to_name V)", BadPropertyValue),
        ("SCD_TYPE_2_BY_TIME (unique_key id, valid_from_name valid_to)", BadPropertyValue),
        ("SCD_TYPE_2_BY_TIME (unique_key id, time_data_type STRING)", BadPropertyValue),
        ("SCD_TYPE_2_BY_COLUMN (unique_key id)", DefinitionError),
        ("SCD_TYPE_2_BY_COLUMN (unique_key id, columns [])", DefinitionError),
        ("CUSTOM", DefinitionError),
        ("EXTERNAL", DefinitionError),
        ("FULL (batch_size 3)", UnknownProperty),
        ("FUL", UnknownKind),
        ("VIEW, partitioned_by name", DefinitionError),
        ("EMBEDDED, audits (x)", DefinitionError),
    ],
)
def test_a_wrong_kind_is_refused_where_it_stands(kind: str, expected: type):
    found = problems(f"MODEL (\n  name a,\n  kind {kind}\n);\n{SELECT}")
    assert [type(error) for error in found] == [expected]
    assert (found[0].location.file, found[0].location.line) == ("models/m.sql", 3)


@pytest.mark.parametrize("kind", ["VIEW", "EMBEDDED"])
def test_the_text_of_a_view_is_not_substituted_and_says_so(kind: str):
    header = f"name a,\n  kind {kind},\n  session_properties ('spark.sql.variable.substitute' = true)"
    error = problem(f"MODEL (\n  {header}\n);\nSELECT '${{my.setting}}' AS x")
    assert type(error) is DefinitionError
    assert error.location.line == 4
    assert "kind FULL" in error.hint
    read_one(f"MODEL ({header}); SELECT '$' AS x")
    read_one(f"MODEL ({header.replace('true', 'false')}); SELECT '${{my.setting}}' AS x")
    read_one(f"MODEL ({header.replace(kind, 'FULL')}); SELECT '${{my.setting}}' AS x")


def test_an_unknown_kind_names_all_kinds_and_the_nearest():
    error = problem(f"MODEL (name a, kind INCREMENTAL_BY_TIME_RANG (time_column ds)); {SELECT}")
    assert error.hint.startswith("did you mean `INCREMENTAL_BY_TIME_RANGE`?")
    assert all(f"`{name}`" in error.hint for name in PROPERTIES)


def test_a_missing_time_column_comes_with_the_nearest_column():
    error = problem(f"MODEL (name a, kind INCREMENTAL_BY_TIME_RANGE (time_column dss)); {SELECT}")
    assert type(error) is DefinitionError
    assert error.hint == "did you mean `ds`?"


def test_the_time_column_is_compared_without_case():
    assert kind_of("INCREMENTAL_BY_TIME_RANGE (time_column DS)").time_column.name == "DS"


@pytest.mark.parametrize("written", ["DOUBLE", "BOOLEAN", "ARRAY<DATE>", "BINARY", "DECIMAL(10, 2)"])
def test_a_time_column_of_an_unusable_type_is_refused(written: str):
    text = f"MODEL (name a, kind INCREMENTAL_BY_TIME_RANGE (time_column ds)); SELECT CAST(x AS {written}) AS ds FROM t"
    assert type(problem(text)) is DefinitionError


def test_a_number_as_time_needs_a_format():
    text = "MODEL (name a, kind INCREMENTAL_BY_TIME_RANGE (time_column {})); SELECT CAST(x AS INT) AS ds FROM t"
    assert type(problem(text.format("ds"))) is DefinitionError
    assert read_one(text.format("(ds, '%Y%m%d')")).kind.time_column.format == "%Y%m%d"


def test_the_time_column_stands_first_among_the_partitions():
    def partitions(by: str, inside: str = "") -> tuple[str, ...]:
        text = f"MODEL (name a, kind INCREMENTAL_BY_TIME_RANGE (time_column ds{inside}){by}); {SELECT}"
        return read_one(text).partitioned_by

    assert partitions("") == ("ds",)
    assert partitions(", partitioned_by name") == ("ds", "name")
    assert partitions(", partitioned_by (name, ds)") == ("name", "ds")
    assert partitions(", partitioned_by date_trunc('month', ds)") == ("date_trunc('month', ds)",)
    assert partitions("", ", partition_by_time_column false") == ()


def test_a_query_does_not_give_a_column_of_validity():
    text = f"MODEL (name a, kind SCD_TYPE_2_BY_TIME (unique_key id, valid_from_name %s)); {SELECT}"
    assert "`DS`" in problem(text % "DS").message
    header = "MODEL (name a, kind SCD_TYPE_2_BY_TIME (unique_key id), columns (id int, updated_at date, valid_to date))"
    assert read_one(f"{header}; SELECT id, updated_at FROM t").columns_are_declared


def test_a_hint_for_a_key_names_only_columns_of_the_query():
    error = problem(f"MODEL (name a, kind SCD_TYPE_2_BY_TIME (unique_key q)); {SELECT}")
    assert error.hint == "the columns are `ds`, `id`, `name`, `updated_at`"


def test_of_a_faulty_seed_only_the_fault_is_told():
    assert "`path`" in problem("MODEL (name a, kind SEED)").message


@pytest.mark.parametrize(("written", "read"), [("'|'", "|"), (r"'\n'", None), (r"'\r\n'", None)])
def test_lines_of_a_seed_may_end_in_a_character_of_their_own(written: str, read: str | None):
    text = f"MODEL (name a, kind SEED (path 'x.csv', csv_settings (lineterminator = {written})))"
    assert read_one(text).kind.csv_settings.lineterminator == read
    assert type(problem(text.replace(written, "'ab'"))) is BadPropertyValue


@pytest.mark.parametrize("name", ["my ts", "a-b", "a.b", "case", "select", "größe"])
def test_a_time_column_may_have_any_name(name: str):
    text = f"MODEL (name a, kind INCREMENTAL_BY_TIME_RANGE (time_column `{name}`)); SELECT x AS `{name}` FROM t"
    assert read_one(text).partitioned_by == (f"`{name}`",)


def test_forward_only_may_not_contradict_itself():
    text = "MODEL (name a, kind INCREMENTAL_BY_TIME_RANGE (time_column ds, forward_only false), forward_only true); "
    assert type(problem(text + SELECT)) is DefinitionError


@pytest.mark.parametrize(
    ("dialect", "written", "expected"),
    [
        ("snowflake", "YYYY-MM-DD", "%Y-%m-%d"),
        ("snowflake", "yyyy-mm-dd", "%Y-%m-%d"),
        ("snowflake", "yyyy-mm-dd hh24:mi:ss.ff6", "%Y-%m-%d %H:%M:%S.%f"),
        ("snowflake", 'YYYY-MM-DD"T"HH24:MI', "%Y-%m-%dT%H:%M"),
        ("snowflake", "%Y-%m-%d", "%Y-%m-%d"),
        ("snowflake", "yyyy-MM-dd HH:mm", None),
        ("postgres", "YYYY-MM-DD HH24:MI:SS", "%Y-%m-%d %H:%M:%S"),
        ("postgres", "yyyymmdd", "%Y%m%d"),
        ("redshift", "YYYYMMDD", "%Y%m%d"),
        ("oracle", "YYYYMMDD", "%Y%m%d"),
        ("tsql", "yyyy-MM-dd HH:mm:ss", "%Y-%m-%d %H:%M:%S"),
        ("mysql", "%Y-%m-%d %H:%i:%s", "%Y-%m-%d %H:%M:%S"),
        ("trino", "%d %M %Y", "%d %B %Y"),
        ("trino", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M"),
        ("bigquery", "%F %T", "%F %T"),
        ("bigquery", "%Y-%m-%d %H:%M:%E6S", "%Y-%m-%d %H:%M:%S.%f"),
        ("bigquery", "%Y-%m-%d", "%Y-%m-%d"),
        ("duckdb", "%Y-%m-%d", "%Y-%m-%d"),
        ("duckdb", "yyyy-MM-dd", "%Y-%m-%d"),
        ("spark", "yyyy-MM-dd HH:mm", "%Y-%m-%d %H:%M"),
        ("databricks", "yyyyMMdd", "%Y%m%d"),
    ],
)
def test_time_formats_follow_the_dialect(dialect: str, written: str, expected: str | None):
    text = f"MODEL (name a, dialect {dialect}, kind INCREMENTAL_BY_TIME_RANGE (time_column (ds, '{written}'))); "
    if expected is None:
        # A mix of two dialects' words is read as Spark reads it.
        expected = strftime_format(written)
    kind = read_one(text + SELECT).kind
    assert isinstance(kind, IncrementalByTimeRange)
    assert kind.time_column.format == expected


def test_time_formats_are_translated():
    assert strftime_format("%d.%m.%Y") == "%d.%m.%Y"
    assert strftime_format("yyyyMMdd") == "%Y%m%d"
    assert strftime_format("yyyy-MM-dd'T'HH:mm:ss") == "%Y-%m-%dT%H:%M:%S"
    assert strftime_format("YYYY-MM-DD HH24:MI:SS") == "%Y-%m-%d %H:%M:%S"
    assert strftime_format("quarterly") is None
