"""What arrived: micro-batches read back from Spark's checkpoint, the sink's log and its files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC
from pathlib import Path

import pyarrow.parquet as pq

from watcher.captures import COMMIT_TIMESTAMP_COLUMN
from watcher.cli.demo.settings import DemoSettings
from watcher.cli.demo.verification import MicroBatch, Version
from watcher.cli.demo.writer import COLUMNS
from watcher.runners.spark.checkpoints import (
    convert_to_micros,
    list_committed_batches,
    list_files,
    read_windows,
)


def read_versions(path: Path) -> Iterator[Version]:
    """The rows of a Parquet file, whole."""
    table = pq.read_table(path, partitioning=None)
    timestamps = table.column(COMMIT_TIMESTAMP_COLUMN).to_pylist()
    rows = zip(*(table.column(name).to_pylist() for name in COLUMNS), strict=True)
    for timestamp, row in zip(timestamps, rows, strict=True):
        moment = timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=UTC)
        yield Version(row[0], convert_to_micros(moment), row[2], row)


def read_micro_batches(settings: DemoSettings, beginning: int) -> Sequence[MicroBatch]:
    """Everything that was delivered, batch by batch."""
    planned = read_windows(settings.checkpoint, beginning)
    return [
        MicroBatch(
            number=number,
            window=planned[number],
            committed_at=(settings.checkpoint / "commits" / str(number)).stat().st_mtime,
            versions=[v for path in list_files(settings.sink, number) for v in read_versions(path)],
        )
        for number in list_committed_batches(settings.checkpoint)
    ]


def read_ground_truth(settings: DemoSettings) -> list[Version]:
    """What the writer wrote and saw acknowledged."""
    result = []
    for line in settings.writer_log.read_text().splitlines():
        commit = json.loads(line)
        pairs = zip(commit["keys"], commit["versions"], strict=True)
        result += [Version(key, commit["timestamp"], name) for key, name in pairs]
    return result
