"""What the use cases need from this machine: its clock, its processes and its folders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lamina.app.ports.loaded import Lease
    from lamina.timeline.interval import Instant


Fate: TypeAlias = Literal["unknown", "gone", "settled"]
"""Of who holds a lease: it may live; its process is gone; and nothing that it began can land any more."""

FateOf: TypeAlias = "Callable[[Lease], Fate]"
"""Quick, and never wrong about more than `unknown`: it is asked while the store is locked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """By what others can tell that this process, once its engine runs, is gone."""

    catalog: str | None = None
    """The lock on a catalog that admits one process, held until this process and all that act for it are gone."""
    processes: tuple[int, ...] = ()
    """Processes of this machine that carry out statements for it."""
    is_carried: bool = True
    """Whether a server carries statements out, so that they may land after all these processes are gone."""


class Processes(Protocol):
    """The processes of this machine."""

    def identify(self, process: int) -> str | None:
        """What tells a process from all others there ever were; `None` where the system does not say."""
        ...

    def is_gone(self, identity: str) -> bool:
        """Whether the process provably runs no more; False where this cannot be told from here."""
        ...


class Folders(Protocol):
    """Where tables lie, as far as it can be looked at without an engine; elsewhere, everything counts as there."""

    def knows(self, schema: str) -> bool:
        """Whether the folders of a schema can be looked for."""
        ...

    def absent(self, schema: str, folders: Sequence[str]) -> tuple[str, ...]:
        """Which of these folders, named as in a manifest, are not there: their whole paths."""
        ...

    def left_behind(self, schemas: Sequence[str]) -> tuple[str, ...]:
        """The folders of these schemas that hold tables which Lamina has made."""
        ...


class Clock(Protocol):
    """Time as this process sees it."""

    def now(self) -> Instant:
        """The current instant."""
        ...

    def elapsed(self) -> float:
        """Seconds that only ever grow, suspend included."""
        ...


Reach: TypeAlias = "Callable[[str], None]"
"""Called at every named kill point; a test stops or kills the process there."""
