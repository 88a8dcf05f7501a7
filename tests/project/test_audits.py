"""Audits in files: what a project loads, what it remembers, and what it reports."""

from __future__ import annotations

import pytest

from lamina.errors import BadAudit, DuplicateName, SyntaxProblem, UnknownColumn
from lamina.identity.fingerprint import versions_of
from lamina.reading import audits as audits_module
from lamina.state.codec import model_document
from tests.project.conftest import NOW

MODEL = "MODEL (name {0}, kind FULL, audits ({1}));\nSELECT 1 AS id, 'a' AS name\n"
POSITIVE = "AUDIT (name positive, defaults (least = 0));\nSELECT * FROM @this_model WHERE @column <= @least;\n"
NAMED = "AUDIT (name named);\nSELECT * FROM @this_model WHERE name IS NULL;\n"
LOW = "from lamina import macro\n\n@macro()\ndef low(evaluator, x):\n    return f'{x} < LIMIT'\n"


def shop(**files: str) -> dict[str, str]:
    return {"models/a.sql": MODEL.format("a", "positive(column := id)"), "audits/more/a.sql": POSITIVE + NAMED, **files}


def query(graph, name: str = "shop.a") -> str:
    return graph.models[name].audits[0].code.query.expanded


def test_audits_of_the_folder_are_bound_to_the_models_that_name_them(project):
    folder = project(
        {
            **shop(),
            "lamina.yaml": "name: shop\ndefaults:\n  audits: [named, {name: positive, column: id, least: 5}]\n",
            "models/p.py": (
                "from lamina import model\n\n"
                "@model('p', kind='FULL', columns={'id': 'int', 'name': 'string'},\n"
                "       audits=['named', ('accepted_values',\n"
                "               {'column': 'name', 'is_in': ['x'], 'condition': 'id > 1'})])\n"
                "def execute(context, start, end, execution_time, **kwargs):\n    return None\n"
            ),
        }
    )
    graph = folder.graph()

    assert [audit.name for audit in graph.models["shop.a"].audits] == ["named", "positive", "positive"]
    assert query(graph, "shop.a").endswith("WHERE name IS NULL")
    assert [audit.name for audit in graph.models["shop.p"].audits] == ["named", "positive", "accepted_values"]
    assert graph.models["shop.p"].audits[2].code.query.expanded.endswith("NOT IN ('x')) AND (id > 1)")


def test_a_recorded_model_has_its_audits(project):
    graph = project(shop()).graph()
    found = graph.models["shop.a"]

    assert model_document.read(model_document.write(found)) == found
    assert found.audits[0].code is not None


def test_an_edit_of_an_audit_is_seen_and_changes_metadata_alone(project):
    folder = project(shop())
    before = versions_of(folder.graph())["shop.a"]
    opened = folder.open()
    assert versions_of(opened.graph(NOW))["shop.a"] == before
    assert opened.figures.is_whole_graph_cached

    folder.write({"audits/more/a.sql": POSITIVE.replace("<=", "<") + NAMED})
    opened = folder.open()
    after = versions_of(opened.graph(NOW))["shop.a"]
    assert opened.figures.read == ("audits/more/a.sql",)
    assert "id < 0" in query(folder.graph())
    assert after.version == before.version
    assert after.definition_id != before.definition_id


def test_formatting_and_comments_of_an_audit_change_nothing(project):
    folder = project(shop())
    before = versions_of(folder.graph())["shop.a"]
    folder.write({"audits/more/a.sql": "-- words\n\n" + POSITIVE.replace("WHERE", "\n  where /* here */ ") + NAMED})

    assert versions_of(folder.graph())["shop.a"] == before


def test_a_new_and_a_removed_file_are_seen(project):
    folder = project(shop())
    folder.graph()
    (folder.root / "audits/more/a.sql").unlink()

    found = folder.problem()
    assert isinstance(found, BadAudit)
    assert (found.location.file, found.location.line) == ("models/a.sql", 1)
    folder.write({"audits/b.sql": POSITIVE})
    assert "id <= 0" in query(folder.graph())


