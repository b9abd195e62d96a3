"""A change as an event of Google's Datastream, in JSON or Avro."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from functools import lru_cache
from typing import ClassVar, Literal
from uuid import UUID, uuid5

import numpy as np
import pyarrow as pa

from spanner_schema.model.names import split_name
from watcher.envelopes.avro import (
    convert_row,
    event_schema,
    load_fastavro,
    parse_event_schema,
    write_container,
    write_datum,
)
from watcher.envelopes.change_stream import type_json
from watcher.envelopes.kinds import (
    Kind,
    find_kind,
    last_row,
    refuse_part,
)
from watcher.envelopes.leaves import (
    COMMIT_MILLISECONDS,
    COMMIT_MS,
    COMMIT_US,
    MOD_NUMBER,
    RECORD_SEQUENCE,
    TRANSACTION_ID,
    WINDOW_END_MILLISECONDS,
    WINDOW_END_MS,
    Cells,
    Field,
    describe_key,
    read_row,
)
from watcher.envelopes.message import (
    Json,
    Known,
    Message,
    RecordLayout,
    id_header,
    json_text,
)
from watcher.envelopes.record_schemas import RecordSchema, RecordSchemas
from watcher.envelopes.templates import Described, DescribedEnvelope, JsonEnvelope, Template, Tree
from watcher.envelopes.values import CellStyle, JsonColumns, quote
from watcher.model.change import Change, Shape
from watcher.model.errors import ConfigurationError
from watcher.spanner.json_columns.objects import NULL
from watcher.spanner.json_columns.scalars import wrap

EVENT_NAME = "datastream.spanner.event"
"""The full name of the record of ``datastream.avsc``."""
NAMESPACE = UUID("6f1d2f2e-6a3b-5c0e-9a53-0d7c9b1d4c11")
"""Of the uuids of events: uuid5 of a database and a change's id."""
UUID_BYTES = 16
UUID_TEXT = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
SORT_KEYS = (COMMIT_US, TRANSACTION_ID, RECORD_SEQUENCE, MOD_NUMBER)
POLLED_SORT_KEYS = (COMMIT_US, '""', '""', "0")
"""Commit timestamp (microseconds), transaction, sequence in it, number in the record: sorting
by them puts events in the order in which they happened. Polling knows only the first."""


class Datastream(JsonEnvelope):
    """``stream_name`` is that of the event; by default, the path of the database.

    ``partial``: changes with only some columns are refused, or their other columns are left out.
    ``json_columns``: JSON columns are JSON, or text.
    """

    layout: ClassVar[RecordLayout | None] = RecordLayout(
        ("object",),
        (
            (("sort_keys", 0), "long"),
            (("sort_keys", 1), "string"),
            (("sort_keys", 2), "string"),
            (("sort_keys", 3), "long"),
        ),
        key=("payload",),
        key_columns=("source_metadata", "primary_keys"),
    )

    stream_name: str | None = None
    partial: Literal["refuse", "omit"] = "refuse"
    json_columns: JsonColumns = "nested"

    @property
    def style(self) -> CellStyle:
        """As ``DescribedEnvelope.style``."""
        return CellStyle(int64_as_text=True, json_nested=self.json_columns == "nested")

    def check(self, known: Known) -> None:
        """As ``Envelope.check``."""
        if self.partial == "refuse":
            check_whole_rows(known, ", or partial = 'omit'")

    def describe(self, kind: Kind, database: str, shape: Shape) -> Described:
        """As ``DescribedEnvelope.describe``."""
        if self.partial == "refuse":
            refuse_partial(kind)
        event = describe_event(kind, database, shape, self.stream_name)
        event["read_timestamp"] = WINDOW_END_MILLISECONDS
        event["source_timestamp"] = COMMIT_MILLISECONDS
        event["payload"] = Cells(shape, last_row(kind), self.style)
        return Described(describe_key(shape, self.style, as_array=True), event)


class DatastreamAvro(DescribedEnvelope):
    """As ``Datastream``, the value as a single Avro datum without its schema, as queues take it.

    ``avro.event_schema`` is the schema of a table's events; ``container`` writes Avro files, which
    hold it.
    """

    binary: ClassVar[bool] = True
    layout: ClassVar[RecordLayout | None] = None

    stream_name: str | None = None

    def check(self, known: Known) -> None:
        """As ``Envelope.check``: Avro has no way to leave a column out. Raises
        MissingExtraError."""
        load_fastavro()
        check_whole_rows(known, "")

    @property
    def style(self) -> CellStyle:
        """As ``DescribedEnvelope.style``: of the key."""
        return CellStyle(int64_as_text=True, json_nested=True)

    def describe(self, kind: Kind, database: str, shape: Shape) -> Described:
        """As ``DescribedEnvelope.describe``: the key, and the event in JSON without its payload."""
        refuse_partial(kind)
        event = describe_event(kind, database, shape, self.stream_name)
        return Described(describe_key(shape, self.style, as_array=True), event)

    def encode(self, change: Change) -> tuple[Message, ...]:
        """As ``Envelope.encode``."""
        compiled = self.compile_for(change)
        value = write_datum(parse_event_schema(change.shape), fill_event(compiled.value, change))
        return (Message(compiled.key.write(change).encode(), value, id_header(change.id)),)

    def describe_schemas(self, database: str, shape: Shape) -> RecordSchemas:  # noqa: ARG002
        """As ``SchemaEnvelope.describe_schemas``: keys are JSON."""
        return RecordSchemas(None, RecordSchema("AVRO", EVENT_NAME, event_schema(shape)))

    def event(self, change: Change) -> dict[str, object]:
        """The event as a record for Avro."""
        return fill_event(self.compile_for(change).value, change)

    def container(self, shape: Shape, changes: Iterable[Change]) -> bytes:
        """The events of one table as an Avro file, with their schema."""
        return write_container(shape, (self.event(change) for change in changes))


