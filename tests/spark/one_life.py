"""A process of its own with an engine in it: does what its arguments say and prints a line for each."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

from lamina.app.ports.events import Event
from lamina.errors import LaminaError
from lamina.spark.engine import SparkEngine
from lamina.spark.sessions.embedded import SparkSettings
from tests.spark.driver import Table


def tell(event: Event) -> None:
    print(event, flush=True)


def main(home: str, *steps: str) -> None:
    remote = os.environ.get("LAMINA_TEST_REMOTE")
    settings = SparkSettings(home=Path(home), master=None if remote else "local[2]", remote=remote)
    engine = SparkEngine(settings, tell, lambda _name: None)
    table = Table(engine=engine, schema="s")
    try:
        engine.prepare("life")
        for step in steps:
            do(step, engine, table)
    except LaminaError as error:
        print(json.dumps({"error": error.code, "message": error.message}), flush=True)
    engine.close()


def do(step: str, engine: SparkEngine, table: Table) -> None:
    match step:
        case "write":
            table.write(
                "SELECT TIMESTAMP'2024-03-10 02:30:00' AS at, 1 AS id "
                "UNION ALL SELECT TIMESTAMP'2024-11-03 01:30:00-05:00', 2"
            )
        case "query":
            print(json.dumps({"rows": table.rows()}), flush=True)
        case "sleep":
            time.sleep(5)
        case "interrupt":
            # As a terminal does it: to every process of the group, the JVM included.
            signal.signal(signal.SIGINT, lambda *_: None)
            os.killpg(os.getpgid(0), signal.SIGINT)
            time.sleep(1)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
