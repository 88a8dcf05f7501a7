"""Eight commands at a time on one state and one server, many of them killed, while readers look: what was seen.

The source holds four rows of each day, all with the number of the source's edition for that day. So a reader can tell
for itself a batch that is shown in part, twice, or mixed with another one.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pkgutil
import random
import re
import signal
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import lamina as package
from lamina.app.leases import keeper as leases
from lamina.cli.main import main as lamina
from tests.kit.connect import reader
from tests.kit.told import tell

WORKERS = 8
READERS = 2
ROWS = 4
DAYS = 12
KILLED = 0.3
"""How many of the commands are killed, at any moment."""
DIE_FIRST = 3
"""How many workers have their first command killed early: a slow machine gets through few commands."""
SLOWEST = 400.0
"""Seconds after which a command counts as hanging, however busy the machine is."""
LEASE_SECONDS = 3600.0
"""So that a command that waits until a dead holder's lease has run out hangs, instead of being slow."""
SCHEMA = "stressed"
SOURCE = "stress_raw.events"
_IN_TIME = f"FROM {SOURCE} WHERE day BETWEEN @start_date AND @end_date"
_OF_DAYS = f"FROM {SCHEMA}.days WHERE day BETWEEN @start_date AND @end_date"
MODELS = {
    "days": ("kind INCREMENTAL_BY_TIME_RANGE (time_column day)", f"SELECT day, n, edition {_IN_TIME}"),
    "log": ("kind INCREMENTAL_UNMANAGED, table_format delta", f"SELECT day, n {_IN_TIME}"),
    "latest": (
        "kind INCREMENTAL_BY_UNIQUE_KEY (unique_key (day, n)), table_format delta",
        f"SELECT day, n, edition {_OF_DAYS}",
    ),
    "totals": ("kind FULL, table_format iceberg", f"SELECT day, n, edition FROM {SCHEMA}.days"),
}


