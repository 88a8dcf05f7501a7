"""What a kind says about rows that match: `when_matched` and `merge_filter`, as Spark SQL with times still by name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lamina.errors import BadPropertyValue, LaminaError
from lamina.graph.kinds import IncrementalByUniqueKey
from lamina.sql.fragment import Fragment
from lamina.sql.header.merge_clauses import clauses_to_spark
from lamina.sql.macros.expand import expand
from lamina.sql.types import header_expression

if TYPE_CHECKING:
    from lamina.errors import Location
    from lamina.graph.kinds import Kind
    from lamina.sql.header.values import KindValue
    from lamina.sql.macros.scope import MacroScope


def with_merge_texts(
    kind: Kind, value: KindValue, dialect: str, scope: MacroScope, problems: list[LaminaError]
) -> Kind:
    """The kind with macros of its clauses expanded; whatever cannot be a clause is added to the problems."""
    if not isinstance(kind, IncrementalByUniqueKey):
        return kind
    try:
        place = _place(value, "when_matched")
        clauses = tuple(_expanded("when_matched", text, dialect, place, scope) for text in kind.when_matched)
        kind = replace(kind, when_matched=clauses_to_spark(clauses, dialect, place))
        if kind.merge_filter is not None:
            place = _place(value, "merge_filter")
            text = _expanded("merge_filter", kind.merge_filter, dialect, place, scope)
            kind = replace(kind, merge_filter=header_expression(text, dialect, place) or None)
    except LaminaError as error:
        problems.extend(error.problems)
    return kind


def _expanded(key: str, text: str, dialect: str, place: Location, scope: MacroScope) -> str:
    expansion = expand(Fragment(text=text, location=place, dialect=dialect), scope)
    if expansion.is_time_dependent:
        raise BadPropertyValue(
            f"`{key}` asks a macro about time, which is known only when the model runs",
            hint="use `@start_ds` and the like as plain values",
            location=place,
        )
    return expansion.text


def _place(value: KindValue, key: str) -> Location:
    found = next((each for each in value.properties if each.key == key), None)
    return found.value.location if found is not None else value.location
