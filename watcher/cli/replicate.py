"""``spanner-watcher replicate``: keeps a replica, and prints its cuts."""

from __future__ import annotations

import signal
from collections.abc import Callable
from importlib import import_module
from typing import Annotated

import typer

from watcher.cli.logs import configure_logging
from watcher.cli.options import (
    POSITIONS_TABLE,
    AcceptFailedProbeOption,
    ColumnsOption,
    ConfigOption,
    ConsumerOption,
    CreateFoldersOption,
    DryRunOption,
    ExcludeOption,
    JsonOption,
    LogWindowsOption,
    MaskKeyOption,
    MaskOption,
    OptionalDatabaseOption,
    PositionsTableOption,
    ShardColumnOption,
    ShardOption,
    ShardValueOption,
    StandbyOption,
    StreamOption,
    TablesOption,
    WhereOption,
)
from watcher.cli.output import CONSOLE, print_json
from watcher.process.extras import require_extras
from watcher.process.terminal.loading import to_run

if to_run(__name__):
    from watcher.cli.config import load_config, read_mask_key
    from watcher.cli.load_bars import shown_loads
    from watcher.replica.replica_window import CutReport, LoadState
    from watcher.runners.replicator import Replicator
    from watcher.settings.watcher import WatchConfig
    from watcher.spanner.timestamps import format_timestamp

SPARK = "spark"

PrintCut = Callable[["CutReport"], None]


def command(
    database: OptionalDatabaseOption = None,
    table: TablesOption = None,
    exclude: ExcludeOption = None,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT:FOLDER",
            help="Where the copies are: delta:FOLDER, iceberg:FOLDER or iceberg:CATALOG.NAMESPACE;"
            " with Spark also parquet:FOLDER.",
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="ENGINE",
            help="What writes: this process (delta-rs or pyiceberg, the default) or spark.",
        ),
    ] = None,
    merge: Annotated[
        str | None,
        typer.Option(
            metavar="HOW",
            help="How rows are merged: merge-on-read (the default for new copies) or"
            " copy-on-write.",
        ),
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(
            metavar="MODE",
            help="What copies keep: latest (the rows that the table has, the default),"
            " keep-deleted (deleted rows, too, marked) or history (every version of a row). It is"
            " fixed when a copy is made.",
        ),
    ] = None,
    change_feed: Annotated[
        bool,
        typer.Option(
            "--change-feed",
            help="Give copies Delta's change data feed: which rows each merge changes.",
        ),
    ] = False,
    compaction: Annotated[
        str | None,
        typer.Option(
            metavar="SWITCH", help="Compact copies between windows: on (the default) or off."
        ),
    ] = None,
    compaction_deleted_percent: Annotated[
        float | None,
        typer.Option(
            metavar="PERCENT",
            help="Rewrite a data file of which more rows are deleted (5 by default).",
        ),
    ] = None,
    compaction_small_files: Annotated[
        int | None,
        typer.Option(
            metavar="FILES",
            help="Allow a copy this many data files below 16 MB (8 by default).",
        ),
    ] = None,
    compaction_megabytes: Annotated[
        float | None,
        typer.Option(
            metavar="MEGABYTES",
            help="Rewrite this much between two windows (32 by default).",
        ),
    ] = None,
    load_seconds: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="Load a table in chunks that are read for so long at most (60s by default).",
        ),
    ] = None,
    load_rows: Annotated[
        int | None,
        typer.Option(metavar="ROWS", help="End a chunk of a load after this many rows."),
    ] = None,
    load_parallelism: Annotated[
        int | None,
        typer.Option(
            metavar="READS", help="Read so many ranges of keys at once in a load (1 by default)."
        ),
    ] = None,
    data_boost: Annotated[
        bool,
        typer.Option(
            "--data-boost", help="Read loads by Data Boost, which Spanner charges separately."
        ),
    ] = False,
    dropped_columns: Annotated[
        str | None,
        typer.Option(
            metavar="HOW",
            help="When a column is dropped in Spanner: load the table again (the default), keep the"
            " column in the copy, NULL in new rows, or drop it without a load.",
        ),
    ] = None,
    partition_by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TABLE=COLUMN,COLUMN",
            help="Partition the copy of TABLE by columns; in Iceberg also by year, month, day, hour"
            " of one, bucket(16,COLUMN) or truncate(4,COLUMN). Fixed when it is made; repeatable.",
        ),
    ] = None,
    sort_by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TABLE=COLUMN,COLUMN",
            help="Sort the rows of each file of the copy of TABLE; repeatable.",
        ),
    ] = None,
    file_megabytes: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TABLE=MEGABYTES",
            help="The size of files that loads and compaction write (256 by default); repeatable.",
        ),
    ] = None,
    deletes: Annotated[
        str | None,
        typer.Option(
            metavar="HOW",
            help="Rows of polled tables that are deleted in Spanner: none (they stay in the copy,"
            " the default), or compare: find them by comparing keys.",
        ),
    ] = None,
    compare_keys: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION", help="With --deletes compare: compare so often (1h by default)."
        ),
    ] = None,
    where: WhereOption = None,
    columns: ColumnsOption = None,
    mask: MaskOption = None,
    mask_key: MaskKeyOption = None,
    config: ConfigOption = None,
    consumer: ConsumerOption = None,
    stream: StreamOption = None,
    interval: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION", help="Pause between windows, such as 500ms or 1s (the default)."
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Copy everything up to now, then stop.")
    ] = False,
    take_over: Annotated[
        bool,
        typer.Option(
            "--take-over",
            help="Take a folder that belongs to another consumer or database: its cuts are removed,"
            " and every table is loaded again.",
        ),
    ] = False,
    create_folders: CreateFoldersOption = False,
    standby: StandbyOption = False,
    shard: ShardOption = None,
    shard_column: ShardColumnOption = None,
    shard_value: ShardValueOption = None,
    positions_table: PositionsTableOption = POSITIONS_TABLE,
    accept_failed_probe: AcceptFailedProbeOption = None,
    dry_run: DryRunOption = False,
    json_output: JsonOption = False,
    verbose: LogWindowsOption = False,
) -> None:
    """Keep copies of tables, without Spark or with it.

    Loads each table, in chunks between windows if it is large, and merges the changes of every
    window. After each window it records a cut: the version of each copy that is Spanner's table at
    the window's end. So readers see all tables at one timestamp, and 'spanner-watcher verify' can
    prove it. Prints a line for each cut. Polling sees no deleted rows: to copy deletes, read a
    change stream with --stream, or have keys compared with --deletes compare.

    Example: spanner-watcher replicate -d $D -t 'Sing*' --to delta:/lake/music
    """
    flags = {
        "database": database,
        "tables": table,
        "exclude": exclude,
        "consumer": consumer,
        "interval": interval,
        "create_folders": create_folders,
        "standby": standby,
        "positions.table": positions_table,
        "accept_failed_probes": accept_failed_probe,
        "stream.name": stream,
        "table.*.shard": shard,
        "table.*.shard_column": shard_column,
        "table.*.shard_values": shard_value,
        "where": where,
        "columns": columns,
        "mask": mask,
        "mask_key": read_mask_key(mask_key) if mask_key is not None else None,
        "replica.to": to,
        "replica.engine": engine,
        "replica.merge": merge,
        "replica.mode": mode,
        "replica.change_feed": change_feed,
        "replica.compaction": compaction,
        "replica.compaction_deleted_percent": compaction_deleted_percent,
        "replica.compaction_small_files": compaction_small_files,
        "replica.compaction_megabytes": compaction_megabytes,
        "replica.load_seconds": load_seconds,
        "replica.load_rows": load_rows,
        "replica.load_parallelism": load_parallelism,
        "replica.data_boost": data_boost,
        "replica.dropped_columns": dropped_columns,
        "partition_by": partition_by,
        "sort_by": sort_by,
        "file_megabytes": file_megabytes,
        "replica.deletes": deletes,
        "replica.compare_keys": compare_keys,
    }
    settings = load_config(config, flags)
    configure_logging(settings.log_format, verbose)
    printer: PrintCut = print_json_cut if json_output else CutPrinter().print
    if settings.replica is not None and settings.replica.engine == SPARK and not dry_run:
        replicate_with_spark(settings, printer, once, take_over)
        return
    if dry_run:
        print_plan(Replicator(settings, printer, take_over), json_output)
        return
    with shown_loads(json_output) as watch_load:
        replicator = Replicator(settings, printer, take_over, watch_load)
        if once:
            replicator.run_once()
        else:
            replicator.stop_on_signals()
            replicator.run()