class Source:
    """What the models read; a later edition of a day replaces its rows."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._guard = threading.Lock()
        self.editions = dict.fromkeys(range(1, DAYS + 1), 0)
        spark.sql("CREATE SCHEMA IF NOT EXISTS stress_raw")
        self._show()

    def correct(self, day: int) -> None:
        with self._guard:
            self.editions[day] += 1
            self._show()

    def _show(self) -> None:
        days = ", ".join(f"(DATE'{date(day)}', {edition})" for day, edition in self.editions.items())
        numbers = ", ".join(f"({number})" for number in range(ROWS))
        self._spark.sql(
            f"CREATE OR REPLACE VIEW {SOURCE} AS SELECT day, n, edition "
            f"FROM VALUES {days} AS days(day, edition) CROSS JOIN (VALUES {numbers}) AS numbers(n)"
        )


class Stress:
    """Starts commands and kills them, and keeps a book of how they ended and of what readers saw."""

    def __init__(self, folder: Path, remote: str, state: str, seed: int, seconds: float) -> None:
        self._folder, self._remote, self._seconds = folder, remote, seconds
        self._random = random.Random(seed)
        self._processes = multiprocessing.get_context("forkserver")
        parts = [part.name for part in pkgutil.walk_packages(package.__path__, "lamina.")]
        self._processes.set_forkserver_preload([*parts, "pyspark.sql.connect.session"])
        self._source = Source(self._session())
        self._is_over = threading.Event()
        self._guard = threading.Lock()
        self._begun = time.monotonic()
        self.ended: list[dict[str, Any]] = []
        self.wrong: list[str] = []
        self.reads = 0
        (folder / "models").mkdir(parents=True)
        (folder / "lamina.yaml").write_text(
            f"name: {SCHEMA}\nspark: {{remote: '{remote}'}}\nstate: '{state}'\n"
            "defaults: {start: 2024-01-01}\nconcurrency: 2\n"
        )
        for name, (header, query) in MODELS.items():
            (folder / "models" / f"{name}.sql").write_text(f"MODEL (name {SCHEMA}.{name}, {header});\n{query}\n")

    def run(self) -> dict[str, Any]:
        self._command(["build", "--execution-time", date(3)], None)
        self._command(["build", "dev", "--execution-time", date(3)], None)
        self._begun = time.monotonic()
        seeds = [self._random.random() for _ in range(WORKERS)]
        threads = [
            threading.Thread(target=self._work, args=(random.Random(seed), number < DIE_FIRST))
            for number, seed in enumerate(seeds)
        ]
        readers = [threading.Thread(target=self._read) for _ in range(READERS)]
        for thread in (*threads, *readers):
            thread.start()
        for thread in threads:
            thread.join()
        last = self._command(["build", "--execution-time", date(DAYS + 1)], None)
        again = self._command(["build", "--execution-time", date(DAYS + 1)], None)
        self._is_over.set()
        for thread in readers:
            thread.join()
        spark = self._session()
        return {
            "ended": self.ended,
            "wrong": self.wrong,
            "reads": self.reads,
            "last": last,
            "again": again,
            "rows": {name: self._rows(spark, name) for name in MODELS},
            "editions": self._source.editions,
        }

    def _session(self) -> SparkSession:
        spark = reader(self._remote)
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        return spark

    # --- commands -----------------------------------------------------------------------------------------------------
    def _work(self, dice: random.Random, dies_first: bool) -> None:
        if dies_first:
            self._command(self._words(dice), dice.uniform(0.2, 1.5))
        while time.monotonic() - self._begun < self._seconds:
            words = self._words(dice)
            self._command(words, dice.uniform(0.2, 6.0) if dice.random() < KILLED else None)

    def _words(self, dice: random.Random) -> list[str]:
        share = min(1.0, (time.monotonic() - self._begun) / self._seconds)
        today = 3 + int(share * (DAYS - 2))
        at = ["--execution-time", date(today)]
        environment = dice.choice(["prod", "prod", "dev"])
        match dice.choice(["build", "run", "run", "restate", "restate", "promote", "query"]):
            case "build":
                return ["build", environment, *at]
            case "run":
                return ["run", environment, *at]
            case "restate":
                day = dice.randint(1, today - 1)
                self._source.correct(day)
                bounds = ["--start", date(day), "--end", date(day)]
                return ["build", environment, "--restate", f"{SCHEMA}.days", *bounds, *at]
            case "promote":
                return ["promote", "--from", "dev", "--to", "prod"]
            case _:
                return ["query", f"SELECT count(*) FROM {SCHEMA}.days", "--env", environment]

    def _command(self, words: list[str], lives: float | None) -> dict[str, Any]:
        """Carry a command out in a process of its own, which is killed after a while if its life is limited."""
        with self._guard:
            output = self._folder / f"output-{len(self.ended)}-{threading.get_ident()}.txt"
        begun = time.monotonic()
        process = self._processes.Process(target=_carry_out, args=(str(self._folder), words, str(output)))
        process.start()
        process.join(SLOWEST if lives is None else lives)
        is_hanging = process.is_alive() and lives is None
        if process.is_alive() and process.pid is not None:
            os.kill(process.pid, signal.SIGKILL)
            process.join()
        text = output.read_text() if output.exists() else ""
        ended = {
            "words": words,
            "exit": process.exitcode,
            "seconds": round(time.monotonic() - begun, 1),
            "is_hanging": is_hanging,
            "codes": sorted(set(re.findall(r"LAM-[A-Z]+-\d+", text))),
            "text": text[-3000:],
        }
        with self._guard:
            self.ended.append(ended)
        return ended

    # --- readers ------------------------------------------------------------------------------------------------------
    def _read(self) -> None:
        spark = self._session()
        while not self._is_over.is_set():
            for name in MODELS:
                try:
                    self._look(name, self._rows(spark, name))
                except Exception as error:  # noqa: BLE001  # whatever a reader meets is a finding
                    self.wrong.append(f"{name}: {type(error).__name__}: {str(error)[:600]}")
                self.reads += 1

    def _rows(self, spark: SparkSession, name: str) -> list[list[Any]]:
        columns = "day, n" if name == "log" else "day, n, edition"
        rows = spark.sql(f"SELECT {columns} FROM {SCHEMA}.{name}").collect()
        return sorted([str(row[0]), *row[1:]] for row in rows)

    def _look(self, name: str, rows: list[list[Any]]) -> None:
        """Each day is there whole, once, and of one edition that its source had."""
        by_day: dict[str, list[list[Any]]] = defaultdict(list)
        for day, *rest in rows:
            by_day[day].append(rest)
        for day, found in by_day.items():
            is_whole = sorted(row[0] for row in found) == list(range(ROWS))
            editions = {row[1] for row in found if len(row) > 1}
            known = self._source.editions[int(day[-2:])]
            if not is_whole or len(editions) > 1 or any(edition > known for edition in editions):
                self.wrong.append(f"{name}: {day} holds {found}")


def date(day: int) -> str:
    return f"2024-01-{day:02d}"


def _carry_out(folder: str, words: list[str], output: str) -> None:
    os.chdir(folder)
    leases.LEASE_SECONDS = LEASE_SECONDS
    with _into(output):
        sys.argv = ["lamina", *words]
        lamina()


@contextlib.contextmanager
def _into(output: str) -> Iterator[None]:
    """Everything that the process prints goes to a file."""
    with open(output, "w") as file:  # noqa: PTH123  # a descriptor is what is needed
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        yield


def summary(seen: dict[str, Any]) -> dict[str, int]:
    """How many commands ended how, for people."""
    return dict(Counter(f"{each['words'][0]} {each['exit']}" for each in seen["ended"]))


def main(folder: str, remote: str, state: str, seed: str, seconds: str) -> None:
    tell(Stress(Path(folder), remote, state, int(seed), float(seconds)).run())


if __name__ == "__main__":
    main(*sys.argv[1:])
