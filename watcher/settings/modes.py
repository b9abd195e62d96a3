"""Which modes of the product settings choose: what a run relies on follows from them."""

from __future__ import annotations

from watcher.model.assumptions.entry import Mode
from watcher.settings.fields import EARLIEST
from watcher.settings.spark import SourceOptions
from watcher.settings.watcher import WatchConfig


def list_watch_modes(config: WatchConfig) -> frozenset[Mode]:
    """The modes of a watcher or a replica."""
    streamed = config.capture == "change-stream"
    chosen = {
        Mode.POLL: not streamed,
        Mode.STREAM: streamed,
        Mode.PUSH: streamed and config.stream.push,
        Mode.WHOLE_ROWS: streamed and config.stream.whole_rows,
        Mode.CLEAR: config.clearing is not None,
        Mode.CONSUMER: config.consumer is not None and config.positions.keep == "spanner",
        Mode.SNAPSHOT: bool(config.backfill) or config.replica is not None,
    }
    return frozenset(mode for mode, given in chosen.items() if given)


def list_scan_modes(options: SourceOptions) -> frozenset[Mode]:
    """The modes of a query of Spark, which does not say whether it is a stream or a batch: without
    timestamps it may read whole tables."""
    chosen = {
        Mode.POLL: not options.streamed,
        Mode.STREAM: options.streamed,
        Mode.WHOLE_ROWS: options.streamed and options.whole_rows,
        Mode.CONSUMER: options.consumer is not None,
        Mode.SNAPSHOT: options.starting_timestamp == EARLIEST or not options.reads_changes,
    }
    return frozenset(mode for mode, given in chosen.items() if given)
