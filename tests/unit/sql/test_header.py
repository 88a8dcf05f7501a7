from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.errors import BadPropertyValue, LaminaError, Location, SyntaxProblem
from lamina.sql.fragment import Fragment
from lamina.sql.header.read import Header, read_header, read_properties, read_value
from lamina.sql.header.values import (
    Boolean,
    Call,
    ColumnDefinitions,
    Expression,
    Items,
    KindValue,
    MacroValue,
    MergeClauses,
    Null,
    Number,
    Pair,
    Property,
    Text,
    Value,
    Word,
    as_items,
    name_of,
    sql_of,
    text_of,
)

HERE = Location(file="models/orders.sql", line=1, column=1)


def fragment(text: str, dialect: str = "spark") -> Fragment:
    return Fragment(text=text, location=HERE, dialect=dialect)


def header(text: str, dialect: str = "spark") -> Header:
    return read_header(fragment(text, dialect))


def value(written: str, key: str = "something", *, is_kind: bool = False, dialect: str = "spark") -> Value:
    return read_value(key, fragment(written, dialect), is_kind=is_kind)


def word(*parts: str, is_quoted: bool = False) -> Word:
    return Word(parts=parts, is_quoted=is_quoted, sql="", location=HERE)


def text(content: str, quote: str = "'") -> Text:
    return Text(value=content, quote=quote, raw="", sql="", location=HERE)


def number(written: str) -> Number:
    return Number(text=written, location=HERE)


def items(*values: Value) -> Items:
    return Items(values=values, location=HERE)


def pair(key: str, content: Value) -> Pair:
    return Pair(key=key, value=content, sql="", location=HERE)


def call(name: str, *arguments: Value) -> Call:
    return Call(name=name, arguments=arguments, sql="", location=HERE)


def expression(sql: str) -> Expression:
    return Expression(sql=sql, location=HERE)


def macro(written: str) -> MacroValue:
    return MacroValue(text=written, location=HERE)


def failure(written: str, dialect: str = "spark") -> LaminaError:
    with pytest.raises(LaminaError) as caught:
        header(written, dialect)
    return caught.value


def place(error: LaminaError) -> tuple[int | None, int | None]:
    assert error.location is not None
    assert error.location.file == "models/orders.sql"
    return error.location.line, error.location.column


