"""One call of the command line: what was asked for everywhere, and the way to the application."""

from __future__ import annotations

import sys
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING

from lamina.bootstrap import OpenOptions
from lamina.cli.present.output import Output
from lamina.cli.present.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from lamina.app.late_application import LateApplication
    from lamina.cli.services import Services
    from lamina.timeline.interval import Instant


class Invocation:
    """Owns the output of one command.

    Until Click has read the options, `--json` and its like are taken from the bare words, so that wrong usage is
    already reported in the manner that was asked for.
    """

    def __init__(self, services: Services, words: Sequence[str]) -> None:
        self.services = services
        self.words = tuple(words)
        options = self.words[: self.words.index("--")] if "--" in self.words else self.words
        self.output = Output(
            is_json="--json" in options, is_plain="--no-color" in options, is_debug="--debug" in options
        )
        self.open_options = OpenOptions()
        self.execution_time: str | None = None

    def settle(
        self,
        *,
        directory: Path | None,
        target: str | None,
        execution_time: str | None,
        output: Output,
    ) -> None:
        """Take over the options that every command has."""
        self.open_options = OpenOptions(directory=directory, target=target, debug=output.is_debug)
        self.execution_time = execution_time
        self.output = output

    def now(self) -> Instant:
        """The moment the command works at."""
        return self.services.parse_execution_time(self.execution_time)

    @contextmanager
    def progress(self) -> Iterator[Progress]:
        """What draws progress on stderr.

        What the project's own Python code prints is no result: it goes where notes go.
        """
        with Progress(self.output.notes) as progress, redirect_stdout(sys.stderr):
            yield progress

    @contextmanager
    def application(self) -> Iterator[tuple[LateApplication, Progress]]:
        """The application, closed at the end, with its progress drawn meanwhile."""
        with self.progress() as progress:
            application = self.services.open_application(self.open_options, progress.show)
            try:
                yield application, progress
            finally:
                application.close()
