"""The sections of a watcher's file. The text below a field is its line in the reference."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from watcher.consumers.clearing import Method
from watcher.consumers.positions import TABLE
from watcher.model.change import Operation
from watcher.model.errors import ConfigurationError
from watcher.replica.copies import COPY_ON_WRITE, Dropped
from watcher.replica.cuts.cut import DELTA
from watcher.replica.cuts.modes import LATEST, Mode
from watcher.replica.formats import FORMATS, NO_DROPPED, PARQUET, check_feed, check_merging
from watcher.replica.layout import Layout
from watcher.replica.writing.compaction import DEFAULT_POLICY, CompactionSwitch
from watcher.settings.destination_grammar import (
    ChangesDestination,
    CopiesDestination,
    FileDestination,
    parse_changes_destination,
    parse_copies_destination,
)
from watcher.settings.destinations import Destination, DuckDbDestination, QueueSections
from watcher.settings.fields import Duration, PositionsTable, Section, Text, check_by
from watcher.settings.secret_values import Secret
from watcher.settings.table_specs import check_named_once


class PositionsConfig(Section):
    """Where positions are saved. Leases and ``ctl`` need ``spanner``."""

    keep: Literal["spanner", "file", "memory"] = "spanner"
    """In a table of Spanner, in a file, or nowhere: ``memory`` ends with the process."""
    table: PositionsTable = TABLE
    """The table of Spanner that keeps positions, TABLE or SCHEMA.TABLE. Created if it is
    missing, as those that go with it are (``...Consumers`` and others)."""
    database: Text | None = None
    """The database with that table, if it is not the watched one."""
    path: Path | None = None
    """The file, with ``keep = "file"``."""


class ClearingConfig(Section):
    """Clearing on a schedule: delivered rows leave the index."""

    every: Duration
    """Time between two clearings."""
    margin: Duration = 0.0
    """Rows that are newer than the slowest consumer's position less this time stay."""
    rows_max: Annotated[int, Field(ge=1)] | None = None
    """How many rows one clearing removes at most."""
    report_after: Duration = 86_400.0
    """A consumer whose position is older than this is reported in the log; clearing still waits
    for it."""
    method: Method = Method.PARTITIONED
    """``partitioned`` scans the table, ``index`` clears the rows that the index lists, ``auto``
    chooses the cheaper one."""


class DeliveryConfig(QueueSections):
    """Where changes go, in which format, and what happens to those that are refused."""

    to: Annotated[Text, check_by(parse_changes_destination)] = "-"
    """``-`` is the standard output; else a queue (``kafka://...``, ``pubsub://...``), tables of a
    database (``postgresql://...``, ``duckdb:FILE``) or a file: a path with a ``/`` or a ``.``, or
    ``file:PATH``."""
    rotate_bytes: Annotated[int, Field(ge=1)] | None = None
    """The size in bytes at which the file is rotated; without it, never."""
    callback: Text | None = None
    """A function that takes the changes instead, written ``module:function``."""
    envelope: Text = "plain"
    """The format of lines and messages, such as ``debezium``."""
    envelope_options: Mapping[str, object] = {}
    """The options of that format."""
    proto_descriptors: Path | None = None
    """A FileDescriptorSet of protoc: PROTO columns are delivered as JSON and ENUM columns as names,
    instead of bytes and numbers. Columns of the key stay as they are."""
    retries: Annotated[int, Field(ge=0)] = 5
    """How often a callback that raises is called again for the same change."""
    backoff: Duration = 0.5
    """The longest first pause before a retry; it doubles for each one, up to a minute."""
    then: Literal["stop", "skip"] = "stop"
    """After the last retry: stop, or write the change to ``dead_letters`` and go on."""
    dead_letters: Path | None = None
    """The file of refused changes, which ``ctl replay`` and ``replay`` deliver again."""

    @property
    def destination(self) -> ChangesDestination:
        """What ``to`` names."""
        return parse_changes_destination(self.to)

    @property
    def queue(self) -> Destination | None:
        """The queue that ``to`` names, if it names one."""
        found = self.destination
        return found if isinstance(found, Destination) else None

    @property
    def takes_columns(self) -> bool:
        """Whether ``to`` takes whole rows in columns, not messages."""
        queue = self.queue
        return queue is not None and self.list_queue_options()[queue.scheme].takes_columns

    @property
    def file(self) -> Path | None:
        """The file that ``to`` names, if it names one and no callback takes its place."""
        found = self.destination
        if isinstance(found, FileDestination) and self.callback is None:
            return found.path
        return None

    @property
    def database_file(self) -> Path | None:
        """The file of a database that ``to`` names, if it names one."""
        found = self.destination
        return found.path if isinstance(found, DuckDbDestination) else None


