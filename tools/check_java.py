"""Says in one sentence what is wrong with Java, if anything.

Runs before anything is installed, so that nobody waits for half a gigabyte of Spark to learn it.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

# Lamina's own check needs the standard library only; the package's front door would load more, so it is passed by.
lamina = ModuleType("lamina")
lamina.__path__ = [str(Path(__file__).resolve().parent.parent / "src" / "lamina")]
sys.modules["lamina"] = lamina
sys.dont_write_bytecode = True


def main() -> int:
    java, errors = import_module("lamina.spark.sessions.java"), import_module("lamina.errors")
    try:
        java.check_java()
    except errors.JavaMissing as missing:
        sys.stderr.write(f"{missing.message}: {missing.hint}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
