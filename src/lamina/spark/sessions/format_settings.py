"""What Spark needs for a table format: packages, extensions, catalogs. And whether a session has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.errors import FormatMissing
from lamina.graph.catalogs import catalog_classes
from lamina.graph.formats import TABLE_FORMATS
from lamina.spark.sessions.format_versions import FORMAT_PACKAGES, packages_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

ICEBERG_CATALOG = "lamina_iceberg"
"""The catalog of its own that Iceberg tables have in the embedded Spark."""

_SQLITE = "org.xerial:sqlite-jdbc:3.50.3.0"
_SESSION_CATALOG = "spark.sql.catalog.spark_catalog"
_EXTENSIONS = {
    "delta": "io.delta.sql.DeltaSparkSessionExtension",
    "iceberg": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
}
_DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
_ICEBERG_CLASSES = "org.apache.iceberg.spark."
_ARTIFACTS = {"delta": "io.delta:delta-spark", "iceberg": "org.apache.iceberg:iceberg-spark-runtime"}
# What these packages ask for and Spark has already. Without this, five jars become dozens, and a local repository that
# holds only descriptions of some of them fails the start.
_EXCLUDED = (
    "org.apache.hadoop:*",
    "org.slf4j:*",
    "org.apache.logging.log4j:*",
    "com.fasterxml.jackson.core:*",
    "com.fasterxml.jackson.datatype:*",
    "org.apache.parquet:*",
    "org.roaringbitmap:*",
    "com.github.luben:*",
    "org.xerial.snappy:*",
    "io.airlift:*",
    "com.google.code.findbugs:*",
    "commons-logging:*",
    "commons-pool:*",
    "javax.annotation:*",
    "org.locationtech.jts:*",
    "io.unitycatalog:*",
)


def package_of(table_format: str, spark_version: str) -> str:
    """The package that a format needs with a Spark; `FormatMissing` where none is published."""
    known = packages_for(spark_version)
    package: str | None = getattr(known, table_format) if known is not None else None
    if package is None:
        title = TABLE_FORMATS[table_format].title
        pairs = [
            f"PySpark {entry.spark} with `{fitting}`"
            for entry in FORMAT_PACKAGES
            if (fitting := getattr(entry, table_format)) is not None
        ]
        raise FormatMissing(
            f"no package of {title} is published for PySpark {spark_version}",
            hint=f"these go together: {', '.join(pairs)}",
        )
    return package


def format_settings(
    formats: frozenset[str],
    spark_version: str,
    home: Path,
    given: Mapping[str, str],
    *,
    jar_cache: Path,
    has_own_catalog: bool,
) -> dict[str, str]:
    """The settings of a Spark that is started for these formats; what the user has `given` wins.

    With `has_own_catalog` the catalog is Lamina's own, and Iceberg gets one beside it: Delta must be Spark's own
    catalog and so would Iceberg, and one session cannot have both there.
    """
    if not formats:
        return {}
    settings: dict[str, str] = {}
    wanted = []
    for name in sorted(formats):
        own = _given_package(name, given)
        package = package_of(name, spark_version)
        if own is not None:
            _check_pair(own, package, spark_version)
        elif not _is_on_class_path(name, given):
            wanted.append(package)
    extensions = [_EXTENSIONS[name] for name in sorted(formats)]
    if "delta" in formats:
        settings[_SESSION_CATALOG] = _DELTA_CATALOG
        if given.get("spark.master", "local").startswith("local"):
            # Fifty partitions of a table's own log make every small read cost seconds on a laptop.
            settings["spark.databricks.delta.snapshotPartitions"] = "1"
    if "iceberg" in formats and has_own_catalog and find_iceberg_catalog(given) is None:
        wanted.append(_SQLITE)
        catalog = f"spark.sql.catalog.{ICEBERG_CATALOG}"
        settings |= {
            catalog: f"{_ICEBERG_CLASSES}SparkCatalog",
            f"{catalog}.type": "jdbc",
            # Sessions of one process each have a connection: they wait for each other.
            f"{catalog}.uri": own_iceberg(home),
            f"{catalog}.jdbc.schema-version": "V1",
            f"{catalog}.warehouse": str(home / "iceberg"),
            # A table kept in memory would be read as it was half a minute ago.
            f"{catalog}.cache-enabled": "false",
        }
    settings["spark.sql.extensions"] = _joined(given.get("spark.sql.extensions"), extensions)
    if wanted:
        settings["spark.jars.packages"] = _joined(given.get("spark.jars.packages"), wanted)
        settings["spark.jars.excludes"] = _joined(given.get("spark.jars.excludes"), _EXCLUDED)
        settings["spark.jars.ivy"] = str(jar_cache)
    own_words = {"spark.sql.extensions", "spark.jars.packages", "spark.jars.excludes"}
    return settings | {key: value for key, value in given.items() if key in settings and key not in own_words}


def own_iceberg(home: Path) -> str:
    """The address of Lamina's own catalog of Iceberg tables."""
    return f"jdbc:sqlite:{home.absolute() / 'iceberg.db'}?busy_timeout=60000"


