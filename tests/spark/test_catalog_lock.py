"""One process at a time has the embedded catalog, and the others know whom they wait for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from lamina.app.ports.events import Event, Waiting
from lamina.errors import Cancelled, CatalogBusy, SparkStartFailed, WarehouseUnwritable
from lamina.spark.sessions.catalog_lock import CatalogLock

HOLD = """
import subprocess, sys, threading, time
from pathlib import Path
from lamina.spark.sessions.catalog_lock import CatalogLock
lock = CatalogLock(Path(sys.argv[1]))
lock.acquire("build prod", lambda event: None, threading.Event())
child = subprocess.Popen(["sleep", "60"], pass_fds=(lock.descriptor,)) if sys.argv[2] == "child" else None
print(child.pid if child else 0, flush=True)
time.sleep(60)
"""


def hold(path: Path, *, with_child: bool = False) -> tuple[subprocess.Popen[str], int]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path), "child" if with_child else "alone"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
    child = int(process.stdout.readline())
    process.stdout.close()
    return process, child


def acquire(path: Path, patience: float | None = None, cancelled: threading.Event | None = None) -> list[Event]:
    events: list[Event] = []
    lock = CatalogLock(path)
    lock.acquire("query", events.append, cancelled or threading.Event(), patience)
    lock.release()
    return events


def test_a_free_lock_is_taken_at_once_and_again(tmp_path: Path) -> None:
    assert acquire(tmp_path / "spark.lock") == []
    assert acquire(tmp_path / "spark.lock") == []


def test_who_waits_is_told_the_holder_and_goes_on_when_it_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "spark.lock"
    holder, _ = hold(path)
    with pytest.raises(CatalogBusy, match=f"process {holder.pid}"):
        acquire(path, patience=0.5)
    timer = threading.Timer(1, holder.kill)
    timer.start()
    (event,) = acquire(path)
    holder.wait()
    assert isinstance(event, Waiting)
    assert event.what == "the embedded catalog"
    assert event.holder.startswith(f"`lamina build prod` (process {holder.pid} on ")


def test_the_lock_outlives_its_process_as_long_as_the_jvm_lives(tmp_path: Path) -> None:
    path = tmp_path / "spark.lock"
    holder, child = hold(path, with_child=True)
    holder.kill()
    holder.wait()
    with pytest.raises(CatalogBusy):
        acquire(path, patience=0.5)
    os.kill(child, signal.SIGKILL)
    acquire(path)


def test_waiting_can_be_cancelled(tmp_path: Path) -> None:
    path = tmp_path / "spark.lock"
    holder, _ = hold(path)
    cancelled = threading.Event()
    threading.Timer(0.5, cancelled.set).start()
    with pytest.raises(Cancelled):
        acquire(path, cancelled=cancelled)
    holder.kill()
    holder.wait()


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(WarehouseUnwritable, match=r"cannot be written"):
        acquire(tmp_path / "missing" / "spark.lock")


WINDOWS = """
import sys, threading
from pathlib import Path
sys.modules["fcntl"] = None
from lamina.errors import LaminaError
from lamina.spark.sessions.catalog_lock import CatalogLock
try:
    CatalogLock(Path(sys.argv[1])).acquire("build", lambda event: None, threading.Event())
except LaminaError as error:
    print(error.code, error.message, error.hint)
"""


def test_where_locks_cannot_be_shared_it_says_so(tmp_path: Path) -> None:
    words = [sys.executable, "-c", WINDOWS, str(tmp_path / "lock")]
    answer = subprocess.run(words, capture_output=True, text=True, check=True)
    assert answer.stdout.startswith(f"{SparkStartFailed.code} Lamina starts Spark on Linux and macOS only")
    assert "WSL" in answer.stdout
