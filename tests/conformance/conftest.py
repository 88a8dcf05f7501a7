"""One Connect server with every table format, for all clients of these tests."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pyspark
import pytest

from lamina.spark.sessions.embedded import SparkSettings
from lamina.spark.sessions.format_settings import ICEBERG_CATALOG, format_settings
from tests.conformance.sessions import SeenIn
from tests.kit.connect import start_server
from tests.kit.told import told
from tests.ports.conftest import postgresql  # noqa: F401  # a fixture of these tests as well


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("lake")
    settings = format_settings(
        frozenset({"delta", "iceberg"}),
        pyspark.__version__,
        folder,
        {"spark.master": "local[2]"},
        jar_cache=SparkSettings(home=folder).jar_cache,
        has_own_catalog=True,
    )
    # Nobody has told this server how to remember tables.
    del settings[f"spark.sql.catalog.{ICEBERG_CATALOG}.cache-enabled"]
    return start_server(folder, settings | _further_catalogs(folder))


@pytest.fixture(scope="module")
def seen(request: pytest.FixtureRequest, server: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the program of a test module tells: `test_audited.py` asks about `audited.py`."""
    name = request.path.stem.removeprefix("test_")
    return told("-m", f"tests.conformance.{name}", str(tmp_path_factory.mktemp(name) / "project"), server)


@pytest.fixture(scope="module")
def seen_in(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> SeenIn:
    """What the program of a test module tells of each sort of session."""
    name = request.path.stem.removeprefix("test_")

    @cache
    def seen_in(sort: str) -> Any:
        remote = request.getfixturevalue("server") if sort == "over Connect" else ""
        return told("-m", f"tests.conformance.{name}", str(tmp_path_factory.mktemp(name) / "project"), sort, remote)

    return seen_in


def _further_catalogs(folder: Path) -> dict[str, str]:
    """A catalog with views and one without, for models that name theirs."""
    iceberg = "org.apache.iceberg.spark.SparkCatalog"
    return {
        "spark.sql.catalog.store": iceberg,
        "spark.sql.catalog.store.type": "jdbc",
        "spark.sql.catalog.store.uri": f"jdbc:sqlite:{folder / 'store.db'}",
        "spark.sql.catalog.store.jdbc.schema-version": "V1",
        "spark.sql.catalog.store.warehouse": str(folder / "store"),
        "spark.sql.catalog.files": iceberg,
        "spark.sql.catalog.files.type": "hadoop",
        "spark.sql.catalog.files.warehouse": str(folder / "files"),
    }
