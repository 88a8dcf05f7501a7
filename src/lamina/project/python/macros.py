"""Python macros: from the files in `macros/`, or from modules recorded earlier."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache, partial, wraps
from types import MappingProxyType
from typing import TYPE_CHECKING, get_type_hints

from lamina.app.user_code import call_fenced
from lamina.authoring import recording
from lamina.errors import BadPythonModel, DuplicateName, LaminaError, Location, raise_all
from lamina.project.python.modules import run_modules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from lamina.authoring import Declaration
    from lamina.graph.model import PythonModule
    from lamina.project.python.modules import Capture


@dataclass(frozen=True, slots=True, kw_only=True)
class Macros:
    """Macros by name in lower case, and the modules each of them needs."""

    functions: Mapping[str, Callable[..., object]] = field(default_factory=lambda: MappingProxyType({}))
    modules: Mapping[str, tuple[PythonModule, ...]] = field(default_factory=lambda: MappingProxyType({}))


def load_macros(captures: Sequence[Capture]) -> Macros:
    """Import the captured macro files; raises everything wrong at once."""
    functions: dict[str, Callable[..., object]] = {}
    modules: dict[str, tuple[PythonModule, ...]] = {}
    places: dict[str, Location] = {}
    problems: list[LaminaError] = []
    files = {captured.own.path for captured in captures}
    for captured in captures:
        own = captured.own.path
        try:
            declared = _declared(captured.modules, [captured.name])
        except LaminaError as error:
            problems.extend(error.problems)
            continue
        for declaration in declared:
            # A macro of another file in `macros/` is recorded when that file has its turn.
            if declaration.file != own and declaration.file in files:
                continue
            name = _name(declaration)
            place = Location(file=declaration.file, line=declaration.line)
            if name in functions:
                problems.append(
                    DuplicateName(
                        f"macro `@{name}` is defined twice: in `{places[name]}` and in `{place}`",
                        hint="rename one of them",
                        location=place,
                    )
                )
            if not name.isidentifier():
                problems.append(
                    BadPythonModel(
                        f"`{name}` cannot be the name of a macro", hint="use letters and digits", location=place
                    )
                )
            functions[name], modules[name], places[name] = _fenced(declaration.function), captured.modules, place
    raise_all(problems)
    return Macros(functions=MappingProxyType(functions), modules=MappingProxyType(modules))


# Many batches expand the macros of one model.
@lru_cache(maxsize=128)
def load_recorded_macros(modules: tuple[PythonModule, ...]) -> Mapping[str, Callable[..., object]]:
    """The macros that captured modules define, by name in lower case."""
    declared = _declared(modules, [module.name for module in modules])
    return MappingProxyType({_name(declaration): _fenced(declaration.function) for declaration in declared})


def _declared(modules: Sequence[PythonModule], names: Sequence[str]) -> Iterator[Declaration]:
    with recording() as registry:
        run_modules(modules, names)
    return (declaration for declaration in registry.declarations if declaration.type == "macro")


def _name(declaration: Declaration) -> str:
    return (declaration.name or declaration.function.__name__).lower()


def _fenced(function: Callable[..., object]) -> Callable[..., object]:
    """The function as expansion may call it: whatever it raises is an `Exception`, and its annotations are types."""

    @wraps(function)
    def call(*arguments: object, **named: object) -> object:
        return call_fenced(partial(function, *arguments, **named))

    try:
        # Annotations that are text are code of the user as well.
        call.__annotations__ = call_fenced(partial(get_type_hints, function))
    except Exception:  # noqa: BLE001  # names that are imported for type checkers only do not exist here
        call.__annotations__ = {}
    return call
