"""Where the scheduled poller puts changes: JSON lines, or a function."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Protocol, TextIO

import pyarrow as pa

from watcher.captures import COMMIT_TIMESTAMP_COLUMN, SHARD_ID_COLUMN
from watcher.stream import micros_of, timestamp_text
from watcher.table import WatchedTable
from watcher.window import Window


class Sink(Protocol):
    """Takes batches. What was written must be safe when ``flush`` returns."""

    def write(self, batch: pa.RecordBatch, table: WatchedTable, window: Window) -> None:
        """Takes the rows of a batch."""
        ...

    def flush(self) -> None:
        """Returns when everything that was taken is delivered."""
        ...


class CallbackSink:
    """Calls a function with each Arrow batch; it is delivered when the function returns."""

    def __init__(self, callback: Callable[[pa.RecordBatch, WatchedTable, Window], None]) -> None:
        self._callback = callback

    def write(self, batch: pa.RecordBatch, table: WatchedTable, window: Window) -> None:
        """As ``Sink.write``."""
        self._callback(batch, table, window)

    def flush(self) -> None:
        """Nothing is held."""


class JsonLines:
    """Writes a JSON object a change."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, batch: pa.RecordBatch, table: WatchedTable, window: Window) -> None:
        """As ``Sink.write``."""
        for change in changes(batch, table, window):
            self._file.write(json.dumps(change, ensure_ascii=False) + "\n")

    def flush(self) -> None:
        """As ``Sink.flush``."""
        self._file.flush()


def changes(
    batch: pa.RecordBatch, table: WatchedTable, window: Window
) -> Iterator[dict[str, object]]:
    """The rows of a batch as JSON objects.

    ``id`` is the same on every delivery of the same version of the same row.
    """
    for row in batch.to_pylist():
        commit = row.pop(COMMIT_TIMESTAMP_COLUMN)
        shard = row.pop(SHARD_ID_COLUMN)
        values = {name: plain(value) for name, value in row.items()}
        key = {name: values[name] for name in table.primary_key}
        timestamp = timestamp_text(micros_of(commit))
        yield {
            "id": change_id(table.name, key, timestamp),
            "table": table.name,
            "commit_timestamp": timestamp,
            "shard": shard,
            "key": key,
            "values": values,
            "window": {"start": timestamp_text(window.start), "end": timestamp_text(window.end)},
        }


def change_id(table: str, key: dict[str, object], timestamp: str) -> str:
    """A digest of table, key and commit timestamp."""
    text = json.dumps([table, list(key.values()), timestamp], ensure_ascii=False)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def plain(value: object) -> object:
    """A value as JSON: TIMESTAMP as RFC 3339, BYTES as base64, NUMERIC as a string."""
    if isinstance(value, datetime):
        return timestamp_text(micros_of(value))
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value
