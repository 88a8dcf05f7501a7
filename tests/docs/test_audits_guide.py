"""The guide on audits lists every built-in one with the arguments that it takes."""

from __future__ import annotations

import re
from pathlib import Path

from lamina.sql.builtin_audits import BUILTIN_AUDITS

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "audits.md"
_ROW = re.compile(r"^\| (`.+?`) \| (`.+?) \|", re.MULTILINE)


def test_the_table_lists_every_built_in_audit_with_its_arguments() -> None:
    listed = {
        name: set(re.findall(r"`(\w+)`", arguments))
        for names, arguments in _ROW.findall(GUIDE.read_text(encoding="utf-8"))
        for name in re.findall(r"`(\w+)`", names)
    }
    taken = {name: {*audit.required, *audit.optional} - {"condition"} for name, audit in BUILTIN_AUDITS.items()}
    assert listed == taken
    assert all("condition" in audit.optional for audit in BUILTIN_AUDITS.values())
