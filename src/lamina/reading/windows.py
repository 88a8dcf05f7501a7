"""How far each model reads into the tables of its parents, looked through views and embedded models."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from lamina.errors import SyntaxProblem
from lamina.graph.dag import Notice
from lamina.graph.kinds import Embedded, IncrementalByTimeRange, View, folds, has_intervals
from lamina.graph.model import SqlBody
from lamina.graph.spans import uses_span
from lamina.sql.lineage.input_windows import EVERYTHING
from lamina.sql.lineage.windows import input_windows
from lamina.sql.names import quote
from lamina.sql.render import resolve_tables
from lamina.sql.session_statements import session_view, tables_read
from lamina.sql.syntax import SPARK, without_ending
from lamina.sql.time_filters import filters_by_time, mentions_interval
from lamina.timeline.grain import Grain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import TypeAlias

    from lamina.graph.model import Model
    from lamina.graph.names import NodeName
    from lamina.sql.lineage.input_windows import InputWindow
    from lamina.sql.session_statements import SessionView

    Windows: TypeAlias = tuple[Mapping[NodeName, InputWindow], bool]
    Remember: TypeAlias = Callable[[object, Callable[[], Windows]], Windows]
    """Gives what was found for a key in an earlier load, or computes it."""

_DAY_FORMATS = ("%Y-%m-%d", None)
_NOT_A_TIME = "other"


def with_windows(models: Mapping[NodeName, Model], remember: Remember) -> tuple[dict[NodeName, Model], list[Notice]]:
    """The models with their windows filled in, and warnings about queries that read all of their inputs each time."""
    found: dict[NodeName, Model] = {}
    notices: list[Notice] = []
    for name, model in models.items():
        found[name] = model
        body = model.body
        if not isinstance(body, SqlBody) or _is_expanded_late(body) or not _is_about_time(models, model):
            continue
        reader = _Reader(models, model)
        windows, is_filtered = remember(reader.key(), reader.read)
        found[name] = replace(model, windows=MappingProxyType(dict(windows)))
        if model.reads and not is_filtered:
            notices.append(_unfiltered(name))
    return found, notices


def _is_about_time(models: Mapping[NodeName, Model], model: Model) -> bool:
    return has_intervals(model.kind) or (folds(model.kind) and uses_span(models, model))


def _unfiltered(name: NodeName) -> Notice:
    return Notice(
        code="LAM-WARN-013",
        message=(
            f"`{name}` filters none of its inputs by time: every interval reads all of them, and waits for all of "
            "their past; a filter with `@start_ds` and `@end_ds` on an input's time column makes it read only its own"
        ),
        node=name,
    )


class _Reader:
    """One model with everything its windows follow from."""

    def __init__(self, models: Mapping[NodeName, Model], model: Model) -> None:
        self._models = models
        self._model = model
        self._through = self._looked_through()
        self._parents = tuple(self._find_parents())

    def key(self) -> object:
        """Equal keys give equal windows."""
        through = [
            (model.dialect, _text(model), _statements(model), sorted(model.references.items()))
            for model in self._through
        ]
        parents = [
            (name, kind.time_column.name, kind.time_column.format, self._models[name].columns)
            for name, kind in self._parents
        ]
        return (through, sorted(parents), self._is_day_aligned)

    def read(self) -> Windows:
        """Windows by full names, and whether anything is filtered by the interval at all."""
        model = self._model
        names = {_reference(name): name for name, _ in self._parents}
        try:
            text = self._flattened(model)
            is_filtered = filters_by_time(text, SPARK)
        except SyntaxProblem:
            return {}, True
        windows = input_windows(
            text,
            SPARK,
            {_reference(name): kind.time_column.name for name, kind in self._parents},
            {_reference(name): columns for name, columns in self._schemas()},
            time_types=self._time_types(),
            is_day_aligned=self._is_day_aligned,
        )
        found = {names[text]: window for text, window in windows.items() if window != EVERYTHING}
        unbounded = self._unbounded()
        return {name: window for name, window in found.items() if name not in unbounded}, is_filtered

    @property
    def _is_day_aligned(self) -> bool:
        return not Grain.DAY.is_coarser_than(self._model.grain) and not self._model.allow_partials

    def _looked_through(self) -> list[Model]:
        """The model itself and every view and embedded model between it and stored tables."""
        found = {self._model.name: self._model}
        waiting = [self._model]
        while waiting:
            for read in waiting.pop().reads:
                parent = self._models.get(read)
                if parent is not None and isinstance(parent.kind, View | Embedded) and read not in found:
                    found[read] = parent
                    waiting.append(parent)
        return list(found.values())

    def _find_parents(self) -> Iterator[tuple[NodeName, IncrementalByTimeRange]]:
        """Models with a time column whose tables are read."""
        reads = dict.fromkeys(read for model in self._through for read in model.reads)
        for read in reads:
            parent = self._models.get(read)
            if parent is not None and isinstance(parent.kind, IncrementalByTimeRange):
                yield read, parent.kind

    def _schemas(self) -> Iterator[tuple[NodeName, tuple[str, ...]]]:
        for name, _ in self._parents:
            columns = self._models[name].columns
            if columns is not None:
                yield name, tuple(column.name for column in columns)

    def _time_types(self) -> dict[str, str]:
        """Types of time columns where they are known; text in another form than a day's is no time to compare with."""
        found: dict[str, str] = {}
        for name, kind in self._parents:
            column = kind.time_column
            types = {known.name.lower(): known.type for known in self._models[name].columns or ()}
            known_type = types.get(column.name.lower())
            if column.format not in _DAY_FORMATS:
                found[_reference(name)] = _NOT_A_TIME
            elif known_type is not None:
                found[_reference(name)] = known_type
        return found

    def _unbounded(self) -> set[NodeName]:
        """Everything behind what statements read for themselves, and behind views that stay a name in the query."""
        waiting = [
            read
            for part in self._through
            if part.name != self._model.name and not _can_be_put_in(part)
            for read in part.reads
        ]
        waiting += [
            self._model.references[name] for name in _read_by_statements(self._model) if name in self._model.references
        ]
        found: set[NodeName] = set()
        while waiting:
            name = waiting.pop()
            model = self._models.get(name)
            if name not in found and model is not None and isinstance(model.kind, View | Embedded):
                waiting.extend(model.reads)
            found.add(name)
        return found

    def _flattened(self, model: Model) -> str:
        """The query in Spark's SQL with full names, and with the queries of views and embedded models in their place.

        Temporary views that statements make for it are put in likewise. A view that mentions the interval it is not
        computed for stays a name: what lies behind it is then read without bounds.
        """
        tables: dict[str, str] = {}
        for written, node in model.references.items():
            parent = self._models.get(node)
            is_put_in = parent is not None and isinstance(parent.kind, View | Embedded) and _can_be_put_in(parent)
            if parent is not None and is_put_in and node != model.name:
                tables[written] = f"({self._flattened(parent)})"
            else:
                tables[written] = quote(*node.split("."))
        for view in _views(model):
            tables[view.name] = f"({resolve_tables(without_ending(view.query or ''), SPARK, tables)})"
        return resolve_tables(_text(model), model.dialect, tables)


