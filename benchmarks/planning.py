"""Loading and planning projects of 100, 1,000 and 5,000 models: cold, warm and after one edit, with peak memory."""

from __future__ import annotations

import json
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
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
figures = {"seconds": round(seconds, 3), "peak_mb": round(peak), "code": done.returncode}
print(json.dumps({**figures, "error": done.stderr[-500:]}))
"""


def measure_plan(folder: Path, moment: str) -> dict[str, Any]:
    """One `lamina plan --json` in a process of its own."""
    command = [sys.executable, "-c", _MEASURE, sys.executable, "-m", "lamina", "plan", "--json", "-C", str(folder)]
    done = subprocess.run([*command, "--execution-time", moment], capture_output=True, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    if result["code"] != 0:
        raise RuntimeError(result["error"])
    return result


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
            warm = min((measure_plan(folder, moment) for _ in range(3)), key=lambda row: row["seconds"])
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
                    "cold_peak_mb": cold["peak_mb"],
                    "warm_peak_mb": warm["peak_mb"],
                }
            )
    return rows
