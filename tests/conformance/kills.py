"""Every model is killed at one step after another, and a command after that finishes: what readers saw in between."""

from __future__ import annotations

import multiprocessing
import os
import pkgutil
import sqlite3
import sys
from pathlib import Path
from typing import Any

import lamina as package
from lamina import Project
from lamina.app.writing import layers
from lamina.bootstrap import STOP_VARIABLE
from lamina.cli.main import main as lamina
from lamina.spark.formats import appends
from tests.conformance.project import Event, Product, rows_shown, set_sources, write_project
from tests.kit.connect import reader
from tests.kit.told import tell

NAMES = ("adds", "appends", "by_column", "by_time", "daily", "months", "plain", "whole")
"""Every kind; the last reads another one of them."""
CUSTOMERS = ("a", "b")
BEFORE_IT_IS_SHOWN = ("write.intent", "write.half_folder", "write.decide", "write.decided")
LANDS = (
    (*BEFORE_IT_IS_SHOWN, "recover.published"),
    ("write.published", "recover.published"),
    ("write.done",),
)
IS_TAKEN_BACK = (
    (*BEFORE_IT_IS_SHOWN, "recover.retracting", "recover.fenced"),
    ("write.published", "recover.fenced"),
    ("write.done",),
)
DAYS = len(LANDS)
# Rows that Delta takes straight from the query are in no place from which another command could put them there.
STRAIGHT = {"delta": {"appends", "months", "plain"}}


def kills_of(table_format: str, name: str) -> tuple[tuple[str, ...], ...]:
    """For each day the steps at which the model's commands are killed, one command after the other."""
    return IS_TAKEN_BACK if name in STRAIGHT.get(table_format, ()) else LANDS


def events(days: int) -> list[Event]:
    return [
        (10 * day + number, customer, f"2024-01-{day:02d}", day)
        for day in range(1, days + 1)
        for number, customer in enumerate(CUSTOMERS)
    ]


def products(days: int) -> list[Product]:
    """One product, whose price and time of change are those of the last day."""
    return [(1, "tea", days, f"2024-01-{days:02d}")]


class Killer:
    """Starts commands on a project that kill themselves at a step, in processes that have everything imported."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes = multiprocessing.get_context("forkserver")
        parts = [part.name for part in pkgutil.walk_packages(package.__path__, "lamina.")]
        self._processes.set_forkserver_preload([*parts, "pyspark.sql.connect.session"])

    def kill(self, step: str, words: list[str]) -> int | None:
        """How the process ended; what it claimed is made to have run out, as after two minutes."""
        process = self._processes.Process(target=_command, args=(str(self._folder), step, words))
        process.start()
        process.join()
        with sqlite3.connect(self._folder / ".lamina" / "state.db") as state:
            state.execute("UPDATE lamina_leases SET expires_at = 0 WHERE status = 'held'")
        return process.exitcode


class Killed:
    """A project of one table format on a Connect server, and commands on it that do not live to their end."""

    def __init__(self, folder: Path, remote: str, table_format: str) -> None:
        self._folder = folder
        self._format = table_format
        self._schema = f"killed_{table_format}"
        self._spark = reader(remote)
        self._spark.conf.set("spark.sql.session.timeZone", "UTC")
        self._killer = Killer(folder)
        write_project(folder, f"remote: '{remote}'", self._schema, (table_format,), NAMES)

    def build(self, day: int) -> None:
        set_sources(self._spark, events(day), products(day))
        with Project.open(self._folder) as project:
            assert project.build(execution_time=_end_of(day)).status == "succeeded"

    def day(self, day: int, number: int) -> dict[str, Any]:
        """Kill every model at its steps of a day, then let it finish; in the end there must be nothing left to do."""
        set_sources(self._spark, events(day), products(day))
        seen: dict[str, Any] = {name: self._model(name, day, number) for name in NAMES}
        with Project.open(self._folder) as project:
            return {"models": seen, "again": project.run(execution_time=_end_of(day)).status}

    def _model(self, name: str, day: int, number: int) -> dict[str, Any]:
        ends, during = [], []
        for step in kills_of(self._format, name)[number]:
            words = ["run", "--execution-time", _end_of(day), "--select", self._node(name)]
            ends.append(self._killer.kill(step, words))
            during.append(self._rows(name))
        with Project.open(self._folder) as project:
            last = project.run(execution_time=_end_of(day), select=[self._node(name)]).status
        return {"ends": ends, "during": during, "last": last, "after": self._rows(name)}

    def _node(self, name: str) -> str:
        return f"{self._schema}.{name}_{self._format}"

    def _rows(self, name: str) -> list[dict[str, Any]]:
        table = f"{name}_{self._format}"
        return rows_shown(self._spark, self._schema, [table])[table]


def _end_of(day: int) -> str:
    return f"2024-01-{day + 1:02d}"


def _as_if_large() -> None:
    """What large tables and long series of appends come to, small ones do in these processes."""
    layers.FEW, appends.EVERY = 1, 2


def _command(folder: str, step: str, words: list[str]) -> None:
    _as_if_large()
    os.chdir(folder)
    os.environ[STOP_VARIABLE] = f"kill:{step}"
    sys.argv = ["lamina", *words]
    lamina()


def main(folder: str, remote: str, table_format: str) -> None:
    _as_if_large()
    killed = Killed(Path(folder), remote, table_format)
    killed.build(1)
    tell([killed.day(number + 2, number) for number in range(DAYS)])


if __name__ == "__main__":
    main(*sys.argv[1:])
