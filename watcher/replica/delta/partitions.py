"""Partitions of Delta tables: the log has the values of a file's partition columns, as text, and
the file does not have the columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from watcher.model.errors import ReplicaError
from watcher.replica.delta.snapshot import Action, Snapshot
from watcher.replica.layout import Layout
from watcher.replica.writing.arranged_rows import Arrangement
from watcher.replica.writing.new_files import Partition

FOLDER_BYTES_MAX = 250
NULL = "__HIVE_DEFAULT_PARTITION__"
"""How Hive names the folder of rows without a value."""
TAKEN_FOR_NULL = ("", NULL)


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
        raise ReplicaError(
            f"{path} is partitioned by {name}, and a row has an empty text there, or {NULL}, which"
            " readers of Delta take for NULL: use partitions by another column, or iceberg:, in"
            " another folder"
        )
    return texts


def check_columns(names: Sequence[str], schema: pa.Schema, path: str) -> None:
    """Raises ReplicaError where a table that is loaded has lost a partition column."""
    gone = [name for name in names if name not in schema.names]
    if gone:
        raise ReplicaError(
            f"{path} is partitioned by {', '.join(gone)}, which its table has no more: use another"
            " folder, with other partitions"
        )


def name_folder(names: Sequence[str], partition: Partition, path: str) -> str:
    """The folder of a partition, as Hive names it: polars knows the values from there. Raises
    ReplicaError for a value that no folder can be named by."""
    parts = [f"{quote(n, safe='')}={name_value(v)}/" for n, v in zip(names, partition, strict=True)]
    if any(len(part) > FOLDER_BYTES_MAX for part in parts):
        raise ReplicaError(
            f"{path} is partitioned by {', '.join(names)}, and a value is longer than the name of a"
            " folder can be: use partitions by another column, or iceberg:, in another folder"
        )
    return "".join(parts)


def name_value(value: str | None) -> str:
    """A value in the name of a folder."""
    return NULL if value is None else quote(value, safe="")


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