def test_an_unchanged_audit_is_not_expanded_again_when_a_model_changes(project, monkeypatch):
    folder = project(shop(**{"models/b.sql": MODEL.format("b", "positive(column := id)")}))
    folder.graph()
    folder.write({"models/b.sql": MODEL.format("b", "positive(column := id, least := 1)")})
    calls = []
    compute = audits_module.audit_code
    monkeypatch.setattr(audits_module, "audit_code", lambda *given: calls.append(given[1].arguments) or compute(*given))
    graph = folder.graph()

    assert [dict(arguments) for arguments in calls] == [{"column": "id", "least": "1"}]
    assert "id <= 0" in query(graph)
    assert "id <= 1" in query(graph, "shop.b")


def test_variables_and_macros_reach_audits_and_their_edits_are_seen(project):
    folder = project(
        shop(
            **{
                "lamina.yaml": "name: shop\nvariables: {floor: 3}\n",
                "macros/m.py": LOW.replace("LIMIT", "1"),
                "audits/a.sql": "AUDIT (name positive); SELECT * FROM @this_model WHERE @low(@column) OR id < @floor",
                "audits/more/a.sql": NAMED,
            }
        )
    )
    assert query(folder.graph()).endswith("WHERE id < 1 OR id < 3")
    folder.write({"macros/m.py": LOW.replace("LIMIT", "2")})
    assert query(folder.graph()).endswith("WHERE id < 2 OR id < 3")
    folder.write({"lamina.yaml": "name: shop\nvariables: {floor: 4}\n"})
    assert query(folder.graph()).endswith("WHERE id < 2 OR id < 4")


def test_models_that_ask_for_columns_keep_their_audits(project):
    folder = project(
        shop(
            **{"models/b.sql": "MODEL (name b, kind FULL, audits (positive(column := id)));\nSELECT @STAR(a) FROM a;\n"}
        )
    )
    assert "id <= 0" in query(folder.graph(), "shop.b")


def test_everything_wrong_is_reported_together(project):
    folder = project(
        {
            "models/a.sql": MODEL.format("a", "nothing, positive"),
            "models/b.sql": MODEL.format("b", "not_null(column := id)"),
            "audits/a.sql": POSITIVE,
            "audits/b.sql": POSITIVE,
        }
    )
    assert [(type(each), each.location.file) for each in folder.problems()] == [
        (DuplicateName, "audits/b.sql"),
        (BadAudit, "models/a.sql"),
        (BadAudit, "models/a.sql"),
        (BadAudit, "models/b.sql"),
        (BadAudit, "models/b.sql"),
    ]


def test_a_broken_file_is_not_the_fault_of_those_who_use_it(project):
    folder = project(shop(**{"audits/more/a.sql": "SELECT 1"}))

    found = folder.problem()
    assert isinstance(found, SyntaxProblem)
    assert found.location.file == "audits/more/a.sql"


def test_an_audit_that_needs_a_time_its_model_has_not_is_an_error_with_its_place(project):
    keyed = (
        "MODEL (\n  name b,\n  kind INCREMENTAL_BY_UNIQUE_KEY (unique_key id),\n  audits (recent)\n);\nSELECT {0} AS id"
    )
    recent = "AUDIT (name recent);\nSELECT * FROM @this_model WHERE id < @start_epoch;\n"
    folder = project(
        {
            "models/a.sql": MODEL.format("a", "\n  accepted_range(column := id, max_v := @end_epoch)"),
            "models/b.sql": keyed.format("1"),
            "audits/a.sql": recent,
        }
    )
    assert [(type(each), each.location.file, each.location.line, each.node) for each in folder.problems()] == [
        (BadAudit, "models/a.sql", 2, "shop.a"),
        (BadAudit, "models/b.sql", 4, "shop.b"),
    ]
    folder.write(
        {"models/a.sql": MODEL.format("a", "not_null(columns := id)"), "models/b.sql": keyed.format("@end_epoch")}
    )
    assert len(folder.graph().models) == 2