def replicate_with_spark(
    config: WatchConfig, report: PrintCut, once: bool, take_over: bool
) -> None:
    """Replicates with Spark, which only who asks for it loads, until SIGTERM or SIGINT, or ``once``
    up to now."""
    require_extras("spark")
    job = import_module("watcher.runners.spark_job")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    job.run_job(config, report, once, take_over)


def print_plan(replicator: Replicator, json_output: bool) -> None:
    """Prints what a start would do with each table."""
    plans = list(replicator.plan())
    if json_output:
        tables = [{"table": p.table, "action": p.action, "reason": p.reason} for p in plans]
        print_json({"consumer": replicator.consumer, "tables": tables})
        return
    CONSOLE.print(f"consumer {replicator.consumer}")
    for plan in plans:
        CONSOLE.print(f"{plan.table}: {plan.action} ({plan.reason})")


def print_json_cut(report: CutReport) -> None:
    """A cut for machines."""
    print_json(describe_cut(report))


def describe_cut(report: CutReport) -> dict[str, object]:
    """A cut with its lag: how old it was when it was written, in seconds."""
    cut = report.cut
    return {
        "cut": format_timestamp(cut.end),
        "exact": cut.exact,
        "not_exact": cut.explain(),
        "phase": "loading" if report.loaded or report.loading else "following",
        "lag_seconds": round(report.lag_seconds, 3),
        "loaded": dict(report.loaded),
        "merged": dict(report.merged),
        "loading": {name: describe_load(each) for name, each in sorted(report.loading.items())},
        "tables": {name: each.version for name, each in sorted(cut.tables.items())},
    }


def describe_load(load: LoadState | None) -> dict[str, object] | None:
    """How far a load is; None where it has not begun."""
    if load is None:
        return None
    return {
        "upto": load.progress.upto,
        "rows": load.progress.rows,
        "bytes": load.progress.bytes,
        "chunks": load.progress.chunks,
        "seconds": round(load.seconds, 3),
        "share": None if load.progress.share is None else round(load.progress.share, 4),
        "seconds_left": None if load.seconds_left is None else round(load.seconds_left, 1),
    }


class CutPrinter:
    """A line for each cut in which something changed; the others only advance it."""

    def __init__(self) -> None:
        self._first = True

    def print(self, report: CutReport) -> None:
        """Prints the line."""
        changes = [f"{name} {rows} rows loaded" for name, rows in sorted(report.loaded.items())]
        changes += [f"{name} {rows} rows merged" for name, rows in sorted(report.merged.items())]
        if not changes and not self._first:
            return
        self._first = False
        exact = "" if report.cut.exact else f" (not exact: {report.cut.explain()})"
        text = ", ".join(changes) or "nothing changed"
        CONSOLE.print(f"cut {format_timestamp(report.cut.end)}{exact}: {text}")
