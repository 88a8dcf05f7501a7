"""Drafts of all files become a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.errors import (
    AmbiguousName,
    BadName,
    BadSchedule,
    DefinitionError,
    DependencyCycle,
    DuplicateName,
    LaminaError,
    Location,
    UndeclaredSource,
    UnknownColumn,
)
from lamina.graph.dag import Graph
from lamina.graph.model import Column, Source
from lamina.graph.names import Naming, NodeName
from lamina.reading.check_times import check_graph_times
from lamina.reading.drafts import Draft
from lamina.reading.resolve import resolve
from lamina.sql.lineage.missing_columns import ColumnFindings
from lamina.timeline.interval import Instant
from tests.unit.reading.reading import read


def drafts_of(files: Mapping[str, str]) -> list[Draft]:
    return [draft for name, text in files.items() for draft in read(text, stem=name, file=f"models/{name}.sql")]


def graph_of(
    files: Mapping[str, str], *, naming: Naming | None = None, sources: tuple[Source, ...] = (), strict: bool = False
) -> Graph:
    def read_again(draft: Draft, columns_of) -> Draft:
        file = draft.model.location.file
        stem = file.removeprefix("models/").removesuffix(".sql")
        return next(
            each
            for each in read(files[stem], stem=stem, file=file, columns_of=columns_of)
            if each.blueprint_number == draft.blueprint_number
        )

    return resolve(
        drafts_of(files), sources, naming or Naming(schema="shop"), strict_sources=strict, read_again=read_again
    )


def problems_of(files: Mapping[str, str], **arguments) -> list[LaminaError]:
    with pytest.raises(LaminaError) as caught:
        graph_of(files, **arguments)
    return list(caught.value.problems)


def model(name: str, query: str, more: str = "") -> str:
    return f"MODEL (name {name}{more});\n{query}"


def test_models_come_parents_first_and_then_by_name():
    graph = graph_of(
        {
            "c": model("shop.c", "SELECT x FROM shop.a JOIN shop.b USING (x)"),
            "b": model("shop.b", "SELECT x FROM shop.a"),
            "a": model("shop.a", "SELECT 1 AS x"),
            "z": model("shop.z", "SELECT 1 AS x"),
        }
    )
    assert list(graph.models) == ["shop.a", "shop.z", "shop.b", "shop.c"]
    assert graph.parents(NodeName("shop.c")) == ("shop.a", "shop.b")
    assert graph.warnings == ()


def test_a_name_of_one_part_takes_the_schema_of_the_target():
    graph = graph_of(
        {"a": "MODEL (); SELECT 1 AS x", "b": model("b", "SELECT x FROM a JOIN shop.A AS other USING (x)")}
    )
    assert list(graph.models) == ["shop.a", "shop.b"]
    assert dict(graph.models[NodeName("shop.b")].references) == {"a": "shop.a", "shop.a": "shop.a"}


def test_a_suffix_is_added_to_every_schema_that_is_named():
    files = {
        "a": model("raw.a", "SELECT 1 AS x"),
        "b": model("b", "SELECT x FROM raw.a JOIN other.t USING (x)"),
        "c": model("cat.s.c", "SELECT x FROM b"),
    }
    graph = graph_of(files, naming=Naming(schema="dev", schema_suffix="_dev"))
    assert set(graph.models) == {"raw_dev.a", "dev.b", "cat.s_dev.c"}
    assert graph.models[NodeName("dev.b")].references == {"raw.a": "raw_dev.a", "other.t": "other.t"}
    assert set(graph.sources) == {"other.t"}


def test_the_catalog_of_spark_is_the_one_that_is_meant_anyway():
    graph = graph_of(
        {"a": model("spark_catalog.shop.a", "SELECT 1 AS x"), "b": model("b", "SELECT x FROM spark_catalog.shop.a")}
    )
    assert list(graph.models) == ["shop.a", "shop.b"]
    assert graph.models[NodeName("shop.b")].reads == ("shop.a",)


def test_two_models_of_one_name_are_refused_with_both_files():
    (error,) = problems_of({"a": model("shop.x", "SELECT 1 AS x"), "b": model("X", "SELECT 1 AS x")})
    assert isinstance(error, DuplicateName)
    assert "models/a.sql:1" in error.message
    assert "models/b.sql:1" in error.message
    assert (error.location.file, error.location.line) == ("models/b.sql", 1)


def test_a_circle_is_refused():
    (error,) = problems_of(
        {"a": model("a", "SELECT x FROM b"), "b": model("b", "SELECT x FROM c"), "c": model("c", "SELECT x FROM a")}
    )
    assert isinstance(error, DependencyCycle)
    assert error.location.file == "models/a.sql"


def test_a_model_may_read_itself():
    graph = graph_of({"a": model("a", "SELECT x FROM raw.r UNION ALL SELECT x FROM shop.a", ", kind FULL")})
    assert graph.models[NodeName("shop.a")].reads == ("raw.r", "shop.a")
    assert graph.parents(NodeName("shop.a")) == ()


def test_a_reference_that_fits_several_models_is_refused():
    files = {
        "a": model("one.t", "SELECT 1 AS x"),
        "b": model("two.t", "SELECT 1 AS x"),
        "c": model("c", "SELECT\n  x\nFROM t"),
    }
    (error,) = problems_of(files)
    assert isinstance(error, AmbiguousName)
    assert "`one.t` or `two.t`" in error.message
    assert (error.location.file, error.location.line, error.node) == ("models/c.sql", 4, "shop.c")


def test_the_schema_of_the_target_decides_between_equal_names():
    files = {
        "a": model("one.t", "SELECT 1 AS x"),
        "b": model("t", "SELECT 1 AS x"),
        "c": model("c", "SELECT x FROM t"),
    }
    assert graph_of(files).models[NodeName("shop.c")].reads == ("shop.t",)


def test_a_table_that_nothing_defines_is_a_source_with_a_warning():
    graph = graph_of({"a": model("orders", "SELECT 1 AS x"), "b": model("b", "SELECT x FROM shop.order")})
    assert set(graph.sources) == {"shop.order"}
    assert graph.models[NodeName("shop.b")].references == {"shop.order": "shop.order"}
    (notice,) = graph.warnings
    assert notice.code == "LAM-WARN-001"
    assert "did you mean `shop.orders`?" in notice.message


@pytest.mark.parametrize("strict", [True, False])
def test_a_missing_table_is_told_once_with_all_that_read_it(strict: bool):
    files = {name: model(name, "SELECT 1 AS x FROM raw.t") for name in "abcdefg"}
    expected = "`shop.a`, `shop.b`, `shop.c`, `shop.d`, `shop.e` and 2 more"
    if strict:
        (error,) = problems_of(files, strict=True)
        assert expected in error.message
    else:
        (notice,) = graph_of(files).warnings
        assert expected in notice.message


def test_a_name_is_not_suggested_where_it_would_close_a_circle():
    files = {
        "orders": model("shop.orders", "SELECT 1 AS x FROM shop.order"),
        "below": model("shop.orderz", "SELECT x FROM shop.orders"),
    }
    (notice,) = graph_of(files).warnings
    assert "did you mean" not in notice.message
    (notice,) = graph_of({**files, "apart": model("shop.orderr", "SELECT 1 AS x")}).warnings
    assert "did you mean `shop.orderr`?" in notice.message


def test_a_declared_source_is_no_surprise():
    source = Source(name=NodeName("raw.t"), columns=(Column(name="x", type="int"),), is_declared=True)
    graph = graph_of({"a": model("a", "SELECT * FROM Raw.T")}, sources=(source,))
    assert graph.sources == {"raw.t": source}
    assert graph.warnings == ()
    assert [column.name for column in graph.models[NodeName("shop.a")].columns] == ["x"]


def test_undeclared_sources_can_be_refused():
    (error,) = problems_of({"a": model("a", "SELECT x\nFROM raw.t")}, strict=True)
    assert isinstance(error, UndeclaredSource)
    assert (error.location.file, error.location.line) == ("models/a.sql", 3)
    files = {"a": model("orders", "SELECT 1 AS x"), "b": model("b", "SELECT x FROM shop.order")}
    (error,) = problems_of(files, strict=True)
    assert error.hint == (
        "did you mean `shop.orders`? Otherwise declare it in `sources/`, or set `strict_sources: false`"
    )


def test_a_source_may_not_be_a_model_too():
    source = Source(name=NodeName("shop.a"), is_declared=True, location=Location(file="sources/s.yml", line=2))
    (error,) = problems_of({"a": model("a", "SELECT 1 AS x")}, sources=(source,))
    assert isinstance(error, DuplicateName)


def test_a_schema_made_too_long_by_the_suffix_is_refused():
    (error,) = problems_of(
        {"a": model("raw.a", "SELECT 1 AS x")}, naming=Naming(schema="s", schema_suffix="_" + "x" * 130)
    )
    assert isinstance(error, BadName)


def test_schemas_of_versions_are_not_for_models():
    (error,) = problems_of({"a": model("raw__lamina.a", "SELECT 1 AS x")})
    assert isinstance(error, BadName)


def test_extra_dependencies_are_read_too():
    graph = graph_of({"a": model("a", "SELECT 1 AS x"), "b": model("b", "SELECT 2 AS y", ", depends_on (a)")})
    made = graph.models[NodeName("shop.b")]
    assert made.reads == ("shop.a",)
    assert dict(made.references) == {}


def test_stars_are_filled_from_parents_through_any_number_of_models():
    graph = graph_of(
        {
            "c": model("c", "SELECT *, x + y AS z FROM b"),
            "b": model("b", "SELECT * FROM a", ", column_descriptions (x = 'ex')"),
            "a": model("a", "SELECT 1 AS x, 2 AS y"),
        }
    )
    assert [column.name for column in graph.models[NodeName("shop.c")].columns] == ["x", "y", "z"]
    assert graph.models[NodeName("shop.b")].columns[0].comment == "ex"


def test_a_star_shows_the_validity_of_history():
    graph = graph_of(
        {
            "h": model(
                "h", "SELECT 1 AS id, TIMESTAMP '2024-01-01' AS updated_at", ", kind SCD_TYPE_2 (unique_key id)"
            ),
            "s": model("s", "SELECT * FROM h"),
        }
    )
    names = [column.name for column in graph.models[NodeName("shop.s")].columns]
    assert names == ["id", "updated_at", "valid_from", "valid_to"]


def test_a_time_column_missing_behind_a_star_is_refused():
    (error,) = problems_of(
        {
            "a": model("a", "SELECT 1 AS x"),
            "b": model("b", "SELECT * FROM a", ", kind INCREMENTAL_BY_TIME_RANGE (time_column ds)"),
        }
    )
    assert type(error) is DefinitionError
    assert error.location.file == "models/b.sql"


def test_macros_get_the_columns_of_models_once_they_are_known():
    graph = graph_of(
        {
            "a": model("a", "SELECT 1 AS x, 2 AS y, 3 AS z"),
            "b": model("b", "SELECT @STAR(a, exclude := [y], prefix := 'p_') FROM a"),
            "c": model("c", "SELECT * FROM b"),
        }
    )
    names = [column.name for column in graph.models[NodeName("shop.c")].columns]
    assert names == ["p_x", "p_z"]


def test_all_problems_come_together():
    found = problems_of(
        {
            "a": model("x", "SELECT 1 AS x"),
            "b": model("x", "SELECT 1 AS x"),
            "c": model("c", "SELECT x FROM d"),
            "d": model("d", "SELECT x FROM c"),
            "e": model("e", "SELECT x FROM nowhere.t"),
        },
        strict=True,
    )
    assert {type(error) for error in found} == {DuplicateName, DependencyCycle, UndeclaredSource}


def test_relative_times_are_compared_at_the_given_moment():
    graph = graph_of({"a": model("a", "SELECT 1 AS x", ", start '2024-01-10', end 'yesterday'")})
    check_graph_times(graph.models.values(), Instant.parse_iso("2024-02-01T00:00:00Z"))
    with pytest.raises(BadSchedule):
        check_graph_times(graph.models.values(), Instant.parse_iso("2024-01-05T00:00:00Z"))


@given(st.lists(st.sets(st.integers(0, 7), max_size=3), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_the_order_of_files_does_not_matter(parents, random):
    files = {}
    for number, above in enumerate(parents):
        joined = " ".join(f"JOIN m{parent} USING (x)" for parent in sorted(above) if parent < number)
        files[f"m{number}"] = model(f"m{number}", f"SELECT x FROM raw.r {joined}")
    expected = graph_of(files)
    names = list(files)
    random.shuffle(names)
    graph = graph_of({name: files[name] for name in names})
    assert list(graph.models.items()) == list(expected.models.items())
    placed: set[str] = set()
    for name in graph.models:
        assert set(graph.parents(name)) <= placed
        placed.add(name)


# --- statements around a query ----------------------------------------------------------------------------------------
DAILY = ", kind INCREMENTAL_BY_TIME_RANGE (time_column ds)"
LATE = "@IF(@execution_ds > '2020-01-01', true, false)"
TODAY = "WHERE ds BETWEEN @start_ds AND @end_ds"


def windows_of(text: str) -> dict[str, tuple[str | None, str | None]]:
    """From where to where a model reads its parents; those that it reads without bounds are left out."""
    files = {
        "days": model("shop.days", f"SELECT x, ds FROM raw.days {TODAY}", DAILY),
        "others": model("shop.others", f"SELECT x, ds FROM raw.days {TODAY}", DAILY),
        "seen": model("shop.seen", "SELECT x, ds FROM shop.others", ", kind VIEW"),
        "earlier": model("shop.earlier", f"SELECT x, ds FROM shop.others WHERE {LATE}", ", kind VIEW"),
        "reader": model("shop.reader", text, DAILY),
    }
    found = graph_of(files).models[NodeName("shop.reader")]
    return {
        str(name): (window.lower.base if window.lower else None, window.upper.base if window.upper else None)
        for name, window in found.windows.items()
    }


WINDOWS = {
    "the view is filtered": (
        f"CREATE TEMP VIEW v AS SELECT * FROM shop.days {TODAY};\nSELECT x, ds FROM v",
        {"shop.days": ("start", "end")},
    ),
    "the query filters the view": (
        f"CREATE TEMP VIEW v AS SELECT * FROM shop.days -- all\n;\nSELECT x, ds FROM v {TODAY}",
        {"shop.days": ("start", "end")},
    ),
    "views over views, and a view of the project": (
        "CREATE TEMP VIEW v AS SELECT * FROM shop.days;\nCREATE TEMP VIEW w AS SELECT v.* FROM v JOIN shop.seen AS s"
        f" ON v.ds = s.ds WHERE s.{TODAY[6:]} AND v.{TODAY[6:]};\nSELECT x, ds FROM w",
        {"shop.days": ("start", "end"), "shop.others": ("start", "end")},
    ),
    "a view that nothing filters": ("CREATE TEMP VIEW v AS SELECT * FROM shop.days;\nSELECT x, ds FROM v", {}),
    "a statement reads for itself": (
        f"DECLARE most = (SELECT max(x) FROM shop.seen);\nSELECT x, ds FROM shop.days {TODAY}",
        {"shop.days": ("start", "end")},
    ),
    "a statement reads more than the query": (
        f"DECLARE most = (SELECT max(x) FROM shop.days);\nSELECT x, ds FROM shop.days {TODAY}",
        {},
    ),
    "a statement reads more behind a view": (
        f"DECLARE most = (SELECT max(x) FROM shop.seen);\nSELECT x, ds FROM shop.others {TODAY}",
        {},
    ),
    "a view that cannot be put in reads more": (
        f"SELECT o.x, o.ds FROM shop.others AS o JOIN shop.earlier AS e ON o.x = e.x WHERE o.{TODAY[6:]}",
        {},
    ),
    "a view with names of its own": (
        f"CREATE TEMP VIEW v (x, ds) AS SELECT ds, x FROM shop.days;\nSELECT x, ds FROM v {TODAY}",
        {},
    ),
    "a statement behind the query": (
        f"SELECT x, ds FROM shop.days {TODAY};\nINSERT INTO log SELECT count(*) FROM shop.days",
        {},
    ),
    "a statement reads more through a temporary view": (
        f"CREATE TEMP VIEW V AS SELECT * FROM shop.days;\nSELECT x, ds FROM shop.days {TODAY};\n"
        "INSERT INTO log SELECT count(*) FROM v",
        {},
    ),
    "a statement reads more through several temporary views": (
        "CREATE TEMP VIEW v AS SELECT * FROM shop.seen;\nCREATE TEMP VIEW w AS SELECT * FROM v;\n"
        f"DECLARE most = (SELECT max(x) FROM w);\nSELECT x, ds FROM shop.others {TODAY}",
        {},
    ),
}


@pytest.mark.parametrize(("text", "expected"), WINDOWS.values(), ids=WINDOWS)
def test_how_far_a_model_reads_through_statements(text: str, expected: dict[str, tuple[str, str]]) -> None:
    assert windows_of(text) == expected


def test_a_temporary_view_is_no_external_table_and_hides_no_parent() -> None:
    files = {
        "orders": model("shop.orders", "SELECT 1 AS id"),
        "full": model(
            "shop.full",
            "CREATE TEMP VIEW v AS SELECT * FROM orders;\nSELECT id FROM v;\nINSERT INTO log SELECT 1 FROM raw.x",
        ),
    }
    graph = graph_of(files)
    assert graph.models[NodeName("shop.full")].reads == ("raw.x", "shop.orders")
    assert [notice.node for notice in graph.warnings if notice.code == "LAM-WARN-001"] == ["raw.x"]
    assert [error.location.line for error in problems_of(files, strict=True)] == [4]


# --- columns that are not there ---
ORDERS = model("shop.orders", "SELECT 1 AS order_id, 'x' AS status, DATE '2024-01-01' AS day")


def missed(query: str, *, more: str = "", orders: str = ORDERS, **arguments) -> list[tuple[str, int, int]]:
    """Message, line and column of what a model misses."""
    problems = problems_of({"orders": orders, "m": f"MODEL (name shop.m{more});\n{query}"}, **arguments)
    assert all(isinstance(each, UnknownColumn) for each in problems)
    return [(each.message, each.location.line, each.location.column) for each in problems if each.location]


def test_a_column_that_a_parent_does_not_have_is_named_with_its_place_and_the_nearest():
    (error,) = problems_of(
        {"orders": ORDERS, "m": "MODEL (name shop.m);\nSELECT\n  order_id,\n  o.sttus\nFROM orders AS o"}
    )
    assert isinstance(error, UnknownColumn)
    assert error.message == "`shop.orders` has no column `sttus`"
    assert error.hint == "did you mean `status`?"
    assert error.location == Location(file="models/m.sql", line=4, column=3)
    assert error.node == "shop.m"


def test_a_name_in_front_of_a_dot_that_is_neither_table_nor_column_is_named():
    (error,) = problems_of({"orders": ORDERS, "m": model("shop.m", "SELECT ordr.status FROM orders AS ord")})
    assert error.message == "no table or column here is called `ordr`"
    assert error.hint == "did you mean `ord`?"


def test_every_missing_column_of_the_project_is_named_at_once_with_other_problems():
    found = problems_of(
        {
            "orders": ORDERS,
            "a": model("shop.a", "SELECT x, y FROM shop.orders"),
            "b": model("shop.b", "SELECT x FROM shop.a JOIN raw.nothing USING (x)"),
            "c": model("shop.c", "SELECT z FROM shop.a"),
        },
        strict=True,
    )
    assert [type(each) for each in found] == [UndeclaredSource, UnknownColumn, UnknownColumn, UnknownColumn]


def test_places_of_columns_are_right_behind_macros():
    query = "@DEF(n, 1);\nSELECT\n  @EACH(['a', 'b'], c -> 1 AS @{c}),\n  @n AS n,\n  'x@y' AS e,\n  nope\nFROM orders"
    assert missed(query) == [("`shop.orders` has no column `nope`", 7, 3)]
    assert missed("SELECT @EACH(['order_id', 'nope'], c -> @{c})\nFROM orders")[0][1] == 2


def test_columns_of_declared_tables_are_known():
    raw = Source(
        name=NodeName("raw.o"),
        columns=(Column(name="Id"), Column(name="item")),
        is_declared=True,
        location=Location(file="sources/raw.yml", line=3),
    )
    (error,) = problems_of({"m": model("shop.m", "SELECT id, itm FROM raw.o")}, sources=(raw,))
    assert isinstance(error, UnknownColumn)
    assert error.hint == "did you mean `item`?; if the table has this column, declare it in `sources/raw.yml`"
    graph_of({"m": model("shop.m", "SELECT id, itm FROM raw.p")}, sources=(raw,))
    nested = replace(raw, columns=(Column(name="id"), Column(name="item.price")))
    graph_of({"m": model("shop.m", "SELECT id, item.price, o.item.tax FROM raw.o")}, sources=(nested,))
    none = replace(raw, columns=())
    graph_of({"m": model("shop.m", "SELECT anything FROM raw.o")}, sources=(none,))


@pytest.mark.parametrize(
    ("header", "query", "reading"),
    [
        ("", "SELECT * FROM raw.unknown", "anything"),
        ("", "SELECT 1 AS a, DATE '2024-01-01' FROM raw.u", "anything"),
        (", kind SCD_TYPE_2_BY_TIME (unique_key id)", "SELECT 1 AS id, now() AS updated_at FROM raw.u", "valid_from"),
        (
            ", kind INCREMENTAL_BY_TIME_RANGE (time_column ds, on_destructive_change ignore)",
            "SELECT 1 AS id, @start_ds AS ds FROM raw.u",
            "earlier",
        ),
        ("", "SELECT @IF(@execution_ds > '2024', a, b) FROM raw.u", "a"),
        ("", "SELECT id AS one, p.two FROM shop.p", "two"),
    ],
)
def test_a_parent_that_may_have_a_column_is_not_doubted(header: str, query: str, reading: str):
    graph_of({"p": model("shop.p", query, header), "m": model("shop.m", f"SELECT {reading} FROM shop.p")})


def test_views_show_what_their_queries_give_whatever_is_declared():
    for kind in ("VIEW", "EMBEDDED"):
        view = model("shop.v", "SELECT 1 AS a, 2 AS b", f", kind {kind}, columns (a int, b int)")
        graph_of({"v": view, "m": model("shop.m", "SELECT a, b FROM shop.v")})
        found = problems_of({"v": view, "m": model("shop.m", "SELECT c FROM shop.v")})
        assert [type(each) for each in found] == [UnknownColumn]


def test_declared_columns_are_those_of_a_table():
    held = model("shop.orders", "SELECT * FROM raw.u", ", kind FULL, columns (a int, b int)")
    assert missed("SELECT a, c FROM orders", orders=held) == [("`shop.orders` has no column `c`", 2, 11)]


def test_columns_go_through_stars_and_common_table_expressions():
    query = "WITH a AS (SELECT * FROM orders), b AS (SELECT a.* EXCEPT (status) FROM a)\nSELECT order_id, status FROM b"
    assert missed(query) == [("no table here has a column `status`", 3, 18)]


def test_session_variables_keep_columns_open():
    graph_of(
        {"orders": ORDERS, "m": "MODEL (name shop.m);\nDECLARE VARIABLE v INT;\nSELECT order_id + v AS x FROM orders"}
    )


def test_what_was_found_about_columns_is_remembered():
    files = {"orders": ORDERS, "m": model("shop.m", "SELECT order_id FROM shop.orders")}
    kept: dict[str, ColumnFindings] = {}
    computed: list[str] = []

    def remember(key: object, compute: Callable[[], ColumnFindings]) -> ColumnFindings:
        if repr(key) not in kept:
            computed.append(repr(key))
            kept[repr(key)] = compute()
        return kept[repr(key)]

    for _ in range(2):
        resolve(drafts_of(files), (), Naming(schema="shop"), remember_columns=remember)
    assert len(computed) == 2
    files["orders"] = model("shop.orders", "SELECT 2 AS order_id, 'y' AS status, DATE '2024-01-01' AS day")
    resolve(drafts_of(files), (), Naming(schema="shop"), remember_columns=remember)
    assert len(computed) == 3
