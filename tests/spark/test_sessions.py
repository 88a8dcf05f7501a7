"""Starting Spark, sessions that are handed in, and what a user sees of either."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lamina.app.ports.machine import Standing
from lamina.errors import EngineError, JavaMissing, SparkStartFailed, WarehouseUnwritable
from lamina.spark.engine import SparkEngine
from lamina.spark.sessions.embedded import SparkSettings, spark_config
from lamina.spark.sessions.own_catalog import is_own, settings_in_force
from lamina.spark.sessions.substitution import SUBSTITUTION
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
    for variable in ("SPARK_CONF_DIR", "SPARK_HOME", "HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(variable, raising=False)
    assert SparkSettings(home=tmp_path).has_embedded_catalog
    assert SparkSettings(home=tmp_path, master="spark://host:7077").has_embedded_catalog
    assert SparkSettings(home=tmp_path, config={"spark.sql.catalogImplementation": "hive"}).has_embedded_catalog
    assert not SparkSettings(home=tmp_path, remote="sc://host").has_embedded_catalog
    for key, value in {
        "hive.metastore.uris": "thrift://host",
        "spark.hive.metastore.uris": "thrift://host",
        "spark.hadoop.hive.metastore.uris": "thrift://host",
        "spark.hadoop.hive.metastore.client.factory.class": "com.amazonaws.glue.Factory",
        "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:postgresql://host/hive",
        "spark.sql.catalogImplementation": "in-memory",
    }.items():
        assert not SparkSettings(home=tmp_path, config={key: value}).has_embedded_catalog, key
    defaults = tmp_path / "spark-defaults.conf"
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    for line in ("spark.hive.metastore.uris thrift://host", "spark.hadoop.hive.metastore.uris=thrift://host"):
        defaults.write_text(f"# ours\nspark.executor.cores 2\n{line}\n")
        assert not SparkSettings(home=tmp_path).has_embedded_catalog, line
    defaults.write_text("#spark.hive.metastore.uris thrift://host\nspark.hive.metastore.uris\n")
    assert SparkSettings(home=tmp_path).has_embedded_catalog
    for variable in ("SPARK_CONF_DIR", "HADOOP_CONF_DIR"):
        folder = tmp_path / variable
        folder.mkdir()
        (folder / "hive-site.xml").write_text("<configuration/>")
        with monkeypatch.context() as patch:
            patch.setenv(variable, str(folder))
            assert not SparkSettings(home=tmp_path).has_embedded_catalog, variable


METASTORE, ICEBERG = "jdbc:derby:;databaseName=ours", "jdbc:sqlite:ours"
OURS = {"spark.sql.catalogImplementation": "hive", "javax.jdo.option.ConnectionURL": METASTORE}
OUR_ICEBERG = {
    "spark.sql.catalog.lamina_iceberg": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lamina_iceberg.type": "jdbc",
    "spark.sql.catalog.lamina_iceberg.uri": ICEBERG,
}
DELTA = {"spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog"}
ICEBERG_SESSION = {"spark.sql.catalog.spark_catalog": "org.apache.iceberg.spark.SparkSessionCatalog"}


@pytest.mark.parametrize(
    ("in_force", "expected"),
    [
        ({}, True),
        (DELTA, True),
        (OUR_ICEBERG, True),
        (DELTA | OUR_ICEBERG, True),
        (ICEBERG_SESSION, True),
        (ICEBERG_SESSION | {"spark.sql.catalog.spark_catalog.type": "hive"}, True),
        ({"spark.hive.metastore.uris": " "}, True),
        (ICEBERG_SESSION | {"spark.sql.catalog.spark_catalog.type": "rest"}, False),
        (ICEBERG_SESSION | {"spark.sql.catalog.spark_catalog.uri": "thrift://host"}, False),
        (ICEBERG_SESSION | {"spark.sql.catalog.spark_catalog.catalog-impl": "org.apache.GlueCatalog"}, False),
        (OUR_ICEBERG | {"spark.sql.catalog.lamina_iceberg.uri": "jdbc:postgresql://host/iceberg"}, False),
        (OUR_ICEBERG | {"spark.sql.catalog.lamina_iceberg.type": "rest"}, False),
        ({"spark.sql.catalog.spark_catalog": "io.unitycatalog.spark.UCSingleCatalog"}, False),
        ({"spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog"}, False),
        ({"spark.sql.catalog.unity": "io.unitycatalog.spark.UCSingleCatalog"}, False),
        ({"spark.hive.metastore.uris": "thrift://host"}, False),
        ({"spark.hadoop.hive.metastore.uris": "thrift://host"}, False),
        ({"hive.metastore.uris": "thrift://host"}, False),
        ({"hive.metastore.client.factory.class": "com.amazonaws.glue.Factory"}, False),
        ({"spark.hadoop.hive.metastore.client.factory.class": "com.amazonaws.glue.Factory"}, False),
        ({"hive.imetastoreclient.factory.class": "com.amazonaws.glue.Factory"}, False),
        ({"javax.jdo.option.ConnectionURL": "jdbc:postgresql://host/hive"}, False),
        ({"spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:postgresql://host/hive"}, False),
        ({"spark.sql.catalogImplementation": "in-memory"}, False),
    ],
    ids=str,
)
def test_a_catalog_is_ours_only_if_everything_that_spark_was_started_with_is(
    in_force: dict[str, str], expected: bool
) -> None:
    assert is_own(OURS | in_force, METASTORE, ICEBERG) is expected


def test_what_spark_was_started_with_says_that_this_process_is_alone(engine: SparkEngine) -> None:
    standing = engine.prepare("test")
    assert standing.catalog is not None
    assert standing.is_carried is False
    (jvm,) = standing.processes
    assert "java" in Path(f"/proc/{jvm}/cmdline").read_text()
    session = engine.frame("SELECT 1").sparkSession
    hadoop = session._jsparkSession.sharedState().hadoopConf()
    assert settings_in_force(session)["javax.jdo.option.ConnectionURL"].startswith("jdbc:derby:")
    hadoop.set("hive.metastore.uris", "thrift://host")
    try:
        assert settings_in_force(session)["hive.metastore.uris"] == "thrift://host"
    finally:
        hadoop.unset("hive.metastore.uris")


# --- what stops before Spark starts -----------------------------------------------------------------------------------
def test_a_second_spark_in_one_process_is_refused(engine: SparkEngine, tmp_path: Path) -> None:
    engine.query("SELECT 1", limit=1)
    with pytest.raises(SparkStartFailed, match="already runs in this process"):
        engine_for(SparkSettings(home=tmp_path)).prepare("test")


def test_engines_of_one_project_share_spark(engine: SparkEngine, settings: SparkSettings) -> None:
    second = engine_for(settings)
    assert second.prepare("test") == engine.prepare("test")
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
def test_what_is_set_in_a_session_handed_in_holds_for_models_too(engine: SparkEngine, tmp_path: Path) -> None:
    mine = engine.frame("SELECT 1").sparkSession.newSession()
    mine.conf.set("spark.sql.ansi.enabled", "false")
    mine.conf.set("my.own.setting", "here")
    handed = SparkEngine(SparkSettings(home=tmp_path), lambda _event: None, lambda _name: None, session=mine)
    handed.prepare("test")
    table = Table(engine=handed, schema="handed_in_settings", settings={SUBSTITUTION: "true"})
    table.write("SELECT CAST('no number' AS INT) AS id, '${my.own.setting}' AS setting")
    assert table.rows() == [(None, "here")]
    handed.close()


def test_showing_rows_for_the_first_and_the_second_time_logs_no_error(
    engine: SparkEngine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    logger = logging.getLogger("SQLQueryContextLogger")
    mine = engine.frame("SELECT 1").sparkSession.newSession()
    handed = SparkEngine(SparkSettings(home=tmp_path), lambda _event: None, lambda _name: None, session=mine)
    handed.prepare("test")
    logger.addHandler(caplog.handler)
    try:
        table = Table(engine=handed, schema="handed_in_quietly")
        table.write("SELECT 1 AS id")
        table.write("SELECT 2 AS id")
    finally:
        logger.removeHandler(caplog.handler)
    assert table.rows() == [(2,)]
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
    handed.close()


def test_a_session_handed_in_stays_as_it_is(engine: SparkEngine, tmp_path: Path) -> None:
    mine = engine.frame("SELECT 1").sparkSession.newSession()
    mine.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    mine.conf.set("spark.sql.shuffle.partitions", "5")
    mine.sql("SELECT 1 AS id").createOrReplaceTempView("my_view")
    before = dict(mine.conf.getAll)
    handed = SparkEngine(SparkSettings(home=tmp_path), lambda _event: None, lambda _name: None, session=mine)
    assert handed.prepare("test") == Standing()
    table = Table(engine=handed, schema="handed_in")
    table.write("SELECT TIMESTAMP'2024-01-01 00:00:00' AS at")
    assert table.rows() == [("2024-01-01T00:00:00Z",)]
    assert handed.frame("SELECT * FROM my_view").collect()[0].id == 1
    handed.cancel()
    handed.close()
    assert dict(mine.conf.getAll) == before
    assert mine.sql("SELECT * FROM my_view").count() == 1
    # Nothing of Spark's, but where its schema lies.
    assert [place.name for place in tmp_path.iterdir()] == ["places.json"]


def test_bare_names_of_tables_mean_what_they_mean_in_the_session_handed_in(engine: SparkEngine, tmp_path: Path) -> None:
    mine = engine.frame("SELECT 1").sparkSession.newSession()
    for schema in ("mine", "yours"):
        mine.sql(f"CREATE SCHEMA {schema}")
        mine.sql(f"CREATE VIEW {schema}.lookup AS SELECT '{schema}' AS whose")
    handed = SparkEngine(SparkSettings(home=tmp_path), lambda _event: None, lambda _name: None, session=mine)
    table = Table(engine=handed, schema="handed_in_schema")
    for schema in ("mine", "yours"):
        mine.sql(f"USE {schema}")
        handed.prepare("test")
        table.write("SELECT whose FROM lookup")
        assert table.rows() == [(schema,)]
    mine.sql("DROP SCHEMA yours CASCADE")
    handed.prepare("test")
    table.write("SELECT 'nobody' AS whose")
    assert table.rows() == [("nobody",)]
    assert mine.catalog.currentDatabase() == "yours"
    handed.close()


def test_a_connect_session_that_cannot_be_cloned_is_refused(tmp_path: Path) -> None:
    old = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    handed = SparkEngine(SparkSettings(home=tmp_path), lambda _event: None, lambda _name: None, session=old)
    with pytest.raises(EngineError, match=r"PySpark 4\.1") as caught:
        handed.prepare("test")
    assert "spark.remote" in (caught.value.hint or "")


def test_no_server_behind_an_address_is_told(tmp_path: Path) -> None:
    answer = run(tmp_path / ".lamina", "query", LAMINA_TEST_REMOTE="sc://127.0.0.1:1/;token=secret").stdout
    found = json.loads(answer.splitlines()[-1])
    assert found["error"] == SparkStartFailed.code
    assert "secret" not in answer
