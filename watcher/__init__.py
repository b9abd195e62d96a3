"""Turns a Cloud Spanner database into a stream of row changes."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from watcher.extras import require_extras

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from watcher.change import Change as Change
    from watcher.change import Operation as Operation
    from watcher.runners.spark.progress import SourceProgress
    from watcher.runners.watcher import Watcher as Watcher

MODULES = {
    "Change": "watcher.change",
    "Operation": "watcher.change",
    "Watcher": "watcher.runners.watcher",
}
"""The modules of the public classes, which are loaded when they are first used."""

__all__ = ["Change", "Operation", "Watcher", "newest_per_key", "progress", "register"]


def __getattr__(name: str) -> object:
    """Loads a public class. Raises AttributeError."""
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(MODULES[name]), name)
    globals()[name] = value
    return value


def register(spark: SparkSession) -> None:
    """Makes ``spark.readStream.format("spanner-changes")`` known to a Spark session."""
    require_extras("spark")
    # PySpark takes a second to import, and is not installed where only a watcher runs.
    from watcher.runners import spark as source  # noqa: PLC0415

    source.register(spark)


def progress(spark: SparkSession) -> SourceProgress:
    """How far the streaming queries of the source in a session are: its ``list_queries()`` says it
    at any time, and each batch is logged (logger ``watcher.spark``, level INFO)."""
    require_extras("spark")
    from watcher.runners.spark.progress import follow_progress  # noqa: PLC0415

    return follow_progress(spark)


def newest_per_key(df: DataFrame, keys: Sequence[str] = ()) -> DataFrame:
    """Changes (a batch of a stream, or a batch read) as one row a key: the newest.

    ``keys`` names the columns of the primary key; envelope rows need none.
    """
    require_extras("spark")
    from watcher.runners.spark import newest  # noqa: PLC0415

    return newest.newest_per_key(df, keys)
