"""Runs benchmarks and prints their figures as JSON; `python -m benchmarks.run [name …]`, all of them without one."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

# The folder has to be importable first.
from benchmarks import daily_run, first_build, formats, intervals, layout, planning, state_growth

_ALL: dict[str, Callable[[], Any]] = {
    "planning": planning.main,
    "first_build": first_build.main,
    "daily": daily_run.main,
    "intervals": intervals.main,
    "formats": formats.main,
    "layout": layout.main,
    "state": state_growth.main,
}


def main() -> None:
    """Run what was asked for, or everything."""
    names = sys.argv[1:] or list(_ALL)
    for name in names:
        sys.stdout.write(json.dumps({name: _ALL[name]()}, indent=2) + "\n")


if __name__ == "__main__":
    main()
