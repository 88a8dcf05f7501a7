"""The decorators users import: `@model`, `@macro`, `@signal`, `@loader`, `@task`, `@asset`, `@check`, `@hook`, `@udf`.

A decorator returns its function unchanged. While a project is being loaded it also records what was declared, in a
registry that belongs to that load alone; anywhere else (a test, a notebook) nothing is recorded and nothing happens.
"""

from __future__ import annotations

import inspect
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

DeclarationType: TypeAlias = Literal["model", "macro", "signal", "loader", "task", "asset", "check", "hook", "udf"]
Function = TypeVar("Function", bound="Callable[..., Any]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """One decorated function, with the arguments of its decorator and the place of the decorator."""

    type: DeclarationType
    name: str | None
    function: Callable[..., Any]
    arguments: Mapping[str, Any]
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a node is tried, how many seconds pass before the second try, and by how much each pause grows."""

    attempts: int = 3
    delay: float = 1.0
    backoff: float = 2.0


class Registry:
    """What one load has seen so far, in the order it was declared."""

    def __init__(self) -> None:
        self._declarations: list[Declaration] = []

    @property
    def declarations(self) -> tuple[Declaration, ...]:
        """Everything declared so far."""
        return tuple(self._declarations)

    def add(self, declaration: Declaration) -> None:
        self._declarations.append(declaration)


_REGISTRY: ContextVar[Registry | None] = ContextVar("lamina_registry", default=None)


@contextmanager
def recording() -> Iterator[Registry]:
    """Record every declaration made inside the `with` block; blocks may be nested, the innermost one records."""
    registry = Registry()
    token = _REGISTRY.set(registry)
    try:
        yield registry
    finally:
        _REGISTRY.reset(token)


def model(
    name: str | None = None,
    *,
    is_sql: bool = False,
    kind: str | Mapping[str, Any] | None = None,
    columns: Mapping[str, Any] | None = None,
    depends_on: Sequence[str] | None = None,
    **properties: Any,
) -> Callable[[Function], Function]:
    """Declare a function that returns or yields DataFrames as a model; any property of a MODEL header is a keyword.

    `kind` is a kind's name or a mapping with `name` and the kind's properties. `columns` maps names to Spark types.
    With `is_sql` the function returns the text of a query instead.
    """
    given = {"is_sql": is_sql, "kind": kind, "columns": columns, "depends_on": depends_on}
    arguments = {key: value for key, value in given.items() if value is not None} | properties

    def decorate(function: Function) -> Function:
        _record("model", name, function, arguments)
        return function

    return decorate


@overload
def macro(name: Function, /) -> Function: ...
@overload
def macro(name: str | None = None, /, *, metadata_only: bool = False) -> Callable[[Function], Function]: ...
def macro(name: Any = None, /, *, metadata_only: bool = False) -> Any:
    """Declare a function as a macro of the project's SQL: `@name(...)`; used with or without parentheses.

    The function is called with an evaluator first, then the arguments written in SQL, and returns SQL text or a list
    of such texts, or `None` for nothing. A macro that is `metadata_only` never makes a new version.
    """
    return _named("macro", name, {"metadata_only": metadata_only})


@overload
def signal(name: Function, /) -> Function: ...
@overload
def signal(name: str | None = None, /) -> Callable[[Function], Function]: ...
def signal(name: Any = None, /) -> Any:
    """Declare a function that says which intervals of a model are ready; used with or without parentheses."""
    return _named("signal", name, {})


@overload
def loader(name: Function, /) -> Function: ...
@overload
def loader(name: str | None = None, /, **arguments: Any) -> Callable[[Function], Function]: ...
def loader(name: Any = None, /, **arguments: Any) -> Any:
    """Declare a function that fills sources before the models that read them."""
    return _named("loader", name, arguments)


@overload
def task(name: Function, /) -> Function: ...
@overload
def task(name: str | None = None, /, **arguments: Any) -> Callable[[Function], Function]: ...
def task(name: Any = None, /, **arguments: Any) -> Any:
    """Declare a function that does something with models that were built."""
    return _named("task", name, arguments)


@overload
def asset(name: Function, /) -> Function: ...
@overload
def asset(name: str | None = None, /, **arguments: Any) -> Callable[[Function], Function]: ...
def asset(name: Any = None, /, **arguments: Any) -> Any:
    """Declare a function that makes something outside the warehouse from models."""
    return _named("asset", name, arguments)


@overload
def check(name: Function, /) -> Function: ...
@overload
def check(name: str | None = None, /, **arguments: Any) -> Callable[[Function], Function]: ...
def check(name: Any = None, /, **arguments: Any) -> Any:
    """Declare a function that judges models after they were built."""
    return _named("check", name, arguments)


@overload
def hook(name: Function, /) -> Function: ...
@overload
def hook(name: str | None = None, /, **arguments: Any) -> Callable[[Function], Function]: ...
def hook(name: Any = None, /, **arguments: Any) -> Any:
    """Declare a function that runs at a moment of a build."""
    return _named("hook", name, arguments)


def udf(
    name: str | None = None,
    *,
    arguments: Mapping[str, str] | None = None,
    returns: str,
    kind: Literal["scalar", "pandas"] = "scalar",
    description: str | None = None,
) -> Callable[[Function], Function]:
    """Declare a function that queries can call, with the Spark types of its arguments and of what it returns."""
    given = {"arguments": arguments or {}, "returns": returns, "kind": kind, "description": description}
    decorate: Callable[[Function], Function] = _named("udf", name, given)
    return decorate


def _named(declaration_type: DeclarationType, name: Any, arguments: Mapping[str, Any]) -> Any:
    """A decorator that was written with or without parentheses."""
    if callable(name):
        _record(declaration_type, None, name, arguments)
        return name

    def decorate(function: Function) -> Function:
        _record(declaration_type, name, function, arguments)
        return function

    return decorate


def _record(declaration_type: DeclarationType, name: object, function: object, arguments: Mapping[str, Any]) -> None:
    registry = _REGISTRY.get()
    if registry is None:
        return
    if name is not None and not isinstance(name, str):
        raise TypeError(f"`@{declaration_type}` takes a name in quotes, got a value of type `{type(name).__name__}`")
    if not callable(function) or (name is None and not hasattr(function, "__name__")):
        raise TypeError(f"`@{declaration_type}` stands above a value of type `{type(function).__name__}`, no function")
    code = getattr(function, "__code__", None)
    registry.add(
        Declaration(
            type=declaration_type,
            name=name,
            function=function,
            arguments=MappingProxyType(dict(arguments)),
            file=code.co_filename if code else "",
            line=code.co_firstlineno if code else 1,
        )
    )


_TIMES = ("start", "end", "execution_time")


def bind_model(
    function: Callable[..., Any], given: tuple[Any, Any, Any, Any], variables: Mapping[str, Any]
) -> inspect.BoundArguments:
    """How the function of a Python model is called: with its context first, and with the times it asks for by name.

    One that calls them otherwise gets all four values by position. Variables of the project come by name where the
    function takes them. Raises `TypeError` when it cannot be called.
    """
    signature = inspect.signature(function)
    parameters = signature.parameters
    takes_any = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
    context, *times = given
    by_name = {**variables, **dict(zip(_TIMES, times, strict=True))}
    first = set(list(parameters)[:1])
    try:
        wanted = {name: value for name, value in by_name.items() if takes_any or name in parameters}
        return signature.bind(context, **{name: value for name, value in wanted.items() if name not in first})
    except TypeError:
        taken = set(list(parameters)[: len(given)])
        wanted = {name: value for name, value in variables.items() if takes_any or name in parameters}
        return signature.bind(*given, **{name: value for name, value in wanted.items() if name not in taken})
