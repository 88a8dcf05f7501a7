"""Selectors: which nodes a command is about."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from lamina.errors import UnknownName, raise_all
from lamina.graph.names import NodeName, table_of
from lamina.near_names import near_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from lamina.errors import LaminaError
    from lamina.graph.dag import Graph
    from lamina.graph.model import Model

_SELECTOR = re.compile(r"^(?P<up>\d*\+)?(?P<what>[^+]+?)(?P<down>\+\d*)?$")
_METHODS = ("tag", "path", "kind", "source", "state")


def select(
    graph: Graph, selectors: Sequence[str], excluded: Sequence[str], modified: frozenset[NodeName]
) -> frozenset[NodeName]:
    """The nodes that the selectors name; without selectors all of them. Unknown names are errors, all at once."""
    problems: list[LaminaError] = []
    chosen = _union(graph, selectors, modified, problems) if selectors else frozenset(graph.models)
    removed = _union(graph, excluded, modified, problems)
    raise_all(problems)
    return chosen - removed


def _union(
    graph: Graph, selectors: Iterable[str], modified: frozenset[NodeName], problems: list[LaminaError]
) -> frozenset[NodeName]:
    found: frozenset[NodeName] = frozenset()
    for selector in selectors:
        try:
            found |= _both(graph, selector, modified)
        except UnknownName as error:
            problems.append(error)
    return found


def _both(graph: Graph, selector: str, modified: frozenset[NodeName]) -> frozenset[NodeName]:
    parts = [part.strip() for part in selector.split(",") if part.strip()]
    if not parts:
        raise UnknownName(
            f"selector `{selector}` is empty", hint="name a model, `tag:x`, `path:models/x` or `kind:FULL`"
        )
    chosen = [_one(graph, part, modified) for part in parts]
    return frozenset.intersection(*chosen)


def _one(graph: Graph, text: str, modified: frozenset[NodeName]) -> frozenset[NodeName]:
    match = _SELECTOR.match(text)
    if match is None:
        raise UnknownName(f"selector `{text}` cannot be read", hint="write `name`, `+name`, `name+` or `2+name`")
    base = _base(graph, match["what"], modified)
    found = base
    if match["up"]:
        found |= _reach(base, graph.parents, match["up"].rstrip("+"))
    if match["down"]:
        children = graph.children()
        found |= _reach(base, lambda name: children[name], match["down"].lstrip("+"))
    return found


def _reach(
    base: frozenset[NodeName], neighbours: Callable[[NodeName], tuple[NodeName, ...]], depth: str
) -> frozenset[NodeName]:
    limit = int(depth) if depth else None
    found: set[NodeName] = set()
    edge, distance = set(base), 0
    while edge and (limit is None or distance < limit):
        edge = {other for name in edge for other in neighbours(name)} - found
        found |= edge
        distance += 1
    return frozenset(found)


def _base(graph: Graph, what: str, modified: frozenset[NodeName]) -> frozenset[NodeName]:
    method, colon, value = what.partition(":")
    if colon and method in _METHODS:
        return _by_method(graph, method, value, modified)
    if colon:
        near = near_names(method, _METHODS)
        raise UnknownName(
            f"selector method `{method}` does not exist",
            hint=f"did you mean `{near[0]}:{value}`?" if near else f"methods: {', '.join(_METHODS)}",
        )
    return _by_name(graph.models, what)


def _by_method(graph: Graph, method: str, value: str, modified: frozenset[NodeName]) -> frozenset[NodeName]:
    pattern = value.lower()

    def is_chosen(model: Model) -> bool:
        match method:
            case "tag":
                return any(fnmatchcase(tag.lower(), pattern) for tag in model.tags)
            case "path":
                file = (model.location.file or "").replace("\\", "/")
                return file == value or file.startswith(f"{value.rstrip('/')}/") or fnmatchcase(file, value)
            case "kind":
                return fnmatchcase(model.kind.name.lower(), pattern)
            case "source":
                return any(fnmatchcase(read, pattern) for read in model.reads if read not in graph.models)
            case _:
                return model.name in modified

    if method == "state" and value != "modified":
        raise UnknownName(f"selector `state:{value}` does not exist", hint="use `state:modified`")
    found = frozenset(name for name, model in graph.models.items() if is_chosen(model))
    if not found and method != "state":
        raise UnknownName(f"selector `{method}:{value}` matches no model", hint=_known_values(graph, method))
    return found


def _known_values(graph: Graph, method: str) -> str:
    match method:
        case "tag":
            values = sorted({tag for model in graph.models.values() for tag in model.tags})
        case "kind":
            values = sorted({model.kind.name for model in graph.models.values()})
        case "source":
            values = sorted(graph.sources)
        case _:
            values = sorted({(model.location.file or "").rpartition("/")[0] for model in graph.models.values()})
    return f"known here: {', '.join(f'`{value}`' for value in values[:8])}" if values else "the project has none"


def _by_name(models: Mapping[NodeName, Model], what: str) -> frozenset[NodeName]:
    pattern = what.lower().replace("`", "")
    found = frozenset(name for name in models if fnmatchcase(name, pattern))
    if not found:
        found = frozenset(name for name in models if fnmatchcase(table_of(name), pattern))
    if not found:
        raise unknown_model(models, what)
    return found


def unknown_model(models: Iterable[NodeName], what: str) -> UnknownName:
    """The error for a name that matches no model, with the nearest ones."""
    names = list(models)
    same = [name for name in names if table_of(name) == table_of(NodeName(what.lower()))]
    near = list(dict.fromkeys([*same, *near_names(what, names, 3)]))[:3]
    hint = (
        f"did you mean {' or '.join(f'`{name}`' for name in near)}?" if near else "`lamina plan -v` lists every model"
    )
    return UnknownName(f"no model matches `{what}`", hint=hint)
