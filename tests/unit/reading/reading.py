"""Builders for tests that read models from text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lamina.errors import LaminaError
from lamina.reading.drafts import Surroundings
from lamina.reading.model_files import read_sql_model
from lamina.sql.header.document import read_document

if TYPE_CHECKING:
    from lamina.graph.model import Model
    from lamina.reading.drafts import Draft


def read(text: str, *, stem: str = "stem", file: str = "models/m.sql", **surroundings: object) -> tuple[Draft, ...]:
    around = Surroundings(**surroundings)  # type: ignore[arg-type]
    return read_sql_model(read_document(text, file, around.dialect), stem, around)


def read_one(text: str, **arguments: object) -> Model:
    (draft,) = read(text, **arguments)  # type: ignore[arg-type]
    return draft.model


def problems(text: str, **arguments: object) -> list[LaminaError]:
    with pytest.raises(LaminaError) as caught:
        read(text, **arguments)  # type: ignore[arg-type]
    return list(caught.value.problems)


def problem(text: str, **arguments: object) -> LaminaError:
    (found,) = problems(text, **arguments)
    return found
