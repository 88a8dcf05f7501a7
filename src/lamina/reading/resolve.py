"""From the drafts of all files to a graph: names made full, references resolved, columns of stars filled in."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from lamina.errors import (
    AmbiguousName,
    BadName,
    DuplicateName,
    LaminaError,
    UndeclaredSource,
    raise_all,
)
from lamina.graph.dag import Graph, Notice, in_dependency_order
from lamina.graph.model import Column, PythonBody, Source, SqlBody
from lamina.graph.names import Naming, NodeName, shown_names
from lamina.graph.validity import shown_columns
from lamina.near_names import near_names
from lamina.reading.check_columns import missing_columns
from lamina.reading.check_model import check_known_columns
from lamina.reading.effects import without_time
from lamina.reading.windows import with_windows
from lamina.reading.without_effect import each_place_once
from lamina.sql.names import LONGEST_SCHEMA_NAME, TableName, check_catalog_name, parse_table_name
from lamina.sql.query import analyse_query

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lamina.errors import Location
    from lamina.graph.model import Model
    from lamina.reading.check_columns import RememberColumns
    from lamina.reading.drafts import Draft, WrittenReference
    from lamina.reading.windows import Remember

    ColumnsOf = Callable[[str], Mapping[str, str] | None]
    ReadAgain = Callable[[Draft, ColumnsOf], Draft]

Found = TypeVar("Found")

# Looking for near names costs the size of the project each time; beyond so many tables nobody reads the hints.
_MOST_HINTS = 20
_DECLARE = "declare it in `sources/`, or set `strict_sources: false`"
_SPARK_CATALOG = "spark_catalog"
_PHYSICAL_ENDING = "__lamina"


def _compute(key: object, compute: Callable[[], Found]) -> Found:  # noqa: ARG001  # nothing is remembered
    return compute()


def resolve(
    drafts: Sequence[Draft],
    sources: Sequence[Source],
    naming: Naming,
    *,
    strict_sources: bool = False,
    read_again: ReadAgain | None = None,
    remember: Remember = _compute,
    remember_columns: RememberColumns = _compute,
) -> Graph:
    """The graph of all models, in dependency order; raises everything wrong at once.

    `read_again` reads a file anew for macros that asked for the columns of other models; `remember` may give windows
    found by an earlier load, `remember_columns` what an earlier load found out about the columns of a query.
    """
    resolver = _Resolver(drafts, sources, naming, strict_sources=strict_sources)
    return resolver.resolve(read_again, remember, remember_columns)


class _Resolver:
    def __init__(
        self, drafts: Sequence[Draft], sources: Sequence[Source], naming: Naming, *, strict_sources: bool
    ) -> None:
        self._naming = naming
        self._strict = strict_sources
        self._problems: list[LaminaError] = []
        self._warnings: list[Notice] = [
            replace(notice, node=naming.full_name(draft.name)) if notice.node == draft.name.to_text() else notice
            for draft in drafts
            for notice in draft.notices
        ]
        self._drafts = self._by_name(drafts)
        self._written = self._index()
        self._sources: dict[NodeName, Source] = {}
        self._declared = self._declare(sources)

    def resolve(self, read_again: ReadAgain | None, remember: Remember, remember_columns: RememberColumns) -> Graph:
        models = {name: self._resolve(name, draft) for name, draft in self._drafts.items()}
        self._report_sources(models)
        try:
            ordered = in_dependency_order(models)
        except LaminaError as error:
            self._problems.extend(error.problems)
            ordered = {}
        filled = self._fill_columns(ordered, read_again)
        self._problems.extend(missing_columns(filled, self._declared, remember_columns))
        raise_all(self._problems)
        windowed, notices = with_windows(filled, remember)
        self._warnings.extend(notices)
        for name, model in windowed.items():
            self._warnings.extend(without_time(windowed, model, self._drafts[name].given))
        return Graph(
            models=MappingProxyType(windowed),
            sources=MappingProxyType(dict(sorted(self._sources.items()))),
            warnings=each_place_once(self._warnings),
        )

    # --- names ---
    def _by_name(self, drafts: Sequence[Draft]) -> dict[NodeName, Draft]:
        found: dict[NodeName, Draft] = {}
        for draft in drafts:
            name = self._naming.full_name(draft.name)
            schema = name.split(".")[-2]
            reason = check_catalog_name(schema, longest=LONGEST_SCHEMA_NAME)
            if schema.endswith(_PHYSICAL_ENDING):
                reason = f"schemas that end in `{_PHYSICAL_ENDING}` hold the versions of models"
            if reason is not None:
                self._problems.append(
                    BadName(
                        f"the schema of `{name}` cannot be used: {reason}",
                        hint="choose another schema, or another `schema_suffix` of the target",
                        location=draft.model.location,
                        node=name,
                    )
                )
            if name in found:
                self._problems.append(_duplicate(name, draft.model.location, found[name].model.location))
            else:
                found[name] = draft
        return found

    def _index(self) -> dict[str, NodeName]:
        """Full names, and names as written where they differ because of a suffix; the written ones win."""
        index: dict[str, NodeName] = {str(name): name for name in self._drafts}
        for name, draft in self._drafts.items():
            if draft.name.schema is not None:
                index[_plain(draft.name)] = name
        return index

    def _declare(self, sources: Sequence[Source]) -> dict[str, Source]:
        declared: dict[str, Source] = {}
        for source in sources:
            if source.name in self._drafts:
                self._problems.append(
                    _duplicate(source.name, source.location, self._drafts[source.name].model.location)
                )
            elif source.name in declared:
                self._problems.append(_duplicate(source.name, source.location, declared[source.name].location))
            else:
                declared[source.name] = source
        return declared

    def _find(self, reference: WrittenReference, reader: NodeName) -> NodeName:
        """The node or source that a reference means."""
        written = _plain(reference.name)
        if reference.name.schema is None:
            own = f"{self._naming.schema}.{written}"
            if own in self._drafts:
                return NodeName(own)
            if written not in self._declared:
                self._check_ambiguous(written, reference, reader)
        elif written in self._written:
            return self._written[written]
        return self._source(NodeName(written))

    def _check_ambiguous(self, table: str, reference: WrittenReference, reader: NodeName) -> None:
        candidates = sorted(name for name in self._drafts if name.rpartition(".")[2] == table)
        if len(candidates) > 1:
            listed = " or ".join(f"`{name}`" for name in candidates)
            self._problems.append(
                AmbiguousName(
                    f"`{table}` may mean {listed}",
                    hint="write the schema in front of it",
                    location=reference.location,
                    node=reader,
                )
            )

    def _source(self, name: NodeName) -> NodeName:
        if name not in self._sources:
            self._sources[name] = self._declared.get(name) or Source(name=name)
        return name

    def _resolve(self, name: NodeName, draft: Draft) -> Model:
        reads: set[NodeName] = set()
        references: dict[str, NodeName] = {}
        for reference in draft.references:
            node = self._find(reference, name)
            references[reference.name.to_text()] = node
            reads.add(node)
        for reference in draft.depends_on:
            node = self._find(reference, name)
            reads.add(node)
            if isinstance(draft.model.body, PythonBody):
                references[reference.name.to_text()] = node
        return replace(draft.model, name=name, reads=tuple(sorted(reads)), references=MappingProxyType(references))

    # --- sources ---
    def _report_sources(self, models: Mapping[NodeName, Model]) -> None:
        """Warn of tables that nothing defines, or refuse them; each once, with all that read it."""
        readers: dict[NodeName, list[tuple[NodeName, WrittenReference]]] = {}
        for reader, draft in self._drafts.items():
            for reference in (*draft.references, *draft.depends_on):
                name = NodeName(_plain(reference.name))
                if name in self._sources and not self._sources[name].is_declared:
                    readers.setdefault(name, []).append((reader, reference))
        for number, (name, found) in enumerate(readers.items()):
            asking = tuple(dict.fromkeys(reader for reader, _ in found))
            hint = self._near(name, asking, models) if number < _MOST_HINTS else None
            if self._strict:
                self._problems.append(
                    UndeclaredSource(
                        f"nothing defines the table `{name}`, read by {shown_names(asking)}",
                        hint=f"{hint} Otherwise {_DECLARE}" if hint else _DECLARE,
                        location=found[0][1].location,
                        node=asking[0],
                    )
                )
            else:
                ending = f"; {hint}" if hint else ""
                message = f"nothing defines `{name}`, read by {shown_names(asking)}: it is taken as an external table"
                self._warnings.append(Notice(code="LAM-WARN-001", message=f"{message}{ending}", node=name))

    def _near(self, name: NodeName, readers: Sequence[NodeName], models: Mapping[NodeName, Model]) -> str | None:
        """Names that may have been meant: those that can be read without making a cycle."""
        below = _with_descendants(readers, models)
        possible = [known for known in self._drafts if known not in below]
        table = name.rpartition(".")[2]
        same = [known for known in possible if known.rpartition(".")[2] == table]
        near = list(dict.fromkeys([*same, *near_names(name, possible, 2)]))
        return f"did you mean {' or '.join(f'`{known}`' for known in near[:2])}?" if near else None

    # --- columns ---
    def _fill_columns(self, models: Mapping[NodeName, Model], read_again: ReadAgain | None) -> dict[NodeName, Model]:
        """Columns of stars and of macros that need them, parents first."""
        filled: dict[NodeName, Model] = {}
        for name, model in models.items():
            draft = self._drafts[name]
            body = model.body
            if draft.needs_columns and read_again is not None:
                filled[name] = self._read_again(name, model, filled, read_again)
            elif isinstance(body, SqlBody) and model.columns is None:
                filled[name] = self._expand_star(model, body, filled)
            else:
                filled[name] = model
        return filled

    def _read_again(
        self, name: NodeName, model: Model, known: Mapping[NodeName, Model], read_again: ReadAgain
    ) -> Model:
        def columns_of(relation: str) -> Mapping[str, str] | None:
            columns = self._columns_of(relation, known)
            return None if columns is None else {column.name: column.type or "" for column in columns}

        try:
            draft = read_again(self._drafts[name], columns_of)
        except LaminaError as error:
            self._problems.extend(error.problems)
            return model
        again = self._resolve(name, draft)
        if isinstance(again.body, SqlBody) and again.columns is None:
            return self._expand_star(again, again.body, known)
        return again

    def _columns_of(self, relation: str, known: Mapping[NodeName, Model]) -> tuple[Column, ...] | None:
        try:
            written = parse_table_name(relation)
        except LaminaError:
            return None
        text = _plain(written)
        node = NodeName(f"{self._naming.schema}.{text}") if written.schema is None else self._written.get(text)
        if node is None or node not in known:
            node = NodeName(text)
        return _visible_columns(node, known, self._declared)

    def _expand_star(self, model: Model, body: SqlBody, known: Mapping[NodeName, Model]) -> Model:
        schemas: dict[str, tuple[str, ...]] = {}
        for written, node in model.references.items():
            columns = _visible_columns(node, known, self._declared)
            if columns is not None:
                schemas[written] = tuple(column.name for column in columns)
        if not schemas:
            return model
        shape = analyse_query(body.query.expanded, model.dialect, schemas=schemas)
        if shape.output_columns is None:
            return model
        descriptions = self._drafts[model.name].descriptions
        columns = tuple(
            Column(
                name=output.name,
                type=shape.declared_types.get(output.name.lower()),
                comment=descriptions.get(output.name.lower()) or output.comment,
            )
            for output in shape.output_columns
        )
        if all(output.is_name_certain for output in shape.output_columns):
            self._problems.extend(check_known_columns(model, columns))
        return replace(model, columns=columns)


def _with_descendants(names: Sequence[NodeName], models: Mapping[NodeName, Model]) -> set[NodeName]:
    """Models and all that read them, directly or not."""
    children: dict[NodeName, list[NodeName]] = {}
    for name, model in models.items():
        for read in model.reads:
            children.setdefault(read, []).append(name)
    found: set[NodeName] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(children.get(name, ()))
    return found


def _visible_columns(
    node: NodeName, known: Mapping[NodeName, Model], declared: Mapping[str, Source]
) -> tuple[Column, ...] | None:
    """The columns that a reader of the table sees."""
    model = known.get(node)
    if model is None:
        source = declared.get(node)
        return source.columns if source is not None else None
    return None if model.columns is None else shown_columns(model.kind, model.columns)


def _plain(name: TableName) -> str:
    """The parts joined with dots; Spark's own catalog is the one that is meant when none is named."""
    parts = name.parts[1:] if name.catalog == _SPARK_CATALOG else name.parts
    return ".".join(parts)


def _duplicate(name: str, location: Location | None, first: Location | None) -> DuplicateName:
    return DuplicateName(
        f"`{name}` is defined twice: in `{first}` and in `{location}`",
        hint="rename one of them, or remove it",
        location=location,
        node=name,
    )
