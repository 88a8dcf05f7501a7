"""What the code of a Python model says without being run: which tables and variables it names."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lamina.errors import BadPythonModel, LaminaError, Location
from lamina.reading.drafts import WrittenReference
from lamina.sql.names import parse_table_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lamina.graph.model import PythonModule

_TABLE_CALLS = frozenset({"table", "resolve_table"})
_VARIABLE_CALLS = frozenset({"var"})
_CONTEXT = "context"


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeScan:
    """Tables a model's code reads, places where that cannot be told, and variables; None means any variable."""

    reads: tuple[WrittenReference, ...]
    unclear: tuple[Location, ...]
    variables: frozenset[str] | None


@dataclass(slots=True, kw_only=True)
class _Found:
    reads: dict[str, WrittenReference] = field(default_factory=dict)
    unclear: list[Location] = field(default_factory=list)
    variables: set[str] = field(default_factory=set)
    is_any_variable: bool = False


def scan_code(own: PythonModule, function: str, modules: Sequence[PythonModule]) -> CodeScan:
    """Look at the function, the functions of its file that it calls, and the project modules it imports."""
    found = _Found()
    tree = ast.parse(own.source)
    constants = _constants(tree)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    main = functions.get(function)
    if main is not None:
        for node in _reachable(main, functions):
            context = _first_parameter(node) if node is main else _CONTEXT
            _scan(node, context, own.path, constants, found)
        _scan_keywords(main, found)
    for module in modules:
        if module.name != own.name:
            helper = ast.parse(module.source)
            _scan(helper, _CONTEXT, module.path, _constants(helper), found)
    return CodeScan(
        reads=tuple(found.reads[name] for name in sorted(found.reads)),
        unclear=tuple(found.unclear),
        variables=None if found.is_any_variable else frozenset(found.variables),
    )


def scan_variables(modules: Sequence[PythonModule]) -> frozenset[str] | None:
    """The variables that any of the modules asks a `context` for; None means any variable."""
    found = _Found()
    for module in modules:
        tree = ast.parse(module.source)
        _scan(tree, _CONTEXT, module.path, _constants(tree), found)
    return None if found.is_any_variable else frozenset(found.variables)


def unclear_reads(scan: CodeScan) -> Iterator[LaminaError]:
    """An error for every table name that is computed, which only `depends_on` can make known."""
    for place in scan.unclear:
        yield BadPythonModel(
            "it cannot be told which table is read here",
            hint="write the name as text, or list the tables in `depends_on` of the decorator",
            location=place,
        )


def _reachable(
    main: ast.FunctionDef | ast.AsyncFunctionDef, functions: Mapping[str, ast.FunctionDef | ast.AsyncFunctionDef]
) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The function and every function of the file that it names, directly or not."""
    found = {main.name: main}
    waiting = [main]
    while waiting:
        for node in ast.walk(waiting.pop()):
            if isinstance(node, ast.Name) and node.id in functions and node.id not in found:
                found[node.id] = functions[node.id]
                waiting.append(functions[node.id])
    return list(found.values())


def _first_parameter(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    parameters = (*function.args.posonlyargs, *function.args.args)
    return parameters[0].arg if parameters else _CONTEXT


def _scan(tree: ast.AST, context: str, file: str, constants: Mapping[str, str], found: _Found) -> None:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        is_context = isinstance(node.func.value, ast.Name) and node.func.value.id == context
        if is_context and node.func.attr in _TABLE_CALLS:
            _add_table(node, file, constants, found)
        elif is_context and node.func.attr in _VARIABLE_CALLS:
            name = _text(_argument(node), constants)
            if name is None:
                found.is_any_variable = True
            else:
                found.variables.add(name.lower())


def _add_table(node: ast.Call, file: str, constants: Mapping[str, str], found: _Found) -> None:
    place = Location(file=file, line=node.lineno, column=node.col_offset + 1)
    written = _text(_argument(node), constants)
    if written is None:
        found.unclear.append(place)
        return
    try:
        name = parse_table_name(written)
    except LaminaError:
        found.unclear.append(place)
        return
    found.reads.setdefault(name.to_text(), WrittenReference(name=name, location=place))


def _argument(node: ast.Call) -> ast.expr | None:
    if node.args:
        return node.args[0]
    return next((keyword.value for keyword in node.keywords if keyword.arg in {"name", "model"}), None)


def _text(node: ast.expr | None, constants: Mapping[str, str]) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return constants.get(node.id) if isinstance(node, ast.Name) else None


def _constants(tree: ast.Module) -> dict[str, str]:
    """Texts that the module gives names to, once."""
    found: dict[str, str] = {}
    again: set[str] = set()
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if isinstance(node, ast.AnnAssign):
            target = node.target
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(target, ast.Name):
            if target.id in found:
                again.add(target.id)
            if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
                found[target.id] = node.value.value
    return {name: text for name, text in found.items() if name not in again}


def _scan_keywords(main: ast.FunctionDef | ast.AsyncFunctionDef, found: _Found) -> None:
    """Variables reach a function through `**kwargs` as well: one that looks into it may use any of them."""
    keywords = main.args.kwarg
    if keywords is not None and any(
        isinstance(node, ast.Name) and node.id == keywords.arg for body in main.body for node in ast.walk(body)
    ):
        found.is_any_variable = True
