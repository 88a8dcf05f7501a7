"""Whether models begin before they end, which words such as `yesterday` decide anew every day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.errors import BadSchedule, raise_all
from lamina.timeline.parse import as_end, as_start, parse_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lamina.errors import LaminaError, Location
    from lamina.graph.model import Model
    from lamina.timeline.interval import Instant


def check_graph_times(models: Iterable[Model], now: Instant) -> None:
    """Raise for every model that ends before it starts, words such as `yesterday` being read at `now`."""
    raise_all(problem for model in models if model.end is not None for problem in check_times(model, now))


def check_times(model: Model, now: Instant, location: Location | None = None) -> Iterator[LaminaError]:
    """An error when the model ends before it starts, words such as `yesterday` being read at `now`."""
    if model.start is None or model.end is None:
        return
    start = as_start(parse_time(model.start, relative_to=now))
    end = as_end(parse_time(model.end, relative_to=now))
    if end <= start:
        yield BadSchedule(
            f"`end` {model.end} is before `start` {model.start}",
            hint="choose an end after the start; a date given as end includes that whole day",
            location=location or model.location,
            node=model.name,
        )
