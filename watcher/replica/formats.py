"""The formats of copies, each with all that depends on which it is, and ``FORMAT:FOLDER``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pkgutil import resolve_name

from watcher.model.errors import ConfigurationError
from watcher.process.extras import require_extras
from watcher.replica.copies import (
    COPY_ON_WRITE,
    MERGE_ON_READ,
    Merging,
    OpenCopy,
    OpenTableCopy,
)
from watcher.replica.cuts.cut import DELTA
from watcher.replica.cuts.modes import LATEST, MODES, Mode
from watcher.replica.layout import ALL, IDENTITY, Layouts, LayoutSupport
from watcher.replica.stores.places import is_namespace
from watcher.replica.writing.compaction import CompactionPolicy

ICEBERG, PARQUET = "iceberg", "parquet"
EXTENSIONS = "spark.sql.extensions"
NO_DROPPED = "copies in Parquet are loaded again when a column is dropped"


@dataclass(frozen=True, slots=True)
class Release:
    """A release of a format in Maven: the Sparks that it was built for, its package with
    ``{spark}`` for one of these, and the settings of a session that has it."""

    version: str
    sparks: tuple[str, ...]
    package: str
    settings: Mapping[str, str]

    @property
    def artifact(self) -> str:
        """The package without the versions of Spark and Scala."""
        return self.package.partition("{spark}")[0].rstrip("-_")


@dataclass(frozen=True, slots=True)
class OwnWriter:
    """How this process writes a format: the ``engine`` that settings name, and what ``opens``
    copies, by the folder, the consumer, the ``Merging`` and the ``CompactionPolicy``:
    ``module:function``, loaded when it is used. ``merged``: how it can merge rows.
    ``modes``: what copies can keep. ``feed``: they can have a change feed; ``opens`` takes whether
    they have it, then, behind the mode. ``ties``: makes a namespace of a catalog and its folder the
    replica's, by its place, and returns the ID of both. ``layout``: how rows can lie in the files
    of copies that are merged on read."""

    engine: str
    opens: str
    merged: tuple[Merging, ...]
    layout: LayoutSupport
    modes: tuple[Mode, ...] = (LATEST,)
    feed: bool = False
    ties: str | None = None


@dataclass(frozen=True, slots=True)
class CopyFormat:
    """A format of copies; its name is its key in ``FORMATS``.

    ``title`` is its name in messages. ``reader`` opens copies without Spark, by the folder and the
    consumer, and ``frames`` one with Spark, by the session, the table, the ``FramePlace`` and the
    ``Layout``: both are ``module:name``, loaded when they are used. ``merged``: how Spark can merge
    rows into a copy, ``layout``: how it can lay them into files, ``modes``: what copies can keep
    that it writes. ``extra`` brings what the reader needs. ``release``: what Spark needs; None
    where it has the format itself. ``own``: how this process writes it; None: only Spark does.
    ``finds_folder``: finds the folder of a replica whose place is a namespace of a catalog; None:
    there are no such places.
    """

    title: str
    reader: str
    frames: str
    merged: tuple[Merging, ...]
    layout: LayoutSupport
    modes: tuple[Mode, ...] = (LATEST,)
    extra: str | None = None
    release: Release | None = None
    own: OwnWriter | None = None
    finds_folder: str | None = None


FORMATS: Mapping[str, CopyFormat] = {
    DELTA: CopyFormat(
        "Delta",
        "watcher.replica.delta.copy:open_delta_copies",
        "watcher.replica.spark.delta:SparkDeltaCopy",
        (MERGE_ON_READ, COPY_ON_WRITE),
        LayoutSupport(
            "use Delta without Spark, or Iceberg, whose tables have an order and a size of files",
            (IDENTITY,),
        ),
        modes=MODES,
        extra="delta",
        release=Release(
            "4.4.0",
            ("4.0", "4.1", "4.2"),
            "io.delta:delta-spark_{spark}_2.13",
            {
                EXTENSIONS: "io.delta.sql.DeltaSparkSessionExtension",
                "spark.sql.catalog.spark_catalog": (
                    "org.apache.spark.sql.delta.catalog.DeltaCatalog"
                ),
            },
        ),
        own=OwnWriter(
            "delta-rs",
            "watcher.replica.delta.copy:open_delta_copies",
            (MERGE_ON_READ, COPY_ON_WRITE),
            LayoutSupport(
                "use a column, or Iceberg, which has years to hours, buckets and truncation",
                (IDENTITY,),
                sorts=True,
                sizes=True,
            ),
            modes=MODES,
            feed=True,
        ),
    ),
    ICEBERG: CopyFormat(
        "Iceberg",
        "watcher.replica.iceberg.copies:open_iceberg_copies",
        "watcher.replica.spark.iceberg:SparkIcebergCopy",
        (MERGE_ON_READ, COPY_ON_WRITE),
        LayoutSupport("use another format", ALL, sorts=True, sizes=True),
        modes=MODES,
        extra="iceberg",
        release=Release(
            "1.12.0",
            ("4.1",),
            "org.apache.iceberg:iceberg-spark-runtime-{spark}_2.13",
            {EXTENSIONS: "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"},
        ),
        own=OwnWriter(
            "pyiceberg",
            "watcher.replica.iceberg.copies:open_written_copies",
            (MERGE_ON_READ,),
            LayoutSupport("use another format", ALL, sorts=True, sizes=True),
            modes=MODES,
            ties="watcher.replica.iceberg.namespaces:tie_folder",
        ),
        finds_folder="watcher.replica.iceberg.namespaces:find_folder",
    ),
    PARQUET: CopyFormat(
        "Parquet",
        "watcher.replica.parquet:open_parquet_copies",
        "watcher.replica.spark.parquet:SparkParquetCopy",
        (COPY_ON_WRITE,),
        LayoutSupport("use Delta or Iceberg", sorts=True),
    ),
}
CATALOG_FORMATS = tuple(name for name, each in FORMATS.items() if each.finds_folder)
SPELLINGS = (
    *(f"{name}:FOLDER" for name in FORMATS),
    *(f"{name}:CATALOG.NAMESPACE" for name in CATALOG_FORMATS),
)


def find_format(name: str) -> CopyFormat:
    """The format of a name. Raises ConfigurationError."""
    if name not in FORMATS:
        raise ConfigurationError(f"invalid format '{name}': use {' or '.join(FORMATS)}")
    return FORMATS[name]


def split_copies(text: str) -> tuple[str | None, str]:
    """The format and the folder; no format where the text is a folder alone."""
    format_, _, folder = text.partition(":")
    return (format_, folder) if format_ in FORMATS else (None, text)


def is_in_catalog(name: str | None, place: str) -> bool:
    """Whether a replica is in a namespace of a catalog, and not in a folder."""
    return name in CATALOG_FORMATS and is_namespace(place)


def find_folder(name: str | None, place: str) -> str:
    """The folder of a replica, which has its manifest. Raises ConfigurationError, ReplicaError."""
    if name is None or not is_in_catalog(name, place):
        return place
    chosen = find_format(name)
    assert chosen.finds_folder is not None, "it is in a catalog"
    if chosen.extra is not None:
        require_extras(chosen.extra)
    folder: str = resolve_name(chosen.finds_folder)(place)
    return folder


def tie_folder(name: str, place: str) -> str | None:
    """Makes a namespace and its folder the replica's, before anything is written there. Returns the
    ID that both have then; None for a folder alone. Raises ReplicaError where one of them is
    another's."""
    own = find_format(name).own
    if not is_in_catalog(name, place) or own is None or own.ties is None:
        return None
    tie: str = resolve_name(own.ties)(place)
    return tie


