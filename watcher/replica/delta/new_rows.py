"""The rows that come into a Delta table, as files of its partitions."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from pathlib import PurePosixPath
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from watcher.replica.delta.actions import add_file, name_data_file
from watcher.replica.delta.files import TableFiles
from watcher.replica.delta.partitions import list_partitions, name_values
from watcher.replica.delta.snapshot import Action, Snapshot
from watcher.replica.writing.arranged_rows import Arrangement
from watcher.replica.writing.new_files import GROUP_ROWS, NewFile
from watcher.replica.writing.statistics import describe_rows


def write_rows(
    files: TableFiles, snapshot: Snapshot, arrangement: Arrangement, rows: pa.Table
) -> list[tuple[Action, NDArray[np.int64]]]:
    """Writes rows, a file for each partition: the action that adds it, and the numbers of its
    rows."""
    names = list_partitions(snapshot)
    kept = arrangement.choose_written(rows.schema).names
    written = []
    for partition, part, numbers in arrangement.arrange(rows):
        path = name_data_file(arrangement.name_folder(partition))
        values = name_values(names, partition)
        written.append((write_file(files, path, part.select(kept), values), numbers))
    return written


def write_file(
    files: TableFiles, path: str, rows: pa.Table, partition: Mapping[str, str | None]
) -> Action:
    """Writes rows of a partition as a file."""
    content = BytesIO()
    pq.write_table(rows, content, compression="snappy", row_group_size=GROUP_ROWS)
    files.write(PurePosixPath(unquote(path)), content.getvalue())
    return add_file(path, content.getbuffer().nbytes, describe_rows(rows), partition)


def add_new(snapshot: Snapshot, new: NewFile) -> Action:
    """The action that adds a file that was written."""
    values = name_values(list_partitions(snapshot), new.partition)
    return add_file(new.path, new.size, new.statistics.to_json(), values)
