"""The copies that Spark writes, in a session that has their format."""

from __future__ import annotations

import re
from pathlib import Path
from pkgutil import resolve_name

from pyspark.sql import SparkSession

from watcher.model.errors import ConfigurationError
from watcher.replica.copies import Merging
from watcher.replica.cuts.modes import Mode
from watcher.replica.formats import (
    EXTENSIONS,
    CopyFormat,
    check_merging,
    find_folder,
    find_format,
    is_in_catalog,
)
from watcher.replica.frame_catalogs import check_catalog
from watcher.replica.layout import Layout
from watcher.replica.spark.catalog_entries import check_schema
from watcher.replica.spark.frames import FrameCopy, FramePlace, OpenFrameCopy
from watcher.replica.stores.places import split_namespace
from watcher.replica.writing.compaction import CompactionPolicy


def make_open_copy(
    spark: SparkSession,
    name: str,
    place: str,
    consumer: str,
    merging: Merging | None = None,
    policy: CompactionPolicy | None = None,
    schema: str | None = None,
    mode: Mode | None = None,
    feed: bool = False,
) -> OpenFrameCopy:
    """The copies of a replica in a folder or a namespace. ``merging``: how rows are merged; None:
    as a copy was made, and new ones of Delta and Iceberg are made for merge-on-read. ``policy``:
    how they are compacted; None: not at all. ``schema``: that of Spark's catalog whose tables
    copies in Delta are to be. ``mode``: what copies keep that are made or written; None: as they
    were made. ``feed``: copies in Delta are to have the change data feed. Raises
    ConfigurationError for a format that is not known, that the session does not have, or that is
    not merged so, and for a catalog or a schema that it does not have."""
    chosen = find_format(name)
    check_merging(name, merging)
    check_session(spark, chosen)
    open_copy = resolve_name(chosen.frames)
    if schema is not None:
        check_schema(spark, schema)
    names = split_namespace(place) if is_in_catalog(name, place) else ()
    if names:
        check_catalog(spark, names[0])
    folder = find_folder(name, place)
    opened = FramePlace(
        folder.rstrip("/"),
        make_spark_path(folder),
        consumer,
        merging,
        policy,
        names,
        schema,
        mode,
        feed,
    )

    def open_frames(spark: SparkSession, table: str, layout: Layout | None = None) -> FrameCopy:
        copy: FrameCopy = open_copy(spark, table, opened, layout)
        return copy

    return open_frames


def check_session(spark: SparkSession, chosen: CopyFormat) -> None:
    """Raises ConfigurationError unless the session has the format."""
    release = chosen.release
    if release is None or release.settings[EXTENSIONS] in (spark.conf.get(EXTENSIONS, "") or ""):
        return
    settings = ", ".join(f"{name} to {value}" for name, value in release.settings.items())
    raise ConfigurationError(
        f"the Spark session has no {chosen.title}: set {settings}, and spark.jars.packages to the"
        f" {release.artifact} of its version (docs/replicas-spark.md)"
    )


def make_spark_path(folder: str) -> str:
    """A folder as Spark names it, whatever its default file system is. Hadoop's client of S3 has
    ``s3a://``."""
    if "://" not in folder:
        return Path(folder).resolve().as_uri()
    return re.sub("^s3://", "s3a://", folder.rstrip("/"))
