"""Fixtures of the engine's behaviour suite: one Spark per test run, a table of its own per test.

`LAMINA_TEST_ENGINE` chooses the way to Spark: `classic` (a local session, the default), `connect` (a server on
loopback), or `delta` and `iceberg` (a session that is handed in, with the settings that the format documents).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.spark.engine import SparkEngine
from lamina.spark.sessions.embedded import SparkSettings
from tests.kit.connect import start_server
from tests.spark import handed_in
from tests.spark.driver import Table, next_number

KIND = os.environ.get("LAMINA_TEST_ENGINE", "classic")
CONFIG = {"spark.sql.shuffle.partitions": "1", "spark.sql.adaptive.enabled": "false", "spark.driver.memory": "1g"}


def pytest_configure(config: pytest.Config) -> None:
    # PySpark leaves the socket of every `collect` to the garbage collector.
    config.addinivalue_line("filterwarnings", r"ignore:unclosed <socket\.socket:ResourceWarning")


@pytest.fixture(scope="session")
def spark_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # Spaces and percent signs, because users have them.
    return tmp_path_factory.mktemp("a home %41") / ".lamina"


@pytest.fixture(scope="session")
def kind() -> str:
    """The way to Spark."""
    return KIND


@pytest.fixture(scope="session")
def connect_server(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Connect server in a zone far from UTC."""
    return start_server(tmp_path_factory.mktemp("connect server"), {})


@pytest.fixture(scope="session")
def settings(spark_home: Path, request: pytest.FixtureRequest) -> SparkSettings:
    if KIND == "connect":
        return SparkSettings(home=spark_home, remote=request.getfixturevalue("connect_server"))
    return SparkSettings(home=spark_home, master="local[2]", config=CONFIG)


@pytest.fixture(scope="session")
def reached() -> list[str]:
    """The kill points that were passed."""
    return []


@pytest.fixture(scope="session")
def engine(
    settings: SparkSettings, reached: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkEngine]:
    session = handed_in.session(tmp_path_factory.mktemp(KIND), KIND) if KIND in handed_in.SETTINGS else None
    made = SparkEngine(settings, lambda _event: None, reached.append, session=session)
    made.prepare("test")
    yield made
    made.close()


@pytest.fixture
def table(engine: SparkEngine) -> Table:
    """A table that no other test uses, in a schema that all of them share: making one costs a second."""
    return Table(engine=engine, schema="suite", name=f"t{next_number()}")
