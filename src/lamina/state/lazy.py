"""Mappings that are decoded when they are looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

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


class LazyDocument(Mapping[K, V]):
    """Read-only; one stored mapping, decoded as a whole when it is first looked into."""

    def __init__(self, text: str, read: Callable[[str], Mapping[K, V]]) -> None:
        self._text = text
        self._read = read
        self._decoded: Mapping[K, V] | None = None

    def _mapping(self) -> Mapping[K, V]:
        if self._decoded is None:
            self._decoded = self._read(self._text)
        return self._decoded

    def __getitem__(self, key: K) -> V:
        """The value."""
        return self._mapping()[key]

    def __iter__(self) -> Iterator[K]:
        """The keys."""
        return iter(self._mapping())

    def __len__(self) -> int:
        """How many there are."""
        return len(self._mapping())

    def __repr__(self) -> str:
        """The decoded mapping."""
        return f"LazyDocument({dict(self._mapping())})"
