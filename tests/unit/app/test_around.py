"""What stands around a query: what the engine is asked to do about it, and what it holds back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from unittest.mock import patch

import pytest

from lamina.app.ports.engine import AnalysisOutcome, AnalysisRequest, WriteRequest, Written
from lamina.errors import Location
from lamina.graph.kinds import View
from lamina.graph.model import FunctionCall, Model, SqlText
from lamina.sql.fragment import Fragment
from lamina.sql.session_statements import prepares_session
from tests.kit.app import Place, january, orders, reading
from tests.kit.engine import FakeEngine

HOOK = FunctionCall(name="note")


def around(entry: Model, before: str = "", after: str = "", **changes: object) -> Model:
    texts = [
        tuple(
            SqlText(source=Fragment(text=text, location=Location(file=entry.location.file)), expanded=text)
            for text in each.split(";")
            if text
        )
        for each in (before, after)
    ]
    body = replace(entry.body, pre_statements=texts[0], post_statements=texts[1])
    return replace(entry, body=body, **changes)


def asked(place: Place, now: str) -> tuple[list[AnalysisRequest], list[WriteRequest]]:
    """What a build asks of the engine."""
    analysed: list[AnalysisRequest] = []
    written: list[WriteRequest] = []
    analyse, write = FakeEngine.analyse, FakeEngine.write

    def watch_analyse(engine: FakeEngine, requests: Sequence[AnalysisRequest]) -> tuple[AnalysisOutcome, ...]:
        analysed.extend(requests)
        return analyse(engine, requests)

    def watch_write(engine: FakeEngine, request: WriteRequest) -> Written:
        written.append(request)
        return write(engine, request)

    with patch.object(FakeEngine, "analyse", watch_analyse), patch.object(FakeEngine, "write", watch_write):
        assert place.build(now).status == "succeeded"
    return analysed, written


HOLDING = {
    "nothing": ({}, False),
    "a statement before": ({"before": "SET a = 1"}, False),
    "a hook before": ({"pre_hooks": (HOOK,)}, False),
    "a statement after": ({"after": "DROP VIEW x"}, True),
    "a hook after": ({"post_hooks": (HOOK,)}, True),
}


@pytest.mark.parametrize(("given", "is_held"), HOLDING.values(), ids=HOLDING)
def test_rows_are_not_shown_before_what_follows_the_query(given: dict[str, object], is_held: bool) -> None:
    place = Place(around(orders(table_format="delta"), **given), sources={"raw.orders": january(31)})
    asked(place, "2024-01-04")
    _, (request,) = asked(place, "2024-01-05")
    assert (request.write_through is None) is is_held


def test_hooks_are_handed_over_with_the_time_of_the_batch() -> None:
    place = Place(orders(pre_hooks=(HOOK,), post_hooks=(HOOK, HOOK)), sources={"raw.orders": january(31)})
    _, (request,) = asked(place, "2024-01-04")
    hooks = request.hooks
    assert hooks is not None
    assert (hooks.before, hooks.after) == ((HOOK,), (HOOK, HOOK))
    assert [moment[:10] for moment in hooks.time.interval.to_pair()] == ["2024-01-01", "2024-01-04"]


CHECKED = {
    "nothing": ({}, []),
    "what prepares": ({"before": "SET a = 1; CREATE TEMP VIEW v AS SELECT 1"}, 2),
    "what does more": ({"before": "SET a = 1; INSERT INTO t VALUES (1)"}, None),
    "a hook": ({"pre_hooks": (HOOK,)}, None),
    "what follows": ({"after": "INSERT INTO t VALUES (1)", "post_hooks": (HOOK,)}, []),
}


@pytest.mark.parametrize(("given", "statements"), CHECKED.values(), ids=CHECKED)
def test_a_check_prepares_and_does_nothing_else(given: dict[str, object], statements: int | list[str] | None) -> None:
    place = Place(around(orders(), **given), sources={"raw.orders": january(31)})
    analysed, _ = asked(place, "2024-01-04")
    if statements is None:
        assert analysed == []
        return
    (request,) = analysed
    assert len(request.rows.pre_statements) == (statements or 0)
    assert (request.rows.post_statements, request.hooks) == ((), None)


def test_what_stands_around_a_view_is_run_when_it_is_set() -> None:
    shown = around(
        reading("shop.shown", "shop.orders", kind=View()), before="SET a = 1", after="SET a = 2", pre_hooks=(HOOK,)
    )
    place = Place(orders(), shown, sources={"raw.orders": january(31)})
    analysed, _ = asked(place, "2024-01-04")
    (request,) = [each for each in analysed if each.node == "shop.shown" and each.hooks is not None]
    assert [each.sql for each in (*request.rows.pre_statements, *request.rows.post_statements)] == [
        "SET a = 1",
        "SET a = 2",
    ]
    assert request.hooks.before == (HOOK,)


PREPARING = [
    "CREATE TEMPORARY VIEW v AS SELECT 1",
    "create or replace temp view v as select 1",
    "CREATE TEMPORARY FUNCTION f AS 'x.Y'",
    "-- why\n/* and\nhow */ SET spark.sql.ansi.enabled = false",
    "USE shop",
    "DECLARE n INT DEFAULT 1",
]
DOING = [
    "CREATE TABLE t (x INT)",
    "CREATE VIEW v AS SELECT 1",
    "CREATE GLOBAL TEMPORARY VIEW v AS SELECT 1",
    "-- SET a = 1\nDELETE FROM t",
    "/* USE x */ INSERT INTO t VALUES (1)",
    "SETTLE t",
]


@pytest.mark.parametrize(("statement", "expected"), [(each, each in PREPARING) for each in (*PREPARING, *DOING)])
def test_statements_that_only_prepare_a_session_are_known(statement: str, expected: bool) -> None:
    assert prepares_session(statement) is expected
