"""Audits in models: which ones, with which arguments, and what is refused."""

from __future__ import annotations

import pytest

from lamina.errors import (
    BadAudit,
    BadPropertyValue,
    DefinitionError,
    DuplicateName,
    LaminaError,
    Location,
    SyntaxProblem,
    UndeclaredSource,
    UnknownMacro,
    UnknownProperty,
)
from lamina.graph.dag import Graph
from lamina.graph.names import Naming, NodeName
from lamina.reading.audit_references import resolve_audits
from lamina.reading.audits import AuditDefinition, bind_audits, read_audit_file
from lamina.reading.drafts import Draft, Surroundings
from lamina.reading.plain_values import read_plain_properties
from lamina.reading.resolve import resolve
from tests.unit.reading.reading import problem, problems, read, read_one

QUERY = "SELECT 1 AS id, 'a' AS name, DATE '2024-01-01' AS ds"
MINE = "AUDIT (name mine, defaults (least = 1));\nSELECT * FROM @this_model WHERE @column < @least"


def model(audits: str = "", query: str = QUERY, inline: str = "", kind: str = "FULL", name: str = "shop.orders") -> str:
    listed = f", audits ({audits})" if audits else ""
    return f"MODEL (name {name}, kind {kind}{listed});\n{query};\n{inline}"


def define(text: str, file: str = "audits/a.sql", **surroundings: object) -> tuple[AuditDefinition, ...]:
    return read_audit_file(text, file, Surroundings(**surroundings))  # type: ignore[arg-type]


def bind(text: str, audits: str = MINE, **surroundings: object) -> list[Draft]:
    around = Surroundings(**surroundings)  # type: ignore[arg-type]
    drafts = read(text, **surroundings)  # type: ignore[arg-type]
    return bind_audits(drafts, define(audits), lambda: around, lambda _key, compute: compute())


def bind_problems(text: str, audits: str = MINE, **surroundings: object) -> list[LaminaError]:
    with pytest.raises(LaminaError) as caught:
        bind(text, audits, **surroundings)
    return list(caught.value.problems)


def load(*texts: str, audits: str = "", strict: bool = False) -> Graph:
    drafts = [draft for text in texts for draft in bind(text, audits)]
    naming = Naming(schema="shop")
    return resolve_audits(resolve(drafts, (), naming), naming, strict_sources=strict)


def place(error: LaminaError) -> tuple[int | None, int | None]:
    assert error.location is not None
    return error.location.line, error.location.column


# --- calls ------------------------------------------------------------------------------------------------------------
def test_a_built_in_audit_has_its_query_at_once():
    (audit,) = read_one(model("not_null(columns := (id, name))")).audits
    assert (audit.name, dict(audit.arguments)) == ("not_null", {"columns": "(id, name)"})
    assert (audit.is_blocking, audit.is_skipped) == (True, False)
    assert audit.code.query.expanded.endswith("WHERE (`id` IS NULL OR `name` IS NULL)")


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("not_constant(column := id)", True),
        ("not_constant(column := id, blocking := false)", False),
        ("not_constant(column := id, blocking = 'false')", False),
        ("not_constant(column := id, blocking := @stops)", False),
        ("not_constant_non_blocking(column := id)", False),
        ("not_constant_non_blocking(column := id, blocking := true)", True),
        ("not_constant(column := id, blocking := NULL)", True),
    ],
)
def test_the_model_says_whether_an_audit_blocks(call: str, expected: bool):
    (audit,) = read_one(model(call), variables={"stops": False}).audits
    assert audit.is_blocking is expected
    assert dict(audit.arguments) == {"column": "id"}


def test_what_the_model_says_wins_over_the_audit():
    audits = "AUDIT (name mine, blocking false, skip true); SELECT * FROM @this_model"
    (draft,) = bind(model("mine"), audits)
    assert (draft.model.audits[0].is_blocking, draft.model.audits[0].is_skipped) == (False, True)
    (draft,) = bind(model("mine(blocking := true, skip := false)"), audits)
    assert (draft.model.audits[0].is_blocking, draft.model.audits[0].is_skipped) == (True, False)


def test_the_same_audit_may_have_several_arguments_but_counts_once_for_each():
    calls = "not_null(columns := id), not_null(columns := name), not_null(columns := id), not_null(columns := (id))"
    assert [dict(audit.arguments) for audit in read_one(model(calls)).audits] == [
        {"columns": "id"},
        {"columns": "name"},
        {"columns": "(id)"},
    ]


