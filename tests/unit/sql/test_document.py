from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.errors import BadPropertyValue, LaminaError, Location, SyntaxProblem
from lamina.sql.fragment import Fragment
from lamina.sql.header.document import Document, read_audits, read_document
from lamina.sql.header.values import (
    Boolean,
    Call,
    ColumnDefinitions,
    Expression,
    Items,
    KindValue,
    MergeClauses,
    Number,
    Text,
    Value,
    Word,
    as_items,
    name_of,
    sql_of,
    text_of,
)

EXAMPLES = {
    path.stem: path.read_text(encoding="utf-8")
    for path in sorted((Path(__file__).parents[2] / "fixtures" / "seed_examples").glob("*.sql"))
}
MARKS = "()[]{};,'\"`@-/*\n=:.<> 1é"
WORDS = [
    "MODEL (",
    "AUDIT (",
    "SELECT",
    "name",
    "kind",
    "columns (",
    "when_matched (",
    "WHEN MATCHED",
    "@DEF(",
    "dialect",
]
FILE = "models/orders.sql"
HERE = Location(file=FILE)


def document(text: str, default_dialect: str = "spark") -> Document:
    return read_document(text, FILE, default_dialect)


def failure(text: str) -> LaminaError:
    with pytest.raises(LaminaError) as caught:
        document(text)
    return caught.value


def problems(text: str) -> tuple[LaminaError, ...]:
    try:
        document(text)
    except LaminaError as error:
        return error.problems
    return ()


def places(error: LaminaError) -> list[tuple[int | None, int | None]]:
    locations = [problem.location for problem in error.problems]
    return [(each.line, each.column) for each in locations if each is not None]


def texts(fragments: tuple[Fragment, ...]) -> list[str]:
    return [each.text for each in fragments]


