"""What decorators of Lamina's say in a Python file, by its syntax tree alone: nothing of the file is run."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lamina.errors import BadPythonModel, LaminaError, Location
from lamina.near_names import near_names
from lamina.sql.types import normalise_type
from lamina.timeline.cron import Schedule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

_PACKAGES = ("lamina", "lamina.authoring")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decorator:
    """A use of one of Lamina's names above a function: its arguments by name, as far as they are written there."""

    word: str
    function: str
    arguments: Mapping[str, ast.expr]
    by_position: tuple[ast.expr, ...]
    is_open: bool
    """Whether more arguments may come out of a `**mapping`."""
    location: Location


class _Unclear:
    """A value that only running the code would tell."""


UNCLEAR = _Unclear()


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """What an argument of a decorator may be: `fits` answers whether a node does, or whether nobody can tell."""

    expected: str
    fits: Callable[[ast.expr], bool]


def find_decorators(tree: ast.Module, file: str, words: Iterable[str]) -> Iterator[Decorator]:
    """Every function with a decorator of Lamina's that is called so, whatever name it was imported under."""
    names, packages = _imported(tree, frozenset(words))
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for written in node.decorator_list:
            call = written if isinstance(written, ast.Call) else None
            word = _word(call.func if call is not None else written, names, packages)
            if word is None or word not in words:
                continue
            keywords = call.keywords if call is not None else []
            yield Decorator(
                word=word,
                function=node.name,
                arguments={each.arg: each.value for each in keywords if each.arg is not None},
                by_position=tuple(call.args) if call is not None else (),
                is_open=any(each.arg is None for each in keywords),
                location=Location(file=file, line=written.lineno, column=written.col_offset + 1),
            )


def _imported(tree: ast.Module, words: frozenset[str]) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Lamina's words by the names they have in the file, and its packages by theirs."""
    names: dict[str, str] = {}
    packages: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in _PACKAGES and not node.level:
            for alias in node.names:
                found = words if alias.name == "*" else (alias.name,)
                names.update({(alias.asname or word) if alias.name != "*" else word: word for word in found})
        elif isinstance(node, ast.Import):
            packages.update({alias.asname or alias.name: alias.name for alias in node.names if alias.name in _PACKAGES})
    return names, packages


def _word(node: ast.expr, names: Mapping[str, str], packages: Mapping[str, str]) -> str | None:
    if isinstance(node, ast.Name):
        return names.get(node.id)
    is_member = isinstance(node, ast.Attribute) and ast.unparse(node.value) in packages
    return node.attr if is_member and isinstance(node, ast.Attribute) else None


def check_arguments(found: Decorator, parameters: Mapping[str, Parameter], problems: list[LaminaError]) -> None:
    """Report arguments that the decorator does not have, and values that cannot be meant."""
    by_name = dict(found.arguments)
    title = f"`@{found.word}` of `{found.function}`"
    if len(found.by_position) > 1:
        problems.append(
            BadPythonModel(
                f"{title} takes one argument by position, its name",
                hint="write the others as `name=value`",
                location=_place(found, found.by_position[1]),
            )
        )
    if found.by_position and "name" in by_name:
        problems.append(
            BadPythonModel(
                f"{title} is given its name twice", hint="keep one of them", location=_place(found, by_name["name"])
            )
        )
    if found.by_position:
        by_name["name"] = found.by_position[0]
    for key, node in by_name.items():
        parameter = parameters.get(key)
        if parameter is None:
            near = near_names(key, parameters)
            listed = ", ".join(f"`{name}`" for name in parameters)
            problems.append(
                BadPythonModel(
                    f"{title} has no argument `{key}`",
                    hint=f"did you mean `{near[0]}`?" if near else f"it takes {listed}",
                    location=_place(found, node),
                )
            )
        elif not parameter.fits(node):
            problems.append(
                BadPythonModel(
                    f"`{key}` of {title} must be {parameter.expected}, not `{_shorten(ast.unparse(node))}`",
                    hint=None,
                    location=_place(found, node),
                )
            )


