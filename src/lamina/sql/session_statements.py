"""Statements that prepare a session and nothing else."""

from __future__ import annotations

import re

_PREPARES = re.compile(
    r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*"
    r"(?:CREATE\s+(?:OR\s+REPLACE\s+)?TEMP(?:ORARY)?\s+(?:VIEW|FUNCTION)|DECLARE|SET|USE)\b",
    re.IGNORECASE | re.DOTALL,
)


def prepares_session(statement: str) -> bool:
    """Whether a statement of Spark SQL leaves nothing behind that outlives its session."""
    return _PREPARES.match(statement) is not None
