"""A version as the use cases write it, without the use cases."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace

from lamina.app.ports.engine import (
    Base,
    GenerationRequest,
    RowSource,
    SqlQuery,
    Statement,
    TableOptions,
    WriteRequest,
    Written,
)
from lamina.app.ports.published import AddPartitions, Head, PartitionKey, switch_to
from lamina.app.writing.contents import contents_after
from lamina.app.writing.layers import after_adding, lay_over
from lamina.errors import Location
from lamina.graph.formats import PARQUET
from lamina.graph.kinds import TimeColumn
from lamina.graph.model import Column
from lamina.graph.names import NodeName
from lamina.identity.naming import PhysicalName, batch_folder, generation_name
from lamina.spark.engine import SparkEngine
from lamina.timeline.grain import Grain
from lamina.timeline.interval import Interval

DAY = ("2024-01-02", "2024-01-03")
THREE_DAYS = ("2024-01-01", "2024-01-04")
THREE_ROWS = "SELECT * FROM VALUES (1, DATE'2024-01-01'), (2, DATE'2024-01-02'), (3, DATE'2024-01-03') v(id, ds)"
NOTHING = "SELECT 1 AS id, DATE'2024-01-02' AS ds WHERE false"

_numbers = itertools.count(1)


def next_number() -> int:
    """A number that was not used before."""
    return next(_numbers)


def on_lines(*texts: str) -> tuple[Statement, ...]:
    """Statements, one on each line of a file."""
    return tuple(
        Statement(sql=text, location=Location(file="models/t.sql", line=line)) for line, text in enumerate(texts, 5)
    )


@dataclass
class Table:
    """Rows are written aside first, then published; head and manifest are kept here."""

    engine: SparkEngine
    schema: str
    name: str = "t"
    partitioned_by: tuple[str, ...] = ()
    time_column: TimeColumn | None = None
    columns: tuple[Column, ...] | None = None
    comments: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    measured_in: Grain | None = None
    """Units whose rows are measured and remembered, so that they are compared without reading them."""
    head: Head | None = None
    manifest: dict[PartitionKey, str] = field(default_factory=dict)
    published_by: str = ""

    @property
    def physical(self) -> PhysicalName:
        return PhysicalName(f"{self.schema}__lamina.{self.name}__v_0123456789abcdef")

    def request(self, rows: str | RowSource, interval: tuple[str, str] | None = None) -> WriteRequest:
        number = next_number()
        time = Interval.from_pair(interval) if interval else None
        return WriteRequest(
            node=NodeName(f"{self.schema}.{self.name}"),
            location=Location(file="models/t.sql", line=1),
            attempt=number,
            physical=self.physical,
            folder=batch_folder(self.physical, number, "cafe0001"),
            rows=SqlQuery(sql=rows) if isinstance(rows, str) else rows,
            columns=self.columns,
            comments=self.comments,
            partitioned_by=self.partitioned_by,
            interval=time,
            measured=tuple(self.measured_in.units(time)) if self.measured_in and time else (),
            time_column=self.time_column,
            base=Base(head=self.head, manifest=dict(self.manifest)) if self.head else None,
            settings=self.settings,
            table=TableOptions(generation=generation_name(self.physical, number), table_format=PARQUET),
        )

    def write(self, rows: str | RowSource, interval: tuple[str, str] | None = None) -> Written:
        """Write and publish one batch."""
        request = self.request(rows, interval)
        written = self.engine.write(request)
        self.publish(request, written)
        return written

    def publish(self, request: WriteRequest, written: Written) -> None:
        is_addition = (
            self.head is not None
            and request.interval is not None
            and not written.removed
            and not set(written.folders) & set(self.manifest)
            and self.head.shape == written.shape
        )
        base = Base(head=self.head, manifest=dict(self.manifest)) if self.head else None
        if request.interval is None:
            self.manifest = {}
        for key in written.removed:
            self.manifest.pop(key, None)
        self.manifest.update(written.folders)
        generation = generation_name(self.physical, request.attempt)
        beneath = lay_over(base, written) if base is not None and request.interval is not None else None
        if is_addition and base is not None:
            generation, beneath = base.head.generation, after_adding(base, written.folders)
        self.head = Head(
            physical=self.physical,
            sequence=(self.head.sequence if self.head else 0) + 1,
            generation=generation,
            attempt=request.attempt,
            shape=written.shape,
            contents=contents_after(request.interval, request.base, written),
            beneath=beneath,
        )
        if is_addition:
            self.engine.publish(
                AddPartitions(
                    physical=self.physical, generation=generation, shape=written.shape, partitions=written.folders
                )
            )
            self.published_by = "partitions"
            return
        keys = self.manifest if beneath is None or beneath.above is None else beneath.above
        self.engine.create_generation(
            GenerationRequest(
                physical=self.physical,
                shape=written.shape,
                manifest={key: self.manifest[key] for key in keys},
                folder=request.folder,
                table=request.table,
            )
        )
        self.engine.publish(switch_to(self.head))
        self.published_by = "generation" if beneath is None else "layer"

    def rows(self, select: str = "*") -> list[tuple[object, ...]]:
        """What a reader sees, in order."""
        found = self.engine.query(f"SELECT {select} FROM {self.physical}", limit=None).rows
        return sorted(found, key=repr)


def by_day(table: Table, **changes: object) -> Table:
    """The same table, laid out by its days."""
    return replace(table, **{"partitioned_by": ("ds",), "time_column": TimeColumn(name="ds"), **changes})
