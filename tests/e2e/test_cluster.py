"""A standalone cluster: Spark's own master and worker, started from the PySpark package on this machine."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

from tests.e2e.conftest import PATIENCE, Project, surroundings
from tests.kit.told import told

# One process, so that Spark is started once.
SCRIPT = """
import json, sys
from lamina import Project

seen = {}
with Project.open(sys.argv[1]) as project:
    seen["build"] = project.build(execution_time="2024-01-02").status
    seen["run"] = project.run(execution_time="2024-01-03").status
    frame = project.query("SELECT CAST(day AS STRING), cities FROM shop.days ORDER BY day")
    seen["rows"] = [list(row) for row in frame.collect()]
print("SEEN" + json.dumps(seen))
"""
SPARK_HOME = Path(pyspark.__file__).parent
START_SECONDS = 120


@contextmanager
def daemon(log: Path, *words: str) -> Iterator[None]:
    """A process of the cluster, ended with the test."""
    variables = {"SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(SPARK_HOME / "bin" / "spark-class"), *words],
            env=surroundings(**variables),
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for(log: Path, words: str) -> None:
    end = time.monotonic() + START_SECONDS
    while words not in log.read_text(errors="replace"):
        assert time.monotonic() < end, log.read_text(errors="replace")[-2000:]
        time.sleep(0.2)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a cluster with one core."""
    place = tmp_path_factory.mktemp("cluster")
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    listen = ("--host", "127.0.0.1", "--webui-port", "0")
    deploy = "org.apache.spark.deploy"
    with daemon(place / "master.log", f"{deploy}.master.Master", *listen, "--port", str(port)):
        wait_for(place / "master.log", "I have been elected leader")
        room = ("--cores", "1", "--memory", "1g", "--work-dir", str(place / "work"))
        with daemon(place / "worker.log", f"{deploy}.worker.Worker", *listen, *room, address):
            wait_for(place / "worker.log", "Successfully registered with master")
            yield address


def test_a_project_is_built_and_run_on_a_standalone_cluster(project: Project, master: str):
    project.write(
        lamina_yaml=f"name: shop\ndefaults: {{start: 2024-01-01}}\nspark: {{master: '{master}'}}\n",
        seeds__cities_csv="id,name\n1,Rome\n2,Oslo\n",
        models__days_sql="MODEL (name shop.days, kind INCREMENTAL_BY_TIME_RANGE (time_column day));\n"
        "SELECT CAST(@start_ds AS DATE) AS day, count(*) AS cities FROM shop.cities\n",
    )

    assert told("-c", SCRIPT, str(project.folder), env=surroundings(), timeout=PATIENCE) == {
        "build": "succeeded",
        "run": "succeeded",
        "rows": [["2024-01-01", 2], ["2024-01-02", 2]],
    }
