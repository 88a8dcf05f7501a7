"""Writes the reference pages that are made from the code: errors, commands, configuration, models and macros.

`make docs` writes them; a test compares them with what would be written.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

from lamina import errors
from tools import config_reference, macro_reference, model_reference
from tools.cli_reference import page as cli_page
from tools.documented import NOTICE, cell

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference"


def main() -> int:
    REFERENCE.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (REFERENCE / name).write_text(text, encoding="utf-8")
    return 0


def pages() -> dict[str, str]:
    """Every generated page by its file's name."""
    return {
        "errors.md": errors_page(),
        "cli.md": cli_page(),
        "configuration.md": config_reference.page(),
        "models.md": model_reference.page(),
        "macros.md": macro_reference.page(),
    }


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


if __name__ == "__main__":
    sys.exit(main())
