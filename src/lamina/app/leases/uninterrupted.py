"""Work that an interrupt must not tear apart."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def uninterrupted(work: Callable[[], T], stop: Callable[[], object]) -> T:
    """Do the work in a thread of its own; an interrupt only ever reaches the thread that waits here.

    After an interrupt `stop` asks the work to end soon, its end is awaited, and the interrupt is raised again. A second
    one is not awaited.
    """
    errand = _Errand(work)
    thread = threading.Thread(target=errand.run, name="lamina-uninterrupted")
    try:
        thread.start()
        errand.wait(thread)
    except BaseException:
        stop()
        errand.wait(thread)
        raise
    if errand.error is not None:
        raise errand.error
    return errand.answers[0]


class _Errand(Generic[T]):
    """What the thread does and what came of it."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._is_over = threading.Event()
        self.answers: list[T] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.answers.append(self._work())
        except BaseException as error:  # noqa: BLE001  # raised again by the thread that waits
            self.error = error
        finally:
            self._is_over.set()

    def wait(self, thread: threading.Thread) -> None:
        """Wait until the work is over, or the thread turns out never to have started.

        In portions, because a wait without end cannot be interrupted everywhere; and not by `join`, which an interrupt
        may leave with the thread taken for ended.
        """
        while not self._is_over.wait(1):
            if thread.ident is None:
                return
