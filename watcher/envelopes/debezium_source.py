"""The block ``source`` of Debezium's events: each field with its schema and where it is from.

What changes of a batch have alike is computed of ``SharedSource``, which holds nothing of a single
change: a field that differs by change cannot be written once for a batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from watcher.envelopes.message import Json
from watcher.model.change import Change, Operation
from watcher.process.extras import read_version
from watcher.spanner.address import DatabaseAddress

VERSION = read_version()

parse_address = lru_cache(maxsize=64)(DatabaseAddress.parse)


@dataclass(frozen=True, slots=True)
class SharedSource:
    """What changes of one batch have in common; ``name`` and ``stream`` are those of the
    connector. Times are in microseconds since 1970."""

    database: str
    table: str
    read_at: int
    name: str
    stream: str
    low_watermark: int | None

    @property
    def address(self) -> DatabaseAddress:
        """The database."""
        return parse_address(self.database)


@dataclass(frozen=True, slots=True)
class Alike:
    """A value that all changes of a batch have."""

    read: Callable[[SharedSource], Json]


@dataclass(frozen=True, slots=True)
class OfChange:
    """A value of each change. ``by_column.debezium.COLUMNS`` has the same of whole columns."""

    read: Callable[[Change], Json]


@dataclass(frozen=True, slots=True)
class OfOrigin:
    """A value that only a change stream gives, as it is: an attribute of ``Origin``, and the column
    of the same name."""

    attribute: str


From: TypeAlias = Alike | OfChange | OfOrigin


@dataclass(frozen=True, slots=True)
class SourceField:
    """A field: its type in Kafka Connect, and whether that allows NULL."""

    name: str
    type: str
    optional: bool
    value: From


FIELDS = (
    SourceField("version", "string", False, Alike(lambda _: VERSION)),
    SourceField("connector", "string", False, Alike(lambda _: "spanner")),
    SourceField("name", "string", False, Alike(lambda shared: shared.name)),
    SourceField("ts_ms", "int64", False, OfChange(lambda change: change.commit_timestamp // 1000)),
    SourceField(
        "snapshot",
        "enum",
        True,
        OfChange(lambda change: "true" if change.operation is Operation.READ else "false"),
    ),
    SourceField("db", "string", False, Alike(lambda shared: shared.address.database)),
    SourceField(
        "sequence",
        "string",
        True,
        OfChange(lambda change: str(int(change.origin.record_sequence)) if change.origin else None),
    ),
    SourceField("ts_us", "int64", True, OfChange(lambda change: change.commit_timestamp)),
    SourceField("ts_ns", "int64", True, OfChange(lambda change: change.commit_timestamp * 1000)),
    SourceField("project_id", "string", False, Alike(lambda shared: shared.address.project)),
    SourceField("instance_id", "string", False, Alike(lambda shared: shared.address.instance)),
    SourceField("database_id", "string", False, Alike(lambda shared: shared.address.database)),
    SourceField("change_stream_name", "string", False, Alike(lambda shared: shared.stream)),
    SourceField("table", "string", False, Alike(lambda shared: shared.table)),
    SourceField("server_transaction_id", "string", True, OfOrigin("transaction_id")),
    SourceField(
        "low_watermark",
        "int64",
        True,
        Alike(
            lambda shared: None if shared.low_watermark is None else shared.low_watermark // 1000
        ),
    ),
    SourceField("read_at_timestamp", "int64", True, Alike(lambda shared: shared.read_at // 1000)),
    SourceField("number_records_in_transaction", "int64", True, OfOrigin("records_in_transaction")),
    SourceField("transaction_tag", "string", True, OfOrigin("transaction_tag")),
    SourceField("system_transaction", "boolean", True, OfOrigin("system_transaction")),
    SourceField(
        "value_capture_type", "string", True, OfChange(lambda change: str(change.captured))
    ),
    SourceField("partition_token", "string", True, OfOrigin("partition_token")),
    SourceField("mod_number", "int32", True, OfOrigin("mod_number")),
    SourceField(
        "is_last_record_in_transaction_in_partition",
        "boolean",
        True,
        OfOrigin("last_in_transaction_in_partition"),
    ),
    SourceField(
        "number_of_partitions_in_transaction", "int64", True, OfOrigin("partitions_in_transaction")
    ),
)
"""In the order of the connector's own schema."""


class SourceBlock:
    """The fields as a whole."""

    def __init__(self, fields: tuple[SourceField, ...]) -> None:
        self.fields = fields
        self._alike = lru_cache(maxsize=64)(self._read_alike)
        self._of_change = [
            (each.name, each.value.read) for each in fields if isinstance(each.value, OfChange)
        ]
        self._of_origin = [
            (each.name, each.value.attribute) for each in fields if isinstance(each.value, OfOrigin)
        ]

    def make(self, change: Change, shared: SharedSource) -> dict[str, Json]:
        """The block of one change."""
        block = dict(self._alike(shared))
        for name, read in self._of_change:
            block[name] = read(change)
        if change.origin is not None:
            for name, attribute in self._of_origin:
                block[name] = getattr(change.origin, attribute)
        return block

    def _read_alike(self, shared: SharedSource) -> dict[str, Json]:
        """All fields in their order; None for those that are of a change."""
        return {
            each.name: each.value.read(shared) if isinstance(each.value, Alike) else None
            for each in self.fields
        }


SOURCE = SourceBlock(FIELDS)