def test_of_two_calls_with_the_same_arguments_the_later_one_decides():
    defaults = read_plain_properties({"audits": ["not_null(columns := id)"]}, Location(file="lamina.yaml"), "spark", [])
    (audit,) = read_one(model("not_null(columns := id, blocking := false)"), defaults=defaults).audits
    assert audit.is_blocking is False


def test_audits_of_the_project_come_first_and_leave_embedded_models_alone():
    defaults = read_plain_properties(
        {"audits": ["number_of_rows(threshold := 0)", {"name": "mine", "column": "id"}]},
        Location(file="lamina.yaml"),
        "spark",
        [],
    )
    found = read_one(model("not_null(columns := id)"), defaults=defaults)
    assert [audit.name for audit in found.audits] == ["number_of_rows", "mine", "not_null"]
    assert read_one(model(kind="EMBEDDED"), defaults=defaults).audits == ()


def test_an_audit_of_the_project_that_does_not_fit_a_model_is_reported_there():
    defaults = read_plain_properties({"audits": ["not_null(columns := i)"]}, Location(file="lamina.yaml"), "spark", [])
    found = problem(model(), defaults=defaults)
    assert isinstance(found, DefinitionError)
    assert "`not_null` names `i`" in found.message
    assert found.location == Location(file="models/m.sql", line=1, column=1)


def test_arguments_of_the_project_are_in_the_dialect_of_the_project():
    defaults = read_plain_properties(
        {"audits": ['forall(criteria := ("id"::int > 0))']}, Location(file="lamina.yaml"), "duckdb", []
    )
    text = "MODEL (name shop.orders, kind FULL, dialect spark); SELECT 1 AS id"
    (audit,) = read_one(text, defaults=defaults, dialect="duckdb").audits
    assert audit.code.query.expanded.endswith("WHERE (NOT (CAST(`id` AS INT) > 0))")


def test_variables_and_blueprints_are_put_into_arguments():
    text = (
        "MODEL (name shop.@{who}, kind FULL, blueprints ((who := a), (who := b)), "
        "audits (accepted_values(column := name, is_in := @names, condition := name <> @who), @more()));\n" + QUERY
    )
    drafts = read(
        text,
        variables={"names": ["x", "y"]},
        functions={"more": lambda _evaluator: ["not_null(columns := id)", "not_constant(column := id)"]},
    )
    assert [dict(draft.model.audits[0].arguments) for draft in drafts] == [
        {"column": "name", "is_in": "'x', 'y'", "condition": "name <> 'a'"},
        {"column": "name", "is_in": "'x', 'y'", "condition": "name <> 'b'"},
    ]
    assert "NOT IN ('x', 'y')) AND (name <> 'a')" in drafts[0].model.audits[0].code.query.expanded
    assert [audit.name for audit in drafts[0].model.audits] == ["accepted_values", "not_null", "not_constant"]


def test_time_may_be_an_argument_but_may_not_decide_one():
    kind = "INCREMENTAL_BY_TIME_RANGE (time_column ds)"
    (audit,) = read_one(model("accepted_range(column := ds, min_v := @start_date)", kind=kind)).audits
    assert audit.code.query.expanded.endswith("(`ds` < (@start_date))")
    found = problem(model("number_of_rows(threshold := @IF(@start_ds > '2024', 1, 2))", kind=kind))
    assert isinstance(found, BadPropertyValue)
    assert "depends on the interval" in found.message


@pytest.mark.parametrize(
    ("call", "error", "message", "hint"),
    [
        ("not_null(column := id)", BadAudit, "has no argument `column`", "did you mean `columns`?"),
        ("not_null(columns := id, x := 1)", BadAudit, "has no argument `x`", "it takes `columns`, `condition`"),
        ("not_null", BadAudit, "`not_null` needs the argument `columns`", "it takes `columns`, `condition`"),
        ("not_null(columns := id, blocking := 3)", BadAudit, "must be `true` or `false`", None),
        ("not_null(columns := ())", BadAudit, "is empty", None),
        ("not_null(columns := idd)", DefinitionError, "names `idd`", "did you mean `id`?"),
        ("accepted_range(column := id)", BadAudit, "needs `min_v`, `max_v` or both", None),
        ("not_null(id)", BadPropertyValue, "has no name", None),
        ("17", BadPropertyValue, "must be a list of names or calls", None),
        ("not_null(columns := @missing)", LaminaError, "@missing", None),
    ],
)
def test_a_wrong_call_is_refused_where_it_stands(call: str, error: type[LaminaError], message: str, hint: str | None):
    found = problems(model(call))
    wanted = next(each for each in found if message in each.message)
    assert isinstance(wanted, error)
    assert place(wanted)[0] == 1
    assert (place(wanted)[1] or 0) > len("MODEL (name shop.orders, kind FULL, audits")
    assert hint is None or wanted.hint == hint


