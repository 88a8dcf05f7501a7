"""Which recorded version a node is: the one it is called now, or one that an earlier form of identity called otherwise.

When the form changes, every node is called something else although nothing about it has changed. What was recorded
keeps its name: the new identity stands for the old one, and that is recorded, so that the old form is asked only once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from lamina.identity.fingerprint import definition_id_of
from lamina.identity.naming import VersionId
from lamina.identity.version import FORM, Same, form_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from lamina.graph.names import NodeName
    from lamina.identity.version import Fingerprint, NodeVersion

Equals: TypeAlias = "Mapping[tuple[NodeName, str], tuple[str, ...]]"
"""By node and identity (a version or the id of a definition): what was recorded under other names and is the same."""

Shown: TypeAlias = "Mapping[NodeName, tuple[VersionId, str]]"
"""What an environment points to: versions and the ids of the definitions they run by."""


def identities(version: NodeVersion) -> tuple[tuple[NodeName, str], ...]:
    """What to ask recorded equalities about."""
    return (version.node, version.version), (version.node, version.definition_id)


def is_shown(version: NodeVersion, shown: Collection[Shown]) -> bool:
    """Whether everyone who shows the node shows just this, and someone does: then nothing else can be meant."""
    found = {pointers[version.node] for pointers in shown if version.node in pointers}
    return found == {(version.version, version.definition_id)}


def undecided(
    versions: Mapping[NodeName, NodeVersion],
    equals: Equals,
    shown: Collection[Shown],
    recorded: Collection[tuple[NodeName, VersionId]],
) -> dict[int, set[NodeName]]:
    """The nodes that an earlier form must be asked about, by that form.

    Where something is shown by a definition of that form: these nodes, as long as it is not known to be what they are
    now, and those that nothing is `recorded` of under what they are called now. They may have been built before.
    """
    found: dict[int, set[NodeName]] = {}
    for pointers in shown:
        for name, (shown_version, definition_id) in pointers.items():
            form = form_of(definition_id)
            if form < FORM:
                nodes = found.setdefault(form, set())
                if name in versions and not _is_known(versions[name], shown_version, definition_id, equals):
                    nodes.add(name)
    if found:
        there = {*recorded, *((name, version) for pointers in shown for name, (version, _) in pointers.items())}
        unknown = {
            name
            for name, version in versions.items()
            if (name, version.version) not in there and (name, version.version) not in equals
        }
        found = {form: nodes | unknown for form, nodes in found.items()}
    return {form: nodes for form, nodes in found.items() if nodes}


def _is_known(version: NodeVersion, shown: VersionId, definition_id: str, equals: Equals) -> bool:
    is_version = shown in {version.version, *equals.get((version.node, version.version), ())}
    return is_version and definition_id in equals.get((version.node, version.definition_id), ())


def equal_now(
    versions: Mapping[NodeName, NodeVersion],
    former: Iterable[NodeVersion],
    shown: Collection[Shown],
    recorded: Collection[tuple[NodeName, VersionId]],
) -> tuple[Same, ...]:
    """What an earlier form says to be the same: of versions that are shown or `recorded`, and of shown definitions."""
    found: dict[Same, None] = {}
    for old in former:
        new = versions[old.node]
        pointers = [pointers[old.node] for pointers in shown if old.node in pointers]
        is_there = (old.node, old.version) in recorded or any(version == old.version for version, _ in pointers)
        if is_there and old.version != new.version:
            found[Same(node=old.node, identity=new.version, stands_for=old.version)] = None
        if any(definition_id == old.definition_id for _, definition_id in pointers):
            found[Same(node=old.node, identity=new.definition_id, stands_for=old.definition_id)] = None
    return tuple(found)


def with_equals(equals: Equals, further: Iterable[Same]) -> Equals:
    """The equalities with further ones."""
    found = dict(equals)
    for each in further:
        key = (each.node, each.identity)
        found[key] = tuple(dict.fromkeys((*found.get(key, ()), each.stands_for)))
    return found


def standing(
    versions: Mapping[NodeName, NodeVersion],
    equals: Equals,
    shown: Sequence[Shown],
    fingerprints: Mapping[tuple[NodeName, VersionId], Fingerprint],
) -> dict[NodeName, NodeVersion]:
    """What every node is recorded as. Of several names, the one wins that is shown, first by the first of `shown`.

    `fingerprints` are those that recorded versions have: such a version goes on with its own.
    """
    if not equals:
        return dict(versions)
    return {
        name: _standing(version, equals, [pointers[name] for pointers in shown if name in pointers], fingerprints)
        for name, version in versions.items()
    }


def _standing(
    new: NodeVersion,
    equals: Equals,
    pointers: Sequence[tuple[VersionId, str]],
    fingerprints: Mapping[tuple[NodeName, VersionId], Fingerprint],
) -> NodeVersion:
    name = new.node
    is_recorded = (name, new.version) in fingerprints
    others = equals.get((name, new.version), ())
    candidates = (new.version, *others) if is_recorded or not others else others
    chosen = VersionId(_first_shown(candidates, [version for version, _ in pointers]))
    definitions = (definition_id_of(chosen, new.fingerprint), *equals.get((name, new.definition_id), ()))
    return replace(
        new,
        version=chosen,
        fingerprint=fingerprints.get((name, chosen), new.fingerprint),
        definition_id=_first_shown(definitions, [id_ for shown, id_ in pointers if shown == chosen]),
    )


def _first_shown(candidates: Sequence[str], shown: Sequence[str]) -> str:
    return next((each for each in shown if each in candidates), candidates[0])


def in_terms_of(now: Fingerprint, same: Fingerprint, former: Fingerprint) -> Fingerprint:
    """What a former definition was, comparable with `now`.

    `same` and `former` are made alike, `same` from the definition that `now` stands for: where these two agree, what
    they were made from has not changed, whatever `now` calls it.
    """
    return replace(
        former,
        query=now.query if same.query == former.query else former.query,
        config=now.config if same.config == former.config else former.config,
        functions=now.functions if same.functions == former.functions else former.functions,
        metadata=now.metadata if same.metadata == former.metadata else former.metadata,
    )
