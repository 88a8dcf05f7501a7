"""The views that an environment's readers use.

Their columns are fixed when they are made, so a view is changed again when its version's columns have. A view that
follows by itself (`WITH SCHEMA EVOLUTION`) is rewritten in the catalog by whoever reads it first after a change, which
can put an older pointer back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from typing_extensions import assert_never

from lamina.app.ports.engine import HideView, ShowView
from lamina.errors import raise_all
from lamina.spark.catalog.versions import digest, name_taken
from lamina.spark.statements import (
    COLUMNS,
    DETAILS_PROPERTY,
    NAMES_PROPERTY,
    PHYSICAL,
    VIEW_PROPERTY,
    create_view,
    marked_query,
    set_view_properties,
    setting_text,
    table_name,
    unset_view_properties,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lamina.graph.kinds import Setting
    from lamina.spark.catalog.catalog import Catalog, CatalogEntry

_BETWEEN = ";"


def show_views(catalog: Catalog, views: Sequence[ShowView | HideView]) -> int:
    """Make environment views as asked, in order; answers how many changed.

    What is there is read first, in one statement per schema. Nothing is changed when a name is taken by a table or
    view of somebody else's.
    """
    wanted = [view for view in views if isinstance(view, ShowView)]
    for schema in dict.fromkeys(view.logical.rpartition(".")[0] for view in wanted):
        catalog.ensure_schema(schema)
    entries = catalog.entries([*(view.logical for view in views), *(view.physical for view in wanted)])
    raise_all(
        name_taken(view.logical) for view in wanted if view.logical in entries and not entries[view.logical].is_our_view
    )
    changed = 0
    for view in views:
        entry = entries.get(view.logical)
        match view:
            case ShowView():
                changed += _show(catalog, view, entry, entries.get(view.physical))
            case HideView():
                changed += _hide(catalog, view, entry)
            case _:
                assert_never(view)
    return changed


def _show(catalog: Catalog, view: ShowView, entry: CatalogEntry | None, version: CatalogEntry | None) -> bool:
    marks = {PHYSICAL: view.physical, COLUMNS: version.marks.get(COLUMNS, "") if version else ""}
    comment = version.comment if version and view.comment is None else view.comment
    details = _digest_of_details(comment, view.properties)
    names = {NAMES_PROPERTY: _written(view.properties)} if view.properties else {}
    properties = {**view.properties, **names, VIEW_PROPERTY: "environment", DETAILS_PROPERTY: details}
    doing = f"showing `{view.physical}` as `{view.logical}`"
    has_moved = entry is None or entry.marks != marks
    if has_moved:
        query = marked_query(marks, "*", table_name(view.physical))
        creation = create_view(view.logical, query, (), comment, properties)
        catalog.set_view(view.logical, query, creation, doing)
    has_details = entry is None or entry.properties.get(DETAILS_PROPERTY) == details
    if not has_details:
        gone = [name for name in _named(entry) if name not in properties]
        if gone:
            catalog.execute(unset_view_properties(view.logical, gone), doing)
        catalog.execute(set_view_properties(view.logical, {**properties, "comment": comment or ""}), doing)
    return has_moved or not has_details


def _named(entry: CatalogEntry | None) -> list[str]:
    """The properties that a view got from its model, with the one that lists them."""
    listed = entry.properties.get(NAMES_PROPERTY) if entry is not None else None
    return [*(unquote(name) for name in listed.split(_BETWEEN)), NAMES_PROPERTY] if listed is not None else []


def _written(names: Iterable[str]) -> str:
    """Names as one value, without the signs between which catalogs list properties."""
    return _BETWEEN.join(quote(name, safe="") for name in sorted(names))


def _hide(catalog: Catalog, view: HideView, entry: CatalogEntry | None) -> bool:
    if entry is None or not entry.is_our_view:
        return False
    catalog.execute(f"DROP VIEW IF EXISTS {table_name(view.logical)}", f"removing view `{view.logical}`")
    return True


def _digest_of_details(comment: str | None, properties: Mapping[str, Setting]) -> str:
    return digest([comment or "", sorted((key, setting_text(value)) for key, value in properties.items())])
