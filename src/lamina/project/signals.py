"""Signals: the Python functions in `signals/`, and the models that name them."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from difflib import get_close_matches
from inspect import Parameter
from types import MappingProxyType
from typing import TYPE_CHECKING

from lamina.authoring import recording
from lamina.errors import BadSignal, DuplicateName, LaminaError, Location, raise_all
from lamina.graph.model import SignalCode
from lamina.project.modules import run_modules
from lamina.project.python_scan import scan_variables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import ModuleType

    from lamina.authoring import Declaration
    from lamina.graph.draft import Draft
    from lamina.graph.model import Model, SignalCall, VariableValue
    from lamina.project.modules import Capture

CONTEXT = "context"
"""The parameter through which a signal gets at everything but its intervals and arguments."""
_BY_POSITION = frozenset({Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD, Parameter.VAR_POSITIONAL})


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """A function of `signals/`: its code as it is recorded, and the arguments it takes.

    `accepted` maps argument names in lower case to those of the function; any other is taken too if `takes_any`.
    """

    code: SignalCode
    accepted: Mapping[str, str]
    required: tuple[str, ...]
    takes_any: bool
    location: Location


# --- loading ----------------------------------------------------------------------------------------------------------
def load_signals(captures: Sequence[Capture], variables: Mapping[str, VariableValue]) -> Mapping[str, Signal]:
    """The signals of captured files by name in lower case; raises everything wrong at once."""
    found: dict[str, Signal] = {}
    problems: list[LaminaError] = []
    files = {captured.own.path for captured in captures}
    for captured in captures:
        try:
            with recording() as registry:
                (module,) = run_modules(captured.modules, [captured.name])
        except LaminaError as error:
            problems.extend(error.problems)
            continue
        for declaration in registry.declarations:
            # A signal of another file in `signals/` is recorded when that file has its turn.
            is_elsewhere = declaration.file != captured.own.path and declaration.file in files
            if declaration.type != "signal" or is_elsewhere:
                continue
            try:
                name, signal = _read(declaration, module, captured, variables)
            except BadSignal as error:
                problems.append(error)
                continue
            if name in found:
                message = f"signal `{name}` is defined twice: in `{found[name].location}` and in `{signal.location}`"
                problems.append(DuplicateName(message, hint="rename one of them", location=signal.location))
            found[name] = signal
    raise_all(problems)
    return MappingProxyType(found)


def _read(
    declaration: Declaration, module: ModuleType, captured: Capture, variables: Mapping[str, VariableValue]
) -> tuple[str, Signal]:
    place = Location(file=declaration.file, line=declaration.line)
    function = declaration.function
    own_name = getattr(function, "__name__", "")
    name = (declaration.name or own_name).lower()
    if getattr(module, own_name, None) is not function or not inspect.isfunction(function):
        raise BadSignal(
            f"the function of signal `{name}` cannot be found again under its name",
            hint="define it at the top level of the file, under a name of its own",
            location=place,
        )
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise BadSignal(f"signal `{name}` is asynchronous", hint="write `def`, not `async def`", location=place)
    used = scan_variables(captured.modules)
    code = SignalCode(
        module=captured.name,
        function=own_name,
        modules=captured.modules,
        variables=MappingProxyType(
            {key: value for key, value in sorted(variables.items()) if used is None or key.lower() in used}
        ),
    )
    return name, _with_parameters(name, function, code, place)


def _with_parameters(name: str, function: Callable[..., object], code: SignalCode, place: Location) -> Signal:
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters or parameters[0].kind not in _BY_POSITION:
        raise BadSignal(
            f"signal `{name}` has no parameter for the intervals it is asked about",
            hint=f"write `def {code.function}(batch, …)`",
            location=place,
        )
    rest = parameters[1:]
    by_position = [each.name for each in rest if each.kind is each.POSITIONAL_ONLY and each.default is each.empty]
    if by_position:
        raise BadSignal(
            f"signal `{name}` takes `{by_position[0]}` by position only",
            hint="arguments are handed over by name: move the `/` behind the first parameter",
            location=place,
        )
    named = [
        each for each in rest if each.kind in {each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY} and each.name != CONTEXT
    ]
    return Signal(
        code=code,
        accepted=MappingProxyType({each.name.lower(): each.name for each in named}),
        required=tuple(each.name for each in named if each.default is each.empty),
        takes_any=any(each.kind is each.VAR_KEYWORD for each in rest),
        location=place,
    )


# --- binding ----------------------------------------------------------------------------------------------------------
def bind_signals(drafts: Sequence[Draft], signals: Mapping[str, Signal]) -> list[Draft]:
    """The drafts with the code of the signals they name; raises every unknown name and wrong argument at once."""
    problems: list[LaminaError] = []
    bound = [_bound(draft, signals, problems) if draft.model.signals else draft for draft in drafts]
    raise_all(problems)
    return bound


def _bound(draft: Draft, signals: Mapping[str, Signal], problems: list[LaminaError]) -> Draft:
    model = draft.model
    calls: list[SignalCall] = []
    for call in model.signals:
        signal = signals.get(call.name)
        if signal is None:
            problems.append(_unknown(call, model, signals))
            continue
        problems.extend(_wrong_arguments(call, model, signal))
        values = {signal.accepted.get(key, key): value for key, value in call.values.items()}
        calls.append(replace(call, values=MappingProxyType(values), code=signal.code))
    return replace(draft, model=replace(model, signals=tuple(calls)))


def _unknown(call: SignalCall, model: Model, signals: Mapping[str, Signal]) -> BadSignal:
    near = get_close_matches(call.name, signals, n=1)
    hint = "define it in a file in `signals/`: `@signal()` above `def " + call.name + "(batch)`"
    if near:
        hint = f"did you mean `{near[0]}`?"
    elif signals:
        hint = f"the project has {_listed(signals)}"
    return BadSignal(f"there is no signal `{call.name}`", hint=hint, location=call.location, node=model.name)


def _wrong_arguments(call: SignalCall, model: Model, signal: Signal) -> list[BadSignal]:
    wrong: list[tuple[str, str]] = []
    for key in call.values:
        if key in {"batch", CONTEXT} and key not in signal.accepted:
            wrong.append((f"`{key}` of signal `{call.name}` is given by Lamina", "leave the argument out"))
        elif key not in signal.accepted and not signal.takes_any:
            near = get_close_matches(key, signal.accepted, n=1)
            takes = f"it takes {_listed(signal.accepted.values())}" if signal.accepted else "it takes no arguments"
            hint = f"did you mean `{signal.accepted[near[0]]}`?" if near else takes
            wrong.append((f"signal `{call.name}` has no argument `{key}`", hint))
    given = {signal.accepted.get(key, key) for key in call.values}
    wrong.extend(
        (f"signal `{call.name}` needs the argument `{name}`", f"write `{call.name}({name} := …)`")
        for name in signal.required
        if name not in given
    )
    return [BadSignal(message, hint=hint, location=call.location, node=model.name) for message, hint in wrong]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))
