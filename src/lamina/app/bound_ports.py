"""Every port of the use cases, bound to one project."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lamina.app.ask_signals import AskSignal
    from lamina.app.ports import (
        Clock,
        Emit,
        Engine,
        Folders,
        Processes,
        ProjectSource,
        Reach,
        StateStore,
    )
    from lamina.app.records import Owner
    from lamina.app.rendering import MacroLoader


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The world, as far as applying a plan needs it."""

    project: ProjectSource
    store: StateStore
    engine: Engine
    clock: Clock
    emit: Emit
    reach: Reach
    owner: Owner
    processes: Processes
    load_macros: MacroLoader
    ask_signal: AskSignal
    folders: Folders
    retry_pause: float = 1.0
    """Seconds before something that failed in a way that may pass is tried again; later pauses are longer."""
