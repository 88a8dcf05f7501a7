"""Histories that are stopped and killed at every kill point: what was before, the command, and what must come out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING

from lamina.errors import Location
from lamina.graph.kinds import View
from lamina.graph.model import AuditCall, AuditCode, SqlText
from lamina.sql.builtin_audits import THIS_MODEL
from lamina.sql.fragment import Fragment
from tests.kit.app import Place, january, orders, reading
from tests.kit.models import daily

if TYPE_CHECKING:
    from collections.abc import Callable

    from lamina.app.report import Report
    from tests.kit.app import Process
    from tests.kit.engine import Row

Content = dict[str, tuple["Row", ...]]


@dataclass(frozen=True, slots=True)
class History:
    """`make` makes the place as it is before, `command` is what may be interrupted and then given again."""

    name: str
    make: Callable[[], Place]
    command: Callable[[Process], Report]

    def __str__(self) -> str:
        return self.name

    def prepare(self) -> Place:
        return _prepared(self).twin()


@cache
def _prepared(history: History) -> Place:
    return history.make()


def store_with_everything(table_format: str = "parquet", **kind: object) -> Place:
    """Every kind: an incremental model in batches, another below it, a view, a full model, and one apart."""
    return Place(
        orders(kind={"batch_size": 2, **kind}, table_format=table_format),
        reading("shop.daily", "shop.orders", kind=daily(), partitioned_by=("month",), table_format=table_format),
        reading("shop.shown", "shop.orders", kind=View()),
        reading("shop.totals", "shop.daily", table_format=table_format),
        reading("shop.other", "raw.other"),
        sources={"raw.orders": january(31), "raw.other": january(1)},
    )


def built(now: str = "2024-01-05", table_format: str = "parquet") -> Place:
    place = store_with_everything(table_format)
    place.build(now)
    return place


def with_late_rows(table_format: str = "parquet") -> Place:
    """Two days of the source have changed since, one has become empty."""
    place = built(table_format=table_format)
    place.catalog.sources["raw.orders"] |= {"2024-01-02": "late2", "2024-01-03": "late3"}
    del place.catalog.sources["raw.orders"]["2024-01-04"]
    return place


def with_a_change() -> Place:
    place = built()
    place.project.change(orders("y", kind={"batch_size": 2}))
    return place


def with_a_removed_model() -> Place:
    place = built()
    place.project.remove("shop.other")
    return place


def with_a_new_audit() -> Place:
    """The same rows, and an audit that nobody has asked about them."""
    place = built()
    query = f"SELECT * FROM {THIS_MODEL}"
    text = SqlText(source=Fragment(text=query, location=Location(file="audits/a.sql", line=1)), expanded=query)
    call = AuditCall(name="plausible", code=AuditCode(query=text))
    place.project.change(
        replace(orders(kind={"batch_size": 2}), audits=(call,)),
        replace(reading("shop.daily", "shop.orders", kind=daily(), partitioned_by=("month",)), audits=(call,)),
        reading("shop.other", "raw.other", text="y"),
    )
    return place


def restate(process: Process) -> Report:
    return process.build("2024-01-05", restate=("shop.orders",), start="2024-01-02", end="2024-01-04")


HISTORIES = (
    History("first build", store_with_everything, lambda process: process.build("2024-01-05")),
    History("next day", built, lambda process: process.run("2024-01-06")),
    History("restatement", with_late_rows, restate),
    History("everything again", with_late_rows, lambda process: process.build("2024-01-05", force=True)),
    History("changed query", with_a_change, lambda process: process.build("2024-01-05")),
    History("new audit", with_a_new_audit, lambda process: process.build("2024-01-06")),
    History("everything again, nothing new", built, lambda process: process.build("2024-01-05", force=True)),
    History("removed model", with_a_removed_model, lambda process: process.build("2024-01-05")),
    History("new environment", built, lambda process: process.build("2024-01-05", "dev")),
    *(
        History(f"{name}, {table_format}", partial(make, table_format=table_format), command)
        for table_format in ("delta", "iceberg")
        for name, make, command in (
            ("first build", store_with_everything, lambda process: process.build("2024-01-05")),
            ("next day", built, lambda process: process.run("2024-01-06")),
            ("restatement", with_late_rows, restate),
        )
    ),
)


class Readers:
    """Readers of every environment, who look whenever something happens: each unit is the old or the new one."""

    def __init__(self, place: Place, before: Content, after: Content) -> None:
        self._place = place
        self._allowed = {name: {*before.get(name, ()), *after.get(name, ())} for name in before.keys() | after.keys()}
        self.looks = 0

    def __call__(self) -> None:
        for name, rows in self._place.catalog.everything().items():
            self.looks += 1
            strange = [row for row in rows if row not in self._allowed[name]]
            assert not strange, f"`{name}` shows {strange}"
            units = [unit for unit, _ in rows]
            assert len(units) == len(set(units)), f"`{name}` shows a unit twice: {units}"


def uninterrupted(history: History) -> tuple[Content, Content, dict[str, int]]:
    """What readers see before and after the command when nothing goes wrong, and the kill points it goes through."""
    place = history.prepare()
    before = place.catalog.everything()
    process = place.process()
    report = history.command(process)
    assert report.status == "succeeded"
    return before, place.catalog.everything(), dict(process.stops.reached)