class TestValues:
    @pytest.mark.parametrize(
        ("written", "expected"),
        [
            ("id", word("id")),
            ("a.b.c", word("a", "b", "c")),
            ("sqlmesh-public-demo.raw.sales", word("sqlmesh-public-demo", "raw", "sales")),
            ("`a b`", word("a b", is_quoted=True)),
            ("a.`b.c`.d", word("a", "b.c", "d", is_quoted=True)),
            ('a."b c"', word("a", "b c", is_quoted=True)),
            ("bounded-14d", word("bounded-14d")),
            ("30d", word("30d")),
            ("24h", word("24h")),
            ("2024-01-01", word("2024-01-01")),
            ("*", word("*")),
            ("TABLE", word("TABLE")),
            ("'it''s'", text("it's")),
            ("''''", text("'")),
            ("'%Y-%m-%d'", text("%Y-%m-%d")),
            ("'long ' 'text'", text("long text")),
            ('"24h"', text("24h", '"')),
            ("5", number("5")),
            ("-1.5", number("-1.5")),
            ("1e6", number("1e6")),
            ("TRUE", Boolean(value=True, location=HERE)),
            ("false", Boolean(value=False, location=HERE)),
            ("NULL", Null(location=HERE)),
            ("()", items()),
            ("(a)", items(word("a"))),
            ("(a, b)", items(word("a"), word("b"))),
            ("[a, 'b',]", items(word("a"), text("b"))),
            ("((a, b), c)", items(items(word("a"), word("b")), word("c"))),
            ("(select, with)", items(word("select"), word("with"))),
            ("('a.b' = 1, c = 'x')", items(pair("a.b", number("1")), pair("c", text("x")))),
            ("(delta.x-y = true)", items(pair("delta.x-y", Boolean(value=True, location=HERE)))),
            ("(na = ['', 'x'])", items(pair("na", items(text(""), text("x"))))),
            ("((c := a, f := 'x'), ())", items(items(pair("c", word("a")), pair("f", text("x"))), items())),
            ("month(ts)", call("month", word("ts"))),
            ("bucket(16, id)", call("bucket", number("16"), word("id"))),
            ("not_null(columns := (a, b))", call("not_null", pair("columns", items(word("a"), word("b"))))),
            ("checks.positive(x = 1)", call("checks.positive", pair("x", number("1")))),
            ("now()", call("now")),
            ("CAST(a AS DATE)", expression("CAST(a AS DATE)")),
            ("count(DISTINCT a)", expression("count(DISTINCT a)")),
            ("(SELECT 1)", expression("(SELECT 1)")),
            ("a + b", expression("a + b")),
            ("(a = 1 AND b = 2, c > 3)", items(expression("a = 1 AND b = 2"), expression("c > 3"))),
            ("(a AS b, c)", items(expression("a AS b"), word("c"))),
            ("America/Los_Angeles", expression("America/Los_Angeles")),
        ],
    )  # fmt: skip
    def test_a_value_is_read_as_what_it_looks_like(self, written: str, expected: Value) -> None:
        assert value(written) == expected

    @pytest.mark.parametrize("written", ["a", "(a)", "[a]", "( a , )"])
    def test_every_spelling_of_a_list_of_one_is_the_same_list(self, written: str) -> None:
        assert as_items(value(written)) == (word("a"),)

    def test_a_double_quoted_word_is_text_or_an_identifier_as_the_reader_needs(self) -> None:
        for dialect, quoted in [("spark", "`24h`"), ("bigquery", "`24h`"), ("duckdb", '"24h"')]:
            found = value('"24h"', dialect=dialect)
            assert found == text("24h", '"')
            assert text_of(found) == name_of(found) == "24h"
            assert sql_of(found) == quoted

    def test_single_quoted_text_is_no_name(self) -> None:
        assert name_of(value("'id'")) is None
        assert text_of(value("'id'")) == "id"

    def test_double_quoted_words_in_an_expression_are_identifiers(self) -> None:
        assert sql_of(value("COALESCE(\"name\", '')", "unique_key", is_kind=True)) == "COALESCE(`name`, '')"
        assert sql_of(value('"a" || "b`c"')) == "`a` || `b``c`"

    def test_the_sql_of_a_value_has_no_comments_and_no_line_breaks(self) -> None:
        assert sql_of(value("f(a, -- first\n  b /* second */)")) == "f(a, b)"
        assert sql_of(value("(a,\n b = 1, x + -- y\n 1)")) == "(a, b = 1, x + 1)"

    def test_an_escaped_path_keeps_what_was_written(self) -> None:
        found = value(r"'..\seeds\orders.csv'", "path", is_kind=True)
        assert isinstance(found, Text)
        assert found.raw == r"..\seeds\orders.csv"

    def test_two_values_are_equal_wherever_they_are_written(self) -> None:
        assert value("(a, f(b))") == value("\n\n ( a,\n f( b ) )")
        assert value("a") != value("b")


