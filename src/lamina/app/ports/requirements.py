"""What must still be true for a commit to be made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lamina.app.ports.published import AttemptStatus, Head
    from lamina.identity.naming import PhysicalName


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseIsCurrent:
    """The lease is still held under this token; checked by token, never by time. Refused with `LeaseLost`."""

    resource: str
    token: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptIs:
    """The attempt has this status."""

    number: int
    status: AttemptStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadIs:
    """The version's head has this sequence number (0: none)."""

    physical: PhysicalName
    sequence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingPending:
    """No attempt of the version is decided or retracting."""

    physical: PhysicalName


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkIs:
    """The version's recorded work is what the plan was made from (0: nothing recorded)."""

    physical: PhysicalName
    mark: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionIs:
    """The environment's newest revision has this number (0: none)."""

    environment: str
    number: int


def read_whole(versions: Iterable[PhysicalName], heads: Mapping[PhysicalName, Head]) -> list[NothingPending]:
    """What must be true for these versions to be read as their heads say.

    A decided publish may show its rows in part while it is carried out. A head that names a snapshot of its table is
    read at that snapshot, whatever goes on.
    """
    return [
        NothingPending(physical=physical)
        for physical in versions
        if physical not in heads or heads[physical].snapshot is None
    ]


Requirement: TypeAlias = LeaseIsCurrent | AttemptIs | HeadIs | NothingPending | MarkIs | RevisionIs
