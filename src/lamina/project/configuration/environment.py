"""Which values of the environment stand in which models."""

from __future__ import annotations

import re
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from lamina.graph.model import PythonBody
from lamina.graph.sealing import misplaced_secrets, with_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from lamina.errors import LaminaError
    from lamina.graph.dag import Graph
    from lamina.graph.model import FunctionCall, Model, PythonModule, VariableValue
    from lamina.graph.names import NodeName
    from lamina.project.configuration.values import EnvironmentUse

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def attach_environment(
    graph: Graph,
    use: EnvironmentUse,
    text_of: Callable[[str], str],
    macro_modules: Mapping[str, tuple[PythonModule, ...]],
) -> Graph:
    """The graph with models that know what of them comes from the environment.

    A value may stand in a model if the model's file, or a macro that the file names, names a variable that has it, or
    if it is among the project's defaults. It does, where it is found.
    """
    if not use.values:
        return graph
    words_of = _Words(text_of, macro_modules)
    models: dict[NodeName, Model] = {}
    for name, model in graph.models.items():
        variables = words_of.file(model.location.file) | _variables(model)
        names = use.in_defaults.union(*(found for key, found in use.in_variables.items() if key in variables))
        values = {name: use.values[name] for name in names if name in use.values}
        models[name] = with_environment(model, values) if values else model
    return replace(graph, models=MappingProxyType(models))


def names_any_variable(text: str, variables: Iterable[str]) -> bool:
    """Whether a text names one of these variables."""
    return not _words([text]).isdisjoint(variables)


def secrets_shown(graph: Graph) -> tuple[LaminaError, ...]:
    """Every secret that a query or what belongs to it would show."""
    return tuple(problem for model in graph.models.values() for problem in misplaced_secrets(model))


class _Words:
    """The words of files and of the macros they name, in lower case."""

    def __init__(self, text_of: Callable[[str], str], macro_modules: Mapping[str, tuple[PythonModule, ...]]) -> None:
        self._text_of = text_of
        self._macros = {name: _words(module.source for module in modules) for name, modules in macro_modules.items()}
        self._files: dict[str, frozenset[str]] = {}

    def file(self, path: str | None) -> frozenset[str]:
        if path is None or path.endswith(".csv"):
            return frozenset()
        if path not in self._files:
            words = _words([self._text_of(path)])
            self._files[path] = words.union(*(found for name, found in self._macros.items() if name in words))
        return self._files[path]


def _words(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(word.lower() for text in texts for word in _WORD.findall(text))


def _variables(model: Model) -> frozenset[str]:
    """The project's variables that are recorded with the model: for queries, code, audits, signals and hooks."""
    body = model.body
    found: list[Mapping[str, VariableValue]] = [body.macros.variables]
    if isinstance(body, PythonBody):
        found.append(body.variables)
    calls: tuple[FunctionCall, ...] = (*model.signals, *model.pre_hooks, *model.post_hooks)
    found += [call.code.variables for call in calls if call.code is not None]
    audits = (*model.audits, *model.standalone_audits, *(one for each in model.source_audits.values() for one in each))
    found += [audit.code.macros.variables for audit in audits if audit.code is not None]
    return frozenset(name.lower() for each in found for name in each)
