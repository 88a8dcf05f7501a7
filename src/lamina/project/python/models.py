"""Models written in Python."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from lamina.authoring import bind_model, recording
from lamina.errors import BadPythonModel, LaminaError, Location, raise_all
from lamina.graph.model import PythonBody
from lamina.project.python.modules import run_modules
from lamina.project.python.scan import scan_code, unclear_reads
from lamina.reading.model_files import PythonDefinition, read_python_model

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from types import ModuleType

    from lamina.authoring import Declaration
    from lamina.graph.model import VariableValue
    from lamina.project.python.modules import Capture
    from lamina.reading.drafts import Draft, Surroundings


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonFile:
    """The models that a file declares and that are enabled; `is_helper` when it has code and declares none at all."""

    drafts: tuple[Draft, ...]
    is_helper: bool


def read_python_file(
    captured: Capture, model_files: Collection[str], stem: str, surroundings: Surroundings
) -> PythonFile:
    """What a captured file declares. Raises everything wrong at once.

    `model_files` are the paths of all Python files in `models/`: what another of them declares belongs to it.
    """
    own = captured.own
    with recording() as registry:
        (module,) = run_modules(captured.modules, [captured.name])
    drafts: list[Draft] = []
    problems: list[LaminaError] = []
    declares = False
    for declaration in registry.declarations:
        is_elsewhere = declaration.file != own.path and declaration.file in model_files
        if declaration.type != "model" or is_elsewhere:
            continue
        declares = True
        try:
            drafts.extend(_read(declaration, module, captured, stem, surroundings))
        except LaminaError as error:
            problems.extend(error.problems)
    raise_all(problems)
    return PythonFile(drafts=tuple(drafts), is_helper=not declares and bool(own.source.strip()))


def _read(
    declaration: Declaration, module: ModuleType, captured: Capture, stem: str, surroundings: Surroundings
) -> tuple[Draft, ...]:
    place = Location(file=declaration.file, line=declaration.line)
    name = getattr(declaration.function, "__name__", "")
    if getattr(module, name, None) is not declaration.function:
        raise BadPythonModel(
            f"the model's function `{name}` cannot be found again under its name",
            hint="define it at the top level of the file, under a name of its own",
            location=place,
        )
    named = frozenset[str]()
    if not declaration.arguments.get("is_sql"):
        named = _named_variables(declaration, surroundings.variables, place)
    scan = scan_code(captured.own, name, captured.modules)
    if "depends_on" not in declaration.arguments:
        raise_all(unclear_reads(scan))
    definition = PythonDefinition(
        name=declaration.name,
        arguments=declaration.arguments,
        body=PythonBody(
            module=captured.name,
            function=name,
            modules=captured.modules,
            variables=_variables(surroundings.variables, None if scan.variables is None else scan.variables | named),
        ),
        reads=scan.reads,
        location=place,
    )
    return read_python_model(definition, stem, surroundings)


def _named_variables(
    declaration: Declaration, variables: Mapping[str, VariableValue], place: Location
) -> frozenset[str]:
    """The variables that the function takes as parameters. Refuses a function that cannot be called."""
    try:
        call = bind_model(declaration.function, (None, None, None, None), variables)
    except TypeError as error:
        raise BadPythonModel(
            f"the model's function cannot be called with what models get: {error}",
            hint="write `def execute(context, start, end, execution_time, **kwargs)`; further parameters are variables "
            "of the project",
            location=place,
        ) from None
    return frozenset(call.arguments) & variables.keys()


def _variables(variables: Mapping[str, VariableValue], used: frozenset[str] | None) -> Mapping[str, VariableValue]:
    return MappingProxyType({name: value for name, value in sorted(variables.items()) if used is None or name in used})