def fill_event(template: Template, change: Change) -> dict[str, object]:
    """The event of a change, which is JSON but for its payload, as Avro's writer takes it."""
    event: dict[str, object] = json.loads(template.write(change))
    event["payload"] = convert_row(change.shape, read_row(change, last_row(find_kind(change))))
    return event


def check_whole_rows(known: Known, or_else: str) -> None:
    """Raises ConfigurationError if a capture does not know the whole row of every change."""
    if not known.whole_rows:
        raise ConfigurationError(
            f"a Datastream event needs the whole row, and {known} has only the columns that"
            f" changed: use value_capture_type NEW_ROW_AND_OLD_VALUES{or_else}"
        )
    if known.capture == "change-stream" and not known.old_values:
        raise ConfigurationError(
            f"a Datastream event needs the whole row, also of a delete, and {known} has only"
            f" its key: use value_capture_type NEW_ROW_AND_OLD_VALUES{or_else}"
        )


def refuse_partial(kind: Kind) -> None:
    """Raises LackingError for changes that do not have the whole row."""
    refuse_part(kind, kind.has_whole_last_row, "a Datastream event needs the whole row")


def describe_event(
    kind: Kind, database: str, shape: Shape, stream_name: str | None
) -> dict[str, Tree]:
    """The fields that all events have, in their order; times are milliseconds. ``uuid`` is the same
    on every delivery of a change."""
    return {
        "stream_name": quote(stream_name or database),
        "read_method": quote("backfill" if kind.backfilled else "cdc"),
        "object": quote(shape.table),
        "schema_key": quote(schema_key(shape)),
        "uuid": describe_uuid(database),
        "read_timestamp": WINDOW_END_MS,
        "source_timestamp": COMMIT_MS,
        "sort_keys": SORT_KEYS if kind.streamed else POLLED_SORT_KEYS,
        "source_metadata": describe_metadata(kind, database, shape),
    }


def describe_metadata(kind: Kind, database: str, shape: Shape) -> Tree:
    """Where a change comes from, and what it is. UPSERT is polling's: insert or update."""
    schema, table = split_name(shape.table)
    return {
        "database": quote(database.rpartition("/")[2]),
        "schema": quote(schema),
        "table": quote(table),
        "primary_keys": tuple(map(quote, shape.primary_key)),
        "is_deleted": json_text(kind.deleted),
        "change_type": quote(kind.operation),
        "tx_id": TRANSACTION_ID if kind.streamed else NULL,
        "record_sequence": RECORD_SEQUENCE if kind.streamed else NULL,
        "mod_number": MOD_NUMBER if kind.streamed else NULL,
    }


@lru_cache(maxsize=1024)
def schema_key(shape: Shape) -> str:
    """A digest of a table's columns, which changes when they do."""
    columns: list[Json] = [[name, type_json(type_)] for name, type_ in shape.columns]
    text = json_text([shape.table, columns, list(shape.primary_key)])
    return hashlib.blake2b(text.encode(), digest_size=20).hexdigest()


def describe_uuid(database: str) -> Field:
    """``uuid5(NAMESPACE, f"{database}/{id}")`` of each change's id."""
    return Field(
        lambda change: f'"{uuid5(NAMESPACE, f"{database}/{change.id}")}"',
        lambda changes: wrap(compute_uuids(database, changes.ids), '"', '"'),
    )


def compute_uuids(database: str, ids: pa.Array) -> pa.Array:
    """The uuid of each id, as text."""
    head = hashlib.sha1(NAMESPACE.bytes + f"{database}/".encode(), usedforsecurity=False)
    digests = bytearray()
    for each in ids.cast(pa.binary()).to_pylist():
        whole = head.copy()
        whole.update(each)
        digests += whole.digest()[:UUID_BYTES]
    octets = np.frombuffer(digests, np.uint8).reshape(-1, UUID_BYTES).copy()
    octets[:, 6] = (octets[:, 6] & 0x0F) | 0x50
    octets[:, 8] = (octets[:, 8] & 0x3F) | 0x80
    digits = np.frombuffer(octets.tobytes().hex().encode(), np.uint8).reshape(-1, 2 * UUID_BYTES)
    texts = np.full((len(octets), len(UUID_TEXT)), ord("-"), np.uint8)
    texts[:, [index for index, sign in enumerate(UUID_TEXT) if sign == "x"]] = digits
    offsets = np.arange(len(octets) + 1, dtype=np.int32) * len(UUID_TEXT)
    return pa.StringArray.from_buffers(
        len(octets), pa.py_buffer(offsets), pa.py_buffer(texts.reshape(-1))
    )
