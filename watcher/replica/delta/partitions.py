"""Partitions of Delta tables: the log has the values of a file's partition columns, as text, and
the file does not have the columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from watcher.replica.delta.partition_values import TAKEN_FOR_NULL, name_folder, refuse_taken
from watcher.replica.delta.snapshot import Action, Snapshot
from watcher.replica.layout import Layout
from watcher.replica.writing.arranged_rows import Arrangement
from watcher.replica.writing.new_files import Partition


def list_partitions(snapshot: Snapshot) -> list[str]:
    """The partition columns of a table, in the order of their names."""
    return sorted(snapshot.metadata["partitionColumns"])


def make_arrangement(snapshot: Snapshot, layout: Layout, path: str) -> Arrangement:
    """How rows become files of a table: by its own partitions."""
    names = list_partitions(snapshot)
    real = Layout(tuple(names), layout.sort_by, layout.file_megabytes)
    return Arrangement(
        real,
        make_values(names, path),
        frozenset(names),
        lambda partition: name_folder(names, partition, path),
    )


def make_values(names: Sequence[str], path: str) -> Callable[[pa.Table], list[pa.Array]]:
    """What makes of rows the values of their partitions."""
    return lambda rows: [write_values(rows.column(name), name, path) for name in names]


def write_values(column: pa.ChunkedArray, name: str, path: str) -> pa.Array:
    """Values as the log has them. Raises ReplicaError for a text that readers take for NULL."""
    texts = column.combine_chunks().cast(pa.string())
    taken = pc.is_in(texts, pa.array(TAKEN_FOR_NULL))
    if pa.types.is_string(column.type) and pc.any(taken).as_py():
        raise refuse_taken(name, path)
    return texts


def name_values(names: Sequence[str], partition: Partition) -> dict[str, str | None]:
    """The values of a partition, as an action has them."""
    return dict(zip(names, partition, strict=True))


def fill_partition(rows: pa.RecordBatch, add: Action, schema: pa.Schema) -> pa.RecordBatch:
    """Rows of a file, whose columns are those of a schema, with the values of its partition."""
    values: Mapping[str, str | None] = add.get("partitionValues") or {}
    if not values.keys() & set(schema.names):
        return rows
    columns = [
        repeat_value(values[field.name], field.type, rows.num_rows)
        if field.name in values
        else rows.column(field.name)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def repeat_value(text: str | None, type_: pa.DataType, count: int) -> pa.Array:
    """A value of the log in so many rows."""
    return pa.repeat(pa.scalar(text or None, pa.string()).cast(type_), count)