def iceberg_catalogs(settings: Mapping[str, str]) -> tuple[str, ...]:
    """The catalogs that are Iceberg's."""
    return tuple(name for name, text in catalog_classes(settings).items() if text.startswith(_ICEBERG_CLASSES))


def find_iceberg_catalog(settings: Mapping[str, str]) -> str | None:
    """The catalog in which a session keeps Iceberg tables of models that name none.

    Among several that are Iceberg's it is the one in which Spark looks for names without a catalog, or Lamina's.
    """
    found = iceberg_catalogs(settings)
    first_choice = (settings.get("spark.sql.defaultCatalog"), "spark_catalog", ICEBERG_CATALOG)
    chosen = next((name for name in first_choice if name in found), None)
    return chosen or (found[0] if len(found) == 1 else None)


def check_session(
    formats: frozenset[str], settings: Mapping[str, str], spark_version: str, *, named: bool = False
) -> None:
    """Raise `FormatMissing` when a session that was started elsewhere lacks what a format needs.

    `named` says that models name their catalogs themselves.
    """
    for name in sorted(formats):
        loaded = settings.get("spark.sql.extensions", "")
        has_catalog = "delta" in settings.get(_SESSION_CATALOG, "").lower() or name != "delta"
        if _EXTENSIONS[name] not in loaded or not has_catalog:
            lines = [
                f"spark.jars.packages={package_of(name, spark_version)}",
                f"spark.sql.extensions={_EXTENSIONS[name]}",
            ]
            lines += [f"{_SESSION_CATALOG}={_DELTA_CATALOG}"] if name == "delta" else []
            raise FormatMissing(
                f"the Spark session was started without {TABLE_FORMATS[name].title}, which models of this project need",
                hint=f"packages are read when Spark starts; start it with {', '.join(f'`{line}`' for line in lines)}",
            )
        if name == "iceberg" and find_iceberg_catalog(settings) is None and not named:
            raise FormatMissing(
                "the Spark session has no single catalog for Iceberg tables",
                hint=f"start Spark with `{_SESSION_CATALOG}={_ICEBERG_CLASSES}SparkSessionCatalog`, or with one other "
                f"catalog of class `{_ICEBERG_CLASSES}SparkCatalog`; among several, `spark.sql.defaultCatalog` chooses",
            )


def _given_package(name: str, given: Mapping[str, str]) -> str | None:
    packages = [package.strip() for package in given.get("spark.jars.packages", "").split(",")]
    return next((package for package in packages if package.startswith(_ARTIFACTS[name])), None)


def _is_on_class_path(name: str, given: Mapping[str, str]) -> bool:
    """Whether the user brings the format's jars as files."""
    artifact = _ARTIFACTS[name].partition(":")[2]
    places = ("spark.jars", "spark.driver.extraClassPath")
    return any(artifact in given.get(place, "") for place in places)


def _check_pair(own: str, fitting: str, spark_version: str) -> None:
    if own.rpartition(":")[0] != fitting.rpartition(":")[0]:
        raise FormatMissing(
            f"`{own}` in `spark.jars.packages` is not made for PySpark {spark_version}",
            hint=f"`{fitting}` is; leave the package out and Lamina fetches it",
        )


def _joined(before: str | None, further: Iterable[str]) -> str:
    texts = [text.strip() for text in (before or "").split(",") if text.strip()]
    texts += [text for text in further if text not in texts]
    return ",".join(texts)
