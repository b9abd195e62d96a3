"""Rows of several tables in their own columns, in one query: a row is an Arrow batch of one table.

A micro-batch has one row more, which says what its window is. ``watcher.replicate`` reads these.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from watcher.captures import COMMIT_TIMESTAMP_COLUMN, SHARD_ID_COLUMN, Changed, StreamRows
from watcher.captures.change_stream.rows import CHANGES
from watcher.captures.poll import PollCapture
from watcher.change import Operation
from watcher.envelopes.by_column.sent_objects import parse_objects
from watcher.errors import ConfigurationError
from watcher.replica.copies import DELETED_COLUMN
from watcher.replica.rows import copy_schema, find_deleted
from watcher.runners.spark.newest import SEQUENCE_COLUMN
from watcher.runners.spark.sent_columns import SentRows

TABLE_BATCHES = pa.schema(
    [
        ("table", pa.string()),
        ("row_count", pa.int64()),
        ("batch", pa.binary()),
        ("window", pa.string()),
    ]
)
"""``batch`` is an Arrow stream: rows as they were read, or of a change stream its changes as they
were sent. In the row of the window ``table`` and ``batch`` are NULL."""


@dataclass(frozen=True, slots=True)
class BatchWindow:
    """The window of a micro-batch: its ``end``, and where each table starts, in microseconds since
    1970."""

    end: int
    starts: Mapping[str, int]

    def to_row(self) -> pa.RecordBatch:
        """As a row of the micro-batch."""
        text = json.dumps({"end": self.end, "starts": dict(self.starts)})
        cells = (None, 0, None, text)
        values = [pa.array([each], f.type) for each, f in zip(cells, TABLE_BATCHES, strict=True)]
        return pa.RecordBatch.from_arrays(values, schema=TABLE_BATCHES)

    @classmethod
    def from_text(cls, text: str) -> BatchWindow:
        """From the column ``window``."""
        stored = json.loads(text)
        return cls(stored["end"], stored["starts"])


def encode_rows(rows: Changed) -> pa.RecordBatch:
    """Rows of a capture as rows of ``TABLE_BATCHES``, one a table."""
    if not isinstance(rows, StreamRows):
        batch = rows.batch.drop_columns([SHARD_ID_COLUMN])
        return make_rows([(rows.table.name, batch)])
    tables = rows.batch.column("table")
    return make_rows(
        [(name, rows.batch.filter(pc.equal(tables, name))) for name in tables.unique().to_pylist()]
    )


def make_rows(batches: list[tuple[str, pa.RecordBatch]]) -> pa.RecordBatch:
    """Batches of tables as rows."""
    arrays = [
        pa.array([name for name, _ in batches], pa.string()),
        pa.array([batch.num_rows for _, batch in batches], pa.int64()),
        pa.array([write_stream(batch) for _, batch in batches], pa.binary()),
        pa.nulls(len(batches), pa.string()),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=TABLE_BATCHES)


def write_stream(batch: pa.RecordBatch) -> bytes:
    """A batch as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    encoded: bytes = sink.getvalue().to_pybytes()
    return encoded


@dataclass(frozen=True)
class TableDecoder:
    """Rows of ``TABLE_BATCHES`` of one table -> rows as a copy has them, ``DELETED_COLUMN`` and the
    sequence of a change stream. Picklable: executors call it."""

    capture: PollCapture

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        more = [pa.field(DELETED_COLUMN, pa.bool_()), pa.field(SEQUENCE_COLUMN, pa.string())]
        return pa.schema([*copy_schema(self.capture), *more])

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of each. Raises ConfigurationError for changes that have not the whole row."""
        for rows in batches:
            for encoded in rows.column("batch"):
                with pa.ipc.open_stream(encoded.as_buffer()) as stream:
                    for batch in stream:
                        yield self._decode(batch)

    def _decode(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = self._decode_changes(batch) if batch.schema.equals(CHANGES) else self._read(batch)
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _read(self, batch: pa.RecordBatch) -> list[pa.Array]:
        columns = [batch.column(field.name) for field in copy_schema(self.capture)]
        deleted = find_deleted(batch, self.capture.table.deleted)
        return [*columns, deleted, pa.nulls(batch.num_rows, pa.string())]

    def _decode_changes(self, batch: pa.RecordBatch) -> list[pa.Array]:
        deleted = pc.equal(batch.column("operation"), Operation.DELETE.value)
        self._check_whole(batch, deleted)
        table = self.capture.table
        sent = SentRows(batch, table.columns, table.primary_key)
        columns = {
            name: sent.decode(name, type_, self.capture.nanoseconds, name in table.primary_key)
            for name, type_ in table.columns
        }
        columns[COMMIT_TIMESTAMP_COLUMN] = batch.column("commit_timestamp")
        schema = copy_schema(self.capture)
        ordered = [columns[field.name].cast(field.type) for field in schema]
        return [*ordered, deleted, batch.column("record_sequence")]

    def _check_whole(self, batch: pa.RecordBatch, deleted: pa.Array) -> None:
        """A column that a change leaves out would become NULL."""
        there = batch.filter(pc.invert(deleted))
        objects = zip(
            parse_objects(there.column("key")),
            parse_objects(there.column("new_values")),
            strict=True,
        )
        columns = {name for name, _ in self.capture.table.columns}
        missing = sorted(set().union(*(columns - key.keys() - new.keys() for key, new in objects)))
        if missing:
            raise ConfigurationError(
                f"a change of {self.capture.table.name} has no value of column {missing[0]}: set"
                " the option 'wholeRows' to 'true', or exclude the column"
            )
