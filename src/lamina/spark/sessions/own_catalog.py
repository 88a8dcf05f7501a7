"""Whether a catalog is Lamina's own, which admits one process, or one that others may use at the same time."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark

from lamina.graph.catalogs import catalog_classes
from lamina.spark.sessions.format_settings import ICEBERG_CATALOG

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_CONNECTION = "javax.jdo.option.ConnectionURL"
_ELSEWHERE = (
    "hive.metastore.uris",
    # A Java class in place of Hive's own client: Glue, and others that speak for a catalog elsewhere.
    "hive.metastore.client.factory.class",
    "hive.imetastoreclient.factory.class",
)
_IMPLEMENTATION = "spark.sql.catalogImplementation"
_SESSION_CATALOG = "spark_catalog"
_DELTA = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
_ICEBERG_SESSION = "org.apache.iceberg.spark.SparkSessionCatalog"
_LINE = re.compile(r"\s*([^\s=:#!][^\s=:]*)\s*[=:\s]\s*(.*?)\s*")


def names_another_metastore(given: Mapping[str, str]) -> bool:
    """Whether settings that Spark will be started with name a catalog other than the one Lamina would make."""
    settings = {**_defaults(), **given}
    is_named = any(_values(settings, key) for key in (*_ELSEWHERE, _CONNECTION))
    if is_named or given.get(_IMPLEMENTATION, "hive") != "hive":
        return True
    return any((folder / "hive-site.xml").exists() for folder in _conf_folders())


def settings_in_force(session: Any) -> dict[str, str]:
    """What Spark was started with, files on its class path included, as far as it says where the catalog is."""
    found = {str(key): str(value) for key, value in session.sparkContext.getConf().getAll()}
    # Asking for the shared state has Spark read `hive-site.xml`.
    hadoop = session._jsparkSession.sharedState().hadoopConf()  # noqa: SLF001  # PySpark has no public way to ask
    for key in (*_ELSEWHERE, _CONNECTION):
        value = hadoop.get(key)
        if value:
            found[key] = str(value)
    return found


def is_own(in_force: Mapping[str, str], connection: str, iceberg: str) -> bool:
    """Whether everything that these settings name is Lamina's own.

    `connection` is the address of its metastore, `iceberg` that of its catalog of Iceberg tables. A catalog that is not
    known to be its own counts as shared, whatever models use.
    """
    if in_force.get(_IMPLEMENTATION) != "hive" or any(_values(in_force, key) for key in _ELSEWHERE):
        return False
    if set(_values(in_force, _CONNECTION)) != {connection}:
        return False
    return all(
        _is_own_catalog(in_force, name, implementation, iceberg)
        for name, implementation in catalog_classes(in_force).items()
    )


def _is_own_catalog(in_force: Mapping[str, str], name: str, implementation: str, iceberg: str) -> bool:
    prefix = f"spark.sql.catalog.{name}"
    kind, address = in_force.get(f"{prefix}.type", "hive"), in_force.get(f"{prefix}.uri")
    if name == ICEBERG_CATALOG:
        return kind == "jdbc" and address == iceberg
    if name != _SESSION_CATALOG:
        return False
    # Both keep their tables in the metastore, unless told of another place.
    is_in_metastore = implementation == _ICEBERG_SESSION and kind == "hive" and f"{prefix}.catalog-impl" not in in_force
    return implementation == _DELTA or (is_in_metastore and address is None)


def _values(settings: Mapping[str, str], key: str) -> list[str]:
    """What is given for a key of Hive's, in any of the ways in which Spark takes it."""
    spellings = [key, f"spark.hadoop.{key}", *([f"spark.{key}"] if key.startswith("hive.") else [])]
    return [settings[spelling] for spelling in spellings if settings.get(spelling, "").strip()]


def _conf_folders() -> Iterator[Path]:
    """The folders on the class path of a Spark that is started here."""
    home = os.environ.get("SPARK_HOME")
    given = os.environ.get("SPARK_CONF_DIR")
    yield Path(given) if given else Path(home or Path(pyspark.__file__).parent, "conf")
    for variable in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        if os.environ.get(variable):
            yield Path(os.environ[variable])


def _defaults() -> dict[str, str]:
    """The settings of `spark-defaults.conf`."""
    try:
        lines = (next(_conf_folders()) / "spark-defaults.conf").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    found = (_LINE.fullmatch(line) for line in lines)
    return {match[1]: match[2] for match in found if match}
