"""Packages are fetched by one process at a time, and once."""

from __future__ import annotations

import hashlib
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lamina.app.ports.events import Event, Waiting
from lamina.errors import Cancelled, FormatMissing, Problems
from lamina.graph.formats import TABLE_FORMATS
from lamina.spark.sessions import embedded
from lamina.spark.sessions.embedded import EmbeddedSpark, SparkSettings
from lamina.spark.sessions.format_versions import FORMAT_PACKAGES, KNOWN_JARS
from lamina.spark.sessions.jar_cache import check_jars, fetching, is_fetched

NOTHING = threading.Event()


def settings(folder: Path, packages: str = "io.delta:delta-spark:1") -> dict[str, str]:
    return {"spark.jars.ivy": str(folder), "spark.jars.packages": packages}


def ignore(event: Event) -> None:
    """Nobody looks."""


def test_packages_count_as_fetched_after_the_first_start_that_went_through(tmp_path: Path) -> None:
    config = settings(tmp_path / "jars")
    assert not is_fetched(config)
    with pytest.raises(RuntimeError), fetching(config, "build", ignore, NOTHING):
        raise RuntimeError("no way to the repository")
    assert not is_fetched(config)
    with fetching(config, "build", ignore, NOTHING):
        pass
    assert is_fetched(config)
    assert not is_fetched(settings(tmp_path / "jars", "org.apache.iceberg:iceberg:1"))
    assert is_fetched({})


def test_whoever_comes_second_waits_until_they_are_there_and_says_for_whom(tmp_path: Path) -> None:
    config = settings(tmp_path / "jars")
    events: list[Event] = []
    at_once: list[str] = []
    is_there: list[bool] = []

    def second() -> None:
        with fetching(config, "query", events.append, NOTHING):
            is_there.append(is_fetched(config))
            at_once.append("second")
            time.sleep(0.2)

    def third() -> None:
        with fetching(config, "plan", events.append, NOTHING):
            at_once.append("third")

    others = [threading.Thread(target=each) for each in (second, third)]
    with fetching(config, "build prod", ignore, NOTHING):
        for other in others:
            other.start()
        while len(events) < 2:
            time.sleep(0.01)
        assert at_once == []
    for other in others:
        other.join(10)
    assert is_there == [True]
    assert sorted(at_once) == ["second", "third"]
    assert isinstance(events[0], Waiting)
    assert events[0].what == "the download of table formats"
    assert "`lamina build prod`" in events[0].holder


def test_waiting_can_be_cancelled(tmp_path: Path) -> None:
    config = settings(tmp_path / "jars")
    cancelled = threading.Event()
    cancelled.set()
    with (
        fetching(config, "build", ignore, NOTHING),
        pytest.raises(Cancelled, match="download of table formats"),
        fetching(config, "query", ignore, cancelled),
    ):
        pass


def test_a_folder_that_is_only_read_needs_no_lock(tmp_path: Path) -> None:
    (tmp_path / "jars").write_text("not a folder")
    with fetching(settings(tmp_path / "jars"), "build", ignore, NOTHING):
        pass


# --- what was fetched -------------------------------------------------------------------------------------------------
def test_a_file_that_is_not_what_was_published_is_refused_with_both_hashes(tmp_path: Path) -> None:
    folder = tmp_path / "a cache" / "jars"
    folder.mkdir(parents=True)
    good, bad, other = folder / "good.jar", folder / "bad.jar", folder / "other.jar"
    for file in (good, bad, other):
        file.write_bytes(file.name.encode())
    right = {"good.jar": hashlib.sha256(b"good.jar").hexdigest(), "bad.jar": "0" * 64, "gone.jar": "1" * 64}
    check_jars(f"{good.as_uri()},{other.as_uri()},{folder}/gone.jar,hdfs://elsewhere/bad.jar", right)
    check_jars("", right)
    with pytest.raises(FormatMissing) as caught:
        check_jars(f"{good.as_uri()},{bad.as_uri()},{other.as_uri()}", right)
    assert str(bad) in caught.value.message
    assert "0" * 64 in caught.value.message
    assert hashlib.sha256(b"bad.jar").hexdigest() in caught.value.message
    assert str(folder.parent) in (caught.value.hint or "")
    with pytest.raises(Problems) as several:
        check_jars(f"{bad},{good}", {"bad.jar": "0", "good.jar": "0"})
    assert len(several.value.problems) == 2


def test_a_jvm_with_such_a_file_ends_before_it_loads_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "org.xerial_sqlite-jdbc-3.50.3.0.jar"
    (tmp_path / name).write_bytes(b"something else")
    ended: list[Any] = []
    system = SimpleNamespace(getProperty={"spark.jars": (tmp_path / name).as_uri()}.get)
    gateway = SimpleNamespace(jvm=SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(System=system))))
    monkeypatch.setattr(embedded, "launch", lambda *_arguments: gateway)
    monkeypatch.setattr(embedded, "_forget", ended.append)
    settings = SparkSettings(home=tmp_path / ".lamina", master="local[1]")
    embedded._make_folders(settings)
    with pytest.raises(FormatMissing, match=KNOWN_JARS[name]):
        # Other tests of this process may have a Spark that runs, which `start` would look at.
        EmbeddedSpark(settings, lambda _event: None)._open(None, "build", NOTHING)
    assert ended == [gateway]


def test_the_hashes_of_everything_that_is_fetched_for_the_tested_spark_are_known() -> None:
    tested = next(entry for entry in FORMAT_PACKAGES if entry.spark == "4.1")
    packages = [getattr(tested, name) for name in ("delta", "iceberg")]
    assert {"delta", "iceberg"} <= TABLE_FORMATS.keys()
    for package in packages:
        group, artifact, version = package.split(":")
        assert f"{group}_{artifact}-{version}.jar" in KNOWN_JARS
