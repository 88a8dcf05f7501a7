"""Whether a query says anything about the interval it is computed for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from lamina.sql.macros.text import code_mask, is_code
from lamina.sql.macros.times import TIME_NAMES, find_placeholders
from lamina.sql.syntax import parse_query

if TYPE_CHECKING:
    from collections.abc import Iterator

_BOUND = re.compile(r"(start|end)_\w+", re.IGNORECASE)
_BOUNDS = frozenset(name for name in TIME_NAMES if name.startswith(("start_", "end_")))
_NOW = frozenset(name for name in TIME_NAMES if name.startswith(("execution_", "latest_")))
_CLOCK = re.compile(
    r"\b(current_(date|timestamp|time)|localtimestamp)\b|\b(now|curdate|unix_timestamp)\s*\(\s*\)", re.IGNORECASE
)
_FILTERING = (exp.Where, exp.Having, exp.Qualify, exp.Join, exp.From)


def names_interval(text: str, dialect: str) -> bool:
    """Whether some part of a query, of a statement or an expression is `@start_…` or `@end_…`; it is not parsed."""
    return any(True for _ in find_placeholders(text, dialect, _BOUNDS))


def names_clock(text: str, dialect: str) -> bool:
    """Whether some part of a query or a statement is the time at which it is computed; it is not parsed."""
    if any(True for _ in find_placeholders(text, dialect, _NOW)):
        return True
    found = [match.start() for match in _CLOCK.finditer(text)]
    if not found:
        return False
    mask = code_mask(text, dialect)
    return any(is_code(mask, start) for start in found)


def mentions_interval(text: str, dialect: str) -> bool:
    """Whether the text holds `@start_…` or `@end_…`."""
    return any(True for _ in _bounds(text, dialect))


def filters_by_time(text: str, dialect: str) -> bool:
    """Whether some condition or something the query reads from depends on the interval."""
    return any(node.find_ancestor(*_FILTERING) is not None for node in _bounds(text, dialect))


def _bounds(text: str, dialect: str) -> Iterator[exp.Expr]:
    for node in parse_query(text, dialect).tree.find_all(exp.Parameter, exp.Placeholder):
        if _BOUND.fullmatch(node.name):
            yield node
