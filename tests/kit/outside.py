"""Brings what tests need from outside, before many of them begin side by side: table formats, and PostgreSQL.

What cannot be had is told; whether tests may do without it is theirs to say.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from pathlib import Path

from lamina.errors import LaminaError
from lamina.spark.sessions.embedded import EmbeddedSpark, SparkSettings, spark_config
from lamina.spark.sessions.jar_cache import is_fetched
from tests.kit.postgresql import find_programs, install_programs


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        settings = SparkSettings(home=Path(folder), master="local[1]", formats=frozenset({"delta", "iceberg"}))
        if not is_fetched(spark_config(settings)):
            say("fetching Delta Lake and Iceberg (once)")
            spark = EmbeddedSpark(settings, lambda _event: None)
            try:
                spark.start("test", threading.Event())
            except LaminaError as error:
                say(f"{error.message}; {error.hint}")
            spark.stop()
    if not (find_programs() or install_programs()):
        say("PostgreSQL is not installed")
    return 0


def say(text: str) -> None:
    print(f"lamina: {text}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
