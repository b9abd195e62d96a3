"""What arrived: micro-batches read back from Spark's checkpoint, the sink's log and its files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC

import pyarrow.parquet as pq

from conformance.demo.settings import TABLE, DemoSettings
from conformance.demo.verification import MicroBatch, Values
from conformance.demo.writer import COLUMNS
from conformance.judges.polled_windows import Line
from conformance.truth import Commit, Truth, Write
from watcher.captures import COMMIT_TIMESTAMP_COLUMN
from watcher.model.window import Window
from watcher.runners.spark.checkpoints import (
    convert_to_micros,
    list_committed_batches,
    list_files,
    read_windows,
)


def read_micro_batches(settings: DemoSettings, beginning: int) -> list[MicroBatch]:
    """Everything that was delivered, batch by batch."""
    planned = read_windows(settings.checkpoint, beginning)
    return [
        read_micro_batch(settings, number, planned[number])
        for number in list_committed_batches(settings.checkpoint)
    ]


def read_micro_batch(settings: DemoSettings, number: int, window: Window) -> MicroBatch:
    """The Parquet files of a batch."""
    lines: list[Line] = []
    values: list[Values] = []
    for path in list_files(settings.sink, number):
        table = pq.read_table(path, partitioning=None)
        timestamps = table.column(COMMIT_TIMESTAMP_COLUMN).to_pylist()
        rows = [*zip(*(table.column(name).to_pylist() for name in COLUMNS), strict=True)]
        for timestamp, row in zip(timestamps, rows, strict=True):
            at = convert_to_micros(timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=UTC))
            lines.append(
                Line(f"{row[0]} {at}", TABLE, row[:1], at, row[2], window.start, window.end)
            )
        values += rows
    committed = (settings.checkpoint / "commits" / str(number)).stat().st_mtime
    return MicroBatch(window.start, window.end, committed, tuple(lines), values)


def read_ground_truth(settings: DemoSettings) -> Truth:
    """What the writer wrote and saw acknowledged."""
    commits = map(json.loads, settings.writer_log.read_text().splitlines())
    return Truth([read_commit(**commit) for commit in commits])


def read_commit(timestamp: int, keys: Sequence[int], versions: Sequence[str]) -> Commit:
    """A line of the writer's log."""
    pairs = zip(keys, versions, strict=True)
    return Commit(timestamp, tuple(Write((TABLE, (key,)), name) for key, name in pairs))
