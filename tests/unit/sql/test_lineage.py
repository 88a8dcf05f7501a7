from __future__ import annotations

import pytest

from lamina.sql.lineage.trace import column_sources, row_set_sources, trace_query

SCHEMAS = {
    "shop.orders": ("id", "customer_id", "amount", "ds", "items"),
    "shop.customers": ("id", "name", "address"),
}


def reads(text: str, column: str) -> set[str]:
    sources = column_sources(text, "spark", SCHEMAS)
    assert sources is not None
    return {f"{table}.{name}" for table, name in sources[column].reads}


def rows_read(text: str) -> set[str]:
    rows = row_set_sources(text, "spark", SCHEMAS)
    assert rows is not None
    return {f"{table}.{name}" for table, name in rows.reads}


def same(one: str, other: str) -> tuple[bool, bool]:
    """Whether the columns and whether the rows of two queries are defined alike."""
    first, second = trace_query(one, "spark", SCHEMAS), trace_query(other, "spark", SCHEMAS)
    assert first is not None
    assert second is not None
    return dict(first.columns) == dict(second.columns), first.rows == second.rows


def test_a_column_reads_the_columns_of_its_expression() -> None:
    text = "SELECT id, amount * 2 AS twice, upper(ds) || id AS label FROM shop.orders"
    assert reads(text, "id") == {"shop.orders.id"}
    assert reads(text, "twice") == {"shop.orders.amount"}
    assert reads(text, "label") == {"shop.orders.ds", "shop.orders.id"}


def test_columns_are_followed_through_common_table_expressions_and_subqueries() -> None:
    text = """
        WITH o AS (SELECT id AS order_id, amount FROM shop.orders), p AS (SELECT order_id, amount + 1 AS a FROM o)
        SELECT q.a * 2 AS b FROM (SELECT a FROM p) q
    """
    assert reads(text, "b") == {"shop.orders.amount"}


def test_a_star_over_known_columns_is_expanded() -> None:
    sources = column_sources(
        "SELECT o.* EXCEPT (items), c.name FROM shop.orders o JOIN shop.customers c USING (id)", "spark", SCHEMAS
    )
    assert sources is not None
    assert list(sources) == ["id", "customer_id", "amount", "ds", "name"]


def test_rows_depend_on_joins_filters_grouping_and_limits() -> None:
    text = """
        SELECT c.name, sum(o.amount) AS total FROM shop.orders o JOIN shop.customers c ON o.customer_id = c.id
        WHERE o.ds >= @start_ds GROUP BY c.name
    """
    assert rows_read(text) == {
        "shop.orders.customer_id",
        "shop.customers.id",
        "shop.orders.ds",
        "shop.customers.name",
    }
    assert reads(text, "total") == {"shop.orders.amount"}


def test_a_correlated_subquery_reads_both_sides() -> None:
    text = "SELECT id FROM shop.orders o WHERE EXISTS (SELECT 1 FROM shop.customers c WHERE c.id = o.customer_id)"
    assert rows_read(text) == {"shop.customers.id", "shop.orders.customer_id"}


def test_fields_of_a_struct_read_the_struct() -> None:
    assert reads("SELECT address.city AS city FROM shop.customers", "city") == {"shop.customers.address"}
    assert reads("SELECT c.address.city FROM shop.customers c", "city") == {"shop.customers.address"}


def test_rows_made_by_a_function_depend_on_its_input() -> None:
    lateral = "SELECT item FROM shop.orders LATERAL VIEW explode(items) v AS item"
    assert rows_read(lateral) == reads(lateral, "item") == {"shop.orders.items"}
    assert rows_read("SELECT explode(items) AS item FROM shop.orders") == {"shop.orders.items"}


def test_both_sides_of_a_union_define_a_column() -> None:
    text = "SELECT id FROM shop.orders UNION ALL SELECT id FROM shop.customers"
    assert reads(text, "id") == {"shop.orders.id", "shop.customers.id"}
    assert rows_read(text) == set()
    assert rows_read(text.replace("UNION ALL", "UNION")) == {"shop.orders.id", "shop.customers.id"}


def test_window_functions_read_what_they_order_and_partition_by() -> None:
    text = "SELECT sum(amount) OVER w AS s FROM shop.orders WINDOW w AS (PARTITION BY customer_id ORDER BY ds)"
    assert reads(text, "s") == {"shop.orders.amount", "shop.orders.customer_id", "shop.orders.ds"}


def test_a_table_with_unknown_columns_is_no_doubt_when_it_stands_alone() -> None:
    sources = column_sources("SELECT a, b + 1 AS c FROM elsewhere WHERE d > 1")
    assert sources is not None
    assert sources["c"].reads == {("elsewhere", "b")}


