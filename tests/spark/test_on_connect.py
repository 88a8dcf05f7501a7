"""What depends on the kind of session once more, over Spark Connect; rows are held to theirs by the conformance suite.

A classic session and a Connect client cannot live in one process, so the suite runs in another.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(1200)
def test_the_engine_behaves_the_same_over_connect() -> None:
    suites = ["tests/ports/test_engine.py", "tests/spark/test_python_models.py"]
    answer = subprocess.run(
        # At the first failure it ends: what a server that does not answer any more would do to the others says nothing.
        [sys.executable, "-m", "pytest", "--exitfirst", "--timeout=300", *suites],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "LAMINA_TEST_ENGINE": "connect"},
    )
    assert answer.returncode == 0, answer.stdout[-20000:] + answer.stderr[-5000:]