class TestProperties:
    def test_a_header_keeps_its_properties_in_order(self) -> None:
        found = header("MODEL (NAME shop.orders, Owner 'ann', tags [a, b],);")
        assert found.block == "MODEL"
        assert [each.key for each in found.properties] == ["name", "owner", "tags"]
        owner = found.find("owner")
        assert owner is not None
        assert owner.value == text("ann")
        assert found.find("cron") is None

    def test_every_value_knows_where_it_was_written(self) -> None:
        found = header("MODEL (\n  name shop.orders,\n  kind SEED (\n    path 'x.csv'\n  )\n)")
        name, kind = found.properties
        assert (name.location.line, name.location.column) == (2, 3)
        assert (name.value.location.line, name.value.location.column) == (2, 8)
        assert isinstance(kind.value, KindValue)
        path = kind.value.properties[0]
        assert (path.value.location.line, path.value.location.column) == (4, 10)

    def test_places_count_from_where_the_fragment_begins(self) -> None:
        start = Location(file="models/orders.sql", line=7, column=5)
        found = read_header(Fragment(text="MODEL (name a,\n owner b)", location=start))
        assert [each.location.line for each in found.properties] == [7, 8]
        assert [each.location.column for each in found.properties] == [12, 2]

    def test_comments_may_stand_anywhere(self) -> None:
        found = header("-- above\nMODEL -- here\n( -- it's (\n name /* , */ a -- ,\n , -- x\n owner b /* ) */ )")
        assert [(each.key, each.value) for each in found.properties] == [("name", word("a")), ("owner", word("b"))]
        assert found.comment == "above"

    @pytest.mark.parametrize(
        ("above", "comment"),
        [
            ("-- one\n-- two\n", "one\ntwo"),
            ("/* one\n   two */\n", "one\ntwo"),
            ("/* same line */ ", "same line"),
            ("-- license\n\n-- about\n", "about"),
            ("-- license\n\n", None),
            ("", None),
        ],
    )
    def test_the_comment_directly_above_is_kept(self, above: str, comment: str | None) -> None:
        assert header(f"{above}MODEL (name a);").comment == comment

    @pytest.mark.parametrize("written", ["kind FULL", "kind full ()", "kind Full( )", "KIND\nFULL"])
    def test_a_kind_without_properties(self, written: str) -> None:
        assert header(f"MODEL ({written})").properties[0].value == KindValue(name="FULL", properties=(), location=HERE)

    def test_a_kind_has_properties_of_its_own(self) -> None:
        found = value("SCD_TYPE_2_BY_COLUMN (unique_key (a, b), columns *, time_data_type TIMESTAMP,)", "kind")
        assert isinstance(found, KindValue)
        assert [(each.key, each.value) for each in found.properties] == [
            ("unique_key", items(word("a"), word("b"))),
            ("columns", word("*")),
            ("time_data_type", word("TIMESTAMP")),
        ]

    def test_properties_inside_a_kind_may_hold_maps(self) -> None:
        found = value("CUSTOM (materialization 'm', materialization_properties (a = 1, b = (c, d)))", "kind")
        assert isinstance(found, KindValue)
        assert found.properties[1].value == items(pair("a", number("1")), pair("b", items(word("c"), word("d"))))

    def test_columns_are_names_with_types(self) -> None:
        written = "(a INT, b ARRAY<STRUCT<x: INT, y: STRING>>, c DECIMAL(10, 2), `d e` MAP<STRING, INT>, end DATE,)"
        assert value(written, "columns") == ColumnDefinitions(
            columns=(
                ("a", "INT"),
                ("b", "ARRAY<STRUCT<x: INT, y: STRING>>"),
                ("c", "DECIMAL(10, 2)"),
                ("d e", "MAP<STRING, INT>"),
                ("end", "DATE"),
            ),
            location=HERE,
        )

    def test_time_data_type_may_be_any_type(self) -> None:
        found = value("TIMESTAMP WITH TIME ZONE", "time_data_type", is_kind=True, dialect="postgres")
        assert found == expression("TIMESTAMP WITH TIME ZONE")

    @pytest.mark.parametrize("form", ["({})", "{}"])
    def test_merge_clauses_are_told_apart(self, form: str) -> None:
        first = (
            "WHEN MATCHED AND source.a IS NULL THEN UPDATE SET target.b = CASE WHEN c THEN 1 END, target.d = source.d"
        )
        second = "WHEN NOT MATCHED BY SOURCE THEN DELETE"
        found = value(f"K (unique_key id, when_matched {form.format(first + ' ' + second)}, lookback 2)", "kind")
        assert isinstance(found, KindValue)
        assert [each.key for each in found.properties] == ["unique_key", "when_matched", "lookback"]
        assert found.properties[1].value == MergeClauses(clauses=(first, second), location=HERE)

    def test_a_merge_filter_is_one_expression(self) -> None:
        written = "source.x IS NULL\n  AND -- recent\n  target.d > dateadd(day, -7, current_date)"
        found = value(written, "merge_filter", is_kind=True)
        assert found == expression("source.x IS NULL AND target.d > dateadd(day, -7, current_date)")
        assert value("(a = b)", "merge_filter", is_kind=True) == expression("(a = b)")

    def test_materialized_is_a_property_like_others(self) -> None:
        found = header("MODEL (materialized view, cron '@daily')")
        assert [each.value for each in found.properties] == [word("view"), text("@daily")]


