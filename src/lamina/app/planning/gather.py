"""Reading everything a plan is made from, once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lamina.app.planning.identify import former_fingerprints, identify, local_fingerprint, with_comments_read_otherwise
from lamina.app.planning.recorded_code import as_far_as_known, check_definitions, put_together
from lamina.app.ports.loaded import LoadRequest
from lamina.environments.pointers import Revision
from lamina.errors import PlanError, UnknownEnvironment
from lamina.graph.dag import Graph, in_dependency_order
from lamina.graph.model import Source
from lamina.identity.fingerprint import has_object
from lamina.identity.naming import physical_name
from lamina.identity.version import NodeVersion, form_of
from lamina.planning.inputs import PlanInputs
from lamina.planning.rewrites import to_look_up

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lamina.app.ports.loaded import Loaded
    from lamina.app.ports.project import ProjectSettings, ProjectSource
    from lamina.app.ports.state import StateStore
    from lamina.app.requests import PlanRequest
    from lamina.graph.model import Model
    from lamina.graph.names import NodeName
    from lamina.identity.naming import PhysicalName
    from lamina.identity.version import Same
    from lamina.planning.inputs import Rewrite


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """The inputs of a plan and the settings they were read with."""

    inputs: PlanInputs
    settings: ProjectSettings
    found: tuple[Same, ...] = ()
    """What was found to be the same as what an earlier form of identity made, and is not recorded yet."""


def environment_name(request_name: str | None, settings: ProjectSettings) -> str:
    """The environment a command is about."""
    return (request_name or settings.baseline).lower()


def gather(project: ProjectSource, store: StateStore, request: PlanRequest) -> Gathered:
    """Project, environment, baseline and facts; `run` takes definitions from state instead of files."""
    settings = project.settings()
    name = environment_name(request.environment, settings)
    if request.command == "run":
        return _gather_recorded(project, store, request, name)
    graph = project.graph(request.now)
    if request.command == "build" and any(model.environment for model in graph.models.values()):
        # What is planned with this key is recorded with it.
        _ = store.store_id
    identified = identify(store, graph, tuple(dict.fromkeys((name, settings.baseline))))
    versions, loaded = identified.versions, identified.loaded
    environment = loaded.revisions.get(name) or Revision(environment=name)
    baseline = loaded.revisions.get(settings.baseline) or Revision(environment=settings.baseline)
    before = baseline.pointers if environment.number == 0 else environment.pointers
    changed = [
        pointer.definition_id
        for node, pointer in before.items()
        if node not in versions or pointer.definition_id != versions[node].definition_id
    ]
    definitions = store.load(LoadRequest(definitions=tuple(sorted(set(changed))), facts_of_pointers=False)).definitions
    recorded = {
        node: definitions[pointer.definition_id]
        for node, pointer in before.items()
        if pointer.definition_id in definitions
    }
    previous = as_far_as_known(store, project, recorded)
    identified = with_comments_read_otherwise(identified, graph, previous, before)
    versions = identified.versions
    physical = physical_names(graph, versions, loaded, (baseline, environment))
    inputs = PlanInputs(
        command=request.command,
        graph=graph,
        versions=versions,
        environment=environment,
        baseline=baseline,
        baseline_name=settings.baseline,
        facts=loaded.facts,
        physical=physical,
        now=request.now,
        default_start=settings.default_start,
        default_replay=settings.replay_on_change,
        concurrency=request.concurrency or settings.concurrency,
        catalogs=settings.catalogs,
        flags=request.flags,
        shown_elsewhere=_shown_elsewhere(store, name, request),
        rewrites=_rewrites(store, graph, physical, loaded),
        previous=previous,
        previous_fingerprints=former_fingerprints(identified, graph, previous, before),
    )
    return Gathered(inputs=inputs, settings=settings, found=identified.found)


def _rewrites(
    store: StateStore, graph: Graph, physical: Mapping[NodeName, PhysicalName], loaded: Loaded
) -> Mapping[PhysicalName, tuple[Rewrite, ...]]:
    """Rewrites that readers have not followed: most of the time there are none, and nothing is read."""
    wanted = to_look_up(graph, physical, loaded.facts)
    return store.load(LoadRequest(rewrites=wanted, facts_of_pointers=False)).rewrites if wanted else {}


def _shown_elsewhere(store: StateStore, environment: str, request: PlanRequest) -> frozenset[PhysicalName]:
    if not (request.flags.restate or request.flags.reset or request.flags.force):
        return frozenset()
    revisions = store.load(LoadRequest(all_environments=True, facts_of_pointers=False)).revisions
    return frozenset(
        pointer.physical
        for name, revision in revisions.items()
        if name != environment
        for pointer in revision.pointers.values()
        if pointer.physical is not None
    )


def physical_names(
    graph: Graph, versions: Mapping[NodeName, NodeVersion], loaded: Loaded, revisions: Iterable[Revision] = ()
) -> dict[NodeName, PhysicalName]:
    """Where every node's version lives: where the last of the revisions that shows it says, else under the first name
    it was given, or the one it would get.
    """
    known: dict[tuple[NodeName, str], PhysicalName] = {}
    for physical in sorted(loaded.facts, key=lambda name: (len(name), name), reverse=True):
        facts = loaded.facts[physical]
        known[facts.node, facts.version] = physical
    for revision in revisions:
        for node, pointer in revision.pointers.items():
            if pointer.physical is not None:
                known[node, pointer.version] = pointer.physical
    return {
        name: known.get((name, versions[name].version)) or physical_name(name, versions[name].version)
        for name, model in graph.models.items()
        if has_object(model)
    }


def recorded_graph(revision: Revision, definitions: Mapping[str, Model]) -> Graph:
    """The graph an environment runs by, from recorded definitions."""
    models = {
        name: definitions[pointer.definition_id]
        for name, pointer in revision.pointers.items()
        if pointer.definition_id in definitions
    }
    if len(models) < len(revision.pointers):
        lacking = sorted(set(revision.pointers) - set(models))
        raise PlanError(
            f"the recorded definition of {', '.join(f'`{name}`' for name in lacking)} is missing from state",
            hint=f"`lamina build {revision.environment}` records it again",
        )
    sources = {read: Source(name=read) for model in models.values() for read in model.reads if read not in models}
    return Graph(models=in_dependency_order(models), sources=sources)


def load_recorded(store: StateStore, settings: ProjectSettings, name: str) -> tuple[Revision, Revision, Loaded, Graph]:
    """An environment, its baseline, all facts, and the graph of recorded definitions."""
    loaded = store.load(LoadRequest(environments=tuple({name, settings.baseline}), definitions_of_pointers=True))
    environment = loaded.revisions.get(name) or Revision(environment=name)
    baseline = loaded.revisions.get(settings.baseline) or Revision(environment=settings.baseline)
    if environment.number == 0 or not environment.pointers:
        raise UnknownEnvironment(
            f"environment `{name}` does not exist yet",
            hint=f"`lamina build {name}` creates it; `lamina env list` shows what there is",
        )
    return environment, baseline, loaded, recorded_graph(environment, loaded.definitions)


def load_runnable(project: ProjectSource, store: StateStore, name: str) -> tuple[Revision, Revision, Loaded, Graph]:
    """The same with the environment's values in the definitions; `EnvironmentChanged` where these are others now."""
    environment, baseline, loaded, graph = load_recorded(store, project.settings(), name)
    return environment, baseline, loaded, replace(graph, models=put_together(store, project, graph.models))


