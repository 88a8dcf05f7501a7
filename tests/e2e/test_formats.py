"""A new project on Delta Lake and on Apache Iceberg: it builds at once, and building again does nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import Project, lamina


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_a_new_project_builds_on_the_format(table_format: str, tmp_path: Path) -> None:
    made = lamina("init", "shop", "--format", table_format, cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    project = Project(tmp_path / "shop")
    built = project.document("build", "--execution-time", "2024-01-08")
    assert built["status"] == "succeeded"
    assert project.document("build", "--execution-time", "2024-01-08")["status"] == "nothing_to_do"
    assert project.document("run", "--execution-time", "2024-01-09")["status"] == "succeeded"
    table = next(node["physical_table"] for node in built["nodes"] if node["name"] == "shop.orders")
    rows = project.document("query", f"SELECT count(*) = count(DISTINCT order_id), count(*) > 0 FROM {table}")["rows"]
    assert rows == [[True, True]]
    logs = list((project.folder / ".lamina").rglob("_delta_log" if table_format == "delta" else "metadata"))
    assert logs, "no table of this format was written"
