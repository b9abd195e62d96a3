"""Delta's change data feed: beside a merge on read, a file with the rows as they were and are."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyroaring import BitMap

from watcher.replica.delta.feed_columns import PROPERTY
from watcher.replica.delta.files import TableFiles
from watcher.replica.delta.partitions import list_partitions, name_values
from watcher.replica.delta.snapshot import Action, Snapshot
from watcher.replica.keys.hashes import draw_points, hash_keys
from watcher.replica.writing.arranged_rows import Arrangement

FEATURE = "changeDataFeed"
FOLDER = "_change_data"
KIND = "_change_type"
INSERT, DELETE, BEFORE, AFTER = "insert", "delete", "update_preimage", "update_postimage"


def has_feed(snapshot: Snapshot) -> bool:
    """Whether commits of a table have to say which rows they change."""
    return snapshot.properties.get(PROPERTY) == "true"


def read_gone(
    files: TableFiles, snapshot: Snapshot, gone: Mapping[str, BitMap]
) -> Iterator[pa.Table]:
    """The rows that go, as they are."""
    for path, rows in gone.items():
        numbers = np.array(rows.to_array(), np.int64)
        yield files.read_rows(snapshot.files[path], snapshot.schema, numbers)


def describe_changes(old: pa.Table, new: pa.Table, key: Sequence[str]) -> pa.Table:
    """The rows of the feed. A row that comes in the place of one of its key is an update; where
    others have added several of one key, only one of them is."""
    keys = pa.concat_tables([each.select(list(key)) for each in (old, new)])
    hashes = np.stack(hash_keys(keys, draw_points()), axis=1)
    numbers = np.unique(hashes, axis=0, return_inverse=True)[1].reshape(-1)
    before, after = numbers[: old.num_rows], numbers[old.num_rows :]
    first = np.zeros(len(before), np.bool_)
    first[np.unique(before, return_index=True)[1]] = True
    updated = np.isin(before, after) & first
    return pa.concat_tables(
        [
            mark(old, np.where(updated, BEFORE, DELETE)),
            mark(new, np.where(np.isin(after, before), AFTER, INSERT)),
        ]
    )


def write_changes(
    files: TableFiles,
    snapshot: Snapshot,
    gone: Mapping[str, BitMap],
    new: pa.Table,
    key: Sequence[str],
    arrangement: Arrangement,
) -> list[Action]:
    """Writes the rows of the feed, a file for each partition, if the table has one: the actions
    that name them. ``gone``: the rows of data files that go, and no others."""
    if not has_feed(snapshot) or not (gone or new.num_rows):
        return []
    empty = snapshot.schema.empty_table()
    old = pa.concat_tables([empty, *read_gone(files, snapshot, gone)])
    changes = describe_changes(old, new, key)
    written = arrangement.choose_written(changes.schema).names
    parts = arrangement.arrange(changes)
    return [
        write_feed(
            files,
            part.select(written),
            name_values(list_partitions(snapshot), partition),
        )
        for partition, part, _ in parts
    ]


def write_feed(
    files: TableFiles, rows: pa.Table, partition: Mapping[str, str | None]
) -> dict[str, Any]:
    """Writes a file of the feed: the action that names it."""
    content = BytesIO()
    pq.write_table(rows, content, compression="snappy")
    path = f"{FOLDER}/cdc-00000-{uuid.uuid4()}.c000.snappy.parquet"
    files.write(PurePosixPath(path), content.getvalue())
    size = content.getbuffer().nbytes
    return {"cdc": {"path": path, "partitionValues": partition, "size": size, "dataChange": False}}


def enable_feed(actions: Sequence[Action]) -> list[Action]:
    """Actions that make a table, or give it another protocol, with the feed."""
    return [enable_in(each) for each in actions]


def enable_in(action: Action) -> Action:
    """The same of one."""
    if "protocol" in action:
        protocol = action["protocol"]
        features = sorted({*protocol["writerFeatures"], FEATURE})
        return {"protocol": {**protocol, "writerFeatures": features}}
    metadata = action["metaData"]
    return {
        "metaData": {**metadata, "configuration": {**metadata["configuration"], PROPERTY: "true"}}
    }


def mark(rows: pa.Table, kinds: NDArray[np.str_]) -> pa.Table:
    """Rows that say what has happened to them."""
    return rows.append_column(KIND, pa.array(kinds, pa.string()))
