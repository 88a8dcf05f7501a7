"""What Spark is given for a table format, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from lamina.errors import FormatMissing
from lamina.spark.sessions.format_settings import check_session, find_iceberg_catalog, format_settings, package_of

HOME = Path("/projects/shop/.lamina")
CACHE = Path("/cache/lamina/jars")
BOTH = frozenset({"delta", "iceberg"})
DELTA = "io.delta:delta-spark_4.1_2.13:4.4.0"
ICEBERG_CLASS = "org.apache.iceberg.spark.SparkCatalog"


def settings(formats: frozenset[str] = BOTH, version: str = "4.1.4", **given: str) -> dict[str, str]:
    named = {key.replace("__", "."): value for key, value in given.items()}
    return format_settings(formats, version, HOME, named, jar_cache=CACHE, has_own_catalog=True)


def test_parquet_needs_nothing() -> None:
    assert settings(frozenset()) == {}


def test_both_formats_fit_into_one_session() -> None:
    found = settings()
    assert found["spark.sql.catalog.spark_catalog"] == "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    assert found["spark.sql.catalog.lamina_iceberg"] == ICEBERG_CLASS
    assert find_iceberg_catalog(found) == "lamina_iceberg"
    packages = found["spark.jars.packages"].split(",")
    assert DELTA in packages
    assert "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0" in packages
    assert len(found["spark.sql.extensions"].split(",")) == 2
    assert found["spark.jars.ivy"] == str(CACHE)
    assert "org.slf4j:*" in found["spark.jars.excludes"]


def test_settings_of_the_user_are_kept_and_added_to() -> None:
    found = settings(
        frozenset({"delta"}),
        spark__jars__packages="org.example:udf:1.0",
        spark__sql__extensions="org.example.Extension",
        spark__databricks__delta__snapshotPartitions="4",
    )
    assert found["spark.jars.packages"] == f"org.example:udf:1.0,{DELTA}"
    assert found["spark.sql.extensions"] == "org.example.Extension,io.delta.sql.DeltaSparkSessionExtension"
    assert found["spark.databricks.delta.snapshotPartitions"] == "4"


def test_a_package_of_the_users_own_wins_where_it_fits() -> None:
    found = settings(frozenset({"delta"}), spark__jars__packages="io.delta:delta-spark_4.1_2.13:4.4.1")
    assert "spark.jars.packages" not in found


def test_jars_that_are_on_the_class_path_are_not_fetched() -> None:
    assert "spark.jars.packages" not in settings(
        frozenset({"delta"}), spark__jars="/opt/delta-spark_4.1_2.13-4.4.0.jar"
    )


def test_a_package_for_another_spark_is_refused_with_the_one_that_fits() -> None:
    with pytest.raises(FormatMissing) as caught:
        settings(frozenset({"delta"}), spark__jars__packages="io.delta:delta-spark_2.13:4.0.1")
    assert DELTA in (caught.value.hint or "")


@pytest.mark.parametrize(("name", "version"), [("iceberg", "4.2.1"), ("delta", "4.3.0"), ("iceberg", "5.0.0")])
def test_a_pair_that_does_not_exist_is_refused_with_those_that_do(name: str, version: str) -> None:
    with pytest.raises(FormatMissing) as caught:
        package_of(name, version)
    assert version in caught.value.message
    assert package_of(name, "4.1.4") in (caught.value.hint or "")


def test_an_iceberg_catalog_of_the_users_own_is_used() -> None:
    found = settings(frozenset({"iceberg"}), spark__sql__catalog__lake=ICEBERG_CLASS)
    assert "spark.sql.catalog.lamina_iceberg" not in found
    assert (
        find_iceberg_catalog({"spark.sql.catalog.lake": ICEBERG_CLASS, "spark.sql.catalog.lake.type": "rest"}) == "lake"
    )


def test_a_session_that_was_started_without_a_format_is_told_what_to_start_it_with() -> None:
    with pytest.raises(FormatMissing) as caught:
        check_session(frozenset({"delta"}), {}, "4.1.4")
    assert f"spark.jars.packages={DELTA}" in (caught.value.hint or "")
    loaded = {key: value for key, value in settings().items() if key.startswith("spark.sql.")}
    check_session(BOTH, loaded, "4.1.4")


def test_among_several_iceberg_catalogs_the_default_one_or_lamina_s_own_holds_the_tables() -> None:
    loaded = {key: value for key, value in settings().items() if key.startswith("spark.sql.")}
    several = {**loaded, "spark.sql.catalog.lake": ICEBERG_CLASS, "spark.sql.catalog.pond": ICEBERG_CLASS}
    assert find_iceberg_catalog(several) == "lamina_iceberg"
    assert find_iceberg_catalog({**several, "spark.sql.defaultCatalog": "pond"}) == "pond"
    strangers = {key: value for key, value in several.items() if "lamina_iceberg" not in key}
    assert find_iceberg_catalog(strangers) is None
    with pytest.raises(FormatMissing, match="no single catalog"):
        check_session(frozenset({"iceberg"}), strangers, "4.1.4")
    check_session(frozenset({"iceberg"}), strangers, "4.1.4", named=True)
