"""Makes an archive of the classes that Spark loads, with which the JVMs of the tests start in half the time.

The JVM checks for itself that an archive fits it and the jars; one that does not is as good as none. An empty file
says that there can be none here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ARCHIVE = Path(sys.prefix) / "spark.jsa"
PATIENCE = 120


def main() -> int:
    print("lamina: archiving Spark's classes, for tests that start faster", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=ARCHIVE.parent) as folder:
        archive = Path(folder) / ARCHIVE.name
        run("init", "shop", cwd=Path(folder))
        shop = Path(folder) / "shop"
        run("build", "--execution-time", "2024-01-08", cwd=shop, archive=archive)
        if not has_appeared(archive):
            print("lamina: this Java makes no archive; tests take longer without it", file=sys.stderr)
            archive.touch()
        archive.replace(ARCHIVE)
    return 0


def run(*words: str, cwd: Path, archive: Path | None = None) -> None:
    options = f'-XX:+UseSerialGC "-XX:ArchiveClassesAtExit={archive}"' if archive else ""
    command = [sys.executable, "-m", "lamina", *words]
    subprocess.run(command, cwd=cwd, env={**os.environ, "SPARK_SUBMIT_OPTS": options}, capture_output=True, check=True)


def has_appeared(archive: Path) -> bool:
    """Whether the JVM, which outlives the command that started it by a moment, has written all of it."""
    before = -1
    for _ in range(PATIENCE):
        size = archive.stat().st_size if archive.is_file() else 0
        if size and size == before:
            return True
        before = size
        time.sleep(1)
    return False


if __name__ == "__main__":
    sys.exit(main())
