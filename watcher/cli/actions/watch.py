"""Delivers changes to the standard output, a file or a callback."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from watcher.cli.actions.callbacks import resolve_callback
from watcher.cli.actions.config import load_config
from watcher.cli.logs import configure_logging
from watcher.envelopes.lines import JsonLines
from watcher.runners.delivery.queues import open_queue
from watcher.runners.delivery.sinks import CallbackEach, ChangeSink, Lines, RotatingFile
from watcher.runners.watcher import Watcher
from watcher.settings.watcher import WatchConfig


def watch(path: Path | None, flags: Mapping[str, object], *, once: bool, verbose: bool) -> None:
    """Runs a watcher until a signal stops it, or ``once`` up to now."""
    config = load_config(path, flags)
    configure_logging(config.log_format, verbose)
    watcher = Watcher(config)
    watcher.deliver_to(make_sink(config))
    if once:
        watcher.run_once()
        return
    watcher.stop_on_signals()
    watcher.run()


def make_sink(config: WatchConfig) -> ChangeSink:
    """What takes the changes: a callback, a queue, the standard output or a file. Raises
    UnavailableError when the queue does not answer."""
    delivery = config.delivery
    if delivery.callback is not None:
        return CallbackEach(resolve_callback(delivery.callback))
    if delivery.queue is not None:
        return open_queue(config)
    if delivery.to == "-":
        return Lines(sys.stdout, JsonLines(config.format))
    return RotatingFile(Path(delivery.to), delivery.rotate_bytes, JsonLines(config.format))