def _can_be_put_in(model: Model) -> bool:
    if not isinstance(model.body, SqlBody) or model.body.query.is_time_dependent:
        return False
    return isinstance(model.kind, Embedded) or not mentions_interval(model.body.query.expanded, model.dialect)


def _text(model: Model) -> str:
    return model.body.query.expanded if isinstance(model.body, SqlBody) else ""


def _is_expanded_late(body: SqlBody) -> bool:
    return any(text.is_time_dependent for text in (body.query, *body.pre_statements, *body.post_statements))


def _statements(model: Model) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The statements before the query and after it."""
    body = model.body
    if not isinstance(body, SqlBody):
        return (), ()
    return tuple(text.expanded for text in body.pre_statements), tuple(text.expanded for text in body.post_statements)


def _views(model: Model) -> list[SessionView]:
    """The temporary views that a query may read, and whose own queries can take their place."""
    found = (session_view(text) for text in _statements(model)[0])
    return [view for view in found if view is not None and view.can_be_put_in]


def _read_by_statements(model: Model) -> set[str]:
    """The names in statements whose reading is not part of the query's, and in the temporary views that they read."""
    views: dict[str, list[str]] = {}
    for view in _views(model):
        views.setdefault(view.name, []).append(view.query or "")
    waiting = [name for text in _reading_for_themselves(model) for name in tables_read(text)]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [behind for query in views.get(name, ()) for behind in tables_read(query)]
    return found


def _reading_for_themselves(model: Model) -> Iterator[str]:
    """The statements whose reading is not part of the query's."""
    before, after = _statements(model)
    for text in before:
        view = session_view(text)
        if view is None or not view.can_be_put_in:
            yield text
    yield from after


def _reference(name: NodeName) -> str:
    return str(name).lower()
