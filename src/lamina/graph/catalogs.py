"""Catalogs beside Spark's own, as its settings describe them: what each can hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lamina.errors import CatalogUnfit
from lamina.graph.formats import ICEBERG, find_format
from lamina.graph.kinds import Embedded, stores_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lamina.graph.model import Model
    from lamina.graph.names import NodeName

_SETTINGS = "spark.sql.catalog."
_SPARKS_OWN = "spark_catalog"
_ICEBERG = "org.apache.iceberg.spark.SparkCatalog"
_WITHOUT_VIEWS = frozenset(
    {
        "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
        "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
)
_ICEBERG_WITHOUT_VIEWS = frozenset({"hadoop", "glue", "dynamodb"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogAbilities:
    """What a catalog is known to hold; unknown catalogs are taken to hold everything until Spark says otherwise."""

    has_views: bool = True
    holds_only: str | None = None
    """The only table format it has."""


def catalog_of(name: NodeName) -> str | None:
    """The catalog in front of a name of three parts, when it is not Spark's own."""
    catalog = name.split(".")[0] if name.count(".") > 1 else _SPARKS_OWN
    return None if catalog == _SPARKS_OWN else catalog


def catalogs_used(models: Iterable[Model]) -> dict[str, frozenset[str]]:
    """The catalogs beside Spark's own in which these models have views, with the formats of their tables there."""
    found: dict[str, set[str]] = {}
    for model in models:
        catalog = catalog_of(model.name)
        if catalog is not None and not isinstance(model.kind, Embedded):
            table_format = find_format(model.table_format) if stores_rows(model.kind) else None
            found.setdefault(catalog, set()).update([table_format.name] if table_format else [])
    return {catalog: frozenset(formats) for catalog, formats in found.items()}


def catalog_classes(settings: Mapping[str, str]) -> dict[str, str]:
    """The class of every catalog that Spark's settings name."""
    return {
        name: value
        for key, value in settings.items()
        if key.startswith(_SETTINGS) and "." not in (name := key.removeprefix(_SETTINGS))
    }


def read_catalogs(settings: Mapping[str, str]) -> dict[str, CatalogAbilities]:
    """The catalogs that Spark's settings name, beside its own."""
    return {
        catalog: _abilities(class_name, settings, f"{_SETTINGS}{catalog}")
        for catalog, class_name in catalog_classes(settings).items()
        if catalog != _SPARKS_OWN
    }


def _abilities(class_name: str, settings: Mapping[str, str], name: str) -> CatalogAbilities:
    if class_name != _ICEBERG:
        return CatalogAbilities(has_views=class_name not in _WITHOUT_VIEWS)
    kind = settings.get(f"{name}.type", "").lower()
    implementation = settings.get(f"{name}.catalog-impl", "").rpartition(".")[2].lower().removesuffix("catalog")
    has_views = not {kind, implementation} & _ICEBERG_WITHOUT_VIEWS
    if "jdbc" in {kind, implementation}:
        has_views = settings.get(f"{name}.jdbc.schema-version", "V0").upper() != "V0"
    return CatalogAbilities(has_views=has_views, holds_only=ICEBERG.name)


def unfit_catalog(catalog: str, abilities: CatalogAbilities, formats: Iterable[str]) -> CatalogUnfit | None:
    """What keeps a catalog from holding tables of these formats and the views over them."""
    if not abilities.has_views:
        return CatalogUnfit(
            f"catalog `{catalog}` has no views, and the names that readers use are views",
            hint=f"use a catalog that has views, or leave `{catalog}.` out of models' names: views in Spark's own "
            "catalog can show tables of any other",
        )
    only = abilities.holds_only
    foreign = sorted(set(formats) - {only}) if only is not None else []
    if foreign:
        return CatalogUnfit(
            f"catalog `{catalog}` holds tables of the format `{only}` alone, not {' or '.join(foreign)}",
            hint=f"set `table_format {only}` for its models, or leave `{catalog}.` out of their names",
        )
    return None
