"""Delivers changes to the standard output, a file or a callback."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from pathlib import Path

from watcher.cli.actions.callbacks import resolve_callback
from watcher.cli.actions.config import load_config
from watcher.cli.logs import configure_logging
from watcher.cli.output import ERRORS
from watcher.envelopes.lines import JsonLines
from watcher.errors import OutputClosedError
from watcher.line_files import begin_line
from watcher.page.service import hide_token
from watcher.pandas_import import keep_pandas_out
from watcher.runners.delivery.queues import open_queue
from watcher.runners.delivery.sinks import CallbackEach, ChangeSink, Lines, RotatingFile
from watcher.runners.signals import stop_when_closed
from watcher.runners.watcher import Watcher
from watcher.runners.watcher_run.lifecycle import READER_GONE
from watcher.runners.watcher_run.run import RunStart
from watcher.settings.watcher import WatchConfig
from watcher.spanner.timestamps import format_timestamp
from watcher.terminal.console import explain_output
from watcher.window import BEGINNING

LOG = logging.getLogger("watcher.page")
TABLES_SHOWN_MAX = 8


def watch(path: Path | None, flags: Mapping[str, object], *, once: bool, verbose: bool) -> None:
    """Runs a watcher until a signal stops it, or ``once`` up to now."""
    config = load_config(path, flags)
    configure_logging(config.log_format, verbose)
    if config.delivery.callback is None:
        keep_pandas_out()
    watcher = Watcher(config)
    watcher.deliver_to(make_sink(config))
    if ERRORS.is_terminal:
        watcher.on_start(lambda start: print_start(config, start, once))
    else:
        watcher.on_start(log_hidden_token)
    if writes_lines(config):
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
    return config.delivery.callback is None and config.delivery.to == "-"


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
        LOG.warning("%s", advice)


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
    if delivery.to == "-":
        return Lines(sys.stdout, JsonLines(config.message_format))
    return RotatingFile(Path(delivery.to), delivery.rotate_bytes, JsonLines(config.message_format))
