"""A Spark query that keeps copies of tables: docs/replicas-spark.md."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from spanner_schema.model.schema import Schema
from watcher.captures.change_stream import require_complete
from watcher.captures.poll import PollCapture
from watcher.model.errors import ConfigurationError, VersionExpiredError
from watcher.model.log_events.spark import BATCH_WITHOUT_WINDOW
from watcher.replica.commits import ReplicaWriter
from watcher.replica.cuts.manifest import Manifest
from watcher.replica.cuts.owner import Owner
from watcher.replica.cuts.views import View
from watcher.replica.formats import open_copies, tie_folder
from watcher.replica.frame_catalogs import check_same_catalog
from watcher.replica.frame_copies import make_open_copy, make_spark_path
from watcher.replica.frame_stores import (
    check_client,
    check_commits,
    check_same_store,
)
from watcher.replica.loads import ChunkLimit, ChunkPace, LoadBudget
from watcher.replica.replica_window import CutReport
from watcher.replica.spark.frames import FrameCopy, OpenFrameCopy
from watcher.replica.stores.stored_files import remove_folder
from watcher.replica.target import ReplicaTarget
from watcher.replica.upkeep import Compacted
from watcher.replica.verification.deleted_keys import DeletedKeys
from watcher.replica.window_reads import measure_lag
from watcher.runners.compaction_runs import run_compaction
from watcher.runners.folders import prepare_any_folder
from watcher.runners.metrics import Metrics
from watcher.runners.replica_settings import (
    fit_layouts,
    list_caveats,
)
from watcher.runners.spark.format_name import FORMAT as SOURCE
from watcher.runners.spark.frame_rows import FrameRows
from watcher.runners.spark.registration import register_source
from watcher.runners.spark.resolution import resolve_scan, resolve_scan_again
from watcher.runners.spark.scan import Scan
from watcher.runners.spark.table_batches import (
    BatchWindow,
    fit_copy,
)
from watcher.runners.spark_replica_request import (
    CHECKPOINT,
    ReplicaRequest,
    SparkReplicaSettings,
)
from watcher.tables.epochs import Epochs

LOG = logging.getLogger("watcher.replica")


class SparkReplica:
    """Writes each micro-batch of a query: commits of the copies, then the cut."""

    def __init__(self, settings: SparkReplicaSettings, copies: OpenFrameCopy) -> None:
        self._settings = settings
        self._copies = copies
        self._scan = resolve_scan(settings.source)
        captures = {name: self._scan.capture(name) for name in self._scan.tables}
        require_complete([capture.table for capture in captures.values()])
        for capture in captures.values():
            View.of_table(capture.table)  # refuses conditions that no change tells of
        self._layouts = fit_layouts(settings.layouts, captures, settings.mode)
        self._epochs: Epochs[Scan] = Epochs(self._scan.queries.stream, self._resolve)
        self._session: SparkSession | None = None
        self._pace = ChunkPace(settings.limit)
        self._metrics = settings.metrics or Metrics(self._consumer)
        self._writer = self._make_writer()

    @property
    def _consumer(self) -> str:
        consumer = self._settings.source.consumer
        assert consumer is not None, "make_settings names the consumer"
        return consumer

    def check_copies(self, spark: SparkSession) -> None:
        """Raises ConfigurationError for a copy that is there and was made with other partitions, or
        with another mode."""
        self._session = spark
        for name in self._scan.tables:
            self._open(name).read_state()

    def write(self, batch: DataFrame, batch_id: int) -> None:
        """As the function of ``foreachBatch``."""
        self._session = batch.sparkSession
        batch.persist()
        try:
            window, counts, columns = summarize(batch)
            if window is None:
                BATCH_WITHOUT_WINDOW.log(LOG, batch=batch_id)
                return
            captures = self._resolve_captures(window)
            writing = self._writer.begin(window.end, window.starts, captures)
            for name in columns.keys() & captures.keys() - writing.loads.keys():
                if not fit_copy(columns[name], captures[name], writing.find_added(name)):
                    writing.load_whole(name)
            budget = self._make_budget(captures, window.end)
            settings = self._settings
            held = (settings.source, settings.options, batch, counts, columns, budget, self._pace)
            self._writer.commit(writing, FrameRows(batch.sparkSession, *held, settings.mode))
        finally:
            batch.unpersist()

    def _make_budget(self, captures: Mapping[str, PollCapture], end: int) -> LoadBudget:
        """A query that runs up to now loads everything in one micro-batch."""
        if self._settings.interval_seconds is None:
            return LoadBudget(ChunkLimit(math.inf))
        return LoadBudget(self._settings.limit, measure_lag(captures, end))

    def _resolve(self, schema: Schema) -> Scan:
        return resolve_scan_again(self._scan, schema)

    def _resolve_captures(self, window: BatchWindow) -> dict[str, PollCapture]:
        """The tables in the schema of the window's end, as the source has read them."""
        try:
            scan = self._epochs.at(window.end)
        except VersionExpiredError:
            _, scan = self._epochs.latest()
        captures = {name: scan.capture(name) for name in scan.tables if name in window.starts}
        for name, capture in captures.items():
            check_supported(name, capture)
        return captures

    def _make_writer(self) -> ReplicaWriter[FrameCopy]:
        settings, path = self._settings, self._settings.source.address.path
        target = ReplicaTarget(
            self._open,
            Manifest(settings.folder),
            settings.keep_seconds,
            settings.format,
            None if settings.policy is None else self._compact,
            settings.dropped,
            deleted=self._make_deleted(),
            mode=settings.mode,
            caveats=list_caveats(settings.mode, settings.source.streamed),
        )
        return ReplicaWriter(path, self._consumer, target, report=self._report)

    def _make_deleted(self) -> DeletedKeys | None:
        """Finds deleted rows by what reads copies without Spark."""
        settings = self._settings
        if settings.compare_seconds is None:
            return None
        database, copies = settings.source.address.path, settings.copies
        read = open_copies(copies.format, copies.place, self._consumer)
        return DeletedKeys(database, self._consumer, settings.compare_seconds, read=read)

    def _compact(self, table: str, copy: FrameCopy, key: Sequence[str]) -> Compacted:
        """As ``CompactCopy``."""
        once = self._settings.interval_seconds is None
        return run_compaction(self._metrics, once, table, copy, key)

    def _report(self, report: CutReport) -> None:
        self._metrics.count_window({**report.loaded, **report.merged}, report.cut.end)
        self._settings.report(report)

    def _open(self, table: str) -> FrameCopy:
        assert self._session is not None, "copies are opened by micro-batches"
        return self._copies(self._session, table, self._layouts.get(table))


