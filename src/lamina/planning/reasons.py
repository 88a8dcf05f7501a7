"""Why a node is stale: what about it differs from what the environment shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamina.environments.pointers import Pointer
    from lamina.graph.dag import Graph
    from lamina.graph.names import NodeName
    from lamina.identity.version import Fingerprint, NodeVersion
    from lamina.planning.steps import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How a node differs from the version an environment shows; `cause` is the node where the difference began."""

    reason: Reason
    cause: NodeName | None
    is_version_new: bool
    is_metadata_only: bool = False


UNCHANGED = Difference(reason="unchanged", cause=None, is_version_new=False)


def difference(
    version: NodeVersion, pointer: Pointer | None, former: Fingerprint | None, parents: Mapping[NodeName, Difference]
) -> Difference:
    """Compare a node with its pointer; `parents` holds the differences of the nodes it reads."""
    if pointer is None:
        return Difference(reason="first_run", cause=version.node, is_version_new=True)
    if pointer.version == version.version:
        if pointer.definition_id == version.definition_id:
            return UNCHANGED
        return Difference(reason="config_changed", cause=version.node, is_version_new=False, is_metadata_only=True)
    own = _own_reason(version.fingerprint, former)
    if own is not None:
        return Difference(reason=own, cause=version.node, is_version_new=True)
    changed = sorted(name for name, parent in parents.items() if parent.is_version_new)
    cause = parents[changed[0]].cause if changed else None
    return Difference(reason="upstream_changed", cause=cause, is_version_new=True)


def _own_reason(now: Fingerprint, former: Fingerprint | None) -> Reason | None:
    if former is None or now.query != former.query:
        return "query_changed"
    if now.config != former.config:
        return "config_changed"
    if now.functions != former.functions:
        return "function_changed"
    return None


def differences(
    graph: Graph,
    versions: Mapping[NodeName, NodeVersion],
    pointers: Mapping[NodeName, Pointer],
    former: Mapping[NodeName, Fingerprint],
) -> dict[NodeName, Difference]:
    """The difference of every node, parents first."""
    found: dict[NodeName, Difference] = {}
    for name in graph.models:
        above = {parent: found[parent] for parent in graph.parents(name)}
        found[name] = difference(versions[name], pointers.get(name), former.get(name), above)
    return found
