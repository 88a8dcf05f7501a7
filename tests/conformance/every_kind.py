"""Builds, changes and failures of every kind in every format, in a process of its own: what answered, what was seen."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException

from tests.conformance.project import MODELS, Event, Product, rows_shown, set_sources, write_project
from tests.conformance.sessions import Sessions
from tests.kit.told import tell

EVENTS: list[Event] = [
    (1, "a", "2024-01-01", 10),
    (2, "b", "2024-01-01", 20),
    (3, "a", "2024-01-02", 30),
    (4, "c", "2024-01-03", 40),
    (5, "a", "2024-01-03", 5),
]
PRODUCTS: list[Product] = [(1, "tea", 3, "2024-01-01 00:00:00"), (2, "cake", 5, "2024-01-01 00:00:00")]
LATER_PRODUCTS: list[Product] = [(1, "tea", 4, "2024-01-03 08:00:00"), (3, "pie", 6, "2024-01-03 09:00:00")]
RESTATED: list[Event] = [*EVENTS[:2], (3, "a", "2024-01-02", 31), (6, "b", "2024-01-02", 1)]
"""One day has other rows, another one has none any more."""
FAILING: list[Event] = [*RESTATED, (7, "b", "2024-01-04", None), (8, "boom", "2024-01-04", 1)]
MENDED: list[Event] = [(7, "b", "2024-01-04", 7), (9, "c", "2024-02-01", 0)]
"""What came before is not read any more, and would vanish if it were computed again."""

SCHEMA = "story"


class Reader(threading.Thread):
    """Reads every table, all the while, and remembers whatever it saw of each."""

    def __init__(self, sessions: Sessions) -> None:
        super().__init__(daemon=True)
        self._spark, self._formats = sessions.session(), sessions.formats
        self._is_over = threading.Event()
        self.reads = 0
        self.errors: list[str] = []
        self.states: dict[str, list[Any]] = {table: [] for table in tables_in(self._formats)}

    def run(self) -> None:
        while not self._is_over.wait(0.1):
            for table_format in self._formats:
                self._look(tables_in((table_format,)))

    def _look(self, tables: list[str]) -> None:
        try:
            found = rows_shown(self._spark, SCHEMA, tables)
        except PySparkException as error:
            self.errors.append(str(error)[:500])
            return
        self.reads += len(tables)
        for table, rows in found.items():
            if rows not in self.states[table]:
                self.states[table].append(rows)

    def finish(self) -> None:
        self._is_over.set()
        self.join(60)


class Story:
    """Steps with what they answered and what readers saw after them."""

    def __init__(self, folder: Path, sessions: Sessions) -> None:
        write_project(folder, sessions.spark, SCHEMA, sessions.formats)
        self.sessions, self.spark = sessions, sessions.session()
        self.steps: dict[str, dict[str, Any]] = {}

    def step(self, name: str, command: str, at: str, **flags: Any) -> None:
        with self.sessions.project() as project:
            report = getattr(project, command)(execution_time=at, **flags).to_dict()
        nodes = {node["name"].removeprefix(f"{SCHEMA}."): node for node in report["nodes"]}
        failed = {key: node["error"]["message"] for key, node in nodes.items() if node["status"] == "failed"}
        rows = self.rows()
        self.steps[name] = {"statuses": [report["status"]], "failed": failed, "rows": rows}

    def two_at_once(self, name: str, at: str) -> None:
        """Two commands that want the same."""
        answers: list[str] = []

        def run() -> None:
            with self.sessions.project() as project:
                answers.append(project.run(execution_time=at).status)

        threads = [threading.Thread(target=run) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.steps[name] = {"statuses": sorted(answers), "failed": {}, "rows": self.rows()}

    def rows(self) -> dict[str, Any]:
        return rows_shown(self.spark, SCHEMA, tables_in(self.sessions.formats))


def tables_in(formats: tuple[str, ...]) -> list[str]:
    return [f"{name}_{table_format}" for name in MODELS for table_format in formats]


def main(place: str, sort: str, remote: str) -> None:
    folder = Path(place)
    sessions = Sessions(sort, folder, remote)
    story = Story(folder, sessions)
    set_sources(story.spark, EVENTS, PRODUCTS)
    story.step("first load", "build", "2024-01-03")
    story.step("rerun", "build", "2024-01-03")
    reader = Reader(sessions)
    reader.start()
    set_sources(story.spark, EVENTS, LATER_PRODUCTS)
    story.step("next interval", "run", "2024-01-04")
    set_sources(story.spark, RESTATED, LATER_PRODUCTS)
    restated = [f"{SCHEMA}.{name}_{table_format}" for name in ("daily", "plain") for table_format in sessions.formats]
    story.step("restate", "build", "2024-01-04", restate=restated, start="2024-01-02", end="2024-01-03")
    set_sources(story.spark, FAILING, LATER_PRODUCTS)
    failing = [f"{SCHEMA}.{name}_{table_format}" for name in ("daily", "plain") for table_format in sessions.formats]
    story.step("failing", "run", "2024-01-05", select=failing)
    set_sources(story.spark, MENDED, LATER_PRODUCTS)
    story.two_at_once("two writers", "2024-01-05")
    reader.finish()
    tell({"steps": story.steps, "reads": reader.reads, "errors": reader.errors[:20], "states": reader.states})
    sessions.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
