"""Trying again what failed in a way that may pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from lamina.errors import LaminaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lamina.app.ports.events import Emit, Event

T = TypeVar("T")

TRIES = 3
"""How often something that fails in a way that may pass is tried."""
PAUSE_GROWTH = 3
"""By how much each pause between tries is longer than the one before."""


def retried(
    work: Callable[[], T],
    emit: Emit,
    event: Callable[..., Event],
    *,
    pause: float,
    is_stopped_within: Callable[[float], bool],
) -> T:
    """Do the work; what fails in a way that may pass is tried again after a pause, which grows.

    `event` makes what is told of a failed try from its number, `attempt`, and its `error`. A command that is stopped in
    a pause tries no more.
    """
    for attempt in range(1, TRIES + 1):
        try:
            return work()
        except LaminaError as error:
            if not error.is_retryable or attempt == TRIES or is_stopped_within(pause):
                raise
            emit(event(attempt=attempt, error=error))
            pause *= PAUSE_GROWTH
    raise AssertionError("the last try returns or raises")
