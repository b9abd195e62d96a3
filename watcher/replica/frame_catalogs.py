"""Catalogs of Iceberg as a Spark session has them: each has to be the one that pyiceberg has by the
same name."""

from __future__ import annotations

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from watcher.model.errors import ConfigurationError
from watcher.replica.merge_sql import SPARK
from watcher.replica.stores.places import name_place, split_namespace

PREFIX, CLASS = "spark.sql.catalog", "org.apache.iceberg.spark.SparkCatalog"
CACHED = "cache-enabled"
MANUAL = "docs/replicas-spark.md#iceberg-in-a-catalog"


def uncache_catalog(place: str) -> dict[str, str]:
    """The setting of a session in which commits in the catalog of a namespace are seen at once."""
    return {f"{PREFIX}.{split_namespace(place)[0]}.{CACHED}": "false"}


def check_catalog(spark: SparkSession, catalog: str) -> None:
    """Raises ConfigurationError unless the session has a catalog of Iceberg's that shows each
    commit at once."""
    name = f"{PREFIX}.{catalog}"
    if spark.conf.get(name, None) != CLASS:
        raise ConfigurationError(
            f"the Spark session has no catalog {catalog} of Iceberg: set {name} to {CLASS},"
            f" and {name}.type, .uri and the others to what pyiceberg has for {catalog} ({MANUAL})"
        )
    if spark.conf.get(f"{name}.{CACHED}", "true") != "false":
        raise ConfigurationError(
            f"Spark would not see each commit in the catalog {catalog}: set {name}.{CACHED} to"
            " false before the session uses it"
        )


def check_same_catalog(spark: SparkSession, place: str, tie: str) -> None:
    """Raises ConfigurationError unless Spark finds the namespace that has an ID: pyiceberg has tied
    it to its folder by that."""
    name, reason = ".".join(map(SPARK.quote, split_namespace(place))), "it has another ID"
    try:
        rows = spark.sql(f"DESCRIBE NAMESPACE EXTENDED {name}").collect()
        if any(tie in str(row) for row in rows):
            return
    except (PySparkException, Py4JError) as error:
        reason = str(error).partition("\n")[0]
    raise ConfigurationError(
        f"Spark's {name_place(place)} is not pyiceberg's: {reason}. Give the catalog the same"
        f" properties in both ({MANUAL})"
    )
