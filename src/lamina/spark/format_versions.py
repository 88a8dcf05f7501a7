"""Which Spark goes with which table formats: the pairs that are published and known to work together."""

from __future__ import annotations

from dataclasses import dataclass

OLDEST_SPARK = (4, 0)
FIRST_UNKNOWN_SPARK = (4, 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatPackages:
    """The jars a Spark release needs for a table format; `None` where none is published."""

    spark: str
    delta: str | None
    iceberg: str | None


FORMAT_PACKAGES = (
    FormatPackages(
        spark="4.0",
        delta="io.delta:delta-spark_2.13:4.0.1",
        iceberg="org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0",
    ),
    FormatPackages(
        spark="4.1",
        delta="io.delta:delta-spark_4.1_2.13:4.4.0",
        iceberg="org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
    ),
    FormatPackages(spark="4.2", delta="io.delta:delta-spark_4.2_2.13:4.4.0", iceberg=None),
    FormatPackages(spark="4.3", delta=None, iceberg=None),
)


def packages_for(version: str) -> FormatPackages | None:
    """The packages of a Spark version such as `4.1.4`; `None` for one that is not known here."""
    release = ".".join(version.split(".")[:2])
    return next((entry for entry in FORMAT_PACKAGES if entry.spark == release), None)


def is_supported(version: str) -> bool:
    """Whether Lamina is tested with this Spark."""
    try:
        major, minor = (int(part) for part in version.split(".")[:2])
    except ValueError:
        return False
    return OLDEST_SPARK <= (major, minor) < FIRST_UNKNOWN_SPARK
