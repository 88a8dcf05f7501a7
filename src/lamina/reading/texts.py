"""Statements and queries of audits as they are kept with a project: with what planning compares them by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.errors import SyntaxProblem
from lamina.graph.model import SqlText
from lamina.sql.canonical import canonical_text

if TYPE_CHECKING:
    from lamina.sql.fragment import Fragment


def kept_text(source: Fragment, expanded: str, *, is_time_dependent: bool = False) -> SqlText:
    """The text with its canonical form, so that a plan of an unchanged project need not parse."""
    try:
        canonical = canonical_text(expanded, source.dialect)
    except SyntaxProblem:
        canonical = expanded
    return SqlText(source=source, expanded=expanded, is_time_dependent=is_time_dependent, canonical=canonical)