def test_columns_of_history_may_be_audited():
    kind = "SCD_TYPE_2_BY_TIME (unique_key id)"
    query = "SELECT 1 AS id, current_timestamp() AS updated_at"
    calls = "mutually_exclusive_ranges(lower_bound_column := valid_from, upper_bound_column := valid_to)"
    assert len(read_one(model(calls, query=query, kind=kind)).audits) == 1


def test_embedded_models_have_nothing_to_audit():
    for text in (
        model("not_null(columns := id)", kind="EMBEDDED"),
        model(kind="EMBEDDED", inline="AUDIT (name a); SELECT * FROM @this_model"),
    ):
        found = problem(text)
        assert isinstance(found, DefinitionError)
        assert "EMBEDDED" in found.message
        assert found.location is not None


# --- audits in a model's file -----------------------------------------------------------------------------------------
def test_an_audit_in_the_file_is_attached_by_itself_or_with_arguments():
    inline = "AUDIT (name mine, defaults (least = 1));\nSELECT * FROM @this_model WHERE id < @least"
    (alone,) = read_one(model(inline=inline)).audits
    assert (alone.name, dict(alone.arguments)) == ("mine", {})
    assert alone.code.query.expanded.endswith("WHERE id < 1")
    assert (alone.location.line, alone.location.column) == (3, 1)
    first, second = read_one(model("mine(least := 2), mine(least := 3)", inline=inline)).audits
    assert first.code.query.expanded.endswith("WHERE id < 2")
    assert second.code.query.expanded.endswith("WHERE id < 3")
    assert dict(second.code.parameters) == {"least": "3"}


def test_a_seed_may_have_audits_in_its_file():
    text = "MODEL (name shop.s, kind SEED (path 's.csv'));\nAUDIT (name mine); SELECT * FROM @this_model WHERE id < 0"
    assert [audit.name for audit in read_one(text).audits] == ["mine"]


def test_two_audits_of_one_name_are_refused():
    inline = "AUDIT (name a); SELECT * FROM @this_model;\nAUDIT (name A); SELECT 1 FROM @this_model"
    found = problem(model(inline=inline))
    assert isinstance(found, DuplicateName)
    assert "models/m.sql:3:1" in found.message
    assert place(found) == (4, 1)
    audits = "AUDIT (name a); SELECT 1;\nAUDIT (name a); SELECT 2"
    (found,) = bind_problems(model(), audits)
    assert isinstance(found, DuplicateName)
    assert "`audits/a.sql:1:1` and in `audits/a.sql:2:1`" in found.message


@pytest.mark.parametrize("name", ["not_null", "Not_Null", "z_score_non_blocking"])
def test_no_audit_takes_the_name_of_a_built_in_one(name: str):
    with pytest.raises(DuplicateName, match="is a built-in audit"):
        define(f"AUDIT (name {name}); SELECT 1")


def test_an_audit_in_the_file_hides_none_of_the_project():
    (found,) = bind_problems(model(inline="AUDIT (name mine); SELECT * FROM @this_model"))
    assert isinstance(found, DuplicateName)
    assert "`audits/a.sql:1:1` and in `models/m.sql:3:20`" in found.message


def test_audits_of_two_files_may_share_a_name():
    inline = "AUDIT (name own); SELECT * FROM @this_model WHERE id < {}"
    graph = load(model(inline=inline.format(1)), model(inline=inline.format(2), name="shop.other"))
    assert [m.audits[0].code.query.expanded[-1] for m in graph.models.values()] == ["1", "2"]


