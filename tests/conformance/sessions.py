"""The sorts of Spark session that Lamina works in, for programs that do the same in each of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.connect.observation import Observation as ObservationOverConnect
from pyspark.sql.observation import Observation

from lamina import Project
from lamina.timeline.interval import Instant
from tests.conformance.project import FORMATS
from tests.kit.connect import reader
from tests.spark import handed_in

FORMATS_IN = {
    "over Connect": FORMATS,
    "of its own": FORMATS,
    "handed in for Delta": ("parquet", "delta"),
    "handed in for Iceberg": ("parquet", "iceberg"),
}
"""Which formats a sort of session has: what Delta and Iceberg document cannot be had in one session."""
PAIRS = [(sort, table_format) for sort, formats in FORMATS_IN.items() for table_format in formats]

QUICK = {"spark.databricks.delta.snapshotPartitions": "1", "spark.ui.showConsoleProgress": "false"}
"""Fifty tasks for each look at a small table say nothing about rows, and take minutes."""
SeenIn = Callable[[str], dict[str, Any]]
"""What a program has seen in a sort of session, which it is run in when that is first asked."""


class Sessions:
    """Opens projects, and sessions for those who only read, in one sort of session."""

    def __init__(self, sort: str, folder: Path, remote: str) -> None:
        self.formats = FORMATS_IN[sort]
        self.observation = ObservationOverConnect if sort == "over Connect" else Observation
        self._folder, self._remote = folder, remote if sort == "over Connect" else None
        self._handed: SparkSession | None = None
        self._standing: Project | None = None
        if sort.startswith("handed in"):
            self._handed = handed_in.session(folder.parent, self.formats[-1], QUICK)

    @property
    def spark(self) -> str:
        """What `lamina.yaml` says about Spark."""
        return f"remote: '{self._remote}'" if self._remote else "master: 'local[2]'"

    def project(self) -> Project:
        return Project.open(self._folder, spark=self._handed)

    def session(self) -> SparkSession:
        """For a reader; in the one that is handed in they are where its owner is."""
        session = self._handed
        if self._remote:
            session = reader(self._remote)
        elif session is None:
            if self._standing is None:
                # Whoever holds on to a project keeps its Spark running.
                self._standing = self.project()
                self._standing._application.start_spark(Instant.parse_iso("2024-01-01"))
            session = self._standing.query("SELECT 1 AS one").sparkSession.newSession()
        session.conf.set("spark.sql.session.timeZone", "UTC")
        return session

    def close(self) -> None:
        if self._standing:
            self._standing.close()