# --- standalone audits and audits of sources --------------------------------------------------------------------------
STANDALONE = "AUDIT (name balanced, standalone true, owner ann, depends_on (c));\nSELECT * FROM a, shop.v;\n"
SOURCES = """
sources:
  - name: raw.orders
    columns: {id: int}
    audits:
      - not_null(columns := id)
      - {name: positive, column: id, least: 5, blocking: false}
"""


def apart(**files: str) -> dict[str, str]:
    return {
        "models/a.sql": "MODEL (name a, kind FULL);\nSELECT id FROM raw.orders\n",
        "models/b.sql": "MODEL (name b, kind FULL);\nSELECT id FROM shop.w\n",
        "models/c.sql": "MODEL (name c, kind FULL);\nSELECT 1 AS id\n",
        "models/v.sql": "MODEL (name v, kind VIEW);\nSELECT id FROM b\n",
        "models/w.sql": "MODEL (name w, kind VIEW);\nSELECT id FROM raw.orders\n",
        "audits/a.sql": POSITIVE,
        "audits/b.sql": STANDALONE,
        "sources/raw.yml": SOURCES,
        **files,
    }


def test_models_know_the_standalone_audits_that_read_them_through_views_too(project):
    graph = project(apart()).graph()
    known = {name: [call.name for call in found.standalone_audits] for name, found in graph.models.items()}
    assert known == {
        "shop.a": ["balanced"],
        "shop.b": ["balanced"],
        "shop.c": ["balanced"],
        "shop.v": [],
        "shop.w": [],
    }
    call = graph.models["shop.a"].standalone_audits[0]
    assert not call.is_blocking
    assert dict(call.code.references) == {"a": "shop.a", "shop.v": "shop.v"}
    found = graph.models["shop.a"]
    assert model_document.read(model_document.write(found)) == found


def test_models_know_the_audits_of_the_sources_they_read(project):
    folder = project(apart())
    graph = folder.graph()
    assert {name: list(found.source_audits) for name, found in graph.models.items()} == {
        "shop.a": ["raw.orders"],
        "shop.b": ["raw.orders"],
        "shop.c": [],
        "shop.v": [],
        "shop.w": ["raw.orders"],
    }
    calls = graph.models["shop.a"].source_audits["raw.orders"]
    assert [(call.name, call.is_blocking) for call in calls] == [("not_null", True), ("positive", False)]
    assert calls[1].code.query.expanded.endswith("WHERE id <= 5")
    assert (calls[0].location.file, calls[0].location.line) == ("sources/raw.yml", 5)
    before = versions_of(graph)["shop.a"]
    folder.write({"sources/raw.yml": SOURCES.replace("least: 5", "least: 6")})
    after = versions_of(folder.graph())["shop.a"]
    assert (after.version, after.definition_id != before.definition_id) == (before.version, True)


def test_what_is_wrong_with_audits_apart_is_reported_together(project):
    folder = project(
        apart(
            **{
                "audits/b.sql": (
                    "AUDIT (name one, standalone true);\nSELECT * FROM @this_model;\n"
                    "AUDIT (name two, standalone true);\nSELECT * FROM a WHERE ds > @start_ds;\n"
                ),
                "models/d.sql": MODEL.format("d", "one"),
            }
        )
    )
    assert [(type(each), each.location.file) for each in folder.problems()] == [(BadAudit, "models/d.sql")]
    (folder.root / "models/d.sql").unlink()
    assert [each.location.line for each in folder.problems()] == [1, 3]
    folder.write({"audits/b.sql": "AUDIT (name one, standalone true);\nSELECT * FROM raw.orders;\n"})
    assert "reads no model" in folder.problem().message
    folder.write({"audits/b.sql": STANDALONE, "sources/raw.yml": SOURCES.replace("positive", "nothing")})
    found = folder.problem()
    assert (found.message, found.location.file) == (
        "there is no audit `nothing`, which `raw.orders` names",
        "sources/raw.yml",
    )


