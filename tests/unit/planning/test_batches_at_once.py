"""How many batches of a model run at once, and what is said where that is fewer than it asks for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lamina.planning.batches import USUAL_BATCHES_AT_ONCE, concurrency_of
from lamina.planning.plan import make_plan
from lamina.timeline.grain import Grain
from tests.kit.models import World, daily, model, ranges

DAYS = ranges(("2024-01-01T00:00:00Z", "2024-01-20T00:00:00Z"))


def own(**settings):
    kind = daily(**settings.pop("kind", {}))
    return model("shop.a", ["raw.a"], kind=kind, start="2024-01-01", partitioned_by=("ds",), **settings)


def said(entry, concurrency: int | None = 4) -> list[str]:
    inputs = replace(World(entry).inputs("2024-01-20"), concurrency=concurrency)
    return [notice.message for notice in make_plan(inputs).warnings if notice.code == "LAM-WARN-047"]


def test_a_model_gets_what_it_asks_for():
    for asked in (1, 2, 12):
        assert concurrency_of(own(kind={"batch_concurrency": asked}), DAYS, USUAL_BATCHES_AT_ONCE) == asked
    assert concurrency_of(own(), DAYS, USUAL_BATCHES_AT_ONCE) == USUAL_BATCHES_AT_ONCE


def test_batches_that_could_share_a_partition_run_one_after_the_other():
    asked = {"batch_concurrency": 12}
    hourly = own(kind={**asked, "batch_size": 1}, grain=Grain.HOUR)
    assert concurrency_of(hourly, DAYS, USUAL_BATCHES_AT_ONCE) == 1
    half = ranges(("2024-01-01T06:00:00Z", "2024-01-01T12:00:00Z"), ("2024-01-01T18:00:00Z", "2024-01-02T00:00:00Z"))
    assert concurrency_of(own(kind=asked), half, USUAL_BATCHES_AT_ONCE) == 1


def test_the_bound_of_the_project_is_said_with_what_lifts_it():
    (message,) = said(own(kind={"batch_concurrency": 12}))
    assert "asks for 12 batches at once" in message
    assert "`--concurrency 12`" in message
    assert "models/shop.a.sql:1" in message
    assert said(own(kind={"batch_concurrency": 12}), concurrency=12) == []
    assert said(own(kind={"batch_concurrency": 12}), concurrency=None) == []
    assert said(own()) == []


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (own(kind={"batch_concurrency": 2, "batch_size": 1}, grain=Grain.HOUR), "share a partition"),
        (own(kind={"batch_concurrency": 2}, table_format="iceberg"), "Iceberg"),
        (replace(own(kind={"batch_concurrency": 2}), reads=("raw.a", "shop.a")), "what the one before it wrote"),
    ],
)
def test_what_cannot_run_side_by_side_is_said(entry, why: str):
    (message,) = said(entry)
    assert why in message
