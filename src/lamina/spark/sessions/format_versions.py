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


KNOWN_JARS = {
    "io.delta_delta-kernel-api-4.4.0.jar": "ee9b5a14ac3b7efdff4d61a58478fe8eb0e5a3fbca43889dca7290795fe79a11",
    "io.delta_delta-kernel-defaults-4.4.0.jar": "225c975199e4718b38ee5b7e6da7f19e9585024262b2cec2656b32151a856b0b",
    "io.delta_delta-kernel-unitycatalog-4.4.0.jar": "cea22dfb4ac562b3cd27bf652697750e8336009d73fb06631363aaaad5345ffa",
    "io.delta_delta-spark_4.1_2.13-4.4.0.jar": "75a9400986853c061f5109f012547de2545a5759e5e752e5ef633dabe16a4f10",
    "io.delta_delta-storage-4.4.0.jar": "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
    "org.apache.iceberg_iceberg-spark-runtime-4.1_2.13-1.12.0.jar": (
        "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82"
    ),
    "org.xerial_sqlite-jdbc-3.50.3.0.jar": "a3f53a2aa15ae9425a9e793bbe9c8e5288febeb4b65ef5c1a4e80d4c2045cf08",
}
"""SHA-256 of what was published for the Spark that Lamina is tested with, by the name that Spark gives the file."""


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
