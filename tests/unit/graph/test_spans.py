"""What models that are computed together say about time, however often one of them is reached."""

from __future__ import annotations

import pytest

from lamina.graph.kinds import Embedded, View
from lamina.graph.model import Model
from lamina.graph.spans import asks_the_clock, uses_span
from tests.kit.models import graph, model

LAYERS = 40


def lattice(kind: Embedded | View, first: str) -> tuple[dict[str, Model], Model]:
    """Two models in each layer, which read both of the layer below: there are very many ways to the first."""
    layers = [[model(f"shop.{side}0", query=first, kind=kind) for side in "ab"]]
    for number in range(1, LAYERS):
        below = [each.name for each in layers[-1]]
        layers.append([model(f"shop.{side}{number}", below, kind=kind) for side in "ab"])
    last = model("shop.last", [each.name for each in layers[-1]])
    return dict(graph(*(each for layer in layers for each in layer), last).models), last


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("query", "expected"), [("SELECT now() AS x", True), ("SELECT 1 AS x", False)])
@pytest.mark.parametrize("kind", [Embedded(), View()])
def test_the_clock_is_asked_through_layers_of_models(kind: Embedded | View, query: str, expected: bool) -> None:
    assert asks_the_clock(*lattice(kind, query)) is expected


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("kind", "query", "expected"),
    [
        (Embedded(), "SELECT @start_ds AS x", True),
        (Embedded(), "SELECT 1 AS x", False),
        # A view has rows of its own making, whatever its readers are about.
        (View(), "SELECT @start_ds AS x", False),
    ],
)
def test_a_span_is_used_through_layers_of_embedded_models(kind: Embedded | View, query: str, expected: bool) -> None:
    assert uses_span(*lattice(kind, query)) is expected
