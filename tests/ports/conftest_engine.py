"""Fixtures of the engine's behaviour suite: one Spark per test run, a table of its own per test.

`LAMINA_TEST_ENGINE` chooses the way to Spark: `classic` (a local session, the default) or `connect` (a server on
loopback).
"""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from lamina.spark.engine import SparkEngine
from lamina.spark.session import SparkSettings
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
def connect_server(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Connect server in a zone far from UTC."""
    folder = tmp_path_factory.mktemp("connect server")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder / 'metastore'};create=true",
        "spark.sql.session.timeZone": "America/New_York",
    }
    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", "local[2]"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    for key, value in config.items():
        command += ["--conf", f"{key}={value}"]
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(
            [*command, "spark-internal"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder
        )
    # Registered before any client: PySpark's clients call their server once more at exit and would wait for it long.
    atexit.register(_end, server)
    _wait_for(port, server, folder / "server.log")
    return f"sc://127.0.0.1:{port}"


def _end(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    server.wait(30)


def _wait_for(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        if server.poll() is not None:
            break
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise RuntimeError(f"the Connect server did not start:\n{log.read_text(errors='replace')[-4000:]}")


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
def engine(settings: SparkSettings, reached: list[str]) -> Iterator[SparkEngine]:
    made = SparkEngine(settings, lambda _event: None, reached.append)
    made.prepare("test")
    yield made
    made.close()


@pytest.fixture
def table(engine: SparkEngine) -> Table:
    """A table that no other test uses, in a schema that all of them share: making one costs a second."""
    return Table(engine=engine, schema="suite", name=f"t{next_number()}")
