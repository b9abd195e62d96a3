"""The sink of the queue that a watcher is configured to write to."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from watcher.model.errors import ConfigurationError
from watcher.settings.watcher import WatchConfig
from watcher.sinks.contract import ChangeSink


def open_queue(config: WatchConfig) -> ChangeSink:
    """The sink for ``delivery.to``, by ``open_sink`` of the module that has the name of its scheme.
    Raises UnavailableError when nobody answers there, and MissingExtraError when the client is not
    installed."""
    queue = config.delivery.queue
    if queue is None:
        raise ConfigurationError(f"delivery.to = '{config.delivery.to}' is not a queue")
    module = import_module(f"watcher.sinks.{queue.scheme}")
    return cast("ChangeSink", module.open_sink(config, queue))
