"""Audits of tables that keep a history: outcomes belong to a snapshot, whatever becomes of a change in place."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lamina.app.ports.events import Waiting
from lamina.app.ports.loaded import LoadRequest
from lamina.app.requests import AuditsRequest
from lamina.errors import Location
from lamina.graph.model import AuditCall, AuditCode, SqlText
from lamina.graph.names import NodeName
from lamina.identity.fingerprint import audit_key
from lamina.planning.inputs import AuditOutcomes
from lamina.sql.builtin_audits import THIS_MODEL
from lamina.sql.fragment import Fragment
from lamina.timeline.interval import Instant, Intervals
from tests.kit.app import LEASE_TIME, Killed, Place, Process, january, orders
from tests.kit.state import days

if TYPE_CHECKING:
    from lamina.app.report import Report
    from tests.kit.engine import Row

ORDERS = NodeName("shop.orders")
DAYS = ["2024-01-01", "2024-01-02", "2024-01-03"]
FORMATS = pytest.mark.parametrize("table_format", ["delta", "iceberg"])


def built(table_format: str, *audits: AuditCall, now: str = "2024-01-04") -> Place:
    place = Place(replace(orders(table_format=table_format), audits=audits), sources={"raw.orders": january(31)})
    assert place.build(now).status == "succeeded"
    return place


def edit(place: Place, *audits: AuditCall) -> None:
    (model,) = place.project.models
    place.project.change(replace(model, audits=audits))


def call(name: str = "first", *, blocking: bool = True) -> AuditCall:
    query = f"SELECT * FROM {THIS_MODEL} WHERE {name}"
    text = SqlText(source=Fragment(text=query, location=Location(file="audits/a.sql", line=2)), expanded=query)
    return AuditCall(name=name, blocking=blocking, location=text.source.location, code=AuditCode(query=text))


def watched(place: Place, **options) -> tuple[Process, list[list[str]]]:
    """A process, and the units about which each audit is asked."""
    seen: list[list[str]] = []

    def look(_audit: str, _node: str, rows: list[Row]) -> int:
        seen.append(sorted(unit for unit, _ in rows))
        return 0

    return place.process(failing=look, **options), seen


def outcomes(place: Place, audit: AuditCall) -> AuditOutcomes:
    facts = place.store.load(LoadRequest(environments=("prod",))).facts
    (found,) = (known for known in facts.values() if known.node == ORDERS)
    return found.outcomes.get(audit_key(audit), AuditOutcomes())


def add_stranger(place: Place) -> None:
    """Rows that somebody else puts into the table; state knows nothing of them."""
    (lake,) = place.catalog.lakes.values()
    lake.line.append(lake._add((*lake.rows(), ("2024-01-02", "stranger"))))


@FORMATS
def test_what_is_built_is_asked_about_by_the_snapshot_that_state_names(table_format):
    place = built(table_format, call())
    add_stranger(place)
    edit(place, call(), call("second"))
    process, seen = watched(place)
    assert process.build("2024-01-04").status == "succeeded"
    assert seen == [DAYS]
    process, seen = watched(place)
    request = AuditsRequest(now=Instant.parse_iso("2024-01-04T00:00:00Z"))
    assert process.application().audit(request).status == "succeeded"
    assert seen == [DAYS, DAYS]


def test_a_batch_that_is_its_own_publish_records_its_audits_with_its_end():
    audit = call(blocking=False)
    place = built("delta", audit)
    process, seen = watched(place)
    assert process.run("2024-01-05").status == "succeeded"
    assert ("publish", "WriteThrough") in [(what, about.split()[0]) for what, about in place.catalog.statements]
    assert seen == [["2024-01-04"]]
    assert outcomes(place, audit).passed == Intervals.of([days(1, 4)])
    process, seen = watched(place)
    assert process.build("2024-01-05").status == "nothing_to_do"
    assert not seen


@pytest.mark.parametrize("point", ["write.decided", "write.written", "write.audited", "write.published", "write.done"])
def test_a_batch_that_is_its_own_publish_is_asked_about_by_whoever_finds_it_unasked(point):
    audit = call(blocking=False)
    place = built("delta", audit)
    with pytest.raises(Killed):
        place.dying(point).run("2024-01-05")
    place.clock.advance(LEASE_TIME)
    process, seen = watched(place)
    assert process.build("2024-01-05").exit_code == 0
    assert seen == ([] if point == "write.done" else [["2024-01-04"]])
    assert outcomes(place, audit).passed == Intervals.of([days(1, 4)])
    assert place.build("2024-01-05").status == "nothing_to_do"


@FORMATS
@pytest.mark.parametrize("point", ["write.decided", "write.published", "write.done"])
def test_a_change_that_recovery_carries_out_keeps_the_outcomes_of_its_decision(table_format, point):
    place = built(table_format, call())
    with pytest.raises(Killed):
        place.dying(point).run("2024-01-05")
    place.clock.advance(LEASE_TIME)
    process, seen = watched(place)
    assert process.build("2024-01-05").exit_code == 0
    assert not seen
    assert outcomes(place, call()).passed == Intervals.of([days(1, 4)])


def restate(process: Process) -> Report:
    return process.build("2024-01-04", restate=("shop.orders",), start="2024-01-02", end="2024-01-02")


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_decision_that_its_table_refuses_takes_its_outcomes_along(is_killed):
    place = built("iceberg", call())
    place.catalog.sources["raw.orders"]["2024-01-02"] = "late"
    process = place.process()
    process.stops._actions[("write.decided", 1)] = lambda: add_stranger(place)
    if is_killed:
        process.stops._actions[("recover.fenced", 1)] = process.die
        with pytest.raises(Killed):
            restate(process)
        assert outcomes(place, call()).passed == Intervals.of([days(1, 3)]), "as it was decided"
        place.clock.advance(LEASE_TIME)
        place.process().application()._settle("run", place.clock.now(), None)
    else:
        assert restate(process).status == "failed"
    assert not place.unsettled().attempts
    assert outcomes(place, call()).passed == Intervals.of([days(1), days(3)])


@FORMATS
def test_a_change_that_is_decided_while_audits_are_asked_has_them_asked_again_once_it_is_settled(table_format):
    place = built(table_format, call())
    edit(place, call(), call("second"))
    process, seen = watched(place)

    def rewrite() -> None:
        place.catalog.sources["raw.orders"]["2024-01-02"] = "late"
        edit(place, call())
        with pytest.raises(Killed):
            restate(place.dying("write.decided"))
        edit(place, call(), call("second"))

    def run_out(event: object) -> None:
        if isinstance(event, Waiting):
            assert outcomes(place, call("second")) == AuditOutcomes(), "what was found is void"
            place.clock.advance(LEASE_TIME)

    process.stops._actions[("audit.asked", 1)] = rewrite
    process.on_event = run_out
    assert process.build("2024-01-04").status == "succeeded"
    assert seen == [DAYS, DAYS]
    assert len(process.event(Waiting)) == 1
    assert outcomes(place, call("second")).passed == Intervals.of([days(1, 3)])
    assert place.build("2024-01-04").exit_code == 0
    assert dict(place.rows("shop.orders"))["2024-01-02"].endswith("<late>")
