"""Which packages of Maven bring a format to which Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from watcher.model.errors import ConfigurationError
from watcher.replica.cuts import DELTA, ICEBERG

DELTA_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
ICEBERG_SETTINGS = {
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
}


@dataclass(frozen=True, slots=True)
class FormatRelease:
    """A release of a format: the Sparks that it was built for, and its package with ``{spark}`` for
    one of these."""

    name: str
    version: str
    sparks: tuple[str, ...]
    package: str
    settings: Mapping[str, str]


RELEASES = {
    DELTA: FormatRelease(
        "Delta", "4.4.0", ("4.0", "4.1", "4.2"), "io.delta:delta-spark_{spark}_2.13", DELTA_SETTINGS
    ),
    ICEBERG: FormatRelease(
        "Iceberg",
        "1.12.0",
        ("4.1",),
        "org.apache.iceberg:iceberg-spark-runtime-{spark}_2.13",
        ICEBERG_SETTINGS,
    ),
}
"""What is in Maven. Plain Parquet needs nothing."""
DELTA_VERSION = RELEASES[DELTA].version


def make_format_settings(format_: str, spark_version: str) -> Mapping[str, str]:
    """The settings of a session that bring a format, with ``spark.jars.packages``.

    Raises ConfigurationError where there is no release of the format for this Spark.
    """
    release = RELEASES.get(format_)
    if release is None:
        return {}
    minor = ".".join(spark_version.split(".")[:2])
    if minor not in release.sparks:
        raise ConfigurationError(
            f"there is no {release.name} {release.version} for Spark {spark_version}: use Spark"
            f" {', '.join(release.sparks)}, or another format"
        )
    package = f"{release.package.format(spark=minor)}:{release.version}"
    return {**release.settings, "spark.jars.packages": package}
