"""The records of a change stream as plain values, however they were sent."""

from __future__ import annotations

from dataclasses import dataclass

from spanner_schema.model.column_types import Type
from watcher.model.change import Operation, Shape, ValueCapture
from watcher.model.value_types import find_code


@dataclass(frozen=True, slots=True)
class StreamMod:
    """One row of a record: JSON objects. ``new`` of a delete is None, as is ``old`` where the
    stream does not capture it; an insert has no old values, so that its ``old`` is empty.
    ``captured`` is set where the row has fewer values than the record says."""

    key: str
    new: str | None
    old: str | None
    captured: ValueCapture | None = None


@dataclass(frozen=True, slots=True)
class DataRecord:
    """Changes of one table, of one kind, in one transaction and partition.

    ``commit_timestamp`` is in microseconds since 1970.
    """

    commit_timestamp: int
    sequence: str
    transaction_id: str
    last_in_partition: bool
    shape: Shape
    mods: tuple[StreamMod, ...]
    operation: Operation
    captured: ValueCapture
    records_in_transaction: int
    partitions_in_transaction: int
    tag: str
    system: bool

    def measure_values(self) -> int:
        """How many characters its values have."""
        return sum(len(mod.new or "") + len(mod.old or "") for mod in self.mods)


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Everything of the partition up to this timestamp was sent."""

    timestamp: int


@dataclass(frozen=True, slots=True)
class ChildPartition:
    """A partition that takes over keys at ``start``. The first partitions have no parents."""

    token: str
    parents: tuple[str, ...]
    start: int


@dataclass(frozen=True, slots=True)
class PartitionStart:
    """Partitions that are to be read from a timestamp on, where keys move between partitions."""

    timestamp: int
    sequence: str
    tokens: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PartitionMove:
    """Keys that moved at a timestamp: into this partition, from ``sources``. Empty where keys only
    left it."""

    timestamp: int
    sequence: str
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PartitionEnd:
    """The last record of a partition whose keys have moved away."""

    timestamp: int
    sequence: str


MovingRecord = DataRecord | Heartbeat | PartitionStart | PartitionMove | PartitionEnd
"""The records of a stream whose partitions live on while their keys move."""

Record = DataRecord | Heartbeat | ChildPartition


def decode_type(described: dict[str, object]) -> Type:
    """A type as a record describes it: ``{"code": "ARRAY", "array_element_type": {...}}``; in the
    PostgreSQL dialect some have a ``type_annotation``."""
    annotation = described.get("type_annotation")
    code = find_code(str(described["code"]), None if annotation is None else str(annotation))
    element = described.get("array_element_type")
    if isinstance(element, dict):
        return Type(code, element=decode_type(element))
    name = described.get("proto_type_fqn")
    return Type(code, proto_name=str(name) if name else None)