class TestMacros:
    @pytest.mark.parametrize(
        ("key", "written"),
        [
            ("kind", "@my_kind"),
            ("kind", "INCREMENTAL_@{how} (a b)"),
            ("name", "@{schema}.orders"),
            ("name", "shop_@{region}.orders"),
            ("name", "`shop_@{region}`.orders"),
            ("name", "`@schema`.`orders`"),
            ("start", "@START"),
            ("partitioned_by", "(a, @b)"),
            ("columns", "(a @type)"),
            ("blueprints", "@EACH(@regions, x -> (region := @x))"),
            ("audits", "@my_audits"),
            ("merge_filter", "target.ts > @end_ds - INTERVAL @n DAY"),
        ],
    )
    def test_a_value_with_a_macro_stays_text(self, key: str, written: str) -> None:
        assert header(f"MODEL ({key} {written}, owner x)").properties[0] == Property(
            key=key, value=macro(written), location=HERE
        )

    def test_text_with_an_at_sign_is_no_macro(self) -> None:
        assert value("'@daily'", "cron") == text("@daily")
        assert value('"ann@shop.org"', "owner") == text("ann@shop.org", '"')
        assert value('"ann@shop.org"', "owner", dialect="duckdb") == text("ann@shop.org", '"')
        assert value('"ask @ann and @{bob}"', "description", dialect="duckdb") == text("ask @ann and @{bob}", '"')
        assert isinstance(value('"@schema"', "owner", dialect="duckdb"), MacroValue)
        assert value("`ann@shop`", "owner") == value("`ann@shop`", "tags")
        assert not isinstance(read_value("owner", fragment("`@ann`"), is_expanded=True), MacroValue)

    def test_a_macro_may_stand_in_place_of_a_pair(self) -> None:
        found = header("MODEL (name a, @common('x', (1, 2)), kind K (@more, lookback 1))")
        assert found.properties[1] == Property(key="", value=macro("@common('x', (1, 2))"), location=HERE)
        kind = found.properties[2].value
        assert isinstance(kind, KindValue)
        assert [each.key for each in kind.properties] == ["", "lookback"]

    def test_several_macros_in_place_of_pairs_are_no_duplicates(self) -> None:
        assert len(header("MODEL (@a, @b, name c)").properties) == 3

    def test_audits_keep_their_structure_around_macros(self) -> None:
        found = value("(f(x := @end_ds, y := (a, @b + 1)), @more)", "audits")
        assert found == items(
            call("f", pair("x", macro("@end_ds")), pair("y", items(word("a"), macro("@b + 1")))), macro("@more")
        )

    def test_maps_that_are_rendered_late_keep_their_structure(self) -> None:
        found = value("('a.b' = @gateway, c = 'x')", "physical_properties")
        assert found == items(pair("a.b", macro("@gateway")), pair("c", text("x")))

    def test_expanded_text_can_be_read_again(self) -> None:
        assert value("INCREMENTAL_BY_TIME_RANGE (time_column ds)", "kind") == KindValue(
            name="INCREMENTAL_BY_TIME_RANGE",
            properties=(Property(key="time_column", value=word("ds"), location=HERE),),
            location=HERE,
        )
        assert [each.key for each in read_properties(fragment("owner a, cron '@daily'"))] == ["owner", "cron"]
        assert read_properties(fragment("columns [a]"), is_kind=True)[0].value == items(word("a"))


