"""Starting Spark, sessions that are handed in, and what a user sees of either."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lamina.errors import JavaMissing, SparkStartFailed, WarehouseUnwritable
from lamina.spark.embedded import spark_config
from lamina.spark.engine import SparkEngine
from lamina.spark.session import SparkSettings
from tests.spark.driver import Table

pytest_plugins = ["tests.ports.conftest_engine"]

LIFE = Path(__file__).with_name("one_life.py")


def engine_for(settings: SparkSettings) -> SparkEngine:
    return SparkEngine(settings, lambda _event: None, lambda _name: None)


# --- settings ---------------------------------------------------------------------------------------------------------
def test_the_users_settings_win_but_for_the_time_zone(tmp_path: Path) -> None:
    config = spark_config(
        SparkSettings(
            home=tmp_path / "a b",
            config={
                "spark.sql.shuffle.partitions": "7",
                "spark.sql.session.timeZone": "Asia/Tokyo",
                "spark.driver.extraJavaOptions": "-Dmine=1",
                "spark.jars.packages": "a:b:1",
            },
        )
    )
    assert config["spark.master"] == "local[*]"
    assert config["spark.sql.shuffle.partitions"] == "7"
    assert config["spark.sql.session.timeZone"] == "UTC"
    assert config["spark.driver.extraJavaOptions"].endswith(" -Dmine=1")
    assert f'"-Dderby.system.home={tmp_path}/a b"' in config["spark.driver.extraJavaOptions"]
    assert config["spark.jars.packages"] == "a:b:1"


def test_another_metastore_is_not_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    monkeypatch.delenv("SPARK_HOME", raising=False)
    assert SparkSettings(home=tmp_path).has_embedded_catalog
    assert SparkSettings(home=tmp_path, master="spark://host:7077").has_embedded_catalog
    assert not SparkSettings(home=tmp_path, remote="sc://host").has_embedded_catalog
    key = "spark.hadoop.hive.metastore.uris"
    assert not SparkSettings(home=tmp_path, config={key: "thrift://host"}).has_embedded_catalog
    (tmp_path / "hive-site.xml").write_text("<configuration/>")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert not SparkSettings(home=tmp_path).has_embedded_catalog


# --- what stops before Spark starts -----------------------------------------------------------------------------------
def test_a_second_spark_in_one_process_is_refused(engine: SparkEngine, tmp_path: Path) -> None:
    engine.query("SELECT 1", limit=1)
    with pytest.raises(SparkStartFailed, match="already runs in this process"):
        engine_for(SparkSettings(home=tmp_path)).prepare("test")


def test_engines_of_one_project_share_spark(engine: SparkEngine, settings: SparkSettings) -> None:
    second = engine_for(settings)
    assert second.prepare("test")
    second.close()
    second.close()
    assert engine.query("SELECT 1", limit=1).rows == ((1,),)


def run(home: Path, *do: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(LIFE), str(home), *do],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        cwd=home.parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
    )


def test_a_wrong_java_stops_before_anything_is_made(tmp_path: Path) -> None:
    answer = json.loads(run(tmp_path / ".lamina", "query", JAVA_HOME=str(tmp_path)).stdout.splitlines()[-1])
    assert answer["error"] == JavaMissing.code
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_stops_it(tmp_path: Path) -> None:
    home = tmp_path / ".lamina"
    home.write_text("a file where a folder should be")
    answer = json.loads(run(home, "query").stdout.splitlines()[-1])
    assert answer["error"] == WarehouseUnwritable.code


# --- a whole life -----------------------------------------------------------------------------------------------------
@pytest.mark.timeout(600)
def test_spark_lives_quietly_in_the_project_and_survives_its_process(tmp_path: Path) -> None:
    """Killed with its rows published, then used again in another zone, while a second process waits for it."""
    home = tmp_path / "my project" / ".lamina"
    home.parent.mkdir()
    first = run(home, "write", "kill", TZ="Pacific/Auckland")
    assert first.returncode == -signal.SIGKILL
    assert first.stderr == ""
    second = subprocess.Popen(
        [sys.executable, str(LIFE), str(home), "query", "sleep", "interrupt", "query"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=home.parent,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TZ": "America/New_York"},
    )
    assert second.stdout is not None
    while "SparkStarted" not in (line := second.stdout.readline()):
        assert line
    third = run(home, "query")
    output, errors = second.communicate(timeout=120)
    assert errors == ""
    rows = [["2024-03-10T02:30:00Z", 1], ["2024-11-03T06:30:00Z", 2]]
    assert [json.loads(line)["rows"] for line in output.splitlines() if "rows" in line] == [rows, rows]
    assert "Waiting" in third.stdout
    assert f"process {second.pid}" in third.stdout
    assert json.loads(third.stdout.splitlines()[-1])["rows"] == rows
    assert third.stderr == ""
    assert sorted(path.name for path in home.parent.iterdir()) == [".lamina"]
    assert "spark.log" in {path.name for path in (home / "logs").iterdir()}


# --- handed in --------------------------------------------------------------------------------------------------------
def test_a_session_handed_in_stays_as_it_is(engine: SparkEngine, tmp_path: Path) -> None:
    mine = engine.frame("SELECT 1").sparkSession.newSession()
    mine.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    mine.conf.set("spark.sql.shuffle.partitions", "5")
    mine.sql("SELECT 1 AS id").createOrReplaceTempView("my_view")
    before = dict(mine.conf.getAll)
    handed = SparkEngine(SparkSettings(home=tmp_path), lambda _event: None, lambda _name: None, session=mine)
    assert handed.prepare("test") is False
    table = Table(engine=handed, schema="handed_in")
    table.write("SELECT TIMESTAMP'2024-01-01 00:00:00' AS at")
    assert table.rows() == [("2024-01-01T00:00:00Z",)]
    assert handed.frame("SELECT * FROM my_view").collect()[0].id == 1
    handed.cancel()
    handed.close()
    assert dict(mine.conf.getAll) == before
    assert mine.sql("SELECT * FROM my_view").count() == 1
    assert list(tmp_path.iterdir()) == []


def test_no_server_behind_an_address_is_told(tmp_path: Path) -> None:
    answer = run(tmp_path / ".lamina", "query", LAMINA_TEST_REMOTE="sc://127.0.0.1:1/;token=secret").stdout
    found = json.loads(answer.splitlines()[-1])
    assert found["error"] == SparkStartFailed.code
    assert "secret" not in answer
