"""What time has to do with what a model gives: the stretch it is computed for, the moment it is computed at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.graph.kinds import Embedded, IncrementalByUniqueKey, View
from lamina.graph.model import PythonBody, SqlBody
from lamina.sql.time_filters import names_clock, names_interval

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lamina.graph.model import Model, SqlText
    from lamina.graph.names import NodeName


def uses_span(models: Mapping[NodeName, Model], model: Model) -> bool:
    """Whether what a run of the model gives depends on the time it is about, embedded models included.

    It is always the same for one version: whatever it depends on is part of the version's identity.
    """
    if isinstance(model.body, PythonBody) or any(names_interval(text, "spark") for text in _merge_texts(model)):
        return True
    if any(_names_interval(model, text) for text in _texts(model)):
        return True
    parents = (models[read] for read in model.reads if read in models and read != model.name)
    return any(isinstance(parent.kind, Embedded) and uses_span(models, parent) for parent in parents)


def asks_the_clock(models: Mapping[NodeName, Model], model: Model) -> bool:
    """Whether what the model gives depends on the moment it is computed at, embedded models and views included."""
    if any(text.is_time_dependent or names_clock(text.expanded, model.dialect) for text in _texts(model)):
        return True
    parents = (models[read] for read in model.reads if read in models and read != model.name)
    return any(isinstance(parent.kind, Embedded | View) and asks_the_clock(models, parent) for parent in parents)


def _texts(model: Model) -> Iterator[SqlText]:
    if isinstance(model.body, SqlBody):
        yield model.body.query
        yield from model.body.pre_statements
        yield from model.body.post_statements


def _merge_texts(model: Model) -> Iterator[str]:
    if isinstance(model.kind, IncrementalByUniqueKey):
        yield from model.kind.when_matched
        if model.kind.merge_filter is not None:
            yield model.kind.merge_filter


def _names_interval(model: Model, text: SqlText) -> bool:
    if names_interval(text.expanded, model.dialect):
        return True
    if not text.is_time_dependent or not isinstance(model.body, SqlBody):
        return False
    # What Python macros ask about time cannot be seen from outside.
    macros = model.body.macros
    sources = (text.source.text, *(definition.text for definition in macros.definitions))
    return bool(macros.modules) or any(names_interval(source, model.dialect) for source in sources)
