"""``spanner-watcher watch``: changes as JSON lines, from the scheduled poller."""

from __future__ import annotations

import sys
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated

import typer

from watcher.cli.common import PositionsOption
from watcher.cli.logs import log_as
from watcher.consumers.positions import TABLE
from watcher.envelopes.lines import JsonLines
from watcher.errors import ConfigurationError
from watcher.runners.sinks import CallbackEach, ChangeSink, Lines, OnChange, RotatingFile
from watcher.runners.watcher import Watcher
from watcher.settings.watcher import WatchConfig, read_toml, watch_config


def command(
    database: Annotated[
        str | None,
        typer.Option(
            "--database",
            "-d",
            metavar="ADDRESS",
            help="spanner://projects/PROJECT/instances/INSTANCE/databases/DATABASE"
            " (set SPANNER_EMULATOR_HOST for an emulator)",
        ),
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option("--table", "-t", help="A table or a glob such as 'Sing*'; may be repeated."),
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option(help="A table or a glob to leave out; may be repeated.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", help="A TOML file with everything; flags go before it."),
    ] = None,
    consumer: Annotated[
        str | None,
        typer.Option(
            help="Remember the position under this name, so that the next start goes on from there"
            " and clearing waits for it. Without a name nothing is remembered.",
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Where a consumer without a position starts: latest (the default), earliest"
            " (everything still in the index), or a timestamp such as 2026-01-31T12:00:00Z.",
        ),
    ] = None,
    stream: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Read this change stream instead of polling: deletes, old values and every"
            " version, too.",
        ),
    ] = None,
    interval: Annotated[
        str | None, typer.Option(help="Pause between polls, such as 500ms or 1s (the default).")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Deliver what is there, then stop.")] = False,
    max_rows: Annotated[
        int | None,
        typer.Option(min=1, help="Cut a window that holds more rows than this (100,000)."),
    ] = None,
    callback: Annotated[
        str | None,
        typer.Option(metavar="MODULE:FUNCTION", help="Call this instead of printing."),
    ] = None,
    envelope: Annotated[
        str | None,
        typer.Option(
            help="The format of the lines: plain (the default), debezium, datastream, ydb,"
            " ydb-debezium; their options stand in the file, in [delivery.envelope_options].",
        ),
    ] = None,
    standby: Annotated[
        bool,
        typer.Option("--standby", help="Wait while another instance of this consumer lives."),
    ] = False,
    positions_table: PositionsOption = TABLE,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log every window.")] = False,
) -> None:
    """Print the changes of tables as JSON lines, one a change, until SIGTERM or Ctrl-C.

    Each line has an id that is the same on every delivery, the table, the operation, the commit
    timestamp, the shard, the key, all values, and the window; with --envelope it is a record of
    another format. Polling sees inserts and updates, and soft deletes where they are configured; it
    cannot see rows that are really deleted: for those read a change stream, with --stream.

    A second instance under the same consumer name is refused while the first one lives; with
    --standby it waits, and takes over when the first one dies.

    Example: spanner-watcher watch -d spanner://projects/p/instances/i/databases/d -t Singers
    """
    given = read_toml(config) if config is not None else {}
    flags = {
        "database": database,
        "tables": tuple(table) if table else None,
        "exclude": tuple(exclude) if exclude else None,
        "consumer": consumer,
        "start": start,
        "interval": interval,
        "max_rows": max_rows,
        "standby": standby or None,
    }
    given |= {name: value for name, value in flags.items() if value is not None}
    if positions_table != TABLE:
        given["positions"] = {**section(given, "positions"), "table": positions_table}
    if stream is not None:
        given["capture"] = "change-stream"
        given["stream"] = {**section(given, "stream"), "name": stream}
    delivery = {"callback": callback, "envelope": envelope}
    if wished := {name: value for name, value in delivery.items() if value is not None}:
        given["delivery"] = {**section(given, "delivery"), **wished}
    wanted = watch_config(given)
    log_as(wanted.log_format, verbose)
    watcher = Watcher(wanted)
    watcher.deliver_to(sink_of(wanted))
    if once:
        watcher.run_once()
        return
    watcher.stop_on_signals()
    watcher.run()


def section(given: dict[str, object], name: str) -> dict[str, object]:
    """A table of the file, which may be missing. Raises ConfigurationError when it is none."""
    found = given.get(name, {})
    if not isinstance(found, dict):
        raise ConfigurationError(f"'{name}' must be a section: write [{name}]")
    return found


def sink_of(config: WatchConfig) -> ChangeSink:
    """Where changes go."""
    delivery = config.delivery
    if delivery.callback is not None:
        return CallbackEach(resolve_callback(delivery.callback))
    if delivery.to == "-":
        return Lines(sys.stdout, JsonLines(config.format))
    return RotatingFile(Path(delivery.to), delivery.rotate_bytes, JsonLines(config.format))


def resolve_callback(name: str) -> OnChange:
    """The function ``module:function``. Raises ConfigurationError."""
    sys.path.insert(0, "")
    try:
        callback: OnChange = resolve_name(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(
            f"'{name}' is no function that can be imported ({error}); write MODULE:FUNCTION"
        ) from error
    if not callable(callback):
        raise ConfigurationError(f"'{name}' is no function")
    return callback
