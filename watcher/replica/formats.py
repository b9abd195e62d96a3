"""The formats of copies, each with all that depends on which it is, and ``FORMAT:FOLDER``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pkgutil import resolve_name

from watcher.model.errors import ConfigurationError
from watcher.process.extras import require_extras
from watcher.replica.compaction import CompactionPolicy
from watcher.replica.copies import (
    COPY_ON_WRITE,
    MERGE_ON_READ,
    Merging,
    OpenCopy,
    OpenTableCopy,
)
from watcher.replica.cuts import DELTA
from watcher.replica.modes import LATEST, MODES, Mode

ICEBERG, PARQUET = "iceberg", "parquet"
EXTENSIONS = "spark.sql.extensions"


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
    ``keeps_dropped``: whether columns that were dropped can stay. ``modes``: what copies can keep;
    where there are several, ``opens`` takes the mode, too."""

    engine: str
    opens: str
    merged: tuple[Merging, ...]
    keeps_dropped: bool
    modes: tuple[Mode, ...] = (LATEST,)


@dataclass(frozen=True, slots=True)
class CopyFormat:
    """A format of copies; its name is its key in ``FORMATS``.

    ``title`` is its name in messages. ``reader`` opens copies without Spark, by the folder and the
    consumer, and ``frames`` with Spark, by the folder, the same as Spark names it, the consumer and
    the ``Merging``: both are ``module:function``, loaded when they are used. ``merged``: how Spark
    can merge rows into a copy. ``extra`` brings what the reader needs. ``release``: what Spark
    needs; None where it has the format itself. ``own``: how this process writes it; None: only
    Spark does.
    """

    title: str
    reader: str
    frames: str
    merged: tuple[Merging, ...]
    extra: str | None = None
    release: Release | None = None
    own: OwnWriter | None = None


FORMATS: Mapping[str, CopyFormat] = {
    DELTA: CopyFormat(
        "Delta",
        "watcher.replica.delta.copy:open_delta_copies",
        "watcher.replica.spark_delta:open_delta_frames",
        (MERGE_ON_READ, COPY_ON_WRITE),
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
            keeps_dropped=True,
            modes=MODES,
        ),
    ),
    ICEBERG: CopyFormat(
        "Iceberg",
        "watcher.replica.iceberg.copies:open_iceberg_copies",
        "watcher.replica.spark_iceberg:open_iceberg_frames",
        (MERGE_ON_READ, COPY_ON_WRITE),
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
            keeps_dropped=False,
        ),
    ),
    PARQUET: CopyFormat(
        "Parquet",
        "watcher.replica.parquet:open_parquet_copies",
        "watcher.replica.spark_parquet:open_parquet_frames",
        (COPY_ON_WRITE,),
    ),
}
SPELLINGS = tuple(f"{name}:FOLDER" for name in FORMATS)


def find_format(name: str) -> CopyFormat:
    """The format of a name. Raises ConfigurationError."""
    if name not in FORMATS:
        raise ConfigurationError(f"invalid format '{name}': use {' or '.join(FORMATS)}")
    return FORMATS[name]


def split_copies(text: str) -> tuple[str | None, str]:
    """The format and the folder; no format where the text is a folder alone."""
    format_, _, folder = text.partition(":")
    return (format_, folder) if format_ in FORMATS else (None, text)


def check_merging(name: str, merging: Merging | None) -> None:
    """Raises ConfigurationError unless Spark can merge rows so into copies of a format."""
    chosen = find_format(name)
    if merging is not None and merging not in chosen.merged:
        raise ConfigurationError(
            f"copies in {chosen.title} are merged by {' or '.join(chosen.merged)}: remove merge ="
            f" '{merging}', or use another format"
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
) -> OpenTableCopy:
    """The copies of a replica, to write them in this process. Raises ConfigurationError where what
    writes them is not installed."""
    chosen = find_format(name)
    assert chosen.own is not None, "settings allow no other"
    if chosen.extra is not None:
        require_extras(chosen.extra)
    more = (mode,) if len(chosen.own.modes) > 1 else ()
    opens = resolve_name(chosen.own.opens)
    opened: OpenTableCopy = opens(folder, consumer, merging, policy, *more)
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
