"""What the commands need from the composition root, as a value that a test can replace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lamina import bootstrap

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from lamina.app.late_application import LateApplication
    from lamina.app.ports.events import Emit
    from lamina.bootstrap import Diagnosis, OpenOptions
    from lamina.timeline.interval import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The ways into the application; the defaults are the real ones."""

    open_application: Callable[[OpenOptions, Emit], LateApplication] = bootstrap.open_application
    parse_execution_time: Callable[[str | None], Instant] = bootstrap.parse_execution_time
    init_project: Callable[[Path, str, str], Sequence[str]] = bootstrap.init_project
    diagnose: Callable[[OpenOptions, Emit], Sequence[Diagnosis]] = bootstrap.diagnose
    log_folder: Callable[[OpenOptions], Path | None] = bootstrap.log_folder
    hide_values: Callable[[OpenOptions, str], str] = bootstrap.hide_values