# --- audits in `audits/` ----------------------------------------------------------------------------------------------
def test_a_definition_is_read():
    first, second = define(
        """
        AUDIT (name A, dialect duckdb, defaults (x = "a b", y = (1, 2), z = @start_ds, w = @one), blocking false);
        SELECT * FROM @this_model;
        -- about the second
        AUDIT (name b, skip true, description 'words', blocking @yes);
        SELECT 2
        """,
        variables={"one": 1, "yes": True},
    )
    assert (first.name, first.is_blocking, first.is_skipped, first.query.dialect) == ("a", False, False, "duckdb")
    assert dict(first.defaults) == {"x": '"a b"', "y": "(1, 2)", "z": "@start_ds", "w": "1"}
    assert (second.name, second.is_blocking, second.is_skipped) == ("b", True, True)
    assert first.location == Location(file="audits/a.sql", line=2, column=9)


def test_a_call_gets_its_query():
    (draft,) = bind(model("mine(column := id), MINE(column := length(name), least := 2)"))
    first, second = draft.model.audits
    assert first.code.query.expanded.endswith("WHERE id < 1")
    assert second.code.query.expanded.endswith("WHERE length(name) < 2")
    assert second.code.query.source.location.file == "audits/a.sql"
    assert dict(second.code.parameters) == {"least": "2", "column": "length(name)"}


@pytest.mark.parametrize(
    ("call", "message", "hint"),
    [
        ("mime(column := id)", "there is no audit `mime`", "did you mean `mine`?"),
        ("not_nul(columns := id)", "there is no audit `not_nul`", "did you mean `not_null`?"),
        ("elsewhere", "there is no audit `elsewhere`", "define it in a file in `audits/`: `AUDIT (name elsewhere);`"),
        ("mine", "audit `mine` needs the argument `column`", "it takes `column`, `least`"),
        ("mine(column := id, leest := 1)", "audit `mine` has no argument `leest`", "did you mean `least`?"),
        ("mine(column := id, this_model := x)", "has no argument `this_model`", "it takes `column`, `least`"),
    ],
)
def test_a_call_that_fits_no_audit_is_refused_where_it_stands(call: str, message: str, hint: str):
    (found,) = bind_problems(model(call))
    assert isinstance(found, BadAudit)
    assert message in found.message
    assert found.hint == hint
    assert place(found) == (1, len("MODEL (name shop.orders, kind FULL, audits (") + 1)
    assert found.node == "shop.orders"


def test_all_problems_are_reported_at_once():
    found = bind_problems(model("mime, mine, mine(column := id, x := 1)"))
    assert [type(each) for each in found] == [BadAudit] * 3


def test_variables_of_the_project_are_no_arguments_that_are_missing():
    audits = "AUDIT (name a); SELECT * FROM @this_model WHERE region <> @region AND d < @execution_ds AND @x(id)"
    around = {"variables": {"region": "eu"}, "functions": {"x": lambda _evaluator, column: f"{column} > 0"}}
    (draft,) = bind(model("a, a(region := 'us'), a(anything := 1)"), audits, **around)
    assert [("region <> 'eu'" in audit.code.query.expanded) for audit in draft.model.audits] == [True, False, True]


def test_what_a_query_needs_later_is_kept_with_it():
    audits = "AUDIT (name a); SELECT * FROM @this_model WHERE @IF(@start_ds > @since, id > @x, id < 1)"
    kind = "INCREMENTAL_BY_TIME_RANGE (time_column ds)"
    (draft,) = bind(model("a(x := 7)", kind=kind), audits, variables={"since": "2024-01-01", "other": 1})
    (audit,) = draft.model.audits
    assert audit.code.query.is_time_dependent
    assert dict(audit.code.macros.variables) == {"since": "2024-01-01"}
    assert dict(audit.code.parameters) == {"x": "7"}


def test_problems_of_a_query_are_reported_where_it_is_written():
    (found,) = bind_problems(model("a"), "AUDIT (name a);\nSELECT id FORM @this_model")
    assert isinstance(found, SyntaxProblem)
    assert found.location is not None
    assert (found.location.file, found.location.line) == ("audits/a.sql", 2)
    assert found.node == "shop.orders"


