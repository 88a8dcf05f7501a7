"""Runs the benchmarks and prints their figures as JSON; `python -m benchmarks.run [planning|daily]`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import daily_run, planning  # the folder has to be importable first

_ALL = {"planning": planning.main, "daily": daily_run.main}


def main() -> None:
    """Run what was asked for, or everything."""
    names = sys.argv[1:] or list(_ALL)
    for name in names:
        sys.stdout.write(json.dumps({name: _ALL[name]()}, indent=2) + "\n")


if __name__ == "__main__":
    main()
