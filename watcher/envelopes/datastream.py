"""A change as an event of Google's Datastream, in JSON or Avro."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from typing import ClassVar, Literal
from uuid import UUID, uuid5

from ddl.model.names import split_name
from watcher.envelopes.avro import convert_row, load_fastavro, write_container, write_datum
from watcher.envelopes.change_stream import type_json
from watcher.envelopes.images import has_whole_last_row, last_row, refuse_part
from watcher.envelopes.message import (
    EnvelopeOptions,
    Json,
    Known,
    Message,
    id_header,
    json_bytes,
    json_text,
)
from watcher.envelopes.values import JsonColumns, JsonFormat
from watcher.model.change import Change, Common, Operation, Shape
from watcher.model.errors import ConfigurationError
from watcher.spanner.timestamps import format_timestamp

FORMAT = JsonFormat(int64_as_text=True, json_nested=True)
NAMESPACE = UUID("6f1d2f2e-6a3b-5c0e-9a53-0d7c9b1d4c11")
"""Of the uuids of events: uuid5 of a database and a change's id."""


class Datastream(EnvelopeOptions):
    """``stream_name`` is that of the event; by default, the path of the database.

    ``partial``: changes with only some columns are refused, or their other columns are left out.
    ``json_columns``: JSON columns are JSON, or text.
    """

    stream_name: str | None = None
    partial: Literal["refuse", "omit"] = "refuse"
    json_columns: JsonColumns = "nested"

    @property
    def format(self) -> JsonFormat:
        """How cells are written."""
        return FORMAT.choose_json(self.json_columns)

    def check(self, known: Known) -> None:
        """As ``Envelope.check``."""
        if self.partial == "refuse":
            check_whole_rows(known, ", or partial = 'omit'")

    def encode(self, change: Change) -> tuple[Message, ...]:
        """As ``Envelope.encode``."""
        if self.partial == "refuse":
            refuse_part(
                change, has_whole_last_row(change), "a Datastream event needs the whole row"
            )
        key = json_bytes(list(FORMAT.format_row(change.shape, change.key).values()))
        event: dict[str, Json] = {
            **generic_metadata(change, self.stream_name),
            "read_timestamp": milliseconds_text(change.window.end),
            "source_timestamp": milliseconds_text(change.commit_timestamp),
            "sort_keys": sort_keys(change),
            "source_metadata": source_metadata(change),
            "payload": dict(self.format.format_row(change.shape, last_row(change))),
        }
        return (Message(key, json_bytes(event), id_header(change)),)


class DatastreamAvro(EnvelopeOptions):
    """As ``Datastream``, the value as a single Avro datum without its schema, as queues take it.

    ``avro.event_schema`` is the schema of a table's events; ``container`` writes Avro files, which
    hold it.
    """

    binary: ClassVar[bool] = True

    stream_name: str | None = None

    def check(self, known: Known) -> None:
        """As ``Envelope.check``: Avro has no way to leave a column out. Raises
        MissingExtraError."""
        load_fastavro()
        check_whole_rows(known, "")

    def encode(self, change: Change) -> tuple[Message, ...]:
        """As ``Envelope.encode``."""
        key = json_bytes(list(FORMAT.format_row(change.shape, change.key).values()))
        value = write_datum(self.event(change), change.shape)
        return (Message(key, value, id_header(change)),)

    def event(self, change: Change) -> dict[str, object]:
        """The event as a record for Avro: timestamps are milliseconds."""
        refuse_part(change, has_whole_last_row(change), "a Datastream event needs the whole row")
        return {
            **generic_metadata(change, self.stream_name),
            "read_timestamp": change.window.end // 1000,
            "source_timestamp": change.commit_timestamp // 1000,
            "sort_keys": sort_keys(change),
            "source_metadata": source_metadata(change),
            "payload": convert_row(change.shape, last_row(change)),
        }

    def container(self, shape: Shape, changes: Iterable[Change]) -> bytes:
        """The events of one table as an Avro file, with their schema."""
        return write_container(shape, (self.event(change) for change in changes))


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


def generic_metadata(change: Change, stream_name: str | None) -> dict[str, Json]:
    """The fields that all events have. ``uuid`` is the same on every delivery of a change."""
    alike = alike_metadata(change.common, stream_name)
    return {
        "stream_name": alike["stream_name"],
        "read_method": "backfill" if change.operation is Operation.READ else "cdc",
        **alike,
        "uuid": str(uuid5(NAMESPACE, f"{change.database}/{change.id}")),
    }


def alike_metadata(common: Common, stream_name: str | None) -> dict[str, Json]:
    """Those of them that all changes of a batch have alike."""
    return {
        "stream_name": stream_name or common.database,
        "object": common.shape.table,
        "schema_key": schema_key(common.shape),
    }


def source_metadata(change: Change) -> dict[str, Json]:
    """Where a change comes from, and what it is. UPSERT is polling's: insert or update."""
    origin = change.origin
    return {
        **alike_source(change.common),
        "is_deleted": change.operation is Operation.DELETE,
        "change_type": str(change.operation),
        "tx_id": origin.transaction_id if origin else None,
        "record_sequence": origin.record_sequence if origin else None,
        "mod_number": origin.mod_number if origin else None,
    }


def alike_source(common: Common) -> dict[str, Json]:
    """What of it all changes of a batch have alike."""
    schema, table = split_name(common.shape.table)
    return {
        "database": common.database.rpartition("/")[2],
        "schema": schema,
        "table": table,
        "primary_keys": list(common.shape.primary_key),
    }


def sort_keys(change: Change) -> list[Json]:
    """Commit timestamp (microseconds), transaction, sequence in it, number in the record: sorting
    by them puts events in the order in which they happened. Polling knows only the first."""
    origin = change.origin
    if origin is None:
        return [change.commit_timestamp, "", "", 0]
    return [
        change.commit_timestamp,
        origin.transaction_id,
        origin.record_sequence,
        origin.mod_number,
    ]


@lru_cache(maxsize=1024)
def schema_key(shape: Shape) -> str:
    """A digest of a table's columns, which changes when they do."""
    columns: list[Json] = [[name, type_json(type_)] for name, type_ in shape.columns]
    text = json_text([shape.table, columns, list(shape.primary_key)])
    return hashlib.blake2b(text.encode(), digest_size=20).hexdigest()


def milliseconds_text(micros: int) -> str:
    """RFC 3339 with milliseconds, as Datastream writes times."""
    return format_timestamp(micros)[:-4] + "Z"