def check_merging(name: str, merging: Merging | None) -> None:
    """Raises ConfigurationError unless Spark can merge rows so into copies of a format."""
    chosen = find_format(name)
    if merging is not None and merging not in chosen.merged:
        raise ConfigurationError(
            f"copies in {chosen.title} are merged by {' or '.join(chosen.merged)}: remove merge ="
            f" '{merging}', or use another format"
        )


def check_feed(name: str, mode: Mode, merging: Merging | None) -> None:
    """Raises ConfigurationError unless copies of a format can have the change data feed."""
    if name != DELTA:
        raise ConfigurationError("change_feed is for copies in Delta: remove it")
    if mode != LATEST or merging == COPY_ON_WRITE:
        raise ConfigurationError(
            "change_feed is for copies of the latest rows that are merged on read: remove it, or"
            " mode and merge"
        )


def open_copies(name: str, folder: str, consumer: str) -> OpenCopy:
    """The copies of a replica, to read them without Spark. Raises ConfigurationError for an unknown
    format, or where what reads it is not installed."""
    chosen = find_format(name)
    if chosen.extra is not None:
        require_extras(chosen.extra)
    opened: OpenCopy = resolve_name(chosen.reader)(folder, consumer)
    return opened


def open_own_copies(
    name: str,
    folder: str,
    consumer: str,
    merging: Merging | None,
    policy: CompactionPolicy | None,
    mode: Mode = LATEST,
    feed: bool = False,
    layouts: Layouts | None = None,
) -> OpenTableCopy:
    """The copies of a replica, to write them in this process. Raises ConfigurationError where what
    writes them is not installed."""
    chosen = find_format(name)
    assert chosen.own is not None, "settings allow no other"
    if chosen.extra is not None:
        require_extras(chosen.extra)
    more = (feed,) if chosen.own.feed else ()
    opens = resolve_name(chosen.own.opens)
    opened: OpenTableCopy = opens(folder, consumer, merging, policy, mode, *more, layouts=layouts)
    return opened


def make_session_settings(name: str, spark_version: str) -> Mapping[str, str]:
    """The settings of a session that bring a format, with ``spark.jars.packages``.

    Raises ConfigurationError where there is no release of the format for this Spark.
    """
    chosen = find_format(name)
    release = chosen.release
    if release is None:
        return {}
    minor = ".".join(spark_version.split(".")[:2])
    if minor not in release.sparks:
        raise ConfigurationError(
            f"there is no {chosen.title} {release.version} for Spark {spark_version}: use Spark"
            f" {', '.join(release.sparks)}, or another format"
        )
    package = f"{release.package.format(spark=minor)}:{release.version}"
    return {**release.settings, "spark.jars.packages": package}
