"""What arrived: micro-batches read back from Spark's checkpoint, the sink's log and its files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow.parquet as pq

from benchmarks.demo.settings import Settings
from benchmarks.demo.verification import MicroBatch, Version
from benchmarks.demo.writer import COLUMNS
from watcher.captures import COMMIT_TIMESTAMP_COLUMN
from watcher.window import Window

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros(moment: datetime) -> int:
    """A time as microseconds since 1970, exactly."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def committed_batches(settings: Settings) -> list[int]:
    """The numbers of the micro-batches that Spark's checkpoint holds as done, in order."""
    folder = settings.checkpoint / "commits"
    return sorted(int(path.name) for path in folder.glob("[0-9]*")) if folder.is_dir() else []


def windows(settings: Settings, beginning: int) -> dict[int, Window]:
    """The window of each planned micro-batch; the first starts at ``beginning``."""
    numbers = sorted(int(path.name) for path in (settings.checkpoint / "offsets").glob("[0-9]*"))
    result, start = {}, beginning
    for number in numbers:
        lines = (settings.checkpoint / "offsets" / str(number)).read_text().splitlines()
        end = micros(datetime.fromisoformat(json.loads(lines[-1])["position"]))
        result[number] = Window(start, end)
        start = end
    return result


def files(settings: Settings, number: int) -> Iterator[Path]:
    """The Parquet files that the sink's log counts as a batch's (others are torn and not read)."""
    entry = settings.sink / "_spark_metadata" / str(number)
    if not entry.exists():
        return
    for line in entry.read_text().splitlines()[1:]:
        yield Path(unquote(urlparse(json.loads(line)["path"]).path))


def versions(path: Path) -> Iterator[Version]:
    """The rows of a Parquet file, whole."""
    table = pq.read_table(path, partitioning=None)
    timestamps = table.column(COMMIT_TIMESTAMP_COLUMN).to_pylist()
    rows = zip(*(table.column(name).to_pylist() for name in COLUMNS), strict=True)
    for timestamp, row in zip(timestamps, rows, strict=True):
        moment = timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=UTC)
        yield Version(row[0], micros(moment), row[2], row)


def micro_batches(settings: Settings, beginning: int) -> Sequence[MicroBatch]:
    """Everything that was delivered, batch by batch."""
    planned = windows(settings, beginning)
    return [
        MicroBatch(
            number=number,
            window=planned[number],
            committed_at=(settings.checkpoint / "commits" / str(number)).stat().st_mtime,
            versions=[v for path in files(settings, number) for v in versions(path)],
        )
        for number in committed_batches(settings)
    ]


def ground_truth(settings: Settings) -> list[Version]:
    """What the writer wrote and saw acknowledged."""
    result = []
    for line in settings.writer_log.read_text().splitlines():
        commit = json.loads(line)
        pairs = zip(commit["keys"], commit["versions"], strict=True)
        result += [Version(key, commit["timestamp"], name) for key, name in pairs]
    return result
