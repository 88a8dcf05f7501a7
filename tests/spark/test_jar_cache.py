"""Packages are fetched by one process at a time, and once."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from lamina.app.events import Event, Waiting
from lamina.errors import Cancelled
from lamina.spark.jar_cache import fetching, is_fetched

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
