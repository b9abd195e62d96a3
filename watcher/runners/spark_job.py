"""``spanner-watcher replicate`` with Spark: a session of its own, and one query until it ends."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import TypeVar

import pyspark
from pydantic.alias_generators import to_camel
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from watcher.model.errors import ConfigurationError, WatcherError
from watcher.model.log_events.spark import PYTHON_STARTED_LATE, QUERY_ENDED_BY_OPERATOR
from watcher.process.spark.java import ensure_java
from watcher.process.spark.template_start import prestart
from watcher.replica.cuts.cut import Cause
from watcher.replica.cuts.manifest import Manifest
from watcher.replica.formats import make_session_settings
from watcher.replica.frame_catalogs import uncache_catalog
from watcher.replica.frame_stores import find_client_package, make_client_settings
from watcher.replica.replica_window import CutReport
from watcher.replica.stores.places import name_place
from watcher.runners.metrics import Metrics
from watcher.runners.replica_settings import name_consumer, require_replica
from watcher.runners.spark.consumer import OPERATOR_ASKED
from watcher.runners.spark_replica import start_replica
from watcher.runners.spark_replica_request import ReplicaRequest
from watcher.settings.destination_grammar import CopiesDestination
from watcher.settings.secret_values import reveal_all
from watcher.settings.spark import OF_WATCHER
from watcher.settings.watcher import WatchConfig
from watcher.tables.values import TableSpec

LOG = logging.getLogger("watcher.replica")
T = TypeVar("T")
STOP_CHECK_SECONDS = 1
LATE_PROCESS = "Python worker failed to connect back"
"""What Spark says when a stream's Python process took more than ten seconds to start. No setting
changes that time (``PythonWorkerFactory.createSimpleWorker``); nothing has been read by then."""
STARTS_MAX = 4
LATE = (Cause.LOADING, Cause.AHEAD, Cause.READ_LATE)
"""Why a cut is not exact, until windows reach a time."""
SESSION_SETTINGS = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
}
LISTEN_ON = "SPARK_LOCAL_IP"
PACKAGES = "spark.jars.packages"
JARS = frozenset({"spark.jars", PACKAGES})
LOCAL_SETTINGS = {
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
    "spark.databricks.delta.snapshotPartitions": "2",
}
"""Of a session on this machine only: as many partitions as it has cores, where Spark makes 200, and
Delta 50 of its log; each is a task."""
READ = frozenset(
    {
        *("database", "tables", "exclude", "consumer", "capture", "interval", "table", "replica"),
        *("positions.keep", "positions.table", "stream.name", "stream.placements"),
        "stream.whole_rows",  # a copy has whole rows in any case
        "log_format",  # of the command
        "mask_key",
        "create_folders",
        "metrics",
    }
)
"""The fields that a query of Spark takes besides ``OF_WATCHER``; others are refused."""
SECTIONS = ("positions", "stream")
KNOWN = TableSpec()


def run_job(
    config: WatchConfig,
    report: Callable[[CutReport], object],
    once: bool,
    take_over: bool = False,
) -> None:
    """Replicates until it is stopped, or ``once`` up to now; ``take_over`` as in
    ``ReplicaRequest``. Raises ConfigurationError, and WatcherError when the query fails."""
    request = replace(make_request(config, report, once), take_over=take_over)
    if config.metrics is not None and request.metrics is not None:
        request.metrics.serve(config.metrics.host, config.metrics.port)
    spark = open_session(config)
    try:
        folder = request.copies.folder
        if run_query(spark, request) and once and is_late(folder):
            # A query up to now has no second window of tables that nothing changes.
            options = {**request.options, "idleSeconds": 0}
            more = replace(request, interval_seconds=0.0, options=options)
            run_query(spark, more, lambda: not is_late(folder))
    finally:
        spark.stop()


def is_late(folder: str) -> bool:
    """Whether the last cut is not exact, and later windows make one so."""
    last = Manifest(folder).read_last()
    if last is None:
        return False
    reasons = [*last.reasons, *(each for table in last.tables.values() for each in table.reasons)]
    return any(reason.cause in LATE for reason in reasons)


def run_query(
    spark: SparkSession, request: ReplicaRequest, is_done: Callable[[], bool] = lambda: False
) -> bool:
    """Runs the query until it ends or ``is_done``: whether nobody has stopped it. Raises
    WatcherError when it fails."""
    try:
        return repeat_late_starts(lambda: await_end(start_replica(spark, request), is_done))
    except StreamingQueryException as error:
        if OPERATOR_ASKED in str(error):
            QUERY_ENDED_BY_OPERATOR.log(LOG)
            return False
        raise WatcherError(f"the Spark query has failed: {error}") from error


def repeat_late_starts(run: Callable[[], T], starts: int = STARTS_MAX) -> T:
    """Runs a query until it ends; one that Spark did not wait for is started again. Raises
    StreamingQueryException."""
    try:
        return run()
    except StreamingQueryException as error:
        if LATE_PROCESS not in str(error) or starts == 1:
            raise
        PYTHON_STARTED_LATE.log(LOG)
        return repeat_late_starts(run, starts - 1)


def await_end(query: StreamingQuery, is_done: Callable[[], bool]) -> bool:
    """Until the query ends or ``is_done``: whether no signal has ended it. Raises
    StreamingQueryException when it fails."""
    try:
        while not query.awaitTermination(STOP_CHECK_SECONDS):
            if is_done():
                query.stop()
    except KeyboardInterrupt:
        query.stop()
        return False
    return True


def open_session(config: WatchConfig) -> SparkSession:
    """A session with the format of the copies. The file's own settings come first."""
    ensure_java()
    replica = require_replica(config)
    own = {
        name: value if isinstance(value, str) else json.dumps(value)  # as Spark writes true
        for name, value in reveal_all(replica.spark).items()
    }
    master = own.setdefault("spark.master", "local[*]")
    if master.startswith("local"):
        # Spark's page and its ports ask for no password, and listen everywhere unless this is set.
        os.environ.setdefault(LISTEN_ON, "127.0.0.1")
        prestart()
    defaults = SESSION_SETTINGS | (LOCAL_SETTINGS if master.startswith("local") else {})
    settings = defaults | choose_format_settings(replica.copies, own)
    builder = SparkSession.builder.appName(f"spanner-watcher replicate {name_place(replica.place)}")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def choose_format_settings(copies: CopiesDestination, own: Mapping[str, str]) -> dict[str, str]:
    """The settings that bring a format, and the client of the folder's store; where the file names
    jars, those are taken. Commits in a catalog are seen at once."""
    folder = copies.folder
    settings = dict(make_session_settings(copies.format, pyspark.__version__))
    if copies.in_catalog:
        settings |= uncache_catalog(copies.place)
    packages = [settings.pop(PACKAGES, None), find_client_package(folder)]
    if any(packages) and JARS.isdisjoint(own):
        settings[PACKAGES] = ",".join(filter(None, packages))
    return settings | make_client_settings(folder, os.environ) | dict(own)


