"""``spanner-watcher watch``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from watcher.cli import actions
from watcher.cli.options import (
    POSITIONS_TABLE,
    ConfigOption,
    ExcludeOption,
    OptionalDatabaseOption,
    PositionsTableOption,
    ShardColumnOption,
    ShardOption,
    ShardValueOption,
    StreamOption,
    TablesOption,
)


def command(
    database: OptionalDatabaseOption = None,
    table: TablesOption = None,
    exclude: ExcludeOption = None,
    config: ConfigOption = None,
    consumer: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Save the position under this name, so that the next start continues from there"
            " and clearing waits for it. Without a name, nothing is saved.",
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="WHEN",
            help="Where a consumer without a position starts: latest (the default), earliest"
            " (everything still in the index), or a timestamp such as 2026-01-31T12:00:00Z.",
        ),
    ] = None,
    stream: StreamOption = None,
    interval: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION", help="Pause between polls, such as 500ms or 1s (the default)."
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Deliver the changes up to now, then stop.")
    ] = False,
    max_rows: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="NUMBER", help="Split a window that has more rows than this (100,000)."
        ),
    ] = None,
    callback: Annotated[
        str | None,
        typer.Option(metavar="MODULE:FUNCTION", help="Call this function instead of printing."),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="DESTINATION",
            help="Where changes go: - (the standard output, the default), a file,"
            " kafka://BROKER:PORT,BROKER:PORT/TOPIC or pubsub://PROJECT/TOPIC. {table} in TOPIC is"
            " the table's name, and what it is when left out.",
        ),
    ] = None,
    envelope: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT",
            help="The format of lines and messages: plain (the default), debezium, datastream, ydb,"
            " ydb-debezium. Their options are in the file, in [delivery.envelope_options].",
        ),
    ] = None,
    proto_descriptors: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Deliver PROTO columns as JSON and ENUM columns as names, by this"
            " FileDescriptorSet of protoc, instead of bytes and numbers.",
        ),
    ] = None,
    standby: Annotated[
        bool,
        typer.Option("--standby", help="Wait while another instance of this consumer is alive."),
    ] = False,
    parts: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="NUMBER",
            help="Share the consumer: divide the shards of each table into so many parts, which the"
            " instances with this --consumer divide among themselves.",
        ),
    ] = None,
    shard: ShardOption = None,
    shard_column: ShardColumnOption = None,
    shard_value: ShardValueOption = None,
    positions_table: PositionsTableOption = POSITIONS_TABLE,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log every window.")] = False,
) -> None:
    """Print the changes of tables as JSON lines.

    Runs until SIGTERM or Ctrl-C, and prints one line for each change. Each line has an id that is
    the same on every delivery, the table, the operation, the commit timestamp, the shard, the key,
    all values, and the window; with --envelope it is a record of another format. Polling sees
    inserts and updates, and soft deletes if they are configured. It does not see deleted rows: to
    see those, read a change stream with --stream.

    A second instance of the same consumer is refused while the first one is alive. With --standby
    it waits, and takes over when the first one dies. With --parts all instances deliver, each its
    share of the rows.

    \b
    Example:
      export D=spanner://projects/my-project/instances/my-instance/databases/my-database
      spanner-watcher watch -d $D -t Singers
    """
    flags = {
        "database": database,
        "tables": tuple(table) if table else None,
        "exclude": tuple(exclude) if exclude else None,
        "consumer": consumer,
        "start": start,
        "interval": interval,
        "max_rows": max_rows,
        "standby": standby or None,
        "parts": parts,
        "positions.table": positions_table if positions_table != POSITIONS_TABLE else None,
        "capture": "change-stream" if stream is not None else None,
        "stream.name": stream,
        "table.*.shard": shard,
        "table.*.shard_column": shard_column,
        "table.*.shard_values": shard_value,
        "delivery.callback": callback,
        "delivery.to": to,
        "delivery.envelope": envelope,
        "delivery.proto_descriptors": proto_descriptors,
    }
    actions.watch.watch(config, flags, once=once, verbose=verbose)