SOURCE = "- name: raw.t\n  columns: {id: int, name: string}\n"
READS = "MODEL (name {0}, kind {1}, audits ({2}));\nSELECT id, name FROM raw.t\n"


@pytest.mark.parametrize(
    ("audit", "place"),
    [
        ("AUDIT (name own);\nSELECT\n  nme\nFROM @this_model;\n", ("audits/own.sql", 3, 3)),
        (
            "AUDIT (name own);\nSELECT * FROM @this_model AS a JOIN raw.t AS t\n  ON t.ix = a.id;\n",
            ("audits/own.sql", 3, 6),
        ),
        ("AUDIT (name own, standalone true);\nSELECT nme FROM a;\n", ("audits/own.sql", 2, 8)),
        ('AUDIT (name own, dialect postgres);\nSELECT "nme" FROM @this_model;\n', ("audits/own.sql", 2, 8)),
        ("AUDIT (name own, defaults (c = nme));\nSELECT * FROM @this_model WHERE @c > 1;\n", ("audits/own.sql", 2, 33)),
    ],
)
def test_a_column_that_an_audit_cannot_read_is_found_at_load(project, audit, place):
    own = "" if "standalone" in audit else "own"
    files = {"sources/t.yml": SOURCE, "models/a.sql": READS.format("a", "FULL", own), "audits/own.sql": audit}
    folder = project(files)
    for _ in range(2):
        problem = folder.problem()
        assert isinstance(problem, UnknownColumn)
        assert (problem.location.file, problem.location.line, problem.location.column) == place
        assert "audit `own`" in problem.message


def test_a_column_in_what_an_audit_is_called_with_is_told_where_it_is_called(project):
    called = READS.format("a", "FULL", "forall(criteria := (idd > 1)), positive(column := nme)")
    source = SOURCE + "  audits: [not_null(columns := (other))]\n"
    problems = project({"sources/t.yml": source, "models/a.sql": called, "audits/p.sql": POSITIVE}).problems()
    assert [type(each) for each in problems] == [UnknownColumn] * 3
    assert [(each.location.file, each.location.line) for each in problems] == [
        ("models/a.sql", 1),
        ("models/a.sql", 1),
        ("sources/t.yml", 3),
    ]
    assert [each.hint for each in problems[:2]] == ["did you mean `id`?", "did you mean `name`?"]


def test_the_rows_an_audit_is_about_are_called_as_they_are_written(project):
    audit = "AUDIT (name own);\nSELECT x.id FROM raw.t AS x JOIN @this_model ON y.id = x.id WHERE z.id = 1;\n"
    files = {"sources/t.yml": SOURCE, "models/a.sql": READS.format("a", "FULL", "own"), "audits/own.sql": audit}
    for problem in project(files).problems():
        assert "lamina" not in f"{problem.message} {problem.hint}"
        assert "@this_model" in problem.hint


def test_audits_may_read_what_is_there(project):
    history = "SCD_TYPE_2_BY_COLUMN (unique_key id, columns [name])"
    audits = (
        "AUDIT (name own);\nSELECT this.ID, max(valid_from) OVER (PARTITION BY name) AS latest\n"
        "FROM @this_model AS this LEFT JOIN raw.unknown AS u ON u.any = this.id WHERE valid_to IS NULL AND other;\n"
        "AUDIT (name alone, standalone true);\n"
        "WITH b AS (SELECT name AS n FROM h) SELECT n FROM b, (SELECT 1 AS x) WHERE x = 1;\n"
        "AUDIT (name timed);\nSELECT @IF(@execution_ds > '2024-01-01', nope, nope) FROM @this_model;\n"
    )
    called = READS.format("h", history, "own, timed, forall(criteria := (id > 1 OR valid_to IS NULL))")
    folder = project({"sources/t.yml": SOURCE, "models/h.sql": called, "audits/own.sql": audits})
    assert len(folder.graph().models["shop.h"].audits) == 3
