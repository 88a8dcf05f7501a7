"""Columns written into files that declare external tables: the rest of a file is left as it was."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lamina.errors import ConfigError
from lamina.graph.model import Column
from lamina.graph.names import NodeName
from lamina.project.source_files import file_for, with_columns, write_source_text
from lamina.project.sources import read_sources

ORDERS = NodeName("raw.orders")
COLUMNS = (Column(name="id", type="bigint"), Column(name="price", type="decimal(10,2)", comment="in euro: net"))
BLOCK = """\
columns:
  id: bigint
  price:
    type: decimal(10,2)
    description: "in euro: net"
"""
FLOW = '{id: bigint, price: {type: "decimal(10,2)", description: "in euro: net"}}'


def block(indent: int) -> str:
    return "".join(" " * indent + line for line in BLOCK.splitlines(keepends=True)).rstrip("\n")


def changed(text: str, **tables: tuple[Column, ...]) -> str:
    wanted = {NodeName(name.replace("__", ".")): found for name, found in tables.items()} or {ORDERS: COLUMNS}
    return with_columns(text, "sources/raw.yml", wanted)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("", f"- name: raw.orders\n{block(2)}\n", id="an empty file"),
        pytest.param("# ours\n", f"# ours\n- name: raw.orders\n{block(2)}\n", id="a file of comments"),
        pytest.param("- raw.other\n", f"- raw.other\n- name: raw.orders\n{block(2)}\n", id="behind a list"),
        pytest.param("sources:\n", f"sources:\n- name: raw.orders\n{block(2)}\n", id="an empty list under its key"),
        pytest.param(
            "sources:  # all\n  - raw.other  # that\n\nversion: 1\n".replace("version: 1\n", ""),
            f"sources:  # all\n  - raw.other  # that\n  - name: raw.orders\n{block(4)}\n\n",
            id="behind an indented list",
        ),
        pytest.param("raw.other:\n", f"raw.other:\nraw.orders:\n{block(2)}\n", id="behind a mapping"),
        pytest.param("[raw.other]\n", f"[raw.other, {{name: raw.orders, columns: {FLOW}}}]\n", id="behind a flow list"),
        pytest.param("- raw.orders  # that\n- b\n", f"- name: raw.orders\n{block(2)}  # that\n- b\n", id="a name"),
        pytest.param("- 'Raw.Orders'\n", f"- name: 'Raw.Orders'\n{block(2)}\n", id="a quoted name"),
        pytest.param(
            "- name: raw.orders # that\n  description: |\n    long\n    text\n\n# next\n- name: b\n",
            f"- name: raw.orders # that\n  description: |\n    long\n    text\n{block(2)}\n\n# next\n- name: b\n",
            id="an entry with long text at its end",
        ),
        pytest.param(
            "-   description: x\n    name: raw.orders\n\n\n# the end\n",
            f"-   description: x\n    name: raw.orders\n{block(4)}\n\n\n# the end\n",
            id="an entry with a wide indent",
        ),
        pytest.param(
            "- name: raw.orders\n  columns:\n    id: int # old\n    gone: string\n  owner: me # me\n",
            f"- name: raw.orders\n{block(2)}\n  owner: me # me\n",
            id="columns in between",
        ),
        pytest.param(
            "- name: raw.orders\n  columns: # none yet\n  owner: me\n",
            f"- name: raw.orders\n  columns: # none yet\n{block(2).partition(chr(10))[2]}\n  owner: me\n",
            id="no columns under their key",
        ),
        pytest.param(
            "- name: raw.orders\n  columns: [id, price]\n", f"- name: raw.orders\n{block(2)}\n", id="columns as a list"
        ),
        pytest.param(
            "- {name: raw.orders, owner: me}\n", f"- {{name: raw.orders, owner: me, columns: {FLOW}}}\n", id="flow"
        ),
        pytest.param(
            "- {name: raw.orders, columns: {id: int}, owner: me}\n",
            f"- {{name: raw.orders, columns: {FLOW}, owner: me}}\n",
            id="columns in flow",
        ),
        pytest.param("{raw.orders: }\n", f"{{raw.orders: {{columns: {FLOW}}} }}\n", id="an empty entry in flow"),
        pytest.param("raw.orders: # that\nb: {}\n", f"raw.orders: # that\n{block(2)}\nb: {{}}\n", id="an empty entry"),
        pytest.param("raw.orders: ~\n", f"raw.orders: \n{block(2)}\n", id="an entry of nothing"),
        pytest.param("raw.orders: {}\n", f"raw.orders: {{columns: {FLOW}}}\n", id="an empty mapping"),
        pytest.param(
            "- schema: raw\n  tables:\n    - other\n    - orders\n- schema: web\n  tables: [a]\n",
            f"- schema: raw\n  tables:\n    - other\n    - name: orders\n{block(6)}\n- schema: web\n  tables: [a]\n",
            id="tables of a schema",
        ),
        pytest.param(
            "raw: {tables: [other, orders]}\n",
            f"raw: {{tables: [other, {{name: orders, columns: {FLOW}}}]}}\n",
            id="tables of a schema in flow",
        ),
        pytest.param("- name: raw.orders", f"- name: raw.orders\n{block(2)}", id="no line end"),
    ],
)
def test_only_the_columns_of_the_entry_change(before: str, after: str) -> None:
    assert changed(before) == after


def test_line_ends_stay() -> None:
    assert changed("- raw.orders\r\n- b\r\n") == f"- name: raw.orders\n{block(2)}\n- b\n".replace("\n", "\r\n")


def test_several_tables_are_written_at_once() -> None:
    one = (Column(name="n", type="int"),)
    assert changed("- raw.orders\n", raw__orders=one, raw__b=one, web__c=one) == dedent(
        """\
        - name: raw.orders
          columns:
            n: int
        - name: raw.b
          columns:
            n: int
        - name: web.c
          columns:
            n: int
        """
    )


def test_an_entry_made_of_anchors_is_left_alone() -> None:
    with pytest.raises(ConfigError, match="cannot be edited"):
        changed("raw.other: &other {columns: {id: int}}\nraw.orders: *other\n")
    merged = "raw.other: &other {owner: me}\nraw.orders:\n  <<: *other\n"
    assert changed(merged) == f"{merged}{block(2)}\n"


def yaml_survives(text: str) -> bool:
    """Whether YAML can hold the text at all."""
    try:
        return yaml.safe_load(yaml.safe_dump(text)) == text and text.strip() == text
    except yaml.YAMLError:
        return False


names = st.text(min_size=1, max_size=8).filter(yaml_survives)
kinds = st.sampled_from(["int", "decimal(10,2)", "struct<a:int,`b c`:string>", "map<string,array<int>>", None])


@given(
    found=st.lists(
        st.builds(Column, name=names, type=kinds, comment=st.none() | names), min_size=1, max_size=4, unique_by=str
    ),
    text=st.sampled_from(["", "- raw.orders\n", "[raw.orders]\n", "raw.orders:\n", "raw: {tables: [orders]}\n"]),
)
def test_whatever_columns_are_called_they_are_read_again_as_they_are(found: list[Column], text: str) -> None:
    unique = tuple({column.name: column for column in found}.values())
    (source,) = read_sources(with_columns(text, "f.yml", {ORDERS: unique}), "f.yml")
    assert source.columns == unique


def test_undeclared_tables_go_where_the_project_keeps_its_own(tmp_path: Path) -> None:
    assert file_for(tmp_path, ORDERS) == "sources/raw.yml"
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "raw.yaml").touch()
    assert file_for(tmp_path, ORDERS) == "sources/raw.yaml"
    assert file_for(tmp_path, NodeName("lake.raw.orders")) == "sources/lake_raw.yml"
    assert file_for(tmp_path, NodeName("orders")) == "sources/external.yml"
    (tmp_path / "external_models.yaml").touch()
    assert file_for(tmp_path, ORDERS) == "external_models.yaml"


def test_a_file_is_replaced_in_one_step_and_folders_are_made(tmp_path: Path) -> None:
    write_source_text(tmp_path, "sources/raw.yml", "a\r\n")
    assert (tmp_path / "sources" / "raw.yml").read_bytes() == b"a\r\n"
    assert [path.name for path in (tmp_path / "sources").iterdir()] == ["raw.yml"]
