"""A model as its own file tells it, before the rest of the project is known."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lamina.errors import Location
    from lamina.graph.dag import Notice
    from lamina.graph.model import Model, PythonModule, VariableValue
    from lamina.sql.header.values import Property
    from lamina.sql.names import TableName


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenReference:
    """A table named in a file, and where."""

    name: TableName
    location: Location


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A model whose name, reads and references are still as written.

    `needs_columns` names relations whose columns a macro asked for and did not get; the file is read again once they
    are known. `descriptions` are those of the header, for columns that become known later.
    """

    name: TableName
    model: Model
    references: tuple[WrittenReference, ...] = ()
    depends_on: tuple[WrittenReference, ...] = ()
    needs_columns: frozenset[str] = frozenset()
    descriptions: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    notices: tuple[Notice, ...] = ()
    given: Mapping[str, Location] = field(default_factory=lambda: MappingProxyType({}))
    """The properties that its own file gives, those inside of its kind included, and where."""
    blueprint_number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the files of a project are read against.

    `defaults` are the project's for MODEL properties. `functions` are Python macros by name in lower case, and
    `macro_modules` the modules each of them needs. `columns_of` gives columns of other models to macros.
    """

    dialect: str = "spark"
    variables: Mapping[str, VariableValue] = field(default_factory=lambda: MappingProxyType({}))
    functions: Mapping[str, Callable[..., object]] = field(default_factory=lambda: MappingProxyType({}))
    macro_modules: Mapping[str, tuple[PythonModule, ...]] = field(default_factory=lambda: MappingProxyType({}))
    defaults: tuple[Property, ...] = ()
    columns_of: Callable[[str], Mapping[str, str] | None] | None = None
