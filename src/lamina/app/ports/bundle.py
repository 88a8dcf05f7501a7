"""Every port of the use cases, bound to one project."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lamina.app.ports.engine import Engine
    from lamina.app.ports.events import Emit
    from lamina.app.ports.loaded import Owner
    from lamina.app.ports.machine import Clock, Folders, Processes, Reach
    from lamina.app.ports.project import AskSignal, MacroLoader, ProjectSource
    from lamina.app.ports.state import StateStore


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
