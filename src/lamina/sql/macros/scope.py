"""What macros may see while they are expanded."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Union

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lamina.sql.fragment import Fragment

VariableValue = Union[None, bool, int, float, str, "list[VariableValue]", "dict[str, VariableValue]"]

_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class MacroScope:
    """Variables, functions and values of one expansion; all names in lower case.

    A name is looked up among lambda parameters, then `definitions`, `locals`, `blueprint`, the predefined variables and
    `variables`. `locals` hold SQL text (arguments of audits, blueprint values written as SQL), `blueprint` and
    `variables` hold values. `times` maps time variables to SQL text; without it they stay in the text as placeholders
    for `substitute_times`. `columns_of` gives column names and types of a relation, `None` where they are not known.
    """

    variables: Mapping[str, VariableValue] = field(default_factory=lambda: MappingProxyType({}))
    functions: Mapping[str, Callable[..., object]] = field(default_factory=lambda: MappingProxyType({}))
    times: Mapping[str, str] | None = None
    locals: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    blueprint: Mapping[str, VariableValue] = field(default_factory=lambda: MappingProxyType({}))
    this_model: str | None = None
    stage: str = "loading"
    model_kind: str | None = None
    columns_of: Callable[[str], Mapping[str, str] | None] | None = None
    definitions: tuple[Fragment, ...] = ()
