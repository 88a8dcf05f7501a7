"""What a node is: its fingerprint and the version that follows from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamina.graph.names import NodeName
    from lamina.identity.naming import VersionId


FORM = 2
"""The form of identity in use; earlier ones are in `identity/forms`. Ids of definitions say which one made them."""


def form_of(definition_id: str) -> int:
    """The form of identity in which a definition was recorded: the first one did not name itself.

    >>> form_of("2-91d2e0"), form_of("91d2e0")
    (2, 1)
    """
    form, has_name, _ = definition_id.partition("-")
    return int(form) if has_name else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """The hashes that say what a node is.

    `query`, `config` and `functions` are local; `row_set` and `columns` say what the node offers to its children:
    everything that decides which rows exist, and each column's defining expression over what it reads.
    `whole` stands for the node where columns cannot be told apart.
    """

    query: str
    config: str
    functions: str
    metadata: str
    row_set: str
    whole: str
    columns: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeVersion:
    """A node at one identity; `consumes` names, per parent, the fingerprints that went into the version."""

    node: NodeName
    version: VersionId
    fingerprint: Fingerprint
    definition_id: str
    """Hash of everything the user said about the node, metadata included: the code that `run` will use."""
    consumes: Mapping[NodeName, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Same:
    """An identity that stands for one that an earlier form made; versions and ids of definitions alike."""

    node: NodeName
    identity: str
    stands_for: str