def value_of(node: ast.expr) -> object:
    """The value of a literal, else `UNCLEAR`."""
    try:
        value: object = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return UNCLEAR
    return value


def _place(found: Decorator, node: ast.expr) -> Location:
    return Location(file=found.location.file, line=node.lineno, column=node.col_offset + 1)


# --- what values may be -----------------------------------------------------------------------------------------------
def text() -> Parameter:
    """Text."""
    return Parameter(expected="text", fits=lambda node: _is_text(value_of(node)))


def choice(*choices: str) -> Parameter:
    """One of a few words."""

    def fits(node: ast.expr) -> bool:
        value = value_of(node)
        return value is UNCLEAR or value in choices

    return Parameter(expected=f"one of {', '.join(f'`{each}`' for each in choices)}", fits=fits)


def texts() -> Parameter:
    """A text, or a list of texts."""
    return Parameter(
        expected="a text or a list of texts", fits=lambda node: all(_is_text(value_of(each)) for each in _items(node))
    )


def nodes() -> Parameter:
    """Names of nodes and decorated functions, one or a list of them."""
    return Parameter(
        expected="the name of a node, a decorated function, or a list of them",
        fits=lambda node: all(_is_text(value_of(each)) for each in _items(node)),
    )


def types() -> Parameter:
    """A mapping of names to types of Spark."""

    def fits(node: ast.expr) -> bool:
        if not isinstance(node, ast.Dict):
            return value_of(node) is UNCLEAR
        keys = (key is None or _is_text(value_of(key)) for key in node.keys)
        return all(keys) and all(_is_type(value_of(value)) for value in node.values)

    return Parameter(expected="a mapping of names to types of Spark", fits=fits)


def types_or_names() -> Parameter:
    """Names of columns, with their types or alone."""
    with_types, alone = types(), texts()
    return Parameter(
        expected="a mapping of names to types of Spark, or a list of names",
        fits=lambda node: with_types.fits(node) or (isinstance(node, ast.List | ast.Tuple) and alone.fits(node)),
    )


def cron() -> Parameter:
    """A schedule."""

    def fits(node: ast.expr) -> bool:
        value = value_of(node)
        if not isinstance(value, str):
            return value is UNCLEAR
        try:
            Schedule.parse(value)
        except LaminaError:
            return False
        return True

    return Parameter(expected="a schedule such as `@daily` or `0 6 * * *`", fits=fits)


def retry() -> Parameter:
    """`Retry(attempts=3, delay=1.0, backoff=2.0)`."""

    def fits(node: ast.expr) -> bool:
        if not isinstance(node, ast.Call):
            return not isinstance(node, ast.Constant) and value_of(node) is UNCLEAR
        given = dict(zip(("attempts", "delay", "backoff"), node.args, strict=False))
        given |= {each.arg: each.value for each in node.keywords if each.arg is not None}
        known = set(given) <= {"attempts", "delay", "backoff"} and len(node.args) <= 3
        return known and all(_is_number(value_of(value), whole=key == "attempts") for key, value in given.items())

    return Parameter(expected="`Retry(attempts=3, delay=1.0, backoff=2.0)`", fits=fits)


def returned_type() -> Parameter:
    """A type of Spark."""
    return Parameter(expected="a type of Spark", fits=lambda node: _is_type(value_of(node)))


def _items(node: ast.expr) -> list[ast.expr]:
    return list(node.elts) if isinstance(node, ast.List | ast.Tuple | ast.Set) else [node]


def _is_text(value: object) -> bool:
    return value is UNCLEAR or (isinstance(value, str) and bool(value.strip()))


def _is_number(value: object, *, whole: bool) -> bool:
    if value is UNCLEAR:
        return True
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return value >= 0 if not whole else isinstance(value, int) and value >= 1


def _is_type(value: object) -> bool:
    if not isinstance(value, str):
        return value is UNCLEAR
    try:
        normalise_type(value)
    except LaminaError:
        return False
    return True


def _shorten(written: str) -> str:
    flat = " ".join(written.replace("`", "'").split())
    return flat if len(flat) <= 60 else f"{flat[:57]}…"
