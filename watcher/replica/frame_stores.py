"""Spark's own client of an object store that has copies: its settings, and what it has to do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyspark
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from watcher.model.errors import ConfigurationError
from watcher.replica.cuts.cut import DELTA
from watcher.replica.cuts.owner import NAME as OWNER_FILE
from watcher.replica.formats import ICEBERG
from watcher.replica.stores.object_stores import TRUE, is_object_store

S3 = re.compile("s3a?://")
S3A = "spark.hadoop.fs.s3a"
HADOOP = "hadoop-client-api-*.jar"
"""The jar of PySpark that says which Hadoop it has: clients of stores must be of the same."""
LOG_STORE = "spark.delta.logStore"
LOG_STORES = (f"{LOG_STORE}.s3a.impl", f"{LOG_STORE}.class")
SINGLE_DRIVER = "io.delta.storage.S3SingleDriverLogStore"
MANUAL = "docs/replicas-spark.md#object-stores"


def make_client_settings(folder: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The settings of a session that lead Spark's client of S3 to where the variables lead this
    process. Spark itself takes the keys from them."""
    if S3.match(folder) is None:
        return {}
    endpoint = environment.get("AWS_ENDPOINT_URL", "")
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION", "")
    hosted = environment.get("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "").lower() in TRUE
    settings = {"endpoint": endpoint, "endpoint.region": region}
    if endpoint and not hosted:
        settings["path.style.access"] = "true"
    return {f"{S3A}.{name}": value for name, value in settings.items() if value}


def find_client_package(folder: str) -> str | None:
    """The package that has Spark's client of S3; None where it is not needed, or where this
    PySpark, which has no jars, does not tell which."""
    jars = list((Path(pyspark.__file__).parent / "jars").glob(HADOOP))
    if S3.match(folder) is None or not jars:
        return None
    return f"org.apache.hadoop:hadoop-aws:{jars[0].stem.rpartition('-')[2]}"


def check_commits(spark: SparkSession, format_: str, location: str) -> None:
    """Looks whether commits by Spark into a folder are safe, before anything is written. Raises
    ConfigurationError."""
    if not is_object_store(location):
        return
    if format_ == ICEBERG:
        raise ConfigurationError(
            f"Spark writes Iceberg into {location} by renames, which an object store does not do at"
            " once, so commits would be lost: use iceberg:CATALOG.NAMESPACE, or a folder of another"
            f" file system ({MANUAL})"
        )
    has_log_store = any(spark.conf.get(each, None) for each in LOG_STORES)
    if format_ == DELTA and S3.match(location) and not has_log_store:
        raise ConfigurationError(
            f"Delta's log in {location} would not be safe: on S3, Delta by Spark looks whether an"
            " entry is there and then writes it, so of two drivers that commit at once one loses"
            f" rows. Set {LOG_STORES[0]} to {SINGLE_DRIVER} if no other driver ever writes these"
            " copies, or to a log store that excludes other drivers; or replicate without Spark"
            f" ({MANUAL})"
        )


def check_client(spark: SparkSession, location: str) -> None:
    """Raises ConfigurationError where Spark has no client for a location."""
    if not is_object_store(location):
        return
    try:
        open_files(spark, location)
    except Py4JError as error:
        raise ConfigurationError(
            f"Spark has no client for {location}: {find_reason(error)}. Add its package to"
            f" spark.jars.packages, and its settings ({MANUAL})"
        ) from error


def check_same_store(spark: SparkSession, folder: str, location: str) -> None:
    """Raises ConfigurationError unless Spark's client finds there what this process has written:
    each has settings of its own."""
    if not is_object_store(folder):
        return
    path, reason = f"{location}/{OWNER_FILE}", "it is not there"
    try:
        if open_files(spark, path).exists(make_path(spark, path)):
            return
    except Py4JError as error:
        reason = find_reason(error)
    raise ConfigurationError(
        f"Spark's client does not see {path}, which this process has written to {folder}:"
        f" {reason}. Both must lead to the same store: compare the variables with {S3A}.*, or"
        f" the settings of another client ({MANUAL})"
    )


def open_files(spark: SparkSession, location: str) -> Any:
    """Hadoop's file system of a location, as the session has it. Raises Py4JError."""
    configured = spark._jsparkSession.sessionState().newHadoopConf()
    return make_path(spark, location).getFileSystem(configured)


def make_path(spark: SparkSession, location: str) -> Any:
    """A location as Hadoop has it."""
    jvm: Any = spark.sparkContext._jvm
    return jvm.org.apache.hadoop.fs.Path(location)


def find_reason(error: Py4JError) -> str:
    """What Java says, without its stack."""
    java = getattr(error, "java_exception", None)
    return str(java.toString() if java is not None else error).partition("\n")[0]
