"""The engine's behaviour suite in a process of its own, because a process has one way to Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run_suites(kind: str, *suites: str) -> None:
    """Fails when one of the suites does, with the engine that `LAMINA_TEST_ENGINE` names so."""
    answer = subprocess.run(
        # At the first failure it ends: what a server that does not answer any more would do to the others says nothing.
        [sys.executable, "-m", "pytest", "--exitfirst", "--timeout=300", *suites],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "LAMINA_TEST_ENGINE": kind},
    )
    assert answer.returncode == 0, answer.stdout[-20000:] + answer.stderr[-5000:]
