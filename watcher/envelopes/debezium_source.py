"""The block ``source`` of Debezium's events: each field with its schema and its value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from watcher.envelopes.by_column.changes import ChangeColumns
from watcher.envelopes.kinds import Kind
from watcher.envelopes.leaves import (
    COMMIT_MS,
    COMMIT_NS,
    COMMIT_US,
    LAST,
    MOD_NUMBER,
    PARTITION_TOKEN,
    PARTITIONS,
    RECORDS,
    SYSTEM,
    TRANSACTION_ID,
    TRANSACTION_TAG,
    WINDOW_END_MS,
    WINDOW_START_MS,
    Field,
    Leaf,
)
from watcher.envelopes.values import quote
from watcher.model.change import Change
from watcher.process.version import read_version
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.json_columns.objects import NULL
from watcher.spanner.json_columns.scalars import wrap

VERSION = read_version()


@dataclass(frozen=True, slots=True)
class Source:
    """What the block depends on besides the values of a change; ``name`` and ``stream`` are those
    of the connector."""

    kind: Kind
    address: DatabaseAddress
    table: str
    name: str
    stream: str
    low_watermark: bool

    def if_streamed(self, leaf: Leaf) -> Leaf | str:
        """A value that only a change stream gives."""
        return leaf if self.kind.streamed else NULL


@dataclass(frozen=True, slots=True)
class SourceField:
    """A field: its type in Kafka Connect, whether that allows NULL, and its value: a JSON text that
    all changes of a kind have, or a leaf."""

    name: str
    type: str
    optional: bool
    describe: Callable[[Source], Leaf | str]


def write_sequence(change: Change) -> str:
    """The record sequence without leading zeros."""
    assert change.origin is not None
    return f'"{int(change.origin.record_sequence)}"'


def render_sequence(changes: ChangeColumns) -> pa.Array:
    """As ``write_sequence``."""
    sequences = changes.batch.column("record_sequence")
    if pc.all(pc.match_substring_regex(sequences, "^[0-9]{1,18}$")).as_py():
        return wrap(sequences.cast(pa.int64()).cast(pa.string()), '"', '"')
    return pa.array([f'"{int(each)}"' for each in sequences.to_pylist()], pa.string())


SEQUENCE = Field(write_sequence, render_sequence)

FIELDS = (
    SourceField("version", "string", False, lambda _: quote(VERSION)),
    SourceField("connector", "string", False, lambda _: quote("spanner")),
    SourceField("name", "string", False, lambda source: quote(source.name)),
    SourceField("ts_ms", "int64", False, lambda _: COMMIT_MS),
    SourceField(
        "snapshot",
        "enum",
        True,
        lambda source: quote("true" if source.kind.backfilled else "false"),
    ),
    SourceField("db", "string", False, lambda source: quote(source.address.database)),
    SourceField("sequence", "string", True, lambda source: source.if_streamed(SEQUENCE)),
    SourceField("ts_us", "int64", True, lambda _: COMMIT_US),
    SourceField("ts_ns", "int64", True, lambda _: COMMIT_NS),
    SourceField("project_id", "string", False, lambda source: quote(source.address.project)),
    SourceField("instance_id", "string", False, lambda source: quote(source.address.instance)),
    SourceField("database_id", "string", False, lambda source: quote(source.address.database)),
    SourceField("change_stream_name", "string", False, lambda source: quote(source.stream)),
    SourceField("table", "string", False, lambda source: quote(source.table)),
    SourceField(
        "server_transaction_id", "string", True, lambda source: source.if_streamed(TRANSACTION_ID)
    ),
    SourceField(
        "low_watermark",
        "int64",
        True,
        lambda source: WINDOW_START_MS if source.low_watermark else NULL,
    ),
    SourceField("read_at_timestamp", "int64", True, lambda _: WINDOW_END_MS),
    SourceField(
        "number_records_in_transaction", "int64", True, lambda source: source.if_streamed(RECORDS)
    ),
    SourceField(
        "transaction_tag", "string", True, lambda source: source.if_streamed(TRANSACTION_TAG)
    ),
    SourceField("system_transaction", "boolean", True, lambda source: source.if_streamed(SYSTEM)),
    SourceField("value_capture_type", "string", True, lambda source: quote(source.kind.captured)),
    SourceField(
        "partition_token", "string", True, lambda source: source.if_streamed(PARTITION_TOKEN)
    ),
    SourceField("mod_number", "int32", True, lambda source: source.if_streamed(MOD_NUMBER)),
    SourceField(
        "is_last_record_in_transaction_in_partition",
        "boolean",
        True,
        lambda source: source.if_streamed(LAST),
    ),
    SourceField(
        "number_of_partitions_in_transaction",
        "int64",
        True,
        lambda source: source.if_streamed(PARTITIONS),
    ),
)
"""In the order of the connector's own schema."""
