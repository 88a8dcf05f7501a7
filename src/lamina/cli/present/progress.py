"""Progress while a command works."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from lamina.app.ports.events import Event
    from lamina.cli.present.drawn_events import DrawnEvents


class Progress:
    """Draws events on stderr. `show` may be called from several threads; a context manager cleans up at the end.

    What draws is imported with the first event: most commands only look, and nothing happens in them.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._drawn: DrawnEvents | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._clear()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Nothing moves on the screen meanwhile, so that a question can be asked."""
        with self._lock:
            self._clear()
            yield

    def show(self, event: Event) -> None:
        """Draw one event."""
        with self._lock:
            if self._drawn is None:
                from lamina.cli.present.drawn_events import DrawnEvents

                self._drawn = DrawnEvents(self._console)
            self._drawn.draw(event)

    def _clear(self) -> None:
        if self._drawn is not None:
            self._drawn.clear()
