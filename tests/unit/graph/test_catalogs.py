"""What Spark's settings tell about catalogs beside its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lamina.errors import LaminaError
from lamina.graph.catalogs import CatalogAbilities, catalogs_used, read_catalogs, unfit_catalog
from lamina.graph.kinds import Embedded, View
from lamina.planning.plan import make_plan
from tests.kit.models import World, model

ICEBERG = "org.apache.iceberg.spark.SparkCatalog"


@pytest.mark.parametrize(
    ("given", "has_views"),
    [
        ({"": ICEBERG, ".type": "hadoop"}, False),
        ({"": ICEBERG, ".type": "HADOOP"}, False),
        ({"": ICEBERG, ".catalog-impl": "org.apache.iceberg.hadoop.HadoopCatalog"}, False),
        ({"": ICEBERG, ".catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog"}, False),
        ({"": ICEBERG, ".type": "jdbc"}, False),
        ({"": ICEBERG, ".type": "jdbc", ".jdbc.schema-version": "V0"}, False),
        ({"": ICEBERG, ".type": "jdbc", ".jdbc.schema-version": "V1"}, True),
        ({"": ICEBERG, ".catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog", ".jdbc.schema-version": "V1"}, True),
        ({"": ICEBERG, ".type": "hive"}, True),
        ({"": ICEBERG, ".type": "rest"}, True),
        ({"": ICEBERG}, True),
        ({"": "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog"}, False),
        ({"": "org.apache.spark.sql.delta.catalog.DeltaCatalog"}, False),
        ({"": "com.example.OurCatalog", ".type": "hadoop"}, True),
    ],
)
def test_settings_tell_whether_a_catalog_has_views(given: dict[str, str], has_views: bool) -> None:
    found = read_catalogs({f"spark.sql.catalog.store{key}": value for key, value in given.items()})
    assert list(found) == ["store"]
    assert found["store"].has_views is has_views
    assert found["store"].holds_only == ("iceberg" if given[""] == ICEBERG else None)


def test_a_catalog_whose_name_begins_like_another_is_told_apart() -> None:
    found = read_catalogs(
        {
            "spark.sql.catalog.store": ICEBERG,
            "spark.sql.catalog.store.type": "hive",
            "spark.sql.catalog.store2": ICEBERG,
            "spark.sql.catalog.store2.type": "hadoop",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.sql.catalogImplementation": "hive",
        }
    )
    assert {name: one.has_views for name, one in found.items()} == {"store": True, "store2": False}


def test_only_catalogs_beside_sparks_own_that_models_have_views_in_are_used() -> None:
    models = [
        model("shop.plain", table_format="delta"),
        model("spark_catalog.shop.own", table_format="delta"),
        model("store.shop.rows", table_format="iceberg"),
        model("store.shop.view", kind=View()),
        model("lake.shop.view", kind=View()),
        model("files.shop.inside", kind=Embedded()),
    ]
    assert catalogs_used(models) == {"store": frozenset({"iceberg"}), "lake": frozenset()}


def test_a_catalog_that_holds_one_format_takes_no_other() -> None:
    abilities = CatalogAbilities(holds_only="iceberg")
    assert unfit_catalog("store", abilities, {"iceberg"}) is None
    error = unfit_catalog("store", abilities, {"iceberg", "parquet"})
    assert error is not None
    assert "not parquet" in error.message


def test_a_plan_says_of_every_model_that_its_catalog_cannot_hold_it() -> None:
    world = World(
        model("store.shop.a", table_format="parquet"),
        model("files.shop.b", table_format="iceberg"),
        model("files.shop.c", kind=View()),
        model("other.shop.d", kind=View()),
    )
    catalogs = {"store": CatalogAbilities(holds_only="iceberg"), "files": CatalogAbilities(has_views=False)}
    with pytest.raises(LaminaError) as failure:
        make_plan(replace(world.inputs("2024-01-02"), catalogs=catalogs))
    found = [(error["code"], error["node"]) for error in failure.value.errors]
    assert sorted(found) == [("LAM-PLAN-012", name) for name in ("files.shop.b", "files.shop.c", "store.shop.a")]