def make_request(
    config: WatchConfig, report: Callable[[CutReport], object], once: bool
) -> ReplicaRequest:
    """What the file asks for. Raises ConfigurationError for what a query of Spark cannot do."""
    replica = require_replica(config)
    check_unused(config)
    streamed = config.capture == "change-stream"
    return ReplicaRequest(
        database=str(config.address),
        tables=config.tables,
        to=replica.place,
        format=replica.format,
        exclude=config.exclude,
        consumer=config.consumer,
        stream=(config.stream.name or True) if streamed else False,
        deleted=list_deleted(config.table),
        keep_seconds=replica.keep_cuts,
        mode=replica.mode,
        dropped_columns=replica.dropped_columns,
        merge=replica.merge,
        load_seconds=replica.load_seconds,
        load_rows=replica.load_rows or 0,
        layouts=replica.layout,
        catalog_schema=replica.catalog_schema,
        deletes=replica.deletes,
        compare_keys=replica.compare_keys,
        change_feed=replica.change_feed,
        compaction=replica.compaction,
        compaction_deleted_percent=replica.compaction_deleted_percent,
        compaction_small_files=replica.compaction_small_files,
        compaction_megabytes=replica.compaction_megabytes,
        metrics=make_metrics(config),
        interval_seconds=None if once else config.interval,
        report=report,
        options=make_options(config),
        create_folders=config.create_folders,
    )


def make_metrics(config: WatchConfig) -> Metrics | None:
    """What counts, where that is to be served."""
    if config.metrics is None:
        return None
    return Metrics(config.consumer or name_consumer(require_replica(config).copies))


def check_unused(config: WatchConfig) -> None:
    """Raises ConfigurationError for settings that would have no effect."""
    given = [
        name
        for name in WatchConfig.model_fields
        if name in config.model_fields_set and name not in (*OF_WATCHER, *READ, *SECTIONS)
    ]
    for section in SECTIONS:
        values = getattr(config, section)
        given += [
            f"{section}.{name}"
            for name, field in type(values).model_fields.items()
            if f"{section}.{name}" not in READ and getattr(values, name) != field.default
        ]
    if config.positions.keep != "spanner":
        given.append("positions.keep")
    if config.capture == "change-set":
        given.append("capture = 'change-set'")
    if given:
        raise ConfigurationError(
            f"replica.engine = 'spark' does not work with {given[0]}: remove it, or the engine"
        )


def list_deleted(specs: Mapping[str, TableSpec]) -> dict[str, str]:
    """The soft-delete columns of tables."""
    return {name: spec.deleted for name, spec in specs.items() if spec.deleted is not None}


def describe_tables(specs: Mapping[str, TableSpec]) -> dict[str, dict[str, object]]:
    """How tables are read, for the option ``tableOptions``. Raises ConfigurationError for a setting
    that a query does not have."""
    described: dict[str, dict[str, object]] = {}
    for name, spec in specs.items():
        given = {
            each.name: getattr(spec, each.name)
            for each in fields(spec)
            if getattr(spec, each.name) != getattr(KNOWN, each.name)
        }
        if "change_sets" in given:
            raise ConfigurationError(
                f"[table.{name}] has change_sets, which replica.engine = 'spark' does not have:"
                " remove it, or the engine"
            )
        if spec.mask_key is not None:
            given["mask_key"] = spec.mask_key.describe()
        given.pop("deleted", None)
        if given:
            described[name] = {to_camel(option): value for option, value in given.items()}
    return described


def make_options(config: WatchConfig) -> dict[str, object]:
    """The options of the source that the file sets."""
    options: dict[str, object] = {"positionsTable": config.positions.table}
    if tables := describe_tables(config.table):
        options["tableOptions"] = json.dumps(tables)
    if config.mask_key is not None:
        options["maskKey"] = json.dumps(config.mask_key.describe())
    if config.stream.placements:
        options["placements"] = ",".join(config.stream.placements)
    given = {
        to_camel(option): write_option(getattr(config, name))
        for name, option in OF_WATCHER.items()
        if name in config.model_fields_set
    }
    options |= {option: value for option, value in given.items() if value is not None}
    return options


def write_option(value: object) -> object:
    """A setting as an option of the source, where lists have commas."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else value
