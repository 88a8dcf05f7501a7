"""Versions in the catalog: generations over folders, and the view that shows one of them."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from typing_extensions import assert_never

from lamina.app.ports.published import AddPartitions, SetView, SwitchGeneration
from lamina.app.rendering.models import stored_query
from lamina.errors import EngineError, NameTaken
from lamina.spark.catalog.catalog import condition_behind
from lamina.spark.rows.partitions import escape
from lamina.spark.statements import (
    ATTEMPT_PROPERTY,
    COLUMNS,
    GENERATION,
    RENAMED_PROPERTY,
    TEXT,
    VIEW_PROPERTY,
    add_partitions,
    create_generation,
    create_view,
    marked_query,
    set_view_properties,
    table_name,
)
from lamina.sql.names import quote

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lamina.app.ports.engine import GenerationRequest
    from lamina.graph.model import Column
    from lamina.identity.naming import PhysicalName
    from lamina.spark.catalog.catalog import Catalog, CatalogEntry

_PARTITIONS_PER_STATEMENT = 500


def make_generation(catalog: Catalog, request: GenerationRequest) -> None:
    """Create the external table over the manifest's folders; one made before under this name is made anew.

    It is not decided yet and nothing reads it, and its files are not the catalog's to delete.
    """
    schema = request.physical.rpartition(".")[0]
    catalog.ensure_schema(schema)
    root = catalog.location_of(schema)
    columns = request.shape.partition_columns
    folder = request.folder if columns else request.manifest.get((), request.folder)
    generation = request.table.generation
    properties = {**request.table.properties, ATTEMPT_PROPERTY: generation.rpartition("_")[2]}
    statement = create_generation(generation, request.shape, f"{root}/{folder}", request.table.description, properties)
    doing = f"making table `{generation}`"
    try:
        catalog.execute(statement, doing)
    except EngineError as error:
        if condition_behind(error) != "TABLE_OR_VIEW_ALREADY_EXISTS":
            raise
        _drop_generation(catalog, generation)
        catalog.execute(statement, doing)
    places = [(key, f"{root}/{path}") for key, path in request.manifest.items()] if columns else []
    for first in range(0, len(places), _PARTITIONS_PER_STATEMENT):
        portion = places[first : first + _PARTITIONS_PER_STATEMENT]
        catalog.execute(add_partitions(generation, columns, portion), doing)


def carry_out(catalog: Catalog, publish: AddPartitions | SwitchGeneration | SetView) -> None:
    """Carry out a decided publish; done twice it is the same."""
    match publish:
        case AddPartitions():
            _add_partitions(catalog, publish)
        case SwitchGeneration():
            is_one = publish.beneath is None
            source = table_name(publish.generation) if is_one else f"({stored_query(publish)})"
            _set_version_view(catalog, publish, source)
        case SetView():
            _set_query_view(catalog, publish)
        case _:
            assert_never(publish)


def published_generations(catalog: Catalog, names: Sequence[PhysicalName]) -> Mapping[PhysicalName, str | None]:
    """The generation that each version's view shows."""
    entries = catalog.entries(names)
    return {name: _shown_by(entries[name]) if name in entries else None for name in names}


def _shown_by(entry: CatalogEntry) -> str | None:
    shown = entry.marks.get(GENERATION) if entry.is_our_view else None
    renamed, _, now = entry.properties.get(RENAMED_PROPERTY, "").partition(":")
    return now if shown is not None and renamed == shown else shown


def name_taken(name: str) -> NameTaken:
    """The error for something in the way that Lamina did not make."""
    return NameTaken(
        f"`{name}` is a table or view that Lamina did not make",
        hint="rename or drop it yourself, or give the model another name",
    )


def digest(value: object) -> str:
    """A short text that changes with the value."""
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


def _drop_generation(catalog: Catalog, generation: str) -> None:
    entry = catalog.entries([generation]).get(generation)
    if entry is not None and ATTEMPT_PROPERTY not in entry.properties:
        raise name_taken(generation)
    catalog.execute(f"DROP TABLE IF EXISTS {table_name(generation)}", f"replacing table `{generation}`")


def _set_query_view(catalog: Catalog, publish: SetView) -> None:
    """Show a query. When the view shows it already, only its token changes, and its column comments stay.

    The new token names the one it stands for, so that a late statement with an older query cannot hide behind it.
    """
    catalog.ensure_schema(publish.physical.rpartition(".")[0])
    entry = catalog.entries([publish.physical]).get(publish.physical)
    text = digest([publish.sql, _digest_of_columns(publish.shape.columns), publish.description])
    if entry is not None and entry.is_our_view and entry.marks.get(TEXT) == text:
        if _shown_by(entry) != publish.generation:
            renaming = {RENAMED_PROPERTY: f"{entry.marks.get(GENERATION)}:{publish.generation}"}
            catalog.execute(set_view_properties(publish.physical, renaming), f"renaming `{publish.physical}`")
        return
    # On lines of its own, because the query may end with a comment.
    _set_version_view(catalog, publish, f"(\n{publish.sql}\n)", {TEXT: text})


def _set_version_view(
    catalog: Catalog, publish: SwitchGeneration | SetView, source: str, further: Mapping[str, str] | None = None
) -> None:
    columns = publish.shape.columns
    selected = ", ".join(quote(column.name) for column in columns) or "*"
    marks = {GENERATION: publish.generation, COLUMNS: _digest_of_columns(columns), **(further or {})}
    query = marked_query(marks, selected, source)
    creation = create_view(publish.physical, query, columns, publish.description, {VIEW_PROPERTY: "version"})
    catalog.set_view(publish.physical, query, creation, f"showing `{publish.generation}` as `{publish.physical}`")


def _digest_of_columns(columns: Sequence[Column]) -> str:
    return digest([[column.name, column.type, column.comment] for column in columns])


def _add_partitions(catalog: Catalog, publish: AddPartitions) -> None:
    """Add all partitions or none. Where some are there already, they must lie where state says.

    IF NOT EXISTS is of no use here: it would keep the folder of a killed attempt.
    """
    if not publish.partitions:
        return
    columns = publish.shape.partition_columns
    root = catalog.location_of(publish.physical.rpartition(".")[0])
    places = {key: f"{root}/{folder}" for key, folder in publish.partitions.items()}
    doing = f"adding partitions to `{publish.generation}`"
    try:
        catalog.execute(add_partitions(publish.generation, columns, places.items()), doing)
    except EngineError as error:
        if condition_behind(error) != "PARTITIONS_ALREADY_EXIST":
            raise
        known = catalog.partition_keys(publish.generation)
        there = [key for key in places if tuple(escape(value) for value in key) in known]
        for key in there:
            place = catalog.partition_location(publish.generation, columns, key)
            if place is None or not _is_same_place(place, places[key]):
                raise EngineError(
                    f"partition {key} of `{publish.generation}` lies at `{place}`, "
                    f"and at `{places[key]}` by what is recorded",
                    hint="something other than Lamina changed the table; restate the interval to mend it",
                ) from error
        missing = [(key, place) for key, place in places.items() if key not in there]
        if missing:
            catalog.execute(add_partitions(publish.generation, columns, missing), doing)


def _is_same_place(found: str, recorded: str) -> bool:
    """Whether two locations are the same folder; slashes after the scheme may be one or three."""
    return found.rstrip("/").partition(":")[2].lstrip("/") == recorded.rstrip("/").partition(":")[2].lstrip("/")
