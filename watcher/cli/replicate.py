"""``spanner-watcher replicate``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from watcher.cli import actions
from watcher.cli.options import (
    POSITIONS_TABLE,
    ConfigOption,
    ConsumerOption,
    DryRunOption,
    ExcludeOption,
    JsonOption,
    OptionalDatabaseOption,
    PositionsTableOption,
    ShardColumnOption,
    ShardOption,
    ShardValueOption,
    StreamOption,
    TablesOption,
)

if TYPE_CHECKING:
    from watcher.replica.commits import CutReport
    from watcher.settings.watcher import WatchConfig


def command(
    database: OptionalDatabaseOption = None,
    table: TablesOption = None,
    exclude: ExcludeOption = None,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT:FOLDER",
            help="Where the copies are: delta:FOLDER; with Spark also iceberg: or parquet:.",
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="ENGINE", help="What writes: delta-rs (in this process, the default) or spark."
        ),
    ] = None,
    config: ConfigOption = None,
    consumer: ConsumerOption = None,
    stream: StreamOption = None,
    interval: Annotated[
        str | None, typer.Option(help="Pause between windows, such as 500ms or 1s (the default).")
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
    standby: Annotated[
        bool,
        typer.Option("--standby", help="Wait while another instance of this consumer is alive."),
    ] = False,
    shard: ShardOption = None,
    shard_column: ShardColumnOption = None,
    shard_value: ShardValueOption = None,
    positions_table: PositionsTableOption = POSITIONS_TABLE,
    dry_run: DryRunOption = False,
    json_output: JsonOption = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log every window.")] = False,
) -> None:
    """Keep copies of tables, without Spark or with it.

    Loads each table whole at one timestamp, then merges the changes of every window. After each
    window it records a cut: the version of each copy that is Spanner's table at the window's end.
    So readers see all tables at one timestamp, and 'spanner-watcher verify' can prove it. Prints a
    line for each cut. Polling sees no deleted rows: to copy deletes, read a change stream with
    --stream.

    Example: spanner-watcher replicate -d spanner://projects/p/instances/i/databases/d
    -t 'Sing*' --to delta:/lake/music
    """
    flags = {
        "database": database,
        "tables": tuple(table) if table else None,
        "exclude": tuple(exclude) if exclude else None,
        "consumer": consumer,
        "interval": interval,
        "standby": standby or None,
        "positions.table": positions_table if positions_table != POSITIONS_TABLE else None,
        "capture": "change-stream" if stream is not None else None,
        "stream.name": stream,
        "table.*.shard": shard,
        "table.*.shard_column": shard_column,
        "table.*.shard_values": shard_value,
        "replica.to": to,
        "replica.engine": engine,
    }
    actions.replicate.replicate(
        config,
        flags,
        once=once,
        take_over=take_over,
        dry_run=dry_run,
        json_output=json_output,
        verbose=verbose,
        run_spark=run_spark,
    )


def run_spark(
    config: WatchConfig, report: Callable[[CutReport], None], once: bool, take_over: bool
) -> None:
    """Replicates with Spark, which is loaded now."""
    actions.replicate_spark.replicate(config, report, once, take_over)
