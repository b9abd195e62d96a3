"""Hands changes to a sink batch by batch, encoded by column, where it takes lines or messages.

A batch with a change that the envelope refuses goes to the sink change by change: that change is
skipped, or ends the run, as configured. So does a small one, which costs less that way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple, Protocol, runtime_checkable

import pyarrow as pa

from watcher.captures import Changed, StreamRows, TableRows
from watcher.captures.changes import iterate_changes
from watcher.envelopes.batches import CHANGE_ID_COLUMN, try_by_column
from watcher.envelopes.lines import JsonLines
from watcher.envelopes.message import Envelope, Headers, Message, id_header
from watcher.model.change import Change
from watcher.sinks.contract import ChangeSink, EachChange
from watcher.sinks.retries import RetryingSink

ROWS_BY_COLUMN = 256
"""A smaller batch is written change by change: encoding by column costs some milliseconds, whatever
the number of rows."""


@runtime_checkable
class LineSink(ChangeSink, Protocol):
    """A ``ChangeSink`` that writes the lines of an envelope, also those of many changes at once."""

    @property
    def lines(self) -> JsonLines:
        """How a change is written."""
        ...

    def append(self, text: bytes) -> None:
        """Takes lines, each with its newline. Raises as ``write_change``."""
        ...


class EachBatch(EachChange):
    """An ``EachChange`` that hands a batch over at once where it can."""

    def write(self, rows: Changed) -> None:
        """As ``Sink.write``."""
        if rows.batch.num_rows < ROWS_BY_COLUMN or not self._write_batch(rows):
            super().write(rows)

    def _write_batch(self, rows: Changed) -> bool:
        """Hands a batch over; False, and nothing done, for one that is not encoded by column."""
        raise NotImplementedError


class EachLine(EachBatch):
    """An ``EachBatch`` whose sink gets the lines of a batch."""

    def __init__(self, retrying: RetryingSink, line_sink: LineSink, database: str) -> None:
        """``retrying`` takes single changes for ``line_sink``."""
        super().__init__(retrying, database)
        self._line_sink = line_sink

    def _write_batch(self, rows: Changed) -> bool:
        text = self._line_sink.lines.encode_rows(rows, self._database)
        if text is not None:
            self._line_sink.append(text)
        return text is not None


@runtime_checkable
class FileSink(ChangeSink, Protocol):
    """A ``ChangeSink`` of lines that has to know of which tables and times they are."""

    @property
    def lines(self) -> JsonLines:
        """How a change is written."""
        ...

    def begin_batch(self, backfill: bool) -> None:
        """What comes next are changes of a backfill, or are not: a row of it that is softly deleted
        is a DELETE as any other."""
        ...

    def write_messages(self, messages: pa.RecordBatch) -> None:
        """Takes the messages of a batch."""
        ...


class EachFile(EachBatch):
    """An ``EachBatch`` whose sink gets the messages of a batch."""

    def __init__(self, retrying: RetryingSink, file_sink: FileSink, database: str) -> None:
        """``retrying`` takes single changes for ``file_sink``."""
        super().__init__(retrying, database)
        self._file_sink = file_sink

    def write(self, rows: Changed) -> None:
        """As ``Sink.write``."""
        self._file_sink.begin_batch(isinstance(rows, TableRows) and rows.backfill)
        super().write(rows)

    def _write_batch(self, rows: Changed) -> bool:
        messages = try_by_column(rows, self._database, self._file_sink.lines.envelope)
        if messages is not None:
            self._file_sink.write_messages(messages)
        return messages is not None


class Taken(Protocol):
    """A change that a queue has taken; it holds as little as it can until the queue has it."""

    def decode(self) -> Change:
        """The change, for who has to name or skip it."""
        ...


class Whole(NamedTuple):
    """A ``Taken`` that was decoded before."""

    change: Change

    def decode(self) -> Change:
        """As ``Taken.decode``."""
        return self.change


class Row(NamedTuple):
    """A ``Taken`` that is a row of a batch."""

    rows: Changed
    row: int
    database: str

    def decode(self) -> Change:
        """As ``Taken.decode``."""
        alone = replace(self.rows, batch=self.rows.batch.slice(self.row, 1))
        (change,) = iterate_changes(alone, self.database)
        return change


class Encoded(NamedTuple):
    """A change of a table with its messages."""

    id: str
    table: str
    messages: tuple[Message, ...]
    taken: Taken


@runtime_checkable
class MessageSink(ChangeSink, Protocol):
    """A ``ChangeSink`` that writes the messages of an envelope, whoever has encoded them."""

    @property
    def envelope(self) -> Envelope:
        """How a change is encoded."""
        ...

    def write_encoded(self, encoded: Encoded) -> None:
        """As ``write_change``, of a change that is encoded."""
        ...


class EachMessage(EachBatch):
    """An ``EachBatch`` that encodes a batch at once and hands it over message by message."""

    def __init__(self, retrying: RetryingSink, sink: MessageSink, database: str) -> None:
        """``retrying`` delivers to ``sink``."""
        super().__init__(retrying, database)
        self._retrying = retrying
        self._message_sink = sink

    def _write_batch(self, rows: Changed) -> bool:
        envelope = self._message_sink.envelope
        messages = try_by_column(rows, self._database, envelope)
        if messages is None:
            return False
        for each in list_encoded(rows, self._database, messages, envelope.headers):
            write = partial(self._message_sink.write_encoded, each)
            self._retrying.deliver(each.id, each.taken.decode, write)
        return True


@runtime_checkable
class TableBatchSink(ChangeSink, Protocol):
    """A ``ChangeSink`` that writes rows as columns, as they were captured."""

    def write_rows(self, rows: TableRows) -> bool:
        """Takes the rows of a batch; False, and nothing done, where it refuses one of them."""
        ...


class EachTable(EachChange):
    """An ``EachChange`` that hands rows over as columns."""

    def __init__(self, retrying: RetryingSink, sink: TableBatchSink, database: str) -> None:
        """``retrying`` takes single changes for ``sink``."""
        super().__init__(retrying, database)
        self._table_sink = sink

    def write(self, rows: Changed) -> None:
        """As ``Sink.write``."""
        if isinstance(rows, StreamRows) or not self._table_sink.write_rows(rows):
            super().write(rows)


def list_encoded(
    rows: Changed, database: str, messages: pa.RecordBatch, others: Headers = ()
) -> Iterator[Encoded]:
    """Each change of a batch with its messages: a tombstone belongs to the message before it.
    ``others`` are the headers of the envelope."""
    names = ("table", "key", "value", CHANGE_ID_COLUMN)
    tables, keys, values, ids = (messages.column(name).to_pylist() for name in names)
    index, count = 0, len(ids)
    for at in range(count):
        if values[at] is None:
            continue
        headers = id_header(ids[at], others)
        message = Message(keys[at], values[at], headers)
        both: tuple[Message, ...] = (message,)
        if at + 1 < count and values[at + 1] is None:
            both = (message, Message(keys[at], None, headers))
        yield Encoded(ids[at], tables[at], both, Row(rows, index, database))
        index += 1


def choose_each(retrying: RetryingSink, sink: ChangeSink, database: str) -> EachChange:
    """The ``Sink`` that hands what changed to ``sink``, for which ``retrying`` takes changes."""
    if isinstance(sink, LineSink):
        return EachLine(retrying, sink, database)
    if isinstance(sink, FileSink):
        return EachFile(retrying, sink, database)
    if isinstance(sink, MessageSink):
        return EachMessage(retrying, sink, database)
    if isinstance(sink, TableBatchSink):
        return EachTable(retrying, sink, database)
    return EachChange(retrying, database)
