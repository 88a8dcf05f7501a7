"""Runs benchmarks and prints their figures as JSON; `python -m benchmarks.run [planning|daily|intervals|formats]`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import daily_run, formats, intervals, planning  # the folder has to be importable first

_ALL: dict[str, Callable[[], Any]] = {
    "planning": planning.main,
    "daily": daily_run.main,
    "intervals": intervals.main,
    "formats": formats.main,
}


def main() -> None:
    """Run what was asked for, or everything."""
    names = sys.argv[1:] or list(_ALL)
    for name in names:
        sys.stdout.write(json.dumps({name: _ALL[name]()}, indent=2) + "\n")


if __name__ == "__main__":
    main()