def test_models_that_are_computed_whole_have_no_interval_to_audit():
    audits = "AUDIT (name a); SELECT * FROM @this_model WHERE ds > @start_ds"
    (found,) = bind_problems(model("a"), audits)
    assert isinstance(found, BadAudit)
    assert "`@start_ds`, which a model of kind `FULL` does not have" in found.message


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("AUDIT (); SELECT 1", BadAudit),
        ("AUDIT (name a, defaults (x = @nobody)); SELECT 1", UnknownMacro),
        ("AUDIT (blocking true); SELECT 1", BadAudit),
        ("AUDIT (name a.b); SELECT 1", BadPropertyValue),
        ("AUDIT (name a, blocks true); SELECT 1", UnknownProperty),
        ("AUDIT (name a, blocking maybe); SELECT 1", BadPropertyValue),
        ("AUDIT (name a, defaults (1)); SELECT 1", BadPropertyValue),
        ("AUDIT (name a, cron '@daily'); SELECT 1", DefinitionError),
    ],
)
def test_a_definition_that_makes_no_sense_is_refused(text: str, error: type[LaminaError]):
    with pytest.raises(LaminaError) as caught:
        define(text)
    assert [type(each) for each in caught.value.problems] == [error]
    assert caught.value.location is not None
    assert caught.value.location.line == 1


def test_a_standalone_audit_belongs_to_no_model():
    audits = "AUDIT (name a, standalone true, cron '@daily', owner ann, tags (x), depends_on (shop.b)); SELECT 1"
    assert bind(model(), audits)
    (found,) = bind_problems(model("a"), audits)
    assert isinstance(found, BadAudit)
    assert "`a` is standalone and cannot be attached" in found.message
    inline = problem(model(inline="AUDIT (name a, standalone true); SELECT 1"))
    assert isinstance(inline, DefinitionError)


# --- tables -----------------------------------------------------------------------------------------------------------
READS = "AUDIT (name known); SELECT * FROM @this_model LEFT ANTI JOIN shop.customers USING (id)"
CUSTOMERS = "MODEL (name shop.customers, kind FULL); SELECT id FROM raw.customers"


def references(graph: Graph, name: str = "shop.orders") -> dict[str, str]:
    return dict(graph.models[NodeName(name)].audits[0].code.references)


def test_an_audit_may_read_what_is_upstream_and_adds_no_edge():
    between = "MODEL (name shop.middle, kind VIEW); SELECT id FROM customers"
    graph = load(CUSTOMERS, between, model(query="SELECT id FROM shop.middle", inline=READS))
    assert references(graph) == {"shop.customers": "shop.customers"}
    assert graph.parents(NodeName("shop.orders")) == ("shop.middle",)


def test_a_model_is_found_under_its_short_name_and_under_its_own():
    inline = READS.replace("shop.customers", "customers JOIN orders")
    graph = load(CUSTOMERS, model(query="SELECT id FROM shop.customers", inline=inline))
    assert references(graph) == {"customers": "shop.customers", "orders": "shop.orders"}


def test_a_model_that_is_not_upstream_is_refused_with_a_way_out():
    with pytest.raises(BadAudit) as caught:
        load(CUSTOMERS, model(inline=READS))
    assert "reads `shop.customers`, which `shop.orders` does not depend on" in caught.value.message
    assert caught.value.hint == "add `depends_on (shop.customers)` to the model, so that it is built first"
    assert (caught.value.node, place(caught.value)) == ("shop.orders", (3, 1))
    text = model(inline=READS).replace("kind FULL", "kind FULL, depends_on (shop.customers)")
    assert references(load(CUSTOMERS, text)) == {"shop.customers": "shop.customers"}


def test_a_model_that_is_built_later_is_refused():
    below = "MODEL (name shop.customers, kind FULL); SELECT id FROM shop.orders"
    with pytest.raises(BadAudit) as caught:
        load(below, model(inline=READS))
    assert caught.value.hint == "attach the audit to `shop.customers`, which is built later"


def test_a_table_that_nothing_defines_is_a_source():
    inline = READS.replace("shop.customers", "raw.customers")
    graph = load(model(inline=inline))
    assert references(graph) == {"raw.customers": "raw.customers"}
    assert [warning.code for warning in graph.warnings] == ["LAM-WARN-001"]
    assert graph.sources == {}
    with pytest.raises(UndeclaredSource, match=r"raw\.customers"):
        load(model(inline=inline), strict=True)
    assert load(model(query="SELECT id FROM raw.customers", inline=inline)).warnings == (
        load(model(query="SELECT id FROM raw.customers")).warnings
    )
