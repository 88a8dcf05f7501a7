"""Statements that change something are lost, one after the other, for every kind in every table format.

The connection to the server breaks at a statement: it never arrives, or is carried out and its answer gets lost; once,
or at the next try again. Commands are repeated until one succeeds, as a scheduler would.
"""

from __future__ import annotations

import itertools
import os
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.errors.exceptions.connect import SparkConnectGrpcException
from pyspark.sql.connect.client.core import SparkConnectClient

from lamina import LaminaError, Project
from lamina.spark.formats import appends
from tests.conformance.kills import events, products
from tests.conformance.project import FORMATS, MODELS, rows_shown, set_sources, write_project
from tests.kit.connect import reader
from tests.kit.told import tell

NAMES = tuple(MODELS)
SCHEMA = "faulty"
TABLES = [f"{name}_{table_format}" for name in NAMES for table_format in FORMATS]
MOST_COMMANDS = 4
"""After so many, one must have succeeded."""
_CHANGES = re.compile(r"\s*(?:CREATE|ALTER|DROP|INSERT|MERGE|DELETE|CALL)\b")
_TABLE = re.compile(r"(\w+)__v_[0-9a-f]{16}")


@dataclass(frozen=True)
class Loss:
    """Which statement of every model is lost on one day, counted from 0, and how."""

    statement: int
    lands: bool
    times: int = 1


# Carried out, and nobody knows: that is where rows would be doubled. Every combination takes four times as long.
_USUAL = (
    *(Loss(number, lands=True) for number in range(4)),
    Loss(0, lands=True, times=2),
    Loss(1, lands=False, times=2),
)
_ALL = tuple(Loss(number, lands, times) for number, lands, times in itertools.product(range(6), (True, False), (1, 2)))
LOSSES = _ALL if os.environ.get("LAMINA_ALL_FAULTS") else _USUAL


@dataclass
class Faults:
    """Loses statements while a day is processed."""

    loss: Loss
    sent: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    guard: threading.Lock = field(default_factory=threading.Lock)

    def is_lost(self, command: Any) -> bool:
        table = _changed_by(command)
        if table not in TABLES:
            return False
        with self.guard:
            number = self.sent[table]
            self.sent[table] += 1
            is_lost = self.loss.statement <= number < self.loss.statement + self.loss.times
            self.lost[table] += is_lost
        return is_lost

    def around(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def execute(client: Any, command: Any, *arguments: Any) -> Any:
            if not self.is_lost(command):
                return real(client, command, *arguments)
            if self.loss.lands:
                real(client, command, *arguments)
            raise SparkConnectGrpcException("the connection broke")

        return execute


def _changed_by(command: Any) -> str | None:
    """The model whose table a command of a client changes."""
    match command.WhichOneof("command_type"):
        case "sql_command":
            text = command.sql_command.input.sql.query or command.sql_command.sql
            if _CHANGES.match(text) is None:
                return None
        case "write_operation":
            text = command.write_operation.path or command.write_operation.table.table_name
        case "write_operation_v2":
            text = command.write_operation_v2.table_name
        case _:
            return None
    found = _TABLE.search(text)
    return found[1] if found else None


def main(folder: str, remote: str) -> None:
    # Some days take appended batches along.
    appends.EVERY = 2
    spark = reader(remote)
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    write_project(Path(folder), f"remote: '{remote}'", SCHEMA)
    set_sources(spark, events(1), products(1))
    with Project.open(folder) as project:
        assert project.build(execution_time="2024-01-02").status == "succeeded"
    real, told = SparkConnectClient.execute_command, []
    for number, loss in enumerate(LOSSES, start=2):
        set_sources(spark, events(number), products(number))
        faults, now = Faults(loss), f"2024-01-{number + 1:02d}"
        SparkConnectClient.execute_command = faults.around(real)
        ends: list[str] = []
        shown: list[dict[str, Any]] = []
        while len(ends) < MOST_COMMANDS and not {"succeeded", "nothing_to_do"} & {*ends}:
            with Project.open(folder) as project:
                try:
                    ends.append(project.run(execution_time=now).status)
                except LaminaError as error:
                    ends.append(f"failed: {error.message}")
            shown.append(rows_shown(spark, SCHEMA, TABLES))
        SparkConnectClient.execute_command = real
        with Project.open(folder) as project:
            again = project.run(execution_time=now).status
        told.append({"ends": ends, "lost": faults.lost, "again": again, "shown": shown})
    tell(told)


if __name__ == "__main__":
    main(*sys.argv[1:])