def _gather_recorded(project: ProjectSource, store: StateStore, request: PlanRequest, name: str) -> Gathered:
    settings = project.settings()
    environment, baseline, loaded, graph = load_runnable(project, store, name)
    places = environment.places.items()
    fingerprints = {node: loaded.facts[place].fingerprint for node, place in places if place in loaded.facts}
    # Signals are asked while it is planned.
    asked = [node for node, model in graph.models.items() if model.signals]
    check_definitions(store, graph, asked, environment.pointers)
    versions = {
        node: NodeVersion(
            node=node,
            version=pointer.version,
            fingerprint=fingerprints.get(node) or local_fingerprint(graph.models[node], form_of(pointer.definition_id)),
            definition_id=pointer.definition_id,
        )
        for node, pointer in environment.pointers.items()
    }
    physical = {
        node: pointer.physical for node, pointer in environment.pointers.items() if pointer.physical is not None
    }
    inputs = PlanInputs(
        command=request.command,
        graph=graph,
        versions=versions,
        environment=environment,
        baseline=baseline,
        baseline_name=settings.baseline,
        facts=loaded.facts,
        physical=physical,
        now=request.now,
        default_start=settings.default_start,
        default_replay=settings.replay_on_change,
        concurrency=request.concurrency or settings.concurrency,
        catalogs=settings.catalogs,
        flags=request.flags,
        rewrites=_rewrites(store, graph, physical, loaded),
    )
    return Gathered(inputs=inputs, settings=settings)
