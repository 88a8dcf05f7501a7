"""Time formats as dialects write them."""

from __future__ import annotations

import re

from sqlglot import Dialect
from sqlglot.time import format_time

from lamina.sql.syntax import check_dialect, is_spark

_PERCENT = re.compile(r"%(?:E6S|.)", re.DOTALL)
_DIRECTIVE = re.compile(r"%-?[A-Za-z%]")
_WORDS = re.compile(r"[^\W\d_T]")
# What Python and every dialect with percent signs mean the same by, but for the minutes of Python.
_EVERYWHERE = frozenset("YymbBdjFHMSfTRpIz%")


def dialect_time_format(written: str, dialect: str) -> str | None:
    """The format in Python's percent signs; None where the dialect has no word for it, or leaves some of it unread.

    >>> dialect_time_format("yyyy-mm-dd", "snowflake"), dialect_time_format("%Y-%m-%d %H:%i", "mysql")
    ('%Y-%m-%d', '%Y-%m-%d %H:%M')
    """
    known = Dialect.get_or_raise(check_dialect(dialect))
    if is_spark(dialect) or not known.TIME_MAPPING:
        return None
    if "%" in written:
        return _PERCENT.sub(lambda found: _percent(found[0], written, known.TIME_MAPPING), written)
    translated = (format_time(written, known.TIME_MAPPING, known.TIME_TRIE) or "").replace('"', "")
    is_read = "%" in translated and not _WORDS.search(_DIRECTIVE.sub("", translated))
    return translated if is_read else None


def _percent(directive: str, written: str, mapping: dict[str, str]) -> str:
    """A directive in Python's words; `%M`, where months have a number beside it, can only be Python's minutes."""
    is_month_name = directive == "%M" and not {"%m", "%c"} & set(_PERCENT.findall(written))
    is_foreign = is_month_name or directive[1:] not in _EVERYWHERE
    return mapping.get(directive, directive) if is_foreign else directive
