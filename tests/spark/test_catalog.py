"""What is asked of the catalog once, however many ask at the same time."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import cast

from pyspark.sql import Row

from lamina.spark.catalog.catalog import Catalog
from lamina.spark.sessions.session import Sessions


class SlowCatalog:
    """Sessions and session in one: answers where a schema lies, after a while, and remembers what it was asked."""

    shares_disks = True

    def __init__(self) -> None:
        self.asked: list[str] = []

    def remember_place(self, schema: str, location: str) -> None:
        """Nothing is kept."""

    def catalog(self) -> SlowCatalog:
        return self

    def sql(self, statement: str) -> SlowCatalog:
        self.asked.append(statement)
        time.sleep(0.05)
        return self

    def collect(self) -> list[Row]:
        return [Row("Location", "file:/warehouse/s.db")]


def test_batches_that_begin_together_look_at_their_schema_once() -> None:
    sessions = SlowCatalog()
    catalog = Catalog(cast("Sessions", sessions))
    with ThreadPoolExecutor(3) as pool:
        found = set(pool.map(catalog.location_of, ["s", "s", "s"]))
    assert found == {"file:/warehouse/s.db"}
    assert sessions.asked == ["DESCRIBE SCHEMA `s`"]
