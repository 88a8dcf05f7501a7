"""Recorded definitions as they may be used: put together with the environment's values, and compared with their ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.errors import DefinitionAltered, LaminaError, SyntaxProblem, raise_all
from lamina.graph.kinds import Embedded, View
from lamina.graph.model import SqlBody
from lamina.graph.sealing import unsealed
from lamina.identity.fingerprint import definition_id_of, version_of
from lamina.identity.forms import first
from lamina.identity.version import form_of
from lamina.sql.on_demand import canonical_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from lamina.app.ports import ProjectSource, StateStore
    from lamina.environments.pointers import Pointer
    from lamina.graph.dag import Graph
    from lamina.graph.model import Model
    from lamina.graph.names import NodeName
    from lamina.identity.version import Fingerprint


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
    recorded: Mapping[NodeName, Fingerprint],
) -> None:
    """Refuse to run definitions that are not what their ids say; raises all of them at once.

    `recorded` are the fingerprints of the versions that the pointers name, where they have tables.
    """
    models = {name: graph.models[name] for name in nodes if name in pointers and name in graph.models}
    key = (store.seal_key or b"") if any(model.environment for model in models.values()) else b""
    raise_all(
        DefinitionAltered(
            f"the recorded definition of `{name}` is not the one that was recorded under its id"
            f" `{pointers[name].definition_id}`: something else than Lamina changed the state, or Python or the SQL"
            " parser was replaced by one that reads it otherwise",
            hint="find out who can write to the state, then restore it from a backup; or change the model, of which the"
            " `description` is enough, and build: that records it anew",
            location=model.location,
            node=name,
        )
        for name, model in models.items()
        if not _is_as_recorded(model, pointers[name], recorded.get(name), key)
    )


def _is_as_recorded(model: Model, pointer: Pointer, recorded: Fingerprint | None, key: bytes) -> bool:
    if not _is_one(model):
        return False
    if form_of(pointer.definition_id) == 1:
        return _is_of_first_form(model, pointer, recorded)
    return definition_id_of(pointer.version, version_of(model, {}, key).fingerprint) == pointer.definition_id


def _is_one(model: Model) -> bool:
    """Whether the query that runs is the one that counts."""
    body = model.body
    if not isinstance(body, SqlBody) or body.query.is_time_dependent or body.query.expanded == body.canonical:
        return True
    try:
        return canonical_text(body.query.expanded, model.dialect) == body.canonical
    except SyntaxProblem:
        return False


def _is_of_first_form(model: Model, pointer: Pointer, recorded: Fingerprint | None) -> bool:
    """In that form an id says what the parents were too, which only the version's fingerprint remembers.

    A model without a table has none, so nothing can be said about it.
    """
    if recorded is None or recorded.whole[:16] != pointer.version:
        return True
    local = first.version_of(model, {}).fingerprint
    is_same = (local.query, local.config, local.functions) == (recorded.query, recorded.config, recorded.functions)
    return is_same and first.digest(recorded.whole, local.metadata)[:24] == pointer.definition_id
