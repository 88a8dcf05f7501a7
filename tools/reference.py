"""Writes the reference pages that are made from the code: errors and commands.

`make docs` writes them; a test compares them with what would be written.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

from lamina import errors
from tools.cli_reference import page as cli_page

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference"
NOTICE = "<!-- Made by `make docs` from the code; changes made here are lost. -->"


def main() -> int:
    REFERENCE.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (REFERENCE / name).write_text(text, encoding="utf-8")
    return 0


def pages() -> dict[str, str]:
    """Every generated page by its file's name."""
    return {"errors.md": errors_page(), "cli.md": cli_page()}


def errors_page() -> str:
    lines = [
        "# Errors",
        "",
        NOTICE,
        "",
        "Each error has a code that does not change. The exit code is what `lamina` answers when it ends a command.",
        "",
        "| code | error | exit | meaning |",
        "|---|---|---|---|",
    ]
    classes = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.LaminaError)]
    lines += [
        f"| `{kind.code}` | {kind.__name__} | {kind.exit_code} | {first_paragraph(inspect.getdoc(kind))} |"
        for kind in sorted(classes, key=lambda kind: kind.code)
        if kind not in {errors.LaminaError, errors.Problems}
    ]
    return "\n".join(lines) + "\n"


def first_paragraph(text: str | None) -> str:
    return cell((text or "").strip().split("\n\n")[0].replace("\b", ""))


def cell(text: str | None) -> str:
    """Text on one line that does not end a table's cell."""
    return " ".join((text or "").split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