class MetricsConfig(Section):
    """Prometheus metrics over HTTP."""

    port: Annotated[int, Field(ge=0, le=65_535)]
    """The port; 0 picks a free one."""
    host: Text = "127.0.0.1"
    """The address to listen on; by default this machine alone can read them."""


class PageConfig(Section):
    """The live page of the database, beside the watcher; needs the extra ``[page]``."""

    host: Text = "127.0.0.1"
    """Where to listen; by default this machine alone can open it. Elsewhere it asks for a token."""
    port: Annotated[int, Field(ge=0, le=65_535)] = 8765
    """The port; 0 picks a free one."""
    control: bool = False
    """Allow pause, resume, drain, stop and replay through the page, which then asks for a token."""
    token_file: Path | None = None
    """Ask for the token in this file, on this machine, too, instead of a random one, which a
    terminal shows and no log. Behind a proxy, set it always."""
    every: Annotated[Duration, Field(gt=0)] = 5.0
    """How often to read."""
    staleness: Duration = 10.0
    """How old reads may be, so that the nearest replica serves them; ``0s``: strong reads."""


class ReplicaConfig(Section):
    """Where ``spanner-watcher replicate`` keeps copies. It compacts them, too."""

    to: Annotated[Text, check_by(parse_copies_destination)]
    """The copies: ``delta:FOLDER``, ``iceberg:FOLDER`` or ``iceberg:CATALOG.NAMESPACE``; with Spark
    also ``parquet:FOLDER``."""
    keep_cuts: Duration = 7 * 86_400.0
    """For how long cuts are kept."""
    engine: Literal["delta-rs", "pyiceberg", "spark"] | None = None
    """What writes: this process (``delta-rs`` for Delta, ``pyiceberg`` for Iceberg; without it, the
    one of the format), or ``spark``."""
    merge: Literal["merge-on-read", "copy-on-write"] | None = None
    """How rows are merged into a copy: by deletion vectors (of Iceberg, position deletes), whose
    cost is that of the rows that change, or by writing all files anew that have one of them, which
    every reader reads. Without it, copies that are made are merged on read, and others as they were
    made."""
    mode: Mode = "latest"
    """What copies keep: ``latest``, the rows that the table has; ``keep-deleted``, deleted rows,
    too, marked by ``_deleted_at``; ``history``, every version of a row, from ``_valid_from`` until
    before ``_valid_to``. It is fixed when a copy is made. Others than ``latest`` are for Delta
    and Iceberg."""
    change_feed: bool = False
    """Whether copies in Delta have the change data feed: beside each merge, a file says which rows
    it has changed, as they were and as they are. Copies that are there get it with the next
    merge."""
    compaction: CompactionSwitch = "on"
    """Whether copies are compacted between windows, and data files that no cut needs are removed;
    ``off``: compaction and VACUUM are the owner's. Copies in Parquet are compacted by merges."""
    compaction_deleted_percent: Annotated[float, Field(ge=0, le=100)] = (
        DEFAULT_POLICY.deleted_percent
    )
    """A data file of which more of the rows are deleted, and 10,000 at least, is written anew."""
    compaction_small_files: Annotated[int, Field(ge=1)] = DEFAULT_POLICY.small_files
    """If a copy has more data files below 16 MB, some become one."""
    compaction_megabytes: Annotated[float, Field(gt=0)] = DEFAULT_POLICY.megabytes
    """How much of old data files is written anew between two windows; larger files take several;
    of Iceberg by Spark, one. ``--once`` writes all anew that has to be."""
    load_seconds: Duration = 60.0
    """A load is made in chunks, each of which is read for so long at most, between two windows. It
    must be much shorter than the database's ``version_retention_period``."""
    load_rows: Annotated[int, Field(ge=1)] | None = None
    """A chunk has so many rows at most."""
    load_parallelism: Annotated[int, Field(ge=1, le=64)] = 1
    """So many ranges of a table's keys are read at once by a load. More than one reads the keys
    twice: to find where the ranges end."""
    data_boost: bool = False
    """Whether loads read rows by Data Boost, on machines of Spanner's own, for a price of its own.
    The keys are read before, on the instance: to find where the ranges end."""
    dropped_columns: Dropped = "load"
    """What becomes of a column that is dropped in Spanner: ``load`` loads the table again, without
    it; ``keep`` leaves it in the copy, in a commit without data, and it is NULL in rows that are
    written from then on; ``drop`` takes it out of the copy in such a commit: its values stay in
    files until they are written anew."""
    layout: Mapping[Text, Layout] = {}
    """How the rows of a copy lie in its files, by the name of its table: a section
    ``[replica.layout.NAME]``."""
    deletes: Literal["none", "compare"] = "none"
    """Rows that are deleted in Spanner, of polled tables: ``none`` leaves them in the copy;
    ``compare`` compares the keys of the table with those of the copy, at the start and then every
    ``compare_keys``, and removes the others. A change stream tells what is deleted."""
    compare_keys: Annotated[Duration, Field(gt=0)] = 3_600.0
    """How often ``deletes = "compare"`` compares: each time Spanner hashes all keys of the
    table."""
    catalog_schema: Text | None = None
    """With Spark, copies in Delta are tables of this schema, too, ``CATALOG.SCHEMA``."""
    spark: Mapping[Text, Secret] = {}
    """Settings of the Spark session, such as ``"spark.master" = "local[4]"``, which may have keys
    of an object store. No value is shown; ``{ file = "PATH" }`` and ``{ env = "NAME" }`` are
    read."""

    @model_validator(mode="after")
    def _check_engine(self) -> ReplicaConfig:
        if self.engine != "spark":
            self._check_own()
        if self.format == PARQUET and "dropped_columns" in self.model_fields_set:
            raise ValueError(f"{NO_DROPPED}: remove dropped_columns, or use another format")
        if self.deletes == "compare" and self.format == PARQUET:
            raise ValueError(
                "deletes = 'compare' is for copies in Delta and Iceberg: remove it, or use another"
                " format"
            )
        if "compare_keys" in self.model_fields_set and self.deletes == "none":
            raise ValueError("'compare_keys' is for deletes = 'compare': add that, or remove it")
        self._check_mode()
        self._check_layout()
        try:
            if self.change_feed:
                check_feed(self.format, self.mode, self.merge)
            check_merging(self.format, self.merge)
        except ConfigurationError as error:
            raise ValueError(str(error)) from error
        given = [name for name in self.model_fields_set if name.startswith("compaction")]
        if self.format == PARQUET and given:
            raise ValueError(
                f"'{min(given)}' is not for copies in Parquet, whose merges put small files"
                " together: remove it, or use another format"
            )
        if self.catalog_schema is not None and (self.engine != "spark" or self.format != DELTA):
            raise ValueError(
                "'catalog_schema' is for engine = 'spark' and copies in Delta: set these, or remove"
                " it"
            )
        if self.engine == "spark" and "load_parallelism" in self.model_fields_set:
            raise ValueError(
                "'load_parallelism' is not for engine = 'spark', whose executors read as many"
                " ranges at once as they have cores: remove one of them"
            )
        if self.engine == "spark" and self.data_boost:
            raise ValueError(
                "'data_boost' is not for engine = 'spark': remove one of them, or call"
                " watcher.replicate(..., options={'dataBoost': 'true'})"
            )
        return self

    def _check_own(self) -> None:
        """Raises ValueError unless this process can write the copies as it is asked to."""
        own = FORMATS[self.format].own
        if own is None:
            formats = " or ".join(f"{n}:FOLDER" for n, each in FORMATS.items() if each.own)
            raise ValueError(
                f"this process does not write {self.format}: use engine = 'spark', or {formats}"
            )
        if self.engine not in (None, own.engine):
            raise ValueError(
                f"{self.engine} does not write {self.format}: use engine = '{own.engine}' or"
                " 'spark', or remove it"
            )
        if self.merge is not None and self.merge not in own.merged:
            raise ValueError(
                f"{own.engine} merges rows into {self.format} by {' or '.join(own.merged)}: remove"
                f" merge = '{self.merge}', or use engine = 'spark'"
            )

    def _check_layout(self) -> None:
        """Raises ValueError for what the writer of the copies cannot do."""
        chosen = FORMATS[self.format]
        own = None if self.engine == "spark" else chosen.own
        support = chosen.layout if own is None else own.layout
        ordered = [name for name, each in self.layout.items() if each.sort_by]
        try:
            check_named_once(self.layout, "[replica.layout]")
            support.check(f"{chosen.title} {'by' if own is None else 'without'} Spark", self.layout)
        except ConfigurationError as error:
            raise ValueError(str(error)) from error
        if ordered and own is not None and self.merge == COPY_ON_WRITE:
            raise ValueError(
                f"[replica.layout.{ordered[0]}] sort_by is for copies that are merged on read:"
                " remove it, or merge = 'copy-on-write'"
            )

    def _check_mode(self) -> None:
        if self.mode == LATEST:
            return
        by_spark, chosen = self.engine == "spark", FORMATS[self.format]
        modes = chosen.modes if by_spark or chosen.own is None else chosen.own.modes
        if self.mode not in modes:
            raise ValueError(
                f"mode = '{self.mode}' is for copies in Delta or Iceberg: {self.format} has the"
                " latest rows"
            )
        if self.merge == "copy-on-write" and not by_spark:
            raise ValueError(
                f"mode = '{self.mode}' is merged on read: remove merge = 'copy-on-write'"
            )
        if "dropped_columns" in self.model_fields_set and self.dropped_columns != "keep":
            raise ValueError(
                f"mode = '{self.mode}' keeps columns that are dropped: remove dropped_columns"
            )

    @property
    def copies(self) -> CopiesDestination:
        """What ``to`` names."""
        return parse_copies_destination(self.to)

    @property
    def place(self) -> str:
        """Where the copies are: a folder, or a namespace of a catalog."""
        return self.copies.place

    @property
    def folder(self) -> str:
        """As ``CopiesDestination.folder``."""
        return self.copies.folder

    @property
    def format(self) -> str:
        """The format of the copies."""
        return self.copies.format


class StreamConfig(Section):
    """Which change stream is read with ``capture = "change-stream"``, and what of it."""

    name: Text | None = None
    """The change stream; without it, the only one that watches the tables."""
    placements: tuple[Text, ...] = ()
    """Read the functions of these placements, ``READ_<stream>_<placement>``, instead of the
    stream's own (Spanner: ``per_placement_tvf``)."""
    operations: tuple[Literal["INSERT", "UPDATE", "DELETE"], ...] = ()
    """Only these operations; all, if it is empty."""
    tag: Text | None = None
    """Only changes of transactions with this tag."""
    whole_rows: bool = False
    """Read the values that the stream's capture type leaves out, as they were at the commit
    timestamp: one call a record."""
    push: bool = False
    """Keep queries open instead of polling: changes arrive within milliseconds, one by one instead
    of window by window."""
    listen: bool = True
    """While nothing changes, keep a query open for each partition that says when to poll, instead
    of polling at every interval. Turn it off for more than ten consumers of a stream: Spanner
    allows 20 readers of a partition."""

    @property
    def operation_set(self) -> frozenset[Operation]:
        """The operations to read; empty for all of them."""
        return frozenset(Operation(name) for name in self.operations)
