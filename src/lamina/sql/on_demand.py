"""What planning asks about SQL texts, each answered by a module that is imported with the first question.

A plan finds nearly everything it needs among the values of a project that was loaded before. sqlglot takes longer to
import than most plans take to make, so it is left alone until a text has to be looked into.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SPARK = "spark"
# What a text must hold, be it in a string or a comment, for the answer to be yes.
_BOUND = re.compile(r"[@$:]\{?(?:start|end)_", re.IGNORECASE)
_MOMENT = re.compile(
    r"[@$:]\{?(?:execution|latest)_|current_(?:date|time)|localtimestamp|\b(?:now|curdate|unix_timestamp)\b",
    re.IGNORECASE,
)
_VIEW = re.compile(r"\b(?:create|cache)\b", re.IGNORECASE)


def differs_when_repeated(texts: Sequence[str]) -> bool:
    """See `merge_clauses.differs_when_repeated`."""
    if not texts:
        return False
    from lamina.sql.header import merge_clauses

    return merge_clauses.differs_when_repeated(texts)


def canonical_text(text: str, dialect: str = _SPARK) -> str:
    """See `canonical.canonical_text`."""
    from lamina.sql import canonical

    return canonical.canonical_text(text, dialect)


def made_with() -> str:
    """See `canonical.MADE_WITH`."""
    from lamina.sql import canonical

    return canonical.MADE_WITH


def changed_columns(old_text: str, new_text: str, dialect: str = _SPARK) -> tuple[str, ...]:
    """See `compare.changed_columns`."""
    from lamina.sql import compare

    return compare.changed_columns(old_text, new_text, dialect)


def column_comments(text: str, dialect: str = _SPARK) -> Mapping[str, str | None]:
    """See `query.column_comments`."""
    from lamina.sql import query

    return query.column_comments(text, dialect)


def names_clock(text: str, dialect: str) -> bool:
    """See `time_filters.names_clock`."""
    if _MOMENT.search(text) is None:
        return False
    from lamina.sql import time_filters

    return time_filters.names_clock(text, dialect)


def names_interval(text: str, dialect: str) -> bool:
    """See `time_filters.names_interval`."""
    if _BOUND.search(text) is None:
        return False
    from lamina.sql import time_filters

    return time_filters.names_interval(text, dialect)


def reads_unseen(text: str) -> bool:
    """See `session_statements.reads_unseen`."""
    if _VIEW.search(text) is None:
        return False
    from lamina.sql import session_statements

    return session_statements.reads_unseen(text)


def unified_diff(old_text: str, new_text: str, name: str) -> str:
    """See `compare.unified_diff`."""
    from lamina.sql import compare

    return compare.unified_diff(old_text, new_text, name)
