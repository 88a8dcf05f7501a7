"""One Connect server with every table format, for all clients of these tests."""

from __future__ import annotations

import pyspark
import pytest

from lamina.spark.format_settings import format_settings
from lamina.spark.session import SparkSettings
from tests.kit.connect import start_server


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
    return start_server(folder, settings)