class TestParts:
    def test_order_decides_what_a_statement_is_for(self) -> None:
        found = document(
            "-- Orders, one row each\n"
            "MODEL (name shop.orders, kind FULL);\n"
            "@DEF(rate, 1.5);\n"
            "SET a = ';';\n"
            "@IF(@runtime_stage = 'creating', CREATE TABLE x (a INT));\n"
            "SELECT 1 AS a /* kept */ FROM t;\n"
            "@IF(TRUE, OPTIMIZE t);\n"
            "INSERT INTO log SELECT 1;\n"
        )
        assert found.header is not None
        assert found.header.comment == "Orders, one row each"
        assert texts(found.definitions) == ["@DEF(rate, 1.5)"]
        assert texts(found.pre_statements) == [
            "SET a = ';'",
            "@IF(@runtime_stage = 'creating', CREATE TABLE x (a INT))",
        ]
        assert found.query is not None
        assert found.query.text == "SELECT 1 AS a /* kept */ FROM t"
        assert found.query.location == Location(file=FILE, line=6, column=1)
        assert texts(found.post_statements) == ["@IF(TRUE, OPTIMIZE t)", "INSERT INTO log SELECT 1"]

    @pytest.mark.parametrize("text", ["", "  \n", "-- nothing\n", ";;", "/* nothing */", "\ufeff"])
    def test_a_file_without_content_has_no_parts(self, text: str) -> None:
        assert document(text) == Document()

    def test_a_query_needs_no_header(self) -> None:
        found = document("SELECT 1")
        assert found.header is None
        assert found.query is not None

    def test_a_header_needs_no_query(self) -> None:
        found = document("MODEL (name a);\nSET x = 1;")
        assert found.query is None
        assert texts(found.pre_statements) == ["SET x = 1"]

    @pytest.mark.parametrize(
        "query",
        [
            "SELECT 1",
            "WITH a AS (SELECT 1) SELECT * FROM a",
            "FROM t SELECT a",
            "VALUES (1), (2)",
            "TABLE t",
            "(SELECT 1) UNION ALL (SELECT 2)",
            "@UNION('all', a, b)",
            "@my_query",
            "@WITH(@x) a AS (SELECT 1) SELECT * FROM a",
            "@IF(@x, SELECT 1, SELECT 2)",
        ],
    )
    def test_these_are_queries(self, query: str) -> None:
        found = document(f"MODEL (name a); SET x = 1; {query}; SET y = 2")
        assert found.query is not None
        assert found.query.text == query
        assert texts(found.pre_statements) == ["SET x = 1"]
        assert texts(found.post_statements) == ["SET y = 2"]

    @pytest.mark.parametrize(
        "statement",
        [
            "WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a",
            "FROM t INSERT INTO u SELECT a",
            "CREATE TEMPORARY VIEW v AS SELECT 1",
            "CACHE TABLE t",
            "SHOW TABLES LIKE 'x;y'",
            "CALL cat.system.rewrite('a', (1))",
            "ADD JAR '/x;y.jar'",
            "@IF(TRUE, DROP TABLE t)",
        ],
    )
    def test_these_are_statements(self, statement: str) -> None:
        found = document(f"MODEL (name a);\n{statement} ;\nSELECT 1;{statement}")
        assert texts(found.pre_statements) == texts(found.post_statements) == [statement]
        assert found.query is not None
        assert found.query.text == "SELECT 1"

    def test_two_macros_and_no_query_leave_it_open(self) -> None:
        found = document("MODEL (name a); @f(1); @g(2)")
        assert found.query is None
        assert texts(found.pre_statements) == ["@f(1)", "@g(2)"]

    def test_statements_for_virtual_updates_are_kept_apart(self) -> None:
        found = document(
            "MODEL (name a); SELECT 1;\n"
            "ON_VIRTUAL_UPDATE_BEGIN;\nGRANT SELECT ON VIEW @this_model TO ROLE r; SELECT 2;\nON_VIRTUAL_UPDATE_END;\n"
            "SET x = 1"
        )
        assert texts(found.on_virtual_update) == ["GRANT SELECT ON VIEW @this_model TO ROLE r", "SELECT 2"]
        assert texts(found.post_statements) == ["SET x = 1"]

    def test_audits_may_stand_beside_the_query(self) -> None:
        found = document(
            "MODEL (name a);\nAUDIT (name first);\nSELECT * FROM @this_model WHERE x;\nSELECT 1;\n"
            "-- about the second\nAUDIT (name second, dialect duckdb); @check(a);"
        )
        assert found.query is not None
        assert found.query.text == "SELECT 1"
        assert [block.query.text for block in found.audits] == ["SELECT * FROM @this_model WHERE x", "@check(a)"]
        assert [block.query.dialect for block in found.audits] == ["spark", "duckdb"]
        assert [block.dialect for block in found.audits] == ["spark", "spark"]
        assert [block.header.comment for block in found.audits] == [None, "about the second"]

    def test_a_file_of_audits(self) -> None:
        found = read_audits(
            "AUDIT (name a, defaults (x = 1));\nSELECT 1;\n\nAUDIT (name b, blocking false);\nSELECT 2", "audits/x.sql"
        )
        assert [block.query.text for block in found] == ["SELECT 1", "SELECT 2"]
        assert [block.query.location.line for block in found] == [2, 5]
        names = [block.header.find("name") for block in found]
        assert [name_of(each.value) for each in names if each] == ["a", "b"]
        assert read_audits("-- none yet", "audits/x.sql") == ()

    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ("SELECT 1", 1),
            ("AUDIT (name a); SELECT 1;\nSELECT 2", 2),
            ("MODEL (name a);", 1),
            ("AUDIT (name a);\nAUDIT (name b); SELECT 1", 1),
        ],
    )
    def test_a_file_of_audits_holds_nothing_else(self, text: str, line: int) -> None:
        with pytest.raises(SyntaxProblem) as caught:
            read_audits(text, "audits/x.sql")
        assert caught.value.location is not None
        assert caught.value.location.line == line


class TestText:
    def test_line_ends_make_no_difference(self) -> None:
        text = "-- about\nMODEL (\n  name a -- x\n);\n\nSELECT 'a\nb',\n  1\n"
        for ends in ("\r\n", "\r"):
            assert document(text.replace("\n", ends)) == document(text)
        found = document("\ufeff" + text.replace("\n", "\r\n"))
        assert found == document(text)
        assert found.query is not None
        assert found.query.location.line == 6

    def test_unusual_characters_stay_where_they_are(self) -> None:
        query = "SELECT '🐟 ñ \u00a0\u2028' AS `größe`,\u00a0数 FROM t"
        found = document(f"MODEL (name a, owner 'Zoë 🐟');\u00a0{query}")
        assert found.query is not None
        assert found.query.text == query
        assert found.header is not None
        assert found.header.properties[1].value == Text(value="Zoë 🐟", raw="", sql="", location=HERE)

    def test_every_fragment_is_found_at_its_place(self) -> None:
        for text in EXAMPLES.values():
            found = document(text)
            if found.query is not None:
                line, column = found.query.location.line, found.query.location.column
                assert line is not None
                assert column is not None
                rest = "\n".join(text.split("\n")[line - 1 :])[column - 1 :]
                assert rest.startswith(found.query.text)


