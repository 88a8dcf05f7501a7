"""The write protocol, explored: no interleaving and no crash breaks a law, and the model can say when one does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.protocol import protocol_model

MODEL = Path(protocol_model.__file__)


def explore(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(MODEL), *arguments], capture_output=True, text=True)


def test_no_interleaving_and_no_crash_breaks_a_law():
    answer = explore()

    closing = answer.stdout.splitlines()[-1]
    assert closing.endswith(": no violation"), answer.stdout + answer.stderr
    assert f" in {len(protocol_model.SCENARIOS)} scenarios" in closing
    assert answer.returncode == 0


@pytest.mark.parametrize("mistake", sorted(protocol_model.MISTAKES))
def test_a_mistake_put_back_into_the_protocol_is_found(mistake: str):
    answer = explore("--mistake", mistake)

    found = answer.stdout.splitlines()[1]
    assert "states: law " in found, answer.stdout + answer.stderr
    assert answer.returncode == 0
