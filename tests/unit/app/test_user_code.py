"""The fence around code of users."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback

import pytest

from lamina.app.user_code import CodeStopped, call_fenced
from lamina.errors import LaminaError, UsageError


class Own(BaseException):
    pass


class Mute(Exception):
    def __str__(self) -> str:
        raise SystemExit(0)


class Harmless(LaminaError):
    exit_code = 0


def raising(error: BaseException):
    def work():
        raise error

    return work


@pytest.mark.parametrize("error", [SystemExit(0), KeyboardInterrupt("stop"), GeneratorExit(), Own("no"), Harmless("x")])
def test_what_would_end_the_process_is_an_exception_of_that_name(error: BaseException):
    with pytest.raises(CodeStopped) as caught:
        call_fenced(raising(error))

    assert type(caught.value).__name__ == type(error).__name__
    assert str(caught.value) == str(error)
    assert caught.value.__cause__ is error
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "work"


def test_an_exception_whose_text_cannot_be_had_is_one_without_text():
    with pytest.raises(CodeStopped) as caught:
        call_fenced(raising(Mute()))

    assert type(caught.value).__name__ == "Mute"
    assert str(caught.value) == ""


@pytest.mark.parametrize("error", [ValueError("no"), UsageError("no"), RecursionError("deep")])
def test_ordinary_exceptions_and_answers_stay_what_they_are(error: Exception):
    with pytest.raises(type(error)) as caught:
        call_fenced(raising(error))

    assert caught.value is error
    assert call_fenced(lambda: 5) == 5


def in_a_thread(work) -> list[BaseException | int]:
    found: list[BaseException | int] = []

    def run():
        try:
            found.append(call_fenced(work))
        except BaseException as error:  # noqa: BLE001  # whatever it is, it is looked at
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found


def test_threads_are_fenced_as_well():
    (found,) = in_a_thread(raising(KeyboardInterrupt()))
    assert isinstance(found, CodeStopped)


def here(work) -> list[CodeStopped]:
    with pytest.raises(CodeStopped) as caught:
        call_fenced(work)
    return [caught.value]


@pytest.mark.parametrize("run", [here, in_a_thread])
def test_the_process_is_not_ended_behind_all_exceptions(run):
    before = os._exit
    (found,) = run(lambda: os._exit(0))

    assert isinstance(found, CodeStopped)
    assert type(found).__name__ == "SystemExit"
    assert os._exit is before


def test_a_process_that_the_code_forked_ends():
    def work() -> int:
        child = os.fork()
        if not child:
            os._exit(7)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert call_fenced(work) == 7


def press(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(10**8):
        pass


def swallowing() -> None:
    try:
        press()
    except KeyboardInterrupt:
        sys.exit(0)


@pytest.mark.parametrize("work", [press, swallowing, lambda: call_fenced(press)])
def test_ctrl_c_interrupts(work):
    before = signal.getsignal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        call_fenced(work)

    assert signal.getsignal(signal.SIGINT) is before


def test_the_handler_of_ctrl_c_and_the_limit_of_recursion_are_put_back():
    handler, limit = signal.getsignal(signal.SIGINT), sys.getrecursionlimit()

    def work() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.setrecursionlimit(limit + 5)

    call_fenced(work)

    assert signal.getsignal(signal.SIGINT) is handler
    assert sys.getrecursionlimit() == limit
