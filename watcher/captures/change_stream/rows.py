"""Changes of a change stream as Arrow columns, and from there as values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from spanner_schema.model.column_types import Type
from watcher.captures import StreamRows
from watcher.captures.change_stream.record_values import DataRecord
from watcher.captures.digests import hash_text
from watcher.model.change import Change, Operation, Origin, Shape, Value, ValueCapture
from watcher.model.window import Window
from watcher.spanner.json_values import decode_value
from watcher.spanner.key_values import merge_zeros
from watcher.spanner.results.columns import TIMESTAMP
from watcher.spanner.timestamps import format_timestamp

BATCH_ROWS = 10_000

CHANGES = pa.schema(
    [
        ("table", pa.string()),
        ("operation", pa.string()),
        ("commit_timestamp", TIMESTAMP),
        ("key", pa.string()),
        ("new_values", pa.string()),
        ("old_values", pa.string()),
        ("id", pa.string()),
        ("transaction_id", pa.string()),
        ("record_sequence", pa.string()),
        ("mod_number", pa.int32()),
        ("last_in_transaction_in_partition", pa.bool_()),
        ("records_in_transaction", pa.int64()),
        ("partitions_in_transaction", pa.int64()),
        ("transaction_tag", pa.string()),
        ("system_transaction", pa.bool_()),
        ("captured", pa.string()),
        ("partition_token", pa.string()),
        ("shape", pa.int32()),
    ]
)
"""A row a change. ``key``, ``new_values`` and ``old_values`` are JSON as Spanner sends it;
``shape`` is the index in ``StreamRows.shapes``."""


@dataclass(slots=True)
class ChangeBuffer:
    """Changes on their way to a batch, by column."""

    window: Window
    rows: int = 0
    _columns: dict[str, list[object]] = field(
        default_factory=lambda: {name: [] for name in CHANGES.names}
    )
    _shapes: dict[Shape, int] = field(default_factory=dict)

    def add(self, record: DataRecord, token: str) -> None:
        """Adds the changes of a record."""
        count = len(record.mods)
        mods, columns = record.mods, self._columns
        same = {
            "table": record.shape.table,
            "operation": str(record.operation),
            "commit_timestamp": record.commit_timestamp,
            "transaction_id": record.transaction_id,
            "record_sequence": record.sequence,
            "last_in_transaction_in_partition": record.last_in_partition,
            "records_in_transaction": record.records_in_transaction,
            "partitions_in_transaction": record.partitions_in_transaction,
            "transaction_tag": record.tag,
            # assumes: stream-marks-ttl
            "system_transaction": record.system,
            "partition_token": token,
            "shape": self._shapes.setdefault(record.shape, len(self._shapes)),
        }
        for name, value in same.items():
            columns[name] += [value] * count
        columns["key"] += [mod.key for mod in mods]
        columns["new_values"] += [mod.new for mod in mods]
        columns["old_values"] += [mod.old for mod in mods]
        columns["captured"] += [str(mod.captured or record.captured) for mod in mods]
        columns["mod_number"] += range(count)
        columns["id"] += compute_change_ids(record)
        self.rows += count

    def take(self) -> StreamRows:
        """The changes as a batch; the buffer is empty then."""
        arrays = [pa.array(self._columns[each.name], each.type) for each in CHANGES]
        batch = pa.RecordBatch.from_arrays(arrays, schema=CHANGES)
        rows = StreamRows(self.window, batch, tuple(self._shapes))
        self._columns = {name: [] for name in CHANGES.names}
        self._shapes = {}
        self.rows = 0
        return rows


def order_key(shape: Shape, keys: Mapping[str, tuple[str, ...]]) -> Shape:
    """The shape with its key as the schema orders it; that of a newer table as it is."""
    key = keys.get(shape.table, ())
    return replace(shape, primary_key=key) if set(key) == set(shape.primary_key) else shape


def compute_change_ids(record: DataRecord) -> Iterator[str]:
    """Digests of table, key, commit timestamp and number in the transaction: the same on every
    delivery."""
    stamp = format_timestamp(record.commit_timestamp)
    head = f"{record.shape.table}\n{stamp}\n{record.transaction_id}\n{record.sequence}\n"
    for number, mod in enumerate(record.mods):
        text = f"{head}{number}\n{mod.key}"
        yield hash_text(text.encode())


def iterate_stream_changes(rows: StreamRows, database: str) -> Iterator[Change]:
    """The changes of a batch as values."""
    batch = rows.batch.set_column(
        CHANGES.get_field_index("commit_timestamp"),
        "commit_timestamp",
        rows.batch.column("commit_timestamp").cast(pa.int64()),
    )
    for row in batch.to_pylist():
        shape = rows.shapes[row["shape"]]
        types = dict(shape.columns)
        yield Change(
            id=row["id"],
            database=database,
            shape=shape,
            operation=Operation(row["operation"]),
            commit_timestamp=row["commit_timestamp"],
            key=decode_key(row["key"], shape),
            new_values=decode_cells(row["new_values"], types),
            old_values=decode_cells(row["old_values"], types),
            captured=ValueCapture(row["captured"]),
            window=rows.window,
            origin=Origin(
                transaction_id=row["transaction_id"],
                record_sequence=row["record_sequence"],
                mod_number=row["mod_number"],
                last_in_transaction_in_partition=row["last_in_transaction_in_partition"],
                records_in_transaction=row["records_in_transaction"],
                partitions_in_transaction=row["partitions_in_transaction"],
                transaction_tag=row["transaction_tag"],
                system_transaction=row["system_transaction"],
                partition_token=row["partition_token"],
            ),
        )


def decode_key(text: str, shape: Shape) -> dict[str, Value]:
    """The key of a change, in the order of the primary key. Equal keys are written alike."""
    types = dict(shape.columns)
    values = json.loads(text)
    return {
        name: merge_zeros(decode_value(values[name], types[name])) for name in shape.primary_key
    }


def decode_cells(text: str | None, types: Mapping[str, Type]) -> dict[str, Value] | None:
    """A JSON object of a mod as cells, in the order of their names: JSON of one dialect sorts them
    so, that of the other by their length first."""
    if text is None:
        return None
    return {
        name: decode_value(value, types[name]) for name, value in sorted(json.loads(text).items())
    }