class TestProblems:
    @pytest.mark.parametrize(
        ("written", "where", "said"),
        [
            ("MODEL (\n  name a\n  kind FULL\n)", (3, 3), "Expected `,` before `kind`"),
            ("MODEL (name a, kind FULL cron '@daily')", (1, 26), "Expected `,` before `cron`"),
            ("MODEL (name a, kind K (x y) cron '@daily')", (1, 29), "Expected `,` before `cron`"),
            ("MODEL (cron '@daily' owner x)", (1, 22), "Expected `,` before `owner`"),
            ("MODEL (lookback 2 batch_size 3)", (1, 19), "Expected `,` before `batch_size`"),
            ("MODEL (tags (a, b) owner x)", (1, 20), "Expected `,` before `owner`"),
            ("MODEL (columns (a INT) owner x)", (1, 24), "Expected `,` before `owner`"),
            ("MODEL (name @x owner y)", (1, 16), "Expected `,` before `owner`"),
            ("MODEL (@x owner y)", (1, 11), "Expected `,` before `owner`"),
            ("MODEL (name a_@{x} owner y)", (1, 20), "Expected `,` before `owner`"),
            ("MODEL (start 1 day ago)", (1, 16), "Expected `,` before `day`"),
            ("MODEL (tags (a b))", (1, 16), "Expected `,` before `b`"),
            ("MODEL (audits (f(x := (a b))))", (1, 26), "Expected `,` before `b`"),
            ("MODEL (name, owner x)", (1, 8), "`name` has no value"),
            ("MODEL (owner x, kind)", (1, 17), "`kind` has no value"),
            ("MODEL (m (a = , b = 1))", (1, 11), "`a` has no value"),
            ("MODEL (name a,, owner b)", (1, 15), "Expected a property before `,`"),
            ("MODEL (tags (a,, b))", (1, 16), "Expected a value before `,`"),
            ("MODEL ('name' a)", (1, 8), "Expected the name of a property"),
            ("MODEL (owner = 'x')", (1, 14), "Unexpected `=` after `owner`"),
            ("MODEL (name a, owner b, NAME c)", (1, 25), "`name` is given twice, first on line 1"),
            ("MODEL (kind K (a 1,\n a 2))", (2, 2), "`a` is given twice"),
            ("MODEL (name a", (1, 7), "`(` is never closed"),
            ("MODEL (kind K (a b, owner x)", (1, 7), "`(` is never closed"),
            ("MODEL (name a; ", (1, 7), "`(` is never closed"),
            ("MODEL (name a))", (1, 15), "Unexpected `)`"),
            ("MODEL (tags (a])", (1, 15), "Unexpected `]`: expected `)`"),
            ("MODEL (name a) SELECT 1", (1, 16), "Expected `;` after the MODEL header, found `SELECT`"),
            ("MODEL (name a); SELECT 1", (1, 17), "Expected nothing after the header"),
            ("MODEL name a", (1, 7), "Expected `(` after `MODEL`"),
            ("MODEL", (1, 6), "Expected `(` after `MODEL`"),
            ("", (1, 1), "Expected a header"),
            ("MODEL (owner 'ann,\n name a)", (1, 14), "never closed"),
            ("MODEL (name a /* owner b )", (1, 15), "A comment is opened"),
            ("MODEL (name a) /* x\n", (1, 16), "A comment is opened"),
            ("MODEL (x a +)", (1, 12), "The value of `x` is not valid SQL"),
            ("MODEL (kind K (merge_filter a = ))", (1, 31), "The value of `merge_filter` is not valid SQL"),
            ("MODEL (kind K (when_matched (UPDATE SET a = b)))", (1, 30), "must begin with `WHEN`"),
            ("MODEL (kind K (when_matched ()))", (1, 30), "must begin with `WHEN`"),
            ("MODEL (kind 'FULL')", (1, 13), "`'FULL'` is not a kind"),
            ("MODEL (columns [a, b])", (1, 16), "`columns` must be a list of names with types"),
            ("MODEL (columns (a INT, b))", (1, 24), "Column `b` has no type"),
            ("MODEL (columns (a INT,\n b INTT))", (2, 4), "`INTT` is not a type"),
            ("MODEL (columns (a INT, A INT))", (1, 24), "Column `A` is given twice"),
            ("MODEL (columns (a INT b INT))", (1, 19), "`INT b INT` is not a type"),
        ],
    )  # fmt: skip
    def test_a_problem_names_what_and_where(self, written: str, where: tuple[int, int], said: str) -> None:
        problems = failure(written).problems
        assert all(isinstance(problem, SyntaxProblem) for problem in problems)
        assert said in problems[0].message
        assert place(problems[0]) == where

    def test_a_name_in_quotes_is_refused(self) -> None:
        for written in ("'shop.orders'", '"shop.orders"'):
            error = failure(f"MODEL (name {written})")
            assert isinstance(error, BadPropertyValue)
            assert place(error) == (1, 13)
            assert error.hint == "Write `name shop.orders`, without quotes"

    def test_a_quoted_identifier_is_a_name(self) -> None:
        assert header("MODEL (name `my orders`)").properties[0].value == word("my orders", is_quoted=True)
        assert header('MODEL (name "a"."b")', "duckdb").properties[0].value == word("a", "b", is_quoted=True)
        assert header('MODEL (name "a")', "duckdb").properties[0].value == word("a", is_quoted=True)

    def test_all_problems_of_a_header_are_told_at_once(self) -> None:
        error = failure("MODEL (\n name 'a',\n kind K (x, y 1, y 2),\n columns (a INTT, b),\n owner = 1\n) SELECT")
        assert [place(problem) for problem in error.problems] == [
            (6, 3), (2, 7), (3, 10), (3, 18), (4, 13), (4, 19), (5, 8),
        ]  # fmt: skip

    def test_nesting_without_end_is_refused(self) -> None:
        assert "nested more than" in failure(f"MODEL (x {'(' * 5000}{')' * 5000})").message

    def test_an_unknown_dialect_names_the_nearest(self) -> None:
        error = failure("MODEL (name a)", "bigqery")
        assert isinstance(error, BadPropertyValue)
        assert error.hint == "Did you mean `bigquery`?"


# --- a header means the same however it is laid out -------------------------------------------------------------------
Written = tuple[list[str], Value]