def test_tables_of_which_no_column_is_read_are_still_named() -> None:
    lineage = trace_query("SELECT count(*) AS n FROM shop.orders, elsewhere", "spark", SCHEMAS)
    assert lineage is not None
    assert lineage.tables == {"shop.orders", "elsewhere"}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM elsewhere",
        "SELECT a FROM elsewhere, somewhere",
        "SELECT id FROM shop.orders, elsewhere",
        "SELECT no_such FROM shop.orders",
        "SELECT id FROM shop.orders, shop.customers",
        "SELECT id AS x, amount AS x FROM shop.orders",
        "SELECT to_timestamp(ds) FROM shop.orders",
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT n FROM r",
        "SELECT p.id FROM shop.orders PIVOT (sum(amount) FOR ds IN ('a')) p",
        "SELECT x FROM some_function(1) AS t(x)",
        "SELECT id FROM shop.orders o, shop.customers c LEFT JOIN shop.customers d ON c.id = d.id",
        "SELECT a FROM elsewhere WHERE EXISTS (SELECT 1 FROM somewhere WHERE b = c)",
        "SELECT b + 1 AS a, a AS c FROM elsewhere",
        "SELECT sum(amount) AS amount FROM shop.orders GROUP BY id HAVING amount > 1",
        "SELECT s.* FROM shop.orders",
    ],
)
def test_doubt_is_none(text: str) -> None:
    assert trace_query(text, "spark", SCHEMAS) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT id FROM shop.orders", "select `ID` from Shop.Orders -- x"),
        ("SELECT o.id FROM shop.orders o", "SELECT x.id FROM shop.orders AS x"),
        ("SELECT id FROM shop.orders", "WITH a AS (SELECT id FROM shop.orders) SELECT id FROM shop.orders"),
        (
            "WITH a AS (SELECT id AS x FROM shop.orders), b AS (SELECT id AS y FROM shop.customers) "
            "SELECT a.x, b.y FROM a JOIN b ON a.x = b.y",
            "WITH q AS (SELECT id AS z FROM shop.customers), p AS (SELECT id AS w FROM shop.orders) "
            "SELECT p.w AS x, q.z AS y FROM p JOIN q ON p.w = q.z",
        ),
        ("SELECT id, amount FROM shop.orders", "SELECT amount, id FROM shop.orders"),
        ("SELECT /*+ BROADCAST(o) */ id FROM shop.orders o", "SELECT id FROM shop.orders"),
    ],
)
def test_names_inside_of_a_query_leave_no_trace(one: str, other: str) -> None:
    assert same(one, other) == (True, True)


def test_a_new_column_changes_neither_the_others_nor_the_rows() -> None:
    before = trace_query("SELECT id, amount FROM shop.orders", "spark", SCHEMAS)
    after = trace_query("SELECT id, upper(ds) AS day, amount FROM shop.orders", "spark", SCHEMAS)
    assert before is not None
    assert after is not None
    assert before.rows == after.rows
    assert {name: after.columns[name] for name in before.columns} == dict(before.columns)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("SELECT amount FROM shop.orders", "SELECT amount + 0 AS amount FROM shop.orders", (False, True)),
        ("SELECT id FROM shop.orders WHERE id > 1", "SELECT id FROM shop.orders WHERE id > 2", (True, False)),
        ("SELECT id FROM shop.orders", "SELECT DISTINCT id FROM shop.orders", (True, False)),
        ("SELECT id FROM shop.orders", "SELECT id FROM shop.orders LIMIT 5", (True, False)),
        (
            "SELECT a.id AS x FROM shop.orders a JOIN shop.orders b ON a.id = b.customer_id",
            "SELECT b.id AS x FROM shop.orders a JOIN shop.orders b ON a.id = b.customer_id",
            (False, True),
        ),
        (
            "SELECT o.id FROM shop.orders o JOIN shop.customers c ON o.customer_id = c.id",
            "SELECT o.id FROM shop.orders o LEFT JOIN shop.customers c ON o.customer_id = c.id",
            (True, False),
        ),
        ("SELECT size(items) AS n FROM shop.orders", "SELECT array_size(items) AS n FROM shop.orders", (False, True)),
        ("SELECT max(amount) AS m FROM shop.orders", "SELECT abs(amount) AS m FROM shop.orders", (False, False)),
        ("SELECT mine(amount) AS m FROM shop.orders", "SELECT other(amount) AS m FROM shop.orders", (False, False)),
        (
            "WITH i AS (SELECT id, amount, sum(amount) AS s FROM shop.orders GROUP BY id, amount) "
            "SELECT s AS x FROM i GROUP BY s, id",
            "WITH i AS (SELECT id, amount, sum(amount) AS s FROM shop.orders GROUP BY id, amount) "
            "SELECT sum(amount) AS x FROM i GROUP BY s, id",
            (False, True),
        ),
    ],
)
def test_a_change_of_meaning_shows_where_it_happens(one: str, other: str, expected: tuple[bool, bool]) -> None:
    assert same(one, other) == expected


def test_columns_used_again_and_again_stay_small() -> None:
    steps = ", ".join(f"s{n} AS (SELECT x + x AS x FROM s{n - 1})" for n in range(1, 40))
    sources = column_sources(
        f"WITH s0 AS (SELECT id AS x FROM shop.orders), {steps} SELECT x FROM s39", "spark", SCHEMAS
    )
    assert sources is not None
    assert len(sources["x"].expression) < 500


def test_common_table_expressions_that_double_are_given_up() -> None:
    steps = ", ".join(f"s{n} AS (SELECT a.x FROM s{n - 1} a JOIN s{n - 1} b ON a.x = b.x)" for n in range(1, 40))
    assert (
        column_sources(f"WITH s0 AS (SELECT id AS x FROM shop.orders), {steps} SELECT x FROM s39", "spark", SCHEMAS)
        is None
    )
