"""Loading and planning projects of 100, 1,000 and 5,000 models: cold, warm and after one edit.

Beside wall time there are the CPU time of the process itself, which a busy machine changes less, the number of modules
that a warm plan loads, and peak memory.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.generate import generate
from benchmarks.recorded import record_as_built

_MEASURE = """
import json, resource, subprocess, sys, time
begun = time.perf_counter()
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
seconds = time.perf_counter() - begun
used = resource.getrusage(resource.RUSAGE_CHILDREN)
figures = {"seconds": round(seconds, 3), "user_seconds": round(used.ru_utime, 3)}
figures |= {"peak_mb": round(used.ru_maxrss / 1024)}
print(json.dumps({**figures, "code": done.returncode, "error": done.stderr[-500:]}))
"""
_COUNT = """
import atexit, sys
atexit.register(lambda: sys.stderr.write(f"\\n{len(sys.modules)}"))
from lamina.cli.main import main
main()
"""
_WARM_RUNS = 10


def _environment() -> dict[str, str]:
    """The environment, with compiled modules kept: without them every start would compile all of Lamina again."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _plan(folder: Path, moment: str) -> list[str]:
    return ["plan", "--json", "-C", str(folder), "--execution-time", moment]


def measure_plan(folder: Path, moment: str) -> dict[str, Any]:
    """One `lamina plan --json` in a process of its own."""
    command = [sys.executable, "-c", _MEASURE, sys.executable, "-m", "lamina", *_plan(folder, moment)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=_environment())
    result: dict[str, Any] = json.loads(done.stdout)
    if result["code"] != 0:
        raise RuntimeError(result["error"])
    return result


def count_modules(folder: Path, moment: str) -> int:
    """How many modules a plan has loaded in its end."""
    command = [sys.executable, "-c", _COUNT, *_plan(folder, moment)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=_environment())
    return int(done.stderr.rpartition("\n")[2])


def main(sizes: tuple[int, ...] = (100, 1000, 5000)) -> list[dict[str, Any]]:
    """Measure every size; the project counts as built, so a plan finds nothing to do."""
    rows = []
    moment = "2024-02-01"
    for size in sizes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) / "project"
            generate(folder, size)
            cold = measure_plan(folder, moment)
            record_as_built(folder, moment)
            runs = [measure_plan(folder, moment) for _ in range(_WARM_RUNS)]
            warm = {name: min(run[name] for run in runs) for name in ("seconds", "user_seconds", "peak_mb")}
            modules = count_modules(folder, moment)
            path = next((folder / "models" / "facts").rglob("facts_1.sql"))
            path.write_text(path.read_text().replace("'medium'", "'middle'"))
            time.sleep(0.01)
            edited = measure_plan(folder, moment)
            rows.append(
                {
                    "models": size,
                    "cold_seconds": cold["seconds"],
                    "warm_seconds": warm["seconds"],
                    "after_one_edit_seconds": edited["seconds"],
                    "cold_user_seconds": cold["user_seconds"],
                    "warm_user_seconds": warm["user_seconds"],
                    "after_one_edit_user_seconds": edited["user_seconds"],
                    "warm_modules": modules,
                    "cold_peak_mb": cold["peak_mb"],
                    "warm_peak_mb": warm["peak_mb"],
                }
            )
    return rows
