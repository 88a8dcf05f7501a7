"""A standalone cluster: Spark's own master and worker, started from the PySpark package on this machine."""

from __future__ import annotations

import os
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
def daemon(log: Path, *words: str, hidden: Path | None = None) -> Iterator[None]:
    """A process of the cluster, ended with the test; it and its children have an empty disk at `hidden`."""
    variables = {"SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*(apart(hidden) if hidden else ()), str(SPARK_HOME / "bin" / "spark-class"), *words],
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


def apart(hidden: Path) -> list[str]:
    """The beginning of a command that has a disk of its own at a folder: a mount that nobody else sees."""
    mount = 'mount -t tmpfs none "$0" && exec "$@"'
    return ["unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--mount", "sh", "-c", mount, str(hidden)]


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
    """The address of a cluster with one core, on the disks of this machine."""
    with cluster(tmp_path_factory.mktemp("cluster")) as address:
        yield address


@contextmanager
def cluster(place: Path, hidden: Path | None = None) -> Iterator[str]:
    """A cluster with one core, whose worker has another disk at `hidden`; answers its address."""
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    listen = ("--host", "127.0.0.1", "--webui-port", "0")
    deploy = "org.apache.spark.deploy"
    with daemon(place / "master.log", f"{deploy}.master.Master", *listen, "--port", str(port)):
        wait_for(place / "master.log", "I have been elected leader")
        room = ("--cores", "1", "--memory", "1g", "--work-dir", str(place / "work"))
        with daemon(place / "worker.log", f"{deploy}.worker.Worker", *listen, *room, address, hidden=hidden):
            wait_for(place / "worker.log", "Successfully registered with master")
            yield address


def test_a_project_is_built_and_run_on_a_standalone_cluster(project: Project, master: str):
    project.write(
        lamina_yaml="name: shop\ndefaults: {start: 2024-01-01}\n"
        f"spark: {{master: '{master}', shared_warehouse: true}}\n",
        seeds__cities_csv="id,name\n1,Rome\n2,Oslo\n",
        models__days_sql="MODEL (name shop.days, kind INCREMENTAL_BY_TIME_RANGE (time_column day));\n"
        "SELECT CAST(@start_ds AS DATE) AS day, count(*) AS cities FROM shop.cities\n",
    )

    assert told("-c", SCRIPT, str(project.folder), env=surroundings(), timeout=PATIENCE) == {
        "build": "succeeded",
        "run": "succeeded",
        "rows": [["2024-01-01", 2], ["2024-01-02", 2]],
    }


LOST = """
import json, sys
from lamina import Project

seen = {}
with Project.open(sys.argv[1]) as project:
    report = project.build(execution_time="2024-01-03").to_dict()
    again = project.build(execution_time="2024-01-03").to_dict()
for run in (report, again):
    for node in run["nodes"]:
        error = node["error"] or {}
        seen.setdefault(node["name"], []).append([node["status"], error.get("code"), error.get("message")])
print("SEEN" + json.dumps(seen))
"""
MODEL = "MODEL (name shop.{0}, kind INCREMENTAL_BY_TIME_RANGE (time_column day), table_format {0});\n"
QUERY = (
    "SELECT CAST('2024-01-01' AS DATE) AS day, id FROM range(0, 1000, 1, 2)\n"
    "WHERE CAST('2024-01-01' AS DATE) BETWEEN @start_date AND @end_date\n"
)


def hidden_project(project: Project, address: str, settings: str = "") -> Path:
    """A project with one model for each table format, on a cluster whose worker does not see its folder."""
    project.write(
        lamina_yaml=f"name: shop\ndefaults: {{start: 2024-01-01}}\nspark: {{master: '{address}'{settings}}}\n",
        **{f"models__{name}_sql": MODEL.format(name) + QUERY for name in ("parquet", "delta", "iceberg")},
    )
    return project.folder


def test_rows_that_executors_wrote_to_disks_of_their_own_are_missed_before_anything_is_shown(
    project: Project, tmp_path_factory: pytest.TempPathFactory
):
    home = project.folder / ".lamina"
    home.mkdir()
    with cluster(tmp_path_factory.mktemp("cluster"), hidden=home) as address:
        hidden_project(project, address, ", shared_warehouse: true")
        seen = told("-c", LOST, str(project.folder), env=surroundings(), timeout=PATIENCE)

    statuses = {name: [status for status, _, _ in runs] for name, runs in seen.items()}
    assert statuses == {f"shop.{name}": ["failed", "failed"] for name in ("parquet", "delta", "iceberg")}
    codes = {name: {code for _, code, _ in runs} for name, runs in seen.items()}
    assert codes["shop.parquet"] == {"LAM-SPARK-022"}
    # Tables with lists of their own may miss these first, which executors read, too.
    others = codes["shop.delta"] | codes["shop.iceberg"]
    assert others <= {"LAM-SPARK-006", "LAM-SPARK-008", "LAM-SPARK-022"}, seen
    assert "gave 1,000 rows, and 0 of them are in the warehouse" in seen["shop.parquet"][0][2]


def test_a_folder_of_the_drivers_machine_is_refused_on_a_cluster(project: Project, master: str):
    hidden_project(project, master)
    answer = project.lamina("build", "--json")

    assert answer.returncode == 1
    assert "LAM-SPARK-021" in answer.stdout
    assert "shared_warehouse: true" in answer.stdout
