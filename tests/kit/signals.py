"""Signals for tests: recorded code without files, and answers without code."""

from __future__ import annotations

from textwrap import dedent, indent
from types import MappingProxyType
from typing import TYPE_CHECKING

from lamina.graph.model import FunctionCall, FunctionCode, PythonModule
from lamina.timeline.interval import Intervals

if TYPE_CHECKING:
    from collections.abc import Callable

    from lamina.app.ports.project import Question

FILE = "signals/checks.py"


def recorded(
    name: str,
    body: str,
    *,
    parameters: str = "batch, context",
    helpers: dict[str, str] | None = None,
    variables: dict[str, object] | None = None,
    **values: object,
) -> FunctionCall:
    """A signal as a definition in state holds it; its function starts on the fifth line of its file."""
    head = f"from datetime import datetime, timedelta, timezone\nfrom lamina import signal\n\n@signal()\ndef {name}"
    source = f"{head}({parameters}):\n{indent(dedent(body), '    ')}\n"
    modules = [PythonModule(name="signals.checks", path=FILE, source=source)]
    modules += [PythonModule(name=key, path=f"{key}.py", source=text) for key, text in (helpers or {}).items()]
    code = FunctionCode(
        module="signals.checks", function=name, modules=tuple(modules), variables=MappingProxyType(variables or {})
    )
    return FunctionCall(name=name, values=MappingProxyType(values), code=code)


def named(name: str) -> FunctionCall:
    """A signal whose answers come from `Answers`."""
    return FunctionCall(name=name)


class Answers:
    """Answers signals by name, everything where there is none, and keeps what was asked."""

    def __init__(self, **answers: Intervals | Exception | Callable[[Question], Intervals]) -> None:
        self._answers = answers
        self.asked: list[tuple[str, str, str]] = []

    def __call__(self, question: Question) -> Intervals:
        self.asked.append((str(question.node), question.call.name, str(question.units.interval)))
        everything = Intervals.of([question.units.interval])
        answer = self._answers.get(question.call.name, everything)
        if isinstance(answer, Exception):
            raise answer
        return answer.intersect(everything) if isinstance(answer, Intervals) else answer(question)
