"""What a replica by Spark is asked for, as arguments of Python, and as a query has it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from watcher.model.errors import ConfigurationError
from watcher.process.extras import require_extras
from watcher.replica.copies import Dropped, Merging
from watcher.replica.cuts.cut import DELTA
from watcher.replica.cuts.modes import LATEST, Mode
from watcher.replica.formats import NO_DROPPED, PARQUET, check_feed, find_format, split_copies
from watcher.replica.frame_copies import make_spark_path
from watcher.replica.layout import Layout, Layouts
from watcher.replica.loads import CHUNK_LIMIT, ChunkLimit
from watcher.replica.replica_window import CutReport
from watcher.replica.writing.compaction import (
    DEFAULT_POLICY,
    CompactionPolicy,
    CompactionSwitch,
)
from watcher.runners.compaction_runs import make_policy
from watcher.runners.metrics import Metrics
from watcher.runners.replica_settings import (
    choose_dropped,
    name_consumer,
    parse_layouts,
)
from watcher.settings.destination_grammar import CopiesDestination, parse_copies_destination
from watcher.settings.spark import SourceOptions
from watcher.settings.spark_parsing import parse_source_options
from watcher.sinks.callbacks import Callback

CHECKPOINT = "_checkpoint"
KEEP_SECONDS = 7 * 86_400.0
OWN_OPTIONS = frozenset(
    {"tables", "table", "arrowRows", "startingTimestamp", "endingTimestamp", "snapshotTimestamp"}
    | {"envelope", "operations", "transactionTag", "wholeRows", "consumer", "exclude", "capture"}
    | {"copyMode", "startsWithWindow"}
)
OWN_OPTIONS_ADVICE = "use the arguments of replicate, and of the source's options the others"


@dataclass(frozen=True)
class SparkReplicaSettings:
    """What a query replicates, and to where. ``options`` are those of the source.

    ``keep_seconds``: for how long cuts are kept. ``interval_seconds``: the least time between the
    starts of two micro-batches; None runs up to now, and ends. ``policy``: how copies are
    compacted; None: not here. ``metrics``: what is counted. ``mode``: what copies keep.
    ``compare_seconds``: how often keys are compared, to find deleted rows; None: never.
    ``dropped``: what becomes of columns that are dropped.
    """

    options: Mapping[str, str]
    copies: CopiesDestination
    folder: str
    checkpoint: str
    keep_seconds: float
    interval_seconds: float | None
    report: Callable[[CutReport], object]
    take_over: bool = False
    limit: ChunkLimit = CHUNK_LIMIT
    layouts: Layouts = field(default_factory=dict)
    policy: CompactionPolicy | None = None
    metrics: Metrics | None = None
    mode: Mode = LATEST
    compare_seconds: float | None = None
    dropped: Dropped = "load"

    @property
    def format(self) -> str:
        """The format of the copies."""
        return self.copies.format

    @property
    def source(self) -> SourceOptions:
        """The options, validated. Raises ConfigurationError."""
        return parse_source_options(self.options)


@dataclass(frozen=True)
class ReplicaRequest:
    """What ``watcher.replicate`` was asked for. ``to``: a folder, ``FORMAT:FOLDER``, or
    ``iceberg:CATALOG.NAMESPACE``; ``format`` is ``delta`` without either. ``stream``: a change
    stream's name, or True for the only one; ``deleted`` maps tables to their soft-delete columns.
    ``take_over``: the folder is made this consumer's where it belongs to another one, and every
    table is loaded again. ``mode``: what copies keep, ``latest``, ``keep-deleted`` or ``history``.
    ``merge``: how rows are merged, ``merge-on-read`` or ``copy-on-write``;
    None: as each copy was made, and new ones on read. ``compaction`` and what begins so: as in
    ``[replica]`` of a file.
    ``metrics``: what counts windows and compactions; None: they are not shown.
    ``create_folders``: as in a watcher's file. ``load_seconds``: for so long a micro-batch loads,
    ``load_rows``: so many rows a chunk of a load has at most (0: as many as fit). ``layouts``: how
    the rows of copies lie in their files, by table. ``catalog_schema``: the
    ``CATALOG.SCHEMA`` whose tables copies in Delta are to be. ``deletes``: ``compare`` removes rows
    of polled tables whose keys Spanner does not have any more; keys are compared at the start, and
    then every ``compare_keys`` seconds. ``change_feed``: copies in Delta have the change data
    feed. ``dropped_columns``: what becomes of columns that are dropped, ``load``, ``keep`` or
    ``drop``."""

    database: str
    tables: Sequence[str]
    to: str
    format: str | None = None
    exclude: Sequence[str] = ()
    consumer: str | None = None
    stream: str | bool = False
    deleted: Mapping[str, str] = field(default_factory=dict)
    checkpoint: str | None = None
    keep_seconds: float = KEEP_SECONDS
    interval_seconds: float | None = 1.0
    report: Callable[[CutReport], object] = lambda _: None
    options: Mapping[str, object] = field(default_factory=dict)
    take_over: bool = False
    create_folders: bool = False
    mode: Mode = LATEST
    merge: Merging | None = None
    load_seconds: float = CHUNK_LIMIT.seconds
    load_rows: int = 0
    layouts: Mapping[str, Layout | Mapping[str, object]] = field(default_factory=dict)
    compaction: CompactionSwitch = "on"
    compaction_deleted_percent: float = DEFAULT_POLICY.deleted_percent
    compaction_small_files: int = DEFAULT_POLICY.small_files
    compaction_megabytes: float = DEFAULT_POLICY.megabytes
    metrics: Metrics | None = None
    catalog_schema: str | None = None
    deletes: Literal["none", "compare"] = "none"
    compare_keys: float = 3_600.0
    change_feed: bool = False
    dropped_columns: Dropped = "load"

    @property
    def copies(self) -> CopiesDestination:
        """The format and the folder. Raises ConfigurationError."""
        format_, folder = split_copies(self.to)
        named = self.format or format_ or DELTA
        if self.catalog_schema is not None and named != DELTA:
            raise ConfigurationError(
                f"catalog_schema is for copies in Delta, not in {named}: remove it"
            )
        if format_ not in (None, named):
            raise ConfigurationError(f"format = '{named}' and to = '{self.to}': remove one of them")
        return parse_copies_destination(f"{named}:{folder}")

    def resolve(self) -> SparkReplicaSettings:
        """The settings. Raises ConfigurationError, AddressError."""
        taken = sorted(OWN_OPTIONS.intersection(self.options))
        if taken:
            raise ConfigurationError(
                f"the option '{taken[0]}' is the replica's own: {OWN_OPTIONS_ADVICE}"
            )
        copies, layouts = self.copies, parse_layouts(self.layouts)
        folder = copies.folder
        chosen = find_format(copies.format)
        chosen.layout.check(f"{chosen.title} by Spark", layouts)
        if self.mode not in chosen.modes:
            raise ConfigurationError(
                f"invalid mode '{self.mode}' of copies in {chosen.title}: use"
                f" {' or '.join(chosen.modes)}"
            )
        self._check_deletes(copies.format)
        if self.change_feed:
            check_feed(copies.format, self.mode, self.merge)
        self._check_dropped(copies.format)
        settings = SparkReplicaSettings(
            self._make_options(),
            copies,
            folder,
            self.checkpoint or f"{make_spark_path(folder)}/{CHECKPOINT}",
            self.keep_seconds,
            self.interval_seconds,
            Callback(self.report),
            self.take_over,
            ChunkLimit(self.load_seconds, self.load_rows),
            layouts,
            make_policy(self),
            self.metrics,
            self.mode,
            self.compare_keys if self.deletes == "compare" else None,
            choose_dropped(self.mode, self.dropped_columns),
        )
        _ = settings.source
        return settings

    def _check_deletes(self, format_: str) -> None:
        if self.deletes not in ("none", "compare"):
            raise ConfigurationError(f"invalid deletes '{self.deletes}': use none or compare")
        if self.deletes == "none":
            return
        if self.stream:
            raise ConfigurationError(
                "a change stream tells which rows are deleted: remove deletes = 'compare'"
            )
        if format_ == PARQUET:
            raise ConfigurationError(
                "deletes = 'compare' is for copies in Delta and Iceberg: remove it, or use another"
                " format"
            )

    def _check_dropped(self, format_: str) -> None:
        asked, advice = self.dropped_columns, "remove dropped_columns"
        if asked not in get_args(Dropped):
            choices = ", ".join(get_args(Dropped))
            raise ConfigurationError(f"invalid dropped_columns '{asked}': use one of {choices}")
        if asked == "drop" and self.mode != LATEST:
            raise ConfigurationError(
                f"mode = '{self.mode}' keeps columns that are dropped: {advice}"
            )
        if asked != "load" and format_ == PARQUET:
            raise ConfigurationError(f"{NO_DROPPED}: {advice}, or use another format")
        if asked != "load" and format_ == DELTA:
            require_extras(DELTA)

    def _make_options(self) -> dict[str, str]:
        options = {
            "database": self.database,
            "tables": ",".join(self.tables),
            "exclude": ",".join(self.exclude),
            "consumer": self.consumer or name_consumer(self.copies),
            "arrowRows": "true",
            "copyMode": self.mode,
            "startsWithWindow": str(self.deletes == "compare").lower(),
            "deletedColumns": json.dumps(dict(self.deleted)),
        }
        if self.stream:
            options |= {"capture": "change-stream", "wholeRows": "true"}
        if isinstance(self.stream, str):
            options["stream"] = self.stream
        return options | {name: to_text(value) for name, value in self.options.items()}


def to_text(value: object) -> str:
    """A value as an option of Spark."""
    if isinstance(value, Mapping):
        return json.dumps(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
