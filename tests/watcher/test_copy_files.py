"""The files of copies: they are compressed, and a reader holds a part of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from fixtures.replicas import replicate
from fixtures.singers import write_singers
from google.cloud.spanner_v1.database import Database

from watcher.replica.stores.stored_files import scan_dataset

GROUP_ROWS, GROUPS = 20_000, 24
TEXT_BYTES = 100


def write_file(path: Path) -> int:
    """A file of groups of rows; the bytes of its content in memory."""
    randomness = np.random.default_rng(1)
    schema = pa.schema([("key", pa.int64()), ("text", pa.binary(TEXT_BYTES))])
    size = 0
    with pq.ParquetWriter(path, schema, compression="none") as writer:
        for _ in range(GROUPS):
            texts = pa.py_buffer(randomness.bytes(GROUP_ROWS * TEXT_BYTES))
            text = pa.Array.from_buffers(schema.field("text").type, GROUP_ROWS, [None, texts])
            batch = pa.record_batch([pa.array(range(GROUP_ROWS), pa.int64()), text], schema=schema)
            writer.write_batch(batch)
            size += batch.nbytes
    return size


def test_a_reader_holds_a_part_of_the_files(tmp_path: Path) -> None:
    size = write_file(tmp_path / "one.parquet") + write_file(tmp_path / "two.parquet")
    before, most, rows = pa.total_allocated_bytes(), 0, 0
    for batch in scan_dataset(ds.dataset(tmp_path, format="parquet"), ["key", "text"]):
        most = max(most, pa.total_allocated_bytes() - before)
        rows += batch.num_rows
    assert rows == 2 * GROUPS * GROUP_ROWS
    assert 0 < most < size / 4


def test_the_files_of_a_copy_are_compressed(singers: Database, tmp_path: Path) -> None:
    write_singers(singers, range(50), "before")
    replicate(singers, tmp_path)
    write_singers(singers, range(5), "after")
    replicate(singers, tmp_path)
    files = list((tmp_path / "Singers").rglob("*.parquet"))
    assert len(files) > 1
    for path in files:
        group = pq.ParquetFile(path).metadata.row_group(0)
        assert {group.column(i).compression for i in range(group.num_columns)} == {"SNAPPY"}