def summarize(
    batch: DataFrame,
) -> tuple[BatchWindow | None, dict[str, int], dict[str, list[str]]]:
    """The window of a micro-batch, and of each table how many changes it has, and which columns
    they have."""
    aggregates = (f.sum("row_count"), f.max("window"), f.collect_set("columns"))
    rows = batch.groupBy("table").agg(*aggregates).collect()
    texts = [text for name, _, text, _ in rows if name is None]
    window = BatchWindow.from_text(texts[0]) if texts else None
    changed = [row for row in rows if row[0] is not None and row[1]]
    return (
        window,
        {name: int(count) for name, count, _, _ in changed},
        {name: list(columns) for name, _, _, columns in changed},
    )


def check_supported(name: str, capture: PollCapture) -> None:
    """Raises ConfigurationError for a table that Spark cannot replicate."""
    if capture.table.change_sets is not None:
        raise ConfigurationError(
            f"table {name} is polled through change sets, which replicas by Spark cannot load: use"
            " 'spanner-watcher replicate' without Spark, or a change stream"
        )


def claim_folder(settings: SparkReplicaSettings, consumer: str) -> None:
    """Makes the folder the consumer's. The checkpoint in one that is taken over is that of the
    owner before: it is removed, too. Raises ConfigurationError where it belongs to another one."""
    owner = Owner(settings.source.address.path, consumer, settings.format)
    if Manifest(settings.folder).claim(owner, settings.take_over):
        remove_folder(settings.folder, CHECKPOINT)


def check_place(spark: SparkSession, settings: SparkReplicaSettings, create: bool) -> None:
    """Looks whether Spark can write copies and the checkpoint where they are to be. Raises
    ConfigurationError."""
    if settings.copies.in_catalog:
        check_client(spark, settings.checkpoint)
        return
    location = make_spark_path(settings.folder)
    prepare_any_folder("to", settings.folder, create)
    check_commits(spark, settings.format, location)
    check_client(spark, location)


def start_replica(spark: SparkSession, request: ReplicaRequest) -> StreamingQuery:
    """Starts the query. Raises ConfigurationError, TableNotFoundError, NotWatchableError."""
    if not isinstance(spark, SparkSession):
        raise ConfigurationError(
            "replicate writes from the driver's own process, which Spark Connect does not have: use"
            " a session that is not a Connect client"
        )
    settings = request.resolve()
    consumer = settings.source.consumer
    assert consumer is not None, "a request names the consumer"
    check_place(spark, settings, request.create_folders)
    copies = make_open_copy(
        spark,
        settings.format,
        settings.copies.place,
        consumer,
        request.merge,
        settings.policy,
        request.catalog_schema,
        settings.mode,
        request.change_feed,
    )
    register_source(spark)
    replica = SparkReplica(settings, copies)
    tie = tie_folder(settings.format, settings.copies.place)
    if tie is not None:
        check_same_catalog(spark, settings.copies.place, tie)
    replica.check_copies(spark)
    claim_folder(settings, consumer)
    if tie is None:
        check_same_store(spark, settings.folder, make_spark_path(settings.folder))
    changes = spark.readStream.format(SOURCE).options(**settings.options).load()
    writer = (
        changes.writeStream.foreachBatch(replica.write)
        .option("checkpointLocation", settings.checkpoint)
        .queryName(consumer)
    )
    if settings.interval_seconds is None:
        return writer.trigger(availableNow=True).start()
    milliseconds = round(settings.interval_seconds * 1000)
    return writer.trigger(processingTime=f"{milliseconds} milliseconds").start()
