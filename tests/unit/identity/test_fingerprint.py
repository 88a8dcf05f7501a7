"""What a node is: what changes its version, what only changes its definition, and what changes nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import fields, replace
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.errors import Location
from lamina.graph.kinds import (
    CsvSettings,
    Embedded,
    Full,
    IncrementalByTimeRange,
    IncrementalPolicy,
    Seed,
    TimeColumn,
    View,
)
from lamina.graph.model import (
    AuditCall,
    Column,
    FunctionCall,
    MacroEnvironment,
    Model,
    PythonBody,
    PythonModule,
    SeedBody,
    SqlBody,
    SqlText,
)
from lamina.graph.names import NodeName
from lamina.identity.fingerprint import audit_key, digest, has_object, version_of, versions_of
from lamina.identity.naming import VersionId, batch_folder, generation_name, logical_name, physical_name
from lamina.sql.fragment import Fragment
from lamina.timeline.grain import Grain
from tests.kit.models import daily, graph, model
from tests.unit.reading.reading import read_one


def version(of: Model) -> str:
    return version_of(of, {}).version


def definition(of: Model) -> str:
    return version_of(of, {}).definition_id


def written(query: str, header: str = "", **around: object) -> Model:
    return read_one(f"MODEL (name shop.orders, {header} kind FULL); {query}", **around)


# --- how a query is written -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "other",
    [
        "select a,  b\nfrom raw.orders   where a > 1",
        "SELECT a, b FROM raw.orders WHERE a > 1 -- only new ones",
        "/* first */ SELECT a, /* second */ b FROM raw.orders WHERE a > 1",
        "SELECT `a`, B FROM RAW.Orders WHERE (a > 1)",
    ],
)
def test_formatting_and_comments_change_nothing_about_the_data(other):
    assert version(written(other)) == version(written("SELECT a, b FROM raw.orders WHERE a > 1"))


@pytest.mark.parametrize(
    "other",
    [
        "SELECT a, b FROM raw.orders WHERE a > 2",
        "SELECT a, c FROM raw.orders WHERE a > 1",
        "SELECT a, b FROM raw.others WHERE a > 1",
        "SELECT DISTINCT a, b FROM raw.orders WHERE a > 1",
        "SELECT a, b AS c FROM raw.orders WHERE a > 1",
        "SELECT a, b FROM raw.orders",
    ],
)
def test_another_meaning_is_another_version(other):
    assert version(written(other)) != version(written("SELECT a, b FROM raw.orders WHERE a > 1"))


def test_the_text_inside_a_string_counts_to_the_letter():
    texts = ["SELECT 'a  b' AS x", "SELECT 'a b' AS x", "SELECT 'A b' AS x", "SELECT 'a b ' AS x"]
    assert len({version(written(text)) for text in texts}) == len(texts)


def test_the_value_of_a_variable_counts_where_it_is_used():
    query = "SELECT @region AS x FROM raw.orders"
    eu, us = ({"region": "eu"}, {"region": "us"})
    assert version(written(query, variables=eu)) != version(written(query, variables=us))
    plain = "SELECT 1 AS x FROM raw.orders"
    assert definition(written(plain, variables=eu)) == definition(written(plain, variables=us))


def test_the_value_of_a_variable_counts_where_time_decides_about_it():
    query = "SELECT @IF(@execution_ds > '2024-01-01', @region, 'none') AS x FROM raw.orders"
    eu, us = (written(query, variables={"region": region}) for region in ("eu", "us"))
    assert eu.body.query.is_time_dependent
    assert version(eu) != version(us)


@pytest.mark.parametrize("place", ["pre_statements", "post_statements"])
def test_statements_around_the_query_count_without_their_formatting(place):
    base = model("shop.orders")

    def around(text: str) -> str:
        statement = SqlText(source=Fragment(text=text, location=Location()), expanded=text)
        return version(replace(base, body=replace(base.body, **{place: (statement,)})))

    assert around("SET spark.a = 1") != version(base)
    assert around("CACHE TABLE a") == around("cache  table a -- quick")
    assert around("INSERT INTO a VALUES ('x  y')") != around("INSERT INTO a VALUES ('x y')")


def test_whatever_a_time_dependent_text_is_expanded_from_counts():
    base = model("shop.orders")
    late = replace(base.body.query, is_time_dependent=True)
    definition_of = Fragment(text="@DEF(x, 1)", location=Location())
    module = PythonModule(name="m", path="macros/m.py", source="def f(): return 1")
    first = replace(
        base,
        body=replace(base.body, query=late, macros=MacroEnvironment(definitions=(definition_of,), modules=(module,))),
    )
    others = [
        MacroEnvironment(definitions=(replace(definition_of, text="@DEF(x, 2)"),), modules=(module,)),
        MacroEnvironment(definitions=(definition_of,), modules=(replace(module, source="def f(): return 2"),)),
        MacroEnvironment(definitions=(definition_of,), modules=(module,), variables={"a": 1}),
        MacroEnvironment(definitions=(definition_of,), modules=(module,), blueprint={"a": 1}),
    ]
    found = {version(replace(first, body=replace(first.body, macros=other))) for other in others}
    assert len(found | {version(first)}) == 5
    again = replace(module, source="def f():\n    # one\n    return 1")
    same = MacroEnvironment(definitions=(definition_of,), modules=(again,))
    assert version(replace(first, body=replace(first.body, macros=same))) == version(first)


# --- every property ---------------------------------------------------------------------------------------------------
DATA = {
    "kind": Full(),
    "dialect": "duckdb",
    "stamp": "again",
    "partitioned_by": ("x",),
    "clustered_by": ("x",),
    "table_format": "delta",
    "storage_format": "orc",
    "physical_properties": {"a": 1},
    "session_properties": {"spark.a": True},
    "references": {"other": NodeName("shop.other")},
    "pre_hooks": (FunctionCall(name="prepare"),),
    "post_hooks": (FunctionCall(name="notify"),),
}
METADATA = {
    "description": "orders",
    "owner": "somebody",
    "tags": ("daily",),
    "start": "2020-01-01",
    "end": "2030-01-01",
    "cron": "@hourly",
    "cron_tz": "Europe/Berlin",
    "grain": Grain.HOUR,
    "allow_partials": True,
    "audits": (AuditCall(name="not_null", arguments={"columns": "x"}),),
    "standalone_audits": (AuditCall(name="balanced"),),
    "source_audits": {NodeName("raw.orders"): (AuditCall(name="not_null"),)},
    "signals": (FunctionCall(name="ready"),),
    "grains": ("x",),
    "virtual_properties": {"a": 1},
    "replay_on_change": "forward",
    "run_despite_unchanged": "always",
    "seed_copy": "always",
    "wait_for_parents": False,
    "follow_rewrites": False,
    "further": {"grants": "x"},
}
# Where it was written says nothing; the rest has tests of its own.
ELSEWHERE = {
    *("environment", "read_with", "name", "body", "reads", "location", "columns", "columns_are_declared", "windows"),
}


def test_every_property_of_a_model_has_a_place():
    assert {field.name for field in fields(Model)} == DATA.keys() | METADATA.keys() | ELSEWHERE


@pytest.mark.parametrize("name", sorted(DATA))
def test_a_property_that_changes_data_changes_the_version(name):
    base = model("shop.orders", kind=daily())
    assert version(replace(base, **{name: DATA[name]})) != version(base)


@pytest.mark.parametrize("name", sorted(METADATA))
def test_metadata_changes_the_definition_and_never_the_version(name):
    base = model("shop.orders", kind=daily())
    changed = replace(base, **{name: METADATA[name]})
    assert version(changed) == version(base)
    assert definition(changed) != definition(base)


def test_where_a_model_is_written_is_no_part_of_it():
    base = model("shop.orders")
    moved = replace(base, location=Location(file="elsewhere.sql", line=7))
    assert version_of(moved, {}) == version_of(base, {})


def test_the_name_is_part_of_the_version():
    assert version(model("shop.a", query="SELECT 1 AS x")) != version(model("shop.b", query="SELECT 1 AS x"))


def test_declared_columns_count_with_their_types_and_without_their_comments():
    base = replace(model("shop.orders"), columns=(Column(name="x", type="int"),), columns_are_declared=True)
    other_type = replace(base, columns=(Column(name="x", type="bigint"),))
    commented = replace(base, columns=(Column(name="x", type="int", comment="how many"),))
    derived = replace(base, columns_are_declared=False)
    assert version(other_type) != version(base)
    assert version(derived) != version(base)
    assert version(commented) == version(base)
    assert definition(commented) != definition(base)
    assert version(replace(derived, columns=(Column(name="x", type="bigint"),))) == version(derived)


def test_of_the_incremental_kind_only_how_work_is_cut_is_metadata():
    changes = {
        "time_column": TimeColumn(name="other"),
        "batch_size": 7,
        "batch_concurrency": 2,
        "lookback": 3,
        "partition_by_time_column": False,
        "policy": IncrementalPolicy(forward_only=True),
    }
    base = model("shop.orders", kind=daily())
    assert changes.keys() == {field.name for field in fields(IncrementalByTimeRange)}
    same = {
        name for name, value in changes.items() if version(replace(base, kind=daily_with(name, value))) == version(base)
    }
    assert same == {"batch_size", "batch_concurrency", "policy"}
    assert all(definition(replace(base, kind=daily_with(name, changes[name]))) != definition(base) for name in changes)


def daily_with(name: str, value: object) -> IncrementalByTimeRange:
    return replace(daily(), **{name: value})


def test_a_time_columns_format_counts():
    assert version(model("a.b", kind=daily_with("time_column", TimeColumn(name="ds", format="%Y%m%d")))) != version(
        model("a.b", kind=daily())
    )


# --- audits -----------------------------------------------------------------------------------------------------------
def audited(call: str, inline: str = "", **around: object) -> Model:
    audits = f"audits ({call})," if call else ""
    return written(f"SELECT 1 AS id, 2 AS n;\n{inline}", audits, **around)


INLINE = "AUDIT (name mine, defaults (least = 1)); SELECT * FROM @this_model WHERE id < @least"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (audited("not_null(columns := id)"), audited("not_null(columns := n)")),
        (audited("not_null(columns := id)"), audited("unique_values(columns := id)")),
        (audited("not_null(columns := id)"), audited("not_null(columns := id, condition := n > 1)")),
        (audited("", INLINE), audited("", INLINE.replace("<", "<="))),
        (audited("", INLINE), audited("", INLINE.replace("= 1", "= 2"))),
        (audited("", INLINE), audited("mine(least := 2)", INLINE)),
    ],
)
def test_what_an_audit_asks_is_metadata_and_decides_its_outcome(before: Model, after: Model):
    assert version(before) == version(after)
    assert definition(before) != definition(after)
    assert audit_key(before.audits[0]) != audit_key(after.audits[0])


@pytest.mark.parametrize("said", ["blocking := false", "skip := true"])
def test_what_a_failure_leads_to_is_metadata_and_does_not_decide_the_outcome(said: str):
    before, after = audited("not_null(columns := id)"), audited(f"not_null(columns := id, {said})")
    assert version(before) == version(after)
    assert definition(before) != definition(after)
    assert audit_key(before.audits[0]) == audit_key(after.audits[0])


def test_how_and_where_an_audit_is_written_does_not_matter():
    before = audited("", INLINE)
    after = audited(
        "", "\n\n-- words\n" + INLINE.replace("SELECT *", "select   *  /* all */").replace("id <", "`ID` <")
    )
    assert before.audits[0].location != after.audits[0].location
    assert version_of(before, {}) == version_of(after, {})
    assert audit_key(before.audits[0]) == audit_key(after.audits[0])


def test_a_copy_that_does_not_block_asks_the_same():
    one, other = audited("not_null(columns := id), not_null_non_blocking(columns := id)").audits
    assert audit_key(one) == audit_key(other)


def test_whatever_a_time_dependent_audit_is_expanded_from_decides_its_outcome():
    text = (
        "AUDIT (name mine, defaults (least = 1, other = 2));\n"
        "SELECT * FROM @this_model WHERE @IF(@execution_ds > @since, id < @least, id < @other)"
    )
    keys = {
        audit_key(audited("", changed, variables={"since": since}).audits[0])
        for changed in (text, text.replace("other = 2", "other = 3"), text.replace("least = 1", "least = 4"))
        for since in ("2024-01-01", "2024-02-01")
    }
    assert len(keys) == 6


def test_the_table_that_an_audit_reads_decides_its_outcome():
    (call,) = audited("", "AUDIT (name a); SELECT * FROM @this_model LEFT ANTI JOIN other USING (id)").audits
    moved = replace(call, code=replace(call.code, references={"other": NodeName("test.other")}))
    assert audit_key(call) != audit_key(moved)


# --- seeds and Python -------------------------------------------------------------------------------------------------
def test_a_seed_is_its_content_and_how_it_is_read_not_its_file():
    base = replace(model("shop.codes", kind=Seed(path="a.csv")), body=SeedBody(path="a.csv", content_hash="1"))
    moved = replace(base, kind=Seed(path="b.csv", batch_size=5), body=SeedBody(path="b.csv", content_hash="1"))
    assert version(moved) == version(base)
    assert version(replace(base, body=SeedBody(path="a.csv", content_hash="2"))) != version(base)
    other_settings = Seed(path="a.csv", csv_settings=CsvSettings(delimiter=";"))
    assert version(replace(base, kind=other_settings)) != version(base)


def test_a_python_model_is_its_code_without_formatting_and_every_module_it_needs():
    def python(source: str, helper: str = "x = 1", **more: object) -> str:
        modules = (
            PythonModule(name="m", path="models/m.py", source=source),
            PythonModule(name="helper", path="python/helper.py", source=helper),
        )
        body = PythonBody(module="m", function="execute", modules=modules, **more)
        return version(replace(model("shop.p"), body=body))

    base = python("def execute(context):\n    return 1\n")
    assert python("def execute( context ):  # same\n\n    return (1)\n") == base
    assert python("def execute(context):\n    return 2\n") != base
    assert python("def execute(context):\n    return 1\n", helper="x = 2") != base
    assert python("def execute(context):\n    return 1\n", variables={"region": "eu"}) != base


# --- parents ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", [Full(), View(), Embedded(), daily()], ids=lambda kind: kind.name)
def test_a_change_reaches_everything_below_through_every_kind(kind):
    def versions(text: str) -> dict:
        return versions_of(
            graph(
                model("shop.a", ["raw.x"], query=f"SELECT {text} FROM raw.x"),
                model("shop.b", ["shop.a"], kind=kind),
                model("shop.c", ["shop.b"]),
                model("shop.other", ["raw.x"]),
            )
        )

    before, after = versions("1 AS x"), versions("2 AS x")
    changed = {str(name) for name in before if before[name].version != after[name].version}
    assert changed == {"shop.a", "shop.b", "shop.c"}


def test_a_change_of_a_parents_metadata_reaches_nothing():
    below = model("shop.b", ["shop.a"])
    before = versions_of(graph(model("shop.a"), below))
    after = versions_of(graph(model("shop.a", owner="me", cron="@hourly"), below))
    assert before["shop.b"] == after["shop.b"]


def test_the_order_in_which_things_are_told_does_not_matter():
    models = [model("shop.a"), model("shop.b", ["shop.a"]), model("shop.c", ["shop.a", "shop.b"])]
    assert versions_of(graph(*models)) == versions_of(graph(*reversed(models)))
    base = model("shop.a", physical_properties={"a": 1, "b": 2})
    turned = model("shop.a", physical_properties=MappingProxyType({"b": 2, "a": 1}))
    assert version_of(turned, {}) == version_of(base, {})


def test_a_model_that_reads_itself_has_a_version():
    (found,) = versions_of(graph(model("shop.a", ["shop.a", "raw.x"]))).values()
    assert found.consumes == {}


def test_column_and_row_set_fingerprints_are_kept_apart():
    found = version_of(model("shop.a", columns=("ds", "x")), {}).fingerprint
    assert set(found.columns) == {"ds", "x"}
    assert len({found.row_set, *found.columns.values()}) == 3


KINDS = (Full(), View(), Embedded(), daily())
EDITS = ("query", "kind", "property", "metadata", "comment")


@st.composite
def graphs(draw) -> list[Model]:
    """Up to eight models, each reading some of those before it."""
    size = draw(st.integers(1, 8))
    return [
        model(
            f"shop.m{number}",
            draw(st.lists(st.sampled_from([f"shop.m{other}" for other in range(number)] or ["raw.x"]), unique=True)),
            kind=draw(st.sampled_from(KINDS)),
        )
        for number in range(size)
    ]


def edited(one: Model, how: str) -> tuple[Model, bool]:
    """The model after an edit, and whether the edit affects data."""
    match how:
        case "query":
            body = replace(one.body, canonical=f"{one.body.canonical} WHERE true")
            return replace(one, body=body), True
        case "kind":
            return replace(one, kind=View() if isinstance(one.kind, Full) else Full()), True
        case "property":
            return replace(one, physical_properties={"a": 1}), True
        case "metadata":
            return replace(one, owner="somebody", cron="@weekly"), False
        case _:
            source = replace(one.body.query.source, text=f"-- why\n{one.body.query.source.text}")
            body: SqlBody = replace(one.body, query=replace(one.body.query, source=source))
            return replace(one, body=body), False


@given(models=graphs(), data=st.data())
@settings(max_examples=40)
def test_a_version_changes_exactly_when_the_node_or_an_ancestor_changed_its_data(models, data):
    edits = data.draw(st.dictionaries(st.integers(0, len(models) - 1), st.sampled_from(EDITS), max_size=3))
    after = list(models)
    touched: set[str] = set()
    for number, how in edits.items():
        after[number], affects_data = edited(models[number], how)
        if affects_data:
            touched.add(models[number].name)
    old, new = graph(*models), graph(*data.draw(st.permutations(after)))
    before, now = versions_of(old), versions_of(new)
    reached = touched | set(old.descendants(NodeName(name) for name in touched))
    assert {name for name in before if before[name].version != now[name].version} == reached


# --- stability and names ----------------------------------------------------------------------------------------------
def test_hashes_are_the_same_in_every_process():
    code = (
        "from lamina.identity.fingerprint import digest;"
        "print(digest('a', 1, None, 1.5, True, {'b': [1], 'a': ()}, frozenset({'x', 'y', 'z'})))"
    )
    surroundings = {"PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=surroundings)
    assert found.stdout.strip() == digest("a", 1, None, 1.5, True, {"b": [1], "a": ()}, frozenset({"x", "y", "z"}))


@settings(max_examples=40)
@given(st.lists(st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text()), max_size=4))
def test_different_values_give_different_hashes(parts):
    assert digest(*parts) == digest(*parts)
    assert digest(*parts) != digest(*parts, None)
    assert digest(*parts) != digest(parts, parts)
    assert digest("1") != digest(1)
    assert digest(True) != digest(1)


def test_names_follow_the_contract():
    node, version_id = NodeName("shop.orders"), VersionId("0123456789abcdef")
    physical = physical_name(node, version_id)
    assert physical == "shop__lamina.orders__v_0123456789abcdef"
    assert physical_name(node, version_id, 2) == f"{physical}_2"
    assert generation_name(physical, 7) == f"{physical}__g_7"
    assert batch_folder(physical, 7, "0123abcd") == "_lamina_0123abcd/orders__v_0123456789abcdef/7"
    assert logical_name(node, "prod", "prod") == "shop.orders"
    assert logical_name(node, "dev", "prod") == "shop__dev.orders"
    assert re.fullmatch(r"[0-9a-f]{16}", version(model("shop.orders")))


def test_only_embedded_models_have_no_object():
    assert [has_object(model("a.b", kind=kind)) for kind in KINDS] == [True, True, False, True]
