"""`init`: a project that loads at once."""

from __future__ import annotations

import pytest

from lamina.errors import EmptyProject, UsageError
from lamina.project.files import FileProject
from lamina.project.scaffold import create_project
from tests.project.conftest import NOW


def test_the_shop_loads_without_warnings(tmp_path):
    written = create_project(tmp_path / "my shop")
    assert "lamina.yaml" in written
    assert ".gitignore" in written
    graph = FileProject(tmp_path / "my shop").graph(NOW)
    assert graph.warnings == ()
    assert graph.sources == {}
    assert {name: model.kind.name for name, model in graph.models.items()} == {
        "shop.raw_customers": "SEED",
        "shop.raw_orders": "SEED",
        "shop.products": "SEED",
        "shop.stg_orders": "VIEW",
        "shop.orders": "INCREMENTAL_BY_TIME_RANGE",
        "shop.daily_revenue": "INCREMENTAL_BY_TIME_RANGE",
        "shop.customers": "FULL",
        "shop.top_customers": "VIEW",
        "shop.order_sizes": "FULL",
    }
    assert graph.models["shop.orders"].start == "2024-01-01"
    assert graph.models["shop.order_sizes"].reads == ("shop.orders",)


@pytest.mark.parametrize("table_format", ["parquet", "delta", "iceberg"])
def test_the_format_is_the_default_of_the_project(tmp_path, table_format):
    create_project(tmp_path / "x", table_format=table_format)
    assert FileProject(tmp_path / "x").config().defaults["table_format"] == table_format


def test_an_empty_project_is_named_after_its_folder(tmp_path):
    create_project(tmp_path / "My 2nd-Project", template="empty")
    project = FileProject(tmp_path / "My 2nd-Project")
    assert project.settings().name == "my_2nd_project"
    with pytest.raises(EmptyProject):
        project.graph(NOW)
    create_project(tmp_path / "2024", template="empty")
    assert FileProject(tmp_path / "2024").settings().name == "project_2024"


def test_nothing_is_overwritten(tmp_path):
    create_project(tmp_path)
    with pytest.raises(UsageError, match="already holds a project"):
        create_project(tmp_path)
    other = tmp_path / "other"
    (other / "models").mkdir(parents=True)
    (other / "models" / "orders.sql").write_text("mine")
    with pytest.raises(UsageError, match=r"models/orders\.sql"):
        create_project(other)
    assert (other / "models" / "orders.sql").read_text() == "mine"
    assert not (other / "lamina.yaml").exists()


def test_a_folder_with_other_files_is_fine(tmp_path):
    (tmp_path / "README.md").write_text("mine")
    create_project(tmp_path, template="empty")
    assert (tmp_path / "README.md").read_text() == "mine"


@pytest.mark.parametrize("arguments", [{"template": "bank"}, {"table_format": "excel"}])
def test_unknown_choices_are_refused(tmp_path, arguments):
    with pytest.raises(UsageError):
        create_project(tmp_path / "x", **arguments)
    assert not (tmp_path / "x").exists()


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "x").write_text("")
    with pytest.raises(UsageError):
        create_project(tmp_path / "x")
    with pytest.raises(UsageError):
        create_project(tmp_path / "x" / "y")