class TestDialect:
    def test_the_header_decides_how_the_file_is_cut(self) -> None:
        found = document("# it's about fish\nMODEL (name a, dialect BigQuery);\nSELECT `a-b`.c # don't\nFROM t")
        assert found.dialect == "bigquery"
        assert found.query is not None
        assert found.query.dialect == "bigquery"

    @pytest.mark.parametrize(
        "header",
        [
            "MODEL (name a)",
            "MODEL (name a, -- dialect duckdb\n owner x)",
            "MODEL (name a, description 'dialect duckdb, dialect duckdb')",
            "MODEL (name a, kind CUSTOM (materialization 'x', dialect duckdb))",
            "MODEL (name dialect, tags (dialect, duckdb))",
        ],
    )
    def test_only_the_property_names_the_dialect(self, header: str) -> None:
        assert document(f"{header}; SELECT 1 AS dialect, duckdb").dialect == "spark"
        assert document(f"{header}; SELECT 1", "snowflake").dialect == "snowflake"

    @pytest.mark.parametrize("written", ["duckdb", "'duckdb'", '"DuckDB"', "/* x */ duckdb"])
    def test_a_dialect_may_be_quoted(self, written: str) -> None:
        assert document(f"MODEL (\n  name a,\n  DIALECT {written}\n); SELECT 1").dialect == "duckdb"

    def test_a_file_of_audits_has_a_dialect_too(self) -> None:
        (block,) = read_audits('AUDIT (name a, dialect postgres); SELECT "a" FROM t', "audits/x.sql")
        assert block.query.dialect == "postgres"

    def test_an_unknown_dialect_names_the_nearest(self) -> None:
        error = failure("MODEL (name a,\n  dialect snowflak); SELECT 1")
        assert isinstance(error, BadPropertyValue)
        assert error.hint == "Did you mean `snowflake`?"
        assert places(error) == [(2, 11)]

    def test_a_dialect_cannot_come_from_a_macro(self) -> None:
        error = failure("MODEL (dialect @d); SELECT 1")
        assert isinstance(error, BadPropertyValue)
        assert places(error) == [(1, 16)]


class TestProblems:
    @pytest.mark.parametrize(
        ("text", "where", "said"),
        [
            ("MODEL (name a);\nSELECT 1;\nSELECT 2;", (3, 1), "more than one query, the first on line 2"),
            ("SET x = 1;\nMODEL (name a); SELECT 1", (2, 1), "not first"),
            ("MODEL (name a);\nMODEL (name b); SELECT 1", (2, 1), "more than one MODEL header"),
            ("MODEL (name a)\nSELECT 1", (2, 1), "Expected `;` after the MODEL header"),
            ("MODEL (name a, kind FULL\nSELECT 1", (1, 7), "`(` is never closed"),
            ("MODEL (name a); SELECT (1;\nSELECT 2", (1, 24), "`(` is never closed"),
            ("MODEL (name a); SELECT 1)", (1, 25), "Unexpected `)`"),
            ("MODEL (name a); SELECT 'x", (1, 24), "A quote is opened with `'`"),
            ("MODEL (name a);\nSELECT `x", (2, 8), "A quote is opened with ```"),
            ("MODEL (name a);\n/* SELECT 1", (2, 1), "A comment is opened"),
            ("MODEL (name a);\nSELECT '/*', 1 /* x /* y */", (2, 16), "A comment is opened"),
            ("MODEL (name a); SELECT 1; @DEF(x, 1)", (1, 27), "`@DEF` after the query"),
            ("MODEL (name a);\n@DEF(x, 1)\nSELECT 1", (3, 1), "Expected `;` after `@DEF(…)`"),
            ("MODEL (name a); SELECT 1; ON_VIRTUAL_UPDATE_BEGIN; SET x = 1", (1, 27), "is never closed"),
            ("MODEL (name a); SELECT 1; ON_VIRTUAL_UPDATE_END;", (1, 27), "Unexpected `ON_VIRTUAL_UPDATE_END`"),
            ("MODEL (name a); SELECT 1; ON_VIRTUAL_UPDATE_BEGIN SET x; ON_VIRTUAL_UPDATE_END", (1, 51), "Expected `;`"),
            ("MODEL (name a); AUDIT (name b);", (1, 17), "AUDIT header has no query"),
            ("MODEL (name a); AUDIT (name b); SET x = 1; SELECT 1", (1, 17), "AUDIT header has no query"),
            ("MODEL (name a); JINJA_QUERY_BEGIN; SELECT {{ x }}; JINJA_END;", (1, 17), "Jinja is not supported"),
            ("MODEL (name a);\nJINJA_STATEMENT_BEGIN; {# it's #} it's; JINJA_END;", (2, 1), "Jinja is not supported"),
            ("MODEL (name a); SELECT {{ x }}", (1, 25), "Jinja is not supported"),
            ("MODEL (name a); {% if x %} SELECT 1 {% endif %}", (1, 17), "Jinja is not supported"),
        ],
    )
    def test_a_problem_names_what_and_where(self, text: str, where: tuple[int, int], said: str) -> None:
        error = failure(text)
        assert all(isinstance(problem, SyntaxProblem) for problem in error.problems)
        assert said in error.problems[0].message
        assert places(error)[0] == where

    def test_all_problems_of_a_file_are_told_at_once(self) -> None:
        error = failure("MODEL (name 'a', owner);\nSELECT 1;\nSELECT 2;\n@DEF(x, 1);\nAUDIT (name b)")
        assert sorted(places(error)) == [(1, 13), (1, 18), (3, 1), (4, 1), (5, 1)]

    def test_jinja_in_text_and_comments_is_no_jinja(self) -> None:
        assert document("MODEL (name a); SELECT '{{ x }} {%' -- JINJA_QUERY_BEGIN").query is not None

    @given(st.lists(st.sampled_from([*MARKS, *WORDS])))
    def test_no_text_gives_anything_but_a_document_or_problems_with_places(self, pieces: list[str]) -> None:
        for problem in problems("".join(pieces)):
            assert problem.location is not None
            assert problem.location.line is not None

    @given(st.sampled_from(sorted(EXAMPLES)), st.data())
    def test_a_damaged_example_gives_a_document_or_problems(self, name: str, data: st.DataObject) -> None:
        text = EXAMPLES[name]
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 20)))
        assert all(isinstance(problem, SyntaxProblem) for problem in problems(text[:start] + text[end:]))


