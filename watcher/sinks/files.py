"""The sink of files by table and time, as lines or columns."""

from __future__ import annotations

from watcher.settings.destinations import FilesDestination
from watcher.settings.watcher import WatchConfig
from watcher.sinks.line_files import LineFiles
from watcher.sinks.parquet_files import ParquetFiles


def open_sink(config: WatchConfig, destination: FilesDestination) -> LineFiles | ParquetFiles:
    """As ``queues.open_queue``. Raises as ``TimedFiles.refuse_others``. Nothing is written before
    the watcher has its lease."""
    kind = ParquetFiles if config.delivery.files.takes_columns else LineFiles
    sink = kind(destination, config)
    sink.refuse_others()
    return sink
