"""Asking a signal by its recorded code."""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from lamina.errors import BadTime, LaminaError, Location, SignalFailed
from lamina.graph.model import KnowsVariables
from lamina.project.python.functions import CONTEXT
from lamina.project.python.modules import call_in_modules, place_of_failure, run_modules
from lamina.timeline.interval import EMPTY, Instant, Interval, Intervals
from lamina.timeline.units import Units

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lamina.app.ports.project import Question
    from lamina.graph.model import FunctionCode, PythonModule, VariableValue

_EXPECTED = "True, False or a list of (start, end) pairs of datetimes"


class _BadAnswer(ValueError):
    """What a signal answered is no part of what it was asked about."""


class SignalContext(KnowsVariables):
    """What a signal is given as `context`, if it has a parameter of that name."""

    def __init__(
        self, variables: Mapping[str, VariableValue], execution_time: datetime, session: Callable[[], Any]
    ) -> None:
        super().__init__(variables)
        self._session = session
        self.execution_time = execution_time
        """The moment the command works at, in UTC."""

    @property
    def spark(self) -> Any:
        """A Spark session, started when it is first touched: the command then takes as long as Spark does."""
        return self._session()


def ask_recorded_signal(question: Question) -> Intervals:
    """Call the recorded function of a signal and answer which of the units it releases. Raises `SignalFailed`."""
    call = question.call
    code = call.code
    about = f"signal `{call.name}` of `{question.node}`"
    if code is None:
        raise SignalFailed(f"{about} was recorded without its code", hint="build the environment again")
    try:
        function = _recorded_function(code.modules, code.module, code.function)
        return call_in_modules(code.modules, lambda: _released(question.units, _called(function, question, code)))
    except _BadAnswer as error:
        raise SignalFailed(
            f"{about} answered {error}",
            hint="a part of the intervals is given as pairs of its first parameter, such as `list(batch)[:3]`",
            location=_place_of(function),
        ) from error
    except LaminaError as error:
        location = error.location or place_of_failure(error, code.modules)
        raise SignalFailed(f"{about} failed: {error.message}", hint=error.hint, location=location) from error
    except Exception as error:
        said = str(error).strip().split("\n", 1)[0]
        raise SignalFailed(
            f"{about} raised `{type(error).__name__}`" + (f": {said}" if said else ""),
            hint="correct its code and build again, which records it",
            location=place_of_failure(error, code.modules),
        ) from error


@lru_cache(maxsize=128)
def _recorded_function(modules: tuple[PythonModule, ...], module: str, function: str) -> Callable[..., object]:
    (loaded,) = run_modules(modules, [module])
    found: Callable[..., object] = getattr(loaded, function)
    return found


def _called(function: Callable[..., object], question: Question, code: FunctionCode) -> object:
    arguments: dict[str, object] = dict(question.call.values)
    if CONTEXT in list(inspect.signature(function).parameters)[1:]:
        arguments[CONTEXT] = SignalContext(code.variables, question.now.to_datetime(), question.session)
    answer = function(question.units, **arguments)
    if isinstance(answer, Iterable) and not isinstance(answer, str | Units):
        # A generator runs the user's code while it is read.
        return tuple(answer)
    return answer


def _released(units: Units, answer: object) -> Intervals:
    """The part of the units that an answer names. Raises `_BadAnswer` with what it is instead."""
    if isinstance(answer, bool):
        return Intervals.of([units.interval]) if answer else EMPTY
    if isinstance(answer, Units):
        return Intervals.of([_offered(units, answer.interval)])
    if not isinstance(answer, tuple):
        raise _BadAnswer(f"`{_shown(answer)}`, expected {_EXPECTED}")
    return Intervals.of([_offered(units, _interval(pair)) for pair in answer])


def _interval(pair: object) -> Interval:
    moments = [each for each in pair if isinstance(each, datetime)] if isinstance(pair, Sequence) else []
    if not isinstance(pair, Sequence) or not len(pair) == len(moments) == 2:
        raise _BadAnswer(f"a list with `{_shown(pair)}`, expected {_EXPECTED}")
    start, end = moments
    try:
        return Interval(Instant.of(start), Instant.of(end))
    except BadTime:
        raise _BadAnswer(f"the empty interval from `{start}` to `{end}`") from None


def _offered(units: Units, interval: Interval) -> Interval:
    if not units.covers(interval):
        raise _BadAnswer(f"{interval}, which is not made of units of {units.interval} that it was asked about")
    return interval


def _shown(value: object) -> str:
    return " ".join(reprlib.repr(value).replace("`", "'").split())


def _place_of(function: Callable[..., object]) -> Location | None:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return Location(file=code.co_filename, line=code.co_firstlineno) if code else None
