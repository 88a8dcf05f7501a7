"""From audits to the SQL that Spark gets."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest

from lamina.app.ports.engine import AuditQuery
from lamina.app.rendering.audits import audit_queries
from lamina.app.rendering.models import Relations
from lamina.errors import BadAudit, Location, MacroError
from lamina.graph.dag import Graph
from lamina.graph.kinds import Embedded
from lamina.graph.model import Model, PythonModule
from lamina.graph.names import Naming, NodeName
from lamina.identity.fingerprint import audit_key
from lamina.reading.audit_references import resolve_audits
from lamina.reading.audits import bind_audits, read_audit_file
from lamina.reading.drafts import Surroundings
from lamina.reading.resolve import resolve
from lamina.timeline.interval import Instant, Interval
from tests.unit.reading.reading import read

DAY = Interval(Instant.parse_iso("2024-01-05"), Instant.parse_iso("2024-01-06"))
NOW = Instant.parse_iso("2024-01-07T12:00:00")
ROWS = "(SELECT * FROM `shop__lamina`.`g` WHERE day)"
INCREMENTAL = "kind INCREMENTAL_BY_TIME_RANGE (time_column ds)"


def load(*texts: str, audits: str = "", **surroundings: object) -> Graph:
    """The graph of models and a file of audits, as a project loads it."""
    around = Surroundings(**surroundings)  # type: ignore[arg-type]
    drafts = [
        draft
        for number, text in enumerate(texts)
        for draft in read(text, file=f"models/m{number}.sql", **surroundings)  # type: ignore[arg-type]
    ]
    definitions = read_audit_file(audits, "audits/a.sql", around)
    bound = bind_audits(drafts, definitions, lambda: around, lambda _key, compute: compute())
    naming = Naming(schema="shop")
    return resolve_audits(resolve(bound, (), naming), naming)


def render(
    graph: Graph, name: str = "shop.orders", interval: Interval | None = DAY, relation: str = ROWS, **arguments: object
) -> tuple[AuditQuery, ...]:
    model = graph.models[NodeName(name)]
    relations = Relations(models=graph.models, **arguments)  # type: ignore[arg-type]
    return audit_queries(model, model.audits, relation, relations, interval, NOW)


def model(header: str = "", query: str = "SELECT 1 AS id, 2 AS parent, ds FROM raw.orders", audits: str = "") -> str:
    return f"MODEL (name shop.orders{header and ', '}{header}); {query};\n{audits}"


def sql_of(text: str, **arguments: object) -> str:
    (query,) = render(load(text), **arguments)  # type: ignore[arg-type]
    return query.sql


def test_a_built_in_audit_reads_the_rows_it_is_given():
    graph = load(model("audits (not_null(columns := (id, parent)))"))
    (query,) = render(graph)
    assert query == AuditQuery(
        name="not_null",
        arguments="columns := (id, parent)",
        is_blocking=True,
        sql=f"SELECT * FROM {ROWS} AS `__lamina_this_model` WHERE (`id` IS NULL OR `parent` IS NULL)",
        key=audit_key(graph.models[NodeName("shop.orders")].audits[0]),
        location=Location(file="models/m0.sql", line=1, column=34),
    )


def test_a_table_is_read_by_its_name():
    sql = sql_of(model("audits (not_null(columns := id))"), relation="`shop__lamina`.`orders__v_1`")
    assert sql == "SELECT * FROM `shop__lamina`.`orders__v_1` AS `__lamina_this_model` WHERE (`id` IS NULL)"


def test_the_model_may_be_joined_to_itself_under_both_names():
    audit = """
    AUDIT (name has_parent);
    SELECT child.id FROM @this_model AS child
    LEFT JOIN shop.orders ON child.parent = orders.id
    WHERE child.parent IS NOT NULL AND shop.orders.id IS NULL
    """
    sql = sql_of(model("kind FULL", audits=audit))
    assert sql.count(ROWS) == 2
    assert f"FROM {ROWS} AS child" in sql
    assert f"LEFT JOIN {ROWS} AS `orders` ON child.parent = orders.id" in sql
    assert "`orders`.id IS NULL" in sql


def test_columns_may_be_qualified_with_this_model():
    sql = sql_of(model("kind FULL", audits="AUDIT (name a); SELECT @this_model.id FROM @this_model"))
    assert sql == f"SELECT __lamina_this_model.id FROM {ROWS} AS `__lamina_this_model`"


def test_arguments_become_macro_variables_and_defaults_fill_the_rest():
    graph = load(
        model(f"{INCREMENTAL}, audits (mine(limit := 5, columns := (id, parent)), mine(columns := id))"),
        audits="""
        AUDIT (name mine, defaults (limit = 10, since = @start_ds));
        SELECT * FROM @this_model
        WHERE @REDUCE(@EACH(@columns, c -> @c > @limit), (l, r) -> l OR r) AND ds >= @since AND ds <= @end_ds
        """,
    )
    assert [query.sql.rpartition("WHERE ")[2].strip() for query in render(graph)] == [
        "(id > 5 OR parent > 5) AND ds >= '2024-01-05' AND ds <= '2024-01-05'",
        "id > 10 AND ds >= '2024-01-05' AND ds <= '2024-01-05'",
    ]
    assert [query.arguments for query in render(graph)] == ["limit := 5, columns := (id, parent)", "columns := id"]


def test_time_in_an_argument_is_filled_in():
    audits = "audits (accepted_range(column := ds, min_v := @start_ds, condition := id > @start_hour))"
    sql = sql_of(model(f"{INCREMENTAL}, {audits}"))
    assert sql.endswith("WHERE (`ds` < ('2024-01-05')) AND (id > 0)")


def test_what_time_decides_is_decided_anew_for_every_interval():
    text = model(
        INCREMENTAL,
        audits="""
        AUDIT (name mine, defaults (limit = 3));
        SELECT * FROM @this_model WHERE @IF(@start_ds < '2024-01-06', id > @limit, id < @limit) AND @runtime_stage = 'x'
        """,
    )
    later = Interval(DAY.end, Instant.parse_iso("2024-01-07"))
    graph = load(text)
    assert [render(graph, interval=each)[0].sql.rpartition("WHERE ")[2].strip() for each in (DAY, later)] == [
        "id > 3 AND 'auditing' = 'x'",
        "id < 3 AND 'auditing' = 'x'",
    ]


def test_macros_are_those_that_were_recorded():
    module = PythonModule(name="macros.m", path="macros/m.py", source="")
    text = model(
        INCREMENTAL, audits="AUDIT (name mine); SELECT * FROM @this_model WHERE @positive(id) AND @runtime_stage = 'x'"
    )
    graph = load(
        text,
        functions={"positive": lambda _evaluator, column: f"{column} > 0"},
        macro_modules={"positive": (module,)},
    )
    asked = []

    def load_macros(modules: tuple[PythonModule, ...]) -> dict[str, object]:
        asked.append(modules)
        return {"positive": lambda _evaluator, column: f"{column} >= 1"}

    (query,) = render(graph, load_macros=load_macros)
    assert query.sql.endswith("WHERE id >= 1 AND 'auditing' = 'x'")
    assert asked == [(module,)]


def test_variables_blueprints_and_definitions_are_seen():
    graph = load(
        "MODEL (name shop.@{who}, kind FULL, blueprints ((who := a)), audits (not_null(columns := @column, "
        "condition := who = @who))); @DEF(least, 3); SELECT 1 AS id, 'a' AS who;\n"
        "AUDIT (name mine); SELECT * FROM @this_model WHERE id < @least AND who = @who AND region = @region",
        variables={"column": "id", "region": "eu"},
    )
    first, second = render(graph, "shop.a", interval=None)
    assert first.sql.endswith("WHERE (`id` IS NULL) AND (who = 'a')")
    assert second.sql.endswith("WHERE id < 3 AND who = 'a' AND region = 'eu'")


def test_an_audit_may_be_written_in_another_dialect_than_the_model():
    graph = load(
        'MODEL (name shop.orders, kind FULL, dialect duckdb, audits (mine("column" := "order id", least := 1::int)));'
        ' SELECT 1 AS "order id"',
        audits="AUDIT (name mine, dialect bigquery);\n"
        "SELECT * FROM @this_model WHERE SAFE_CAST(@column AS INT64) < @least AND `a b` IS NULL",
    )
    (query,) = render(graph, interval=None)
    assert query.sql == (
        f"SELECT * FROM {ROWS} AS `__lamina_this_model` "
        "WHERE TRY_CAST(`order id` AS BIGINT) < CAST(1 AS BIGINT) AND `a b` IS NULL"
    )


def test_other_models_are_read_as_the_model_itself_would_read_them():
    customers = "MODEL (name shop.customers, kind EMBEDDED); SELECT id FROM raw.customers WHERE d = @execution_ds"
    audit = "AUDIT (name known); SELECT o.* FROM @this_model AS o LEFT ANTI JOIN customers USING (id)"
    graph = load(customers, model("kind FULL, depends_on (shop.customers)", audits=audit))
    (query,) = render(graph, interval=None)
    assert isinstance(graph.models[NodeName("shop.customers")].kind, Embedded)
    assert "LEFT ANTI JOIN (SELECT id FROM `raw`.`customers`" in query.sql
    assert "WHERE d = '2024-01-07') AS `customers` USING (id)" in query.sql


def test_a_source_is_read_at_its_own_name():
    sql = sql_of(model("kind FULL", audits="AUDIT (name a); SELECT * FROM @this_model EXCEPT SELECT * FROM raw.orders"))
    assert sql.endswith("EXCEPT SELECT * FROM `raw`.`orders` AS `orders`")


def test_skipped_audits_are_left_out_and_blocking_is_told():
    header = (
        "audits (not_null(columns := id, blocking := false), not_null_non_blocking(columns := parent), "
        "not_constant(column := id, skip := true), not_constant(column := parent))"
    )
    queries = render(load(model(header)))
    assert [(query.name, query.is_blocking) for query in queries] == [
        ("not_null", False),
        ("not_null_non_blocking", False),
        ("not_constant", True),
    ]


def test_a_query_can_stand_in_parentheses():
    audit = "AUDIT (name a); SELECT *  -- all\nFROM @this_model WHERE id > 1 -- the end\n;-- after it\n"
    assert sql_of(model("kind FULL", audits=audit)) == (
        f"SELECT *  -- all\nFROM {ROWS} AS `__lamina_this_model` WHERE id > 1"
    )


def test_time_that_an_audit_does_not_have_is_an_error_with_its_place():
    graph = load(model(INCREMENTAL, audits="AUDIT (name a); SELECT * FROM @this_model WHERE ds > @start_ds"))
    with pytest.raises(MacroError) as caught:
        render(graph, interval=None)
    assert caught.value.node == "shop.orders"
    assert caught.value.location is not None
    assert caught.value.location.file == "models/m0.sql"


def test_a_call_without_its_query_is_an_error():
    graph = load(model("audits (not_null(columns := id))"))
    name = NodeName("shop.orders")
    bare: Model = replace(graph.models[name], audits=(replace(graph.models[name].audits[0], code=None),))
    with pytest.raises(BadAudit, match="recorded without its query"):
        render(replace(graph, models=MappingProxyType({name: bare})))
