"""What lies in `.lamina` is for its owner alone; nothing that is not ours is touched."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from lamina.bootstrap import OpenOptions, open_application, open_store
from lamina.project.private import keep_private
from lamina.spark.sessions.catalog_lock import CatalogLock
from lamina.spark.sessions.logs import write_log4j_settings
from lamina.spark.sessions.places import remember_place
from tests.project.conftest import NOW

MODEL = {"models/a.sql": "MODEL (name a, kind FULL);\nSELECT 1 AS x\n"}
WIDE = {
    "state.db": 0o644,
    "state.db-wal": 0o666,
    "cache": 0o755,
    "cache/project.jsonl": 0o644,
    "logs": 0o755,
    "logs/old": 0o755,
    "logs/old/spark.log": 0o644,
    "warehouse": 0o755,
    "warehouse/part": 0o644,
}


def mode(place: Path) -> int:
    return stat.S_IMODE(place.lstat().st_mode)


def wide(root: Path) -> Path:
    """A `.lamina` as older versions have left it."""
    work = root / ".lamina"
    for name, wanted in WIDE.items():
        place = work / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if wanted & 0o100:
            place.mkdir()
        else:
            place.write_text("x")
        place.chmod(wanted)
    work.chmod(0o755)
    return work


def modes(work: Path) -> dict[str, int]:
    return {name: mode(work / name) for name in WIDE}


def opened(root: Path) -> None:
    open_application(OpenOptions(directory=root), lambda _event: None).close()


def test_an_older_project_is_tightened_by_the_next_command(project):
    folder = project(MODEL)
    work = wide(folder.root)
    opened(folder.root)
    assert mode(work) == 0o700
    # What lies in folders of tables is out of reach, however many files there are.
    changed = {name: wanted & ~0o077 for name, wanted in WIDE.items() if name != "warehouse/part"}
    assert modes(work) == {**changed, "warehouse/part": 0o644}


def test_it_is_tightened_once(project):
    folder = project(MODEL)
    work = wide(folder.root)
    opened(folder.root)
    (work / "state.db").chmod(0o640)
    opened(folder.root)
    assert mode(work / "state.db") == 0o640


def test_a_shared_warehouse_stays_within_reach(project):
    folder = project(
        {**MODEL, "lamina.yaml": "name: shop\nspark: {master: 'spark://h:7077', shared_warehouse: true}\n"}
    )
    work = wide(folder.root)
    for _ in range(2):
        opened(folder.root)
        assert mode(work) == 0o711
        assert modes(work) == {
            **{name: wanted & ~0o077 for name, wanted in WIDE.items()},
            "warehouse": 0o755,
            "warehouse/part": 0o644,
        }
    folder.write({"lamina.yaml": "name: shop\n"})
    opened(folder.root)
    assert mode(work) == 0o700


def test_rights_that_the_owner_took_from_himself_are_not_given_back(tmp_path):
    work = wide(tmp_path)
    (work / "state.db").chmod(0o444)
    work.chmod(0o555)
    keep_private(tmp_path, is_passable=False)
    assert (mode(work), mode(work / "state.db")) == (0o500, 0o400)
    work.chmod(0o700)


def test_links_are_not_followed(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("x")
    for place, wanted in ((outside, 0o755), (outside / "file", 0o644)):
        place.chmod(wanted)
    work = wide(tmp_path)
    (work / "linked").symlink_to(outside)
    (work / "linked-file").symlink_to(outside / "file")
    (work / "cache/linked").symlink_to(outside)
    (work / "hard").hardlink_to(outside / "file")
    keep_private(tmp_path, is_passable=False)
    assert (mode(outside), mode(outside / "file"), mode(work)) == (0o755, 0o644, 0o700)
    other = tmp_path / "other"
    other.mkdir()
    (other / ".lamina").symlink_to(outside)
    keep_private(other, is_passable=False)
    assert (mode(outside), mode(outside / "file")) == (0o755, 0o644)


def test_what_belongs_to_others_is_left(tmp_path, monkeypatch):
    work = wide(tmp_path)
    owner = os.geteuid()
    monkeypatch.setattr("os.geteuid", lambda: owner + 1)
    keep_private(tmp_path, is_passable=False)
    assert mode(work) == 0o755
    assert modes(work) == WIDE


@pytest.mark.parametrize("call", ["open", "fchmod", "listdir", "chmod"])
def test_what_cannot_be_tightened_stops_nothing(tmp_path, monkeypatch, call):
    wide(tmp_path)

    def refuse(*_arguments, **_options):
        raise PermissionError

    monkeypatch.setattr(os, call, refuse)
    keep_private(tmp_path, is_passable=False)


def test_without_a_folder_there_is_nothing_to_do(tmp_path):
    keep_private(tmp_path, is_passable=False)
    (tmp_path / ".lamina").write_text("a file")
    keep_private(tmp_path, is_passable=False)
    assert (tmp_path / ".lamina").read_text() == "a file"


def test_what_commands_make_is_for_the_owner_alone(project):
    folder = project(MODEL)
    before = os.umask(0o022)
    try:
        folder.open().graph(NOW)
        store = open_store("sqlite:///.lamina/state.db", folder.root)
        store.commit((), ())
        made = {
            str(place.relative_to(folder.root)): mode(place) for place in folder.root.joinpath(".lamina").rglob("*")
        }
        store.close()
    finally:
        os.umask(before)
    assert mode(folder.root / ".lamina") == 0o700
    assert ".lamina/state.db" in made
    assert {name: found for name, found in made.items() if found & 0o077} == {}


def test_files_around_spark_are_for_the_owner_alone(tmp_path):
    before = os.umask(0o022)
    try:
        write_log4j_settings(tmp_path)
        remember_place(tmp_path, "here", "shop", f"file:{tmp_path}/warehouse")
        lock = CatalogLock(tmp_path / "spark.lock")
        lock.acquire("plan", lambda _event: None, threading.Event())
        lock.release()
    finally:
        os.umask(before)
    made = {place.name: mode(place) for place in tmp_path.iterdir()}
    assert {"places.json", "spark.json", "spark.lock", "spark.log"} <= made.keys()
    assert {name: found for name, found in made.items() if found & 0o077} == {}
