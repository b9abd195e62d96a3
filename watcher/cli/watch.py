"""``spanner-watcher watch``: changes to the standard output, a file, a queue or a callback."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Annotated

import typer

from watcher.cli.logs import configure_logging
from watcher.cli.options import (
    POSITIONS_TABLE,
    AcceptFailedProbeOption,
    ColumnsOption,
    ConfigOption,
    CreateFoldersOption,
    ExcludeOption,
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
from watcher.cli.output import ERRORS
from watcher.model.errors import OutputClosedError
from watcher.model.log_events.running import PAGE_TOKEN_UNKNOWN
from watcher.model.outputs import list_formats, list_spellings
from watcher.process.terminal.console import explain_output
from watcher.process.terminal.loading import to_run

if to_run(__name__):
    from watcher.cli.callbacks import resolve_callback
    from watcher.cli.config import load_config, read_mask_key
    from watcher.envelopes.lines import JsonLines
    from watcher.model.window import BEGINNING
    from watcher.overview.page.service import hide_token
    from watcher.process.line_files import begin_line
    from watcher.process.spark.pandas_import import keep_pandas_out
    from watcher.runners.signals import stop_when_closed
    from watcher.runners.watcher import Watcher
    from watcher.runners.watcher_run.lifecycle import READER_GONE
    from watcher.runners.watcher_run.run import RunStart
    from watcher.settings.destination_grammar import StandardOutput
    from watcher.settings.watcher import WatchConfig
    from watcher.sinks.contract import ChangeSink
    from watcher.sinks.functions import CallbackEach
    from watcher.sinks.lines import Lines, RotatingFile
    from watcher.sinks.queues import open_queue
    from watcher.spanner.timestamps import format_timestamp

LOG = logging.getLogger("watcher.page")
TABLES_SHOWN_MAX = 8


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
    idle_interval: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="Pause longer and longer while nothing changes, up to this, such as 30s.",
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
            help="Where changes go: - (the standard output, the default), a file (a path with"
            f" / or ., or file:PATH), {list_spellings()}. {{table}} in TOPIC, NAME, SUBJECT or PATH"
            " is the table's name, and what it is when left out.",
        ),
    ] = None,
    envelope: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT",
            help=f"The format of lines and messages: {list_formats()}. Their options are in the"
            " file, in [delivery.envelope_options].",
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
    create_folders: CreateFoldersOption = False,
    standby: StandbyOption = False,
    parts: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="NUMBER",
            help="Share the consumer: divide the shards of each table into so many parts, which the"
            " instances with this --consumer divide among themselves.",
        ),
    ] = None,
    where: WhereOption = None,
    columns: ColumnsOption = None,
    mask: MaskOption = None,
    mask_key: MaskKeyOption = None,
    shard: ShardOption = None,
    shard_column: ShardColumnOption = None,
    shard_value: ShardValueOption = None,
    positions_table: PositionsTableOption = POSITIONS_TABLE,
    accept_failed_probe: AcceptFailedProbeOption = None,
    verbose: LogWindowsOption = False,
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
        "tables": table,
        "exclude": exclude,
        "consumer": consumer,
        "start": start,
        "interval": interval,
        "idle_interval": idle_interval,
        "max_rows": max_rows,
        "create_folders": create_folders,
        "standby": standby,
        "parts": parts,
        "positions.table": positions_table,
        "accept_failed_probes": accept_failed_probe,
        "stream.name": stream,
        "where": where,
        "columns": columns,
        "mask": mask,
        "mask_key": read_mask_key(mask_key) if mask_key is not None else None,
        "table.*.shard": shard,
        "table.*.shard_column": shard_column,
        "table.*.shard_values": shard_value,
        "delivery.callback": callback,
        "delivery.to": to,
        "delivery.envelope": envelope,
        "delivery.proto_descriptors": proto_descriptors,
    }
    settings = load_config(config, flags)
    configure_logging(settings.log_format, verbose)
    if settings.delivery.callback is None:
        keep_pandas_out()
    watcher = Watcher(settings)
    watcher.deliver_to(make_sink(settings))
    if ERRORS.is_terminal:
        watcher.on_start(lambda start: print_start(settings, start, once))
    else:
        watcher.on_start(log_hidden_token)
    if writes_lines(settings):
        begin_output()
        stop_when_closed(sys.stdout, lambda: watcher.stop(READER_GONE))
    if once:
        watcher.run_once()
    else:
        watcher.stop_on_signals()
        watcher.run()
    if watcher.stop_reason == READER_GONE:
        raise OutputClosedError


def begin_output() -> None:
    """Begins a line of the standard output, which may continue a file."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):
        return  # a program has put something else in its place
    with explain_output():
        begin_line(descriptor)


def writes_lines(config: WatchConfig) -> bool:
    """True when the changes are written to the standard output."""
    delivery = config.delivery
    return delivery.callback is None and isinstance(delivery.destination, StandardOutput)


def print_start(config: WatchConfig, start: RunStart, once: bool) -> None:
    """Says, beside the changes, what is watched, since when, as whom, and how to stop."""
    names = ", ".join(start.tables[:TABLES_SHOWN_MAX])
    more = len(start.tables) - TABLES_SHOWN_MAX
    tables = f"{names} and {more} more tables" if more > 0 else names
    stream = config.capture == "change-stream"
    by = "its change stream" if stream else f"polling every {config.interval:g} s"
    since = describe_position(start.since)
    whom = (
        f"as consumer '{start.consumer}': the position is saved"
        if config.consumer is not None
        else "without a consumer's name (--consumer): no position is saved"
    )
    ERRORS.print(f"watching {tables} of {config.address} by {by}")
    ERRORS.print(f"since {since}, {whom}")
    if start.page is not None:
        ERRORS.print(f"the page is at {start.page}")
    ERRORS.print("ends by itself (--once)" if once else "press Ctrl-C to stop")


def log_hidden_token(start: RunStart) -> None:
    """Logs what to do where nobody can know the token of the page."""
    _, advice = hide_token(start.page or "")
    if advice is not None:
        PAGE_TOKEN_UNKNOWN.log(LOG, advice=advice)


def describe_position(micros: int | None) -> str:
    """A position in words."""
    if micros is None:
        return "its position"
    return "the beginning of the index" if micros <= BEGINNING else format_timestamp(micros)


def make_sink(config: WatchConfig) -> ChangeSink:
    """What takes the changes: a callback, a queue, the standard output or a file. Raises
    UnavailableError when the queue does not answer."""
    delivery = config.delivery
    if delivery.callback is not None:
        return CallbackEach(resolve_callback(delivery.callback))
    if delivery.queue is not None:
        return open_queue(config)
    lines = JsonLines(config.message_format)
    if delivery.file is None:
        return Lines(sys.stdout, lines)
    return RotatingFile(delivery.file, delivery.rotate_bytes, lines)
