"""What the nodes of a project are called in state, whichever form of identity they were recorded in."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from lamina.app.ports.facts import IdentityStands
from lamina.app.ports.loaded import LoadRequest
from lamina.graph.model import SqlBody
from lamina.identity.fingerprint import version_of, versions_of
from lamina.identity.forms.former import FORMER, former_versions
from lamina.identity.naming import VersionId
from lamina.identity.standing import equal_now, identities, in_terms_of, is_shown, standing, undecided, with_equals
from lamina.identity.version import FORM, Same, form_of
from lamina.sql.on_demand import column_comments

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from lamina.app.ports.loaded import Loaded
    from lamina.app.ports.state import StateStore
    from lamina.environments.pointers import Pointer, Revision
    from lamina.graph.dag import Graph
    from lamina.graph.model import Model
    from lamina.graph.names import NodeName
    from lamina.identity.standing import Equals, Shown
    from lamina.identity.version import Fingerprint, NodeVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class Identified:
    """The versions of a project's nodes, and what state knows of them and of some environments.

    `made` is what the nodes are called by the form in use, `found` what an earlier form just said to be the same.
    """

    versions: Mapping[NodeName, NodeVersion]
    made: Mapping[NodeName, NodeVersion]
    loaded: Loaded
    found: tuple[Same, ...] = ()


def seal_key(store: StateStore, graph: Graph) -> bytes:
    """What digests of values from the environment are keyed with; where there is no state yet, for this once."""
    if not any(model.environment for model in graph.models.values()):
        return b""
    return store.seal_key or secrets.token_bytes(32)


def identify(store: StateStore, graph: Graph, environments: tuple[str, ...]) -> Identified:
    """Every node's version, as it is recorded where it is; the first of the environments is what it is for.

    Earlier forms are only asked about nodes that one of the environments shows by a definition of that form, until it
    is recorded what they are called now.
    """
    made = versions_of(graph, seal_key(store, graph))
    loaded = _load(store, environments, ((version.node, version.version) for version in made.values()))
    shown = [_shown(loaded.revisions[name]) for name in environments if name in loaded.revisions]
    asked = [key for version in made.values() if not is_shown(version, shown) for key in identities(version)]
    equals = store.load(LoadRequest(identities=tuple(asked), facts_of_pointers=False)).equals if asked else {}
    if others := tuple(_versions_elsewhere(made, equals, loaded)):
        loaded = _with_facts(loaded, _load(store, (), others))
    recorded = {(facts.node, facts.version) for facts in loaded.facts.values()}
    former = [
        version
        for form, nodes in undecided(made, equals, shown, recorded).items()
        for version in former_versions(form, graph, nodes).values()
    ]
    found: tuple[Same, ...] = ()
    if former:
        loaded = _with_facts(loaded, _load(store, (), ((version.node, version.version) for version in former)))
        recorded = {(facts.node, facts.version) for facts in loaded.facts.values()}
        found = equal_now(made, former, shown, recorded)
        equals = with_equals(equals, found)
    fingerprints = {(facts.node, facts.version): facts.fingerprint for facts in loaded.facts.values()} if equals else {}
    versions = standing(made, equals, shown, fingerprints)
    return Identified(versions=versions, made=made, loaded=loaded, found=found)


def _load(store: StateStore, environments: tuple[str, ...], versions: Iterable[tuple[NodeName, VersionId]]) -> Loaded:
    return store.load(LoadRequest(environments=environments, versions=tuple(dict.fromkeys(versions))))


def _versions_elsewhere(
    made: Mapping[NodeName, NodeVersion], equals: Equals, loaded: Loaded
) -> Iterator[tuple[NodeName, VersionId]]:
    """Versions that nodes stand for and that were not loaded, because none of the environments shows them."""
    known = {(facts.node, facts.version) for facts in loaded.facts.values()}
    for (node, identity), names in equals.items():
        if identity == made[node].version:
            yield from ((node, VersionId(name)) for name in names if (node, name) not in known)


def _with_facts(loaded: Loaded, further: Loaded) -> Loaded:
    """Both snapshots in one: whoever acts on facts has their marks confirmed."""
    return replace(loaded, facts=MappingProxyType({**loaded.facts, **further.facts}))


def _shown(revision: Revision) -> Shown:
    return {name: (pointer.version, pointer.definition_id) for name, pointer in revision.pointers.items()}


def record_found(store: StateStore, found: tuple[Same, ...]) -> None:
    """Have it known what stands for what, so that earlier forms are not asked again."""
    if found:
        store.commit([IdentityStands(same=same) for same in found])


def local_fingerprint(model: Model, form: int = FORM) -> Fingerprint:
    """The hashes of a recorded definition by itself: enough to say what about it changed."""
    return FORMER.get(form, version_of)(model, {}).fingerprint


def with_comments_read_otherwise(
    identified: Identified, graph: Graph, previous: Mapping[NodeName, Model], pointers: Mapping[NodeName, Pointer]
) -> Identified:
    """The same, knowing shown definitions again that an earlier Lamina took other comments from the same query for.

    Comments in a query are read differently since the first form of identity; nobody has changed anything there.
    """
    versions, found = dict(identified.versions), list(identified.found)
    for name, former in previous.items():
        pointer, version = pointers[name], versions.get(name)
        form = form_of(pointer.definition_id)
        if version is None or form == FORM or version.version != pointer.version:
            continue
        as_read = _with_comments_of(former, graph.models[name])
        if as_read is None or local_fingerprint(as_read, form).metadata != local_fingerprint(former, form).metadata:
            continue
        made = identified.made[name].definition_id
        versions[name] = replace(version, definition_id=pointer.definition_id)
        found.append(Same(node=name, identity=made, stands_for=pointer.definition_id))
    return replace(identified, versions=versions, found=tuple(found))


def _with_comments_of(former: Model, now: Model) -> Model | None:
    """The model with the comments that a former definition had where its query gives them; None if that is another."""
    if not isinstance(former.body, SqlBody) or not isinstance(now.body, SqlBody):
        return None
    if former.body.query.source.text != now.body.query.source.text:
        return None
    beside = column_comments(now.body.query.expanded, now.dialect)
    was = {column.name: column.comment for column in former.columns or ()}
    columns = tuple(
        replace(column, comment=was.get(column.name)) if column.comment == beside.get(column.name.lower()) else column
        for column in now.columns or ()
    )
    return replace(now, columns=columns) if now.columns else None


def former_fingerprints(
    identified: Identified, graph: Graph, previous: Mapping[NodeName, Model], pointers: Mapping[NodeName, Pointer]
) -> dict[NodeName, Fingerprint]:
    """The hashes of recorded definitions, comparable with what the project's nodes are now."""
    found: dict[NodeName, Fingerprint] = {}
    for name, model in previous.items():
        form = form_of(pointers[name].definition_id)
        found[name] = local_fingerprint(model, form)
        if name in graph.models:
            made = identified.made[name].fingerprint
            same = made if form == FORM else local_fingerprint(graph.models[name], form)
            found[name] = in_terms_of(identified.versions[name].fingerprint, same, found[name])
    return found
