"""Programs in processes of their own that tell what they have seen, so that tests can ask about it one by one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SEEN = "SEEN"
_ROOT = Path(__file__).parents[2]


def tell(seen: object) -> None:
    """Print what was seen, for the test that started this process."""
    print(SEEN + json.dumps(seen))


def told(*arguments: str, env: Mapping[str, str] | None = None, timeout: float | None = None) -> Any:
    """What a Python process tells as its last word; a failure of the test when it fails."""
    answer = subprocess.run(
        [sys.executable, *arguments],
        env=env,
        cwd=_ROOT,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout[-5000:] + answer.stderr[-10000:]
    return json.loads(answer.stdout.rpartition(SEEN)[2])
