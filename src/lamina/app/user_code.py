"""The fence around code that users wrote: what would end the process becomes an exception of that code.

Everything that calls a user's function, or runs a user's module, does it through `call_fenced`. `sys.exit()` in a
macro, or an exception that is no `Exception`, is then a failure of that macro like any other, and never the exit code
of the command. Ctrl-C still interrupts.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from lamina.errors import LaminaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")


class CodeStopped(Exception):
    """What stands for an exception that is not to go on as it is; its class bears the name of that one's."""


class _Here(threading.local):
    """How many fences this thread is inside of, and in which process it went in."""

    depth = 0
    process = 0


_here = _Here()
_guard = threading.Lock()
_fenced_threads = 0
_end_process = os._exit


def call_fenced(work: Callable[[], T]) -> T:
    """Call code of users. Raises an `Exception`, whatever it raised, or `KeyboardInterrupt` after a real Ctrl-C."""
    interruption = _Interruption()
    with _inside(), interruption.noticed():
        try:
            return work()
        except BaseException as error:
            if interruption.is_real:
                raise KeyboardInterrupt from error
            if _is_ordinary(error):
                raise
            raise _stand_in(error) from error


def _is_ordinary(error: BaseException) -> bool:
    """Whether those who catch exceptions of users can handle this one."""
    if isinstance(error, LaminaError):
        # A class of the user's own could bring an exit code of its own.
        return type(error).__module__.startswith("lamina.")
    return isinstance(error, Exception) and _text(error) is not None


def _stand_in(error: BaseException) -> CodeStopped:
    named: type[CodeStopped] = type(type(error).__name__, (CodeStopped,), {})
    return named(_text(error) or "").with_traceback(error.__traceback__)


def _text(error: BaseException) -> str | None:
    """What an exception says; asking it runs code of the user."""
    try:
        return str(error)
    except BaseException:  # noqa: BLE001  # whatever it raises, it says nothing
        return None


class _Interruption:
    """Tells a Ctrl-C from a `KeyboardInterrupt` that the code raised itself."""

    def __init__(self) -> None:
        self.is_real = False

    @contextmanager
    def noticed(self) -> Iterator[None]:
        """Watch the handler of the signal, which only the main thread can and which calls only the main thread."""
        before: Any = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is not threading.main_thread() or not callable(before):
            yield
            return

        def handle(number: int, frame: Any) -> Any:
            try:
                return before(number, frame)
            except KeyboardInterrupt:
                self.is_real = True
                raise

        signal.signal(signal.SIGINT, handle)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


@contextmanager
def _inside() -> Iterator[None]:
    """Keep the code from ending the process past all exceptions, and from leaving another recursion limit behind."""
    is_outermost, limit = not _here.depth, sys.getrecursionlimit()
    _here.depth += 1
    _here.process = os.getpid()
    if is_outermost:
        _count_threads(1)
    try:
        yield
    finally:
        _here.depth -= 1
        if is_outermost:
            _count_threads(-1)
        if sys.getrecursionlimit() != limit:
            with suppress(RecursionError):
                sys.setrecursionlimit(limit)


def _count_threads(change: int) -> None:
    global _fenced_threads  # noqa: PLW0603  # `os` is one for all threads
    with _guard:
        _fenced_threads += change
        os._exit = _leave if _fenced_threads else _end_process  # type: ignore[assignment]  # raises for fenced code


def _leave(status: int) -> None:
    """`os._exit` while some thread is fenced; processes that fenced code has forked, and other threads, do end."""
    if _here.depth and _here.process == os.getpid():
        raise SystemExit(status)
    _end_process(status)


# A function that travels to another process names it where it is there.
_leave.__module__, _leave.__qualname__, _leave.__name__ = os.__name__, "_exit", "_exit"
