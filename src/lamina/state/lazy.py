"""Mappings that are decoded when they are looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

from lamina.graph.names import NodeName
from lamina.state.codec import pointers_document

if TYPE_CHECKING:
    from lamina.environments.pointers import Pointer

K = TypeVar("K")
V = TypeVar("V")


class LazyMapping(Mapping[K, V]):
    """Read-only; a value is decoded when it is first asked for."""

    def __init__(self, texts: Mapping[K, str], read: Callable[[str], V]) -> None:
        self._texts = texts
        self._read = read
        self._values: dict[K, V] = {}

    def __getitem__(self, key: K) -> V:
        """The decoded value."""
        try:
            return self._values[key]
        except KeyError:
            value = self._values[key] = self._read(self._texts[key])
            return value

    def __contains__(self, key: object) -> bool:
        """Whether there is such a key, without decoding."""
        return key in self._texts

    def __iter__(self) -> Iterator[K]:
        """The keys."""
        return iter(self._texts)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._texts)

    def __repr__(self) -> str:
        """The keys, without decoding."""
        return f"LazyMapping({list(self._texts)})"


class LazyPointers(Mapping[NodeName, "Pointer"]):
    """The pointers of a revision, decoded when they are first looked at."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._pointers: Mapping[NodeName, Pointer] | None = None

    def _decoded(self) -> Mapping[NodeName, Pointer]:
        if self._pointers is None:
            self._pointers = pointers_document.read(self._text)
        return self._pointers

    def __getitem__(self, node: NodeName) -> Pointer:
        """The node's pointer."""
        return self._decoded()[node]

    def __iter__(self) -> Iterator[NodeName]:
        """The nodes."""
        return iter(self._decoded())

    def __len__(self) -> int:
        """How many nodes there are."""
        return len(self._decoded())
