"""Columns of external tables written into the files of a project, and what the project knows afterwards."""

from __future__ import annotations

from lamina.errors import LaminaError
from lamina.graph.model import Column
from lamina.graph.names import NodeName
from lamina.identity.fingerprint import versions_of
from tests.project.conftest import NOW

ORDERS, WEB = NodeName("raw.orders"), NodeName("web.clicks")
COLUMNS = (Column(name="id", type="bigint"), Column(name="name", type="string", comment="as written"))
FILES = {
    "models/a.sql": "MODEL (name shop.a); SELECT * FROM raw.orders",
    "models/b.sql": "MODEL (name shop.b); SELECT a.*, c.id FROM shop.a AS a JOIN web.clicks AS c ON a.id = c.id",
}


def test_tables_that_models_read_and_those_that_are_declared_are_told_apart(project):
    folder = project({**FILES, "sources/x.yml": "- raw.orders\n- raw.unread\n", "lamina.yaml": "name: shop\n"})
    found = folder.open().sources(NOW)
    assert [(source.name, source.is_declared) for source in found.read] == [("raw.orders", True), ("web.clicks", False)]
    assert [source.name for source in found.declared] == ["raw.orders", "raw.unread"]


def test_a_project_that_demands_declarations_can_still_be_asked_what_it_reads(project):
    folder = project({**FILES, "lamina.yaml": "name: shop\nstrict_sources: true\n"})
    assert len(folder.problems()) == 2
    opened = folder.open()
    assert [source.name for source in opened.sources(NOW).read] == ["raw.orders", "web.clicks"]
    opened.write_columns({ORDERS: COLUMNS, WEB: COLUMNS}, is_dry=False)
    assert sorted(opened.graph(NOW).sources) == ["raw.orders", "web.clicks"]


def test_columns_are_written_where_a_table_is_declared_and_others_get_a_file(project):
    folder = project({**FILES, "sources/deep/x.yaml": "# ours\n- raw.orders # those\n"})
    answers = folder.open().write_columns({ORDERS: COLUMNS, WEB: COLUMNS}, is_dry=True)
    assert answers == {ORDERS: "sources/deep/x.yaml", WEB: "sources/web.yml"}
    assert not (folder.root / "sources/web.yml").exists()

    assert folder.open().write_columns({ORDERS: COLUMNS, WEB: COLUMNS}, is_dry=False) == answers
    text = (folder.root / "sources/deep/x.yaml").read_text()
    assert text.startswith("# ours\n- name: raw.orders\n  columns:\n    id: bigint\n")
    assert text.endswith('      description: "as written" # those\n')
    graph = folder.graph()
    assert graph.sources[ORDERS].columns == COLUMNS
    assert graph.sources[WEB].columns == COLUMNS
    assert graph.warnings == ()


def test_stars_over_the_table_are_known_afterwards_and_nothing_is_built_again(project):
    folder = project(FILES)
    before = versions_of(folder.graph())
    assert folder.graph().models[NodeName("shop.a")].columns is None
    folder.open().write_columns({ORDERS: COLUMNS, WEB: COLUMNS}, is_dry=False)
    graph = folder.graph()
    assert [column.name for column in graph.models[NodeName("shop.a")].columns or ()] == ["id", "name"]
    assert [column.name for column in graph.models[NodeName("shop.b")].columns or ()] == ["id", "name", "id"]
    assert {name: version.version for name, version in versions_of(graph).items()} == {
        name: version.version for name, version in before.items()
    }


def test_a_file_that_cannot_be_edited_fails_its_table_alone(project):
    text = "raw.other: &other {columns: {id: int}}\nraw.orders: *other\n"
    folder = project({**FILES, "sources/x.yml": text})
    answers = folder.open().write_columns({ORDERS: COLUMNS, WEB: COLUMNS}, is_dry=False)
    assert isinstance(answers[ORDERS], LaminaError)
    assert answers[WEB] == "sources/web.yml"
    assert (folder.root / "sources/x.yml").read_text() == text
