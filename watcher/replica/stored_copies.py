"""The copies of each format, read without Spark."""

from __future__ import annotations

from importlib import import_module

from watcher.model.errors import ConfigurationError
from watcher.process.extras import require_extras
from watcher.replica.copies import OpenCopy
from watcher.replica.cuts import DELTA, ICEBERG, PARQUET

READERS = {
    DELTA: (("delta",), "watcher.replica.delta", "open_delta_copies"),
    ICEBERG: (("iceberg",), "watcher.replica.iceberg", "open_iceberg_copies"),
    PARQUET: ((), "watcher.replica.parquet", "open_parquet_copies"),
}
"""The extras of each format, and what opens its copies, which is loaded when it is used."""


def open_copies(format_: str, folder: str, consumer: str) -> OpenCopy:
    """The copies of a replica, to read them. Raises ConfigurationError for an unknown format, or
    where what reads it is not installed."""
    if format_ not in READERS:
        raise ConfigurationError(f"invalid format '{format_}': use {' or '.join(READERS)}")
    extras, module, name = READERS[format_]
    require_extras(*extras)
    opened: OpenCopy = getattr(import_module(module), name)(folder, consumer)
    return opened
