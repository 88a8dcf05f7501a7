"""Recorded definitions as they may be used: put together with the environment's values, and compared with their ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.errors import DefinitionAltered, LaminaError, SyntaxProblem, raise_all
from lamina.graph.kinds import Embedded, View
from lamina.graph.model import SqlBody
from lamina.graph.sealing import unsealed
from lamina.identity.fingerprint import definition_id_of, version_of
from lamina.sql.on_demand import canonical_text, made_with

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from lamina.app.ports.project import ProjectSource
    from lamina.app.ports.state import StateStore
    from lamina.environments.pointers import Pointer
    from lamina.graph.dag import Graph
    from lamina.graph.model import Model
    from lamina.graph.names import NodeName


def put_together(store: StateStore, project: ProjectSource, models: Mapping[NodeName, Model]) -> dict[NodeName, Model]:
    """Recorded models with the values of their environment; raises everything that is missing or another one now."""
    if not any(model.environment for model in models.values()):
        return dict(models)
    key, environ = store.seal_key or b"", project.environment()
    problems: list[LaminaError] = []
    found: dict[NodeName, Model] = {}
    for name, model in models.items():
        try:
            found[name] = unsealed(model, environ, key)
        except LaminaError as error:
            problems.append(error)
    raise_all(problems)
    return found


def as_far_as_known(
    store: StateStore, project: ProjectSource, models: Mapping[NodeName, Model]
) -> dict[NodeName, Model]:
    """The same for comparing: where the environment has other values now, names of variables stay in their places."""
    found: dict[NodeName, Model] = {}
    for name, model in models.items():
        try:
            found.update(put_together(store, project, {name: model}))
        except LaminaError:
            found[name] = model
    return found


def run_with(graph: Graph, nodes: Iterable[NodeName]) -> frozenset[NodeName]:
    """The nodes whose code runs when these do: what is put into queries runs with them."""
    found: set[NodeName] = set()
    waiting = [name for name in nodes if name in graph.models]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [each for each in graph.parents(name) if isinstance(graph.models[each].kind, View | Embedded)]
    return frozenset(found)


def check_definitions(
    store: StateStore,
    graph: Graph,
    nodes: Collection[NodeName],
    pointers: Mapping[NodeName, Pointer],
) -> None:
    """Refuse to run definitions that are not what their ids say; raises all of them at once."""
    models = {name: graph.models[name] for name in nodes if name in pointers and name in graph.models}
    key = (store.seal_key or b"") if any(model.environment for model in models.values()) else b""
    raise_all(
        DefinitionAltered(
            f"the recorded definition of `{name}` is not the one that was recorded under its id"
            f" `{pointers[name].definition_id}`: something else than Lamina changed the state",
            hint="find out who can write to the state, then restore it from a backup; or change the model, of which the"
            " `description` is enough, and build: that records it anew",
            location=model.location,
            node=name,
        )
        for name, model in models.items()
        if _is_comparable(model) and not _is_as_recorded(model, pointers[name], key)
    )


def _is_comparable(model: Model) -> bool:
    """Whether a difference means something: another Python or SQL parser may write canonical texts otherwise.

    Definitions that were recorded before it was noted which ones read them are not compared.
    """
    return model.read_with == made_with()


def _is_as_recorded(model: Model, pointer: Pointer, key: bytes) -> bool:
    made = version_of(model, {}, key).fingerprint
    return _is_one(model) and definition_id_of(pointer.version, made) == pointer.definition_id


def _is_one(model: Model) -> bool:
    """Whether the query that runs is the one that counts."""
    body = model.body
    if not isinstance(body, SqlBody) or body.query.is_time_dependent or body.query.expanded == body.canonical:
        return True
    try:
        return canonical_text(body.query.expanded, model.dialect) == body.canonical
    except SyntaxProblem:
        return False