# --- the examples of the documents the product is measured against ----------------------------------------------------
def example(name: str) -> Document:
    return read_document(EXAMPLES[name], f"models/{name}.sql")


def model_property(name: str, key: str) -> Value:
    header = example(name).header
    assert header is not None
    found = header.find(key)
    assert found is not None
    return found.value


def kind(name: str) -> KindValue:
    found = model_property(name, "kind")
    assert isinstance(found, KindValue)
    return found


def kind_property(name: str, key: str) -> Value:
    return next(each.value for each in kind(name).properties if each.key == key)


class TestExamples:
    def test_every_example_is_here(self) -> None:
        assert len(EXAMPLES) == 38

    @pytest.mark.parametrize("name", sorted(EXAMPLES))
    def test_every_example_is_read(self, name: str) -> None:
        found = example(name)
        assert found.header is not None
        assert found.header.block == "MODEL"
        assert found.dialect == ("bigquery" if "dialect bigquery" in EXAMPLES[name] else "spark")
        assert (found.query is not None) == ("SELECT" in EXAMPLES[name])
        assert not found.pre_statements
        assert not found.post_statements
        assert not found.definitions
        assert not found.audits

    @pytest.mark.parametrize(
        ("example_name", "model", "kind_name"),
        [
            ("time_range_complete", "db.events", "INCREMENTAL_BY_TIME_RANGE"),
            ("time_range_walkthrough", "demo.incrementals_demo", "INCREMENTAL_BY_TIME_RANGE"),
            ("unique_key", "db.employees", "INCREMENTAL_BY_UNIQUE_KEY"),
            ("full", "db.salary_by_title_agg", "FULL"),
            ("view", "db.highest_salary", "VIEW"),
            ("embedded", "db.unique_employees", "EMBEDDED"),
            ("seed", "demo.seed_example", "SEED"),
            ("scd_by_time", "db.menu_items", "SCD_TYPE_2_BY_TIME"),
            ("scd_daily_snapshot", "db.table", "SCD_TYPE_2_BY_COLUMN"),
            ("partition_walkthrough", "demo.incremental_by_partition_demo", "INCREMENTAL_BY_PARTITION"),
            ("unmanaged", "db.events", "INCREMENTAL_UNMANAGED"),
        ],
    )
    def test_names_and_kinds(self, example_name: str, model: str, kind_name: str) -> None:
        assert name_of(model_property(example_name, "name")) == model
        assert kind(example_name).name == kind_name

    def test_the_time_column(self) -> None:
        for name in ("time_range_header", "time_range_complete", "time_column_name", "time_range_other_input_column"):
            assert name_of(kind_property(name, "time_column")) == "event_date"
        column, form = as_items(kind_property("time_column_with_format", "time_column"))
        assert (name_of(column), text_of(form)) == ("event_date", "%Y-%m-%d")
        column, form = as_items(kind_property("guide_time_range", "time_column"))
        assert (name_of(column), text_of(form)) == ("ds", "%Y-%m-%d")

    def test_the_walkthrough_with_comments_everywhere(self) -> None:
        assert kind_property("time_range_walkthrough", "lookback") == Number(text="2", location=HERE)
        assert text_of(model_property("time_range_walkthrough", "start")) == "2024-10-25"
        assert text_of(model_property("time_range_walkthrough", "cron")) == "@daily"
        assert name_of(model_property("time_range_walkthrough", "grain")) == "transaction_id"
        found = example("time_range_walkthrough")
        assert found.header is not None
        assert found.header.find("audits") is None
        assert found.query is not None
        assert "FROM sqlmesh-public-demo.tcloud_raw_data.sales  -- first source" in found.query.text

    def test_partitioning(self) -> None:
        assert kind_property("partition_by_time_column_false", "partition_by_time_column") == Boolean(
            value=False, location=HERE
        )
        partitions = {
            "partition_by_time_column_false": ["other_col"],
            "partition": ["region"],
            "partition_composite": ["region", "department"],
            "partition_expression": ["DATETIME_TRUNC(event_date, MONTH)"],
            "partition_walkthrough": ["user_segment"],
        }
        for name, expected in partitions.items():
            assert [sql_of(each) for each in as_items(model_property(name, "partitioned_by"))] == expected

    def test_unique_keys(self) -> None:
        keys = {
            "unique_key": ["name"],
            "unique_key_composite": ["first_name", "last_name"],
            "unique_key_expression": ["COALESCE(`name`, '')"],
            "scd_by_column": ["id"],
        }
        for name, expected in keys.items():
            assert [sql_of(each) for each in as_items(kind_property(name, "unique_key"))] == expected
        assert isinstance(kind_property("unique_key_expression", "unique_key"), Call)

    def test_merge_clauses_and_filters(self) -> None:
        salary = "THEN UPDATE SET target.salary = COALESCE(source.salary, target.salary)"
        title = "THEN UPDATE SET target.title = COALESCE(source.title, target.title)"
        assert kind_property("unique_key_when_matched", "when_matched") == MergeClauses(
            clauses=(f"WHEN MATCHED {salary}",), location=HERE
        )
        assert kind_property("unique_key_when_matched_twice", "when_matched") == MergeClauses(
            clauses=(f"WHEN MATCHED AND source.value IS NULL {salary}", f"WHEN MATCHED {title}"), location=HERE
        )
        assert kind_property("unique_key_merge_filter", "merge_filter") == Expression(
            sql="source._operation IS NULL AND target.contract_date > dateadd(day, -7, current_date)", location=HERE
        )

    def test_the_seed_ends_without_a_semicolon(self) -> None:
        assert text_of(kind_property("seed", "path")) == "../../seeds/seed_example.csv"
        assert model_property("seed", "columns") == ColumnDefinitions(
            columns=(("id", "INT64"), ("item_id", "INT64"), ("event_date", "DATE")), location=HERE
        )
        assert [name_of(each) for each in as_items(model_property("seed", "grain"))] == ["id", "event_date"]

    def test_slowly_changing_dimensions(self) -> None:
        columns = kind_property("scd_by_column", "columns")
        assert isinstance(columns, Items)
        assert [name_of(each) for each in columns.values] == ["name", "price"]
        assert [name_of(each) for each in as_items(kind_property("scd_daily_snapshot", "columns"))] == ["some_value"]
        assert name_of(kind_property("scd_by_time_updated_at_name", "updated_at_name")) == "my_updated_at"
        assert name_of(kind_property("scd_validity_names", "valid_from_name")) == "my_valid_from"
        assert name_of(kind_property("scd_validity_names", "valid_to_name")) == "my_valid_to"
        assert kind_property("scd_time_data_type", "time_data_type") == Word(
            parts=("TIMESTAMP",), sql="TIMESTAMP", location=HERE
        )
        assert kind_property("scd_restatement_enabled", "disable_restatement") == Boolean(value=False, location=HERE)
        assert [each.key for each in kind("scd_restatement_disabled_again").properties] == ["unique_key"]

    def test_flags(self) -> None:
        assert kind_property("view_materialized", "materialized") == Boolean(value=True, location=HERE)
        assert model_property("guide_forward_only", "forward_only") == Boolean(value=True, location=HERE)

    @pytest.mark.parametrize(("name", "period"), [("run_always", "always"), ("run_every_day", "24h")])
    def test_models_that_run_although_nothing_changed(self, name: str, period: str) -> None:
        assert text_of(model_property(name, "materialized")) == "table"
        assert text_of(model_property(name, "run_despite_unchanged")) == period
