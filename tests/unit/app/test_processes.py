"""Which processes of this machine are provably gone."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from lamina.bootstrap import SystemProcesses

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems do not tell")
PROCESSES = SystemProcesses()


@pytest.fixture
def child():
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


def test_a_process_that_runs_is_not_gone(child):
    for number in (os.getpid(), child.pid):
        identity = PROCESSES.identify(number)
        assert identity == PROCESSES.identify(number)
        assert not PROCESSES.is_gone(identity)


def test_a_process_that_was_killed_is_gone_before_and_after_its_parent_asks(child):
    identity = PROCESSES.identify(child.pid)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert PROCESSES.is_gone(identity)
    child.wait()
    assert PROCESSES.is_gone(identity)
    assert PROCESSES.identify(child.pid) is None


def test_a_number_that_was_given_again_is_another_process(child):
    place, _, start = PROCESSES.identify(child.pid).rpartition(" ")
    assert PROCESSES.is_gone(f"{place} {int(start) - 1}")


@pytest.mark.parametrize("part", [0, 1, 2])
def test_of_other_boots_and_name_spaces_nothing_is_known(child, part):
    words = PROCESSES.identify(child.pid).split(" ")
    child.kill()
    child.wait()
    words[part] = words[part].replace(words[part][-5:-1], "0000")
    assert not PROCESSES.is_gone(" ".join(words))
    assert not PROCESSES.is_gone("")
    assert not PROCESSES.is_gone("nonsense")
