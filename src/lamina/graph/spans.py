"""What time has to do with what a model gives: the stretch it is computed for, the moment it is computed at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.graph.kinds import Embedded, IncrementalByUniqueKey, View
from lamina.graph.model import PythonBody, SqlBody
from lamina.sql.on_demand import names_clock, names_interval, reads_unseen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import UnionType

    from lamina.graph.model import Model, SqlText
    from lamina.graph.names import NodeName


def uses_span(models: Mapping[NodeName, Model], model: Model) -> bool:
    """Whether what a run of the model gives depends on the time it is about, embedded models included.

    It is always the same for one version: whatever it depends on is part of the version's identity.
    """
    if isinstance(model.body, PythonBody) or any(names_interval(text, "spark") for text in _merge_texts(model)):
        return True
    parts = _computed_together(models, model, Embedded)
    return any(_names_interval(part, text) for part in parts for text in _texts(part))


def asks_the_clock(models: Mapping[NodeName, Model], model: Model) -> bool:
    """Whether what the model gives depends on the moment it is computed at, embedded models and views included."""
    parts = _computed_together(models, model, Embedded | View)
    return any(
        text.is_time_dependent or names_clock(text.expanded, part.dialect) for part in parts for text in _texts(part)
    )


def may_read_unseen(model: Model) -> bool:
    """Whether what a model reads cannot be told from its names: code may read anything."""
    if isinstance(model.body, SqlBody):
        return bool(model.pre_hooks) or any(reads_unseen(text.expanded) for text in model.body.pre_statements)
    return isinstance(model.body, PythonBody)


def _computed_together(models: Mapping[NodeName, Model], model: Model, kinds: type | UnionType) -> Iterator[Model]:
    """The model and, each once, those of some kinds that are computed whenever it is."""
    found, waiting = {model.name}, [model]
    while waiting:
        part = waiting.pop()
        yield part
        parents = [models[read] for read in part.reads if read in models and read not in found]
        waiting += [parent for parent in parents if isinstance(parent.kind, kinds)]
        found.update(parent.name for parent in parents)


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
