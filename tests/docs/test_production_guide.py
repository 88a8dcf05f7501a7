"""The guide on production shows the list of what is tried again as the code has it."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from lamina import errors
from lamina.spark.retried import RETRIED

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "production.md"


def test_the_guide_shows_what_is_tried_again() -> None:
    section = GUIDE.read_text(encoding="utf-8").partition("## What Lamina retries\n")[2].partition("\n## ")[0]
    shown = [line for line in section.splitlines() if line.startswith("| ")][1:]
    told = [", ".join(f"`{name}`" for name in one.told_by) for one in RETRIED]
    assert shown == [
        f"| {one.happened} | {names} | {one.why} | {'yes' if one.is_unanswered else 'no'} |"
        for one, names in zip(RETRIED, told, strict=True)
    ]


def test_the_errors_that_the_guide_names_exist() -> None:
    codes = {
        kind.code for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.LaminaError)
    }
    named = set(re.findall(r"LAM-[A-Z]+-\d+", GUIDE.read_text(encoding="utf-8")))
    assert named - codes == set()
