"""Micro-batches read back from Spark's checkpoint and the log of its Parquet sink."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import unquote, urlparse

from watcher.model.window import Window

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def convert_to_micros(moment: datetime) -> int:
    """A time as microseconds since 1970, exactly."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def list_committed_batches(checkpoint: Path) -> list[int]:
    """The numbers of the micro-batches that a checkpoint holds as done, in order."""
    folder = checkpoint / "commits"
    return sorted(int(path.name) for path in folder.glob("[0-9]*")) if folder.is_dir() else []


def read_windows(checkpoint: Path, beginning: int) -> dict[int, Window]:
    """The window of each planned micro-batch; the first starts at ``beginning``."""
    numbers = sorted(int(path.name) for path in (checkpoint / "offsets").glob("[0-9]*"))
    result, start = {}, beginning
    for number in numbers:
        lines = (checkpoint / "offsets" / str(number)).read_text().splitlines()
        end = convert_to_micros(datetime.fromisoformat(json.loads(lines[-1])["position"]))
        result[number] = Window(start, end)
        start = end
    return result


def list_files(sink: Path, number: int) -> Iterator[Path]:
    """The Parquet files that the sink's log counts as a batch's (others are torn and not read)."""
    entry = sink / "_spark_metadata" / str(number)
    if not entry.exists():
        return
    for line in entry.read_text().splitlines()[1:]:
        yield Path(unquote(urlparse(json.loads(line)["path"]).path))
