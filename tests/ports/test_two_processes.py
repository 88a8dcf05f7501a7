"""Two processes with different clocks on one PostgreSQL state: leases run by the database's clock."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

LEASE_SECONDS = 6.0
OFF = 125.0
"""More than any lease lasts."""


class Child:
    """A process of its own that takes leases."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def tell(self, word: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word} version:x\n")
        self.process.stdin.flush()

    def heard(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def ask(self, word: str) -> dict[str, Any]:
        self.tell(word)
        return self.heard()


@contextmanager
def child(url: str, skew: float = 0.0) -> Iterator[Child]:
    command = [sys.executable, "-m", "tests.ports.lease_holder", url, str(skew), str(LEASE_SECONDS)]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Child(process)
        finally:
            process.kill()


@pytest.mark.parametrize("off", [OFF, -OFF])
def test_clocks_that_are_minutes_apart_neither_steal_a_lease_nor_keep_it(postgresql_place, off):
    url = postgresql_place.url
    with child(url) as first, child(url, off) as second:
        assert first.ask("take") == {"token": 1, "lost": []}
        begun = time.monotonic()
        while time.monotonic() < begun + 1.5 * LEASE_SECONDS:
            assert 0 < second.ask("take")["held_for"] <= LEASE_SECONDS, "it lives, and renews its lease"
            time.sleep(0.2)
        assert first.ask("look") == {"is_held": True, "is_live": True}

        first.tell("stop")
        os.waitid(os.P_PID, first.process.pid, os.WSTOPPED)
        begun = time.monotonic()
        left = second.ask("take")["held_for"]
        while "held_for" in (answer := second.ask("take")):
            time.sleep(0.05)
        assert answer == {"token": 2, "lost": [1]}
        assert left - 0.5 < time.monotonic() - begun < LEASE_SECONDS + 5
        first.process.send_signal(signal.SIGCONT)
        first.heard()
        assert not first.ask("look")["is_held"]
        assert second.ask("look") == {"is_held": True, "is_live": True}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems do not tell whether a process is gone")
@pytest.mark.parametrize("off", [OFF, -OFF])
def test_a_process_that_was_killed_is_succeeded_at_once_by_another_one_of_its_machine(postgresql_place, off):
    url = postgresql_place.url
    with child(url) as first, child(url, off) as second:
        assert first.ask("take") == {"token": 1, "lost": []}
        assert "held_for" in second.ask("take")
        first.process.kill()
        first.process.wait()
        assert second.ask("take") == {"token": 2, "lost": [1]}
