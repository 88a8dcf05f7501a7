"""Where text goes: results to stdout, everything else to stderr."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console
from rich.text import Text

from lamina.cli.spelling import with_place
from lamina.errors import OutputFailed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import RenderableType

# Text that goes to a file or another program is not folded: a line there is one line, however long.
_UNFOLDED = 2**31


class Output:
    """The two streams of one command, and how much it is to say.

    With `is_json` a command prints one document with `document` and nothing with `result`. `place` are the options that
    commands in notes need to be about the same project and target.
    """

    def __init__(
        self,
        *,
        is_json: bool = False,
        is_plain: bool = False,
        is_verbose: bool = False,
        is_debug: bool = False,
        place: str = "",
    ) -> None:
        self.is_json, self.is_verbose, self.is_debug = is_json, is_verbose, is_debug
        self._place = place
        for stream in (sys.stdout, sys.stderr):
            _never_fail_on_characters(stream)
        self._stdout = sys.stdout
        self.results = _QuietConsole(is_plain=is_plain)
        self.notes = _QuietConsole(is_plain=is_plain, is_stderr=True)

    def result(self, *parts: RenderableType) -> None:
        """Print what the user asked for."""
        for part in parts:
            self.results.print(with_place(part, self._place) if isinstance(part, Text) else part)

    def note(self, *parts: RenderableType) -> None:
        """Print what accompanies the result: warnings, progress, what to do next."""
        for part in parts:
            # A command is copied in one piece: what is too wide for the terminal is folded by the terminal alone.
            is_text = isinstance(part, Text)
            self.notes.print(with_place(part, self._place) if isinstance(part, Text) else part, soft_wrap=is_text)

    def text(self, text: str) -> None:
        """Print a result exactly as it is, a line end added if there is none."""
        with _until_reader_leaves(self._stdout):
            self._stdout.write(text if text.endswith("\n") else f"{text}\n")
            self._stdout.flush()

    def document(self, document: Mapping[str, Any]) -> None:
        """Print the one JSON document of a command."""
        is_unicode = (self._stdout.encoding or "").lower().startswith("utf")
        self.text(json.dumps(document, indent=2, ensure_ascii=not is_unicode, allow_nan=False))


class _QuietConsole(Console):
    """A console that takes text literally and does not mind when its reader has gone."""

    _is_piped = False

    def __init__(self, *, is_plain: bool, is_stderr: bool = False) -> None:
        super().__init__(
            file=None if is_stderr else sys.stdout,
            stderr=is_stderr,
            no_color=True if is_plain else None,
            markup=False,
            emoji=False,
            highlight=False,
        )
        if not self.is_terminal and not os.environ.get("COLUMNS"):
            self.width = _UNFOLDED
            self._is_piped = True

    def print(self, *objects: Any, **how: Any) -> None:
        """Print; a line that goes to a file or another program does not end in spaces that only fill a table."""
        with _until_reader_leaves(self.file):
            if not self._is_piped:
                super().print(*objects, **how)
                return
            with self.capture() as captured:
                super().print(*objects, **how)
            lines = captured.get().split("\n")
            super().print(Text("\n".join(line.rstrip(" ") for line in lines)), end="", soft_wrap=True)

    def on_broken_pipe(self) -> None:
        self.quiet = True
        _turn_away(self.file)


def finish() -> OutputFailed | None:
    """Hand over what is still buffered, and answer why results cannot be; a reader that has gone is no error."""
    failed = None
    for stream in (sys.stdout, sys.stderr):
        try:
            with _until_reader_leaves(stream):
                stream.flush()
        except OutputFailed as error:
            failed = error
    return failed


@contextlib.contextmanager
def _until_reader_leaves(stream: Any) -> Any:
    """A reader that has gone is no error, nor are notes that nobody gets; `OutputFailed` for results."""
    try:
        yield
    except BrokenPipeError:
        _turn_away(stream)
    except OSError as error:
        _turn_away(stream)
        if stream is sys.stdout:
            raise cannot_write(error) from error


def cannot_write(error: BaseException) -> OutputFailed:
    """What people are told where results cannot be written."""
    return OutputFailed(
        f"the result could not be written: {getattr(error, 'strerror', None) or error}",
        hint="what the command did is done and recorded; make room where its output goes",
    )


def _turn_away(stream: Any) -> None:
    """Let what a stream still holds go nowhere, so that the interpreter does not complain at its end."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, stream.fileno())
        finally:
            os.close(nowhere)


def _never_fail_on_characters(stream: TextIO) -> None:
    """A name that the terminal's encoding cannot show is shown escaped instead of ending the command."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
