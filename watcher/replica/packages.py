"""Which packages of Maven bring a format to which Spark."""

from __future__ import annotations

from collections.abc import Mapping

from watcher.errors import ConfigurationError
from watcher.replica.cuts import DELTA

DELTA_VERSION = "4.4.0"
DELTA_SPARKS = ("4.0", "4.1", "4.2")
DELTA_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def make_format_settings(format_: str, spark_version: str) -> Mapping[str, str]:
    """The settings of a session that bring a format, with ``spark.jars.packages``.

    Raises ConfigurationError where there is no release of the format for this Spark.
    """
    if format_ != DELTA:
        return {}
    minor = ".".join(spark_version.split(".")[:2])
    if minor not in DELTA_SPARKS:
        raise ConfigurationError(
            f"there is no Delta {DELTA_VERSION} for Spark {spark_version}: use Spark"
            f" {', '.join(DELTA_SPARKS)}, or another format"
        )
    package = f"io.delta:delta-spark_{minor}_2.13:{DELTA_VERSION}"
    return DELTA_SETTINGS | {"spark.jars.packages": package}
