"""Signals and hooks: Python functions of the project, and the models that name them."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from inspect import Parameter
from types import MappingProxyType
from typing import TYPE_CHECKING

from lamina.authoring import recording
from lamina.errors import BadHook, BadSignal, DuplicateName, LaminaError, Location, raise_all
from lamina.graph.model import FunctionCode
from lamina.near_names import near_names
from lamina.project.python.modules import run_modules
from lamina.project.python.scan import scan_variables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import ModuleType

    from lamina.authoring import Declaration, DeclarationType
    from lamina.graph.model import FunctionCall, Model, VariableValue
    from lamina.project.python.modules import Capture
    from lamina.reading.drafts import Draft

CONTEXT = "context"
"""The parameter through which a function gets at everything but its intervals and arguments."""
_BY_POSITION = frozenset({Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD, Parameter.VAR_POSITIONAL})


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """What functions are for: the word for them, where they lie, their first parameter, and who names them."""

    word: DeclarationType
    folder: str
    first: str
    told: str
    """What the first parameter is."""
    properties: tuple[str, ...]
    error: type[BadSignal | BadHook]


SIGNAL = Role(
    word="signal",
    folder="signals",
    first="batch",
    told="the intervals it is asked about",
    properties=("signals",),
    error=BadSignal,
)
HOOK = Role(
    word="hook",
    folder="python",
    first=CONTEXT,
    told="the batch it is called for",
    properties=("pre_hooks", "post_hooks"),
    error=BadHook,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectFunction:
    """A signal or hook: its code as it is recorded, and the arguments it takes.

    `accepted` maps argument names in lower case to those of the function; any other is taken too if `takes_any`.
    """

    code: FunctionCode
    accepted: Mapping[str, str]
    required: tuple[str, ...]
    takes_any: bool
    location: Location


def names_any(drafts: Iterable[Draft], role: Role) -> bool:
    """Whether some model names a function of this role."""
    return any(getattr(draft.model, key) for draft in drafts for key in role.properties)


# --- loading ----------------------------------------------------------------------------------------------------------
def load_functions(
    role: Role, captures: Sequence[Capture], variables: Mapping[str, VariableValue]
) -> Mapping[str, ProjectFunction]:
    """The functions of captured files by name in lower case; raises everything wrong at once."""
    found: dict[str, ProjectFunction] = {}
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
            # A function of another file in the folder is recorded when that file has its turn.
            is_elsewhere = declaration.file != captured.own.path and declaration.file in files
            if declaration.type != role.word or is_elsewhere:
                continue
            try:
                name, function = _read(role, declaration, module, captured, variables)
            except role.error as error:
                problems.append(error)
                continue
            if name in found:
                places = f"in `{found[name].location}` and in `{function.location}`"
                message = f"{role.word} `{name}` is defined twice: {places}"
                problems.append(DuplicateName(message, hint="rename one of them", location=function.location))
            found[name] = function
    raise_all(problems)
    return MappingProxyType(found)


def _read(
    role: Role,
    declaration: Declaration,
    module: ModuleType,
    captured: Capture,
    variables: Mapping[str, VariableValue],
) -> tuple[str, ProjectFunction]:
    place = Location(file=declaration.file, line=declaration.line)
    function = declaration.function
    own_name = getattr(function, "__name__", "")
    name = (declaration.name or own_name).lower()
    if getattr(module, own_name, None) is not function or not inspect.isfunction(function):
        raise role.error(
            f"the function of {role.word} `{name}` cannot be found again under its name",
            hint="define it at the top level of the file, under a name of its own",
            location=place,
        )
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise role.error(f"{role.word} `{name}` is asynchronous", hint="write `def`, not `async def`", location=place)
    used = scan_variables(captured.modules)
    code = FunctionCode(
        module=captured.name,
        function=own_name,
        modules=captured.modules,
        variables=MappingProxyType(
            {key: value for key, value in sorted(variables.items()) if used is None or key.lower() in used}
        ),
    )
    return name, _with_parameters(role, name, function, code, place)


def _with_parameters(
    role: Role, name: str, function: Callable[..., object], code: FunctionCode, place: Location
) -> ProjectFunction:
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters or parameters[0].kind not in _BY_POSITION:
        raise role.error(
            f"{role.word} `{name}` has no parameter for {role.told}",
            hint=f"write `def {code.function}({role.first}, …)`",
            location=place,
        )
    rest = parameters[1:]
    by_position = [each.name for each in rest if each.kind is each.POSITIONAL_ONLY and each.default is each.empty]
    if by_position:
        raise role.error(
            f"{role.word} `{name}` takes `{by_position[0]}` by position only",
            hint="arguments are handed over by name: move the `/` behind the first parameter",
            location=place,
        )
    named = [
        each for each in rest if each.kind in {each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY} and each.name != CONTEXT
    ]
    return ProjectFunction(
        code=code,
        accepted=MappingProxyType({each.name.lower(): each.name for each in named}),
        required=tuple(each.name for each in named if each.default is each.empty),
        takes_any=any(each.kind is each.VAR_KEYWORD for each in rest),
        location=place,
    )


# --- binding ----------------------------------------------------------------------------------------------------------
def bind_functions(role: Role, drafts: Sequence[Draft], functions: Mapping[str, ProjectFunction]) -> list[Draft]:
    """The drafts with the code of the functions they name; raises every unknown name and wrong argument at once."""
    problems: list[LaminaError] = []
    bound = [_bound(role, draft, functions, problems) if names_any([draft], role) else draft for draft in drafts]
    raise_all(problems)
    return bound


def _bound(role: Role, draft: Draft, functions: Mapping[str, ProjectFunction], problems: list[LaminaError]) -> Draft:
    model = draft.model
    found: dict[str, tuple[FunctionCall, ...]] = {}
    for key in role.properties:
        calls: list[FunctionCall] = []
        for call in getattr(model, key):
            function = functions.get(call.name)
            if function is None:
                problems.append(_unknown(role, call, model, functions))
                continue
            problems.extend(_wrong_arguments(role, call, model, function))
            values = {function.accepted.get(name, name): value for name, value in call.values.items()}
            calls.append(replace(call, values=MappingProxyType(values), code=function.code))
        found[key] = tuple(calls)
    return replace(draft, model=replace(model, **found))  # type: ignore[arg-type]  # the properties of a role are calls


def _unknown(
    role: Role, call: FunctionCall, model: Model, functions: Mapping[str, ProjectFunction]
) -> BadSignal | BadHook:
    near = near_names(call.name, functions)
    hint = f"define it in a file in `{role.folder}/`: `@{role.word}()` above `def {call.name}({role.first})`"
    if near:
        hint = f"did you mean `{near[0]}`?"
    elif functions:
        hint = f"the project has {_listed(functions)}"
    return role.error(f"there is no {role.word} `{call.name}`", hint=hint, location=call.location, node=model.name)


def _wrong_arguments(
    role: Role, call: FunctionCall, model: Model, function: ProjectFunction
) -> list[BadSignal | BadHook]:
    wrong: list[tuple[str, str]] = []
    for key in call.values:
        if key in {role.first, CONTEXT} and key not in function.accepted:
            wrong.append((f"`{key}` of {role.word} `{call.name}` is given by Lamina", "leave the argument out"))
        elif key not in function.accepted and not function.takes_any:
            near = near_names(key, function.accepted)
            takes = f"it takes {_listed(function.accepted.values())}" if function.accepted else "it takes no arguments"
            hint = f"did you mean `{function.accepted[near[0]]}`?" if near else takes
            wrong.append((f"{role.word} `{call.name}` has no argument `{key}`", hint))
    given = {function.accepted.get(key, key) for key in call.values}
    wrong.extend(
        (f"{role.word} `{call.name}` needs the argument `{name}`", f"write `{call.name}({name} := …)`")
        for name in function.required
        if name not in given
    )
    return [role.error(message, hint=hint, location=call.location, node=model.name) for message, hint in wrong]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))
