"""The guide on table formats names the packages that Lamina fetches."""

from __future__ import annotations

from pathlib import Path

import pytest

from lamina.spark.sessions.format_versions import FORMAT_PACKAGES, FormatPackages

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "table-formats.md"


@pytest.mark.parametrize("packages", FORMAT_PACKAGES, ids=lambda packages: packages.spark)
def test_the_guide_names_the_packages_of_every_spark(packages: FormatPackages) -> None:
    cells = [f"`{package}`" if package else "none yet" for package in (packages.delta, packages.iceberg)]
    assert f"| {packages.spark} | {cells[0]} | {cells[1]} |" in GUIDE.read_text(encoding="utf-8")