_words = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True).filter(lambda w: w not in {"true", "false", "null"})
_contents = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def _quoted(content: str) -> str:
    return "'" + content.replace("\\", "\\\\").replace("'", "''") + "'"


_atoms: st.SearchStrategy[Written] = st.one_of(
    st.lists(_words, min_size=1, max_size=3).map(lambda parts: ([".".join(parts)], word(*parts))),
    _contents.map(lambda content: ([_quoted(content)], text(content))),
    st.from_regex(r"-?[0-9]{1,5}(\.[0-9]{1,3})?", fullmatch=True).map(lambda n: ([n], number(n))),
    st.booleans().map(lambda b: ([str(b).upper()], Boolean(value=b, location=HERE))),
    st.just((["null"], Null(location=HERE))),
    _words.map(lambda name: ([name, "+", "1"], expression(f"{name} + 1"))),
    _words.map(lambda name: ([f"@{name}_x"], macro(f"@{name}_x"))),
)


def _separated(parts: Sequence[Written]) -> list[str]:
    return [piece for tokens, _ in parts for piece in (*tokens, ",")][:-1]


def _containers(inner: st.SearchStrategy[Written]) -> st.SearchStrategy[Written]:
    lists = st.lists(inner, max_size=3)
    pairs = st.lists(st.tuples(_words, st.sampled_from(["=", ":="]), inner), min_size=1, max_size=3).map(
        lambda found: [([key, sign, *tokens], pair(key, content)) for key, sign, (tokens, content) in found]
    )
    elements = st.one_of(lists, pairs)
    return st.one_of(
        st.tuples(st.sampled_from(["()", "[]"]), elements).map(
            lambda found: (
                [found[0][0], *_separated(found[1]), found[0][1]],
                items(*(content for _, content in found[1])),
            )
        ),
        st.tuples(_words, elements).map(
            lambda found: (
                [f"{found[0]}_f", "(", *_separated(found[1]), ")"],
                call(f"{found[0]}_f", *(content for _, content in found[1])),
            )
        ),
    )


_written_values = st.recursive(_atoms, _containers, max_leaves=8)
_gaps = st.sampled_from([" ", "\n", "\t  ", "\r\n", " -- it's, a (note\n", " /* ), ' */ ", '\n\n-- "x\n  '])
_keys = st.lists(st.sampled_from(["audits", "signals", "physical_properties", "session_properties"]), unique=True)


@given(st.data(), _keys)
def test_a_header_says_the_same_however_it_is_laid_out(data: st.DataObject, keys: list[str]) -> None:
    pieces: list[str] = ["MODEL", "("]
    expected: list[Property] = []
    for key in keys:
        tokens, content = data.draw(_written_values)
        spelled = data.draw(st.sampled_from([key, key.upper(), key.title()]))
        pieces += [spelled, *tokens, ","]
        expected.append(Property(key=key, value=content, location=HERE))
    if not data.draw(st.booleans()) and keys:
        pieces.pop()
    pieces.append(")")
    written = "".join(piece + data.draw(_gaps) for piece in pieces)
    assert header(written).properties == tuple(expected)


@given(st.lists(_words, min_size=1, max_size=5, unique=True), st.data())
def test_column_definitions_say_the_same_however_they_are_laid_out(names: list[str], data: st.DataObject) -> None:
    types = {
        "INT": "INT",
        "DECIMAL ( 10 , 2 )": "DECIMAL (10, 2)",
        "ARRAY < STRUCT < a : INT , b : STRING > >": "ARRAY < STRUCT < a : INT, b : STRING > >",
        "MAP < STRING , INT >": "MAP < STRING, INT >",
    }
    chosen = [(name, data.draw(st.sampled_from(list(types)))) for name in names]
    columns = [(name, types[type_text]) for name, type_text in chosen]
    pieces = ["("]
    for name, type_text in chosen:
        pieces += [name, *type_text.split(), ","]
    pieces.append(")")
    written = "".join(piece + data.draw(_gaps) for piece in pieces)
    assert value(written, "columns") == ColumnDefinitions(columns=tuple(columns), location=HERE)


def test_a_doubled_quote_is_part_of_a_name():
    header = read_header(
        Fragment(text='MODEL (name shop."quo""ted")', location=Location(file="m.sql", line=1, column=1))
    )
    value = header.properties[0].value
    assert isinstance(value, Word)
    assert value.parts == ("shop", 'quo"ted')
