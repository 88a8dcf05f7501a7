"""Lookback in commands about part of the time: only what was computed before is looked at again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lamina.graph.names import NodeName
from lamina.sql.lineage.input_windows import InputWindow, Offset
from tests.kit.app import Place, january, orders, reading
from tests.kit.models import daily, ranges

OWN_DAY = InputWindow(lower=Offset(base="start"), upper=Offset(base="end"))


def place() -> Place:
    below = reading("shop.daily", "shop.orders", kind=daily(lookback=2), partitioned_by=("ds",))
    return Place(
        orders(),
        replace(below, windows={NodeName("shop.orders"): OWN_DAY}),
        sources={"raw.orders": january(31)},
    )


@pytest.mark.parametrize("environment", [None, "dev"])
def test_history_that_is_limited_at_first_is_whole_after_the_next_build(environment: str | None):
    one = place()
    name = environment or "prod"
    one.build("2024-01-10", environment, start="2024-01-05")
    assert one.covered("shop.daily", name) == one.covered("shop.orders", name) == ranges(("2024-01-05", "2024-01-10"))
    one.build("2024-01-10", environment)
    assert one.rows("shop.daily", name) == tuple(
        (f"2024-01-{day:02}", f"daily:x<orders:x<a{day}>>") for day in range(1, 10)
    )


def test_what_lies_before_the_start_of_a_command_is_looked_at_again_where_it_was_computed():
    one = place()
    one.build("2024-01-05")
    one.catalog.sources["raw.orders"]["2024-01-04"] = "late"
    process = one.process()
    process.run("2024-01-06", start="2024-01-05")
    assert [at.to_pair()[0][:10] for node, at in process.engine.writes if node == "shop.daily"] == ["2024-01-03"]
