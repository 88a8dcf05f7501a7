"""From the files of a model to its drafts: one, one for each blueprint, or none.

Macros in a header are expanded here, then `ModelReader` reads the properties. A decorated Python function goes the same
way: its keywords are the properties of a header.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from lamina.errors import BadPythonModel, DefinitionError, LaminaError, SyntaxProblem, raise_all
from lamina.reading.body import macro_scope
from lamina.reading.header_macros import expand_properties
from lamina.reading.model_header import ModelReader
from lamina.reading.plain_values import read_plain_properties
from lamina.reading.properties import Block
from lamina.sql.header.values import Null, Pair, Property, Text, as_items

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lamina.errors import Location
    from lamina.graph.model import PythonBody, VariableValue
    from lamina.reading.drafts import Draft, Surroundings, WrittenReference
    from lamina.sql.header.document import Document

_NOTHING: Mapping[str, VariableValue] = MappingProxyType({})


def read_sql_model(document: Document, stem: str, surroundings: Surroundings) -> tuple[Draft, ...]:
    """The models of one SQL file: one, or one for each blueprint, or none when it is not enabled.

    `stem` is the file's name, which is the model's when the header gives none. Raises everything wrong at once.
    """
    header = document.header
    if header is None:
        raise SyntaxProblem(
            "the file has no MODEL header",
            hint="begin it with `MODEL (name schema.table, kind FULL);`",
            location=document.query.location if document.query else None,
        )
    problems: list[LaminaError] = []
    description = Text(value=header.comment, raw="", sql="", location=header.location) if header.comment else None
    properties = header.properties
    if description is not None and header.find("description") is None:
        properties = (*properties, Property(key="description", value=description, location=header.location))
    drafts = tuple(
        draft
        for number, blueprint in enumerate(_blueprints(properties, surroundings, document.dialect, problems))
        if (
            draft := ModelReader(
                properties, header.location, document.dialect, surroundings, blueprint, number, problems
            ).read_sql(document, stem)
        )
    )
    raise_all(_unique(problems))
    return drafts


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonDefinition:
    """A decorated function: what its decorator says, its code, and the tables its code names."""

    name: str | None
    arguments: Mapping[str, object]
    body: PythonBody
    reads: tuple[WrittenReference, ...]
    location: Location


def read_python_model(definition: PythonDefinition, stem: str, surroundings: Surroundings) -> tuple[Draft, ...]:
    """The models that a decorated function declares; the decorator's keywords are the properties of a header."""
    problems: list[LaminaError] = []
    arguments = {key: value for key, value in definition.arguments.items() if key != "is_sql"}
    if definition.name is not None:
        arguments = {"name": definition.name, **arguments}
    if definition.arguments.get("is_sql"):
        raise BadPythonModel(
            "a Python model cannot return SQL",
            hint="write the query in a `.sql` file; a macro in `macros/` can make parts of it",
            location=definition.location,
        )
    properties = read_plain_properties(arguments, definition.location, surroundings.dialect, problems)
    drafts = tuple(
        draft
        for number, blueprint in enumerate(_blueprints(properties, surroundings, surroundings.dialect, problems))
        if (
            draft := ModelReader(
                properties, definition.location, surroundings.dialect, surroundings, blueprint, number, problems
            ).read_python(definition.body, definition.reads, stem)
        )
    )
    raise_all(_unique(problems))
    return drafts


def _unique(problems: Iterable[LaminaError]) -> list[LaminaError]:
    """Each problem once: every blueprint of a file finds the same ones."""
    return list({(problem.code, problem.message, problem.location): problem for problem in problems}.values())


def _blueprints(
    properties: tuple[Property, ...], surroundings: Surroundings, dialect: str, problems: list[LaminaError]
) -> list[Mapping[str, VariableValue]]:
    found = next((each for each in properties if each.key == "blueprints"), None)
    if found is None or isinstance(found.value, Null):
        return [_NOTHING]
    try:
        expanded = next(iter(expand_properties((found,), macro_scope(surroundings, _NOTHING), dialect)), None)
    except LaminaError as error:
        problems.extend(error.problems)
        return []
    items = as_items(expanded.value) if expanded is not None else ()
    if expanded is None or not items:
        # Without this the file would be no model and no error.
        problems.append(
            DefinitionError(
                "`blueprints` names none, so the file makes no model",
                hint="add one, or leave `blueprints` out; `enabled false` says that there shall be no model",
                location=found.location,
            )
        )
        return []
    block = Block.of("MODEL", (expanded,), found.location, dialect, problems)
    if items and all(isinstance(item, Pair) for item in items):
        return [MappingProxyType(block.variables(expanded.value, "blueprints"))]
    return [MappingProxyType(block.variables(item, "blueprints")) for item in items]
