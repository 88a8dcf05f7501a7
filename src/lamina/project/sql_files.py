"""Models written in SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.errors import LaminaError, Location
from lamina.reading.model_files import read_sql_model
from lamina.sql.header.document import read_document

if TYPE_CHECKING:
    from lamina.reading.drafts import Draft, Surroundings


def read_sql_file(text: str, path: str, stem: str, surroundings: Surroundings) -> tuple[Draft, ...]:
    """The models of one file; raises everything wrong with it at once, each with its place."""
    try:
        return read_sql_model(read_document(text, path, surroundings.dialect), stem, surroundings)
    except LaminaError as error:
        for problem in error.problems:
            problem.location = problem.location or Location(file=path, line=1)
        raise
