"""What depends on the kind of session once more over Connect; rows are held to theirs by the conformance suite."""

from __future__ import annotations

import pytest

from tests.kit.suites import run_suites


@pytest.mark.timeout(1200)
def test_the_engine_behaves_the_same_over_connect() -> None:
    run_suites("connect", "tests/ports/test_engine.py", "tests/spark/test_python_models.py")
