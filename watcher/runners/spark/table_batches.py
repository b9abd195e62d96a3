"""Rows of several tables in their own columns, in one query: a row is an Arrow batch of one table.

A micro-batch has one row more, which says what its window is. ``watcher.replicate`` reads these.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from watcher.captures import Changed, StreamRows
from watcher.captures.change_stream.rows import CHANGES
from watcher.captures.poll import PollCapture
from watcher.model.change import Operation, ValueCapture
from watcher.replica.copies import DELETED_COLUMN, STAMP_COLUMN
from watcher.replica.cuts.modes import HISTORY, LATEST, OPERATION, TRANSACTION, Mode
from watcher.replica.row_versions import KEY_ONLY
from watcher.replica.rows import arrange_rows, copy_schema, describe_columns, find_missing
from watcher.replica.spark.kept_rows import SEQUENCE_COLUMN
from watcher.runners.spark.sent_columns import SentRows

TABLE_BATCHES = pa.schema(
    [
        ("table", pa.string()),
        ("row_count", pa.int64()),
        ("batch", pa.binary()),
        ("columns", pa.string()),
        ("window", pa.string()),
    ]
)
"""``batch`` is an Arrow stream: rows as a copy has them, or of a change stream its changes as they
were sent, with what ``describe_columns`` says of those that have a row afterwards. In the row of
the window ``table`` and ``batch`` are NULL."""

DETAILS = (
    pa.field(KEY_ONLY, pa.bool_()),
    pa.field(OPERATION, pa.string()),
    pa.field(TRANSACTION, pa.string()),
)
PARTIAL = "[]"
"""The ``columns`` of changes that do not have every value."""


@dataclass(frozen=True, slots=True)
class BatchWindow:
    """The window of a micro-batch: its ``end``, and where each table starts, in microseconds since
    1970."""

    end: int
    starts: Mapping[str, int]

    def to_row(self) -> pa.RecordBatch:
        """As a row of the micro-batch."""
        text = json.dumps({"end": self.end, "starts": dict(self.starts)})
        cells = (None, 0, None, None, text)
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
        arranged = arrange_rows(rows, HISTORY)  # other copies leave out what only these need
        return make_rows([(rows.table.name, each, None) for each in arranged.to_batches()])
    described = describe_changes(rows)
    keys = pc.binary_join_element_wise(rows.batch.column("table"), described, "\n")
    batches = []
    for each in keys.unique():
        batch = rows.batch.filter(pc.equal(keys, each))
        name, _, columns = each.as_py().partition("\n")
        batches.append((name, batch, columns or None))
    return make_rows(batches)


def describe_changes(rows: StreamRows) -> pa.Array:
    """The ``columns`` of changes; empty for a delete."""
    texts = pa.array([json.dumps(describe_columns(shape)) for shape in rows.shapes], pa.string())
    described = texts.take(rows.batch.column("shape"))
    whole = [str(each) for each in ValueCapture if each.whole_row]
    partial = pc.invert(pc.is_in(rows.batch.column("captured"), value_set=pa.array(whole)))
    deleted = pc.equal(rows.batch.column("operation"), Operation.DELETE.value)
    return pc.if_else(deleted, "", pc.if_else(partial, PARTIAL, described))


def fit_copy(
    columns: Iterable[str | None], capture: PollCapture, added: frozenset[str] = frozenset()
) -> bool:
    """Whether a copy can take changes as they are: see ``watcher.replica.rows.find_lacking``.
    ``added``: columns that the table has got in the window."""
    lacking = [find_lacking(each, capture) for each in columns if each]
    return all(each is not None and each <= added for each in lacking)


def group_lacking(
    columns: Iterable[str | None], capture: PollCapture
) -> dict[frozenset[str], list[str]]:
    """Those of these columns of changes that lack some, by what they lack."""
    groups = defaultdict[frozenset[str], list[str]](list)
    for each in columns:
        if each and (lacking := find_lacking(each, capture)):
            groups[lacking].append(each)
    return groups


def find_lacking(columns: str, capture: PollCapture) -> frozenset[str] | None:
    """As ``find_missing``, of the ``columns`` of changes."""
    return find_missing(tuple(map(tuple, json.loads(columns))), capture.table.columns)


def make_rows(batches: list[tuple[str, pa.RecordBatch, str | None]]) -> pa.RecordBatch:
    """Batches of tables as rows."""
    arrays = [
        pa.array([name for name, _, _ in batches], pa.string()),
        pa.array([batch.num_rows for _, batch, _ in batches], pa.int64()),
        pa.array([write_stream(batch) for _, batch, _ in batches], pa.binary()),
        pa.array([columns for _, _, columns in batches], pa.string()),
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
    """Rows of ``TABLE_BATCHES`` of one table -> rows as a copy has them, ``DELETED_COLUMN``, the
    sequence of a change stream, and what else a copy of a mode needs to know. Picklable: executors
    call it."""

    capture: PollCapture
    mode: Mode = LATEST

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        more = [pa.field(DELETED_COLUMN, pa.bool_()), pa.field(SEQUENCE_COLUMN, pa.string())]
        return pa.schema([*copy_schema(self.capture), *more, *self._details])

    @property
    def _details(self) -> tuple[pa.Field, ...]:
        return () if self.mode == LATEST else DETAILS

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of each, which fit the copy."""
        for rows in batches:
            for encoded in rows.column("batch"):
                with pa.ipc.open_stream(encoded.as_buffer()) as stream:
                    for batch in stream:
                        yield self._decode(batch)

    def _decode(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = self._decode_changes(batch) if batch.schema.equals(CHANGES) else self._read(batch)
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _read(self, batch: pa.RecordBatch) -> list[pa.Array]:
        names = [*copy_schema(self.capture).names, DELETED_COLUMN]
        columns = [batch.column(name) for name in names]
        unknown = pa.nulls(batch.num_rows, pa.string())
        there = KEY_ONLY in batch.schema.names
        blank = batch.column(KEY_ONLY) if there else pa.repeat(False, batch.num_rows)
        return [*columns, unknown, *[blank, unknown, unknown][: len(self._details)]]

    def _decode_changes(self, batch: pa.RecordBatch) -> list[pa.Array]:
        deleted = pc.equal(batch.column("operation"), Operation.DELETE.value)
        table = self.capture.table
        sent = SentRows(batch, table.columns, table.primary_key)
        columns = {
            name: sent.decode(name, type_, self.capture.nanoseconds, name in table.primary_key)
            for name, type_ in table.columns
        }
        columns[STAMP_COLUMN] = batch.column("commit_timestamp")
        schema = copy_schema(self.capture)
        ordered = [columns[field.name].cast(field.type) for field in schema]
        details = [deleted, batch.column("operation"), batch.column("transaction_id")]
        shown = details[: len(self._details)]
        return [*ordered, deleted, batch.column("record_sequence"), *shown]
